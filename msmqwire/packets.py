"""Packets: the headers they consist of, their identification, reading and building.

[MS-MQQB] 2.2 and 3.1.5.1.1, [MS-MQMQ] 2.2.20, [MS-MQRR] 2.2.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from msmqwire.constants import MessageClass
from msmqwire.errors import InvalidArgument, MalformedPacket
from msmqwire.headers import (
    BASE_HEADER,
    COMPOUND_MESSAGE_HEADER,
    CONNECTION_PARAMETERS_HEADER,
    DEAD_LETTER_HEADER,
    DEBUG_HEADER,
    ESTABLISH_CONNECTION_HEADER,
    EXTENDED_ADDRESS_HEADER,
    EXTENSION_HEADER,
    FINAL_ACK_BODY,
    INTERNAL_HEADER,
    MESSAGE_PROPERTIES_HEADER,
    MULTI_QUEUE_FORMAT_HEADER,
    ORDER_ACK_BODY,
    SECURITY_HEADER,
    SESSION_HEADER,
    SOAP_HEADER,
    SRMP_ENVELOPE_HEADER,
    SUBQUEUE_HEADER,
    TRANSACTION_HEADER,
    USER_HEADER,
)
from msmqwire.headers.acknowledgements import (
    ACK_BODY_SIZE,
    ACK_LABEL,
    ORDER_QUEUE_IDENTIFIER,
    ORDER_QUEUE_NAME,
)
from msmqwire.headers.base import (
    BASE_HEADER_SIZE,
    FLAGS_OFFSET,
    INTERNAL_BIT,
    PACKET_SIZE_MAX,
    PACKET_SIZE_MIN,
    PACKET_SIZE_OFFSET,
    PREFIX,
    SESSION_HEADER_BIT,
    SIGNATURE,
    SIGNATURE_BYTES,
    SIGNATURE_END,
    SIGNATURE_OFFSET,
    VERSION,
)
from msmqwire.headers.internal import (
    INTERNAL_HEADER_SIZE,
    PT_CONNECTION_PARAMETERS,
    PT_ESTABLISH_CONNECTION,
    PT_MASK,
    PT_OFFSET,
    PT_SESSION_ACK,
)
from msmqwire.headers.session import SESSION_HEADER_SIZE
from msmqwire.headers.user import PROPERTIES_BIT, PROPERTIES_OFFSET
from msmqwire.names.header_names import AT_DESTINATION, DIRECT
from msmqwire.ping import PING
from msmqwire.schema import (
    MORE,
    REST,
    Close,
    Header,
    Packet,
    Record,
    View,
    jsonform,
    maybe,
    raw,
    reasons,
    sub,
)
from msmqwire.schema.codec_support import Refused

Protocol: TypeAlias = Literal["session", "ping", "remote_read"]

_INTERNAL: Final = {"BaseHeader.Flags.IN": 1}  # MQMQ-2.2.19.1-08, MQMQ-2.2.19.1-09
_ORDER_CLASS: Final = MessageClass.MQMSG_CLASS_ORDER_ACK.value
_FINAL_CLASS_MIN: Final = MessageClass.MQMSG_CLASS_ACK_RECEIVE.value

ESTABLISH_CONNECTION: Final = Packet(  # MQQB-4.1.3-01, MQQB-4.1.4-01, MQQB-4.1-01
    "EstablishConnection",
    "[MS-MQQB] 2.2.3",
    # MQMQ-2.2.19.1-01, MQQB-2.1.1-03
    (sub(BASE_HEADER), sub(INTERNAL_HEADER), sub(ESTABLISH_CONNECTION_HEADER)),
    "Asks for a session, or accepts or refuses it.",
    req=("MQQB-2.2.3-01",),
    defaults={**_INTERNAL, "InternalHeader.Flags.PT": PT_ESTABLISH_CONNECTION},  # MQQB-2.2.3-02
)

CONNECTION_PARAMETERS: Final = Packet(  # MQQB-4.1.5-01, MQQB-4.1.6-01
    "ConnectionParameters",
    "[MS-MQQB] 2.2.2",
    # MQMQ-2.2.19.1-01, MQQB-2.1.1-03
    (sub(BASE_HEADER), sub(INTERNAL_HEADER), sub(CONNECTION_PARAMETERS_HEADER)),
    "Timeouts and window of a session, asked for and answered.",
    req=("MQQB-2.2.2-01",),
    defaults={**_INTERNAL, "InternalHeader.Flags.PT": PT_CONNECTION_PARAMETERS},  # MQQB-2.2.2-02
)

# Here PacketSize counts the SessionHeader: 36 in [MS-MQQB] 4.1.8.
SESSION_ACK: Final = Packet(  # MQQB-4.1.8-01
    "SessionAck",
    "[MS-MQQB] 2.2.6",
    # MQMQ-2.2.19.1-01, MQMQ-2.2.20.4-01, MQQB-2.1.1-03
    (sub(BASE_HEADER), sub(INTERNAL_HEADER), sub(SESSION_HEADER)),
    "Acknowledges messages of a session.",
    req=("MQQB-2.2.6-01",),
    # MQQB-2.2.6-02, MQQB-2.2.1-04
    defaults={**_INTERNAL, "BaseHeader.Flags.SH": 1, "InternalHeader.Flags.PT": PT_SESSION_ACK},
)

_MESSAGE_PARTS: Final = (
    sub(BASE_HEADER),  # MQMQ-2.2.20-03, MQMQ-2.2.19.1-01, MQQB-2.1.1-03, MQQB-2.2-02
    sub(USER_HEADER),  # MQMQ-2.2.20-03, MQMQ-2.2.20-13, MQQB-2.2-02, MQMQ-2.2.13-01
    # MQMQ-2.2.20-02, MQMQ-2.2.19.2-32, MQRR-2.2.5.1-01
    maybe("UserHeader.Flags.TH", sub(TRANSACTION_HEADER), req="MQMQ-2.2.20-05"),
    # MQMQ-2.2.20-02, MQMQ-2.2.20-13, MQMQ-2.2.19.2-31, MQRR-2.2.5.1-01
    maybe("UserHeader.Flags.SH", sub(SECURITY_HEADER), req="MQMQ-2.2.20-06"),
    sub(MESSAGE_PROPERTIES_HEADER),  # MQMQ-2.2.20-03, MQMQ-2.2.20-13, MQMQ-2.2.20-02, MQQB-2.2-02
    # MQMQ-2.2.19.1-12, MQRR-2.2.5.1-01
    maybe("BaseHeader.Flags.DH", sub(DEBUG_HEADER), req="MQMQ-2.2.20-07"),  # MQMQ-2.2.20-02
    # MQRR-2.2.5.1-02
    maybe("UserHeader.Flags.AH", sub(SRMP_ENVELOPE_HEADER), req="MQRR-2.2.5.1.2.1-01"),  # MQMQ-2.2.19.2-38
    # MQRR-2.2.5.1-02
    maybe("UserHeader.Flags.AH", sub(COMPOUND_MESSAGE_HEADER), req="MQRR-2.2.5.1.2.2-01"),
    maybe("UserHeader.Flags.HH", sub(SOAP_HEADER), req="MQMQ-2.2.20-08"),  # MQMQ-2.2.20-02, MQMQ-2.2.19.2-41
    # MQMQ-2.2.19.2-36, MQRR-2.2.5.1-01
    maybe("UserHeader.Flags.MQ", sub(MULTI_QUEUE_FORMAT_HEADER), req="MQMQ-2.2.20-09"),  # MQMQ-2.2.20-02
    raw(
        "TrailingData",
        REST,
        "Bytes that PacketSize counts after the last header: often an ExtensionHeader, or none.",
    ),
    Close(),  # MQMQ-2.2.19.1-20: PacketSize does not count the SessionHeader of a message
    # MQMQ-2.2.20.4-01, MQMQ-2.2.20-02
    maybe("BaseHeader.Flags.SH", sub(SESSION_HEADER), req="MQMQ-2.2.20-10"),
)
# A transactional message has priority 0 and is recoverable: MQMQ-2.2.19.1-07, MQMQ-2.2.19.2-33.
_TRANSACTIONAL: Final = {"TransactionHeader": {"BaseHeader.Flags.PR": 0, "UserHeader.Flags.DM": 1}}

USER_MESSAGE: Final = Packet(
    "UserMessage",
    "[MS-MQMQ] 2.2.20",
    _MESSAGE_PARTS,
    "A whole message of an application, or an acknowledgement of one.",
    req=("MQMQ-2.2.20-02", "MQMQ-2.2.20-12"),
    defaults_with=_TRANSACTIONAL,
)


def _acknowledgement(name: str, section: str, body: Header, defaults: Mapping[str, int]) -> Packet:
    return Packet(
        name,
        section,
        (*_MESSAGE_PARTS, View(body.name, "MessagePropertiesHeader.MessageBody", body, meaning=body.meaning)),
        body.meaning,
        defaults={
            "BaseHeader.Flags.PR": 0,  # MQQB-2.2.4-02, MQQB-2.2.5-03
            # MQQB-2.2.4-04, MQQB-2.2.5-05
            "UserHeader.DestinationQueue": {"PrivateQueueIdentifier": ORDER_QUEUE_IDENTIFIER},
            "MessagePropertiesHeader.Label": ACK_LABEL,  # MQQB-2.2.4-07, MQQB-2.2.5-07
            **defaults,  # MQQB-2.2.4-01, MQQB-2.2.5-01
        },
    )


ORDER_ACK: Final = _acknowledgement(
    "OrderAck", "[MS-MQQB] 2.2.4", ORDER_ACK_BODY, {"MessagePropertiesHeader.MessageClass": _ORDER_CLASS}
)
FINAL_ACK: Final = _acknowledgement(
    "FinalAck",
    "[MS-MQQB] 2.2.5",
    FINAL_ACK_BODY,
    {"MessagePropertiesHeader.MessageClass": _FINAL_CLASS_MIN, "UserHeader.Flags.DM": 1},  # MQQB-2.2.5-08
)

REMOTE_READ_MESSAGE: Final = Packet(
    "RemoteReadMessage",
    "[MS-MQRR] 2.2.5",
    (
        *_MESSAGE_PARTS,
        maybe(MORE, sub(EXTENSION_HEADER), req="MQRR-2.2.5-02"),  # MQRR-2.2.5.2-11
        maybe("ExtensionHeader.Flags.SQ", sub(SUBQUEUE_HEADER)),
        maybe("ExtensionHeader.Flags.DL", sub(DEAD_LETTER_HEADER)),
        maybe("ExtensionHeader.Flags.EA", sub(EXTENDED_ADDRESS_HEADER)),
    ),
    "A message as a remote reader gets it.",
    req=("MQRR-2.2.5-01",),
    defaults_with=_TRANSACTIONAL,
)

_INTERNAL_PACKETS: Final = {
    PT_SESSION_ACK: SESSION_ACK,  # MQQB-2.1.1-02
    PT_ESTABLISH_CONNECTION: ESTABLISH_CONNECTION,
    PT_CONNECTION_PARAMETERS: CONNECTION_PARAMETERS,
}

_SESSION_BITS: Final = INTERNAL_BIT | SESSION_HEADER_BIT
_INTERNAL_SIZE: Final = BASE_HEADER_SIZE + INTERNAL_HEADER_SIZE


def packet_length(data: bytes | bytearray, offset: int = 0, packet_size_max: int = PACKET_SIZE_MAX) -> int:
    """Return the bytes that the packet at `offset` takes on the stream; its `PREFIX` must be complete.

    A SessionHeader at the end of a message is not counted by PacketSize: MQMQ-2.2.19.1-20.
    Raises MalformedPacket for an invalid version, signature or size.
    """
    version, _, flags, signature, size = PREFIX.unpack_from(data, offset)
    if version != VERSION:  # MQQB-3.1.5.1.2-01, MQQB-3.1.5.1.2-02
        raise _bad_version(version)
    if signature != SIGNATURE:  # MQQB-3.1.5.1.2-01, MQQB-3.1.5.1.2-02
        why = reasons.not_constant(signature, SIGNATURE, 8)
        raise MalformedPacket(why, path="BaseHeader.Signature", offset=SIGNATURE_OFFSET)
    if not PACKET_SIZE_MIN <= size <= packet_size_max:  # MQQB-3.1.5.1.3-01
        why = reasons.not_between(size, PACKET_SIZE_MIN, packet_size_max)
        raise MalformedPacket(why, path="BaseHeader.PacketSize", offset=PACKET_SIZE_OFFSET)
    return size + SESSION_HEADER_SIZE if flags & _SESSION_BITS == SESSION_HEADER_BIT else size  # type: ignore[no-any-return]


def parse(data: bytes | bytearray, *, protocol: Protocol = "session") -> Record:
    """Parse exactly one packet.

    By default an EstablishConnection, ConnectionParameters, SessionAck, UserMessage, OrderAck or FinalAck;
    with ``protocol="ping"`` a Ping, with ``"remote_read"`` a message packet of [MS-MQRR] 2.2.5.

    Raises MalformedPacket with the path and offset of the invalid field, and InvalidArgument for an unknown
    protocol or anything but bytes.
    """
    data = _octets(data)
    if protocol == "ping":
        return PING.parse(data)  # type: ignore[no-any-return]
    if protocol == "remote_read":
        _check_base(data)
        return REMOTE_READ_MESSAGE.parse(data)  # type: ignore[no-any-return]
    if protocol != "session":
        raise InvalidArgument(f"{protocol!r:.80} is not session, ping or remote_read", path="protocol")
    _check_base(data)
    if not data[FLAGS_OFFSET] & INTERNAL_BIT:  # MQMQ-2.2.19.1-08, MQMQ-2.2.19.1-17
        packet, end = USER_MESSAGE.read(data)
        schema = _acknowledgement_schema(packet)
        if schema is not None:
            packet, end = schema.read(data)
    else:
        packet, end = _internal_schema(data).read(data)
    if end != len(data):  # MQQB-3.1.5.1.3-01
        why = reasons.other_size(end, len(data))
        raise MalformedPacket(why, path="BaseHeader.PacketSize", offset=PACKET_SIZE_OFFSET)
    return packet  # type: ignore[no-any-return]


def lacks_properties(data: bytes | bytearray) -> bool:
    """Return whether a packet is a message that, by its MP bit, has no MessagePropertiesHeader.

    There is no layout of such a message: MQMQ-2.2.19.2-34.
    """
    if len(data) <= PROPERTIES_OFFSET or data[FLAGS_OFFSET] & INTERNAL_BIT:
        return False
    return not data[PROPERTIES_OFFSET] & PROPERTIES_BIT


def is_extension(data: bytes) -> bool:
    """Return whether bytes begin with an ExtensionHeader that counts them all: [MS-MQRR] 2.2.5.2."""
    try:
        header, size = EXTENSION_HEADER.read(data)
    except MalformedPacket:
        return False
    return bool(header.HeaderSize == size and header.RemainingHeadersSize == len(data) - size)


def unexplained_tail(packet: Record) -> int:
    """Return the number of bytes after the last header of a packet that are not an ExtensionHeader.

    They make a PacketSize that is too large look right.
    """
    data = packet.get("TrailingData")
    return len(data) if data and not is_extension(data) else 0


def headers_end(data: bytes) -> int:
    """Return the end of the last header of a message that is cut off after it.

    Raises MalformedPacket if it is cut off in a header.
    """
    flags = (data[FLAGS_OFFSET] & ~SESSION_HEADER_BIT).to_bytes(1, "little")
    size = len(data).to_bytes(4, "little")
    whole = data[:FLAGS_OFFSET] + flags + data[FLAGS_OFFSET + 1 : PACKET_SIZE_OFFSET] + size
    message, end = USER_MESSAGE.read(whole + data[PACKET_SIZE_OFFSET + 4 :])
    return int(end) - len(message.TrailingData)


def well_formed(data: bytes | bytearray, start: int, end: int, *, strict: bool = False) -> bool:
    """Return whether these bytes are exactly one session packet; fast, without a reason if not.

    With `strict`, not one with an `unexplained_tail`.
    """
    if type(data) is not bytes:
        data, start, end = bytes(memoryview(data)[start:end]), 0, end - start
    try:
        internal = data[start + FLAGS_OFFSET] & INTERNAL_BIT
        schema = _internal_schema(data[start : start + _INTERNAL_SIZE]) if internal else USER_MESSAGE
        packet, stop = schema.codec.read_trusted(data, start, end)
        if stop == end and not internal:
            if strict and unexplained_tail(packet):
                return False
            acknowledgement = _acknowledgement_schema(packet)
            if acknowledgement is not None:
                stop = acknowledgement.codec.read_trusted(data, start, end)[1]
        return bool(stop == end)
    except (Refused, MalformedPacket):
        return False


def _check_base(data: bytes) -> None:
    """Check version, signature and size as far as the bytes go."""
    if len(data) >= BASE_HEADER_SIZE:
        packet_length(data)
        return
    if data and data[0] != VERSION:  # MQQB-3.1.5.1.2-02
        raise _bad_version(data[0])
    # MQQB-3.1.5.1.2-02
    if len(data) >= SIGNATURE_END and data[SIGNATURE_OFFSET:SIGNATURE_END] != SIGNATURE_BYTES:
        packet_length(data.ljust(BASE_HEADER_SIZE, b"\0"))
    BASE_HEADER.read(data)


def _bad_version(version: int) -> MalformedPacket:
    return MalformedPacket(
        reasons.not_constant(version, VERSION, 2), path="BaseHeader.VersionNumber", offset=0
    )


def _internal_schema(data: bytes) -> Packet:
    if len(data) < _INTERNAL_SIZE:
        SESSION_ACK.read(data)  # names the field that is cut off
    kind = data[PT_OFFSET] & PT_MASK
    if kind not in _INTERNAL_PACKETS:  # MQQB-2.2.1-05
        raise MalformedPacket(reasons.not_internal(kind), path="InternalHeader.Flags.PT", offset=PT_OFFSET)
    if (
        kind == PT_SESSION_ACK and not data[FLAGS_OFFSET] & SESSION_HEADER_BIT
    ):  # MQQB-3.1.5.1.1-03, MQQB-3.1.5.5-02
        raise MalformedPacket(reasons.NO_SESSION_HEADER, path="BaseHeader.Flags.SH", offset=FLAGS_OFFSET)
    return _INTERNAL_PACKETS[kind]


def _acknowledgement_schema(packet: Record) -> Packet | None:
    """Return the schema of an OrderAck or FinalAck, identified by [MS-MQQB] 3.1.5.1.1; None for the rest."""
    properties = packet.MessagePropertiesHeader
    if int(packet.BaseHeader.Flags) or properties.Label != ACK_LABEL:  # MQQB-3.1.5.1.1-04, MQQB-3.1.5.1.1-05
        return None
    if not _is_order_queue(packet.UserHeader):
        return None
    if properties.MessageClass >= _FINAL_CLASS_MIN:  # MQQB-3.1.5.1.1-05
        return FINAL_ACK
    # MQQB-3.1.5.1.1-04
    if properties.MessageClass == _ORDER_CLASS and properties.MessageSize == ACK_BODY_SIZE:
        return ORDER_ACK
    return None


def _is_order_queue(user: Record) -> bool:
    queue, kind = user.DestinationQueue, user.Flags.DQ
    if kind == AT_DESTINATION:
        return bool(queue.PrivateQueueIdentifier == ORDER_QUEUE_IDENTIFIER)
    name = queue.DirectFormatName if kind == DIRECT else None
    return isinstance(name, str) and name.lower().endswith(f"\\private$\\{ORDER_QUEUE_NAME}")


def _octets(data: object) -> bytes:
    try:
        return bytes(memoryview(data))  # type: ignore[arg-type]
    except TypeError:
        hint = "; bytes.fromhex reads hex digits, open(name, 'rb').read() a file"
        why = f"{data!r:.80} is not bytes{hint if isinstance(data, str) else ''}"
        raise InvalidArgument(why, path="data") from None


def build(packet: Record | Mapping[str, Any]) -> bytes:
    """Return the bytes of a packet: a record, or an object as `to_json` returns it.

    Computable fields may be omitted; given values are respected, even wrong ones.
    Raises InvalidValue with path and offset.
    """
    return packet.to_bytes() if isinstance(packet, Record) else from_json(packet).to_bytes()


def to_json(packet: Record) -> dict[str, Any]:
    """Return a packet as ``msmqwire parse`` prints it: ``{"packet", "size", "fields"}``."""
    return packet.to_json()


def from_json(data: Mapping[str, Any]) -> Record:
    """Return the packet of such an object; computable fields may be omitted. Raises InvalidValue."""
    return jsonform.from_json(data)
