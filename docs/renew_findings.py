"""Puts the figures of new recordings into the text of docs/findings.md:

    python -m docs.renew_findings EARLIER

EARLIER is a folder with the recordings that the text was written from, under the names that they had; the
shipped ones are the new. Each figure of a "Here" paragraph is replaced by the same one of the new recordings,
and stdout says which. Whether the sentences around them still hold is for a reader to judge.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from docs.figures import figures
from gputop.results import recording
from gputop.util.errors import GputopError

PAGE = Path(__file__).parent / "findings.md"
FIGURE = re.compile(r"\d[\d.]*(?:× \[[^\]]*\]|×|e-\d\d| (?:%|[µm]s|[kMG]B)(?!\w))")
"""A ratio with or without its interval, an error, or a number with a unit."""
HERE = "Here: "
WIDTH = 120


def main(argv: Sequence[str]) -> int:
    """Exit code 0, or that of the fault, told on stderr."""
    if len(argv) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        before = {path.stem: recording.read(path) for path in sorted(Path(argv[0]).glob("*.jsonl"))}
        now = {name: recording.read(path) for name, path in recording.shipped().items()}
        earlier, newer = figures(before), figures(now)
    except GputopError as error:
        print(f"renew_findings: {error}", file=sys.stderr)
        return error.exit_code
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8"), earlier, newer), encoding="utf-8")
    for title in newer:
        changed = [f"{a} -> {b}" for a, b in zip(earlier[title], newer[title], strict=True) if a != b]
        print("\n  ".join([f"## {title}", *changed]))
    return 0


def renewed(page: str, earlier: Mapping[str, Sequence[str]], newer: Mapping[str, Sequence[str]]) -> str:
    """Return the page with every figure of a section replaced, and its paragraphs of figures set anew."""
    head, *parts = page.split("\n## ")
    return "\n## ".join([head, *(_section(part, earlier, newer) for part in parts)])


def _section(part: str, earlier: Mapping[str, Sequence[str]], newer: Mapping[str, Sequence[str]]) -> str:
    title, _, text = part.partition("\n")
    before, here, said = text.partition(f"\n{HERE}")
    if not here or title not in newer:
        return part
    found = list(zip(earlier[title], newer[title], strict=True))
    paragraphs = [" ".join(paragraph.split()) for paragraph in f"{HERE}{said}".strip().split("\n\n")]
    pending = list(found)
    filled = (_filled("".join(_replaced(paragraph, found, pending))) for paragraph in paragraphs)
    end = said[len(said.rstrip("\n")) :]
    return f"{title}\n{before}\n" + "\n\n".join(filled) + end


def _replaced(text: str, found: Sequence[tuple[str, str]], pending: list[tuple[str, str]]) -> Iterator[str]:
    """Yield the text in pieces. `pending`: figures not used so far, since two may have read alike."""
    at = 0
    for figure in FIGURE.finditer(text):
        pair = next((pair for pair in (*pending, *found) if pair[0] == figure[0]), None)
        if pair is not None:
            yield text[at : figure.start()] + pair[1]
            at = figure.end()
            if pair in pending:
                pending.remove(pair)
    yield text[at:]


def _filled(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
