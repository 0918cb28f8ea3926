"""What other programs send to the ports and paths of ours is not named after a protocol that it is not."""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence

import pytest

from msmqwire.analysis.dissection import Item, dissect
from msmqwire.analysis.lint.finding import BREACHES
from msmqwire.pgm import build_pgm, parse_pgm, read_pgm
from msmqwire.srmp.message import parse_message
from msmqwire.srmp.recognition import is_srmp_apdu
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture import srmp_captures as s
from tests.support.capture.both_readers import assert_same
from tests.support.paths import VECTORS

CASES = VECTORS / "cases"
FIRST = s.published("4.1")
NAMESPACE = b"http://schemas.xmlsoap.org/srmp/"


def items(frames: Sequence[c.Frame] | list[bytes]) -> list[Item]:
    """The items of a capture, which are also the rows of the columnar reader."""
    data = c.pcap_bytes(frames)
    assert_same([data])
    return list(dissect(io.BytesIO(data)))


def kinds(found: Sequence[Item]) -> list[str]:
    return [item.kind for item in found]


def ids(found: Sequence[Item]) -> list[str]:
    return [finding.id for item in found for finding in item.findings]


def of_case(name: str) -> list[Item]:
    data = (CASES / name).read_bytes()
    assert_same([data])
    return list(dissect(io.BytesIO(data)))


# --- captures of others, from the published formats --------------------------------------------------------


def dns(*labels: bytes) -> bytes:
    """A query for an A record: RFC 1035 4.1."""
    name = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    return struct.pack(">6H", 0x1A2B, 0x0100, 1, 0, 0, 0) + name + struct.pack(">HH", 1, 1)


def rtp(number: int, time: int) -> bytes:
    """A packet of G.711 audio, 20 ms: RFC 3550 5.1."""
    return struct.pack(">BBHII", 0x80, 0, number, time, 0xDEADBEEF) + b"\xd5\x55" * 80


def client_hello() -> bytes:
    """The first record of TLS: RFC 8446 4.1.2."""
    hello = b"\x03\x03" + bytes(range(32)) + b"\0" + b"\0\x02\x13\x01" + b"\x01\0" + b"\0\0"
    handshake = b"\x01" + len(hello).to_bytes(3, "big") + hello
    return b"\x16\x03\x01" + len(handshake).to_bytes(2, "big") + handshake


def zeromq(number: int, content: bytes = b"\x01\0\x05hello") -> bytes:
    """Data of OpenPGM, which ZeroMQ uses, with its offset of the first message: RFC 3208 8.2."""
    data = b"\0\0" + content
    head = struct.pack(">HHBBH6sH", 40_000, 7500, 4, 0, 0, b"\x0a\0\0\1\x12\x34", len(data))
    packet = head + struct.pack(">II", number, 1) + data
    return packet[:6] + c.checksum(packet).to_bytes(2, "big") + packet[8:]


def post(target: str, media_type: str, entity: bytes, *fields: str) -> bytes:
    lines = [f"POST {target} HTTP/1.1", "Host: a", *([f"Content-Type: {media_type}"] if media_type else [])]
    lines += [*fields, f"Content-Length: {len(entity)}", "", ""]
    return "\r\n".join(lines).encode() + entity


def udp(payload: bytes, port: int, *, other: int = 5004, back: bool = False) -> bytes:
    ends = (c.CLIENT, other), (c.SERVER, port)
    source, target = ends[::-1] if back else ends
    return c.ethernet(c.udp_packet(payload, *source, *target))


# --- datagrams ---------------------------------------------------------------------------------------------

OTHERS = {
    "DNS": dns(b"www", b"example", b"com"),
    "DNS of two labels": dns(b"a", b"b"),
    "RTP": rtp(7, 160),
    "RTP far on": rtp(0x4000, 0x0400_0000),
    "RTP of a type of data": rtp(0x4000, 0x0500_1234),
    "zeros": bytes(100),
    "text": b"GET / HTTP/1.1\r\n\r\n",
    "one byte": b"\x22",
    "nothing": b"",
}


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("port", [524, 3055, 3056, 3527])
@pytest.mark.parametrize("name", OTHERS)
def test_a_datagram_of_another_program_is_not_listed(name, port, back):
    assert items([udp(OTHERS[name], port, back=back)]) == []


def test_the_case_of_dns():
    assert of_case("12_port_alone_is_a_claim/fp_dns_from_3527.pcap") == []


def test_what_is_nearly_a_ping_can_be_seen():
    ping = h.ping()
    frames = [udp(ping, 3527), udp(ping[:2] + b"\x48\x54" + ping[4:], 3527), udp(ping + b"\0", 3527),
              udp(h.session_ack(), 3527), udp(ping[:3], 3527)]  # fmt: skip
    found = items(frames)
    assert [(item.kind, item.size, bool(item.findings)) for item in found] == [
        ("Ping", 24, False), ("Skipped", 24, False), ("Malformed", 25, True), ("Malformed", 36, True)
    ]  # fmt: skip
    assert found[1].reason == "the size of a ping, without its signature 0x5548"
    assert kinds(items([udp(ping, 9999), udp(ping + b"\0", 9999)])) == ["Ping"]


# --- PGM ---------------------------------------------------------------------------------------------------


def test_pgm_of_zeromq_is_pgm_without_a_finding():
    packets = [zeromq(number) for number in (1, 2, 3)]
    for carry, transport in ((s.over_ip, "pgm"), (s.over_udp, "udp")):
        found = items(list(carry(packets)))
        assert [(item.kind, item.transport) for item in found] == 3 * [("PgmPacket", transport)]
        assert ids(found) == []


@pytest.mark.parametrize(
    "content",
    [
        b"POST /orders HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
        b"see " + NAMESPACE + b" for the namespace",
        b'<Envelope><![CDATA[<path xmlns="' + NAMESPACE + b'"/>]]></Envelope>',
    ],
)
def test_what_others_send_by_pgm_is_no_message_of_srmp(content):
    assert not is_srmp_apdu(content)
    found = items(list(s.over_ip([zeromq(1, content), zeromq(2, content)])))
    assert (kinds(found), ids(found)) == (["PgmPacket"] * 2, [])


def test_the_case_of_a_length_that_counts_the_header():
    found = of_case("09_pgm_length_counts_header/pgm_len.pcap")
    assert kinds(found) == ["PgmPacket"] * 3
    assert [item.packet.data for item in found] == [b"", b"price 1", b"price 2"]
    assert ids(found) == ["PGM-TSDU-LENGTH"] * 3
    assert {finding.severity for item in found for finding in item.findings}.isdisjoint(BREACHES)
    for item in found:
        assert build_pgm(item.packet) == item.raw


def patched(packet: bytes, at: int, patch: bytes, *, anew: bool = True) -> bytes:
    """A packet with other bytes, and a checksum that fits unless told otherwise."""
    packet = packet[:at] + patch + packet[at + len(patch) :]
    if anew:
        packet = packet[:6] + b"\0\0" + packet[8:]
        packet = packet[:6] + c.checksum(packet).to_bytes(2, "big") + packet[8:]
    return packet


MESSAGE = s.published("4.5")
WHOLE = s.data_packets(MESSAGE, 1, 5000)[0]
PARTS = s.data_packets(MESSAGE, 1, 400)
SIZE = len(MESSAGE)


@pytest.mark.parametrize("carry", [s.over_ip, s.over_udp])
def test_a_message_is_read_whatever_the_length_of_its_packet(carry):
    for size in (len(WHOLE), 0xFFFF, SIZE + 1):
        packet = patched(WHOLE, 14, size.to_bytes(2, "big"))
        found = items(list(carry([packet])))
        assert kinds(found) == ["PgmPacket", "SrmpMessage"]
        assert found[1].raw == MESSAGE
        assert found[0].findings[0].message.startswith(f"{size}")
    short = patched(WHOLE, 14, (SIZE - 4).to_bytes(2, "big"))
    packet, message = items(list(carry([short])))
    assert (packet.packet.data, packet.packet.trailing) == (MESSAGE[:-4], MESSAGE[-4:])
    assert packet.to_json()["fields"]["TrailingData"] == MESSAGE[-4:].hex()
    assert message.kind == "Malformed"


def test_options_of_wrong_length_leave_the_rest_readable():
    broken = patched(PARTS[1], 16 + 8 + 2, b"\0\x15")
    found = items(list(s.over_ip([PARTS[0], broken])))
    assert (kinds(found)[:2], ids(found)) == (["PgmPacket", "PgmPacket"], ["PGM-OPTIONS"])
    assert (found[1].packet.options, found[1].packet.data) == ((), b"")
    assert found[1].packet.body.DataPacketSequenceNumber == 2
    assert build_pgm(found[1].packet) == broken
    assert found[1].to_json()["fields"]["TrailingData"] == broken[24:].hex()
    with pytest.raises(ValueError, match="options"):
        parse_pgm(broken)  # receivers take nothing but what fits


def test_damage_does_not_hide_a_packet_over_udp():
    """One thing that is wrong, and of fragments two: then a receiver does not take it, and it is seen."""
    wrong_sum = patched(WHOLE, 6, b"\x12\x34", anew=False)
    assert ids(items(list(s.over_udp([wrong_sum])))) == ["PGM-CHECKSUM"]
    both = patched(PARTS[0], 14, b"\0\1", anew=False)
    assert ids(items(list(s.over_udp([both])))) == ["PGM-CHECKSUM", "PGM-TSDU-LENGTH"]
    assert items(list(s.over_udp([patched(WHOLE, 14, b"\0\1", anew=False)]))) == []
    assert kinds(items(list(s.over_ip([patched(WHOLE, 14, b"\0\1", anew=False)])))) == ["PgmPacket"]
    unknown = patched(WHOLE, 4, b"\x7f")
    assert (items(list(s.over_udp([unknown]))), kinds(items(list(s.over_ip([unknown]))))) == (
        [],
        ["PgmPacket"],
    )


def test_a_packet_that_the_capture_cuts_off_has_no_finding():
    frames = list(s.over_udp([WHOLE]))
    (cut,) = list(dissect(io.BytesIO(c.pcap_bytes(frames, snaplen=200))))
    assert (cut.kind, cut.findings, cut.error.path) == ("Malformed", [], "data")
    assert cut.size == len(WHOLE)


def test_a_packet_is_read_as_far_as_it_goes():
    packet, fault = read_pgm(WHOLE[:-3])
    assert (packet.data, fault.path, fault.offset) == (MESSAGE[:-3], "TSDULength", 14)
    assert read_pgm(WHOLE) == (parse_pgm(WHOLE), None)
    with pytest.raises(ValueError, match="header"):
        read_pgm(WHOLE[:15])


# --- streams -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("port", [524, 1801])
@pytest.mark.parametrize(
    "said", [b"\r\n", b"\n", client_hello(), b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03", b"SSH-2.0"]
)
def test_a_stream_of_another_program_is_skipped(port, said):
    talk = c.TcpConversation(server=(c.SERVER, port)).handshake().send(said)
    for frames in (list(talk.frames), talk.close().frames):
        found = items(frames)
        assert (kinds(found), sum(item.size for item in found), ids(found)) == (["Skipped"], len(said), [])


def test_bytes_behind_a_packet_that_begin_none_are_skipped():
    ack = h.session_ack()
    found = items(c.TcpConversation().handshake().send(ack + b"\r\n").close().frames)
    assert [(item.kind, item.size) for item in found] == [("SessionAck", 36), ("Skipped", 2)]
    assert found[1].reason == "no packet begins here: BaseHeader.VersionNumber, byte 0: 0x0d is not 0x10"
    found = items(c.TcpConversation().handshake().send(ack + ack[:6]).close().frames)
    assert [(item.kind, item.size) for item in found] == [("SessionAck", 36), ("Malformed", 6)]
    found = items(c.TcpConversation().handshake().send(ack + ack[:4] + b"LIX").close().frames)
    assert [(item.kind, item.size) for item in found] == [("SessionAck", 36), ("Skipped", 7)]


# --- HTTP --------------------------------------------------------------------------------------------------

SOAP = b'<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body/></Envelope>'
MENTION = b"<a>%s</a>" % NAMESPACE
ESCAPED = b'<Envelope>&lt;path xmlns="%s"&gt;</Envelope>' % NAMESPACE
JSON = b'{"queue": "orders"}'
OF_OTHERS = {
    "REST": post("/api/v1/msmq/queues", "application/json", JSON),
    "REST at the root": post("/msmq/queues", "application/json", JSON),
    "JSON to a queue": post("/msmq/private$/orders", "application/json; charset=utf-8", JSON),
    "JSON with an envelope": post(
        "/msmq/q", "application/json", b'{"x": "<Envelope xmlns=\'%s\'>"}' % NAMESPACE
    ),
    "a form": post("/msmq/login", "application/x-www-form-urlencoded", b"a=b"),
    "nothing": post("/msmq/refresh", "", b""),
    "a wiki": post("/wiki", "text/xml", MENTION),
    "a wiki that quotes": post("/wiki", "text/xml", ESCAPED),
    "a comment": post("/wiki", "text/xml", b"<Envelope><!-- <p xmlns='%s'> --></Envelope>" % NAMESPACE),
    "CDATA": post("/wiki", "text/xml", b"<Envelope><![CDATA[<p xmlns='%s'>]]></Envelope>" % NAMESPACE),
    "a schema": post("/wiki", "text/xml", b"<definitions xmlns:s='%s'/>" % NAMESPACE),
    "text with XML": post("/wiki", "text/plain", b"<Envelope xmlns='%s'>" % NAMESPACE),
    "SOAP of a service": post("/msmq/Service.asmx", "text/xml", SOAP, 'SOAPAction: "urn:orders"'),
    "GET": b"GET /msmq/private$/orders HTTP/1.1\r\nHost: a\r\n\r\n",
    "framed wrongly": post("/api/msmq/q", "text/xml", b"").replace(b"Length: 0", b"Length: x"),
    "JSON framed wrongly": post("/msmq/private$/q", "text/json", b"").replace(b"Length: 0", b"Length: x"),
    "framed wrongly at the root": b"POST /msmq/q HTTP/1.1\r\nContent-Length: x\r\n\r\n{}",
}


@pytest.mark.parametrize("port", [80, 8080])
@pytest.mark.parametrize("name", OF_OTHERS)
def test_http_of_another_program_is_not_listed(name, port):
    answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot found"
    talk = s.http(port).send(OF_OTHERS[name]).send(answer, by_client=False)
    assert items(talk.close().frames) == []


@pytest.mark.parametrize("name", ["rest", "fp_wiki_text"])
def test_the_cases_of_http(name):
    assert of_case(f"11_http_of_others/{name}.pcap") == []


OF_SRMP = {
    "broken to a queue": (post("/msmq/private$/q", "text/xml", b"<a"), "Malformed"),
    "broken with the action": (post("/x", "text/plain", b"<a", 'SOAPAction: "MSMQMessage"'), "Malformed"),
    "without a type": (post("/msmq/private$/q", "", b"<a"), "Malformed"),
    "another type": (FIRST.replace(b"multipart/related", b"application/xml"), "Malformed"),
    "another path": (FIRST.replace(b" /msmq/", b" /moved/"), "SrmpMessage"),
    "an absolute target": (FIRST.replace(b" /msmq/", b" http://machine2/MSMQ/"), "SrmpMessage"),
    "the dollar sign escaped": (post("/msmq/private%24/q", "text/xml", b"<a", "SOAPAction: x"), "Malformed"),
    "cut in its head": (FIRST[:90], "Malformed"),
    "framed wrongly": (post("/msmq/q", "text/xml", b"").replace(b"Length: 0", b"Length: x"), "Malformed"),
}


@pytest.mark.parametrize("name", OF_SRMP)
def test_what_shows_that_it_is_srmp_is_listed(name):
    data, kind = OF_SRMP[name]
    found = items(s.http(8080).send(data).close().frames)
    assert [(item.kind, item.raw) for item in found] == [(kind, data)]


def test_messages_are_listed_with_any_spelling_of_the_namespace():
    envelope = parse_message(FIRST).envelope_bytes.replace(b"xmlsoap.org/srmp/", b"xmlsoap.org/&#115;rmp/")
    hidden = post("/msmq/q", "text/xml", envelope, 'SOAPAction: "CreateOrder"')
    assert NAMESPACE not in hidden
    assert kinds(items(s.http(8080).send(hidden).close().frames)) == ["SrmpMessage"]


@pytest.mark.parametrize(
    ("before", "attribute"),
    [
        (b"<x><![CDATA[<!--]]></x>", b""),
        (b"<!--<![CDATA[--><x/>", b""),
        (b"<?x <!-- ?>", b""),
        (b"", b" x='>'"),
        (b"", b' x=">"'),
    ],
)
def test_no_part_of_an_envelope_hides_its_namespace(before, attribute):
    """Neither a mark in a part in which it is none, nor the end of a tag in quotes."""
    path = b"<path" + attribute + b' xmlns="' + NAMESPACE + b'"/>'
    envelope = b"<e:Envelope xmlns:e='e'><e:Header>" + before + path + b"</e:Header></e:Envelope>"
    sent = post("/moved", "text/xml", envelope)
    found = items(s.http(8080).send(sent).close().frames)
    assert [item.raw for item in found] == [sent]


def test_marks_that_do_not_end_take_no_time_for_each():
    data = b"<!--" * 200_000 + b"<![CDATA[" * 100_000 + b"<" * 500_000 + NAMESPACE
    assert not is_srmp_apdu(data)
    assert not is_srmp_apdu((b"<Envelope " + b"xmlns='" * 100_000 + NAMESPACE) * 2)
