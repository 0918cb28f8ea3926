"""Computed lengths of texts, those held as bytes among them: parsing gives the same texts back."""

from __future__ import annotations

import struct
from typing import Any

import pytest

import msmqwire
from msmqwire.errors import InvalidValue
from msmqwire.headers import MESSAGE_PROPERTIES_HEADER, SOAP_HEADER
from msmqwire.headers.srmp import SRMP_ENVELOPE_HEADER
from msmqwire.packets import USER_MESSAGE
from msmqwire.schema import Header
from msmqwire.schema.codec_support import Refused


def utf16(text: str) -> bytes:
    return text.encode("utf-16-le")


@pytest.mark.requirement("MQRR-2.2.5.1.2.1-04", "MQRR-2.2.5.1.2.1-05")
@pytest.mark.parametrize(
    ("data", "length"),
    [
        (utf16("a\0b\0"), 8),  # 4 would be read as bytes: they are a text
        (bytes(4), 4),
        (utf16("ab\0c\0\0"), 12),
        (utf16("a\0") + b"\0\xd8\0\0", 8),
        (utf16("abc\0d\0"), 6),  # 6 bytes do not end on a null
        (utf16("ab"), 2),
        (b"\0\xd8\0\0", 2),
        (bytes(2), 1),
        (utf16("<a/>\0"), 5),
        (b"", 0),
    ],
    ids=lambda value: value.hex() if isinstance(value, bytes) else str(value),
)
def test_a_computed_length_gives_the_data_back(data: bytes, length: int) -> None:
    expected = struct.pack("<HHI", 0, 0, length) + data + bytes(-len(data) % 4)
    assert SRMP_ENVELOPE_HEADER.build({"Data": data}) == expected
    assert SRMP_ENVELOPE_HEADER.codec.compose_trusted(0, 0, data) == expected
    read = SRMP_ENVELOPE_HEADER.parse(expected)
    assert SRMP_ENVELOPE_HEADER.make({"Data": data}) == read == read.recomputed()


@pytest.mark.requirement("MQRR-2.2.5.1.2.1-04", "MQRR-2.2.5.1.2.1-05")
def test_a_packet_gives_an_envelope_with_nulls_back() -> None:
    headers = {
        "SRMPEnvelopeHeader": {"Data": "<a/>\0<b/>"},
        "CompoundMessageHeader": {"Data": b"POST"},
        "SoapHeader": {"Header": "a", "Body": "b"},
    }
    user = {"DestinationQueue": {"PrivateQueueIdentifier": 7}}
    read: Any = msmqwire.parse(USER_MESSAGE.build({"UserHeader": user, **headers}))
    assert read.SRMPEnvelopeHeader.Data == utf16("<a/>\0<b/>\0")
    assert (read.CompoundMessageHeader.Data, read.SoapHeader.Body) == (b"POST", "b")


@pytest.mark.parametrize(
    ("header", "name", "length", "data"),
    [
        (SRMP_ENVELOPE_HEADER, "Data", "DataLength", b"a\0b"),
        (SRMP_ENVELOPE_HEADER, "Data", "DataLength", utf16("a\0bc")),  # in either unit, other bytes are read
        (SOAP_HEADER, "Header", "HeaderDataLength", b"a\0b"),
        (SOAP_HEADER, "Body", "BodyDataLength", b"a"),
        (MESSAGE_PROPERTIES_HEADER, "Label", "LabelLength", b"a\0b"),
    ],
)
def test_data_that_no_length_gives_back_are_refused(
    header: Header, name: str, length: str, data: bytes
) -> None:
    with pytest.raises(InvalidValue, match=f"no {length} gives its {len(data)} bytes? back") as refused:
        header.make({name: data})
    assert refused.value.path == f"{header.name}.{name}"
    assert header.make({name: data, length: 77})[length] == 77


def test_composers_refuse_half_a_character() -> None:
    with pytest.raises((Refused, ValueError)):
        SOAP_HEADER.codec.compose_trusted(800, 0, b"a\0b", 900, 0, "")
    with pytest.raises(InvalidValue, match="no HeaderDataLength"):
        SOAP_HEADER.codec.compose(800, 0, b"a\0b", 900, 0, "")
    with pytest.raises(InvalidValue, match="no DataLength"):
        SRMP_ENVELOPE_HEADER.codec.compose(0, 0, utf16("a\0bc"))
