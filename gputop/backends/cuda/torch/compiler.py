"""PyTorch's compiler as one process has it: its caches are global, and so is what is known of them."""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr
from typing import Any, TextIO

from gputop.backends.cuda.torch import autotune_log
from gputop.results.records import Tuned

MOST_VARIANTS = 64
"""Plans of one peer compiled side by side: each is one more version of the same function."""
VARIANT_LIMITS = ("cache_size_limit", "recompile_limit")
"""What the versions of PyTorch call the setting that bounds these."""
ALL_CHOICES = "autotune_num_choices_displayed"


class TorchCompiler:
    """Compiles, keeps what the compiler wrote about its choices, and forgets once nobody needs it."""

    def __init__(self) -> None:
        self._users = 0
        self._tuned: dict[str, tuple[Tuned, ...]] = {}

    def compile(self, torch: Any, model: Any, mode: str) -> Callable[[Any], Any]:
        """The model compiled when it is first called; `release` must follow."""
        self._users += 1
        config = importlib.import_module("torch._dynamo.config")
        for limit in VARIANT_LIMITS:
            if hasattr(config, limit):
                setattr(config, limit, MOST_VARIANTS)
        compiled: Callable[[Any], Any] = torch.compile(model, mode=mode, fullgraph=True, dynamic=False)
        return compiled

    @contextmanager
    def listening(self, word: str) -> Iterator[None]:
        """Reads what the compiler says of its choices for the plan `word` in the meantime."""
        ear = _Tee(sys.stderr)
        with ExitStack() as stack:
            config = importlib.import_module("torch._inductor.config")
            if hasattr(config, ALL_CHOICES):
                stack.enter_context(config.patch({ALL_CHOICES: None}))
            stack.enter_context(redirect_stderr(ear))
            yield
        # A compilation out of its cache says nothing: what it said at first still holds.
        if found := autotune_log.parse(ear.heard):
            self._tuned[word] = found

    def tuned(self, word: str) -> tuple[Tuned, ...]:
        """Return the choices read for that plan; empty if they came from a cache on disk."""
        return self._tuned.get(word, ())

    def release(self, torch: Any) -> None:
        """One plan fewer. With the last the compiler forgets: its graphs hold pools of memory until then.

        Not before, since it can only forget all, and a plan still in use would compile while it is timed.
        """
        self._users -= 1
        if self._users == 0:
            torch.compiler.reset()


class _Tee(io.TextIOBase):
    """Writes on, and remembers."""

    def __init__(self, beyond: TextIO) -> None:
        self._beyond = beyond
        self._parts: list[str] = []

    @property
    def heard(self) -> str:
        return "".join(self._parts)

    def write(self, text: str, /) -> int:
        self._parts.append(text)
        return self._beyond.write(text)

    def flush(self) -> None:
        self._beyond.flush()

    def fileno(self) -> int:
        return self._beyond.fileno()

    def isatty(self) -> bool:
        return self._beyond.isatty()


COMPILER = TorchCompiler()
