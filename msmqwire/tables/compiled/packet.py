"""Identifies packets, compiled: `msmqwire.packets` on top of the generated functions."""

from __future__ import annotations

from typing import Any, Final, get_args

import numpy as np

from msmqwire.analysis.dissection.skip_reasons import Why
from msmqwire.capture.events import GapReason
from msmqwire.headers import BASE_HEADER, EXTENSION_HEADER, INTERNAL_HEADER, USER_HEADER
from msmqwire.headers.acknowledgements import (
    ACK_BODY_SIZE,
    ACK_LABEL,
    ORDER_QUEUE_IDENTIFIER,
    ORDER_QUEUE_NAME,
)
from msmqwire.headers.base import (
    BASE_HEADER_SIZE,
    PACKET_SIZE_MAX,
    PACKET_SIZE_MIN,
    PREFIX_SIZE,
    SIGNATURE,
    SIGNATURE_BYTES,
    VERSION,
)
from msmqwire.headers.internal import PT_CONNECTION_PARAMETERS, PT_ESTABLISH_CONNECTION, PT_SESSION_ACK
from msmqwire.headers.session import SESSION_HEADER_SIZE
from msmqwire.management.management_packet import KINDS as MANAGEMENT_KINDS
from msmqwire.names.header_names import AT_DESTINATION, DIRECT
from msmqwire.ncp.ncp_packet import KINDS as NCP_KINDS
from msmqwire.packets import FINAL_ACK, ORDER_ACK
from msmqwire.remote_read.remote_read_packet import KINDS as REMOTE_READ_KINDS
from msmqwire.rpc.rpc_packet import PDU_KINDS
from msmqwire.schema import field_offset, least_size
from msmqwire.tables.compiled.arrays import Input, Int32Rows
from msmqwire.tables.compiled.decorators import exported, inlined, jit
from msmqwire.tables.compiled.generated import (
    FIELD_SLOTS,
    QUEUE_FIELD_OFFSETS,
    REFUSALS,
    connection_parameters,
    establish_connection,
    session_ack,
    user_message,
)
from msmqwire.tables.compiled.memory import is_text, u8, u16, u32
from msmqwire.tables.compiled.refusal import REFUSED, refuse

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
    "SrmpMessage",
    "PgmPacket",
    *PDU_KINDS,
    *REMOTE_READ_KINDS,
    *MANAGEMENT_KINDS,
    *NCP_KINDS,
)
"""The kinds of rows, by number."""
USER, ORDER, FINAL, ACK, ESTABLISH, PARAMETERS, PING_KIND, BAD, SKIPPED, SRMP, PGM_PACKET = range(11)
LAYOUTS: Final = (*["UserMessage"] * 3, "SessionAck", "EstablishConnection", "ConnectionParameters", "Ping")
"""For each kind of packet, the key of its fields in `generated.FIELD_SLOTS`."""

(
    NOT_INTERNAL, NO_SESSION_HEADER, FINAL_ACK_SIZE, OTHER_SIZE, OTHER_VERSION, OTHER_SIGNATURE,
    IMPOSSIBLE_SIZE, CUT_BASE, FOLLOWED_PING,
) = range(len(REFUSALS), len(REFUSALS) + 9)  # fmt: skip
"""The numbers of refusals that are not in the generated functions."""
SKIPPED_FOR: Final = FOLLOWED_PING + 1
"""Added to a `Why`, the number of the refusal that says why bytes are skipped."""
NOT_CAPTURED: Final = SKIPPED_FOR + max(Why) + 1
"""Added to the place of a reason in `GAP_REASONS`, the number of the refusal that says why bytes are taken
for lost."""
GAP_REASONS: Final = get_args(GapReason)

_MESSAGE: Final = FIELD_SLOTS["UserMessage"]
_FLAGS_AT: Final = _MESSAGE["BaseHeader.Flags"][1]
SIGNATURE_AT: Final = _MESSAGE["BaseHeader.Signature"][1]
_SIGNATURE_END: Final = SIGNATURE_AT + _MESSAGE["BaseHeader.Signature"][2]
_SIGNATURE_BYTES: Final = np.frombuffer(SIGNATURE_BYTES, np.uint8).copy()
SIZE_AT: Final = _MESSAGE["BaseHeader.PacketSize"][1]
_INTERNAL: Final = BASE_HEADER.bits("Flags.IN").mask
_SESSION: Final = BASE_HEADER.bits("Flags.SH").mask
_KIND_AT: Final = FIELD_SLOTS["SessionAck"]["InternalHeader.Flags"][1]
_KIND_MASK: Final = INTERNAL_HEADER.bits("Flags.PT").mask
_KIND_END: Final = _KIND_AT + FIELD_SLOTS["SessionAck"]["InternalHeader.Flags"][2]
_USER_FLAGS_AT: Final = _MESSAGE["UserHeader.Flags"][1]
_QUEUE_AT: Final = _MESSAGE["UserHeader.DestinationQueue"][1]
_QUEUE_KIND_SHIFT: Final = USER_HEADER.bits("Flags.DQ").shift
_NUMBER_AT: Final = _QUEUE_AT + QUEUE_FIELD_OFFSETS["PrivateQueueFormatNameId.PrivateQueueIdentifier"]
_COUNT_AT: Final = _QUEUE_AT + QUEUE_FIELD_OFFSETS["DirectQueueFormatName.Count"]
_NAME_AT: Final = _QUEUE_AT + QUEUE_FIELD_OFFSETS["DirectQueueFormatName.DirectFormatName"]
_CLASS_SLOT, _CLASS_AT = _MESSAGE["MessagePropertiesHeader.MessageClass"][:2]
_BODY_SIZE_AT: Final = _MESSAGE["MessagePropertiesHeader.MessageSize"][1]
_LABEL_SLOT, _LABEL_AT, _LABEL_END_SLOT, _ = _MESSAGE["MessagePropertiesHeader.Label"]
_TAIL_SLOT, _TAIL_AT, _TAIL_END_SLOT, _ = _MESSAGE["TrailingData"]
_EXTENSION_SIZE_MIN: Final = least_size(EXTENSION_HEADER)
_COUNTED_AT: Final = field_offset(EXTENSION_HEADER, "RemainingHeadersSize")
_LABEL: Final = np.frombuffer(f"{ACK_LABEL}\0".encode("utf-16-le"), np.uint8)
_ORDER_QUEUE: Final = np.frombuffer(f"\\private$\\{ORDER_QUEUE_NAME}".encode("utf-16-le"), np.uint16).copy()
_ORDER_CLASS: Final = ORDER_ACK.defaults["MessagePropertiesHeader.MessageClass"]
_FINAL_CLASS: Final = FINAL_ACK.defaults["MessagePropertiesHeader.MessageClass"]


@inlined
def packet_length(memory: Any, start: int) -> int:
    """Return how many bytes a packet takes on the stream; -1 for an impossible header.

    The caller has checked that there are `PREFIX_SIZE` bytes.
    """
    size = u32(memory, start + SIZE_AT)
    if (
        memory[start] != VERSION
        or u32(memory, start + SIGNATURE_AT) != SIGNATURE
        or size < PACKET_SIZE_MIN
        or size > PACKET_SIZE_MAX
    ):
        return -1
    flags = u16(memory, start + _FLAGS_AT)
    return size + SESSION_HEADER_SIZE if flags & _SESSION and not flags & _INTERNAL else size


@inlined
def begins_packet(memory: Any, start: int, stop: int) -> bool:
    """Whether bytes could begin a packet, as far as they go: `msmqwire.framing.begins_packet`."""
    if memory[start] != VERSION:
        return False
    if stop - start >= PREFIX_SIZE:
        return packet_length(memory, start) >= 0
    for i in range(SIGNATURE_AT, min(_SIGNATURE_END, stop - start)):
        if memory[start + i] != _SIGNATURE_BYTES[i - SIGNATURE_AT]:
            return False
    return True


@inlined
def is_doubtful(memory: Any, start: int, kind: int, field_offsets: Any, r: int) -> bool:
    """Whether a packet is malformed, or a message with the beginning of another packet in its TrailingData.

    It ends where its size says only if a packet follows there, or nothing: see `PacketFinder`.
    """
    if kind > FINAL:
        return kind == BAD
    tail, stop = tail_start(field_offsets, r), field_offsets[r, _TAIL_END_SLOT]
    return tail < stop and _may_hide_packet(memory, start + tail, start + stop)


@inlined
def tail_start(field_offsets: Any, r: int) -> int:
    """Return where the TrailingData of a message begins."""
    return field_offsets[r, _TAIL_SLOT] + _TAIL_AT


@jit
def has_unexplained_tail(memory: Any, start: int, kind: int, field_offsets: Any, r: int) -> bool:
    """Whether a packet has bytes behind its last header that are no ExtensionHeader: `msmqwire.packets`."""
    if kind > FINAL:
        return False
    tail, stop = tail_start(field_offsets, r), field_offsets[r, _TAIL_END_SLOT]
    size = stop - tail
    if size <= 0:
        return False
    if size < _EXTENSION_SIZE_MIN:
        return True
    header, counted = u32(memory, start + tail), u32(memory, start + tail + _COUNTED_AT)
    return not _EXTENSION_SIZE_MIN <= header <= size or counted != size - header


@jit
def _may_hide_packet(memory: Any, start: int, stop: int) -> bool:
    p = start
    while p < stop and not begins_packet(memory, p, stop):
        p += 1
    return p < stop


@jit
def refuse_base(memory: Any, start: int, stop: int, field_offsets: Any, r: int) -> bool:
    """Refuse the bytes if they have no possible BaseHeader: `msmqwire.packets.parse`; return whether."""
    size = stop - start
    if size and memory[start] != VERSION:
        refuse(field_offsets, r, OTHER_VERSION, 0, u8(memory, start), 0, 0)
    elif size >= _SIGNATURE_END and u32(memory, start + SIGNATURE_AT) != SIGNATURE:
        refuse(field_offsets, r, OTHER_SIGNATURE, SIGNATURE_AT, u32(memory, start + SIGNATURE_AT), 0, 0)
    elif size < BASE_HEADER_SIZE:
        refuse(field_offsets, r, CUT_BASE, size, size, 0, 0)
    elif packet_length(memory, start) < 0:
        refuse(field_offsets, r, IMPOSSIBLE_SIZE, SIZE_AT, u32(memory, start + SIZE_AT), 0, 0)
    else:
        return False
    return True


@jit
def find_header(memory: Any, start: int, stop: int) -> int:
    """Return the next offset at which a packet could begin; -1 for none: `msmqwire.framing.find_header`."""
    p = start + SIGNATURE_AT + 3
    while p < stop:  # of any four bytes in a row, one is in a signature that covers them
        byte = memory[p]
        if byte == 0x4C or byte == 0x49 or byte == 0x4F or byte == 0x52:
            for first in range(p - 3, min(p, stop - 4) + 1):
                header = first - SIGNATURE_AT
                if u32(memory, first) == SIGNATURE and memory[header] == VERSION:
                    if stop - header < PREFIX_SIZE or packet_length(memory, header) >= 0:
                        return header
        p += 4
    return -1


@exported
@jit
def session_packet(memory: Input, start: int, stop: int, field_offsets: Int32Rows, r: int) -> int:
    """Return the kind of the packet in these bytes and write its field offsets.

    It is BAD, with a refusal in place of the offsets, for malformed ones, and if there are fewer bytes than
    PacketSize says. The caller has checked the BaseHeader; see `msmqwire.tables.compiled.generated`.
    """
    flags = u16(memory, start + _FLAGS_AT)
    if not flags & _INTERNAL:
        kind, end = USER, user_message(memory, start, stop, field_offsets, r)
        if end >= 0:
            kind = _message_kind(memory, start, field_offsets, r)
    elif stop - start < _KIND_END:  # a field of the InternalHeader is cut off
        kind, end = BAD, session_ack(memory, start, stop, field_offsets, r)
    else:
        number = u16(memory, start + _KIND_AT) & _KIND_MASK
        if number == PT_SESSION_ACK and flags & _SESSION:
            kind, end = ACK, session_ack(memory, start, stop, field_offsets, r)
        elif number == PT_ESTABLISH_CONNECTION:
            kind, end = ESTABLISH, establish_connection(memory, start, stop, field_offsets, r)
        elif number == PT_CONNECTION_PARAMETERS:
            kind, end = PARAMETERS, connection_parameters(memory, start, stop, field_offsets, r)
        elif number == PT_SESSION_ACK:
            kind, end = BAD, refuse(field_offsets, r, NO_SESSION_HEADER, _FLAGS_AT, 0, 0, 0)
        else:
            kind, end = BAD, refuse(field_offsets, r, NOT_INTERNAL, _KIND_AT, number, 0, 0)
    if end >= 0 and end != stop and kind != BAD:
        end = refuse(field_offsets, r, OTHER_SIZE, SIZE_AT, end - start, stop - start, 0)
    return BAD if end == REFUSED else kind


@jit
def _message_kind(memory: Any, start: int, field_offsets: Any, r: int) -> int:
    """Return the kind of a message: [MS-MQQB] 3.1.5.1.1; BAD, with a refusal, for a malformed FinalAck."""
    label = start + field_offsets[r, _LABEL_SLOT] + _LABEL_AT
    if start + field_offsets[r, _LABEL_END_SLOT] - label != _LABEL.size or u16(memory, start + _FLAGS_AT):
        return USER
    for i in range(_LABEL.size):
        if memory[label + i] != _LABEL[i]:
            return USER
    if not is_order_queue(memory, start):
        return USER
    properties = field_offsets[r, _CLASS_SLOT]
    message_class = u16(memory, start + properties + _CLASS_AT)
    size = u32(memory, start + properties + _BODY_SIZE_AT)
    if message_class >= _FINAL_CLASS:
        if size == ACK_BODY_SIZE:
            return FINAL
        refuse(field_offsets, r, FINAL_ACK_SIZE, properties + _BODY_SIZE_AT, size, 0, 0)
        return BAD
    return ORDER if message_class == _ORDER_CLASS and size == ACK_BODY_SIZE else USER


@jit
def is_order_queue(memory: Any, start: int) -> bool:
    """Whether the destination of a message is an order queue: [MS-MQQB] 3.1.5.1.1."""
    kind = u32(memory, start + _USER_FLAGS_AT) >> _QUEUE_KIND_SHIFT & 7
    if kind == AT_DESTINATION:
        return bool(u32(memory, start + _NUMBER_AT) == ORDER_QUEUE_IDENTIFIER)
    if kind != DIRECT:
        return False
    name, end = start + _NAME_AT, start + _NAME_AT + u16(memory, start + _COUNT_AT)
    tail = end - 2 - 2 * _ORDER_QUEUE.size
    if tail < name or not is_text(memory, name, end):
        return False
    for i in range(_ORDER_QUEUE.size):
        unit = u16(memory, tail + 2 * i)
        if 0x41 <= unit <= 0x5A:
            unit += 0x20
        if unit != _ORDER_QUEUE[i]:
            return False
    return True
