"""Where a forward pass spends its time, how far each phase is from physics, and what one change buys."""

__version__ = "0.1.0"
