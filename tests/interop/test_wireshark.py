"""The generated dissector in tshark: every field is what `dissect --json` says, also of hostile captures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz import strategies
from msmqwire.analysis.dissection import Item, dissect
from msmqwire.analysis.lint import lint
from msmqwire.errors import MalformedPacket
from msmqwire.framing import begins_packet, find_header
from msmqwire.headers.base import BASE_HEADER_SIZE, PREFIX_SIZE
from msmqwire.packets import Protocol, packet_length
from msmqwire.ping import PING
from msmqwire.plugins.wireshark.findings import Findings
from msmqwire.plugins.wireshark.value_slots import ValueSlots
from msmqwire.schema import Record
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture import attacks
from tests.support.capture import wireshark as w
from tests.support.paths import ROOT

T = TypeVar("T")
UNTRANSLATED = set(Findings(ValueSlots()).untranslated)


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return w.written(tmp_path_factory.mktemp("wireshark"))


def drawn(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    """The first examples of a strategy, the same ones every time."""
    examples: list[T] = []

    @settings(max_examples=count, derandomize=True, database=None)
    @given(strategy)
    def collect(example: T) -> None:
        examples.append(example)

    collect()
    return examples


def capture(path: Path, streams: Sequence[bytes], pings: Sequence[bytes] = (), mss: int = 1460) -> Path:
    """A capture with one connection for each stream, and datagrams."""
    frames = []
    for number, data in enumerate(streams):
        start = c.START_NS + number * 10**9
        talk = c.TcpConversation((c.CLIENT, 20_000 + number), mss=mss, start_ns=start)
        frames += talk.handshake().send(data).close().frames
    frames += [c.Frame(c.START_NS, c.ethernet(c.udp_packet(data))) for data in pings]
    path.write_bytes(c.pcap_bytes(frames))
    return path


def by_frame(path: Path) -> dict[int, list[Item]]:
    frames: dict[int, list[Item]] = defaultdict(list)
    for item in dissect(path):
        frames[item.frames[-1]].append(item)
    return frames


def protocol(item: Item) -> Protocol:
    return "ping" if item.kind == "Ping" else "session"


def differences(item: Item, shown: w.Shown) -> str:
    if item.kind != shown.packet:
        return f"{item.kind}, shown: {shown.packet} {shown.path}"
    if item.error is not None:
        if (item.error.path, item.error.offset) != (shown.path, shown.offset):
            return f"{item.error}, shown: {shown.path} {shown.offset}"
        surplus = shown.findings - {(one.id, one.path) for one in item.findings}
        return f"findings {surplus}" if surplus else ""
    if item.packet is None:
        return ""
    wanted = {(one.id, one.path) for one in lint(item.raw, protocol=protocol(item))}
    if wrong := {one for one in wanted ^ shown.findings if one[0] not in UNTRANSLATED}:
        return f"findings {wrong}"
    return w.difference(w.expected(item.kind, item.to_json()["fields"]), shown.fields)


def agreement(path: Path, shown: dict[int, list[w.Shown]], streams: Sequence[bytes] = ()) -> None:
    """Assert that both find the same packets, equal in every field, and that both mark the same bytes.

    Connections with holes are left out: tshark waits for what is lost. It does not show what is cut off by
    the end of a connection either, unless that is malformed whatever might follow, nor packets inside that,
    of which only `streams` can be checked. A datagram that is not a ping it leaves to other dissectors.
    """
    items = list(dissect(path))
    behind = behind_cut_packets(items, streams)
    lossy = {item.stream for item in items if item.reason.startswith("not in the capture")}
    packets: dict[int, list[str]] = defaultdict(list)
    bad: dict[int, set[str]] = defaultdict(set)
    for item in items:
        frame = item.frames[-1]
        if item.packet is not None:
            packets[frame].append(item.kind)
        for number in item.frames if item.packet is None or id(item) in behind else ():
            bad[number].add(item.kind)
        if item.stream in lossy or id(item) in behind:
            continue
        if item.transport == "udp" and item.kind == "Skipped":
            assert not shown[frame], item
            continue
        results = [differences(item, one) for one in shown[frame]]
        if item.packet is not None:
            assert "" in results, (frame, results)
        elif item.error is not None and (item.transport == "udp" or whole(item)):
            assert "" in results, (frame, item.error, shown[frame])
        elif item.error is not None and item.size < PREFIX_SIZE:
            skipped = [one.packet for one in shown[frame]][-1:] == ["Skipped"]
            assert skipped != begins_packet(item.raw), (item, shown[frame])
        elif item.error is not None and item.size < BASE_HEADER_SIZE and not begins_packet(item.raw):
            assert not shown[frame], (item, shown[frame])
        elif item.error is not None and item.error.offset != item.size:
            early = [(one.path, one.offset) for number in item.frames for one in shown[number]]
            assert (item.error.path, item.error.offset) in early, (item.frames, item.error, early)
        elif item.kind == "Skipped":
            assert any(one.packet == "Skipped" for number in item.frames for one in shown[number]), item
    for frame, found in shown.items():
        names = [one.packet for one in found if one.packet not in ("Malformed", "Skipped")]
        assert sorted(names) == sorted(name for name in packets[frame]) or bad[frame], frame
        assert len(names) == len(found) or bad[frame], frame


def whole(item: Item) -> bool:
    """Whether all the bytes that a malformed packet announces are there."""
    if len(item.raw) < BASE_HEADER_SIZE:
        return False
    try:
        return packet_length(item.raw) == len(item.raw)
    except MalformedPacket:
        return True


def behind_cut_packets(items: Sequence[Item], streams: Sequence[bytes]) -> set[int]:
    """The items, by identity, behind a header whose packet would end beyond the end of its stream."""
    cuts = [first_cut(data) for data in streams]
    read = [0] * len(streams)
    behind = set()
    for item in items:
        if item.stream is not None and item.stream < len(streams):
            if read[item.stream] > cuts[item.stream]:
                behind.add(id(item))
            read[item.stream] += item.size
    return behind


def first_cut(data: bytes) -> int:
    """Where the first header is, wherever in these bytes, whose packet would end beyond their end."""
    at = find_header(data)
    while at >= 0 and len(data) - at >= PREFIX_SIZE and at + packet_length(data, at) <= len(data):
        at = find_header(data, at + 1)
    return at if at >= 0 else len(data)


def test_every_field_of_every_kind_of_packet(tmp_path, script):
    packets = [
        data
        for schema in strategies.SESSION_PACKETS
        for data in drawn(strategies.packet(schema).map(Record.to_bytes), 25)
    ]
    path = capture(tmp_path / "a.pcap", packets, drawn(strategies.pings().map(Record.to_bytes), 25))
    shown, items = w.shown(script, path), by_frame(path)
    assert sum(map(len, items.values())) == len(packets) + 25
    for frame, found in items.items():
        assert [differences(*pair) for pair in zip(found, shown[frame], strict=True)] == [""], frame


def test_broken_packets_are_malformed_at_the_same_field(tmp_path, script):
    broken = [
        data
        for schema in strategies.SESSION_PACKETS
        for data in drawn(strategies.mutated(strategies.packet(schema).map(Record.to_bytes), schema), 30)
        if data
    ]
    pings = drawn(strategies.mutated(strategies.pings().map(Record.to_bytes), PING), 40)
    # One segment each: tshark finds no packet inside a malformed one if it ends in a later segment.
    path = capture(tmp_path / "a.pcap", broken, [data for data in pings if data], mss=60_000)
    shown = w.shown(script, path)
    agreement(path, shown, broken)
    assert sum(one.packet == "Malformed" for found in shown.values() for one in found) > 50


def test_the_hostile_example(script):
    path = ROOT / "examples" / "hostile.pcapng"
    shown = w.shown(script, path, "-o", "tcp.reassemble_out_of_order:TRUE")
    agreement(path, shown)
    assert {one.packet for found in shown.values() for one in found} >= {
        "Malformed",
        "Skipped",
        "UserMessage",
    }


def test_streams_of_an_attacker(tmp_path, script):
    """All of them end in bounded time, with no complaint."""
    path = tmp_path / "a.pcap"
    frames = [
        frame
        for client, make in enumerate(attacks.STREAMS.values())
        for frame in attacks.one_stream(make(100_000), client=client)
    ]
    path.write_bytes(attacks.pcap(frames))
    summary = w.run(script, path, "-z", "msmq,stat")
    assert "Malformed" in summary


ENVELOPE = (
    '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
    'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header><path><to>http://host/msmq/private$/q</to>'
    "<id>uuid:1@2</id></path></se:Header></se:Envelope>"
)
PARTS = (
    "--B\r\nContent-Type: text/xml\r\n\r\n" + ENVELOPE + "\r\n--B\r\n"
    "Content-Type: application/octet-stream\r\n\r\nhello\r\n--B--\r\n"
)
POST = (
    'POST /msmq/private$/q HTTP/1.1\r\nHost: host\r\nContent-Type: multipart/related; boundary="B"; '
    f"type=text/xml\r\nContent-Length: {len(PARTS)}\r\n\r\n{PARTS}"
).encode()


def test_the_parts_of_srmp(tmp_path, script):
    """In the headers of a message and in a request over HTTP the envelope is XML with its own fields."""
    message = h.user_message(
        srmp=h.srmp_envelope_header(ENVELOPE), compound=h.compound_message_header(POST, body_size=5)
    )
    over_http = c.TcpConversation((c.CLIENT, 30_000), (c.SERVER, 80)).handshake().send(POST).close()
    over_tcp = c.TcpConversation().handshake().send(message).close()
    path = tmp_path / "a.pcap"
    path.write_bytes(c.pcap_bytes(c.merged(over_http.frames, over_tcp.frames)))
    names = ("msmq.srmp.to", "msmq.srmp.id", "xml.tag", "msmq.srmp.part")
    arguments = [argument for name in names for argument in ("-e", name)]
    rows = w.run(script, path, "-Y", "msmq.srmp.to", "-T", "fields", "-E", "aggregator=|", *arguments)
    http, tcp = sorted((row.split("\t") for row in rows.splitlines()), key=lambda row: len(row[0]))
    assert (http[0], http[1]) == ("http://host/msmq/private$/q", "uuid:1@2")
    assert http[2].startswith("<se:Envelope")
    assert (tcp[0], tcp[1]) == ("|".join([http[0]] * 2), "|".join([http[1]] * 2))
    assert tcp[2] == "|".join([http[2]] * 2)
    assert tcp[3].split("|")[1].replace(":", "") == b"hello".hex()


@pytest.mark.parametrize("hiding", ["<x><![CDATA[<!--]]></x>", "<!--<![CDATA[-->", "<?x <!-- ?>", ""])
def test_no_part_of_an_envelope_hides_its_namespace(tmp_path, script, hiding):
    text = f"<Envelope>{hiding}<a x='>' xmlns='http://schemas.xmlsoap.org/srmp/'><to>y</to></a></Envelope>"
    head = f"POST /w HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\nContent-Length: {len(text)}\r\n\r\n"
    web = c.TcpConversation((c.CLIENT, 30_000), (c.SERVER, 80)).handshake().send((head + text).encode())
    path = tmp_path / "a.pcap"
    path.write_bytes(c.pcap_bytes(web.close().frames))
    assert w.run(script, path, "-Y", "msmq.srmp.to", "-T", "fields", "-e", "msmq.srmp.to").strip() == "y"


def test_traffic_of_other_programs_keeps_its_name(tmp_path, script):
    """A datagram on the ping port without the signature, and XML that only mentions the namespace of SRMP."""
    datagrams = [
        c.udp_packet(bytes.fromhex("1a2b01000001000000000000016100000100 01"), c.CLIENT, 3527, c.SERVER, 53),
        c.udp_packet(b"\x80\0\0\7" + bytes(40), c.CLIENT, 5004, c.SERVER, 3527),
        c.udp_packet(h.ping()),
    ]
    namespace = "http://schemas.xmlsoap.org/srmp/"
    texts = [
        f"<a>see {namespace} for the names</a>",
        f"<Envelope><!-- <to xmlns='{namespace}'>x</to> --><to>y</to></Envelope>",
        f"<Envelope><a>xmlns='{namespace}'</a><to>z</to></Envelope>",
    ]
    posts = [
        f"POST /w HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\nContent-Length: {len(text)}\r\n\r\n{text}"
        for text in texts
    ]
    web = c.TcpConversation((c.CLIENT, 30_000), (c.SERVER, 80)).handshake()
    for post in posts:
        web.send(post.encode())
    path, other = tmp_path / "a.pcap", tmp_path / "b.pcap"
    path.write_bytes(c.pcap_bytes([c.ethernet(data) for data in datagrams]))
    other.write_bytes(c.pcap_bytes(web.close().frames))
    assert w.run(script, path, "-Y", "msmq", "-T", "fields", "-e", "frame.number").split() == ["3"]
    assert w.run(script, path, "-Y", "dns", "-T", "fields", "-e", "frame.number").split() == ["1"]
    assert w.run(script, other, "-Y", "msmq or msmq_srmp or msmq.srmp.to") == ""
    assert len(w.run(script, other, "-Y", "xml").splitlines()) == len(posts)


def test_packets_are_linked_with_what_answers_them(tmp_path, script):
    """Handshake, session, order and final acknowledgements, one of the application's queue, an answer."""
    identifier = h.CLIENT + (7).to_bytes(4, "little")
    transactional = h.user_message(
        user=h.user_header(message_id=7), transaction=h.transaction_header(number=3), flags=0
    )
    talk = c.TcpConversation().handshake()
    talk.send(h.establish_connection()).send(h.establish_connection(), by_client=False)
    talk.send(h.connection_parameters()).send(h.connection_parameters(), by_client=False)
    talk.send(transactional)
    talk.send(h.session_ack(h.session_header(ack=1)), by_client=False)
    talk.send(h.order_ack(body=h.order_ack_body(number=3)), by_client=False)
    talk.send(h.final_ack(body=h.final_ack_body(number=3, message_id=7)), by_client=False)
    for number in (0x4000, 0):
        properties = h.properties_header(message_class=number, correlation_id=identifier)
        talk.send(
            h.user_message(user=h.user_header(source=h.SERVER, message_id=8 + number), properties=properties),
            by_client=False,
        )
    path = tmp_path / "a.pcap"
    path.write_bytes(c.pcap_bytes(talk.frames))
    links = {
        frame: {name.rpartition(".")[2]: int(show) for name, show, _ in one.generated if ".link." in name}
        for frame, (one,) in w.shown(script, path, "-2").items()
    }
    first, second, third, fourth, message, session, order, final, administration, answer = links
    assert list(links.values()) == [
        {"response_in": second},
        {"request_in": first},
        {"response_in": fourth},
        {"request_in": third},
        {
            "acknowledged_in": session,
            "order_ack_in": order,
            "final_ack_in": final,
            "administration_in": administration,
            "answered_in": answer,
        },
        {"acknowledges": message},
        {"message_in": message},
        {"message_in": message},
        {"message_in": message},
        {"answers": message},
    ]


def test_other_ports_and_statistics(tmp_path, script):
    """A connection on another port is found by its first header; `-z msmq,stat` counts kinds and queues."""
    talk = c.TcpConversation(server=(c.SERVER, 18_010)).handshake()
    talk.send(h.user_message(user=h.user_header(destination=(7, h.direct_name("OS:host\\private$\\q")))))
    talk.send(h.session_ack(), by_client=False)
    path = tmp_path / "a.pcap"
    path.write_bytes(c.pcap_bytes(talk.frames))
    lines = [line.split() for line in w.run(script, path, "-q", "-z", "msmq,stat").splitlines()]
    assert ["Packets", "2"] in lines
    assert ["UserMessage", "1"] in lines
    assert ["SessionAck", "1"] in lines
    assert ["DIRECT=OS:host\\private$\\q", "1"] in lines
    for show, count in (("msmq", 2), ("msmq.session.windowsize == 64", 1), ("msmq.user.messageid == 2", 0)):
        assert len(w.run(script, path, "-Y", show).splitlines()) == count, show
