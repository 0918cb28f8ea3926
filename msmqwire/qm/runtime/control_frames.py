"""Frames of the control channel: a message after a header of bytes, between lines of JSON.

A frame begins with a null, as no line of JSON does. docs/control-channel.md describes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import Any, Final

from msmqwire.errors import MalformedPacket
from msmqwire.names.printable import counted
from msmqwire.qm.model.message import Message
from msmqwire.qm.runtime.message_json import flag, message_json
from msmqwire.qm.runtime.message_record import check_record, write_record
from msmqwire.service.control.server import FRAMES

_HEADER: Final = Struct("<BBHIIQ")  # a null, the kind, two bytes of zero, length, subscription, receipt
_MESSAGE: Final = 1
RECORD_MAX: Final = 64 << 20
"""Limit of a message or line in bytes that a client reads."""


def message_frame(subscription: int, receipt: int, message: Message) -> bytes:
    """Return the frame of a message: of a subscription, or of an answer (0); the receipt is 0 after a
    peek.
    """
    record = write_record(message)
    return _HEADER.pack(0, _MESSAGE, 0, len(record), subscription, receipt) + record


def answer_of(request: Mapping[str, Any], messages: Sequence[tuple[int, Message]]) -> dict[str, Any]:
    """Return the answer with messages and their receipts (0 for a message peeked at): as JSON, or as frames.

    Raises InvalidValue.
    """
    if _wants_records(request):
        frames = [message_frame(0, receipt, message) for receipt, message in messages]
        return {"records": len(frames), FRAMES: frames}
    return {
        "messages": [
            {**message_json(message), "receipt": receipt} if receipt else message_json(message)
            for receipt, message in messages
        ]
    }


def _wants_records(request: Mapping[str, Any]) -> bool:
    return request.get("records") is not None and flag(request["records"], "records")


class Incoming:
    """Splits the bytes from a server into lines and frames, independent of segments."""

    def __init__(self, line: Callable[[bytes], None], message: Callable[[int, int, bytes], None]) -> None:
        """`line` is called with a line, `message` with subscription, receipt and record of a frame."""
        self._line, self._message = line, message
        self._buffer = bytearray()
        self._needed = 1  # bytes in the buffer before it is worth parsing
        self._searched = 0  # bytes of the line that it begins with

    @property
    def is_empty(self) -> bool:
        """Whether no incomplete line or frame is left."""
        return not self._buffer

    def feed(self, data: bytes) -> None:
        """Take the next bytes. Raises MalformedPacket if they are neither a line nor a frame."""
        buffer = self._buffer
        buffer += data
        start = 0
        while len(buffer) - start >= self._needed:
            end = self._frame(start) if buffer[start] == 0 else self._text(start)
            if end == start:
                break
            start, self._needed, self._searched = end, 1, 0
        del buffer[:start]

    def _frame(self, start: int) -> int:
        """Take a frame, and return its end; its beginning if it is not complete."""
        buffer = self._buffer
        if len(buffer) - start < _HEADER.size:
            self._needed = _HEADER.size
            return start
        _, kind, zero, length, subscription, receipt = _HEADER.unpack_from(buffer, start)
        if kind != _MESSAGE or zero:
            raise MalformedPacket(f"a frame is of the unknown kind {kind}, {zero}")
        if length > RECORD_MAX:
            raise MalformedPacket(f"a record has {counted(length, 'byte')}, and may have {RECORD_MAX:,}")
        size: int = _HEADER.size + length
        if len(buffer) - start < size:
            self._needed = size
            return start
        record = bytes(memoryview(buffer)[start + _HEADER.size : start + size])
        check_record(record)
        self._message(subscription, receipt, record)
        return start + size

    def _text(self, start: int) -> int:
        """Take a line, and return its end; its beginning if it is not complete."""
        buffer = self._buffer
        end = buffer.find(b"\n", start + self._searched)
        if end < 0:
            self._searched = len(buffer) - start
            if self._searched > RECORD_MAX:
                raise MalformedPacket(f"a line has more than {RECORD_MAX} bytes")
            self._needed = self._searched + 1
            return start
        self._line(bytes(memoryview(buffer)[start:end]))
        return end + 1
