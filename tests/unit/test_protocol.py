"""Every message survives the wire, and whatever else comes over it is refused in a sentence."""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gputop.ipc.protocol import Event, Message, Request, decode_event, decode_request, encode
from gputop.util.errors import UsageError

FINITE = st.floats(allow_nan=False, allow_infinity=False)
PRIMITIVES: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(-(2**53), 2**53),
    float: FINITE,
    bool: st.booleans(),
    str: st.text(max_size=20),
    type(None): st.none(),
}


@functools.cache
def values(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of an annotation that the protocol's records use."""
    if hint in PRIMITIVES:
        return PRIMITIVES[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is typing.Literal:
        return st.sampled_from(arguments)
    if origin in (typing.Union, types.UnionType):
        return st.one_of([values(argument) for argument in arguments])
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return st.lists(values(arguments[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*(values(argument) for argument in arguments))
    names = hint.__struct_fields__ if issubclass(hint, msgspec.Struct) else _field_names(hint)
    hints = get_type_hints(hint)
    return st.builds(hint, **{name: values(hints[name]) for name in names})


def _field_names(record: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(record)]


def message_types(union: Any) -> list[Any]:
    return sorted(get_args(union), key=lambda kind: str(kind.__name__))


@pytest.mark.parametrize("kind", message_types(Request), ids=lambda kind: kind.__name__)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_request_survives_the_wire(kind: type[Message], data: st.DataObject) -> None:
    message = data.draw(values(kind))
    line = encode(message)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert decode_request(line) == message


@pytest.mark.parametrize("kind", message_types(Event), ids=lambda kind: kind.__name__)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_an_event_survives_the_wire(kind: type[Message], data: st.DataObject) -> None:
    message = data.draw(values(kind))
    line = encode(message)
    assert line.count(b"\n") == 1
    assert decode_event(line) == message


JSON = st.recursive(
    st.none() | st.booleans() | FINITE | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)


@settings(deadline=None)
@given(line=st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
@example(line=b"[" * 100_000)
@example(line=b'{"type":"check","request":' * 100_000)
def test_a_line_that_is_no_message_is_bad_input(line: bytes) -> None:
    for decode in (decode_request, decode_event):
        with pytest.raises(UsageError, match="Broken protocol line"):
            decode(line)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b'{"type":"measure","id":1}', "current"),
        (b'{"type":"measure","id":"1","current":{"rung":"a"}}', "int"),
        (b'{"type":"nonsense"}', "nonsense"),
        (b'{"type":"hello","protocol":1,"version":"1","pid":1,"host":"h"}', "hello"),
    ],
    ids=["field missing", "wrong type", "unknown kind", "an event"],
)
def test_a_broken_request_is_refused_by_what_is_broken(line: bytes, fault: str) -> None:
    with pytest.raises(UsageError, match=fault):
        decode_request(line)


def test_what_is_unknown_stays_unknown_and_is_not_zero() -> None:
    line = (
        b'{"type":"checked","id":3,"gate":{"status":"FAIL","pass_error":null,"tolerance":1e-05,"where":"w2"}}'
    )
    event: Any = decode_event(line)
    assert event.gate.pass_error is None
    assert not event.gate.ok
