"""Compiled functions over bytes.

What is compiled is kept beside the source, or in the user's cache where that can't be written, so that
only the first use on a machine waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped,unused-ignore]
from numba.core import cgutils, types
from numba.extending import intrinsic

from msmqwire.columnar.compiled.compile_cache import StampedCache

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: Final[dict[str, Any]] = {
    "nogil": True,
    "error_model": "numpy",  # nothing is raised, so that calls need no way out
    "_nrt": False,  # nothing is allocated, so that no array needs its references counted
}


def jit(function: F, inline: bool = False) -> F:
    """The function compiled when it is first called; without a place to keep it, in each process anew."""
    compiled = numba.njit(**_OPTIONS, forceinline=inline)(function)
    with suppress(RuntimeError):  # no place to keep it
        compiled._cache = StampedCache(function)  # type: ignore[no-untyped-call]
    return cast(F, compiled)


def inlined(function: F) -> F:
    """The same for what is called for each frame, packet or cell: a call would cost more than many a function
    does, since each array is passed as seven or ten integers on the stack."""
    return jit(function, inline=True)


@intrinsic
def _move(context: Any, target: Any, at: Any, source: Any, start: Any, count: Any) -> Any:
    def generate(target_context: Any, builder: Any, signature: Any, values: Any) -> Any:
        places = []
        for number in (0, 2):
            array = target_context.make_array(signature.args[number])(target_context, builder, values[number])
            places.append(builder.gep(array.data, [values[number + 1]]))
        cgutils.raw_memmove(  # type: ignore[no-untyped-call]
            builder, places[0], places[1], values[4], 1
        )
        return target_context.get_dummy_value()

    return types.none(target, types.intp, source, types.intp, types.intp), generate


@intrinsic
def _prefetch(context: Any, source: Any, at: Any) -> Any:
    def generate(target_context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = target_context.make_array(signature.args[0])(target_context, builder, values[0])
        place = builder.gep(array.data, [values[1]])
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, word, word, word])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        read, keep, of_data = (ir.Constant(word, n) for n in (0, 3, 1))
        builder.call(fetch, [place, read, keep, of_data])
        return target_context.get_dummy_value()

    return types.none(source, types.intp), generate


LINE: Final = 64
"""Bytes that `prefetch` has fetched."""


@inlined
def prefetch(source: Any, at: int) -> None:
    """Has the caches fetch what stands at a place; none of the array's does no harm."""
    _prefetch(source, at)  # type: ignore[call-arg]


# Unsigned places: numba then leaves out what counts negative ones from the end, and bytes become one load.


@inlined
def u8(buf: Any, at: int) -> Any:
    """The byte at a place."""
    return int(buf[np.uint64(at)])


@inlined
def u16(buf: Any, at: int) -> Any:
    """The little-endian integer of 16 bits at a place."""
    i = np.uint64(at)
    return np.int64(buf[i]) | np.int64(buf[i + np.uint64(1)]) << 8


@inlined
def u32(buf: Any, at: int) -> Any:
    """The little-endian integer of 32 bits at a place."""
    i = np.uint64(at)
    return (
        np.int64(buf[i])
        | np.int64(buf[i + np.uint64(1)]) << 8
        | np.int64(buf[i + np.uint64(2)]) << 16
        | np.int64(buf[i + np.uint64(3)]) << 24
    )


@inlined
def u64(buf: Any, at: int) -> Any:
    """The little-endian 64 bits at a place."""
    return np.uint64(u32(buf, at)) | np.uint64(u32(buf, at + 4)) << np.uint64(32)


@inlined
def put32(data: Any, at: int, value: Any) -> None:
    """Writes the low 32 bits of an unsigned integer, little-endian."""
    i = np.uint64(at)
    data[i] = value & np.uint64(0xFF)
    data[i + np.uint64(1)] = value >> np.uint64(8) & np.uint64(0xFF)
    data[i + np.uint64(2)] = value >> np.uint64(16) & np.uint64(0xFF)
    data[i + np.uint64(3)] = value >> np.uint64(24) & np.uint64(0xFF)


@inlined
def put64(data: Any, at: int, value: Any) -> None:
    """Writes an unsigned integer of 64 bits, little-endian."""
    put32(data, at, value)
    put32(data, at + 4, value >> np.uint64(32))


@inlined
def b16(buf: Any, at: int) -> Any:
    """The big-endian integer of 16 bits at a place."""
    i = np.uint64(at)
    return np.int64(buf[i]) << 8 | np.int64(buf[i + np.uint64(1)])


@inlined
def b32(buf: Any, at: int) -> Any:
    """The big-endian integer of 32 bits at a place."""
    return b16(buf, at) << 16 | b16(buf, at + 2)


@inlined
def b64(buf: Any, at: int) -> Any:
    """The big-endian 64 bits at a place, as a signed integer."""
    return np.int64(b32(buf, at)) << 32 | np.int64(b32(buf, at + 4))


@inlined
def copy(source: Any, start: int, count: int, target: Any, at: int) -> None:
    """Copies bytes from one array to another; both have room."""
    _move(target, at, source, start, count)  # type: ignore[call-arg]


@inlined
def ends_on_null(buf: Any, start: int, stop: int) -> bool:
    """Whether the bytes are whole characters of UTF-16 of which the last is a null."""
    size = stop - start
    return size >= 2 and size & 1 == 0 and u16(buf, stop - 2) == 0


@jit
def is_text(buf: Any, start: int, stop: int) -> bool:
    """Whether the bytes are well-formed UTF-16 that ends on its only null."""
    if not ends_on_null(buf, start, stop):
        return False
    at = start
    while at < stop - 2:
        unit = u16(buf, at)
        at += 2
        if unit == 0 or 0xDC00 <= unit < 0xE000:
            return False
        if 0xD800 <= unit < 0xDC00:
            if at >= stop - 2 or not 0xDC00 <= u16(buf, at) < 0xE000:
                return False
            at += 2
    return True
