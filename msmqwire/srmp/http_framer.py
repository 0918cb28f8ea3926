"""Splitting a byte stream into HTTP messages, without I/O: RFC 9112 sections 2, 6 and 7.

Keep-alive and pipelining need no more than this: one message starts where the one before ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msmqwire.errors import MalformedPacket
from msmqwire.names.printable import counted
from msmqwire.srmp.fields import (
    CONTENT_LENGTH,
    CONTENT_TYPE,
    CRLF,
    HEAD_SIZE_MAX,
    TRANSFER_ENCODING,
    Field,
    FieldBlock,
    content_length,
    find_all,
    line_end,
    one_value,
    refuse_twice,
)
from msmqwire.srmp.http_message import (
    HEADER_FIELDS,
    HTTP_1_1,
    REQUEST_LINE,
    TRAILER_FIELDS,
    Chunking,
    HttpMessage,
    StartLine,
    StatusLine,
    chunk_size,
    parse_start_line,
)
from msmqwire.srmp.limits import ENTITY_SIZE_MAX

CHUNK_LINE_MAX: Final = 256
CHUNK_COUNT_MAX: Final = 65_536  # 4 MB in chunks of 64 bytes
_CHUNKS: Final = "Chunking"
ENTITY: Final = "Entity"


class HttpFramer:
    """Splits the bytes of one direction of a connection into HTTP messages, fed any number at a time.

    The first byte that can't belong to a message ends the stream: where the next one starts is unknown. The
    results do not depend on the chunks in which the bytes were fed.

    Attributes:
        error: the error that ended the stream, or None.
        offset: the bytes that the messages returned so far took; offsets of errors count from there.
    """

    def __init__(self, entity_size_max: int = ENTITY_SIZE_MAX) -> None:
        """Start at the beginning of a stream; an entity may take `entity_size_max` bytes, chunk lines too."""
        self._entity_size_max = entity_size_max
        self._buffer = bytearray()
        self._reader = MessageReader(entity_size_max)
        self.error: MalformedPacket | None = None
        self.offset = 0

    @property
    def buffered(self) -> int:
        """The bytes buffered of an incomplete message; its head, entity and trailer have limits."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[HttpMessage]:
        """Return the messages that these bytes complete.

        On an error the messages before it are returned and `error` is set; feeding more raises that error.
        """
        if self.error is not None:
            raise self.error
        buffer = self._buffer
        buffer += data
        messages: list[HttpMessage] = []
        try:
            while buffer and self._reader.read(buffer):
                messages.append(self._take(self._reader.at))
        except MalformedPacket as exc:
            self.error = exc
            buffer.clear()
        return messages

    def close(self) -> list[HttpMessage]:
        """End the stream; return the response, if there is one, that only this ends.

        Raises MalformedPacket if the stream ends inside a message.
        """
        if self.error is not None or not self._buffer:
            return []
        if self._reader.ends_with_stream:
            return [self._take(len(self._buffer))]
        self.error = self._reader.broken_off(len(self._buffer))
        self._buffer.clear()
        raise self.error

    def _take(self, size: int) -> HttpMessage:
        """Return the message of this size that was read, and start the next one."""
        message = self._reader.message(self._buffer, size)
        del self._buffer[:size]
        self.offset += size
        self._reader = MessageReader(self._entity_size_max)
        return message


def parse_http(data: bytes, entity_size_max: int = ENTITY_SIZE_MAX) -> HttpMessage:
    """Parse exactly one HTTP message. Raises MalformedPacket with the path and offset of the fault."""
    reader = MessageReader(entity_size_max)
    whole = reader.read(data)
    if not whole and not reader.ends_with_stream:
        raise reader.broken_off(len(data))
    size = reader.at if whole else len(data)
    if size != len(data):
        raise MalformedPacket(
            f"{counted(len(data) - size, 'byte')} after the message", path=ENTITY, offset=size
        )
    return reader.message(data, size)


class MessageReader:
    """Reads one message from a growing buffer that starts with it, going on where it stopped.

    Attributes:
        at: the bytes read so far.
    """

    def __init__(self, entity_size_max: int = ENTITY_SIZE_MAX) -> None:
        self._max = entity_size_max
        self._scanned = 0  # no line ends between `at` and here
        self._start: StartLine | None = None
        self._block = FieldBlock(HEADER_FIELDS)
        self._fields: tuple[Field, ...] = ()
        self._entity_start = 0
        self._entity_end = 0
        self._chunk_lines: list[str] = []
        self._chunks: list[tuple[int, int]] = []
        self._trailer_end = 0
        self._step: Callable[[bytes | bytearray], bool] | None = self._start_line
        self.at = 0

    def read(self, buffer: bytes | bytearray) -> bool:
        """Return whether the whole message is there. Raises MalformedPacket."""
        while self._step is not None:
            if not self._step(buffer):
                return False
        return True

    @property
    def ends_with_stream(self) -> bool:
        """Whether only the end of the stream ends the message."""
        return self._step == self._until_close

    def broken_off(self, size: int) -> MalformedPacket:
        """Return the error of a stream that ends after these bytes of the message."""
        path = REQUEST_LINE if self._start is None else ENTITY if self._entity_start else HEADER_FIELDS
        return MalformedPacket(f"the bytes end after {size}, inside a message", path=path, offset=size)

    def message(self, buffer: bytes | bytearray, size: int) -> HttpMessage:
        """Return the message, which takes `size` bytes."""
        assert self._start is not None
        if not self._chunk_lines:
            return HttpMessage(self._start, self._fields, bytes(buffer[self._entity_start : size]))
        entity = b"".join(bytes(buffer[start:end]) for start, end in self._chunks)
        chunking = Chunking(tuple(self._chunk_lines), self._block.fields())
        return HttpMessage(self._start, self._fields, entity, chunking)

    def _line(self, buffer: bytes | bytearray, stop: int, path: str, name: str) -> bytes | None:
        end = line_end(buffer, self.at, stop, path, name=name, scanned=self._scanned)
        if end < 0:
            self._scanned = len(buffer)
            return None
        line = bytes(buffer[self.at : end - len(CRLF)])
        self.at = end
        return line

    def _start_line(self, buffer: bytes | bytearray) -> bool:
        line = self._line(buffer, HEAD_SIZE_MAX, REQUEST_LINE, "the first line")
        if line is None:
            return False
        self._start = parse_start_line(line)
        self._step = self._header_field
        end = self._block.take_usual(buffer, self.at, HEAD_SIZE_MAX)
        if end >= 0:
            self.at = end
            self._end_head()
        return True

    def _header_field(self, buffer: bytes | bytearray) -> bool:
        offset = self.at
        line = self._line(buffer, HEAD_SIZE_MAX, HEADER_FIELDS, "the head of the message")
        if line is None:
            return False
        if line:
            self._block.add(line, offset)
            return True
        self._end_head()
        return True

    def _end_head(self) -> None:
        self._fields, self._entity_start = self._block.fields(), self.at
        self._step = self._entity_step()

    def _entity_step(self) -> Callable[[bytes | bytearray], bool] | None:
        """Return the step that reads the entity, None without one: RFC 9112 6.3."""
        assert self._start is not None
        refuse_twice(self._block, CONTENT_TYPE)
        length = content_length(self._fields, self._block, self._max)
        coding = one_value(self._fields, TRANSFER_ENCODING, self._block)
        if coding is not None:
            path = f"{HEADER_FIELDS}.{TRANSFER_ENCODING}"
            if length is not None:
                raise MalformedPacket("together with Content-Length", path=path, offset=coding[1])
            if coding[0].lower() != "chunked" or self._start.version != HTTP_1_1:
                why = f"{coding[0]!r} in {self._start.version} is not chunked in {HTTP_1_1}"
                raise MalformedPacket(why, path=path, offset=coding[1])
        if isinstance(self._start, StatusLine) and self._start.without_entity:
            return None
        if coding is not None:
            return self._chunk_line
        if length is None and isinstance(self._start, StatusLine):
            return self._until_close
        self._entity_end = self.at + (length or 0)
        return self._counted_entity

    def _counted_entity(self, buffer: bytes | bytearray) -> bool:
        if len(buffer) < self._entity_end:
            return False
        self.at = self._entity_end
        self._step = None
        return True

    def _until_close(self, buffer: bytes | bytearray) -> bool:
        end = self._entity_start + self._max
        if len(buffer) > end:
            raise MalformedPacket(f"more than {counted(self._max, 'byte')}", path=ENTITY, offset=end)
        return False

    def _chunk_line(self, buffer: bytes | bytearray) -> bool:
        offset = self.at
        line = self._line(buffer, offset + CHUNK_LINE_MAX, _CHUNKS, "the first line of a chunk")
        if line is None:
            return False
        text = line.decode("latin-1")
        size = chunk_size(text)
        if size is None:
            raise MalformedPacket("the line is not the size of a chunk", path=_CHUNKS, offset=offset)
        if len(self._chunk_lines) == CHUNK_COUNT_MAX:
            raise MalformedPacket(f"more than {CHUNK_COUNT_MAX} chunks", path=_CHUNKS, offset=offset)
        if self.at + size - self._entity_start > self._max:
            raise MalformedPacket(
                f"the chunks take more than {counted(self._max, 'byte')}", path=_CHUNKS, offset=offset
            )
        self._chunk_lines.append(text)
        if size:
            self._chunks.append((self.at, self.at + size))
            self._step = self._chunk_data
        else:
            self._block, self._trailer_end = FieldBlock(TRAILER_FIELDS), self.at + HEAD_SIZE_MAX
            self._step = self._trailer_field
        return True

    def _chunk_data(self, buffer: bytes | bytearray) -> bool:
        end = self._chunks[-1][1]
        if len(buffer) < end + len(CRLF):
            return False
        if buffer[end : end + len(CRLF)] != CRLF:
            raise MalformedPacket("no line end after a chunk", path=_CHUNKS, offset=end)
        self.at = end + len(CRLF)
        self._step = self._chunk_line
        return True

    def _trailer_field(self, buffer: bytes | bytearray) -> bool:
        offset = self.at
        line = self._line(buffer, self._trailer_end, TRAILER_FIELDS, "the trailer")
        if line is None:
            return False
        if line:
            self._block.add(line, offset)
            return True
        fields = self._block.fields()
        for name in (CONTENT_LENGTH, TRANSFER_ENCODING):
            for number in find_all(fields, name):  # RFC 9110 6.5.1
                path, offset = f"{TRAILER_FIELDS}.{name}", self._block.offsets[number]
                raise MalformedPacket("not allowed after the chunks", path=path, offset=offset)
        self._step = None
        return True
