"""The cuda backend: the product. Importing it needs neither CuPy nor a device; opening it does."""

from gputop.backends.cuda.availability import available, open_backend

__all__ = ["available", "open_backend"]
