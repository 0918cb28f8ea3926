"""Packets as a peer receives them, taken apart by offsets with `struct` alone: [MS-MQMQ] 2.2.19, 2.2.20.

The counterpart of `handmade`: it shares nothing with the library's codec.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple, Self

from tests.support import handmade as h

RECOVERABLE = 0x20
"""UserHeader.Flags: DM, a recoverable message."""
RETURN_HOP_COUNT = 0x1F
"""UserHeader.Flags: RC."""
SESSION_HEADER_SIZE = 16

_INTERNAL = {1: "SessionAck", 2: "EstablishConnection", 3: "ConnectionParameters"}
_NAME_SIZES = {0: 0, 2: 4, 3: 4, 4: 4, 5: 16, 6: 20}
_HEADER_FIELDS = (
    "AckSequenceNumber", "RecoverableMsgAckSeqNumber", "RecoverableMsgAckFlags", "UserMsgSequenceNumber",
    "RecoverableMsgSeqNumber", "WindowSize", "Reserved",
)  # fmt: skip


class SessionHeader(NamedTuple):
    """The fields of a SessionHeader: [MS-MQMQ] 2.2.20.4."""

    ack: int
    recoverable_ack: int
    recoverable_flags: int
    sent: int
    recoverable_sent: int
    window: int
    reserved: int


class SecurityHeader(NamedTuple):
    """The flags and items of a SecurityHeader: [MS-MQMQ] 2.2.20.6. `provider` is None or type and name."""

    flags: int
    security_id: bytes
    encryption_key: bytes
    signature: bytes
    certificate: bytes
    provider: tuple[int, str] | None


class ReceivedPacket(bytes):
    """The bytes of a packet, with its fields as attributes under the names of the specifications.

    A field of another kind of packet raises AttributeError. `body` is MessageBody, `wants`
    MessagePropertiesHeader.Flags and `tx` the TimeStamp, Ordinal, TxSequenceNumber and
    PreviousTxSequenceNumber of the TransactionHeader, None without one.
    """

    fields: dict[str, Any]

    def __new__(cls, data: bytes | bytearray) -> Self:
        """Parse a packet; asserts the invariants of all packets."""
        packet = super().__new__(cls, data)
        packet.fields = packet._read_fields()
        return packet

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["fields"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def base_flags(self) -> int:
        """BaseHeader.Flags."""
        return int.from_bytes(self[2:4], "little")

    @property
    def internal_flags(self) -> int:
        """InternalHeader.Flags of a packet that has one."""
        return int.from_bytes(self[18:20], "little")

    @property
    def kind(self) -> str:
        """The name of the packet's structure in [MS-MQMQ] and [MS-MQQB]."""
        if self.base_flags & h.IN:
            return _INTERNAL[self[18] & 0x0F]
        if self.Label == "QM Ordering Ack" and not self.base_flags & ~h.BASE_SH:
            return "OrderAck" if self.MessageClass == 0xFF else "FinalAck"
        return "UserMessage"

    @property
    def session_header(self) -> SessionHeader | None:
        """The SessionHeader at the end; None for a packet without one."""
        if not self.base_flags & h.BASE_SH:
            return None
        return SessionHeader._make(struct.unpack("<HHLHHHH", self[-SESSION_HEADER_SIZE:]))

    @property
    def security(self) -> SecurityHeader:
        """Its SecurityHeader, which it has."""
        data, offset, items = self.SecurityHeader, 16, []
        flags, *sizes = struct.unpack_from("<HHHHLL", data)
        for size in sizes:
            items.append(bytes(data[offset : offset + size]))
            offset += size + (-size % 4)
        *items, provider = items
        named = (int.from_bytes(provider[:4], "little"), provider[4:].decode("utf-16-le").rstrip("\0"))
        return SecurityHeader(flags, *items, named if provider else None)

    @property
    def is_recoverable(self) -> bool:
        """Whether this is a message with DM set."""
        return not self.base_flags & h.IN and bool(self.Flags & RECOVERABLE)

    @property
    def acknowledged_tx(self) -> tuple[int, int, int, int]:
        """TimeStamp, Ordinal, number and previous number in the body of an OrderAck or FinalAck."""
        ordinal, stamp, number, previous = struct.unpack_from("<LLLL", self.body)
        return stamp, ordinal, number, previous

    @property
    def acknowledged_message(self) -> tuple[bytes, int]:
        """The source and the MessageID in the body of a FinalAck."""
        source, message_id = struct.unpack_from("<16sL", self.body, 16)
        return source, message_id

    @property
    def hops(self) -> int:
        """UserHeader.Flags: RC."""
        return int(self.Flags & RETURN_HOP_COUNT)

    def _read_fields(self) -> dict[str, Any]:
        version, _, flags, signature, size, reach = struct.unpack_from("<BBHLLL", self)
        assert (version, signature) == (0x10, 0x524F494C)
        if flags & h.IN:
            assert (size, reach) == (len(self), h.INFINITE)
            return {"CS": bool(self[18] & 0x10), **_internal_fields(self)}
        assert size == len(self) - (SESSION_HEADER_SIZE if flags & h.BASE_SH else 0)
        fields = _message_fields(self, size, flags)
        fields["TimeToReachQueue"], fields["PR"] = reach, flags & 7
        if self.session_header is not None:
            fields.update(zip(_HEADER_FIELDS, self.session_header, strict=True))
        return fields


def packet_size(data: bytes | bytearray) -> int | None:
    """The bytes of the first packet of a stream; None if its BaseHeader is incomplete.

    PacketSize leaves out the SessionHeader of all packets but the internal ones.
    """
    if len(data) < 16:
        return None
    flags, size = struct.unpack_from("<H4xL", data, 2)
    return int(size) + (SESSION_HEADER_SIZE if flags & (h.IN | h.BASE_SH) == h.BASE_SH else 0)


def cut(stream: bytes) -> list[ReceivedPacket]:
    """The packets of a stream that consists of whole packets."""
    packets = []
    while stream:
        size = packet_size(stream)
        assert size is not None and 16 <= size <= len(stream), "a packet is sent whole"  # noqa: PT018
        packets.append(ReceivedPacket(stream[:size]))
        stream = stream[size:]
    return packets


def _internal_fields(packet: ReceivedPacket) -> dict[str, Any]:
    if packet.kind == "SessionAck":
        assert len(packet) == 36
        assert packet.session_header is not None
        return dict(zip(_HEADER_FIELDS, packet.session_header, strict=True))
    if packet.kind == "EstablishConnection":
        assert len(packet) == 572
        names = ("ClientGuid", "ServerGuid", "TimeStamp", "OperatingSystem", "Reserved")
        return dict(zip(names, struct.unpack_from("<16s16sLHH", packet, 20), strict=True))
    assert len(packet) == 32
    names = ("RecoverableAckTimeout", "AckTimeout", "Reserved", "WindowSize")
    return dict(zip(names, struct.unpack_from("<LLHH", packet, 20), strict=True))


def _message_fields(data: bytes, size: int, base_flags: int) -> dict[str, Any]:
    names = ("SourceQueueManager", "QueueManagerAddress", "TimeToBeReceived", "SentTime", "MessageID")
    *values, flags = struct.unpack_from("<16s16sLLLL", data, 16)
    fields: dict[str, Any] = dict(zip(names, values, strict=True)) | {"Flags": flags}
    offset = 64
    for name, shift in (("DestinationQueue", 10), ("AdminQueue", 13), ("ResponseQueue", 16)):
        form = flags >> shift & 7
        if form == 7:
            length = struct.unpack_from("<H", data, offset)[0]
            fields[name] = data[offset + 2 : offset + 2 + length].decode("utf-16-le").rstrip("\0")
            offset += 2 + length + (-(2 + length) % 4)
        else:
            name_size = 0 if name == "ResponseQueue" and form == 1 else _NAME_SIZES[form]
            fields[name] = data[offset : offset + name_size]
            offset += name_size
    offset += 16 if flags & h.CQ else 0
    fields["tx"] = fields["TransactionHeader"] = None
    if flags & h.TH:
        tx_flags, ordinal, stamp, number, previous = struct.unpack_from("<LLLLL", data, offset)
        fields["tx"] = stamp, ordinal, number, previous
        end = offset + (36 if tx_flags & 1 else 20)
        fields["TransactionHeader"], offset = data[offset:end], end
    fields["SecurityHeader"] = None
    if flags & h.SH:
        sizes = struct.unpack_from("<HHHHLL", data, offset)[1:]
        end = offset + 16 + sum(item + (-item % 4) for item in sizes)
        fields["SecurityHeader"], offset = data[offset:end], end
    names = (
        "wants", "LabelLength", "MessageClass", "CorrelationID", "BodyType", "ApplicationTag", "MessageSize",
        "AllocationBodySize", "PrivacyLevel", "HashAlgorithm", "EncryptionAlgorithm", "ExtensionSize",
    )  # fmt: skip
    fields |= dict(zip(names, struct.unpack_from("<BBH20sLLLLLLLL", data, offset), strict=True))
    offset += 56
    end = offset + 2 * fields["LabelLength"]
    fields["Label"] = data[offset:end].decode("utf-16-le").rstrip("\0")
    offset = end + fields["ExtensionSize"]
    fields["body"] = data[offset : offset + fields["MessageSize"]]
    end = offset + fields["AllocationBodySize"]
    if not flags & (h.MQ | h.HH) and not base_flags & h.DH:
        assert end + (-end % 4) == size
    return fields
