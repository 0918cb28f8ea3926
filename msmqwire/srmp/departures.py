"""Accepted departures from the way Windows writes messages: [MC-MQSRM] 2.1.1, 2.2.2 and chapter 4.

Reading judges nothing. Departures are read off the value, so that they are the same for a message that was
parsed and for one that was made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from msmqwire.srmp.content import Departure
from msmqwire.srmp.fields import (
    CONTENT_LENGTH,
    CONTENT_TYPE,
    TRANSFER_ENCODING,
    Field,
    find_all,
    parse_media_type,
    value_of,
)
from msmqwire.srmp.http_message import (
    HEADER_FIELDS,
    HOST,
    HTTP_1_1,
    PROXY_ACCEPT,
    REQUEST_LINE,
    SOAP_ACTION,
    STATUS_LINE,
    RequestLine,
    StartLine,
)
from msmqwire.srmp.multipart import (
    BOUNDARY,
    BOUNDARY_PREFIX,
    CONTENT_ID,
    ENVELOPE_TYPE,
    PARTS,
    PAYLOAD_TYPE,
    TEXT_XML,
    Multipart,
    Part,
    multipart_type,
)

_ORDER: Final = (HOST, CONTENT_TYPE, CONTENT_LENGTH, SOAP_ACTION[0], PROXY_ACCEPT[0])
_BOUNDARY: Final = re.compile(re.escape(BOUNDARY_PREFIX) + "[0-9]+")
_GUID: Final = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_PAYLOAD_ID: Final = re.compile(f"(?:body|extension)@{_GUID}")


def departures(
    start: StartLine | None, fields: Sequence[Field], content: Multipart | bytes
) -> list[Departure]:
    """Return the differences of head and parts, those of the head first."""
    found: list[Departure] = []
    if isinstance(start, RequestLine):
        found += _request(start, fields)
        found += _content_type(fields, content)
    elif start is not None:
        status = start.status
        if status not in (200, 400) and not 500 <= status <= 599:
            found.append(Departure("SRMP-2.1.1-13", STATUS_LINE, f"SRMP gives status {status} no meaning"))
    found += _folded(fields, HEADER_FIELDS)
    if isinstance(content, Multipart):
        found += _parts(content)
    return found


def _request(line: RequestLine, fields: Sequence[Field]) -> Iterator[Departure]:
    if line.method != "POST" or line.version != HTTP_1_1:
        text = f"{line.method} and {line.version} instead of POST and {HTTP_1_1}"
        yield Departure("SRMP-2.1.1-04", REQUEST_LINE, text)
    ranks = [[name.lower() for name in _ORDER].index(f.name.lower()) for f in fields if _known(f)]
    if ranks != sorted(ranks):
        yield Departure("SRMP-2.1.1-05", HEADER_FIELDS, f"the order is not {', '.join(_ORDER)}")
    if len(find_all(fields, HOST)) != 1:
        yield Departure("SRMP-2.1.1-06", f"{HEADER_FIELDS}.{HOST}", "missing, or more than one")
    for requirement, (name, expected) in (("SRMP-2.1.1-07", SOAP_ACTION), ("SRMP-2.1.1-08", PROXY_ACCEPT)):
        values = [fields[number].value for number in find_all(fields, name)]
        if values != [expected]:
            text = f"{', '.join(values) or 'missing'} instead of {expected}"
            yield Departure(requirement, f"{HEADER_FIELDS}.{name}", text)
    if find_all(fields, TRANSFER_ENCODING):
        path = f"{HEADER_FIELDS}.{TRANSFER_ENCODING}"
        yield Departure("SRMP-2.1.1-11", path, "chunks instead of a Content-Length")


def _known(field: Field) -> bool:
    return field.name.lower() in [name.lower() for name in _ORDER]


def _content_type(fields: Sequence[Field], content: Multipart | bytes) -> Iterator[Departure]:
    value, path = value_of(fields, CONTENT_TYPE), f"{HEADER_FIELDS}.{CONTENT_TYPE}"
    if not isinstance(content, Multipart):
        if value != TEXT_XML:
            yield Departure("SRMP-2.1.1-10", path, f"{value} instead of {TEXT_XML}")
        return
    expected = multipart_type(content.boundary)
    if value != expected:
        yield Departure("SRMP-2.1.1-09", path, f"{value} instead of {expected}")
    if not _BOUNDARY.fullmatch(content.boundary):
        text = f"the boundary is not {BOUNDARY_PREFIX!r} and a number"
        yield Departure("SRMP-2.2.2-13", BOUNDARY, text)


def _folded(fields: Sequence[Field], path: str) -> Iterator[Departure]:
    """The break in the Content-Type of most examples is page wrapping: 4.4 shows one line."""
    for field in fields:
        if field.folded:
            wrapped = path == HEADER_FIELDS and field.name.lower() == CONTENT_TYPE.lower()
            requirement = "SRMP-2.1.1-09" if wrapped else "SRMP-2.1.1-05"
            yield Departure(requirement, f"{path}.{field.name}", "goes on in a further line")


def _parts(content: Multipart) -> Iterator[Departure]:
    if content.leading_line_break:
        yield Departure("SRMP-2.2.2-14", PARTS, "a line break before the first delimiter")
    for number, part in enumerate(content.parts):
        path = f"{PARTS}[{number}]"
        yield from _folded(part.fields, f"{path}.{HEADER_FIELDS}")
        if number == content.envelope_number:
            if number:
                yield Departure("SRMP-2.2.2-07", path, "the envelope is not the first part")
            yield from _envelope_fields(part, f"{path}.{HEADER_FIELDS}")
        elif part.is_payload:
            yield from _payload_fields(part, f"{path}.{HEADER_FIELDS}")
        else:
            yield Departure("SRMP-2.2.2-07", path, "neither envelope nor body nor extension")
        if part.line_break:
            yield Departure("SRMP-2.2.2-14", path, "a line break before the delimiter after it")
    if not content.final_line_break:
        yield Departure("SRMP-2.2.2-15", PARTS, "no line break after the last delimiter")


def _envelope_fields(part: Part, path: str) -> Iterator[Departure]:
    if [field.name.lower() for field in part.fields] != [CONTENT_TYPE.lower(), CONTENT_LENGTH.lower()]:
        yield Departure("SRMP-2.2.2-09", path, f"not {CONTENT_TYPE}, {CONTENT_LENGTH}")
    media_type = parse_media_type(value_of(part.fields, CONTENT_TYPE) or "")
    if media_type is None or media_type[1].get("charset", "").lower() != "utf-8":
        yield Departure("SRMP-2.2.2-09", f"{path}.{CONTENT_TYPE}", f"not {ENVELOPE_TYPE}")


def _payload_fields(part: Part, path: str) -> Iterator[Departure]:
    names = [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ID]
    if [field.name.lower() for field in part.fields] != [name.lower() for name in names]:
        yield Departure("SRMP-2.2.2-10", path, f"not {', '.join(names)}")
    if value_of(part.fields, CONTENT_TYPE) != PAYLOAD_TYPE:
        yield Departure("SRMP-2.2.2-10", f"{path}.{CONTENT_TYPE}", f"not {PAYLOAD_TYPE}")
    content_id = value_of(part.fields, CONTENT_ID) or ""
    if not _PAYLOAD_ID.fullmatch(content_id):
        requirement = "SRMP-2.2.2-11" if part.has_id("body@") else "SRMP-2.2.2-12"
        yield Departure(requirement, f"{path}.{CONTENT_ID}", f"{content_id} is not a name and a GUID")
