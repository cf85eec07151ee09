"""The wire format: what a front end and a worker of one protocol number say to each other.

A golden file lists every field of every message. A change of it needs another `PROTOCOL_VERSION`, or an older
worker would be taken for one that understands.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gputop.ipc.protocol import PROTOCOL_VERSION, Event, Request
from tests.golden import assert_golden

GOLDEN = Path(__file__).parent / "golden" / "wire.txt"


def spelled(schema: dict[str, Any]) -> str:
    """A field's type in few characters: `number | null`, `[Row]`, `Gate`."""
    if "$ref" in schema:
        return str(schema["$ref"])
    if "anyOf" in schema:
        return " | ".join(spelled(choice) for choice in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(map(repr, schema["enum"]))
    match schema.get("type"):
        case "array":
            items = schema.get("prefixItems") or [schema.get("items") or {}]
            return f"[{', '.join(spelled(item) for item in items)}]"
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            return f"{{{spelled(schema['additionalProperties'])}}}"
        case kind:
            return str(kind or "any")


def wire_lines() -> Iterator[str]:
    """One line for each field of each record that crosses the pipe, in order of their names."""
    yield f"protocol {PROTOCOL_VERSION}"
    _, records = msgspec.json.schema_components((Request, Event), ref_template="{name}")
    for name, schema in sorted(records.items()):
        if "properties" not in schema:
            yield f"{name}: {spelled(schema)}"
        for field, kind in schema.get("properties", {}).items():
            needed = "" if field in schema.get("required", ()) else "?"
            yield f"{name}.{field}{needed}: {spelled(kind)}"


def test_another_format_has_another_number(pytestconfig: pytest.Config) -> None:
    assert_golden("".join(f"{line}\n" for line in wire_lines()), GOLDEN, pytestconfig)
