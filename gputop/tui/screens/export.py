"""What to export, and to which file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from gputop.tui.export import FORMATS, Kind
from gputop.tui.palette import CURRENT, MUTED


@dataclass(frozen=True, slots=True)
class ExportChoice:
    kind: Kind
    file: str


class ExportScreen(ModalScreen[ExportChoice | None]):
    """Returns what was chosen, or None when put away. A file that can't be written is kept, with why."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "cancel"),
        Binding("up", "other(-1)", "format before"),
        Binding("down", "other(1)", "next format"),
    ]

    def __init__(
        self, question: str, default_file: Callable[[Kind], str], objection: Callable[[str], str]
    ) -> None:
        """`objection`: why a file can't be written, or nothing."""
        super().__init__()
        self._question = question
        self._default_file = default_file
        self._objection = objection
        self._at = 0

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self._question, classes="question", markup=False)
            yield Static(self._formats(), id="formats")
            yield Input(self._default_file(self._kind), id="answer", select_on_focus=False)
            yield Static("", id="objection", markup=False)
            yield Static("↑ ↓ choose, enter writes, esc cancels", classes="hint")

    @property
    def _kind(self) -> Kind:
        return FORMATS[self._at].kind

    def _formats(self) -> Text:
        lines = []
        for at, item in enumerate(FORMATS):
            here = at == self._at
            style = Style(
                color=CURRENT if here else MUTED, bold=here, meta={"@click": f"screen.choose({at})"}
            )
            lines.append(Text(f"{'▸' if here else ' '} {item.title}", style))
        return Text("\n").join(lines)

    def action_other(self, step: int) -> None:
        self.action_choose((self._at + step) % len(FORMATS))

    def action_choose(self, at: int) -> None:
        """Choose a format. The file's ending follows; a name that was typed stays."""
        answer = self.query_one(Input)
        ending = f".{self._kind}"
        self._at = at
        if answer.value.endswith(ending):
            answer.value = f"{answer.value.removesuffix(ending)}.{self._kind}"
        self.query_one("#formats", Static).update(self._formats())
        self.query_one("#objection", Static).update("")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        file = event.value.strip()
        why = self._objection(file)
        if why:
            self.query_one("#objection", Static).update(f"✖ {why}")
        else:
            self.dismiss(ExportChoice(self._kind, file))
