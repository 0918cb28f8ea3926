"""Targets for message bodies: by type, by content, with headers, and the framing of WCF."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

from fuzz.readers.inputs import vectors
from fuzz.readers.registry import target
from msmqwire.bodies import (
    FORMATS,
    HEADERS_FORMATS,
    decode,
    inspect_body,
    nrbf,
    plain,
    read_nmf,
    wcf,
    whole_text,
)
from msmqwire.bodies.body import Plain
from msmqwire.bodies.limits import DEFAULT, Budget
from msmqwire.bodies.nrbf import gadgets
from msmqwire.constants import VarEnum
from msmqwire.errors import MalformedBody

XML = (
    "<?xml version='1.0'?><int>5</int>", "<dateTime>2020-01-02T03:04:05.1234567+01:00</dateTime>",
    "<base64Binary>AAAA</base64Binary>", "<decimal>-1.50</decimal>", "<double>INF</double>",
    "<string xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:nil='true'/>",
    "<!DOCTYPE a><a/>", "<!-- a --><a><b c='d'/></a>", "<guid>557358d1-9150-9595-4997-0c1a2b3c4d5e</guid>",
    "<boolean>1</boolean>", "<char>65</char>", "<unsignedLong>18446744073709551615</unsignedLong>",
)  # fmt: skip
TYPES = tuple(int(kind) for kind in VarEnum)


def _numbered() -> Iterator[bytes]:
    for number in range(2 * len(TYPES)):
        yield bytes([number]) + bytes.fromhex("00 00 f0 3f 01 00 00 00")
        yield bytes([number]) + "text\0".encode("utf-16-le")
    yield b"\xff\0\0\0\1" + b"body"


@target(seeds=_numbered, words=lambda: (b"\xff\xfe", b"\0\0"), size_max=128)
def typed(data: bytes) -> None:
    """A body of any type is read, or refused where it can't be of that type."""
    if not data:
        return
    kinds = (*TYPES, *(kind | VarEnum.VT_VECTOR for kind in TYPES))
    body_type = kinds[data[0]] if data[0] < len(kinds) else int.from_bytes(data[1:5], "little")
    _is_read(data[5 if data[0] >= len(kinds) else 1 :], body_type)


def _is_read(body: bytes, body_type: int, extension: bytes = b"") -> None:
    """Decode a message, and check that all reported values can be written and are within it."""
    try:
        found = decode(body, body_type=body_type, extension=extension)
    except MalformedBody as exc:
        assert exc.why
        assert exc.offset is None or 0 <= exc.offset <= len(body)
        found = inspect_body(body, body_type=body_type, extension=extension)
        assert found.problems
    assert found.format in FORMATS
    assert found.headers_format is None or found.headers_format in HEADERS_FORMATS
    assert len(found.text) <= plain.LINE_MAX
    assert "\n" not in found.text
    assert plain.dumps(found.value)
    assert all(isinstance(text, str) for one in found.headers.items() for text in one)
    for problem in found.problems:
        room = len(extension) if problem.path.startswith("extension") else len(body)
        assert problem.error
        # An offset in unpacked gzip or base64 counts unpacked bytes.
        assert found.format != "text" or problem.offset is None or 0 <= problem.offset <= room
    whole_text(body, found)


def _contents() -> Iterator[bytes]:
    yield from vectors("bodies/*.hex")
    yield from (text.encode() for text in XML)
    yield from (text.encode("utf-16") for text in XML)
    yield bytes.fromhex("0001000000FFFFFFFF01000000000000000C02000000")


@target(
    seeds=_contents,
    words=lambda: (
        b"<!--",
        b"-->",
        b"<![CDATA[",
        b"]]>",
        b"<?xml",
        b"?>",
        b"&lt;",
        b"<!DOCTYPE",
        b"</int>",
        b"xsi:nil",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
    ),
)
def contents(data: bytes) -> None:
    """A body without a type is read by its content: XML, text, .NET's formats."""
    _is_read(data, 0)


HEADERS = (
    b'\xef\xbb\xbf<?xml version="1.0"?><ArrayOfHeaderInfo xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
    b"<HeaderInfo><Key>NServiceBus.ContentType</Key><Value>application/json</Value></HeaderInfo>"
    b"</ArrayOfHeaderInfo>\0\0",
    b'{"rbs2-content-type": "application/json;charset=utf-8", "rbs2-msg-type": "Order, Orders"}',
)
_MESSAGES = (
    b'{"$type": "Order, Orders", "Number": 7, "Total": 1.50}', b"<Order><Number>7</Number></Order>",
    b'{"messageId": "1", "messageType": ["urn:message:Order"], "message": {"number": 7}}', b"[1, 2",
    gzip.compress(b'{"a": [1, null, true]}', mtime=0),
)  # fmt: skip


def _messages() -> Iterator[bytes]:
    for extension in (b"", *HEADERS):
        for body in _MESSAGES:
            yield len(extension).to_bytes(2, "little") + extension + body


@target(
    seeds=_messages,
    words=lambda: (
        b"<HeaderInfo>", b"<Key>", b"</Value>", b"NServiceBus.ContentType", b"rbs2-content-type", b"$type",
        b"text/xml", b"messageType", b"\\u0000", b"&#x1b;", b"1e400", b"\x1f\x8b\x08",
    ),
    size_max=2048,
)  # fmt: skip
def messages(data: bytes) -> None:
    """A body with the extension before it: headers of frameworks, which say what the body is."""
    size = int.from_bytes(data[:2], "little")
    _is_read(data[2 + size :], 0, data[2 : 2 + size])


_PREAMBLE = b"\0\1\0\1\4\2\1u\3"
_ENVELOPE = (
    '<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Body><Submit xmlns="http://tempuri.org/">'
    "<Id>5</Id><Name>Jos\u00e9 &amp; Co</Name></Submit></s:Body></s:Envelope>"
)
_MTOM = (
    b"--b\r\nContent-ID: <0>\r\n\r\n<a><x:Include href='cid:1' "
    b"xmlns:x='http://www.w3.org/2004/08/xop/include'/></a>\r\n--b\r\nContent-ID: <1>\r\n\r\nbytes\r\n--b--"
)
# A value of each kind, a list and an array.
_RECORDS = bytes.fromhex(
    "400172 80 8286 8805 8a0001 8c00000001 a4808286a6 98026162 b60461006200 9e020102 aa02 bc0002"
    "0340016101 8d02 0100000002000000 01"
)


def _wcf() -> Iterator[bytes]:
    yield from vectors("bodies/wcf_*.hex")
    yield from vectors("bodies/nbf*.hex")
    for encoding in (0, 1, 3, 7, 8):
        yield wcf.write({"via": "u", "encoding": encoding, "xml": _ENVELOPE}, None)
    for mode in ("SingletonUnsized", "Duplex", "Simplex"):
        yield wcf.write({"via": "u", "encoding": 8, "mode": mode, "xml": _ENVELOPE}, None)
    yield _PREAMBLE + b"\6" + _MTOM
    yield _PREAMBLE + b"\7" + _RECORDS
    packed = gzip.compress(b"\x40\1a\x99\1b", mtime=0)
    yield _PREAMBLE[:-1] + b"\4\x1capplication/soap+msbin1+gzip" + packed


@target(
    seeds=_wcf,
    words=lambda: (
        _PREAMBLE, b"\x56\2\x0b\1", b"\x44\x0a\x1e\0\x82", b"\3\x40\1a\1\x8d", b"\xa4\x80\xa6", b"\x99\3",
        b"\xab\1", b"\x0c\6", b"\0\7", b"\r\n--b\r\n", b"<![CDATA[", b"&#0;", b"xmlns:",
    ),
    size_max=1024,
)  # fmt: skip
def messages_of_wcf(data: bytes) -> None:
    """A message of WCF is read to XML, with places that are in the body; what is in order is written back."""
    if not wcf.recognises(data):
        data = _PREAMBLE + data
    try:
        read = wcf.read(data, Budget(DEFAULT, len(data)))
    except MalformedBody:
        return
    assert read.text.encode() is not None
    assert all(problem.offset is None or problem.offset <= len(data) for problem in read.problems)
    value = read.value
    assert isinstance(value, dict)
    if not read.problems and value["encoding"] in (7, 8):
        assert wcf.read(wcf.write(value, None), Budget(DEFAULT, len(data))).value == value


@target(
    seeds=lambda: vectors("bodies/*.hex"),
    words=lambda: (b"net.msmq://", b"\0\1\0\1", b"\3\x08", b"\2\4"),
    size_max=512,
)
def framed(data: bytes) -> None:
    """The records of .NET message framing, in bounds: what is left after them is the message."""
    read = read_nmf(data)
    if read is not None:
        assert data.endswith(read.message)
        assert read.summary
        assert read.via.encode() in data[: len(data) - len(read.message)]


def _streams() -> Iterator[bytes]:
    yield from vectors("bodies/nrbf_*.hex")
    values: tuple[Plain, ...] = (
        "text",
        5,
        [1, None, "a", [2.5]],
        ["a", None, None],
        [{"$date": "2026-01-01"}],
    )
    yield from map(nrbf.write, values)
    yield nrbf.write([1, 2], "System.Collections.Generic.List`1[[System.Int32]]")


@target(
    seeds=_streams,
    words=lambda: (
        b"\x01\3\0\0\0\2\0\0\0", b"\x09\1\0\0\0", b"\x0d\xff", b"\x0e\xff\xff\xff\x7f", b"\x06\5\0\0\0\1a",
        b"\x10\6\0\0\0\2\0\0\0", b"\x0c\2\0\0\0\1L", b"\x07\7\0\0\0\2\2\0\0\0", b"AAEAAAD/////",
    ),
    size_max=4096,
)  # fmt: skip
def serialized(data: bytes) -> None:
    """The records of BinaryMessageFormatter, and the types that they name."""
    _is_read(data, 0x300)
    names = gadgets.type_names(data)
    assert len(set(names)) == len(names)
    assert all(source for _, source in gadgets.dangerous(names))
