"""Frames of every link type to datagrams, over IPv4 and IPv6 with all their options and extensions."""

from __future__ import annotations

import random
import struct

import pytest

from msmqwire.capture import Datagram, IpDecoder, Record
from msmqwire.capture.fragments import FRAGMENT_BYTES_MAX, FRAGMENT_NS_MAX, FRAGMENTED_MAX
from msmqwire.capture.ip import ADDRESSES_MAX
from tests.support import captures as c

PAYLOAD = b"MSMQ is not known here" * 3


def decode(
    *frames: bytes, linktype: int = 1, step_ns: int = 1, decoder: IpDecoder | None = None
) -> list[Datagram]:
    decoder = decoder or IpDecoder()
    datagrams: list[Datagram] = []
    for number, frame in enumerate(frames, 1):
        record = Record("f", number, number * step_ns, linktype, frame, len(frame), 0)
        datagrams.extend(decoder.feed(record))
    return datagrams


def ignored(frame: bytes, linktype: int = 1) -> dict[str, int]:
    decoder = IpDecoder()
    assert decode(frame, linktype=linktype, decoder=decoder) == []
    return dict(decoder.ignored)


UDP_4 = c.udp_packet(PAYLOAD)
UDP_6 = c.udp_packet(PAYLOAD, c.CLIENT_6, 1, c.SERVER_6, 2)
EXPECTED_4 = Datagram("udp", c.CLIENT, 3527, c.SERVER, 3527, 1, (1,), "f", PAYLOAD, 0, 0, 0, 0)
EXPECTED_6 = Datagram("udp", c.CLIENT_6, 1, c.SERVER_6, 2, 1, (1,), "f", PAYLOAD, 0, 0, 0, 0)


@pytest.mark.parametrize("linktype", c.LINKS)
def test_links(linktype):
    link = c.LINKS[linktype]
    assert decode(link(UDP_4), linktype=linktype) == ([EXPECTED_4] if linktype != 229 else [])
    assert decode(link(UDP_6), linktype=linktype) == ([EXPECTED_6] if linktype != 228 else [])


@pytest.mark.parametrize("family", [10, 24, 28, 30])
@pytest.mark.parametrize("byteorder", ["<", ">"])
def test_loopback_families(family, byteorder):
    assert decode(c.null(UDP_4, byteorder), linktype=0) == [EXPECTED_4]
    assert decode(c.null(UDP_6, byteorder, family), linktype=0) == [EXPECTED_6]


@pytest.mark.parametrize(
    "vlan", [(7,), ((0x88A8, 5), (0x8100, 6)), ((0x9100, 5), (0x9100, 6), 1), tuple(range(1, 9))]
)
def test_vlan_tags(vlan):
    assert decode(c.ethernet(UDP_4, vlan)) == [EXPECTED_4]
    assert decode(c.ethernet(UDP_6, vlan)) == [EXPECTED_6]


def test_more_tags_than_eight_are_not_followed():
    assert ignored(c.ethernet(UDP_4, range(9))) == {"not-ip": 1}


def test_tags_in_cooked_frames():
    frame = c.cooked(UDP_4)
    assert decode(frame[:14] + b"\x81\0\0\7" + frame[14:], linktype=113) == [EXPECTED_4]


@pytest.mark.parametrize("version", [4, 6])
def test_tcp(version):
    src, dst = (c.CLIENT, c.SERVER) if version == 4 else (c.CLIENT_6, c.SERVER_6)
    segment = c.tcp(PAYLOAD, src, 1, dst, 2, seq=2**32 - 1, ack=5, flags=0xD8, options=bytes(12))
    expected = Datagram("tcp", src, 1, dst, 2, 1, (1,), "f", PAYLOAD, 0, 2**32 - 1, 5, 0xD8)
    assert decode(c.ethernet(c.ip(segment, src, dst, protocol=6))) == [expected]


@pytest.mark.parametrize("version", [4, 6])
def test_pgm_has_its_own_ports_and_is_payload_as_a_whole(version):
    src, dst = (c.CLIENT, "224.1.2.3") if version == 4 else (c.CLIENT_6, "ff02::1")
    packet = b"\xc3\x51\x0b\xef" + bytes(range(4, 30))
    expected = Datagram("pgm", src, 50_001, dst, 3055, 1, (1,), "f", packet, 0, 0, 0, 0)
    assert decode(c.ethernet(c.ip(packet, src, dst, protocol=113))) == [expected]


def test_padding_is_no_payload():
    frame = c.ethernet(c.ip(c.tcp(b"a"), c.CLIENT, c.SERVER, protocol=6))
    assert len(frame) == 60
    assert [d.payload for d in decode(frame)] == [b"a"]
    assert [d.payload for d in decode(frame + bytes(1000))] == [b"a"]


def test_a_length_of_zero_means_all_of_the_frame():
    large = c.tcp(bytes(70_000))
    for packet in (c.ipv4(large, total=0), c.ipv6(large, total=0)):
        assert [(len(d.payload), d.missing) for d in decode(c.ethernet(packet))] == [(70_000, 0)]
    record = Record("f", 1, 1, 1, c.ethernet(c.ipv4(large, total=0))[:100], 70_054, 0)
    assert [(len(d.payload), d.missing) for d in IpDecoder().feed(record)] == [(46, 70_000 - 46)]


@pytest.mark.parametrize("options", [4, 12, 40])
def test_ipv4_options(options):
    packet = c.ipv4(c.udp(PAYLOAD), protocol=17, options=b"\1" * options)
    assert decode(c.ethernet(packet)) == [EXPECTED_4]


HOP, ROUTING, DESTINATION, AH = (0, bytes(6)), (43, bytes(14)), (60, bytes(22)), (51, bytes(22))
ATOMIC = (44, bytes(6))


@pytest.mark.parametrize("extensions", [[HOP], [ROUTING], [DESTINATION], [AH], [ATOMIC], [HOP, ROUTING, ATOMIC, AH, DESTINATION]])  # fmt: skip  # noqa: E501
def test_ipv6_extension_headers(extensions):
    segment = c.udp(PAYLOAD, c.CLIENT_6, 1, c.SERVER_6, 2)
    assert decode(c.ethernet(c.ipv6(segment, protocol=17, extensions=extensions))) == [EXPECTED_6]


def test_an_authentication_header_in_ipv4():
    packet = c.ipv4(bytes([17, 4]) + bytes(22) + c.udp(PAYLOAD), protocol=51)
    assert decode(c.ethernet(packet)) == [EXPECTED_4]


@pytest.mark.parametrize("packet", [UDP_4, UDP_6, c.ip(c.tcp(PAYLOAD, options=bytes(8)), c.CLIENT, c.SERVER, protocol=6)])  # fmt: skip  # noqa: E501
def test_frames_cut_by_the_snaplen(packet):
    frame = c.ethernet(packet)
    for cut in range(len(frame)):
        decoder = IpDecoder()
        datagrams = list(decoder.feed(Record("f", 1, 1, 1, frame[:cut], len(frame), 0)))
        if datagrams:
            assert datagrams[0].payload + PAYLOAD[len(datagrams[0].payload) :] == PAYLOAD
            assert len(datagrams[0].payload) + datagrams[0].missing == len(PAYLOAD)
        else:
            assert decoder.ignored == {"cut": 1}


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("seed", range(20))
def test_fragments_in_any_order(version, seed):
    rng = random.Random(seed)
    payload = rng.randbytes(3000)
    if version == 4:
        parts = c.fragments_4(c.udp_packet(payload, ident=7), 8 * rng.randint(1, 60))
    else:
        parts = c.fragments_6(c.udp_packet(payload, c.CLIENT_6, 1, c.SERVER_6, 2), 8 * rng.randint(1, 60))
    parts += rng.sample(parts[:-1], 3)
    rng.shuffle(parts)
    datagrams = decode(*map(c.ethernet, parts))
    assert [(d.payload, d.missing) for d in datagrams] == [(payload, 0)]
    assert datagrams[0].frames[-1] == datagrams[0].time_ns
    assert list(datagrams[0].frames) == list(range(1, datagrams[0].frames[-1] + 1))


def test_of_overlapping_fragments_the_first_wins():
    first, second, third = c.fragments_4(c.udp_packet(bytes(40), ident=1), 16)
    forged = c.ipv4(b"\xff" * 32, protocol=17, ident=1, offset=8, more=True)
    assert [d.payload for d in decode(*map(c.ethernet, (first, second, forged, third)))] == [
        bytes(24) + b"\xff" * 8 + bytes(8)
    ]
    datagrams = decode(*map(c.ethernet, (first, forged, second, third)))
    assert [d.payload for d in datagrams] == [bytes(8) + b"\xff" * 24 + bytes(8)]


def test_fragments_of_other_datagrams_are_not_mixed():
    first, second = (c.fragments_4(c.udp_packet(bytes([n]) * 40, ident=n), 24) for n in (1, 2))
    datagrams = decode(*map(c.ethernet, (first[0], second[1], second[0], first[1])))
    assert [d.payload for d in datagrams] == [b"\2" * 40, b"\1" * 40]
    assert [d.frames for d in datagrams] == [(2, 3), (1, 4)]


def test_a_fragment_cut_by_the_snaplen_ends_what_is_there():
    first, second = (c.ethernet(p, padded=False) for p in c.fragments_4(c.udp_packet(bytes(40), ident=1), 24))
    decoder = IpDecoder()
    assert list(decoder.feed(Record("f", 1, 1, 1, first[:-4], len(first), 0))) == []
    (datagram,) = decoder.feed(Record("f", 2, 2, 1, second, len(second), 0))
    assert (len(datagram.payload), datagram.missing) == (12, 28)


def test_fragments_are_awaited_for_a_minute():
    parts = [c.ethernet(p) for p in c.fragments_4(c.udp_packet(bytes(40), ident=1), 24)]
    assert len(decode(*parts, step_ns=FRAGMENT_NS_MAX)) == 1
    decoder = IpDecoder()
    assert decode(*parts, step_ns=FRAGMENT_NS_MAX + 1, decoder=decoder) == []
    assert decoder.ignored == {"fragment-timeout": 1}


def test_fragments_in_flight_are_bounded_by_number():
    decoder = IpDecoder()
    parts = [c.fragments_4(c.udp_packet(bytes(40), ident=n), 24) for n in range(FRAGMENTED_MAX + 1)]
    assert decode(*(c.ethernet(first) for first, _ in parts), decoder=decoder) == []
    assert decoder.ignored == {"fragment-limit": 1}
    assert len(decode(*(c.ethernet(second) for _, second in parts[1:]), decoder=decoder)) == FRAGMENTED_MAX


def test_fragments_in_flight_are_bounded_by_size():
    decoder = IpDecoder()
    size = 64_000
    count = FRAGMENT_BYTES_MAX // size + 10
    parts = (c.ethernet(c.ipv4(bytes(size), protocol=17, ident=n, more=True)) for n in range(count))
    assert decode(*parts, decoder=decoder) == []
    assert 10 <= decoder.ignored["fragment-limit"] <= 20


@pytest.mark.parametrize(
    "packet",
    [c.ipv4(bytes(7), more=True), c.ipv4(b"", more=True), c.ipv4(bytes(1000), offset=65_000),
     c.ipv6(bytes(9), extensions=[(44, struct.pack("!HI", 1, 1))])],
)  # fmt: skip
def test_bad_fragments(packet):
    assert ignored(c.ethernet(packet)) == {"bad-fragment": 1}


def test_fragments_beyond_the_last_one():
    decoder = IpDecoder()
    far = c.ipv4(bytes(16), protocol=17, offset=800, more=True)
    last = c.ipv4(bytes(16), protocol=17, offset=16)
    for parts in ((far, last), (last, far)):
        assert decode(*map(c.ethernet, parts), decoder=decoder) == []
    assert decoder.ignored == {"bad-fragment": 4}


def broken(packet: bytes, at: int, value: int) -> bytes:
    frame = c.ethernet(packet)
    return frame[: 14 + at] + bytes([value]) + frame[15 + at :]


TCP_4 = c.ipv4(c.tcp(PAYLOAD))


@pytest.mark.parametrize(
    "frame, linktype, reason",
    [
        (c.ethernet(UDP_4), 127, "unknown-link"),
        (b"\xff" * 12 + b"\x08\x06" + bytes(46), 1, "not-ip"),
        (broken(UDP_4, 0, 0x65), 1, "not-ip"),
        (broken(UDP_4, 0, 0x44), 1, "bad-ip"),
        (broken(UDP_4, 0, 0x4F), 1, "bad-udp"),
        (broken(c.ipv4(b""), 3, 19), 1, "bad-ip"),
        (broken(UDP_4, 9, 1), 1, "other-protocol"),
        (broken(UDP_4, 25, 0xFF), 1, "bad-udp"),
        (broken(UDP_4, 25, 7), 1, "bad-udp"),
        (broken(TCP_4, 32, 0x40), 1, "bad-tcp"),
        (broken(c.ipv4(c.tcp()), 32, 0x60), 1, "bad-tcp"),
        (c.ethernet(c.ipv4(bytes(10))), 1, "bad-tcp"),
        (c.ethernet(c.ipv4(bytes(5), protocol=17)), 1, "bad-udp"),
        (c.ethernet(c.ipv6(b"", protocol=59)), 1, "other-protocol"),
        (c.ethernet(c.ipv4(bytes(15), protocol=113)), 1, "bad-pgm"),
        (c.ethernet(c.ipv4(bytes(16), protocol=113))[:49], 1, "cut"),
        (c.ethernet(c.ipv6(b"\x11\xff" + bytes(30), protocol=0)), 1, "bad-ip"),
        (c.ethernet(c.ipv6(UDP_6[40:], protocol=17, extensions=[HOP] * 17)), 1, "bad-ip"),
    ],
)
def test_what_is_ignored_is_counted_by_reason(frame, linktype, reason):
    assert ignored(frame, linktype) == {reason: 1}


def test_texts_of_addresses_are_not_kept_without_bound():
    decoder = IpDecoder()
    packet = bytearray(c.ethernet(UDP_4))
    for number in range(ADDRESSES_MAX + 10):
        struct.pack_into("!I", packet, 26, number)
        decoder.decode(Record("f", 1, 1, 1, bytes(packet), len(packet), 0))
    assert len(decoder._texts) <= ADDRESSES_MAX


@pytest.mark.parametrize("linktype", [*c.LINKS, 127])
def test_hostile_frames_never_raise(linktype):
    rng = random.Random(linktype)
    decoder = IpDecoder()
    seeds = [UDP_4, UDP_6, TCP_4, *c.fragments_4(UDP_4, 16), *c.fragments_6(UDP_6, 16),
             c.ipv6(c.tcp(), extensions=[HOP, AH, ROUTING, DESTINATION])]  # fmt: skip
    for number in range(4000):
        frame = bytearray(c.LINKS.get(linktype, c.raw)(rng.choice(seeds)))
        for _ in range(rng.randrange(4)):
            frame[rng.randrange(len(frame))] = rng.randrange(256)
        data = (
            bytes(frame[: rng.randrange(len(frame) + 1)]) if number % 4 else rng.randbytes(rng.randrange(90))
        )
        for datagram in decoder.feed(Record("f", number, number, linktype, data, len(frame), 0)):
            assert datagram.missing >= 0
