"""Captures to items: sessions in every state in which they can be captured."""

from __future__ import annotations

import io
import random
from collections.abc import Iterable

import pytest

import msmqwire
from msmqwire.analysis.dissection import Dissection, Item, dissect, format_time
from msmqwire.analysis.dissection.tracker import HALF_ENDED_MAX, HELD_MAX
from tests.support import captures as c
from tests.support import handmade as h

EC, CP, ACK = h.establish_connection(), h.connection_parameters(), h.session_ack()
MESSAGE = h.user_message(properties=h.properties_header(label="label", body=b"b" * 3000))
SMALL = h.user_message(session=h.session_header(), properties=h.properties_header(body=b"small"))
PING = h.ping()


def file(frames: Iterable[c.Frame | bytes], **options) -> io.BytesIO:
    return io.BytesIO(c.pcapng_bytes(frames, **options))


def dissected(frames: Iterable[c.Frame | bytes], *, ports=(), **options) -> list[Item]:
    return list(dissect(file(frames, **options), ports=ports))


def shown(items: Iterable[Item]) -> list[tuple[str, int]]:
    return [(item.kind, item.size) for item in items]


def session(client=(c.CLIENT, 50_000), server=(c.SERVER, 1801), **options) -> c.TcpConversation:
    talk = c.TcpConversation(client, server, **options).handshake()
    talk.send(EC).send(EC, by_client=False).send(CP).send(CP, by_client=False)
    return talk.send(MESSAGE).send(ACK, by_client=False).send(SMALL).close()


SESSION = [
    ("EstablishConnection", 572), ("EstablishConnection", 572), ("ConnectionParameters", 32),
    ("ConnectionParameters", 32), ("UserMessage", len(MESSAGE)), ("SessionAck", 36),
    ("UserMessage", len(SMALL)),
]  # fmt: skip


# --- complete sessions -------------------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-1.9-01")
def test_a_session_in_both_directions():
    talk = session()
    items = dissected(talk.frames)
    assert shown(items) == SESSION
    message = items[4]
    assert message.to_json()["fields"] == msmqwire.parse(MESSAGE).to_json()["fields"]
    assert (message.src, message.src_port, message.dst, message.dst_port) == (
        "10.0.0.1",
        50_000,
        "10.0.0.2",
        1801,
    )
    assert (message.transport, message.stream, message.raw, message.reason) == ("tcp", 0, MESSAGE, "")
    carrying = [
        number
        for number, frame in enumerate(talk.frames, 1)
        if frame.segment and frame.segment.payload and frame.segment.payload in MESSAGE
    ]
    assert list(message.frames) == carrying
    assert message.time_ns == talk.frames[carrying[-1] - 1].time_ns
    assert message.time == format_time(message.time_ns)
    assert items[5].src_port == 1801
    assert all(item.error is None for item in items)


@pytest.mark.parametrize("seed", range(4))
def test_a_session_in_disorder(seed):
    frames = c.disorder(
        session(mss=500).frames, random.Random(seed), reorder=0.3, duplicate=0.2, resegment=0.4, overlap=0.2
    )
    items = dissected(frames)
    assert sorted(shown(items)) == sorted(SESSION)
    for item in items:
        assert list(item.frames) == sorted(item.frames)
        assert item.time_ns == frames[item.frames[-1] - 1].time_ns


@pytest.mark.parametrize("link", c.LINKS)
def test_every_link_and_both_versions_of_ip(link):
    versions = [v for v in (4, 6) if (link, v) not in ((229, 4), (228, 6))]
    for version in versions:
        ends = (c.CLIENT_6, c.SERVER_6) if version == 6 else (c.CLIENT, c.SERVER)
        talk = session((ends[0], 50_000), (ends[1], 1801), link=c.LINKS[link])
        items = dissected(talk.frames, linktype=link)
        assert shown(items) == SESSION
        assert (items[0].src, items[0].dst) == ends


def test_vlan_tags_and_fragments():
    def fragmented(packet: bytes) -> list[bytes]:
        return [c.ethernet(part, vlan=(7, 8)) for part in c.fragments_4(packet, 400)]

    talk = session(link=c.raw)
    frames: list[c.Frame] = []
    for frame in talk.frames:
        frames += [c.Frame(frame.time_ns, part) for part in fragmented(frame.data)]
    assert shown(dissected(frames)) == SESSION


def test_two_connections_that_alternate():
    first, second = session((c.CLIENT, 50_001)), session((c.CLIENT, 50_002), start_ns=c.START_NS + 1)
    items = dissected(c.merged(first.frames, second.frames))
    for stream, port in ((0, 50_001), (1, 50_002)):
        mine = [item for item in items if item.stream == stream]
        assert shown(mine) == SESSION
        assert {item.src_port for item in mine} == {port, 1801}
    assert [item.time_ns for item in items] == sorted(item.time_ns for item in items)


def test_ports_used_again_are_another_stream():
    first = session()
    second = session(client_isn=500_000, server_isn=900_000, start_ns=first.time_ns + 1)
    third = session(client_isn=5_000_000, server_isn=9_000_000, start_ns=second.time_ns + 1)
    items = dissected(first.frames + second.frames + third.frames)
    assert [item.stream for item in items] == [0] * 7 + [1] * 7 + [2] * 7
    assert shown(items) == SESSION * 3


@pytest.mark.requirement("MQMQ-2.2.19.1-20")
def test_packet_sizes_of_a_message_and_of_a_session_ack():
    talk = c.TcpConversation().handshake().send(SMALL + ACK + SMALL + SMALL)
    items = dissected(talk.frames)
    assert [item.raw for item in items] == [SMALL, ACK, SMALL, SMALL]
    assert int.from_bytes(SMALL[8:12], "little") == len(SMALL) - 16
    assert items[0].packet.SessionHeader is not None


# --- ports -----------------------------------------------------------------------------------------------


def test_other_ports_are_recognised_by_the_signature():
    assert shown(dissected(session(server=(c.SERVER, 4444)).frames)) == SESSION


@pytest.mark.parametrize("mss", [1, 3, 5, 11, 12, 13])
def test_other_ports_are_recognised_in_small_segments(mss):
    talk = c.TcpConversation((c.CLIENT, 5), (c.SERVER, 6), mss=mss).handshake()
    talk.send(ACK).send(CP, by_client=False)
    items = dissected(talk.frames)
    assert shown(items) == [("SessionAck", 36), ("ConnectionParameters", 32)]
    segments = [n for n, f in enumerate(talk.frames, 1) if f.segment and f.segment.payload]
    assert items[0].frames == tuple(segments[: -(-36 // mss)])


def test_early_data_is_kept_once_the_connection_is_recognised():
    """The other side sent it first."""
    talk = c.TcpConversation((c.CLIENT, 5), (c.SERVER, 6)).handshake()
    talk.send(CP[:8], by_client=False).send(ACK).close()
    items = dissected(talk.frames)
    assert shown(items) == [("SessionAck", 36), ("Malformed", 8)]
    assert items[1].frames == (4,)


def test_other_traffic_on_other_ports_is_not_shown():
    web = c.TcpConversation((c.CLIENT, 5), (c.SERVER, 80)).handshake()
    web.send(b"\x10 is no packet").send(b"\x10\0\0", by_client=False).send(b"HTTP", by_client=False).close()
    assert dissected(web.frames) == []


def test_traffic_that_is_not_msmq_on_its_port_is_skipped():
    talk = c.TcpConversation().handshake().send(b"GET / HTTP/1.1\r\n\r\n").close()
    assert shown(dissected(talk.frames)) == [("Skipped", 18)]


def test_ports_by_option():
    talk = c.TcpConversation((c.CLIENT, 5), (c.SERVER, 4444)).handshake().send(b"xx")
    assert dissected(talk.frames) == []
    assert shown(dissected(talk.frames, ports=[4444])) == [("Skipped", 2)]


# --- pings -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-2.1.2-04")
def test_pings_on_their_port_and_on_others():
    frames = [
        c.ethernet(c.udp_packet(PING, c.CLIENT, 4057, c.SERVER, 3527)),
        c.ethernet(c.udp_packet(h.ping(flags=3), c.SERVER, 3527, c.CLIENT, 4057)),
        c.ethernet(c.udp_packet(PING, c.CLIENT_6, 4057, c.SERVER_6, 9999)),
        c.ethernet(c.udp_packet(PING + b"x", c.CLIENT, 4057, c.SERVER, 9999)),
        c.ethernet(c.udp_packet(b"name lookup", c.CLIENT, 4057, c.SERVER, 53)),
    ]
    items = dissected(frames)
    assert shown(items) == [("Ping", 24)] * 3
    assert [item.frames for item in items] == [(1,), (2,), (3,)]
    assert {(item.transport, item.stream) for item in items} == {("udp", None)}
    assert items[0].raw == PING


@pytest.mark.requirement("MQQB-3.1.5.1.1-07")
def test_the_ping_port_takes_only_pings_and_sessions_hold_none():
    frames = [
        c.ethernet(c.udp_packet(ACK, c.CLIENT, 4057, c.SERVER, 3527)),
        c.ethernet(c.udp_packet(PING[:20], c.CLIENT, 4057, c.SERVER, 3527)),
        c.ethernet(c.udp_packet(h.ping(signature=0x4855), c.CLIENT, 4057, c.SERVER, 3527)),
    ]
    assert shown(dissected(frames)) == [("Malformed", 36), ("Malformed", 20), ("Skipped", 24)]
    talk = c.TcpConversation().handshake().send(PING)
    assert shown(dissected(talk.frames)) == [("Skipped", 24)]


def test_a_ping_in_fragments_and_one_cut_by_the_snaplen():
    parts = c.fragments_4(c.udp_packet(PING), 16)
    (ping,) = dissected([c.ethernet(part) for part in parts])
    assert (ping.kind, ping.frames) == ("Ping", (1, 2))
    (cut,) = dissected([c.ethernet(c.udp_packet(PING))], snaplen=52)
    assert (cut.kind, cut.size, len(cut.raw)) == ("Malformed", 24, 10)


# --- what is missing -------------------------------------------------------------------------------------


def test_a_capture_that_begins_inside_a_stream():
    talk = c.TcpConversation(mss=1000)
    talk.send((MESSAGE + ACK + SMALL)[700:])
    items = dissected(talk.frames)
    assert shown(items) == [
        ("Skipped", len(MESSAGE) - 700), ("SessionAck", 36), ("UserMessage", len(SMALL))
    ]  # fmt: skip
    assert items[0].reason == "the capture begins inside the stream"
    assert items[0].to_json()["reason"] == items[0].reason
    assert "fields" not in items[0].to_json()


def test_a_segment_that_is_missing():
    talk = session()
    lost = next(n for n, f in enumerate(talk.frames) if f.segment and len(f.segment.payload) == 1460)
    del talk.frames[lost]
    items = dissected(talk.frames)
    client = [item for item in items if item.src == c.CLIENT]
    assert shown(client)[2:-1] == [("Skipped", 1460), ("Skipped", len(MESSAGE) - 1460)]
    assert shown(client)[-1] == ("UserMessage", len(SMALL))
    assert sum(item.size for item in client) == len(talk.sent[True])


def test_a_packet_cut_by_the_snaplen_is_malformed():
    """The next one is found."""
    talk = session()
    items = dissected(talk.frames, snaplen=1000)
    client = [item for item in items if item.src == c.CLIENT]
    assert sum(item.size for item in client) == len(talk.sent[True])
    assert ("UserMessage", len(SMALL)) in shown(client)
    malformed = [item for item in client if item.kind == "Malformed"]
    assert [item.size for item in malformed] == [1000 - 54]
    assert malformed[0].raw == MESSAGE[: 1000 - 54]
    assert malformed[0].to_json()["raw"] == malformed[0].raw.hex()
    reasons = [item.reason for item in client if item.kind == "Skipped"]
    assert "not in the capture: cut" in reasons


def test_the_capture_ends_inside_a_packet():
    talk = c.TcpConversation().handshake().send(ACK + MESSAGE[:500])
    items = dissected(talk.frames)
    assert shown(items) == [("SessionAck", 36), ("Malformed", 500)]
    error = items[1].to_json()["error"]
    assert error["path"] == "MessagePropertiesHeader.MessageBody"
    assert error["offset"] == 500


def test_a_file_that_is_cut_off():
    data = file(session().frames).getvalue()
    dissection = dissect(io.BytesIO(data[: len(data) // 2]))
    items = list(dissection)
    assert shown(items)[:4] == SESSION[:4]
    (error,) = dissection.errors
    assert "ends within" in error.why
    assert 0 < error.offset <= len(data) // 2


@pytest.mark.parametrize("data", [b"", b"\0", b"no capture", b"\x1f\x8b", b"\x0a\x0d\x0d\x0a" + bytes(20)])
def test_not_a_capture(data):
    dissection = dissect(io.BytesIO(data))
    assert list(dissection) == []
    assert len(dissection.errors) == 1


# --- impossible values -------------------------------------------------------------------------------------


@pytest.mark.requirement("MQMQ-2.2.19.1-21")
def test_a_size_that_can_not_be_does_not_hide_the_next_packet():
    talk = c.TcpConversation().handshake().send(ACK + h.base_header(0x400001) + b"junk" + ACK)
    items = dissected(talk.frames)
    assert shown(items) == [("SessionAck", 36), ("Malformed", 16), ("Skipped", 4), ("SessionAck", 36)]
    assert items[1].error.path == "BaseHeader.PacketSize"
    assert any(finding.severity == "ATTACK" for finding in items[1].findings)


def test_a_malformed_packet_does_not_hide_the_next_one():
    bad = bytearray(SMALL)
    bad[60:64] = b"\xff" * 4
    talk = c.TcpConversation().handshake().send(bytes(bad) + ACK)
    items = dissected(talk.frames)
    assert shown(items) == [("Malformed", len(SMALL)), ("SessionAck", 36)]
    assert items[0].raw == bytes(bad)
    assert items[0].packet is None


def test_frames_without_any_meaning():
    rng = random.Random(1)
    frames = [rng.randbytes(rng.randrange(100)) for _ in range(500)]
    frames += [f.data[: rng.randrange(len(f.data))] for f in session().frames]
    list(dissect(file(frames)))


def test_times_beyond_the_calendar():
    assert format_time(0) == "1970-01-01T00:00:00.000000000Z"
    assert format_time(1_772_366_400_000_001_000) == "2026-03-01T12:00:00.000001000Z"
    assert format_time(-1) == "1969-12-31T23:59:59.999999999Z"
    assert format_time(2**63 * 1000) == "9223372036854.775808000"


# --- several files ---------------------------------------------------------------------------------------


def test_several_files_are_one_capture(tmp_path):
    talk = session()
    paths = []
    for number in range(0, len(talk.frames), 5):
        paths.append(tmp_path / f"part{number:03}.pcap")
        paths[-1].write_bytes(c.pcap_bytes(talk.frames[number : number + 5], nanoseconds=True))
    for sources in (paths, tmp_path / "part*.pcap", str(tmp_path / "*.pcap")):
        items = list(dissect(sources))
        assert shown(items) == SESSION
        assert {item.stream for item in items} == {0}
        for item in items:
            number = next(n for n, f in enumerate(talk.frames) if f.time_ns == item.time_ns)
            assert item.frames[-1] == number % 5 + 1
            assert item.file == str(paths[number // 5])


def test_a_packet_over_two_files(tmp_path):
    talk = c.TcpConversation(mss=1000).handshake().send(MESSAGE, acknowledged=False)
    first, second = tmp_path / "1", tmp_path / "2"
    first.write_bytes(c.pcap_bytes(talk.frames[:5]))
    second.write_bytes(c.pcap_bytes(talk.frames[5:]))
    (message,) = dissect([first, second])
    assert (message.frames, message.file) == ((4, 5, 1, 2), str(second))


def test_a_damaged_file_does_not_hide_the_next(tmp_path):
    talk = session()
    (tmp_path / "1").write_bytes(c.pcap_bytes(talk.frames)[:-10])
    (tmp_path / "2").write_bytes(b"no capture")
    (tmp_path / "3").write_bytes(c.pcap_bytes([c.ethernet(c.udp_packet(PING))]))
    dissection = dissect(tmp_path / "[0-9]")
    assert shown(dissection) == [*SESSION, ("Ping", 24)]
    assert [error.file for error in dissection.errors] == [str(tmp_path / "1"), str(tmp_path / "2")]


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        dissect(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        dissect([tmp_path / "*.pcap"])


def test_a_stream_that_reads_little_at_a_time():
    class Slow(io.RawIOBase):
        def __init__(self, data: bytes) -> None:
            self._data, self._at = data, 0

        def read(self, size: int = -1) -> bytes:
            self._at += 7
            return self._data[self._at - 7 : self._at]

    assert shown(dissect(Slow(file(session().frames).getvalue()))) == SESSION


def test_progress_is_reported(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(file(session().frames).getvalue())
    sizes: list[int] = []
    list(dissect(path, progress=sizes.append))
    assert sum(sizes) == path.stat().st_size


# --- lint ------------------------------------------------------------------------------------------------


def test_findings_only_when_wanted():
    talk = c.TcpConversation().handshake().send(h.base_header(1)).close()
    assert all(item.findings == [] for item in dissect(file(talk.frames), lint=False))
    assert any(item.findings for item in dissect(file(talk.frames)))


# --- limits ----------------------------------------------------------------------------------------------


def test_one_sided_connections_are_forgotten_beyond_a_limit():
    frames = []
    for port in range(HALF_ENDED_MAX + 500):
        talk = c.TcpConversation((c.CLIENT, 2000 + port), start_ns=c.START_NS + port)
        talk.segment(True, flags=c.SYN).segment(True, ACK).segment(True, flags=c.FIN | c.ACK)
        frames += talk.frames
    dissection = Dissection(file(frames))
    assert shown(dissection) == [("SessionAck", 36)] * (HALF_ENDED_MAX + 500)
    assert len(dissection.tracker.connections) <= HALF_ENDED_MAX
    assert dissection.tracker.held == 0


def test_the_memory_of_incomplete_packets_is_bounded(monkeypatch):
    monkeypatch.setattr("msmqwire.analysis.dissection.tracker.HELD_MAX", 100_000)
    assert HELD_MAX > 100_000
    large = h.user_message(properties=h.properties_header(body=bytes(30_000)))
    talks = []
    for number in range(20):
        talk = c.TcpConversation((c.CLIENT, 2000 + number), start_ns=c.START_NS + number).handshake()
        talks.append(talk.send(large[:20_000], acknowledged=False))
    for talk in talks:
        talk.wait(10**9).send(large[20_000:] + ACK, acknowledged=False).close()
    dissection, most = dissect(file(c.merged(*(talk.frames for talk in talks)))), 0
    items = []
    for item in dissection:
        items.append(item)
        most = max(most, dissection.tracker.held)
    assert most < 200_000
    assert dissection.tracker.held == 0
    for number in range(20):
        mine = [item for item in items if item.src_port == 2000 + number]
        assert sum(item.size for item in mine) == len(large) + 36
        assert mine[-1].kind == "SessionAck"
    reasons = {item.reason for item in items if item.kind == "Skipped"}
    assert "let go, as too much is held of packets that are not whole" in reasons
    assert ("UserMessage", len(large)) in shown(items)
