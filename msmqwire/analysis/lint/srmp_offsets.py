"""Offsets of the parts of an SRMP message, by the paths that findings have."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final

from msmqwire.srmp.fields import CONTENT_TYPE, CRLF, Field, build_block
from msmqwire.srmp.http_framer import ENTITY
from msmqwire.srmp.http_message import HEADER_FIELDS, chunk_size
from msmqwire.srmp.message import SrmpMessage
from msmqwire.srmp.multipart import BOUNDARY, PARTS, Multipart

_PART: Final = re.compile(re.escape(PARTS) + r"\[(\d+)\](?:\.(.*))?")


class PartOffsets:
    """The places in one message. Each is computed once: a peer decides how many findings there are."""

    def __init__(self, message: SrmpMessage) -> None:
        """Measure a message. Raises InvalidValue for one that can't be built."""
        self._message = message
        self._head = _Block(message.fields, HEADER_FIELDS, 0)
        self._entity = 0
        if message.start is not None:
            self._head = _Block(message.fields, HEADER_FIELDS, len(message.start.to_bytes()))
            self._entity = self._head.end
        lines = () if message.chunking is None else message.chunking.lines
        sizes = [chunk_size(line) or 0 for line in lines]
        self._chunk_starts = list(accumulate(sizes, initial=0))  # in the entity
        self._framing = list(
            accumulate(len(line) + len(CRLF) * (n > 0) + len(CRLF) for n, line in enumerate(lines))
        )
        self._parts: list[tuple[int, _Block]] = []
        self._envelope = 0
        if isinstance(message.content, Multipart):
            self._measure(message.content)

    def _measure(self, content: Multipart) -> None:
        delimiter = len(content.boundary) + 2
        at = len(CRLF) * content.leading_line_break
        for number, part in enumerate(content.parts):
            path = f"{PARTS}[{number}].{HEADER_FIELDS}"
            block = _Block(part.fields, path, at + delimiter + len(CRLF))
            self._parts.append((at, block))
            if number == content.envelope_number:
                self._envelope = block.end
            at = block.end + len(part.content) + len(CRLF) * part.line_break

    def of(self, path: str) -> int:
        """Return the offset of a field, part or element; of the enclosing one if it is not there."""
        if path == "Envelope" or path.startswith("Envelope."):
            return self._in_message(self._envelope + self._in_envelope(path))
        if path == BOUNDARY:
            return self._head.of(CONTENT_TYPE)
        if path.startswith(HEADER_FIELDS):
            return self._head.of(path.removeprefix(HEADER_FIELDS).removeprefix("."))
        part = _PART.fullmatch(path)
        if part is not None:
            start, block = self._parts[int(part[1])]
            name = part[2]
            inside = start if name is None else block.of(name.removeprefix(HEADER_FIELDS).removeprefix("."))
            return self._in_message(inside)
        return self._in_message(0) if path in (PARTS, ENTITY) else 0

    def content_of(self, number: int) -> int:
        """Return the offset of the content of a part, after its header fields."""
        return self._in_message(self._parts[number][1].end)

    def _in_envelope(self, path: str) -> int:
        envelope = self._message.envelope
        offsets = {} if envelope is None else envelope.offsets
        while path not in offsets and "." in path:
            path = path.rpartition(".")[0]
        return offsets.get(path, 0)

    def _in_message(self, offset: int) -> int:
        """Return the place of a byte of the entity, after the head and the lines of its chunks."""
        if self._framing:
            number = min(bisect_right(self._chunk_starts, offset), len(self._framing)) - 1
            offset += self._framing[number]
        return self._entity + offset


class _Block:
    """The places of header fields: `end` is after their empty line."""

    def __init__(self, fields: Sequence[Field], path: str, start: int) -> None:
        sizes: Iterable[int] = (len(field.to_bytes(path)) for field in fields)
        self._starts = list(accumulate(sizes, initial=start))
        self._numbers: dict[str, int] = {}
        for number, field in enumerate(fields):
            self._numbers.setdefault(field.name.lower(), number)
        self.end = self._starts[-1] + len(build_block((), path))

    def of(self, name: str) -> int:
        """Return the place of the first field of this name; that of the first of all if there is none."""
        return self._starts[self._numbers.get(name.lower(), 0)]
