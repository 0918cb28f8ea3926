"""Requests of HTTP/1.1 on a connection, without sockets: [RFC9112] as far as SRMP needs it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from tests.support.broken_peers.wire import Crash, Makes

HEAD_MAX = 1 << 16
ENTITY_MAX = 5 << 20
_REASONS = {200: "OK", 400: "Bad Request", 500: "Internal Server Error"}


class Refused(Exception):
    """The request has no end that can be found: it is answered, and the connection ends."""


class _Head(NamedTuple):
    method: str
    fields: dict[str, str]
    size: int


class Requests:
    """The requests of a connection.

    Args:
        take: called with Content-Type and entity of a POST; returns the status.
        makes: whether a mistake is made.
    """

    def __init__(self, take: Callable[[str, bytes], int], makes: Makes) -> None:
        self._take, self._makes = take, makes
        self._buffer = bytearray()
        self._taken = 0
        self.closed = False

    def receive(self, data: bytes) -> bytes:
        """Take bytes; return the bytes of the responses. Raises Crash and Hang."""
        self._buffer += data
        answer = b""
        try:
            while not self.closed and (request := self._next()) is not None:
                head, entity = request
                status = (
                    self._take(head.fields.get("content-type", ""), entity) if head.method == "POST" else 400
                )
                self.closed = head.fields.get("connection", "").lower() == "close"
                self._taken += 1
                if self._taken == 2 and self._makes("http_loses_second_request"):
                    continue
                answer += _response(status, self.closed)
        except Refused:
            self.closed = True
            answer += _response(400, True)
        return answer

    def _next(self) -> tuple[_Head, bytes] | None:
        head = self._head()
        if head is None:
            return None
        coding = head.fields.get("transfer-encoding")
        if coding is not None:
            if coding.lower() != "chunked" or "content-length" in head.fields:
                raise Refused(coding)
            found = self._chunks(head.size)
        else:
            found = self._plain(head)
        if found is None:
            return None
        entity, end = found
        del self._buffer[:end]
        return head, entity

    def _head(self) -> _Head | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or end > HEAD_MAX:
            if len(self._buffer) > HEAD_MAX:
                raise Refused("the head is too long")
            return None
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        if not re.fullmatch(r"[A-Z]+ [!-~]+ HTTP/1\.[01]", first):
            raise Refused("request line")
        fields: dict[str, str] = {}
        for line in lines:
            found = re.fullmatch(r"([!-9;-~]+):[ \t]*(.*?)[ \t]*", line)
            if found is None or (found[1].lower() == "content-length" and "content-length" in fields):
                raise Refused("header field")
            fields[found[1].lower()] = found[2]
        if first.endswith("1.1") and "host" not in fields:
            raise Refused("no Host")
        return _Head(first.split(" ")[0], fields, end + 4)

    def _plain(self, head: _Head) -> tuple[bytes, int] | None:
        text = head.fields.get("content-length", "0")
        if not re.fullmatch(r"[0-9]{1,19}", text):
            raise Refused("Content-Length")
        length = int(text)
        if length > ENTITY_MAX:
            if not self._makes("http_trusts_content_length"):
                raise Refused("Content-Length")
            if length >= 1 << 31:
                raise Crash("no memory for an entity of that Content-Length")
        end = head.size + length
        if len(self._buffer) == end - 1 and self._makes("http_answers_a_byte_early"):
            end -= 1
        return (bytes(self._buffer[head.size : end]), end) if len(self._buffer) >= end else None

    def _chunks(self, at: int) -> tuple[bytes, int] | None:
        entity = b""
        while True:
            end = self._buffer.find(b"\r\n", at, at + 1_024)
            if end < 0:
                if len(self._buffer) - at >= 1_024:
                    raise Refused("size of a chunk")
                return None
            text = bytes(self._buffer[at:end]).partition(b";")[0].strip()
            if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", text) or len(entity) + int(text, 16) > ENTITY_MAX:
                raise Refused("size of a chunk")
            size, at = int(text, 16), end + 2
            if not size:
                end = self._buffer.find(b"\r\n\r\n", at - 2)  # after trailers, which are ignored
                return (entity, end + 4) if end >= 0 else None
            if len(self._buffer) < at + size + 2:
                return None
            entity += self._buffer[at : at + size]
            if self._buffer[at + size : at + size + 2] != b"\r\n":
                raise Refused("end of a chunk")
            at += size + 2


def _response(status: int, close: bool) -> bytes:
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Length: 0\r\n"
    return (head + ("Connection: close\r\n" if close else "") + "\r\n").encode()
