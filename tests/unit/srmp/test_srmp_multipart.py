"""SRMP messages with parts: [MC-MQSRM] 2.2.2 and chapter 4."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.srmp.fields import Field, value_of
from msmqwire.srmp.http_framer import parse_http
from msmqwire.srmp.http_message import HttpMessage, RequestLine
from msmqwire.srmp.message import SrmpMessage, build_message, parse_message
from msmqwire.srmp.multipart import PART_COUNT_MAX, Multipart, Part, parse_multipart
from msmqwire.srmp.request import make_request, request_address
from tests.support.paths import ROOT

VECTORS = {path.stem: path.read_bytes() for path in sorted((ROOT / "tests/vectors/srmp").glob("*.http"))}
MULTIPARTS = ["4.1", "4.2", "4.3-1", "4.4-1", "4.4-3", "4.4-5", "4.5"]
RECEIPTS = ["4.3-3", "4.3-5", "4.4-2", "4.4-4", "4.4-6"]
BOUNDARY = "MSMQ - SOAP boundary, 292"
DELIMITER = b"--MSMQ - SOAP boundary, 292"
PGM_SENDER = UUID("32221eda-9376-46df-b6ed-783091123831")
BY_HAND = "ff3af301-3196-497a-a918-72147c871a13"
NULL_GUID = "1@00000000-0000-0000-0000-000000000000"
GUID_8 = "1@00000000-0000-0000-0000-000000000008"
SIMPLE_QUEUE, STREAM_QUEUE = "/msmq/private$/simpleq", "/msmq/private$/tsimpleq"
ORDER = (
    b'<?xml version="1.0"?>\r\n<Order xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    b'xmlns:xsd="http://www.w3.org/2001/XMLSchema">\r\n  <orderId>3</orderId>\r\n'
    b"  <orderTime>2007-07-18T20:11:40.2614595-07:00</orderTime>\r\n</Order>"
)


def message(name: str = "4.5") -> SrmpMessage:
    return parse_message(VECTORS[name])


def entity(name: str = "4.5") -> bytes:
    return parse_http(VECTORS[name]).entity


def part(fields: bytes, content: bytes) -> bytes:
    return DELIMITER + b"\r\n" + fields + b"\r\n" + content


def request(entity_bytes: bytes, content_type: str | None = None) -> bytes:
    """The request of 4.5 with another entity, and with the Content-Length that fits."""
    http = parse_http(VECTORS["4.5"])
    changed = {"Content-Length": str(len(entity_bytes)), "Content-Type": content_type}
    fields = tuple(Field(field.name, changed.get(field.name) or field.value) for field in http.fields)
    return HttpMessage(http.start, fields, entity_bytes).to_bytes()


def refused(data: bytes) -> MalformedPacket:
    with pytest.raises(MalformedPacket) as caught:
        parse_message(data)
    return caught.value


# --- the examples ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VECTORS)
def test_published_messages_come_back_whole(name):
    assert build_message(message(name)) == VECTORS[name]


@pytest.mark.requirement("SRMP-2.2.2-09", "SRMP-2.2.2-10", "SRMP-4.1-01", "SRMP-4.2-01", "SRMP-4.3-01",
                         "SRMP-4.4-01", "SRMP-4.4-03", "SRMP-4.4-04", "SRMP-4.5-01")  # fmt: skip
@pytest.mark.parametrize(
    "name, target, number, envelope, body, guid, identifier",
    [
        ("4.1", SIMPLE_QUEUE, 53287, 619, b"First Message", BY_HAND, NULL_GUID),
        ("4.2", SIMPLE_QUEUE, 26500, 775, ORDER, "caf195ea-615c-4264-ae08-11a4e60194c0",
         "20503@caf195ea-615c-4264-ae08-11a4e60194c0"),
        ("4.3-1", SIMPLE_QUEUE, 95692, 1233, b"Both delivery and commitment receipt requests",
         BY_HAND, GUID_8),
        ("4.4-1", STREAM_QUEUE, 1672, 1465, b"First Message", BY_HAND, GUID_8),
        ("4.4-3", STREAM_QUEUE, 1672, 1220, b"Message 0", BY_HAND, GUID_8),
        ("4.4-5", STREAM_QUEUE, 1672, 1240, b"Last Message", BY_HAND, GUID_8),
        ("4.5", "234.1.1.1:8001", 292, 779, bytes.fromhex("61007200640065006e0077006800690074006500"),
         str(PGM_SENDER), f"4494@{PGM_SENDER}"),
    ],
    ids=["4.1", "4.2", "4.3-1", "4.4-1", "4.4-3", "4.4-5", "4.5"],
)  # fmt: skip
def test_parts_of_the_examples(name, target, number, envelope, body, guid, identifier):
    parsed = message(name)
    assert parsed.start == RequestLine("POST", target, "HTTP/1.1")
    assert isinstance(parsed.content, Multipart)
    assert parsed.content.boundary == f"MSMQ - SOAP boundary, {number}"
    xml, payload = parsed.content.parts
    assert xml.fields == (
        Field("Content-Type", "text/xml; charset=UTF-8"),
        Field("Content-Length", str(envelope)),
    )
    assert payload.fields == (
        Field("Content-Type", "application/octet-stream"),
        Field("Content-Length", str(len(body))),
        Field("Content-Id", f"body@{guid}"),
    )
    assert (xml.content, len(xml.content)) == (parsed.envelope_bytes, envelope)
    assert xml.content.startswith(b"<se:Envelope ")
    assert xml.content.endswith(b"</se:Envelope>")
    assert f"id>uuid:{identifier}</".encode() in xml.content
    assert (parsed.body, parsed.extension, parsed.other_parts) == (body, None, ())


@pytest.mark.requirement("SRMP-2.1.1-10", "SRMP-2.2.2-08")
@pytest.mark.parametrize("name", RECEIPTS)
def test_receipts_are_envelopes_alone(name):
    parsed = message(name)
    assert value_of(parsed.fields, "Content-Type") == "text/xml"
    assert parsed.content == parsed.envelope_bytes == parse_http(VECTORS[name]).entity
    assert (parsed.body, parsed.extension) == (None, None)


@pytest.mark.requirement("SRMP-2.1.1-05", "SRMP-2.1.1-06", "SRMP-2.1.1-07", "SRMP-2.1.1-08", "SRMP-2.1.1-09",
                         "SRMP-2.2.2-13", "SRMP-2.2.2-14", "SRMP-2.2.2-15", "SRMP-4.5-01")  # fmt: skip
def test_example_4_5_is_made_to_the_byte():
    made = make_request(
        message().envelope_bytes,
        *request_address("MSMQ:MULTICAST=234.1.1.1:8001"),
        boundary=292,
        queue_manager=PGM_SENDER,
        body="ardenwhite".encode("utf-16-le"),
    )
    assert made == message()
    assert made.to_bytes() == VECTORS["4.5"]
    assert len(made.content.to_bytes()) == 1067
    parsed = make_request(message().envelope, "234.1.1.1:8001", "234.1.1.1:8001", boundary=292,
                          queue_manager=PGM_SENDER, body=message().body)  # fmt: skip
    assert parsed == made


@pytest.mark.requirement("SRMP-2.1.1-10", "SRMP-2.2.2-08")
@pytest.mark.parametrize("name", RECEIPTS)
@pytest.mark.requirement("SRMP-2.1.1-07", "SRMP-2.1.1-08")
def test_receipts_are_made_to_the_byte(name):
    data = message(name).envelope_bytes
    target, host = request_address(message(name).envelope.path.to)
    assert make_request(data, target, host, boundary=1, queue_manager=PGM_SENDER).to_bytes() == VECTORS[name]


@pytest.mark.requirement("SRMP-2.1.1-04", "SRMP-2.1.1-06")
@pytest.mark.parametrize(
    "to, address",
    [
        ("http://machine2/msmq/private$/simpleQ", ("/msmq/private$/simpleq", "machine2")),
        ("http://m:81/MSMQ/q?SenderStream=XRntV", ("/msmq/q?senderstream=xrntv", "m:81")),
        ("HTTPS://m", ("/", "m")),
        ("MSMQ:MULTICAST=234.1.1.1:8001", ("234.1.1.1:8001", "234.1.1.1:8001")),
    ],
)
def test_the_address_of_a_request(to, address):
    assert request_address(to) == address


@pytest.mark.parametrize("to", ["", "machine2/q", "http:///q", "ftp://m/q"])
def test_wrong_addresses_of_a_request(to):
    with pytest.raises(InvalidValue):
        request_address(to)


@pytest.mark.requirement("SRMP-2.2.2-11", "SRMP-2.2.2-12", "SRMP-2.2.2-07")
def test_prefixes_distinguish_body_and_extension():
    made = make_request(message().envelope_bytes, "/q", "m", boundary=7, queue_manager=PGM_SENDER,
                        body=b"", extension=b"\0ext")  # fmt: skip
    parsed = parse_message(made.to_bytes())
    assert parsed == made
    assert (parsed.body, parsed.extension) == (b"", b"\0ext")
    ids = [value_of(p.fields, "Content-Id") for p in parsed.content.parts]
    assert ids == [None, f"body@{PGM_SENDER}", f"extension@{PGM_SENDER}"]
    assert parsed.departures == []
    for content_id in (b"body@x", b"Body@", b"<body@x>"):
        data = entity().replace(b"body@32221eda-9376-46df-b6ed-783091123831", content_id)
        assert parse_message(request(data)).body == message().body


@pytest.mark.requirement("SRMP-2.2.2-16")
@pytest.mark.parametrize(
    "payload",
    [b"", b"\0", b"\r\n", b"\r\n" + DELIMITER, DELIMITER + b"--\r\n", DELIMITER + b"\r\n\r\n",
     b"<se:Envelope/>", bytes(range(256))],
)  # fmt: skip
def test_a_payload_may_hold_anything(payload):
    made = make_request(message().envelope_bytes, "/q", "m", boundary=292,
                        queue_manager=PGM_SENDER, body=payload)  # fmt: skip
    assert parse_message(made.to_bytes()).body == payload


# --- framing that departs ----------------------------------------------------------------------------------


@pytest.mark.requirement("SRMP-2.2.2-14")
def test_line_breaks_before_delimiters_are_accepted_as_problems():
    data = entity().replace(DELIMITER, b"\r\n" + DELIMITER)
    parsed = parse_message(request(data))
    assert (parsed.envelope_bytes, parsed.body) == (message().envelope_bytes, message().body)
    assert parsed.departures == [
        ("SRMP-2.2.2-14", "Multipart.Parts", "a line break before the first delimiter"),
        ("SRMP-2.2.2-14", "Multipart.Parts[0]", "a line break before the delimiter after it"),
        ("SRMP-2.2.2-14", "Multipart.Parts[1]", "a line break before the delimiter after it"),
    ]
    assert parsed.to_bytes() == request(data)


@pytest.mark.requirement("SRMP-2.2.2-15")
def test_a_missing_final_line_break_is_accepted_and_reported():
    data = request(entity()[:-2])
    parsed = parse_message(data)
    assert parsed.departures == [
        ("SRMP-2.2.2-15", "Multipart.Parts", "no line break after the last delimiter")
    ]
    assert parsed.to_bytes() == data


@pytest.mark.parametrize(
    "old, new, path",
    [
        (b"Content-Length: 779", b"Content-Length: 778", "Parts[0].HeaderFields.Content-Length"),
        (b"Content-Length: 779", b"Content-Length: 780", "Parts[0].HeaderFields.Content-Length"),
        (b"Content-Length: 779", b"Content-Length: 99999", "Parts[0].HeaderFields.Content-Length"),
        (b"Content-Length: 779", b"Content-Length: -1", "Parts[0].HeaderFields.Content-Length"),
        (b"Content-Length: 779\r\n", b"", "Parts[0].HeaderFields.Content-Length"),
        (b"Length: 20\r\n", b"Length: 20\r\nContent-Length: 20\r\n", "Parts[1].HeaderFields.Content-Length"),
        (b"Content-Id", b"Content-Id: body@x\r\nContent-Id", "Parts[1].HeaderFields.Content-Id"),
        (b"\r\nContent-Id", b"\nContent-Id", "Parts[1].HeaderFields"),
        (b"text/xml", b"text/plain", "Parts"),
        (b"292--", b"293--", "Parts[1].HeaderFields.Content-Length"),
        (b"292--", b"292-", "Parts"),
        (b"292--\r\n", b"292--\r\n\r\n", "Parts"),
        (b"292--\r\n", b"2922--\r\n", "Parts"),
        (b"292\r\nContent-Type: text", b"292 \r\nContent-Type: text", "Parts"),
        (b"292\r\nContent-Type: text", b"292\nContent-Type: text", "Parts"),
        (b"--MSMQ", b"x--MSMQ", "Parts"),
        (DELIMITER + b"--\r\n", b"", "Parts[1].HeaderFields.Content-Length"),
        (DELIMITER + b"--\r\n", DELIMITER + b"\r\n", "Parts[2].HeaderFields"),
    ],
)
def test_parts_that_are_refused(old, new, path):
    changed = entity().replace(old, new, 1)
    assert changed != entity()
    error = refused(request(changed))
    assert error.path == f"Multipart.{path}"
    start = len(request(changed)) - len(changed)
    assert start <= error.offset <= len(request(changed))


@pytest.mark.parametrize("cut", range(0, 1065, 13))
def test_an_entity_that_breaks_off_is_refused(cut):
    with pytest.raises(MalformedPacket) as caught:
        parse_multipart(entity()[:cut], BOUNDARY)
    assert 0 <= caught.value.offset <= cut


@pytest.mark.parametrize(
    "value",
    ["multipart/related", 'multipart/related; boundary=""', 'multipart/related; boundary="a',
     "multipart/mixed; boundary=a", "multipart/related; boundary=a; boundary=b",
     "application/octet-stream", "text", "text/html",
     "multipart/related; x"],
)  # fmt: skip
def test_content_types_that_are_refused(value):
    data = request(entity(), value)
    error = refused(data)
    assert error.path == "HeaderFields.Content-Type"
    assert data[error.offset :].startswith(b"Content-Type")


def test_a_request_needs_a_content_type():
    data = b"GET / HTTP/1.1\r\nHost: m\r\n\r\n"
    assert (refused(data).path, refused(data).offset) == ("HeaderFields.Content-Type", len(data) - 2)


def test_there_are_only_so_many_parts():
    one = part(b"Content-Type: text/plain\r\nContent-Length: 0\r\n", b"")
    assert len(parse_multipart(one * PART_COUNT_MAX + DELIMITER + b"--", BOUNDARY).parts) == PART_COUNT_MAX
    with pytest.raises(MalformedPacket, match="more than 16 parts"):
        parse_multipart(one * (PART_COUNT_MAX + 1) + DELIMITER + b"--", BOUNDARY)


def test_a_second_body_is_refused():
    body = part(b"Content-Length: 1\r\nContent-Id: body@x\r\n", b"!")
    data = request(entity().replace(DELIMITER + b"--", body + DELIMITER + b"--"))
    error = refused(data)
    assert (error.path, data[error.offset : error.offset + 1]) == ("Multipart.Parts[2]", b"!")


def test_an_invalid_envelope_is_refused_at_its_byte():
    data = VECTORS["4.5"].replace(b"<se:Header>", b"<se:Hedder>")
    error = refused(data)
    assert error.path.startswith("Envelope")
    start = data.index(b"<se:Envelope")
    with pytest.raises(MalformedPacket) as alone:
        parse_message(data[start : start + 779])
    assert (error.path, error.offset) == (alone.value.path, start + alone.value.offset)


def test_the_offset_in_chunks_is_that_of_the_stream():
    bad = entity().replace(b"<se:Header>", b"<se:Hedder>")
    head = b"POST /q HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Type: multipart/related; boundary="
    head += b'"%s"; type=text/xml\r\n\r\n' % BOUNDARY.encode()
    chunks = [bad[i : i + 100] for i in range(0, len(bad), 100)]
    data = head + b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in chunks) + b"0\r\n\r\n"
    plain = refused(request(bad))
    entity_offset = plain.offset - (len(request(bad)) - len(bad))
    lines = sum(len(b"%x\r\n" % len(c)) for c in chunks[: entity_offset // 100 + 1]) + 2 * (
        entity_offset // 100
    )
    assert refused(data).offset == len(head) + entity_offset + lines


# --- departures --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VECTORS)
def test_heads_and_parts_of_the_examples_do_not_depart(name):
    assert [d for d in message(name).departures if not d.path.startswith("Envelope")] == []


@pytest.mark.parametrize(
    "old, new, found",
    [
        (b"POST ", b"PUT ", [("SRMP-2.1.1-04", "RequestLine")]),
        (b"HTTP/1.1", b"HTTP/1.0", [("SRMP-2.1.1-04", "RequestLine")]),
        (b"Host", b"Hoost", [("SRMP-2.1.1-06", "HeaderFields.Host")]),
        (b'"MSMQMessage"', b"MSMQMessage", [("SRMP-2.1.1-07", "HeaderFields.SOAPAction")]),
        (b"Proxy-Accept: NonInteractiveClient\r\n", b"", [("SRMP-2.1.1-08", "HeaderFields.Proxy-Accept")]),
        (b"; type=text/xml", b"", [("SRMP-2.1.1-09", "HeaderFields.Content-Type")]),
        (b"; type=text/xml", b";\r\n type=text/xml", [("SRMP-2.1.1-09", "HeaderFields.Content-Type")]),
        (b"8001\r\n", b"8001\r\n  \r\n", [("SRMP-2.1.1-05", "HeaderFields.Host")]),
        (b"SOAPAction", b"Accept: */*\r\nSOAPAction", []),
        (b"; charset=UTF-8", b"", [("SRMP-2.2.2-09", "Multipart.Parts[0].HeaderFields.Content-Type")]),
        (b"-8\r\n", b"-8\r\nX: y\r\n", [("SRMP-2.2.2-09", "Multipart.Parts[0].HeaderFields")]),
        (b"application/octet-stream", b"text/xml",
         [("SRMP-2.2.2-10", "Multipart.Parts[1].HeaderFields.Content-Type")]),
        (b"Id: body", b"Id: x\r\nX: body", [("SRMP-2.2.2-07", "Multipart.Parts[1]")]),
        (b"Id: body", b"Id:\r\n body", [("SRMP-2.1.1-05", "Multipart.Parts[1].HeaderFields.Content-Id")]),
        (b"body@3", b"body@", [("SRMP-2.2.2-11", "Multipart.Parts[1].HeaderFields.Content-Id")]),
        (b"body@3", b"extension@", [("SRMP-2.2.2-12", "Multipart.Parts[1].HeaderFields.Content-Id")]),
    ],
)  # fmt: skip
def test_departures(old, new, found):
    head, _, rest = VECTORS["4.5"].partition(b"\r\n\r\n")
    if old in head + b"\r\n":
        data = VECTORS["4.5"].replace(old, new, 1)
    else:
        data = request(rest.replace(old, new))
    assert data != VECTORS["4.5"]
    parsed = parse_message(data)
    assert [departure[:2] for departure in parsed.departures] == found
    assert parsed.to_bytes() == data


@pytest.mark.requirement("SRMP-2.2.2-13")
def test_the_order_of_fields_and_the_boundary():
    fields = message().fields[::-1]
    assert replace(message(), fields=fields).departures == [
        ("SRMP-2.1.1-05", "HeaderFields",
         "the order is not Host, Content-Type, Content-Length, SOAPAction, Proxy-Accept"),
    ]  # fmt: skip
    data = VECTORS["4.5"].replace(BOUNDARY.encode(), b"MSMQ - SOAP boundary, 29x")
    assert [d[:2] for d in parse_message(data).departures] == [("SRMP-2.2.2-13", "Multipart.Boundary")]


@pytest.mark.parametrize(
    "status, told", [(200, 0), (400, 0), (500, 0), (503, 0), (202, 1), (404, 1), (302, 1)]
)
@pytest.mark.requirement("SRMP-2.1.1-13")
def test_statuses_that_have_a_meaning(status, told):
    parsed = parse_message(b"HTTP/1.1 %d x\r\nContent-Length: 0\r\n\r\n" % status)
    assert [d.requirement for d in parsed.departures] == ["SRMP-2.1.1-13"] * told
    assert (parsed.envelope, parsed.body) == (None, None)


def test_an_envelope_behind_other_parts_is_found():
    content = message().content
    turned = replace(message(), content=replace(content, parts=content.parts[::-1]))
    parsed = parse_message(turned.to_bytes())
    assert (parsed.envelope_bytes, parsed.body) == (message().envelope_bytes, message().body)
    assert [d[:2] for d in parsed.departures] == [("SRMP-2.2.2-07", "Multipart.Parts[1]")]


def test_a_part_can_be_made_by_hand():
    parts = (Part((Field("Content-Length", "1"),), b"a"), Part((Field("Content-Length", "0"),), b"", True))
    made = Multipart("a b", parts)
    assert parse_multipart(made.to_bytes(), "a b") == made
    assert [made.to_bytes()[made.content_offset(n) :][:3] for n in (0, 1)] == [b"a--", b"\r\n-"]
