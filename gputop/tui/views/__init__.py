"""The views beside the phases, one a file: roofline, ladder, inspector, what-if, diff."""

from gputop.tui.views.diff import DiffView
from gputop.tui.views.inspector import InspectorView
from gputop.tui.views.ladder_chart import LadderView
from gputop.tui.views.pane import ViewPane
from gputop.tui.views.roofline import RooflineView
from gputop.tui.views.whatif import WhatIfView

VIEW_PANES: tuple[type[ViewPane], ...] = (RooflineView, LadderView, InspectorView, WhatIfView, DiffView)
