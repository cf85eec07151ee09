"""What a change would gain, from the terms before and after it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from gputop.perf.roofline.bottleneck import shaped
from gputop.perf.roofline.terms import Terms


@dataclass(frozen=True, slots=True)
class Forecast:
    """The gain a change should bring; a loss has a negative saving."""

    saved_s: float
    after_s: float
    gain: float | None
    """Time before over time after; None where nothing would be left."""


def forecast(before: Terms, after: Terms, time_s: float | None) -> Forecast | None:
    """The model's fall when `before` becomes `after`, taken off the measured time.

    Only the largest term counts, so that a saving in a currency that does not bind is forecast at
    nothing. Where the model is above the time its fall is scaled down with it. A term unknown on
    one side is taken as unchanged. None where no term or no time is known.
    """
    was, will_be = _alike(before, after), _alike(after, before)
    if time_s is None or not shaped(was):
        return None
    model_before_s, model_after_s = max(shaped(was).values()), max(shaped(will_be).values())
    if model_before_s == 0:
        return None
    saved_s = (model_before_s - model_after_s) * min(1.0, time_s / model_before_s)
    after_s = time_s - saved_s
    return Forecast(saved_s, after_s, time_s / after_s if after_s > 0 else None)


def batched_s(time_s: float, model_s: float, batched_model_s: float) -> float:
    """A pass of a larger batch, from one that was measured and the model of both: all of seconds of a pass.

    What the model does not account for is taken to be paid once a pass, whatever its batch: waits for
    memory, ends of waves, starts of kernels. Where the model is above the time, it is scaled down to it.
    """
    scale = min(1.0, time_s / model_s) if model_s else 1.0
    return batched_model_s * scale + max(0.0, time_s - model_s)


def _alike(terms: Terms, other: Terms) -> Terms:
    """`terms` with what it does not know filled in from `other`."""
    return replace(
        terms,
        **{
            field.name: getattr(other, field.name)
            for field in fields(Terms)
            if getattr(terms, field.name) is None
        },
    )
