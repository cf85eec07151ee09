"""The kernels of one site: those that can serve it, and those that can't with why."""

from __future__ import annotations

import re
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from gputop.plan.choices import Candidate, SiteChoices
from gputop.tui.palette import CURRENT, FAINT, TEXT


class KernelsScreen(ModalScreen[Candidate | None]):
    """Returns the kernel chosen with the plan that it makes, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "cancel")]

    def __init__(self, choices: SiteChoices, looked_for: str | None = None) -> None:
        """`looked_for`: the kernel to begin at; the plan's own if none, or if that can't serve the site."""
        super().__init__()
        self._looked_for = looked_for
        self._choices = choices
        self._by_id = {str(candidate.choice): candidate for candidate in choices.candidates}

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(f"Kernels for {self._choices.site}", classes="question", markup=False)
            yield OptionList(*self._options(), id="kernels")
            yield Static("enter to use it, esc to leave as it is", classes="hint")

    def _options(self) -> list[Option]:
        usable = [Option(self._usable(name), id=name) for name in self._by_id]
        refused = [
            Option(Text(f"× {why}: {', '.join(names)}", Style(color=FAINT)), disabled=True)
            for why, names in reasons(self._choices).items()
        ]
        return usable + refused

    def _usable(self, name: str) -> Text:
        chosen = self._by_id[name].choice == self._choices.kernel
        return Text(f"{'▶' if chosen else ' '} {name}", Style(color=CURRENT if chosen else TEXT, bold=chosen))

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        found = (name for name, other in self._by_id.items() if other.choice.kernel == self._looked_for)
        options.highlighted = options.get_option_index(next(found, str(self._choices.kernel)))
        options.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._by_id[str(event.option_id)])


def reasons(choices: SiteChoices) -> dict[str, list[str]]:
    """Map each reason why kernels can't serve the site to their names."""
    found: dict[str, list[str]] = {}
    for name, why in choices.refused:
        # Without the words that the heading says already; a kernel of many sites names its first.
        reason = re.sub(rf"^{re.escape(name)}(/\d+)? can't serve \S+: ", "", why).rstrip(".")
        found.setdefault(reason, []).append(name)
    return found
