"""Floors, terms, and what is left: what physics asks of a phase, and how its time reads against that.

Units are seconds, bytes, FLOPs and hertz. Figures of a phase are those of one pass, its `count`
instances added. None is unknown, and what is built on it is unknown too.
"""

from gputop.perf.roofline.bottleneck import (
    TERMS,
    Binding,
    Left,
    Part,
    binding,
    modelled_s,
    what_is_left,
    without_gaps,
)
from gputop.perf.roofline.floors import (
    Efficiency,
    Floor,
    compulsory_bytes,
    device_floor,
    efficiency,
    floor,
    sum_floor,
)
from gputop.perf.roofline.forecast import Forecast, batched_s, forecast
from gputop.perf.roofline.peaks import LAUNCH_COSTS, PIPES, Mode, Rates, best_pipe
from gputop.perf.roofline.quantization import Fit, fit
from gputop.perf.roofline.terms import Terms, moved_over_compulsory, terms

__all__ = [
    "LAUNCH_COSTS",
    "PIPES",
    "TERMS",
    "Binding",
    "Efficiency",
    "Fit",
    "Floor",
    "Forecast",
    "Left",
    "Mode",
    "Part",
    "Rates",
    "Terms",
    "batched_s",
    "best_pipe",
    "binding",
    "compulsory_bytes",
    "device_floor",
    "efficiency",
    "fit",
    "floor",
    "forecast",
    "modelled_s",
    "moved_over_compulsory",
    "sum_floor",
    "terms",
    "what_is_left",
    "without_gaps",
]
