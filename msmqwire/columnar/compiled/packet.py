"""Which packet bytes are, compiled: `msmqwire.packets` over the generated functions."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from msmqwire.columnar.compiled.generated import (
    MALFORMED,
    PLACES,
    QUEUE,
    connection_parameters,
    establish_connection,
    session_ack,
    user_message,
)
from msmqwire.columnar.compiled.jit import inlined, is_text, jit, u16, u32
from msmqwire.headers import BASE_HEADER, INTERNAL_HEADER, USER_HEADER
from msmqwire.headers.acknowledgements import (
    ACK_BODY_SIZE,
    ACK_LABEL,
    ORDER_QUEUE_IDENTIFIER,
    ORDER_QUEUE_NAME,
)
from msmqwire.headers.base import PACKET_SIZE_MAX, PACKET_SIZE_MIN, PREFIX_SIZE, SIGNATURE, VERSION
from msmqwire.headers.internal import PT_CONNECTION_PARAMETERS, PT_ESTABLISH_CONNECTION, PT_SESSION_ACK
from msmqwire.headers.session import SESSION_HEADER_SIZE
from msmqwire.names.header_names import AT_DESTINATION, DIRECT
from msmqwire.packets import FINAL_ACK, ORDER_ACK

KINDS: Final = (
    "UserMessage",
    "OrderAck",
    "FinalAck",
    "SessionAck",
    "EstablishConnection",
    "ConnectionParameters",
    "Ping",
    "Malformed",
    "Skipped",
)
"""The kinds of rows; their numbers are their places."""
USER, ORDER, FINAL, ACK, ESTABLISH, PARAMETERS, PING_KIND, BAD, SKIPPED = range(9)
LAYOUTS: Final = (*["UserMessage"] * 3, "SessionAck", "EstablishConnection", "ConnectionParameters", "Ping")
"""For each kind of packet, where `generated.PLACES` has its fields."""

JUDGED: Final = PREFIX_SIZE

_MESSAGE: Final = PLACES["UserMessage"]
_FLAGS_AT: Final = _MESSAGE["BaseHeader.Flags"][1]
_SIGNATURE_AT: Final = _MESSAGE["BaseHeader.Signature"][1]
_SIZE_AT: Final = _MESSAGE["BaseHeader.PacketSize"][1]
_INTERNAL: Final = BASE_HEADER.bits("Flags.IN").mask
_SESSION: Final = BASE_HEADER.bits("Flags.SH").mask
_KIND_AT: Final = PLACES["SessionAck"]["InternalHeader.Flags"][1]
_KIND_MASK: Final = INTERNAL_HEADER.bits("Flags.PT").mask
_KIND_END: Final = _KIND_AT + PLACES["SessionAck"]["InternalHeader.Flags"][2]
_USER_FLAGS_AT: Final = _MESSAGE["UserHeader.Flags"][1]
_QUEUE_AT: Final = _MESSAGE["UserHeader.DestinationQueue"][1]
_QUEUE_KIND_SHIFT: Final = USER_HEADER.bits("Flags.DQ").shift
_NUMBER_AT: Final = _QUEUE_AT + QUEUE["PrivateQueueFormatNameId.PrivateQueueIdentifier"]
_COUNT_AT: Final = _QUEUE_AT + QUEUE["DirectQueueFormatName.Count"]
_NAME_AT: Final = _QUEUE_AT + QUEUE["DirectQueueFormatName.DirectFormatName"]
_CLASS_SLOT, _CLASS_AT = _MESSAGE["MessagePropertiesHeader.MessageClass"][:2]
_BODY_SIZE_AT: Final = _MESSAGE["MessagePropertiesHeader.MessageSize"][1]
_LABEL_SLOT, _LABEL_AT, _LABEL_END_SLOT, _ = _MESSAGE["MessagePropertiesHeader.Label"]
_LABEL: Final = np.frombuffer(f"{ACK_LABEL}\0".encode("utf-16-le"), np.uint8)
_ORDER_QUEUE: Final = np.frombuffer(f"\\private$\\{ORDER_QUEUE_NAME}".encode("utf-16-le"), np.uint16).copy()
_ORDER_CLASS: Final = ORDER_ACK.defaults["MessagePropertiesHeader.MessageClass"]
_FINAL_CLASS: Final = FINAL_ACK.defaults["MessagePropertiesHeader.MessageClass"]


@inlined
def packet_length(buf: Any, at: int) -> int:
    """The bytes that the packet at a place takes on the stream; -1 for a header that can't be.

    `JUDGED` bytes must be there.
    """
    size = u32(buf, at + _SIZE_AT)
    if (
        buf[at] != VERSION
        or u32(buf, at + _SIGNATURE_AT) != SIGNATURE
        or size < PACKET_SIZE_MIN
        or size > PACKET_SIZE_MAX
    ):
        return -1
    flags = u16(buf, at + _FLAGS_AT)
    return size + SESSION_HEADER_SIZE if flags & _SESSION and not flags & _INTERNAL else size


@jit
def session_packet(buf: Any, start: int, stop: int, at: Any, r: int, trusted: bool) -> int:
    """The kind of the packet that takes these bytes, its places noted; MALFORMED or UNSURE."""
    if stop - start < _KIND_END:
        return MALFORMED
    if not u16(buf, start + _FLAGS_AT) & _INTERNAL:
        end = user_message(buf, start, stop, at, r, trusted)
        if end < 0:
            return end
        return _message_kind(buf, start, at, r) if end == stop else MALFORMED
    number = u16(buf, start + _KIND_AT) & _KIND_MASK
    if number == PT_SESSION_ACK and u16(buf, start + _FLAGS_AT) & _SESSION:
        kind, end = ACK, session_ack(buf, start, stop, at, r, trusted)
    elif number == PT_ESTABLISH_CONNECTION:
        kind, end = ESTABLISH, establish_connection(buf, start, stop, at, r, trusted)
    elif number == PT_CONNECTION_PARAMETERS:
        kind, end = PARAMETERS, connection_parameters(buf, start, stop, at, r, trusted)
    else:
        return MALFORMED
    return kind if end == stop else MALFORMED


@jit
def _message_kind(buf: Any, start: int, at: Any, r: int) -> int:
    """Which message it is: [MS-MQQB] 3.1.5.1.1."""
    label = start + at[r, _LABEL_SLOT] + _LABEL_AT
    if start + at[r, _LABEL_END_SLOT] - label != _LABEL.size or u16(buf, start + _FLAGS_AT):
        return USER
    for i in range(_LABEL.size):
        if buf[label + i] != _LABEL[i]:
            return USER
    if not _is_order_queue(buf, start):
        return USER
    properties = start + at[r, _CLASS_SLOT]
    message_class, size = u16(buf, properties + _CLASS_AT), u32(buf, properties + _BODY_SIZE_AT)
    if message_class >= _FINAL_CLASS:
        return FINAL if size == ACK_BODY_SIZE else MALFORMED
    return ORDER if message_class == _ORDER_CLASS and size == ACK_BODY_SIZE else USER


@jit
def _is_order_queue(buf: Any, start: int) -> bool:
    kind = u32(buf, start + _USER_FLAGS_AT) >> _QUEUE_KIND_SHIFT & 7
    if kind == AT_DESTINATION:
        return bool(u32(buf, start + _NUMBER_AT) == ORDER_QUEUE_IDENTIFIER)
    if kind != DIRECT:
        return False
    name, end = start + _NAME_AT, start + _NAME_AT + u16(buf, start + _COUNT_AT)
    tail = end - 2 - 2 * _ORDER_QUEUE.size
    if tail < name or not is_text(buf, name, end):
        return False
    for i in range(_ORDER_QUEUE.size):
        unit = u16(buf, tail + 2 * i)
        if 0x41 <= unit <= 0x5A:
            unit += 0x20
        if unit != _ORDER_QUEUE[i]:
            return False
    return True
