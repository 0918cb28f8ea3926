"""Checks of bytes that can't be read as an SRMP message: the requirement, and patterns of known attacks.

Parsing stops at the first invalid byte. Head and envelope are looked at apart from each other here, so that
an attack is seen after another fault. No bytes make this raise.

| id | pattern |
| --- | --- |
| ATTACK-HTTP-LENGTH | Content-Length beside Transfer-Encoding, one of them twice, folded or not of its form: readers differ in the end of the message (request smuggling) |
| ATTACK-HTTP-LINE | a line of the head that ends without CRLF, has a blank before its colon, a control character or no colon: readers differ in the fields (request smuggling) |
| ATTACK-HTTP-CHUNK | a chunk without a size, beyond its size or the limit, or a length after the chunks |
| ATTACK-HTTP-FLOOD | more header fields, a larger head or more parts than any message has |
| ATTACK-MIME-PART | a part that readers cut or name differently: a length that does not lead to a delimiter, a field or a payload twice |
| ATTACK-XML-ENTITY | a document type or entity: billion laughs, quadratic blow-up, external entities |
| ATTACK-XML-DEPTH | elements deeper in each other than any envelope has them |
| ATTACK-XML-SIZE | more elements, a larger start tag (hundreds of attributes) or a larger envelope than any message has |
| ATTACK-XML-ENCODING | an envelope that is not UTF-8, or says so |

ATTACK-LENGTH and ATTACK-TRUNCATED are those of `msmqwire.analysis.lint.attacks`: a Content-Length above the limit, or of
more bytes than are there.
"""  # noqa: E501

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from msmqwire.analysis.lint.attacks import LENGTH, TRUNCATED
from msmqwire.analysis.lint.finding import Finding
from msmqwire.analysis.lint.registry import Check, listed
from msmqwire.analysis.lint.srmp import DEPARTURES, lint_srmp
from msmqwire.analysis.lint.srmp_bodies import SRMP
from msmqwire.errors import MalformedPacket
from msmqwire.names.printable import agreed, counted
from msmqwire.srmp.elements import Element, Group
from msmqwire.srmp.fields import (
    CONTENT_LENGTH,
    CONTENT_TYPE,
    FIELD_COUNT_MAX,
    HEAD_SIZE_MAX,
    TRANSFER_ENCODING,
    parse_media_type,
)
from msmqwire.srmp.http_message import HEADER_FIELDS
from msmqwire.srmp.limits import ENTITY_SIZE_MAX
from msmqwire.srmp.message import parse_message
from msmqwire.srmp.multipart import PART_COUNT_MAX, PARTS
from msmqwire.srmp.scan import NOT_XML, SIZE_MAX, HostileXml, Hostility, scan
from msmqwire.srmp.schema import ENVELOPE


def _attack(id: str, title: str, path: str = "") -> Check:
    return listed(id, title, path, SRMP, "ATTACK")


HTTP_LENGTH: Final = _attack("ATTACK-HTTP-LENGTH", "Readers differ in where an HTTP message ends")
HTTP_LINE: Final = _attack(
    "ATTACK-HTTP-LINE", "Readers split the lines of the head differently", HEADER_FIELDS
)
HTTP_CHUNK: Final = _attack("ATTACK-HTTP-CHUNK", "A chunk can't be")
HTTP_FLOOD: Final = _attack("ATTACK-HTTP-FLOOD", "There are more header fields or parts than any message has")
MIME_PART: Final = _attack("ATTACK-MIME-PART", "Readers split the parts differently")
XML: Final = {
    Hostility.ENTITIES: _attack(
        "ATTACK-XML-ENTITY", "The envelope has a document type or entity", "Envelope"
    ),
    Hostility.DEPTH: _attack(
        "ATTACK-XML-DEPTH", "Elements are nested deeper than in any envelope", "Envelope"
    ),
    Hostility.AMOUNT: _attack(
        "ATTACK-XML-SIZE", "There are more elements or attributes than in any envelope", "Envelope"
    ),
    Hostility.ENCODING: _attack("ATTACK-XML-ENCODING", "The envelope is not UTF-8", "Envelope"),
}


def _refusals() -> Iterator[tuple[str, str]]:
    """Yield the requirements for which an envelope is refused, with a title: see `reading`."""
    yield NOT_XML, "The envelope is not well-formed XML, or not harmless"
    yield "SRMP-2.2.4.3-07", "id is not an identifier, and Msmq is there"
    yield "SRMP-2.2.5.3-03", "stream stands without Msmq"
    elements: list[Element] = [ENVELOPE]
    while elements:
        element = elements.pop()
        for id in {element.req[0], element.req[-1]}:
            yield id, f"{element.name} is missing, repeated, out of its place or malformed"
        if isinstance(element, Group):
            elements += element.children
            if element.must_understand:
                yield element.must_understand, f'{element.name} lacks se:mustUnderstand="1"'
            if element.refuses:
                yield element.refuses, f"Something unknown in {element.name} has to be understood"


REFUSALS: Final = {
    id: listed(f"{id}-FORM" if id in DEPARTURES else id, title, "", SRMP)
    for id, title in dict(_refusals()).items()
}
"""The reasons to refuse an envelope, by requirement."""
NOT_MIME: Final = listed("SRMP-2.2.2-17", "Parts, delimiters and lengths contradict each other", "", SRMP)
NOT_CONFORMING: Final = listed("SRMP-3.1.5.1.2-01", "The bytes are not a message of chapter 2", "", SRMP)

_HEAD_SEEN_MAX: Final = 4 * HEAD_SIZE_MAX
_OLD: Final = b"HTTP/1.0"
_NUMBER: Final = re.compile(rb"[0-9]{1,19}")
_CONTROL: Final = re.compile(rb"[\0-\x08\x0a-\x1f\x7f]")
_LINE: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:")
_XML_START: Final = re.compile(rb"\xef\xbb\xbf|\xff\xfe|\xfe\xff|<\0|\0<|<[?!A-Za-z_]")
_XML_END: Final = re.compile(rb"</(?:[\w.-]{1,64}:)?Envelope[ \t\r\n]{0,64}>")


def lint_malformed_srmp(data: bytes, error: MalformedPacket) -> list[Finding]:
    """Return the findings about bytes that are not an SRMP message, in their order.

    `error` is that of `msmqwire.srmp.message.parse_message`.
    """
    found = [_refusal(error), *_of_error(error, data)]
    head = _Head(data)
    found += _head(head, data)
    found += _envelope(head, data)
    return sorted(dict.fromkeys(found), key=lambda finding: finding.offset)


def _refusal(error: MalformedPacket) -> Finding:
    """Return the requirement that the parser saw broken."""
    check = REFUSALS.get(error.requirement)
    if check is None:
        check = NOT_MIME if error.path.startswith(PARTS) else NOT_CONFORMING
    return check.at(error.path, error.offset or 0, error.why)


def _of_error(error: MalformedPacket, data: bytes) -> Iterator[Finding]:
    """Yield the attack that the parser stopped at, after the head."""
    if (error.offset or 0) >= len(data):
        return  # the bytes end there
    if error.path.startswith("Chunking"):
        yield HTTP_CHUNK.at(error.path, error.offset or 0, error.why)
    elif error.path.startswith(f"{PARTS}["):
        yield MIME_PART.at(error.path, error.offset or 0, error.why)


# --- the head ----------------------------------------------------------------------------------------------


class _Line(NamedTuple):
    offset: int
    text: bytes  # without its line feed


class _Head:
    """The lines in front of an entity, however they end; none in front of an envelope alone.

    Attributes:
        first: the request line or status line.
        lines: the header fields.
        end: the beginning of the entity.
        whole: whether there is an end.
    """

    def __init__(self, data: bytes) -> None:
        self.lines: list[_Line] = []
        self.end, self.whole = 0, True
        self.first = _Line(0, b"")
        if not data[:1].isalpha():
            return
        at, self.whole = 0, False
        while not self.whole and at < min(len(data), _HEAD_SEEN_MAX):
            feed = data.find(b"\n", at, _HEAD_SEEN_MAX)
            stop = min(len(data), _HEAD_SEEN_MAX) if feed < 0 else feed
            line = _Line(at, data[at:stop])
            if at and line.text in (b"", b"\r") and feed >= 0:
                self.whole = True
            elif at:
                self.lines.append(line)
            else:
                self.first = line
            at = stop + 1
        self.end = min(at, len(data))

    def values(self, name: str) -> list[tuple[int, bytes, bool]]:
        """Return offset and value of the fields of a name, and whether they go on in a further line."""
        found = []
        for number, (offset, text) in enumerate(self.lines):
            written, colon, value = text.partition(b":")
            if colon and written.strip().lower() == name.lower().encode():
                after = self.lines[number + 1].text[:1] if number + 1 < len(self.lines) else b""
                found.append((offset, value.strip(), after in (b" ", b"\t")))
        return found


def _head(head: _Head, data: bytes) -> Iterator[Finding]:
    fields = [line for line in head.lines if line.text[:1] not in (b" ", b"\t")]
    if len(fields) > FIELD_COUNT_MAX:
        why = f"{counted(len(fields), 'header field')}, more than {FIELD_COUNT_MAX:,}"
        yield HTTP_FLOOD.at(HEADER_FIELDS, fields[FIELD_COUNT_MAX].offset, why)
    if head.end > HEAD_SIZE_MAX:
        yield HTTP_FLOOD.at(HEADER_FIELDS, HEAD_SIZE_MAX, f"a head of more than {HEAD_SIZE_MAX} bytes")
    for number, line in enumerate((head.first, *head.lines)):
        why = _strange(line.text, number, at_end=line.offset + len(line.text) >= len(data))
        if why:
            yield HTTP_LINE.at(HEADER_FIELDS, line.offset, why)
            break  # one says enough: there may be thousands
    yield from _lengths(head, data)


def _strange(text: bytes, number: int, *, at_end: bool) -> str:
    """Return why readers take a line for different things; empty if they do not."""
    if at_end or not text:
        return ""
    if not text.endswith(b"\r"):
        return "a line feed without a carriage return"
    text = text[:-1]
    if _CONTROL.search(text):
        return "a control character"
    if text[:1] in (b" ", b"\t"):
        return "the first field begins with a blank" if number < 2 else ""
    if number and not _LINE.match(text):
        name, colon, _ = text.partition(b":")
        return "a blank before the colon" if colon and name.rstrip() != name else "not a header field"
    return ""


def _lengths(head: _Head, data: bytes) -> Iterator[Finding]:
    lengths, codings = head.values(CONTENT_LENGTH), head.values(TRANSFER_ENCODING)
    length_path, coding_path = f"{HEADER_FIELDS}.{CONTENT_LENGTH}", f"{HEADER_FIELDS}.{TRANSFER_ENCODING}"
    if lengths and codings:
        why = f"{CONTENT_LENGTH} and {TRANSFER_ENCODING}"
        yield HTTP_LENGTH.at(coding_path, codings[0][0], why)
    for path, values in ((length_path, lengths), (coding_path, codings)):
        if len(values) > 1:
            shown = ", ".join(repr(value.decode("latin-1"))[:40] for _, value, _ in values[:4])
            yield HTTP_LENGTH.at(path, values[1][0], f"given {len(values)} times: {shown}")
        if values and values[0][2]:
            yield HTTP_LENGTH.at(path, values[0][0], "it goes on in a further line")
    if codings and (codings[0][1].lower() != b"chunked" or _OLD in head.first.text):
        version = " in HTTP/1.0" if _OLD in head.first.text else ""
        why = f"{codings[0][1].decode('latin-1')!r:.80}{version} instead of 'chunked' in HTTP/1.1"
        yield HTTP_LENGTH.at(coding_path, codings[0][0], why)
    if not lengths:
        return
    offset, value, _ = lengths[0]
    if not _NUMBER.fullmatch(value):
        yield HTTP_LENGTH.at(length_path, offset, f"{value.decode('latin-1')!r:.80} is not a number")
    elif int(value) > ENTITY_SIZE_MAX:
        yield LENGTH.at(length_path, offset, f"{counted(int(value), 'byte')}, more than {ENTITY_SIZE_MAX:,}")
    elif head.whole and not codings and int(value) > len(data) - head.end:
        yield TRUNCATED.at(
            length_path,
            offset,
            f"{counted(int(value), 'byte')}, and {agreed(len(data) - head.end, 'are')} there",
        )


# --- parts and envelope ------------------------------------------------------------------------------------


def _envelope(head: _Head, data: bytes) -> Iterator[Finding]:
    delimiter = _delimiter(head)
    start = head.end
    if delimiter and data.startswith(delimiter, start):
        if data.count(delimiter, start) > PART_COUNT_MAX + 1:
            yield HTTP_FLOOD.at(PARTS, start, f"more than {PART_COUNT_MAX} parts")
        head_end = data.find(b"\r\n\r\n", start, start + HEAD_SIZE_MAX)
        start = start if head_end < 0 else head_end + 4
    first = _XML_START.search(data, start)
    if first is None or not head.whole:
        return
    start = first.start()
    last = _XML_END.search(data, start)
    next_part = data.find(delimiter, start) if delimiter else -1
    end = last.end() if last else next_part if next_part >= 0 else len(data)
    document = data[start : min(end, start + SIZE_MAX + 1)]
    try:
        scan(document)
    except HostileXml as exc:
        offset = exc.offset or 0
        cut = end == len(data) and last is None and offset + 4 > len(document)
        if not (exc.hostility is Hostility.ENCODING and cut):  # half a character
            yield XML[exc.hostility].at("Envelope", start + offset, exc.why)
    except MalformedPacket:
        return  # not an attack


def _delimiter(head: _Head) -> bytes:
    """Return the boundary of the parts, by the first Content-Type; empty if it gives none."""
    for _, value, _ in head.values(CONTENT_TYPE):
        media_type = parse_media_type(value.decode("latin-1"))
        boundary = "" if media_type is None else media_type[1].get("boundary", "")
        return b"--" + boundary.encode("latin-1") if boundary else b""
    return b""


def lint_srmp_bytes(data: bytes) -> list[Finding]:
    """Return the findings about bytes that are a message, or none."""
    try:
        return lint_srmp(parse_message(data))
    except MalformedPacket as error:
        return lint_malformed_srmp(data, error)
