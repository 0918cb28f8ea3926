"""The lines, parts and elements of a message of SRMP, each with the bytes that it stands in."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from msmqwire.analysis.lint.srmp_offsets import PartOffsets
from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.names.printable import cut, safe
from msmqwire.schema.display import PlacedField
from msmqwire.schema.showing import TEXT_MAX
from msmqwire.srmp.http_message import HEADER_FIELDS
from msmqwire.srmp.message import SrmpMessage
from msmqwire.srmp.multipart import PARTS, Multipart


def placed_fields(message: SrmpMessage, raw: bytes) -> Iterator[PlacedField]:
    """Yield the lines, parts and elements of a message: each up to where the next begins."""
    try:
        starts = _starts(message)
    except (InvalidValue, MalformedPacket):
        return
    places = sorted({offset: path for path, offset in reversed(starts) if offset < len(raw)}.items())
    for (offset, path), (end, _) in pairwise([*places, (len(raw), "")]):
        text = raw[offset : min(end, offset + TEXT_MAX)].decode("utf-8", "replace").strip()
        yield PlacedField(path, offset, end - offset, cut(safe(text), TEXT_MAX))


def _starts(message: SrmpMessage) -> list[tuple[str, int]]:
    places = PartOffsets(message)
    starts = [] if message.start is None else [("StartLine", 0)]
    paths = [f"{HEADER_FIELDS}.{field.name}" for field in message.fields]
    if isinstance(message.content, Multipart):
        for number, part in enumerate(message.content.parts):
            name = f"{PARTS}[{number}]"
            paths += [name, *(f"{name}.{HEADER_FIELDS}.{field.name}" for field in part.fields)]
            starts.append((f"{name}.content", places.content_of(number)))
    if message.envelope is not None:
        paths += message.envelope.offsets
    return [*((path, places.of(path)) for path in paths), *starts]
