"""C++ names of kernels as a person reads them: `cutlass::Kernel2<...>` for `_ZN7cutlass7Kernel2I...`.

Uses `__cxa_demangle` of the Itanium C++ ABI, from the C++ runtime that CUDA libraries are linked with. Call
it only with names from the driver: a crafted name can make it run without end.
"""

from __future__ import annotations

import ctypes
import functools
import re

RUNTIMES = ("libstdc++.so.6", "libc++abi.so.1", "libc++abi.dylib")
SEPARATOR = "; "
"""Between the names of several kernels."""
LONGEST = 4096
_MANGLED = re.compile(r"_Z[\w.$]+")


def demangled(names: str | None) -> str | None:
    """Return the kernels of a row, `a; b`, with every mangled name read; others stay as they are.

    None if there are none, or if this machine has no demangler and one is needed.
    """
    if names is None:
        return None
    read = [demangle(name) for name in names.split(SEPARATOR)]
    return None if None in read else SEPARATOR.join(name for name in read if name is not None)


@functools.lru_cache(maxsize=1024)
def demangle(name: str) -> str | None:
    """Return one name as declared in C++; as it is if it is not mangled; None without a demangler."""
    if not _MANGLED.fullmatch(name) or len(name) > LONGEST:
        return name
    runtime = _runtime()
    if runtime is None:
        return None
    status = ctypes.c_int()
    found = runtime.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not found:
        return name
    try:
        return ctypes.string_at(found).decode(errors="replace")
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(found))


@functools.cache
def _runtime() -> ctypes.CDLL | None:
    for name in RUNTIMES:
        try:
            runtime = ctypes.CDLL(name)
            runtime.__cxa_demangle.restype = ctypes.c_void_p
        except (OSError, AttributeError):
            continue
        return runtime
    return None
