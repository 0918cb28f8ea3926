"""Bodies compressed with gzip: the bytes inside are decoded by their content, once."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Final

from msmqwire.bodies import plain
from msmqwire.bodies.body import Content, Problem
from msmqwire.bodies.limits import Budget, LimitExceeded
from msmqwire.errors import MalformedBody
from msmqwire.names.printable import counted

_FORMAT: Final = "gzip"
_MAGIC: Final = b"\x1f\x8b\x08"
_WINDOW: Final = 16 + zlib.MAX_WBITS
_SHARE: Final = 4
"""The part of the free memory, one in this number, that is for the bytes inside."""
_PART_MIN: Final = 1 << 10
_PART_MAX: Final = 1 << 16


def recognises(body: bytes) -> bool:
    """Return whether bytes begin as a member of gzip does."""
    return body.startswith(_MAGIC)


def read(body: bytes, budget: Budget, decode: Callable[[bytes, Budget], Content]) -> Content:
    """Decompress a body up to a limit, and decode it by its content.

    Args:
        body: members of gzip.
        budget: the rest of the limits.
        decode: the decoder of the bytes inside, by their content.

    Raises MalformedBody if nothing can be decompressed.
    """
    data, problems = _decompressed(body, min(budget.memory // _SHARE, budget.limits.text))
    if recognises(data):
        more = Problem("gzip within gzip is not decompressed again", _FORMAT)
        return Content(_FORMAT, plain.raw(data), "", (*problems, more))
    try:
        budget.inside = True
        budget.spend(len(data))
        content = decode(data, budget)
    except LimitExceeded as exc:
        return Content(_FORMAT, None, "", (*problems, Problem(exc.why, _FORMAT)))
    # Offsets inside are not offsets in the body.
    inside = (Problem(fault.error, f"{_FORMAT}.{fault.path}".rstrip(".")) for fault in content.problems)
    return Content(_FORMAT, content.value, content.line, (*problems, *inside))


def _decompressed(body: bytes, most: int) -> tuple[bytes, list[Problem]]:
    """Return the bytes inside of the members, and the fault; a member is fed in parts that grow."""
    out = bytearray()
    problems: list[Problem] = []
    at = start = 0
    while body.startswith(_MAGIC, start) and not problems:
        member, part = zlib.decompressobj(_WINDOW), _PART_MIN
        at = start
        before = member
        try:
            while at < len(body) and not member.eof and len(out) <= most:
                before = member.copy()
                out += member.decompress(body[at : at + part], most - len(out) + 1)
                at = min(at + part, len(body))
                part = min(part * 2, _PART_MAX)
        except zlib.error as exc:
            out += _before_fault(before, body[at : at + part], most - len(out))
            why = str(exc).partition(": ")[2] or str(exc)
            problems.append(Problem(f"not well-formed gzip: {why}", _FORMAT, at))
        else:
            if len(out) > most:
                del out[most:]
                problems.append(Problem(f"decompresses to more than {counted(most, 'byte')}", _FORMAT, at))
            elif not member.eof:
                problems.append(Problem("the gzip breaks off", _FORMAT, len(body)))
            start = at - len(member.unused_data)
    if problems and not out:
        raise MalformedBody(problems[0].error, path=_FORMAT, offset=problems[0].offset)
    if not problems and body[start:].strip(b"\0"):
        problems.append(Problem("there is more after the gzip", _FORMAT, start))
    return bytes(out), problems


def _before_fault(member: Any, part: bytes, most: int) -> bytes:
    """Return the part before a fault that can still be decompressed, byte by byte."""
    out = bytearray()
    try:
        for at in range(len(part)):
            out += member.decompress(part[at : at + 1], most - len(out) + 1)
            if len(out) >= most:
                break
    except zlib.error:
        pass  # where the fault is
    return bytes(out[:most])
