"""Numbers as a person reads them: three significant digits, SI prefixes, a dash for the unknown.

Files never use this module: they carry raw SI numbers. What is None or not finite reads `UNKNOWN`.
"""

from __future__ import annotations

import math

from gputop.util.interval import Interval

UNKNOWN = "–"


_PREFIXES = {-12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P"}


def significant(value: float, digits: int = 3) -> str:
    """`value` to `digits` significant digits, never in exponent form: 0.0123, 1.23, 123, 1230."""
    if value == 0:
        return "0"
    rounded = _rounded(value, digits)
    if not math.isfinite(rounded):
        return UNKNOWN
    decimals = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:.{max(0, decimals)}f}"


def si(value: float | None, unit: str, digits: int = 3) -> str:
    """`value` in the prefix of `unit` that leaves one to three digits before the point: `1.23 ms`."""
    rounded = math.nan if value is None else _rounded(value, digits)
    if not math.isfinite(rounded):
        return UNKNOWN
    if rounded == 0:
        return f"0 {unit}"
    exponent = 3 * math.floor(math.log10(abs(rounded)) / 3)
    exponent = min(max(exponent, min(_PREFIXES)), max(_PREFIXES))
    return f"{significant(rounded * 10.0**-exponent, digits)} {_PREFIXES[exponent]}{unit}"


def seconds(value: float | None) -> str:
    """`1.23 ms`."""
    return si(value, "s")


def signed_seconds(value: float | None) -> str:
    """A difference, its sign always shown: `+1.23 ms`, `-45.0 µs`."""
    text = seconds(value)
    return f"+{text}" if value is not None and math.isfinite(value) and value > 0 else text


def size_bytes(value: float | None) -> str:
    """`340 MB`; powers of 1000."""
    return si(value, "B")


def flop(value: float | None) -> str:
    """`22.3 GFLOP`."""
    return si(value, "FLOP")


def hertz(value: float | None) -> str:
    """`1.98 GHz`."""
    return si(value, "Hz")


def watts(value: float | None) -> str:
    """`345 W`."""
    return si(value, "W")


def celsius(value: float | None) -> str:
    """`41 °C`."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{value:.0f} °C"


def percent(fraction: float | None) -> str:
    """`12.3 %` of a fraction of 0.123."""
    return UNKNOWN if fraction is None or not math.isfinite(fraction) else f"{significant(100 * fraction)} %"


def ratio(value: float | None) -> str:
    """`1.23×`."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{significant(value)}×"


def ratio_within(found: Interval) -> str:
    """`1.23× [1.20, 1.26]`; the ratio alone if its interval is not known, dashes if that says nothing."""
    figure = ratio(found.value)
    if not found.is_known:
        return figure
    ends = (None, None) if found.is_uninformative else (found.lo, found.hi)
    return "{} [{}, {}]".format(figure, *map(number, ends))


def number(value: float | None) -> str:
    """A plain number to three significant digits."""
    return UNKNOWN if value is None or not math.isfinite(value) else significant(value)


def scientific(value: float | None) -> str:
    """An error or a tolerance: `3.1e-07`."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{value:.1e}"


def whole(value: int | None) -> str:
    """A count, in full."""
    return UNKNOWN if value is None else str(value)


def text(value: str | None) -> str:
    """Text, or the dash where there is none."""
    return value if value else UNKNOWN


def yes_no(value: bool | None) -> str:
    return UNKNOWN if value is None else ("yes" if value else "no")


def _rounded(value: float, digits: int) -> float:
    """Round to `digits` significant digits; the largest floats round to infinity."""
    return float(f"{value:.{digits - 1}e}")
