"""What a CUBIN says of its kernels, read from the ELF itself: no tool, no driver, no device.

Attribute numbers are those of the `.nv.info` sections as ptxas writes them for sm_70 and later.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gputop.util.errors import UsageError

RESERVED_SMEM_BYTES = 1024
"""Shared memory that the system keeps in each block from sm_80 on; from sm_90 on `.nv.shared` counts it."""

_ELF_MAGIC = b"\x7fELF"
_SYMBOL_TABLE = 2
_SYMBOL_BYTES = 24
_EI_ABI_VERSION = 8
_ABI_WITH_SM_IN_SECOND_BYTE = 8
_FORMAT_SIZED = 4

_MAX_THREADS = 0x05
_FRAME_SIZE = 0x11
_PARAMETER = 0x17
_REGISTERS = 0x2F
_SIZE_SHIFT = 18
"""Of a parameter's size in the word that describes it."""


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """One kernel entry of a CUBIN. None: the file does not say."""

    name: str
    registers: int | None = None
    """A thread's."""
    stack_bytes: int | None = None
    """A thread's frame in local memory: spills, and arrays that could not live in registers."""
    smem_bytes: int = 0
    """Static shared memory as the author declared it, the system's reserve left out."""
    parameter_bytes: int | None = None
    """From its first parameter to the end of its last, without what alignment puts before the first."""
    code_bytes: int = 0
    max_threads: int | None = None
    """From `__launch_bounds__`."""
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    barriers: int | None = None
    """Named barriers of one block."""

    @property
    def spill_bytes(self) -> int | None:
        if self.spill_store_bytes is None or self.spill_load_bytes is None:
            return None
        return self.spill_store_bytes + self.spill_load_bytes


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    offset: int
    size: int
    link: int


def read_cubin(code: bytes) -> Mapping[str, FunctionFacts]:
    """Facts of every kernel by entry name. UsageError when the bytes are not a whole CUBIN."""
    if not code.startswith(_ELF_MAGIC):
        raise UsageError("Not a CUBIN: the file does not start with an ELF header.")
    try:
        return _read(code)
    except (struct.error, IndexError, ValueError, KeyError) as error:
        raise UsageError(f"Broken CUBIN: {error}.") from error


def entry_code(code: bytes, name: str) -> bytes:
    """Return the machine code of one kernel entry. Raise UsageError if the CUBIN has no such entry."""
    for section in _sections(code):
        if section.name == f".text.{name}":
            return code[section.offset : section.offset + section.size]
    raise UsageError(f"This CUBIN has no entry {name!r}.")


def ptxas_facts(functions: Mapping[str, FunctionFacts], log: str) -> Mapping[str, FunctionFacts]:
    """`functions` with the spills and barriers that `ptxas -v` reported in `log`."""
    found = dict(functions)
    pattern = (
        r"Function properties for (\w+)\s+ptxas\s+\.?\s*"
        r"\d+ bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\s+"
        r"ptxas info\s*: Used \d+ registers(?:, used (\d+) barriers)?"
    )
    for name, stores, loads, barriers in re.findall(pattern, log):
        if name in found:
            found[name] = replace(
                found[name],
                spill_store_bytes=int(stores),
                spill_load_bytes=int(loads),
                barriers=int(barriers or 0),
            )
    return found


def _read(code: bytes) -> dict[str, FunctionFacts]:
    sections = _sections(code)
    symbols = _symbol_names(code, sections)
    reserve = RESERVED_SMEM_BYTES if _sm(code) >= 90 else 0
    facts = {
        section.name[6:]: FunctionFacts(section.name[6:], code_bytes=section.size)
        for section in sections
        if section.name.startswith(".text.")
    }
    for section in sections:
        shared = section.name.removeprefix(".nv.shared.")
        if shared in facts and section.name.startswith(".nv.shared."):
            facts[shared] = replace(facts[shared], smem_bytes=max(0, section.size - reserve))
        if section.name == ".nv.info":
            _read_shared_info(code, section, symbols, facts)
        elif section.name.removeprefix(".nv.info.") in facts:
            _read_own_info(code, section, facts)
    return facts


def _read_shared_info(
    code: bytes, section: _Section, symbols: Mapping[int, str], facts: dict[str, FunctionFacts]
) -> None:
    for attribute, payload in _attributes(code, section):
        if len(payload) < 8 or attribute not in (_REGISTERS, _FRAME_SIZE):
            continue
        symbol, value = struct.unpack_from("<II", payload)
        name = symbols.get(symbol, "")
        if name not in facts:
            continue
        if attribute == _REGISTERS:
            facts[name] = replace(facts[name], registers=value)
        else:
            facts[name] = replace(facts[name], stack_bytes=value)


def _read_own_info(code: bytes, section: _Section, facts: dict[str, FunctionFacts]) -> None:
    name = section.name.removeprefix(".nv.info.")
    begins: list[int] = []
    ends: list[int] = []
    for attribute, payload in _attributes(code, section):
        if attribute == _PARAMETER:
            offset, description = struct.unpack_from("<HI", payload, 6)
            begins.append(offset)
            ends.append(offset + (description >> _SIZE_SHIFT))
        elif attribute == _MAX_THREADS and len(payload) >= 12:
            x, y, z = struct.unpack_from("<III", payload)
            facts[name] = replace(facts[name], max_threads=x * y * z)
    facts[name] = replace(facts[name], parameter_bytes=max(ends, default=0) - min(begins, default=0))


def _attributes(code: bytes, section: _Section) -> Iterator[tuple[int, bytes]]:
    at, end = section.offset, section.offset + section.size
    while at < end:
        form, attribute = code[at], code[at + 1]
        size = struct.unpack_from("<H", code, at + 2)[0] if form == _FORMAT_SIZED else 0
        yield attribute, (code[at + 4 : at + 4 + size] if form == _FORMAT_SIZED else code[at + 2 : at + 4])
        at += 4 + size


def _sections(code: bytes) -> list[_Section]:
    (table,) = struct.unpack_from("<Q", code, 40)
    entry_bytes, count, names_at = struct.unpack_from("<HHH", code, 58)
    raw = [struct.unpack_from("<IIQQQQIIQQ", code, table + i * entry_bytes) for i in range(count)]
    names = raw[names_at][4]
    return [_Section(_text(code, names + r[0]), r[1], r[4], r[5], r[6]) for r in raw]


def _symbol_names(code: bytes, sections: list[_Section]) -> dict[int, str]:
    table = next(section for section in sections if section.kind == _SYMBOL_TABLE)
    strings = sections[table.link].offset
    names = {}
    for index in range(table.size // _SYMBOL_BYTES):
        (offset,) = struct.unpack_from("<I", code, table.offset + index * _SYMBOL_BYTES)
        names[index] = _text(code, strings + offset)
    return names


def _sm(code: bytes) -> int:
    """Compute capability times ten, from the ELF flags; newer ABIs keep it in the second byte."""
    flags: int = struct.unpack_from("<I", code, 48)[0]
    return (flags >> 8) & 0xFF if code[_EI_ABI_VERSION] >= _ABI_WITH_SM_IN_SECOND_BYTE else flags & 0xFF


def _text(code: bytes, at: int) -> str:
    return code[at : code.index(b"\0", at)].decode()
