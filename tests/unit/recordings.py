"""A small recording of a real run, ways to spoil it, and all that is ever shown of one."""

from __future__ import annotations

import copy
import functools
import json
import random
from collections.abc import Iterator
from typing import Any

from gputop.cli.batch_sweep import batch_lines
from gputop.cli.tables.attribution import attribution_lines
from gputop.cli.tables.breakdown_lines import compared_lines
from gputop.cli.tables.ladder_lines import ladder_lines
from gputop.cli.tables.window_lines import ceiling_lines, comparison_lines, window_lines
from gputop.cli.terminal import Terminal
from gputop.ipc.protocol import LadderDone, Measured, Opened, Resolved, encode
from gputop.plan.types import PlanRequest
from gputop.results import export, recording
from gputop.results.ladder import Ladder
from gputop.results.recording import Recording
from gputop.results.records import Window
from gputop.session.replay import Replay
from gputop.tui import state_events, state_keys
from gputop.tui.options import Options
from gputop.tui.state import PlanPair, State, TimedWindow
from gputop.tui.views.diff import DiffView
from gputop.tui.views.inspector import InspectorView
from gputop.tui.views.ladder_chart import LadderView
from gputop.tui.views.pane import ViewPane
from gputop.tui.views.roofline import RooflineView
from gputop.tui.views.whatif import WhatIfView
from gputop.tui.widgets import device_line, dispatch_table, ladder_table, phase_table, toggle_table
from gputop.tui.widgets.detail import detail_text
from gputop.tui.widgets.headline import headline
from gputop.tui.widgets.ladder_strip import strip_text
from gputop.tui.widgets.verdict_line import verdict_line
from gputop.util.errors import UsageError

PLANS = ("naive", "coalesced", "graph")
Lines = list[dict[str, Any]]
TERMINAL = Terminal(width=90)
VIEWS: tuple[type[ViewPane], ...] = (RooflineView, LadderView, InspectorView, WhatIfView, DiffView)


@functools.cache
def small_text() -> str:
    """Three rungs of the shipped recording, with their windows, gates, ladder and batches, in some 200 kB."""
    lines: Lines = []
    with recording.shipped()["h200"].open() as file:
        for line in map(json.loads, file):
            match line["kind"]:
                case "plan" if line["view"]["rung"] in PLANS:
                    for site in line["view"]["sites"]:
                        site["refused"] = site.get("refused", [])[:2]
                        refused = {name for name, _ in site["refused"]}
                        site["candidates"] = [*{site["kernel"]: 0, **dict.fromkeys(sorted(refused))}]
                case "plan":
                    continue
                case "gate" if line["plan"] not in PLANS:
                    continue
                case "window" if {lane["plan"] for lane in line["window"]["lanes"]} - set(PLANS):
                    continue
                case "ladder" | "batches":
                    line["ladder"]["entries"] = line["ladder"]["entries"][:3]
            lines.append(line)
    return json.dumps(lines)


def small() -> Lines:
    """The lines of a recording, to be changed at will."""
    lines: Lines = json.loads(small_text())
    return lines


def as_bytes(lines: Lines) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


# Spoiling


def spoil(lines: Lines, chance: random.Random) -> None:
    """Change one thing somewhere: a value, a field, a list, or the order of lines."""
    if not lines:
        return
    places: dict[str, list[tuple[Any, Any]]] = {}
    _find("line", lines, places)
    # By field first, or most changes would hit the rows of a window.
    container, key = chance.choice(places[chance.choice(sorted(places))])
    inner = container[key]
    if isinstance(inner, list) and inner and chance.random() < 0.7:
        _spoil_list(inner, chance)
    elif isinstance(container, list) and chance.random() < 0.3:
        _spoil_list(container, chance)
    elif isinstance(container, dict) and chance.random() < 0.1:
        del container[key]
    else:
        container[key] = _other(inner, lines, chance)


def _find(field: str, value: Any, places: dict[str, list[tuple[Any, Any]]]) -> None:
    """Add (container, key) of all below a value, by the field that each stands in."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        name = str(key) if isinstance(value, dict) else field
        places.setdefault(name, []).append((value, key))
        if isinstance(inner, dict | list):
            _find(name, inner, places)


def _spoil_list(items: list[Any], chance: random.Random) -> None:
    at = chance.randrange(len(items))
    match chance.randrange(4):
        case 0:
            del items[at]
        case 1:
            items.insert(at, copy.deepcopy(items[at]))
        case 2:
            other = chance.randrange(len(items))
            items[at], items[other] = items[other], items[at]
        case _:
            items.clear()


def _other(value: Any, lines: Lines, chance: random.Random) -> Any:
    """Something else in its place, most often of the same type."""
    pool: list[Any]
    if isinstance(value, bool) or value is None or chance.random() < 0.1:
        pool = [None, True, False, 0, 1, "", "x", [], {}, [[]], -1.5]
    elif isinstance(value, int | float):
        pool = [0, 1, -1, -value, value * 2, value / 3, value + 1, 1e-300, 1e300, -1e300, 10**18, 10**30, 0.1]
    elif isinstance(value, str):
        pool = ["", "x", "a,b=1", "=", "\x1b[2J", "\u202e", "x" * 500, *_texts(lines, chance)]
    else:
        pool = [None, [], {}, "x"]
    return chance.choice(pool)


def _texts(lines: Lines, chance: random.Random) -> list[str]:
    """A few of the recording's own texts."""
    found = list(_all_texts(chance.choice(lines)))
    return chance.sample(found, min(5, len(found)))


def _all_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _all_texts(inner)


# Showing


class NothingToShow(Exception):
    """There is no window of a plan in it."""


def show_everything(kept: Recording) -> None:
    """Whatever commands and screen make of a recording. Raise NothingToShow if it holds no window."""
    try:
        replay = Replay(kept)
    except UsageError as error:
        raise NothingToShow from error
    ceiling_lines(replay.calibrate(), TERMINAL)
    export.ceilings_csv(replay.calibrate())
    state = state_events.recording_ready(_opened(replay), kept.windows, replay.calibrate(), replay.batches)
    if not replay.why_no_ladder:
        state = state_events.ladder_ready(state, _show_ladder(replay))
    if replay.batches is not None:
        batch_lines(replay.batches, TERMINAL)
        export.ladder_csv(replay.batches)
    shown = [rung.id for rung in replay.rung_views() if not rung.refused]
    for rung in shown:
        request = PlanRequest(rung)
        _show_window(replay.first_window(PlanRequest(rung)))
        for other in (None, *shown):
            pinned = PlanRequest(other) if other is not None and other != rung else None
            window = replay.measure(request, pinned)
            _show_window(window)
            state = _drawn(state, replay, PlanPair(request, pinned), window)


def _show_ladder(replay: Replay) -> Ladder:
    ladder = replay.measure_ladder(())
    for part in (ladder, _rest(replay, ladder)):
        if part is None or not part.entries:
            continue
        encode(LadderDone(id=1, ladder=part))
        ladder_lines(part, TERMINAL)
        export.ladder_csv(part)
        export.ladder_json(part)
        if any(entry.kind == "ladder" for entry in part.entries):
            attribution_lines(part, TERMINAL)
    return ladder


def _rest(replay: Replay, ladder: Ladder) -> Ladder | None:
    """The ladder without its first rung."""
    try:
        return replay.measure_ladder([PlanRequest(entry.rung) for entry in ladder.entries[1:]])
    except UsageError:
        return None


def _show_window(window: Window) -> None:
    encode(Measured(id=1, window=window))
    window_lines(window, TERMINAL)
    comparison_lines(window, window.comparison, TERMINAL)
    rows = [row for lane in window.lanes for row in lane.rows]
    assert export.read_phase_csv(export.phase_csv(rows)) is not None
    export.phase_json(rows)
    export.windows_csv([window])
    if window.comparison is not None:
        export.compare_csv(window.comparison)
        compared_lines(window, window.comparison, TERMINAL)


def _opened(replay: Replay) -> State:
    opened = Opened(
        id=1,
        device=replay.facts,
        workload=replay.workload,
        rungs=replay.rung_views(),
        default_rung=replay.default_rung,
    )
    encode(opened)
    return state_events.device_ready(State(), opened, Options("replay", replay.workload))


def _drawn(state: State, replay: Replay, pair: PlanPair, window: Window) -> State:
    """The screen with this window on it."""
    state = state_keys.choose_rung(state, pair.current.rung)
    for request in (pair.current, pair.pinned):
        if request is not None:
            view = replay.view(request)
            encode(Resolved(id=1, view=view))
            state = state_events.plan_ready(state, request, view)
    state = state_events.window_ready(state, TimedWindow(pair, window, 0.0))
    device_line.who_line(state, 100, 1.0)
    device_line.health_text(state, 100)
    headline(state, 100)
    strip_text(state, 100)
    ladder_table.ladder_rows(state, {column.key: column.width for column in ladder_table.COLUMNS})
    toggle_table.toggle_rows(state)
    dispatch_table.dispatch_rows(state, {})
    widths = {column.key: column.width for column in phase_table.columns_for(state)}
    phase_table.phase_rows(state, widths)
    phase_table.labels(state, widths)
    phase_table.totals_line(state, 100)
    phase_table.failure(state)
    detail_text(state, 100, 12)
    verdict_line(state)
    for pane in (make() for make in VIEWS):
        pane.draw(state, 100, 30)
        pane.explain(state)
    for rung in state.rungs:
        ladder_table.explain_rung(state, rung.id)
    for row in state.lane.rows if state.lane else ():
        phase_table.explain_phase(state, row.phase)
    return state
