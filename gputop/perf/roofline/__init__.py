"""Floors, reach, terms, and what is left: what physics asks of a phase, and how its time reads against that.

Units are seconds, bytes, FLOPs and hertz. Figures of a phase are those of one pass, its `count`
instances added. None is unknown, and what is built on it is unknown too.
"""

from gputop.perf.roofline.floors import (
    Efficiency,
    Floor,
    compulsory_bytes,
    device_floor,
    efficiency,
    floor,
    sum_floor,
    touched_bytes,
)
from gputop.perf.roofline.forecast import batched_s, saved_s
from gputop.perf.roofline.launch_terms import (
    LAUNCH_CEILINGS,
    TERMS,
    Device,
    LaunchMode,
    LaunchTerms,
    call_terms,
    launch_terms,
)
from gputop.perf.roofline.peaks import PIPES, Rates, best_pipe
from gputop.perf.roofline.placement import Footprint, Placement, fits, place, place_beside
from gputop.perf.roofline.quantization import Fit, fit
from gputop.perf.roofline.reach import reach
from gputop.perf.roofline.site_terms import Binding, Left, Part, SiteTerms, binding, what_is_left

__all__ = [
    "LAUNCH_CEILINGS",
    "PIPES",
    "TERMS",
    "Binding",
    "Device",
    "Efficiency",
    "Fit",
    "Floor",
    "Footprint",
    "LaunchMode",
    "LaunchTerms",
    "Left",
    "Part",
    "Placement",
    "Rates",
    "SiteTerms",
    "batched_s",
    "best_pipe",
    "binding",
    "call_terms",
    "compulsory_bytes",
    "device_floor",
    "efficiency",
    "fit",
    "fits",
    "floor",
    "launch_terms",
    "place",
    "place_beside",
    "reach",
    "saved_s",
    "sum_floor",
    "touched_bytes",
    "what_is_left",
]
