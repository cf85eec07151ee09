"""The kernels of one site: those that can serve it, and those that can't with why."""

from __future__ import annotations

import re
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from gputop.plan.choices import SiteView
from gputop.tui.palette import CURRENT, FAINT, TEXT


class KernelsScreen(ModalScreen[str | None]):
    """Returns the kernel chosen, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "cancel")]

    def __init__(self, site: SiteView) -> None:
        super().__init__()
        self._site = site

    def compose(self) -> ComposeResult:
        site = self._site
        with Vertical(classes="dialog"):
            yield Static(f"Kernels for {site.site}", classes="question", markup=False)
            yield OptionList(*self._options(), id="kernels")
            yield Static("enter to use it, esc to leave as it is", classes="hint")

    def _options(self) -> list[Option]:
        site = self._site
        why = dict(site.refused)
        names = [name for name in site.candidates if name not in why] or [site.kernel]
        usable = [Option(self._usable(name), id=name) for name in names]
        refused = [
            Option(Text(f"× {name}: {self._why(name, reason)}", Style(color=FAINT)), id=name, disabled=True)
            for name, reason in why.items()
        ]
        return usable + refused

    def _why(self, name: str, reason: str) -> str:
        """The reason, without the words before it and above. A kernel of many sites names its first."""
        return re.sub(rf"^{re.escape(name)} can't serve \S+: ", "", reason)

    def _usable(self, name: str) -> Text:
        chosen = name == self._site.kernel
        return Text(f"{'▶' if chosen else ' '} {name}", Style(color=CURRENT if chosen else TEXT, bold=chosen))

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        options.highlighted = options.get_option_index(self._site.kernel)
        options.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)
