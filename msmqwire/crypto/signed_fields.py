"""The bytes that a signature covers: [MS-MQMQ] 2.5.

The hash runs over the values of the fields, one after the other, with nothing between them: MQMQ-2.5-02.
`Readings` has the form of values that are not plain numbers and bytes.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from struct import Struct
from typing import Final

from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.crypto.signed_queues import destination_queue, format_name_lists, reply_queues
from msmqwire.errors import InvalidValue, LocatedError
from msmqwire.headers import BASE_HEADER, USER_HEADER
from msmqwire.schema import NULL_GUID, Record
from msmqwire.schema.texts import encode_text

_TAG: Final = Struct("<L")
_SENDING: Final = Struct("<BBBBHL")
_NULL: Final = b"\0\0"
_NULL_GUID: Final = NULL_GUID.bytes_le
_PR: Final = BASE_HEADER.bits("Flags.PR").mask
_DM, _JN, _JP = (USER_HEADER.bits(f"Flags.{name}").mask for name in ("DM", "JN", "JP"))
_DM_SHIFT: Final = USER_HEADER.bits("Flags.DM").shift


class SignatureVersion(IntEnum):
    """The kind of a signature; the value is that of SecurityHeader.Flags.AS: [MS-MQQB] 3.1.5.8.3."""

    MSMQ_1_0 = 1
    MSMQ_2_0 = 3
    MSMQ_3_0 = 5

    @property
    def text(self) -> str:
        """The version as text: 1.0, 2.0 or 3.0."""
        return f"{(self.value + 1) // 2}.0"


_V1, _V2, _V3 = SignatureVersion


def signed_fields(packet: Record, version: SignatureVersion, readings: Readings = DEFAULT) -> bytes:
    """Return the fields of a UserMessage that a signature of this version covers, one after the other.

    The body goes in as it is in `packet`, which is to be in clear: one signs before encrypting and verifies
    after decrypting (MQMQ-2.5-04).

    Raises InvalidValue for a packet that lacks a field of the list, InvalidName for a queue that can't be
    named where `readings` wants names as text.
    """
    try:
        return b"".join(_items(packet, version, readings))  # MQMQ-2.5-02
    except LocatedError:
        raise
    except (AttributeError, TypeError, ValueError, struct.error) as exc:  # not of a packet that was read
        raise InvalidValue(f"a field that a signature covers is not there, or does not fit: {exc}") from None


def _items(packet: Record, version: SignatureVersion, readings: Readings) -> list[bytes]:
    user, properties = packet.UserHeader, packet.MessagePropertiesHeader
    label = encode_text(properties.Label)
    items: list[bytes] = [
        properties.CorrelationID,  # MQMQ-2.5.1-02
        _TAG.pack(properties.ApplicationTag),  # MQMQ-2.5.1-03
        properties.MessageBody,  # MQMQ-2.5.1-04
        # MQMQ-2.5-03
        label if readings.label_null or not label.endswith(_NULL) else label[:-2],  # MQMQ-2.5.1-05
        *reply_queues(user, readings),  # MQMQ-2.5.1-06, MQMQ-2.5.1-07
    ]
    if version == _V1:  # MQMQ-2.5-01, MQMQ-2.5.1-01
        return items
    if version == _V3:  # MQMQ-2.5.3-01
        items.append(properties.ExtensionData)  # MQMQ-2.5.3-02, MQMQ-2.5.2-11
        items.append(format_name_lists(packet.MultiQueueFormatHeader, readings))
    word = user.Flags
    items.append(user.SourceQueueManager.bytes_le)  # MQMQ-2.5.2-02, MQMQ-2.5.3-04
    sending = (
        (word & _DM) >> _DM_SHIFT,  # MQMQ-2.5.2-03, MQMQ-2.5.3-05
        packet.BaseHeader.Flags & _PR,  # MQMQ-2.5.2-04, MQMQ-2.5.3-06
        (word & _JP != 0) << 1 | (word & _JN != 0),  # MQMQ-2.5.2-05, MQMQ-2.5.3-07
        properties.Flags & 0x0F,  # MQMQ-2.5.2-06, MQMQ-2.5.3-08
        properties.MessageClass,  # MQMQ-2.5.2-07, MQMQ-2.5.3-09
        properties.BodyType,  # MQMQ-2.5.2-08, MQMQ-2.5.3-10
    )
    items.append(_SENDING.pack(*sending))
    if user.ConnectorType is not None:
        items.append(user.ConnectorType.bytes_le)
    elif readings.absent_connector_type_as_null:
        items.append(_NULL_GUID)  # MQMQ-2.5.2-09, MQMQ-2.5.3-11
    if version == _V2:  # MQMQ-2.5.2-01, MQMQ-2.5.3-12
        items.append(destination_queue(user, readings))  # MQMQ-2.5.2-10
    return items
