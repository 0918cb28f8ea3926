"""Targets for message bodies: by type, by content, XML, and the framing of WCF."""

from __future__ import annotations

from collections.abc import Iterator

from fuzz.readers.inputs import vectors
from fuzz.readers.registry import target
from msmqwire.bodies import decode_body, read_nmf
from msmqwire.constants import VarEnum

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
    """A body of any type is read, with its bytes as they came and a text that can be written."""
    if not data:
        return
    kinds = (*TYPES, *(kind | VarEnum.VT_VECTOR for kind in TYPES))
    body_type = kinds[data[0]] if data[0] < len(kinds) else int.from_bytes(data[1:5], "little")
    _is_read(data[5 if data[0] >= len(kinds) else 1 :], body_type)


def _is_read(body: bytes, body_type: int) -> None:
    read = decode_body(body, body_type)
    assert read.raw == body
    assert read.kind
    assert read.text is None or read.text.encode() is not None  # no surrogates: it can be written


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


@target(
    seeds=lambda: vectors("bodies/*.hex"),
    words=lambda: (b"net.msmq://", b"\0\1\0\1", b"\3\x08", b"\2\4"),
    size_max=512,
)
def framed(data: bytes) -> None:
    """The records of .NET message framing, in bounds: what is left behind them is the message."""
    read = read_nmf(data)
    if read is not None:
        assert data.endswith(read.message)
        assert read.summary
        assert read.via.encode() in data[: len(data) - len(read.message)]
