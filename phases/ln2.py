"""ln2: the layernorm before the feed-forward network."""

from gputop.phases import layernorm

PHASE = layernorm.phase(
    name="ln2",
    title="layernorm before the feed-forward network",
    order=5,
    source="x_mid",
    target="xn2",
    gain="gain2",
    shift="shift2",
    prunes=True,
)
