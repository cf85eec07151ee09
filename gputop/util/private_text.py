"""What names a person or a machine, taken out of text that is sent to others."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gputop.util import paths

SHORTEST_VALUE = 8
"""Environment values of fewer characters are words and switches (`1`, `xterm`), not secrets."""
PUBLIC_NAMES = frozenset(("root", "localhost"))
_PATTERNS = (
    (re.compile(r"\b(GPU|MIG)-[0-9a-fA-F]{4,}[0-9a-fA-F-]*"), r"\1-<uuid>"),
    (re.compile(r"\b[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "<uuid>"),
    (re.compile(r"(?<=-- )\S+(?= gputop worker)"), "<host>"),
    (re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)*"), "<address>"),
    (re.compile(r"/(home|Users)/[^/\s:'\"]+"), "~"),
    (re.compile(r"(?<![\w.<>~:/])/(?!(?:usr|lib|lib64|proc|sys|dev|etc|bin)/)(?:[^/\s:'\",]+/)+"), ".../"),
    (re.compile(r"(?<![\w.-])(10|127|169\.254|172|192\.168)(\.\d{1,3}){2,3}(?![\w.])"), "<address>"),
)
"""What is private whoever runs this: device UUIDs, ssh destinations, addresses, other people's homes, and of
any other path the folders, unless they are the system's."""


@dataclass(frozen=True, slots=True)
class PrivateText:
    """Literal texts to replace, the longest first, and names to replace as whole words."""

    literals: tuple[tuple[str, str], ...]
    words: tuple[tuple[str, str], ...]

    @classmethod
    def of_this_process(cls) -> PrivateText:
        """Return what names this user, this host, their folders and the values of their environment."""
        literals = dict(_environment_values(os.environ))
        literals.update(_folders())
        words = {name: "<user>" for name in _user_names()} | {name: "<host>" for name in _host_names()}
        return cls(_longest_first(literals), _longest_first(words))

    def removed_from(self, text: str) -> str:
        """Return `text` with `~`, `<user>`, `<host>`, `<environment value>` and the like in their place."""
        for literal, instead in self.literals:
            text = text.replace(literal, instead)
        for pattern, form in _PATTERNS:
            text = pattern.sub(form, text)
        for word, instead in self.words:
            text = re.sub(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])", instead, text, flags=re.IGNORECASE)
        return text


def _longest_first(found: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """A folder before the folder that it lies in."""
    return tuple(sorted(found.items(), key=lambda pair: -len(pair[0])))


def _environment_values(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in environment.items():
        # `_` is the command as it was typed.
        for part in {value, *value.split(os.pathsep)}:
            if name != "_" and len(part) >= SHORTEST_VALUE:
                yield part, "<environment value>"


def _folders() -> Iterator[tuple[str, str]]:
    """Folders that appear in paths, and what stands in their place."""
    checkout = paths.checkout()
    named = [
        (os.path.expanduser("~"), "~"),
        (str(Path.home()) if _has_home() else "", "~"),
        (os.environ.get("HOME", ""), "~"),
        (paths.here(), "<current folder>"),
        (sys.base_prefix, "<python>"),
        (sys.prefix, "<environment>"),
        (str(checkout or ""), "<checkout>"),
    ]
    for folder, instead in named:
        # `/` and `/usr` say nothing of anyone, and would garble every path.
        for spelled in {folder, os.path.realpath(folder)} if folder.startswith("/") else ():
            if spelled not in ("/", "/usr", "/usr/local"):
                yield spelled, instead


def _has_home() -> bool:
    try:
        Path.home()
    except RuntimeError:
        return False
    return True


def _user_names() -> Iterator[str]:
    names = [os.environ.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER")]
    # A user of a container may have no name.
    with contextlib.suppress(OSError, KeyError):
        names.append(getpass.getuser())
    names.append(Path(os.path.expanduser("~")).name)
    yield from (name for name in names if name and name not in PUBLIC_NAMES)


def _host_names() -> Iterator[str]:
    for name in (socket.gethostname(), os.uname().nodename, os.environ.get("HOSTNAME", "")):
        for part in (name, name.partition(".")[0]):
            if part and part not in PUBLIC_NAMES:
                yield part
