"""Packets in tunnels are read as if they were plain, by both engines."""

from __future__ import annotations

import io
import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import msmqwire
from msmqwire.analysis.dissection import dissect
from msmqwire.capture import Datagram, IpDecoder, Record, open_records
from msmqwire.capture.tunnels import UDP_PORTS
from msmqwire.tables.columns import TUNNEL
from msmqwire.tables.compiled import engine
from msmqwire.tables.compiled.datagram_scan import C_PAIR, C_SIZE, C_TUNNEL
from msmqwire.tables.datagrams import DatagramReader
from msmqwire.tables.scanning import encapsulations
from tests.property.tables.test_columnar import PING
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture import tunnelled_frames as t
from tests.support.capture import unread_frames as u
from tests.support.capture.both_readers import assert_same, columnar
from tests.support.running import in_process as command

PACKETS = {
    "udp": c.udp_packet(PING),
    "udp of IPv6": c.udp_packet(PING, c.CLIENT_6, 3527, c.SERVER_6, 3527),
    "tcp": c.ipv4(c.tcp(b"data of a segment", c.CLIENT, 4000, c.SERVER, 1801, flags=c.ACK)),
}


def decoded(linktype: int, frame: bytes, length: int = 0) -> list[Datagram]:
    decoder = IpDecoder()
    record = Record("x", 1, c.START_NS, linktype, frame, length or len(frame), 0)
    return list(decoder.feed(record))


@pytest.mark.parametrize("packet", PACKETS.values(), ids=list(PACKETS))
@pytest.mark.parametrize("form", t.FORMS)
def test_the_inner_packet_is_read(form: str, packet: bytes) -> None:
    linktype, make = t.FORMS[form]
    (plain,) = decoded(1, c.ethernet(packet))
    (inner,) = decoded(linktype, make(packet))
    assert inner._replace(network=0) == plain


def test_names() -> None:
    """The tunnels from outside in, the addresses next outside, and the innermost number."""
    for form, (linktype, make) in t.FORMS.items():
        (datagram,) = decoded(linktype, make(PACKETS["udp"]))
        assert datagram.encapsulation == t.TUNNELS[form], form
    for form, text in (("ipip", "6in4"), ("over IPv6", "6in6")):
        (datagram,) = decoded(1, t.FORMS[form][1](PACKETS["udp of IPv6"]))
        assert datagram.encapsulation.text == text


@pytest.mark.parametrize("form", t.FORMS)
def test_both_engines_read_it(form: str) -> None:
    linktype, make = t.FORMS[form]
    frames = [(linktype, make(packet)) for packet in PACKETS.values()]
    data = u.capture_of(frames)
    assert_same([data])
    decoder = columnar([data])[0]
    assert decoder.frames_not_read == ()
    reader, portable = DatagramReader(), IpDecoder()
    sizes: list[int] = []
    for batch in (*reader.read(io.BytesIO(data), 0), *reader.finish()):
        sizes += batch.cells[C_SIZE].tolist()
    expected = [each for record in open_records(io.BytesIO(data)) for each in portable.feed(record)]
    assert sizes == [len(datagram.payload) for datagram in expected]
    assert len(sizes) == len(PACKETS)


@pytest.mark.parametrize("form", t.FORMS)
def test_a_frame_cut_at_any_byte_is_bounded(form: str) -> None:
    """It has the same endpoints, with the bytes that are missing, or those of a tunnel of UDP, or nothing."""
    linktype, make = t.FORMS[form]
    for packet in PACKETS.values():
        frame = make(packet)
        (whole,) = decoded(linktype, frame)
        for size in range(len(frame)):
            for datagram in decoded(linktype, frame[:size], len(frame)):
                payload, missing = datagram.payload, datagram.missing
                if datagram.dst_port in UDP_PORTS:  # what would be in it is not there
                    assert whole.encapsulation != datagram.encapsulation
                    continue
                assert len(payload) + missing == len(whole[8])
                assert datagram[1:5] == whole[1:5]


def pcap_of(linktype: int, records: list[tuple[bytes, int]]) -> bytes:
    """A file of frames, each with the size that it had on the wire."""
    data = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, linktype)
    for number, (frame, length) in enumerate(records):
        data += struct.pack("<IIII", 1_700_000_000, number, len(frame), length) + frame
    return data


def check_readers(linktype: int, records: list[tuple[bytes, int]]) -> None:
    """Check that all readers find the same datagrams, rows and counts."""
    data = pcap_of(linktype, records)
    assert_same([data])
    reader, portable = DatagramReader(), IpDecoder()
    read = [*reader.read(io.BytesIO(data), 0), *reader.finish()]
    expected = [each for record in open_records(io.BytesIO(data)) for each in portable.feed(record)]
    sizes = [size for batch in read for size in batch.cells[C_SIZE].tolist()]
    assert sizes == [len(datagram.payload) for datagram in expected]
    pairs = [batch.pairs[pair] for batch in read for pair in batch.cells[C_PAIR].tolist()]
    assert pairs == [datagram.key for datagram in expected]
    texts = [batch.tunnels.lists["tunnel"][tunnel] for batch in read for tunnel in batch.cells[C_TUNNEL]]
    assert texts == [datagram.encapsulation.text for datagram in expected]
    assert reader.frames_not_read(at_end=True) == _counts_of(portable)


def _counts_of(decoder: IpDecoder) -> dict[str, int]:
    decoder.end()
    return decoder.frames_not_read()


@pytest.mark.parametrize("form", t.FORMS)
def test_cuts_at_every_byte_in_all_readers(form: str) -> None:
    """Frames that are as short, and frames of which the rest was not captured; after a whole one."""
    linktype, make = t.FORMS[form]
    for packet in (PACKETS["udp"], PACKETS["tcp"]):
        frame = make(packet)
        cuts = [frame[:size] for size in range(len(frame))]
        check_readers(
            linktype, [(frame, len(frame)), *((cut, n) for cut in cuts for n in (len(frame), len(cut)))]
        )


@pytest.mark.parametrize("form", t.FORMS)
def test_damage_at_every_byte_in_all_readers(form: str) -> None:
    linktype, make = t.FORMS[form]
    frame = make(PACKETS["udp"])
    records = [(frame, len(frame))]
    for at, value in enumerate(frame):
        for other in (0, 0xFF, value ^ 1, value ^ 0x20, value ^ 0x40):
            records.append((frame[:at] + bytes([other]) + frame[at + 1 :], len(frame)))
    check_readers(linktype, records)


def test_hostile_nesting_is_bounded() -> None:
    """Many headers that fit into a frame, of all kinds; and lengths that promise more than there is."""
    for make in (*t.WITHIN[:-1], lambda whole: t.frame(t.in_ip(whole[14:]))):
        frame = c.ethernet(PACKETS["udp"])
        frames = []
        while len(frame) < 60_000 and len(frames) < 300:
            frame = make(frame)
            frames.append(frame)
        check_readers(1, [(frame, len(frame)) for frame in frames])
        check_readers(1, [(frame[:2000], len(frame)) for frame in frames])
        assert len(decoded(1, frames[2])) == 1
        assert decoded(1, frames[8]) == []


def test_fragments_outside_and_inside_of_a_tunnel() -> None:
    packet = c.udp_packet(PING * 3, ident=5)
    outer = c.fragments_4(c.ipv4(packet, t.OUTER, t.OUTER_DST, protocol=4, ident=9), 48)
    inner = [t.over_4(part, 4) for part in c.fragments_4(packet, 48)]
    for parts in (outer, inner):
        decoder = IpDecoder()
        records = open_records(io.BytesIO(c.pcap_bytes([c.ethernet(part) for part in parts])))
        (datagram,) = [each for record in records for each in decoder.feed(record)]
        assert datagram.payload == PING * 3
        assert datagram.src == c.CLIENT
        assert datagram.frames == tuple(range(1, len(parts) + 1))
        assert_same([c.pcap_bytes([c.ethernet(part) for part in parts])])


def test_segmentation_offload_inside_of_a_tunnel() -> None:
    """The length of the inner packet is 0: it ends with the outer one, not with the padding."""
    packet = c.ipv4(c.tcp(b"much data", c.CLIENT, 4000, c.SERVER, 1801), total=0)
    (datagram,) = decoded(1, c.ethernet(t.over_4(packet, 4)) + bytes(30))
    assert datagram[8] == b"much data"


def test_depth() -> None:
    assert len(decoded(1, c.ethernet(u.nested(8)))) == 1
    assert decoded(1, c.ethernet(u.nested(9))) == []


def test_one_connection_plain_and_mirrored_is_one() -> None:
    """Frames of one conversation, some plain, some in ERSPAN or behind labels."""
    segments = [
        c.ipv4(c.tcp(part, c.CLIENT, 4000, c.SERVER, 1801, seq=seq, flags=c.ACK))
        for seq, part in ((1, b"one"), (4, b"two"), (7, b"six"))
    ]
    frames = [c.ethernet(segments[0])]
    for segment in segments:
        frames += [t.frame(t.erspan_2(t.frame(segment))), t.typed(0x8847, t.labels(17) + segment)]
    assert_same([c.pcap_bytes(frames)])


# -- streams -------------------------------------------------------------------------------------------------


def message(number: int) -> bytes:
    return h.user_message(user=h.user_header(message_id=number))


def message_of(seq: int, number: int) -> bytes:
    """A segment with a message of its own."""
    return c.ipv4(c.tcp(message(number), c.CLIENT, 4000, c.SERVER, 1801, seq=seq, flags=c.ACK | c.PSH))


def rows_of(frames: list[bytes], *columns: str) -> list[tuple[Any, ...]]:
    data = c.pcap_bytes(frames)
    assert_same([data])
    assert_same([data], CHUNK=700, ARENA=400, ROWS=3)
    _, table = columnar([data])
    return list(zip(*(table[name].to_pylist() for name in columns), strict=True))


def in_vxlan(vni: int) -> Callable[[bytes], bytes]:
    return lambda packet: t.frame(t.vxlan(t.frame(packet), vni))


def in_gre(key: int) -> Callable[[bytes], bytes]:
    return lambda packet: t.frame(t.keyed(packet, t.ethertype(packet), key))


def in_erspan(session: int) -> Callable[[bytes], bytes]:
    return lambda packet: t.frame(t.erspan_2(t.frame(packet), session))


def in_labels(*labels: int) -> Callable[[bytes], bytes]:
    return lambda packet: t.typed(0x8847, t.labels(*labels) + packet)


SEPARATE = {
    "two VNIs": (in_vxlan(1), in_vxlan(2)),
    "plain and a VNI": (c.ethernet, in_vxlan(1)),
    "two keys": (in_gre(1), in_gre(2)),
    "a key and a VNI": (in_gre(1), in_vxlan(2)),
    "the order": (
        lambda packet: t.frame(t.keyed(t.vxlan(t.frame(packet), 2), b"\x08\0", 1)),
        lambda packet: t.frame(t.keyed(t.vxlan(t.frame(packet), 1), b"\x08\0", 2)),
    ),
    "keys of IPv6": (
        in_gre(5),
        lambda packet: t.frame(t.over_6(b"\x20\0\x08\0\0\0\0\6" + packet, 47)),
    ),
}
SAME = {
    "ERSPAN": (c.ethernet, in_erspan(7)),
    "two sessions": (in_erspan(6), in_erspan(7)),
    "MPLS": (c.ethernet, in_labels(16)),
    "two stacks": (in_labels(16), in_labels(100, 17)),
    "a VLAN": (c.ethernet, lambda packet: c.ethernet(packet, [7])),
    "GRE without a key": (c.ethernet, lambda packet: t.frame(t.gre(b"\x08\0", packet))),
    "one VNI, mirrored": (
        in_vxlan(4),
        lambda packet: t.frame(t.erspan_2(t.frame(t.vxlan(t.frame(packet), 4)))),
    ),
}


@pytest.mark.parametrize("makes", SEPARATE.values(), ids=list(SEPARATE))
def test_equal_addresses_in_two_networks_are_two_streams(makes: Any) -> None:
    """Each has its own messages, which have the same sequence numbers; and so has a third that is between."""
    size = len(message(1))
    frames = [
        make(message_of(1 + size * number, 10 * number + which))
        for number in range(5)
        for which, make in enumerate(makes)
    ]
    rows = rows_of(frames, "stream", "message_id", "kind")
    assert sorted(rows) == [
        (which, 10 * number + which, "UserMessage") for which in range(2) for number in range(5)
    ]


@pytest.mark.parametrize("makes", SAME.values(), ids=list(SAME))
def test_a_connection_that_is_seen_twice_is_one(makes: Any) -> None:
    """Its rows come once, with the tunnels of the frame that completed each."""
    size = len(message(1))
    packets = [message_of(1 + size * number, number) for number in range(12)]
    frames = [make(packet) for packet in packets for make in makes]
    rows = rows_of(frames, "stream", "message_id", "frame")
    assert [row[:2] for row in rows] == [(0, number) for number in range(12)]
    alternating = [makes[number % 2](packet) for number, packet in enumerate(packets)]
    expected = [decoded(1, frame)[0].encapsulation[:3] for frame in alternating]
    assert rows_of(alternating, "tunnel", "tunnel_src", "tunnel_dst") == expected


def test_the_frame_that_completes_a_packet_tells_the_tunnel() -> None:
    """Segments of one packet in several tunnels, in any order, and behind gaps."""
    data = b"".join(message(number) for number in range(3))
    parts = [(at, data[at : at + 100]) for at in range(0, len(data), 100)]
    makes = [c.ethernet, in_erspan(7), in_labels(16), in_labels(17, 18), lambda p: t.frame(t.over_4(p, 4))]
    for seed in range(20):
        rng = random.Random(seed)
        order = list(parts)
        for _ in range(rng.randrange(8)):
            i = rng.randrange(len(order) - 1)
            order[i], order[i + 1] = order[i + 1], order[i]
        arriving = [
            rng.choice(makes)(c.ipv4(c.tcp(part, c.CLIENT, 4000, c.SERVER, 1801, seq=1 + at, flags=c.ACK)))
            for at, part in order
        ]
        rows = rows_of(arriving, "frame", "tunnel", "tunnel_src", "tunnel_dst", "tunnel_id")
        for frame, *tunnel in rows:
            assert tuple(tunnel) == decoded(1, arriving[frame - 1])[0].encapsulation


def test_fragments_of_two_networks_are_kept_apart() -> None:
    """Two tenants send datagrams with the same addresses and identification at the same time."""
    packets = [c.udp_packet(PING[:4] + bytes([tenant]) * 20, ident=5) for tenant in range(2)]
    parts = [c.fragments_4(packet, 24) for packet in packets]
    frames = [in_vxlan(tenant + 1)(parts[tenant][i]) for i in range(len(parts[0])) for tenant in range(2)]
    rows = rows_of(frames, "ping_cookie", "tunnel_id", "frame")
    assert [row[1:] for row in rows] == [(1, len(frames) - 1), (2, len(frames))]
    assert len({row[0] for row in rows}) == 2
    decoder = IpDecoder()
    records = open_records(io.BytesIO(c.pcap_bytes(frames)))
    datagrams = [each for record in records for each in decoder.feed(record)]
    assert [one.payload for one in datagrams] == [packet[28:] for packet in packets]


def test_rows_of_items_and_json() -> None:
    (item,) = list(dissect(io.BytesIO(c.pcap_bytes([in_vxlan(5001)(PACKETS["udp"])]))))
    tunnel = "vxlan=5001", t.OUTER, t.OUTER_DST, 5001
    assert (item.tunnel, item.tunnel_src, item.tunnel_dst, item.tunnel_id) == tunnel
    found = json.loads(json.dumps(item.to_json()))
    assert tuple(found[name] for name in TUNNEL) == tunnel
    (plain,) = list(dissect(io.BytesIO(c.pcap_bytes([c.ethernet(PACKETS["udp"])]))))
    assert [plain.to_json()[name] for name in TUNNEL] == [None] * 4


def test_rows_are_chosen_by_their_tunnel() -> None:
    data = c.pcap_bytes([in_vxlan(vni)(PACKETS["udp"]) for vni in (1, 2, 3)] + [c.ethernet(PACKETS["udp"])])
    for where, count in (
        ([("tunnel_id", ">", 1)], 2),
        ("tunnel = 'vxlan=3'", 1),
        ("tunnel is null", 1),
        ([("tunnel_dst", "==", t.OUTER_DST), ("src", "==", c.CLIENT)], 3),
    ):
        assert msmqwire.read_capture(io.BytesIO(data), where=where).num_rows == count, where


def test_frames_of_a_connection_are_those_of_its_network(tmp_path: Path) -> None:
    """`pcap --connections` takes those of one of two tenants, and of one that is seen twice all."""
    path = tmp_path / "all.pcap"
    size = len(message(1))
    frames = [
        make(message_of(1 + size * number, number))
        for number in range(4)
        for make in (in_vxlan(1), in_vxlan(2), c.ethernet, in_erspan(3))
    ]
    path.write_bytes(c.pcap_bytes(frames))
    for where, of_one in (("tunnel_id == 1", 1), ("tunnel_id == 2", 1), ("tunnel is null", 2)):
        taken = tmp_path / f"{where}.pcap"
        done = command("pcap", path, "--where", where, "--connections", "-o", taken)
        assert done.returncode == 0, done.stderr
        assert sum(1 for _ in open_records(taken)) == 4 * of_one


def test_more_tunnels_than_have_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded: rows of further ones say nothing of them, and are there."""
    if engine.chosen().name == engine.PORTABLE:
        pytest.skip("without compiled code tunnels have no numbers that could run out")
    monkeypatch.setattr(encapsulations, "TUNNEL_MASK", 127)
    frames = [in_vxlan(vni)(PACKETS["udp"]) for vni in range(200)]
    _, table = columnar([c.pcap_bytes(frames)])
    assert table["tunnel_id"].to_pylist() == [*range(127), *[None] * 73]


def test_many_tunnels_in_both_engines() -> None:
    """And what is due while the first frame of a tunnel is read does not overwrite it."""
    numbers = range(1, 300)
    frames = [
        make(number)(message_of(1, number))
        for number in numbers
        for make in (in_vxlan, in_labels, lambda number: in_gre(1000 + number))
    ]
    rows = rows_of(frames * 2, "tunnel", "message_id")
    expected = {f"vxlan={number}": number for number in numbers}
    expected |= {f"gre={1000 + number}": number for number in numbers}
    found = {tunnel: message for tunnel, message in rows if not tunnel.startswith("mpls")}
    assert found == expected
    assert len(rows) == len(found) + 1
