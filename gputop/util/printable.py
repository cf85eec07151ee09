r"""Make foreign text safe to print: device names, notes, file names, what other programs say.

A terminal obeys control characters and escape sequences wherever they come from: they set its title, move
its cursor, wipe the screen. Marks of writing direction reorder what is read. All that gputop writes to a
terminal or a log passes through here; files of data keep their content.
"""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    r"""Return `text` with every character that does not print written out, as `\x1b`, `\n` or `\u202e`.

    Those are control and format characters, line ends, lone surrogates and unassigned characters (what
    `str.isprintable` excludes). A tab, and a space of any width, becomes a plain space.
    """
    return text if text.isprintable() else "".join(map(_written_out, text))


def printable_lines(text: str) -> str:
    """Return a message of several lines, each printable, with the lines after the first indented.

    The indent keeps a line of foreign text from passing for a message of gputop's own.
    """
    return "\n  ".join(map(printable, text.split("\n")))


def printable_table(text: str) -> str:
    """Return a text of several lines, such as a CSV file, as a terminal may show it."""
    return "\n".join(map(printable, text.split("\n")))


def printable_json(text: str) -> str:
    r"""Return JSON of the same content in which whatever does not print is written as `\uXXXX`.

    `text` must be valid JSON, which has such characters inside of its strings only; line ends stay.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else _json_escape(char) for char in text)


def _written_out(char: str) -> str:
    if char.isprintable():
        return char
    if char == "\t" or unicodedata.category(char) == "Zs":
        return " "
    return char.encode("unicode_escape").decode("ascii")


def _json_escape(char: str) -> str:
    """One `\\uXXXX` for each UTF-16 unit of the character."""
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
