"""The fields of a packet of any protocol, each with the bytes that it stands in."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from pkgutil import resolve_name
from typing import Any

from msmqwire.analysis.dissection.item import Item
from msmqwire.analysis.protocols import protocol_of
from msmqwire.errors import MalformedPacket
from msmqwire.headers.base import FLAGS_OFFSET, INTERNAL_BIT, SIGNATURE_BYTES, SIGNATURE_END, SIGNATURE_OFFSET
from msmqwire.names.printable import cut, safe
from msmqwire.packets import ESTABLISH_CONNECTION, USER_MESSAGE
from msmqwire.schema import Record
from msmqwire.schema.display import PlacedField
from msmqwire.schema.nodes import Maybe, Sub
from msmqwire.schema.showing import TEXT_MAX
from msmqwire.schema.showing import placed_fields as _of_record


def placed_fields(item: Item) -> Iterator[PlacedField]:
    """Yield the fields of an item; of a malformed one the field at which reading ended."""
    match item.packet:
        case None:
            if item.error is not None and item.raw:
                offset = min(item.error.offset or 0, len(item.raw) - 1)
                yield from _headers_before(item.raw, offset)
                why = cut(safe(item.error.why), TEXT_MAX)
                yield PlacedField(item.error.path or "(not read)", offset, len(item.raw) - offset, why)
        case Record() as record:
            yield from _of_record(record)
        case packet if (protocol := protocol_of(packet)) is not None:
            yield from resolve_name(protocol.packets.placed_fields)(packet, item.raw)


def _headers_before(raw: bytes, end: int) -> Iterator[PlacedField]:
    """Yield the fields of a malformed session packet, up to the header in which reading ended."""
    if raw[SIGNATURE_OFFSET:SIGNATURE_END] != SIGNATURE_BYTES:
        return
    is_internal = raw[FLAGS_OFFSET] & INTERNAL_BIT
    parts = ESTABLISH_CONNECTION.parts[:2] if is_internal else USER_MESSAGE.parts
    read: dict[str, Record] = {}
    at = 0
    for part in parts:
        node = part.node if isinstance(part, Maybe) else part
        if not isinstance(node, Sub):
            return
        if isinstance(part, Maybe) and not _is_marked(read, part.when):
            continue
        try:
            record, stop = node.header.read(raw, at)
        except MalformedPacket:
            return
        yield from (field for field in _of_record(record, at) if field.offset + field.size <= end)
        read[node.name], at = record, stop


def _is_marked(read: dict[str, Record], when: Any) -> bool:
    """Return whether the flag that says that a part is there is set, in a header that was read."""
    header, _, path = str(when).partition(".")
    return header in read and bool(attrgetter(path)(read[header]))
