"""Compiles functions over bytes, and what such functions are made of.

Machine code is cached beside the source, or in the user's cache if that can't be written, so that only the
first use on a machine waits for the compiler.
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
    "error_model": "numpy",  # no exceptions, so calls need no error path
    "_nrt": False,  # no allocation, so arrays need no reference counts
}


def jit(function: F, inline: bool = False, nogil: bool = True) -> F:
    """Compile a function when it is first called; in each process anew if no cache folder can be written."""
    compiled = numba.njit(**_OPTIONS, forceinline=inline, nogil=nogil)(function)
    with suppress(RuntimeError):  # no cache folder
        compiled._cache = StampedCache(function)  # type: ignore[no-untyped-call]
    return cast(F, compiled)


def inlined(function: F) -> F:
    """Compile a function into its callers.

    It is for what is called for each frame, packet or cell: a call would cost more than many a function does,
    since each array is passed as seven or ten integers on the stack.
    """
    return jit(function, inline=True)


def brief(function: F) -> F:
    """Compile a function that keeps the lock of the interpreter.

    It is for what takes some microseconds: to wait for the lock afterwards, while another thread has it,
    would take longer.
    """
    return jit(function, nogil=False)


@intrinsic
def _move(context: Any, target: Any, offset: Any, source: Any, start: Any, count: Any) -> Any:
    def generate(target_context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointers = []
        for number in (0, 2):
            array = target_context.make_array(signature.args[number])(target_context, builder, values[number])
            pointers.append(builder.gep(array.data, [values[number + 1]]))
        cgutils.raw_memmove(  # type: ignore[no-untyped-call]
            builder, pointers[0], pointers[1], values[4], 1
        )
        return target_context.get_dummy_value()

    return types.none(target, types.intp, source, types.intp, types.intp), generate


@intrinsic
def _prefetch(context: Any, source: Any, offset: Any) -> Any:
    def generate(target_context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = target_context.make_array(signature.args[0])(target_context, builder, values[0])
        pointer = builder.gep(array.data, [values[1]])
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, word, word, word])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        for_reading, in_all_caches, data = (ir.Constant(word, n) for n in (0, 3, 1))
        builder.call(fetch, [pointer, for_reading, in_all_caches, data])
        return target_context.get_dummy_value()

    return types.none(source, types.intp), generate


LINE: Final = 64
"""Bytes of a cache line, which `prefetch` fetches."""


@inlined
def prefetch(source: Any, offset: int) -> None:
    """Fetch a cache line ahead of its use; the offset may be beyond the array."""
    _prefetch(source, offset)  # type: ignore[call-arg]


# Offsets are unsigned, so that numba leaves out the code for negative ones, and bytes become one load.


@inlined
def u8(memory: Any, offset: int) -> Any:
    """Return the byte at an offset."""
    return int(memory[np.uint64(offset)])


@inlined
def u16(memory: Any, offset: int) -> Any:
    """Return the little-endian integer of 16 bits at an offset."""
    i = np.uint64(offset)
    return np.int64(memory[i]) | np.int64(memory[i + np.uint64(1)]) << 8


@inlined
def u32(memory: Any, offset: int) -> Any:
    """Return the little-endian integer of 32 bits at an offset."""
    i = np.uint64(offset)
    return (
        np.int64(memory[i])
        | np.int64(memory[i + np.uint64(1)]) << 8
        | np.int64(memory[i + np.uint64(2)]) << 16
        | np.int64(memory[i + np.uint64(3)]) << 24
    )


@inlined
def u64(memory: Any, offset: int) -> Any:
    """Return the little-endian unsigned integer of 64 bits at an offset."""
    return np.uint64(u32(memory, offset)) | np.uint64(u32(memory, offset + 4)) << np.uint64(32)


@inlined
def put32(data: Any, offset: int, value: Any) -> None:
    """Write the low 32 bits of an unsigned integer, little-endian."""
    i = np.uint64(offset)
    data[i] = value & np.uint64(0xFF)
    data[i + np.uint64(1)] = value >> np.uint64(8) & np.uint64(0xFF)
    data[i + np.uint64(2)] = value >> np.uint64(16) & np.uint64(0xFF)
    data[i + np.uint64(3)] = value >> np.uint64(24) & np.uint64(0xFF)


@inlined
def put64(data: Any, offset: int, value: Any) -> None:
    """Write an unsigned integer of 64 bits, little-endian."""
    put32(data, offset, value)
    put32(data, offset + 4, value >> np.uint64(32))


@inlined
def b16(memory: Any, offset: int) -> Any:
    """Return the big-endian integer of 16 bits at an offset."""
    i = np.uint64(offset)
    return np.int64(memory[i]) << 8 | np.int64(memory[i + np.uint64(1)])


@inlined
def b32(memory: Any, offset: int) -> Any:
    """Return the big-endian integer of 32 bits at an offset."""
    return b16(memory, offset) << 16 | b16(memory, offset + 2)


@inlined
def b64(memory: Any, offset: int) -> Any:
    """Return the big-endian signed integer of 64 bits at an offset."""
    return np.int64(b32(memory, offset)) << 32 | np.int64(b32(memory, offset + 4))


@inlined
def copy(source: Any, start: int, count: int, target: Any, offset: int) -> None:
    """Copy bytes from one array to another; the caller has checked the bounds."""
    _move(target, offset, source, start, count)  # type: ignore[call-arg]


@inlined
def ends_on_null(memory: Any, start: int, stop: int) -> bool:
    """Whether the bytes are whole units of UTF-16, the last of them a null."""
    size = stop - start
    return size >= 2 and size & 1 == 0 and u16(memory, stop - 2) == 0


@jit
def is_text(memory: Any, start: int, stop: int) -> bool:
    """Whether the bytes are well-formed UTF-16 that ends on its only null."""
    if not ends_on_null(memory, start, stop):
        return False
    p = start
    while p < stop - 2:
        unit = u16(memory, p)
        p += 2
        if unit == 0 or 0xDC00 <= unit < 0xE000:
            return False
        if 0xD800 <= unit < 0xDC00:
            if p >= stop - 2 or not 0xDC00 <= u16(memory, p) < 0xE000:
                return False
            p += 2
    return True


@jit
def find_null(memory: Any, start: int, stop: int) -> int:
    """Return the offset of the first null of UTF-16; -1 for none."""
    while start + 2 <= stop:
        if u16(memory, start) == 0:
            return start
        start += 2
    return -1


@jit
def chosen_length(memory: Any, start: int, first: int, second: int, stop: int) -> int:
    """Choose among two possible lengths of a text: `msmqwire.schema.record.chosen_length`."""
    first_ends = start + first <= stop and ends_on_null(memory, start, start + first)
    second_ends = start + second <= stop and ends_on_null(memory, start, start + second)
    if first_ends and is_text(memory, start, start + first):
        return first
    if second_ends and (not first_ends or is_text(memory, start, start + second)):
        return second
    return first
