"""A one-line question: a file name, a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

Objection = Callable[[str], str]
"""Why an answer won't do, or nothing."""


class AskScreen(ModalScreen[str | None]):
    """Returns the answer, or None when put away. An answer that won't do is kept, with why, to be mended."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "cancel")]

    def __init__(self, question: str, default: str, objection: Objection) -> None:
        super().__init__()
        self._question = question
        self._default = default
        self._objection = objection

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self._question, classes="question", markup=False)
            yield Input(self._default, id="answer")
            yield Static("", id="objection", markup=False)
            yield Static("enter to go on, esc to cancel", classes="hint")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        answer = event.value.strip()
        why = self._objection(answer)
        if why:
            self.query_one("#objection", Static).update(f"✖ {why}")
        else:
            self.dismiss(answer)
