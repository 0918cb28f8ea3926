"""Conditions that rules of lint look for in names and bodies, compiled: necessary ones, not sufficient."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from msmqwire.headers.acknowledgements import ORDER_QUEUE_NAME
from msmqwire.tables.compiled.decorators import jit
from msmqwire.tables.compiled.memory import u16

_ORDER_QUEUE: Final = np.frombuffer(
    f"\\PRIVATE$\\{ORDER_QUEUE_NAME.upper()}\0".encode("utf-16-le"), np.uint16
).copy()
_TCP: Final = np.frombuffer("TCP:".encode("utf-16-le"), np.uint16).copy()
_DOCTYPE: Final = np.frombuffer(b"<!DOCTYPE", np.uint8).copy()
_DOT, _ZERO, _NINE, _CASE = ord("."), ord("0"), ord("9"), 0x20
_A, _Z = ord("a"), ord("z")
_LESS, _GREATER, _QUESTION, _BANG, _DASH = ord("<"), ord(">"), ord("?"), ord("!"), ord("-")


@jit
def any_set(memory: Any, start: int, stop: int) -> bool:
    """Whether a byte is not 0."""
    for p in range(start, stop):
        if memory[p]:
            return True
    return False


@jit
def _matches(memory: Any, start: int, pattern: Any) -> bool:
    """Whether text equals a pattern in capitals, whatever its case."""
    for i in range(pattern.size):
        unit = u16(memory, start + 2 * i)
        if _A <= unit <= _Z:
            unit -= _CASE
        if unit != pattern[i]:
            return False
    return True


@jit
def is_order_queue_of_ipv4(memory: Any, start: int, stop: int) -> bool:
    r"""Whether a direct name is TCP:<IPv4 address>\PRIVATE$\order_queue$; other right ones may be, too."""
    p, tail = start + 2 * _TCP.size, stop - 2 * _ORDER_QUEUE.size
    if tail <= p or not _matches(memory, start, _TCP) or not _matches(memory, tail, _ORDER_QUEUE):
        return False
    for number in range(4):
        if number:
            if p >= tail or u16(memory, p) != _DOT:
                return False
            p += 2
        value, digits = 0, 0
        while p < tail and _ZERO <= u16(memory, p) <= _NINE:
            if digits and value == 0:
                return False
            value = 10 * value + u16(memory, p) - _ZERO
            digits += 1
            p += 2
            if value > 255:
                return False
        if digits == 0:
            return False
    return p == tail


@jit
def is_nrbf(memory: Any, start: int, stop: int) -> bool:
    """Whether bytes begin as serialized objects of .NET do: `bodies.NRBF`."""
    if stop - start < 17 or memory[start] or memory[start + 9] != 1:
        return False
    return not any_set(memory, start + 10, start + 17)


@jit
def _unit(memory: Any, p: int, stop: int, wide: int) -> int:
    """Return the character at an offset; -1 at the end, and for those beyond Latin-1."""
    if p + 1 + wide > stop:
        return -1
    if wide and memory[p + 1]:
        return -1
    byte: Any = np.int64(memory[p])
    return byte


@jit
def may_have_document_type(memory: Any, start: int, stop: int) -> bool:
    """Whether XML has a document type after its declaration, comments and instructions: `document_type`."""
    if stop - start < _DOCTYPE.size:
        return False
    if memory[start] == 0xFF and memory[start + 1] == 0xFE:
        return _has_document_type(memory, start + 2, stop, 1)
    if memory[start] == 0xEF and memory[start + 1] == 0xBB and memory[start + 2] == 0xBF:
        return _has_document_type(memory, start + 3, stop, 0)
    return _has_document_type(memory, start, stop, 1 if memory[start + 1] == 0 else 0)


@jit
def _has_document_type(memory: Any, start: int, stop: int, wide: int) -> bool:
    """The same for characters of one byte, or of two if ``wide`` is 1."""
    size, p = 1 + wide, start
    while p < stop:
        unit = _unit(memory, p, stop, wide)
        if unit == 0x20 or unit == 0x09 or unit == 0x0D or unit == 0x0A:
            p += size
            continue
        second = _unit(memory, p + size, stop, wide)
        third, fourth = _unit(memory, p + 2 * size, stop, wide), _unit(memory, p + 3 * size, stop, wide)
        if unit != _LESS:
            return False
        if second == _QUESTION:
            p += size
            while p < stop and not (
                _unit(memory, p, stop, wide) == _QUESTION and _unit(memory, p + size, stop, wide) == _GREATER
            ):
                p += size
            p += 2 * size
        elif second == _BANG and third == _DASH and fourth == _DASH:
            p += 2 * size
            while p < stop and not (
                _unit(memory, p, stop, wide) == _DASH
                and _unit(memory, p + size, stop, wide) == _DASH
                and _unit(memory, p + 2 * size, stop, wide) == _GREATER
            ):
                p += size
            p += 3 * size
        else:
            break
    for i in range(_DOCTYPE.size):
        if _unit(memory, p + i * size, stop, wide) != _DOCTYPE[i]:
            return False
    return True
