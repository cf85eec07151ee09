"""Pieces of C and C++ text."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from importlib import resources

WIDTH = 120
"""Columns of a line, as in kernels/."""
_KEPT_SPACE = "\N{NO-BREAK SPACE}"
"""Which Python's wrapping does not break at."""


def wrapped(text: str, first: str, further: str, width: int = WIDTH) -> list[str]:
    """`text` in lines broken between words: the first begins with `first`, each other with `further`."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )


def argument_list(opening: str, arguments: Sequence[str], closing: str, width: int) -> list[str]:
    """Arguments in lines broken between two of them, each line below the first argument."""
    unbroken = ", ".join(argument.replace(" ", _KEPT_SPACE) for argument in arguments)
    lines = wrapped(f"{unbroken}{closing}", opening, " " * len(opening), width)
    return [line.replace(_KEPT_SPACE, " ") for line in lines]


def comment(paragraphs: Iterable[str]) -> str:
    """Paragraphs as `//` lines; one that begins with a space is a line as it is."""
    lines: list[str] = []
    for paragraph in paragraphs:
        if paragraph.startswith(" ") or not paragraph:
            lines.append(f"// {paragraph}".rstrip())
        else:
            lines += wrapped(paragraph, "// ", "// ")
    return "\n".join(lines)


def rule(title: str, mark: str = "-") -> str:
    """A comment that divides the file."""
    return f"// {f'{mark * 4} {title} ':{mark}<{WIDTH - 3}}"


def joined(sections: Iterable[str]) -> str:
    """Sections with one empty line between them."""
    return "\n\n".join(section.strip("\n") for section in sections) + "\n"


def template(name: str) -> str:
    """A file of templates/."""
    return (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")


def identifier(text: str) -> str:
    """A C++ name made of a site or a workspace: `w1@1` -> `w1_at_1`."""
    return re.sub(r"\W+", "_", text.replace("@", "_at_"))


def string(text: str) -> str:
    """A string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def boolean(value: bool) -> str:
    return "true" if value else "false"
