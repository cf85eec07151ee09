"""ln1: the layernorm before attention."""

from gputop.phases import layernorm

PHASE = layernorm.phase(
    name="ln1",
    title="layernorm before attention",
    order=1,
    source="x",
    target="xn1",
    gain="gain1",
    shift="shift1",
    prunes=False,
)
