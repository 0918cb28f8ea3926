"""The readable part of malformed bytes: the fields before the first invalid one, and sizes anywhere."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

from msmqwire.analysis.lint.sizes import Sized
from msmqwire.errors import MalformedPacket
from msmqwire.headers import (
    BASE_HEADER,
    COMPOUND_MESSAGE_HEADER,
    DEBUG_HEADER,
    MESSAGE_PROPERTIES_HEADER,
    SOAP_HEADER,
    SRMP_ENVELOPE_HEADER,
    USER_HEADER,
)
from msmqwire.headers.base import (
    BASE_HEADER_SIZE,
    FLAGS_OFFSET,
    INTERNAL_BIT,
    PACKET_SIZE_MAX,
    PACKET_SIZE_MIN,
    PACKET_SIZE_OFFSET,
)
from msmqwire.headers.internal import (
    PT_CONNECTION_PARAMETERS,
    PT_ESTABLISH_CONNECTION,
    PT_MASK,
    PT_OFFSET,
    PT_SESSION_ACK,
)
from msmqwire.packets import (
    CONNECTION_PARAMETERS,
    ESTABLISH_CONNECTION,
    REMOTE_READ_MESSAGE,
    SESSION_ACK,
    USER_MESSAGE,
)
from msmqwire.schema import Header, field_offset

INTERNAL_PACKETS: Final = {
    PT_SESSION_ACK: SESSION_ACK,
    PT_ESTABLISH_CONNECTION: ESTABLISH_CONNECTION,
    PT_CONNECTION_PARAMETERS: CONNECTION_PARAMETERS,
}
"""The internal packets by their PT."""
USER_FLAGS_AT: Final = BASE_HEADER_SIZE + field_offset(USER_HEADER, "Flags")
"""Offset of the Flags of a UserHeader directly after a BaseHeader."""

_MQ_BIT: Final = USER_HEADER.bits("Flags.MQ")
_MQ_AT: Final = USER_FLAGS_AT + _MQ_BIT.shift // 8
_MQ: Final = 1 << _MQ_BIT.shift % 8
_DH: Final = BASE_HEADER.bits("Flags.DH").mask
_AH: Final = USER_HEADER.bits("Flags.AH").mask
_HH: Final = USER_HEADER.bits("Flags.HH").mask


class MalformedBytes:
    """The bytes of a malformed session packet or remotely read message, as far as they can be read.

    Attributes:
        data: the bytes, as far as they were captured.
        error: why parsing refused them.
        remote: whether they are of a remotely read message.
        internal: whether they are of an internal packet of a session.
        announced: PacketSize; None if it is truncated.
        size_valid: whether that is one that a packet may have.
        end: the end of the packet, as far as it is credible.
        seen: the offset and value of each field before the first invalid one, by path.
        multi_queue_format: the offset of the MultiQueueFormatHeader; None if there is none, or it is unknown.
    """

    def __init__(self, data: bytes, error: MalformedPacket | None, *, remote: bool) -> None:
        self.data, self.error, self.remote = data, error, remote
        flags = data[FLAGS_OFFSET] if len(data) > FLAGS_OFFSET else 0
        self.internal = bool(flags & INTERNAL_BIT) and not remote
        announced = self.number(PACKET_SIZE_OFFSET, 4) if len(data) >= BASE_HEADER_SIZE else None
        self.announced = announced
        self.size_valid = announced is not None and PACKET_SIZE_MIN <= announced <= PACKET_SIZE_MAX
        self.end = announced if announced is not None and self.size_valid and not remote else len(data)
        self.seen: dict[str, tuple[int, Any]] = {}
        self.multi_queue_format: int | None = None
        schema = self._schema()
        if schema is not None:
            from msmqwire.schema.reference import fields_before_error  # construct, which the rest need not

            # Without its MQ bit: the reference reader takes seconds for a list of a million names.
            has_lists = not self.internal and len(data) > _MQ_AT and bool(data[_MQ_AT] & _MQ)
            head = data[:_MQ_AT] + bytes([data[_MQ_AT] & ~_MQ]) + data[_MQ_AT + 1 :] if has_lists else data
            self.seen, refused = fields_before_error(schema, head)
            self.error = error or (None if has_lists else refused)
            self.multi_queue_format = self._behind_the_others() if has_lists else None

    def _schema(self) -> Header | None:
        if self.remote:
            return REMOTE_READ_MESSAGE
        if not self.internal:
            return USER_MESSAGE
        kind = self.data[PT_OFFSET] & PT_MASK if len(self.data) > PT_OFFSET else 0
        return INTERNAL_PACKETS.get(kind)

    def number(self, at: int, width: int) -> int | None:
        """Return an integer of the data; None if it is truncated."""
        if at < 0 or at + width > len(self.data):
            return None
        return int.from_bytes(self.data[at : at + width], "little")

    def sized(self, start: int, sized: Sized) -> int | None:
        """Return the value of a size whose header starts at `start`; None if it is truncated."""
        return self.number(start + sized.at, sized.width)

    def start(self, path: str) -> int | None:
        """Return the offset of a header, if reading reached it."""
        return self._starts.get(path)

    @cached_property
    def _starts(self) -> dict[str, int]:
        """The offset of the first field of each structure."""
        starts: dict[str, int] = {}
        for name, (at, _) in self.seen.items():
            while "." in name:
                name = name.rpartition(".")[0]  # noqa: PLW2901
                starts.setdefault(name, at)
        return starts

    def _behind_the_others(self) -> int | None:
        """Return the offset of the MultiQueueFormatHeader, after all other headers; None if they can't be
        read.
        """
        at = self.start("MessagePropertiesHeader")
        if at is None:
            return None
        base, user = self.seen["BaseHeader.Flags"][1], self.seen["UserHeader.Flags"][1]
        headers = [MESSAGE_PROPERTIES_HEADER]
        headers += [DEBUG_HEADER] if base & _DH else []
        headers += [SRMP_ENVELOPE_HEADER, COMPOUND_MESSAGE_HEADER] if user & _AH else []
        headers += [SOAP_HEADER] if user & _HH else []
        data = self.data[: self.end]
        try:
            for header in headers:
                _, at = header.read(data, at)
        except MalformedPacket:
            return None
        return at
