"""Dask, imported on demand and told to keep silent: who leaves is said by this package."""

from __future__ import annotations

import importlib
import logging
from typing import Any

from gputop.util import install_hints
from gputop.util.errors import Unavailable

EXTRA = "fleet"
CONNECT_S = 10.0
"""How long a scheduler may take to answer."""
_LOGGERS = (
    "distributed",
    "distributed.client",
    "distributed.worker",
    "tornado",
    "tornado.application",
    "asyncio",
)


def distributed() -> Any:
    """Return the module `distributed`. Raise Unavailable if it is not installed or can't be loaded."""
    try:
        dask = importlib.import_module("dask")
        module = importlib.import_module("distributed")
    except ImportError as error:
        hint = install_hints.extra(EXTRA)
        raise Unavailable(f"A fleet needs Dask, which can't be imported ({error}); {hint}.") from error
    # Its configuration gives each of these a level when it is imported.
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    dask.config.set({"distributed.comm.timeouts.connect": f"{CONNECT_S:g}s"})
    return module
