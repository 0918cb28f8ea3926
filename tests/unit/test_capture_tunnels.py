"""Packets in tunnels are read as if they were plain, by both engines."""

from __future__ import annotations

import io

import pytest

from msmqwire.capture import Datagram, IpDecoder, Record, open_records
from msmqwire.columnar.compiled.datagram_scan import C_SIZE
from msmqwire.columnar.datagrams import DatagramReader
from tests.property.test_columnar import PING
from tests.support import captures as c
from tests.support import tunnelled_frames as t
from tests.support import unread_frames as u
from tests.support.both_readers import assert_same, columnar

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
    assert decoded(linktype, make(packet)) == [plain]


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
    """It has the same endpoints, with the bytes that are missing, or nothing."""
    linktype, make = t.FORMS[form]
    for packet in PACKETS.values():
        frame = make(packet)
        (whole,) = decoded(linktype, frame)
        for size in range(len(frame)):
            for datagram in decoded(linktype, frame[:size], len(frame)):
                payload, missing = datagram[8], datagram[9]
                assert len(payload) + missing == len(whole[8])
                assert datagram[1:5] == whole[1:5]


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
