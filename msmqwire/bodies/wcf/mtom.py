"""MTOM: an envelope as text whose binary parts stand after it, in a multipart message."""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from msmqwire.bodies.limits import Budget
from msmqwire.bodies.wcf.envelopes import read_text
from msmqwire.bodies.wcf.fault import Fault
from msmqwire.bodies.wcf.problems import Problems

_HEADERS_MAX: Final = 0x2000
"""Bytes of the headers of a part."""
_BOUNDARY_MAX: Final = 256

_XOP: Final = "http://www.w3.org/2004/08/xop/include"
_HEADER: Final = re.compile(r"^([!-9;-~]{1,64}):[ \t]*(.*(?:\n[ \t].*)*)$", re.MULTILINE)
_BOUNDARY: Final = re.compile(r"""boundary\s*+=\s*+(?:"([^"]{1,256})"|([^\s;"]{1,256}))""", re.IGNORECASE)
_START: Final = re.compile(r"""start\s*+=\s*+(?:"([^"]{1,512})"|([^\s;"]{1,512}))""", re.IGNORECASE)
_CHARSET: Final = re.compile(r"""charset\s*+=\s*+["']?([\w.:-]{1,40})""", re.IGNORECASE)
_INCLUDE: Final = re.compile(r"<((?:[\w.-]++:)?Include)(\s[^<>]*+)(?:(?<=/)>|>\s*+</\1\s*+>)")
_HREF: Final = re.compile(r"""\bhref\s*+=\s*+["']cid:([^"'<>]{1,512})["']""")


@dataclass(frozen=True, slots=True)
class _Part:
    headers: Mapping[str, str]
    start: int
    end: int


def read_mtom(data: bytes, budget: Budget, problems: Problems) -> str | None:
    """Return the envelope with its binary parts where they belong, as base64. Raises Fault, LimitExceeded."""
    boundary, start_id, at = _outer(data)
    parts = _parts(data, boundary, at, budget, problems)
    named = {part.headers.get("content-id", "").strip().strip("<>"): part for part in reversed(parts)}
    root = named.get(start_id, parts[0])
    charset = _CHARSET.search(root.headers.get("content-type", ""))
    base = problems.base
    problems.base = None if base is None else base + root.start
    text = read_text(data[root.start : root.end], charset[1] if charset else "utf-8", budget, problems)
    problems.base = base
    if text is None or _XOP not in text:
        return text
    return _resolved(text, data, named, budget, problems)


def _outer(data: bytes) -> tuple[bytes, str, int]:
    """Return the boundary, the id of the part to begin with, and where the parts begin."""
    if data.startswith(b"--"):
        end = data.find(b"\r\n", 0, _BOUNDARY_MAX)
        if end < 3:
            raise Fault("the parts of the message have no boundary", 0)
        return data[2:end].rstrip(b" \t"), "", 0
    end = data.find(b"\r\n\r\n", 0, _HEADERS_MAX)
    if end < 0:
        raise Fault("the message has neither headers nor a boundary", 0)
    kind = _headers(data[:end]).get("content-type", "")
    boundary, start = _BOUNDARY.search(kind), _START.search(kind)
    if boundary is None:
        raise Fault("the content type of the message has no boundary", 0)
    start_id = (start[1] or start[2]).strip("<>") if start else ""
    return (boundary[1] or boundary[2]).encode("latin-1", "replace"), start_id, end + 2


def _headers(raw: bytes) -> dict[str, str]:
    text = raw.decode("latin-1").replace("\r\n", "\n")
    return {found[1].lower(): found[2] for found in _HEADER.finditer(text)}


def _parts(data: bytes, boundary: bytes, at: int, budget: Budget, problems: Problems) -> list[_Part]:
    """Return the parts, at least one. Raises Fault."""
    mark = b"\r\n--" + boundary
    first = 0 if at == 0 else data.find(mark, at - 2)
    if first < 0:
        raise Fault("the message has no parts", at)
    at = first + len(mark) - (2 if data.startswith(b"--") else 0)
    parts: list[_Part] = []
    while not data.startswith(b"--", at):
        budget.records()
        budget.spend(_PART_COST)
        line = data.find(b"\r\n", at, at + _BOUNDARY_MAX)
        # A part without headers has an empty line at once.
        end = data.find(b"\r\n\r\n", line, at + _HEADERS_MAX) if line >= 0 else -1
        if end < 0:
            problems.add("the headers of a part do not end", at)
            break
        start = end + 4
        after = data.find(mark, start - 2)
        if after < 0:
            problems.add("the last part of the message does not end", start)
            after = len(data)
        parts.append(_Part(_headers(data[line + 2 : end]), start, max(start, after)))
        if after == len(data):
            break
        at = after + len(mark)
    if not parts:
        raise Fault("the message has no parts", first)
    return parts


_PART_COST: Final = 600


def _resolved(text: str, data: bytes, named: Mapping[str, _Part], budget: Budget, problems: Problems) -> str:
    """Return an envelope with its includes replaced by the parts that they name."""
    pieces: list[str] = []
    at = 0
    for found in _INCLUDE.finditer(text):
        href = _HREF.search(found[2])
        part = named.get(unquote(href[1])) if href else None
        if part is None:
            problems.add(f"a part that is not there is included (character {found.start()})", None)
            continue
        pieces.append(text[at : found.start()])
        budget.text((part.end - part.start + 2) // 3 * 4)
        pieces.append(binascii.b2a_base64(data[part.start : part.end], newline=False).decode("ascii"))
        at = found.end()
    pieces.append(text[at:])
    budget.text(len(text))
    return "".join(pieces)
