"""The cpu backend: NumPy, on one core or all. Real runs with real ceilings where there is no GPU."""

from gputop.backends.cpu.backend import available, open_backend

__all__ = ["available", "open_backend"]
