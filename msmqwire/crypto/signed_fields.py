"""The bytes that a signature covers: [MS-MQMQ] 2.5.

The hash runs over the values of the fields, one after the other, with nothing between them: MQMQ-2.5-02. How
values that are not plain numbers and bytes go in is for `Readings` to say.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Final

from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.errors import InvalidValue
from msmqwire.names.header_names import Role, from_mqf_element, from_user_header_queue
from msmqwire.schema import NULL_GUID, Align, Guid, Record, UInt
from msmqwire.schema.record import encode_text

_TAG: Final = struct.Struct("<L")
_SENDING: Final = struct.Struct("<BBBBHL")
_NULL: Final = b"\0\0"


class SignatureVersion(IntEnum):
    """The kind of a signature; the value is that of SecurityHeader.Flags.AS: [MS-MQQB] 3.1.5.8.3."""

    MSMQ_1_0 = 1
    MSMQ_2_0 = 3
    MSMQ_3_0 = 5

    @property
    def text(self) -> str:
        """The version as text: 1.0, 2.0 or 3.0."""
        return f"{(self.value + 1) // 2}.0"


def signed_fields(packet: Record, version: SignatureVersion, readings: Readings = DEFAULT) -> bytes:
    """Return the fields of a UserMessage that a signature of this version covers, one after the other.

    The body goes in as it is in `packet`, which is to be in clear: one signs before encrypting and verifies
    after decrypting (MQMQ-2.5-04).

    Raises InvalidValue for a packet that lacks a field of the list, InvalidName for a queue that can't be
    named where `readings` wants names as text.
    """
    try:
        return b"".join(_items(packet, version, readings))
    except AttributeError as exc:
        raise InvalidValue("it is not there, and the signature covers it", path=exc.name or "") from None


def _items(packet: Record, version: SignatureVersion, readings: Readings) -> Iterator[bytes]:
    user, properties = packet.UserHeader, packet.MessagePropertiesHeader
    yield properties.CorrelationID  # MQMQ-2.5.1-02 to -07
    yield _TAG.pack(properties.ApplicationTag)
    yield properties.MessageBody
    label = encode_text(properties.Label)
    yield label if readings.label_null or not label.endswith(_NULL) else label[:-2]
    yield _queue(user, "response", readings)
    yield _queue(user, "admin", readings)
    if version is SignatureVersion.MSMQ_1_0:
        return
    if version is SignatureVersion.MSMQ_3_0:
        yield properties.ExtensionData  # MQMQ-2.5.3-02 and -03
        yield from _lists(packet.MultiQueueFormatHeader, readings)
    yield user.SourceQueueManager.bytes_le  # MQMQ-2.5.2-02 to -10, MQMQ-2.5.3-04 to -11
    flags = user.Flags
    yield _SENDING.pack(
        flags.DM,
        packet.BaseHeader.Flags.PR,
        flags.JP << 1 | flags.JN,
        properties.Flags & 0x0F,
        properties.MessageClass,
        properties.BodyType,
    )
    if user.ConnectorType is not None:
        yield user.ConnectorType.bytes_le
    elif readings.absent_connector_type_as_null:
        yield NULL_GUID.bytes_le
    if version is SignatureVersion.MSMQ_2_0:
        yield _queue(user, "destination", readings)


def _lists(header: Record, readings: Readings) -> Iterator[bytes]:
    lists = [header.Destination]
    if readings.format_name_lists == "all":
        lists += [header.Administration, header.Response]
    for addresses in lists:
        elements = addresses.FormatNameList
        if readings.queue_names == "header":
            yield from map(_without_padding, elements)
        elif elements:
            yield _as_text(",".join(from_mqf_element(element).text for element in elements), readings)


_QUEUES: Final[dict[Role, tuple[str, str]]] = {
    "destination": ("DestinationQueue", "DQ"),
    "admin": ("AdminQueue", "AQ"),
    "response": ("ResponseQueue", "RQ"),
}


def _queue(user: Record, role: Role, readings: Readings) -> bytes:
    if readings.queue_names == "header":
        value = user[_QUEUES[role][0]]
        if value is not None:
            return _without_padding(value)
    else:
        name = _name(user, role, _name(user, "admin", None) if role == "response" else None)
        if name is not None:
            return _as_text(name.text, readings)
    return _NULL if readings.absent_queues_as_null else b""


def _name(user: Record, role: Role, admin: Any) -> Any:
    field, flag = _QUEUES[role]
    return from_user_header_queue(
        getattr(user.Flags, flag),
        user[field],
        role=role,
        source_qm=user.SourceQueueManager,
        destination_qm=user.QueueManagerAddress,
        admin=admin,
    )


def _as_text(name: str, readings: Readings) -> bytes:
    return name.encode("utf-16-le") + (_NULL if readings.queue_names == "text-with-null" else b"")


def _without_padding(queue: Record) -> bytes:
    """Return the bytes of a queue's structure, without what only leads to a boundary and may be anything."""
    return b"".join(_parts(queue))


def _parts(queue: Record) -> Iterator[bytes]:
    for part in queue.schema.parts:
        if isinstance(part, Align):
            continue
        value = getattr(queue, part.name)
        if isinstance(value, Record):
            yield from _parts(value)
        elif isinstance(part, Guid):
            yield value.bytes_le
        elif isinstance(part, UInt):
            yield value.to_bytes(part.size, "little")
        else:
            yield encode_text(value)
