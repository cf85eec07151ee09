"""The toggles of the current plan: value, what it may be, and why a value can't hold here."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from gputop.plan.choices import ToggleView
from gputop.results.flip_forecast import FlipForecast
from gputop.tui.forecast import sentence, short_words, toggle_forecast
from gputop.tui.layout import LayoutColumn
from gputop.tui.palette import CURRENT, FAINT, MUTED, TEXT
from gputop.tui.state import State
from gputop.tui.state_keys import next_value
from gputop.tui.widgets.keyed_table import Cells, KeyedTable

COLUMNS = (
    LayoutColumn("name", "toggle", 12, 0, doc="A field of the plan; enter or a click flips it"),
    LayoutColumn("value", "value", 4, 0, grows_to=11, doc="As it stands on the current plan"),
    LayoutColumn(
        "other",
        "flips to",
        9,
        1,
        grows_to=18,
        doc="What enter makes of it; × refused, ≈ the gain that the model expects, not recorded",
    ),
)


def toggle_rows(state: State) -> dict[str, Cells]:
    """Return name -> cells; what can't be changed on this plan comes last."""
    view = state.shown_view
    forecasts = {toggle.name: toggle_forecast(state, toggle) for toggle in view.toggles} if view else {}

    def place(toggle: ToggleView) -> int:
        return 0 if flippable(toggle) else 1 if forecasts[toggle.name] else 2

    toggles = sorted(view.toggles, key=place) if view else ()
    return {toggle.name: _cells(toggle, state.view is None, forecasts[toggle.name]) for toggle in toggles}


def flippable(toggle: ToggleView) -> bool:
    """Return whether enter can change it: to its other value, or to a typed number."""
    return next_value(toggle) is not None or not (toggle.values or toggle.refused)


def _cells(toggle: ToggleView, stale: bool, forecast: FlipForecast | None) -> Cells:
    """`stale`: the worker has not resolved the current plan yet, and this is the plan before it."""
    free = flippable(toggle) and not stale
    value = next_value(toggle)
    refused = short_words(forecast) if forecast and not stale else "× refused"
    to = f"▸ {value}" if value else "▸ a number" if flippable(toggle) else refused
    return {
        "name": Text(toggle.name, Style(color=TEXT if free else FAINT)),
        "value": Text(toggle.value, Style(color=CURRENT if free else FAINT, bold=free)),
        "other": Text(to, Style(color=MUTED if free else FAINT)),
    }


def explain_toggle(state: State, name: str) -> str:
    """Explain the toggle, and which values are refused and why."""
    toggle = state.toggle(name)
    if toggle is None:
        return ""
    forecast = toggle_forecast(state, toggle)
    if forecast is not None and not flippable(toggle):
        return f"{toggle.name}: {toggle.doc.rstrip('.')}. {sentence(state, forecast)}"
    refused = "".join(f" {value} is refused: {why.rstrip('.')}." for value, why in toggle.refused)
    return f"{toggle.name}: {toggle.doc.rstrip('.')}.{refused}"


class ToggleTable(KeyedTable):
    """Enter or a click flips a toggle."""

    def __init__(self) -> None:
        super().__init__(COLUMNS, id="toggles")

    def show(self, state: State) -> None:
        self.show_rows(toggle_rows(state))
