"""Names of queues among the bytes that a signature covers, in the readings of MQMQ-2.5-03."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from struct import Struct
from typing import Any, Final

from msmqwire.crypto.readings import Readings
from msmqwire.headers.queue_format_names import (
    DIRECT_QUEUE_FORMAT_NAME,
    MQF_DIRECT_QUEUE_FORMAT_NAME,
    MQF_DISTRIBUTION_QUEUE_FORMAT_NAME,
    MQF_FORMAT_NAME_ELEMENT,
    PRIVATE_QUEUE_FORMAT_NAME,
    PRIVATE_QUEUE_FORMAT_NAME_ID,
    PUBLIC_QUEUE_FORMAT_NAME,
)
from msmqwire.names.formats import FormatName
from msmqwire.names.header_names import Role, from_mqf_element, from_user_header_queue
from msmqwire.schema import Align, Choice, Guid, Header, Part, Record, Text, UInt
from msmqwire.schema.texts import encode_text

_NULL: Final = b"\0\0"


def reply_queues(user: Record, readings: Readings) -> tuple[bytes, bytes]:
    """Return how ResponseQueue and AdminQueue of a UserHeader go in. Raises InvalidName."""
    if readings.queue_names == "header":  # MQMQ-2.5-03
        return _in_header(user.ResponseQueue, readings), _in_header(user.AdminQueue, readings)
    admin = _name(user, "admin", user.Flags.AQ, user.AdminQueue, None)
    response = _name(user, "response", user.Flags.RQ, user.ResponseQueue, admin)
    return _as_text(response, readings), _as_text(admin, readings)


def destination_queue(user: Record, readings: Readings) -> bytes:
    """Return how DestinationQueue of a UserHeader goes in. Raises InvalidName."""
    queue = user.DestinationQueue
    if readings.queue_names == "header":  # MQMQ-2.5-03
        return _in_header(queue, readings)
    return _as_text(_name(user, "destination", user.Flags.DQ, queue, None), readings)


def format_name_lists(header: Record, readings: Readings) -> bytes:
    """Return how FormatNameList of a MultiQueueFormatHeader goes in: MQMQ-2.5.3-03. Raises InvalidName."""
    lists = [header.Destination]
    if readings.format_name_lists == "all":
        lists += [header.Administration, header.Response]
    items = []
    for addresses in lists:
        elements = addresses.FormatNameList
        if readings.queue_names == "header":
            items += [_element(element) for element in elements]
        elif elements:
            names = ",".join(from_mqf_element(element).text for element in elements)
            items.append(_encoded(names, readings))
    return b"".join(items)


def _name(user: Record, role: Role, kind: int, queue: Any, admin: FormatName | None) -> FormatName | None:
    return from_user_header_queue(
        kind,
        queue,
        role=role,
        source_qm=user.SourceQueueManager,
        destination_qm=user.QueueManagerAddress,
        admin=admin,
    )


def _as_text(name: FormatName | None, readings: Readings) -> bytes:
    return _absent(readings) if name is None else _encoded(name.text, readings)


def _encoded(text: str, readings: Readings) -> bytes:
    # MQMQ-2.5-03
    return text.encode("utf-16-le") + (_NULL if readings.queue_names == "text-with-null" else b"")


def _absent(readings: Readings) -> bytes:
    return _NULL if readings.absent_queues_as_null else b""  # MQMQ-2.5-03


# -- as they are in headers -----------------------------------------------------------------------------


def _in_header(queue: Record | None, readings: Readings) -> bytes:
    return _absent(readings) if queue is None else _WRITERS[queue.schema.name](queue)


def _writer(header: Header) -> Callable[[Record], bytes]:
    """Return the function that writes a structure without padding, which only leads to a boundary and may be
    anything.
    """
    fields = [
        (attrgetter(part.name), _part_writer(part)) for part in header.parts if not isinstance(part, Align)
    ]
    get, write = fields[0]
    if len(fields) == 1:
        return lambda queue: write(get(queue))
    _, (get_second, write_second) = fields
    return lambda queue: write(get(queue)) + write_second(get_second(queue))


def _part_writer(part: Part) -> Callable[[Any], bytes]:
    match part:
        case Guid():
            return attrgetter("bytes_le")
        case UInt():
            return Struct({16: "<H", 32: "<L"}[part.bits]).pack
        case Text():
            return encode_text
    assert isinstance(part, Choice)
    return lambda queue: _WRITERS[queue.schema.name](queue)


_WRITERS: Final = {
    header.name: _writer(header)
    for header in (
        PUBLIC_QUEUE_FORMAT_NAME,
        PRIVATE_QUEUE_FORMAT_NAME,
        PRIVATE_QUEUE_FORMAT_NAME_ID,
        DIRECT_QUEUE_FORMAT_NAME,
        MQF_DIRECT_QUEUE_FORMAT_NAME,
        MQF_DISTRIBUTION_QUEUE_FORMAT_NAME,
    )
}
_element: Final = _writer(MQF_FORMAT_NAME_ELEMENT)
