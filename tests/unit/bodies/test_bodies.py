"""Message bodies by type and by content."""

from __future__ import annotations

import struct
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import pytest

from msmqwire.bodies import DecodedBody, NmfMessage, decode_body
from msmqwire.names.printable import with_article
from tests.support.paths import VECTORS

pytestmark = pytest.mark.filterwarnings("ignore:decode_body is deprecated:DeprecationWarning")

GUID = UUID("557358d1-9150-9595-4997-0c1a2b3c4d5e")


def vector(name):
    return bytes.fromhex((VECTORS / name).read_text())


@pytest.mark.parametrize(
    "body_type, body, kind, value, text",
    [
        (16, b"\xff", "VT_I1", -1, "-1"),
        (17, b"\xff", "VT_UI1", 255, "255"),
        (2, b"\xfe\xff", "VT_I2", -2, "-2"),
        (18, b"\xfe\xff", "VT_UI2", 65534, "65534"),
        (3, b"\x00\x00\x00\x80", "VT_I4", -(1 << 31), "-2147483648"),
        (19, b"\x00\x00\x00\x80", "VT_UI4", 1 << 31, "2147483648"),
        (22, b"\x01\x00\x00\x80", "VT_INT", 1 - (1 << 31), "-2147483647"),
        (23, b"\x01\x00\x00\x80", "VT_UINT", (1 << 31) + 1, "2147483649"),
        (20, b"\xff" * 8, "VT_I8", -1, "-1"),
        (21, b"\xff" * 8, "VT_UI8", (1 << 64) - 1, "18446744073709551615"),
        (4, struct.pack("<f", 1.5), "VT_R4", 1.5, "1.5"),
        (5, struct.pack("<d", -0.25), "VT_R8", -0.25, "-0.25"),
        (6, (123_4500).to_bytes(8, "little"), "VT_CY", Decimal("123.45"), "123.4500"),
        (6, b"\xff" * 8, "VT_CY", Decimal("-0.0001"), "-0.0001"),
        (7, struct.pack("<d", 0), "VT_DATE", datetime(1899, 12, 30), "1899-12-30T00:00:00"),
        (7, struct.pack("<d", 45293.75), "VT_DATE", datetime(2024, 1, 2, 18), "2024-01-02T18:00:00"),
        (7, struct.pack("<d", -1.25), "VT_DATE", datetime(1899, 12, 29, 6), "1899-12-29T06:00:00"),
        (10, b"\x03\x00\x0e\xc0", "VT_ERROR", 0xC00E0003, "MQ_ERROR_QUEUE_NOT_FOUND"),
        (11, b"\xff\xff", "VT_BOOL", True, "true"),
        (11, b"\x00\x00", "VT_BOOL", False, "false"),
        (
            64,
            (116444736000000000 + 15_000_000).to_bytes(8, "little"),
            "VT_FILETIME",
            datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=UTC),
            "1970-01-01T00:00:01.500000+00:00",
        ),
        (72, GUID.bytes_le, "VT_CLSID", GUID, str(GUID)),
        (8, "Grüße €".encode("utf-16-le"), "VT_BSTR", "Grüße €", "Grüße €"),
        (8, b"", "VT_BSTR", "", ""),
        (31, "text\0".encode("utf-16-le"), "VT_LPWSTR", "text", "text"),
        (30, b"text\0", "VT_LPSTR", "text", "text"),
        (30, "Größe".encode(), "VT_LPSTR", "Größe", "Größe"),
        (66, b"\x01\x02", "VT_STREAM", b"\x01\x02", None),
        (68, b"\x01\x02", "VT_STREAMED_OBJECT", b"\x01\x02", None),
        (69, b"text", "VT_STORED_OBJECT", b"text", None),
        (0x1003, struct.pack("<2i", 1, -1), "VT_I4 | VT_VECTOR", [1, -1], "1, -1"),
        (0x100B, b"\xff\xff\x00\x00", "VT_BOOL | VT_VECTOR", [True, False], "true, false"),
        (0x1048, GUID.bytes_le * 2, "VT_CLSID | VT_VECTOR", [GUID, GUID], f"{GUID}, {GUID}"),
    ],
)
def test_a_body_is_read_by_its_type(body_type, body, kind, value, text):
    assert decode_body(body, body_type) == DecodedBody(kind, value, text, body)
    assert type(decode_body(body, body_type).value) is type(value)


def test_the_captured_message():
    data = vector("MS-MQQB-4.1.7-UserMessage.hex")
    start = data.index("a".encode("utf-16-le") * 20)
    body = data[start : start + 2000]
    assert decode_body(body, 8) == DecodedBody("VT_BSTR", "a" * 1000, "a" * 1000, body)


@pytest.mark.parametrize(
    "body_type, body, kind, note",
    [
        (3, b"\x01\x02\x03", "bytes", "VT_I4 takes 4 bytes, the body has 3"),
        (3, b"", "empty", "VT_I4 takes 4 bytes, the body has 0"),
        (3, b"hello", "utf-8 text", "VT_I4 takes 4 bytes, the body has 5"),
        (8, b"\x01\x02\x03", "bytes", "VT_BSTR is UTF-16, the body has 3 bytes"),
        (8, b"\x00\xd8a\x00", "VT_BSTR", "not well-formed UTF-16 at byte 0"),
        (30, b"\xe4", "VT_LPSTR", "not UTF-8, read as Windows-1252"),
        (11, b"\x01\x00", "VT_BOOL", "0x0001 is neither VARIANT_TRUE nor VARIANT_FALSE"),
        (7, struct.pack("<d", 1e300), "bytes", "1e+300 days since 1899-12-30 is not a date"),
        (7, struct.pack("<d", float("nan")), "bytes", "nan days since 1899-12-30 is not a date"),
        (64, b"\xff" * 8, "bytes", "18446744073709551615 times 100 ns since 1601 is not a date"),
        (0x1003, b"\x01\x02", "bytes", "VT_I4 | VT_VECTOR has elements of 4 bytes, the body has 2"),
        (0x2003, b"\x01\x02\x03", "bytes", "bodies of type VT_I4 | VT_ARRAY are not read by their type"),
        (0x1234, b"\x01\x02\x03", "bytes", "bodies of type 0x1234 are not read by their type"),
        (0xFFFFFFFF, b"text", "utf-8 text", "bodies of type 0xFFFFFFFF are not read by their type"),
    ],
)
def test_why_a_body_is_not_what_its_type_says(body_type, body, kind, note):
    read = decode_body(body, body_type)
    assert (read.kind, read.note, read.raw) == (kind, note, body)


@pytest.mark.parametrize("body_type", [0, 1, 65, 0x1011, 0x2011, 0x300])
def test_bytes_are_read_by_their_content(body_type):
    assert decode_body(b"", body_type) == DecodedBody("empty", None, "", b"")
    assert decode_body(b"\x80\x00\x01", body_type) == DecodedBody(
        "bytes", b"\x80\x00\x01", None, b"\x80\x00\x01"
    )
    assert decode_body(b"hello", body_type).kind == "utf-8 text"
    assert decode_body(b"<int>5</int>", body_type).value == 5


@pytest.mark.parametrize(
    "body, kind, text",
    [
        (b"hello", "utf-8 text", "hello"),
        (b"line\r\n\ttwo\0", "utf-8 text", "line\r\n\ttwo"),
        ("Größe €".encode(), "utf-8 text", "Größe €"),
        (b"\xef\xbb\xbfmarked", "utf-8 text", "marked"),
        ("Grüße, \r\n".encode("utf-16-le"), "utf-16 text", "Grüße, \r\n"),
        ("漢字".encode("utf-16"), "utf-16 text", "漢字"),
        (b"\xfe\xff" + "漢字".encode("utf-16-be"), "utf-16 text", "漢字"),
        ("terminated\0".encode("utf-16-le"), "utf-16 text", "terminated"),
    ],
)
def test_text_is_recognised(body, kind, text):
    assert decode_body(body) == DecodedBody(kind, text, text, body)


@pytest.mark.parametrize(
    "body",
    [b"\x00", b"\x00\x00", b"ab\x01", b"\xff\xfe", b"\x00\xd8a\x00b\x00", b"\x90\x91", b"a\x00\x00\x00b\x00"],
)
def test_bytes_that_are_no_text(body):
    assert decode_body(body) == DecodedBody("bytes", body, None, body)


START = '<?xml version="1.0"?>\r\n'


@pytest.mark.parametrize(
    "xml, value",
    [
        ("<string>hello &amp; you &#x41;</string>", "hello & you A"),
        ("<string> as it is </string>", " as it is "),
        ("<string />", ""),
        ("<string><![CDATA[<a>]]></string>", "<a>"),
        ("<boolean>true</boolean>", True),
        ("<boolean>0</boolean>", False),
        ("<int>-5</int>", -5),
        ("<int> 5 </int>", 5),
        ("<unsignedByte>255</unsignedByte>", 255),
        ("<byte>-128</byte>", -128),
        ("<short>-32768</short>", -32768),
        ("<unsignedShort>65535</unsignedShort>", 65535),
        ("<unsignedInt>4294967295</unsignedInt>", 4294967295),
        ("<long>-9223372036854775808</long>", -(1 << 63)),
        ("<unsignedLong>18446744073709551615</unsignedLong>", (1 << 64) - 1),
        ("<char>65</char>", 65),
        ("<double>1.5E+20</double>", 1.5e20),
        ("<float>-INF</float>", float("-inf")),
        ("<decimal>12345678901234567890.10</decimal>", Decimal("12345678901234567890.10")),
        ("<dateTime>2024-01-02T03:04:05</dateTime>", datetime(2024, 1, 2, 3, 4, 5)),
        (
            "<dateTime>2024-01-02T03:04:05.1234567+01:00</dateTime>",
            datetime(2024, 1, 2, 3, 4, 5, 123456, timezone(timedelta(hours=1))),
        ),
        ("<dateTime>2024-01-02T03:04:05.5Z</dateTime>", datetime(2024, 1, 2, 3, 4, 5, 500000, UTC)),
        (f"<guid>{GUID}</guid>", GUID),
        ("<base64Binary>AQID\r\nBA==</base64Binary>", b"\x01\x02\x03\x04"),
        ('<string xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true" />', None),
    ],
)
@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode("utf-8"),
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.encode("utf-16"),
        lambda text: text.encode("utf-16-le"),
    ],
    ids=["utf-8", "utf-8 with mark", "utf-16 with mark", "utf-16"],
)
def test_one_simple_element_has_a_value(xml, value, encode):
    body = encode(START + xml)
    read = decode_body(body)
    assert (read.kind, read.value, read.raw, read.note) == ("xml", value, body, None)
    assert type(read.value) is type(value)


@pytest.mark.parametrize(
    "xml",
    [
        "<order><id>5</id></order>",
        '<string xmlns="urn:x">a</string>',
        "<int><!-- 5 -->5</int>",
        "<other>5</other>",
        "<a/>",
        "<?pi x?><!-- c --><a/>",
    ],
)
def test_other_documents_are_xml_as_text(xml):
    body = (START + xml).encode()
    assert decode_body(body) == DecodedBody("xml", START + xml, START + xml, body)


@pytest.mark.parametrize(
    "xml",
    [
        "<int>abc</int>",
        "<int>2147483648</int>",
        "<int>\u0661</int>",
        "<unsignedByte>-1</unsignedByte>",
        "<boolean>yes</boolean>",
        "<double>infinity</double>",
        "<decimal>1e5</decimal>",
        "<dateTime>2024-13-01T00:00:00</dateTime>",
        "<dateTime>yesterday</dateTime>",
        "<guid>1</guid>",
        "<base64Binary>*</base64Binary>",
        "<int>" + "9" * 5000 + "</int>",
    ],
)
def test_a_text_that_is_not_of_its_type_is_reported(xml):
    read = decode_body(xml.encode())
    assert (read.kind, read.value, read.text) == ("xml", xml, xml)
    assert read.note.endswith(f"is not {with_article(xml[1 : xml.index('>')])}")


@pytest.mark.parametrize(
    "xml",
    [
        '<!DOCTYPE a [<!ENTITY x "y">]><string>&x;</string>',
        '<?xml version="1.0"?> <!-- c --> <!DOCTYPE a SYSTEM "http://127.0.0.1/a.dtd"><string>x</string>',
        '<?x?><?y?><!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
    ],
)
def test_a_document_type_is_not_read(xml):
    read = decode_body(xml.encode())
    assert (read.kind, read.value) == ("xml", xml)
    assert "document type" in read.note


@pytest.mark.parametrize(
    "xml", ["<a>", "<a></b>", "<string>&x;</string>", "<", "<a/><b/>", "<?xml", "<a\0/>"]
)
def test_what_is_not_well_formed_is_text(xml):
    read = decode_body(xml.encode())
    assert read.kind in ("utf-8 text", "bytes")
    assert read.kind == "bytes" or read.note.startswith("not well-formed XML")


def test_depth_and_size_of_xml_are_limited():
    deep = b"<a>" * 200 + b"</a>" * 200
    assert decode_body(deep).note == "more than 128 elements deep: not read as XML"
    assert decode_body(b"<a>" * 128 + b"</a>" * 128).kind == "xml"
    large = b"<a>" + b"x" * 0x400000 + b"</a>"
    assert decode_body(large).note == "more than 4194304 characters: not read as XML"


@pytest.mark.parametrize(
    "name, end",
    [
        ("wcf_body_netmsmq.hex", b"TestMessage\x01\x01\x01"),
        ("wcf_body_netmsmq_empty.hex", b"\x01\x01\x01\x01"),
    ],
)
def test_bodies_of_wcf_have_a_preamble(name, end):
    body = vector(f"bodies/{name}")
    read = decode_body(body, 0)
    message = read.value
    assert (read.kind, read.note) == ("nmf", None)
    assert read.text == "net.msmq://localhost/private/wcfQueue (SOAP 1.2, binary)"
    assert message == NmfMessage((1, 0), 4, "net.msmq://localhost/private/wcfQueue", 7, None, body[46:])
    assert message.message.startswith(b"\x56\x02\x0b\x01s\x04")
    assert message.message.endswith(end)


@pytest.mark.parametrize("cut", range(1, 46))
def test_a_preamble_that_breaks_off_is_none(cut):
    assert decode_body(vector("bodies/wcf_body_netmsmq.hex")[:cut]).kind != "nmf"


@pytest.mark.parametrize(
    "at, byte", [(0, 1), (1, 2), (3, 0), (4, 5), (4, 0), (5, 3), (6, 0), (6, 0xFF), (44, 5), (45, 9)]
)
def test_a_preamble_with_a_wrong_byte_is_none(at, byte):
    body = bytearray(vector("bodies/wcf_body_netmsmq.hex"))
    body[at] = byte
    assert decode_body(bytes(body)).kind == "bytes"


def test_a_preamble_may_name_its_content_type():
    content_type = b"application/soap+msbin1"
    body = b"\x00\x01\x00\x01\x04\x02\x01u\x04" + bytes([len(content_type)]) + content_type + b"rest"
    message = decode_body(body).value
    assert message == NmfMessage((1, 0), 4, "u", None, "application/soap+msbin1", b"rest")
    assert message.summary == "u (application/soap+msbin1)"


@pytest.mark.parametrize("length, size", [(127, b"\x7f"), (128, b"\x80\x01"), (300, b"\xac\x02")])
def test_the_size_of_a_via_has_seven_bits_a_byte(length, size):
    body = b"\x00\x01\x00\x01\x04\x02" + size + b"v" * length + b"\x03\x07rest"
    assert decode_body(body).value == NmfMessage((1, 0), 4, "v" * length, 7, None, b"rest")


def test_objects_of_dotnet_are_recognised_and_left_alone():
    body = bytes.fromhex("00 01000000 FFFFFFFF 01000000 00000000 06 01000000 05") + b"hello\x0b"
    read = decode_body(body, 0x300)
    assert (read.kind, read.value, read.text, read.raw) == ("binaryformatter", body, None, body)
    assert "not deserialized" in read.note
    assert decode_body(body[:17]).kind == "bytes"
    assert (
        decode_body(body.replace(b"\x01\x00\x00\x00\x00\x00\x00\x00\x06", b"\x02" + bytes(7) + b"\x06")).kind
        == "bytes"
    )


def test_a_parser_of_xml_is_loaded_for_xml_only():
    code = (
        "import sys; from msmqwire.bodies import decode_body; decode_body(b'text', 0); decode_body(b'a', 17);"
        "assert 'xml.etree.ElementTree' not in sys.modules; decode_body(b'<a/>', 0);"
        "assert 'xml.etree.ElementTree' in sys.modules; assert 'lxml' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=VECTORS.parents[1])


def test_decode_body_is_deprecated():
    with pytest.warns(DeprecationWarning, match="decode_body is deprecated; write decode"):
        decode_body(b"text")
