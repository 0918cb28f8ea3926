"""Payloads, times and lengths are those that tshark finds in the same files."""

from __future__ import annotations

import gzip
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from msmqwire.capture import Data, End, Gap, IpDecoder, Reassembler, open_records
from tests.support import captures as c
from tests.support.capture import tunnelled_frames as t
from tests.support.capture import unread_frames as u
from tests.support.capture.tshark import DISORDERS, followed, tshark


def fields(path: Path, *names: str, only: str = "", says: Sequence[str] = ()) -> list[list[str]]:
    shown = [argument for name in names for argument in ("-e", name)]
    return [line.split("\t") for line in tshark(path, *says, "-Y", only, "-T", "fields", *shown).splitlines()]


def reassembled(path: Path) -> dict[int, dict[str, bytes]]:
    decoder, reassembler = IpDecoder(), Reassembler()
    streams: dict[int, dict[str, bytes]] = defaultdict(lambda: defaultdict(bytes))
    events = []
    for record in open_records(path):
        for datagram in decoder.feed(record):
            events.extend(reassembler.feed(datagram))
    for event in events + reassembler.flush():
        assert not isinstance(event, Gap)
        src = event.flow.src if ":" not in event.flow.src else f"[{event.flow.src}]"
        node = f"{src}:{event.flow.src_port}"
        streams[event.flow.stream][node] += event.data if isinstance(event, Data) else b""
        if isinstance(event, End):
            assert event.reason in ("fin", "capture", "reused")
    return streams


def conversations(rng: random.Random, midstream: bool) -> list[list[c.Frame]]:
    talks = []
    for number in range(4):
        v6 = number == 3
        talk = c.TcpConversation(
            (c.CLIENT_6 if v6 else c.CLIENT, 50_000 + number), (c.SERVER_6 if v6 else c.SERVER, 1801),
            client_isn=2**32 - rng.randrange(5000), server_isn=rng.randrange(2**32),
            mss=rng.randint(100, 1460), start_ns=c.START_NS + number * 250_000,
        ).handshake()  # fmt: skip
        for _ in range(rng.randint(2, 5)):
            data = rng.randbytes(rng.randint(1, 4000))
            talk.send(data, by_client=rng.random() < 0.5, acknowledged=rng.random() < 0.5)
        if number == 1:
            talk.keep_alive()
            talk.send(rng.randbytes(100), by_client=False)
        if number != 2:
            talk.close(rng.random() < 0.5)
        talks.append(talk.frames[3:] if midstream else talk.frames)
    return talks


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", DISORDERS)
def test_streams(tmp_path, name, seed):
    rng = random.Random(seed)
    # tshark reports data that arrives after its own acknowledgement as lost.
    in_order = conversations(rng, midstream=False)
    talks = [c.disorder(frames, rng, behind_acks=False, **DISORDERS[name]) for frames in in_order]
    path = tmp_path / "a.pcapng"
    path.write_bytes(c.pcapng_bytes(c.merged(*talks)))
    streams = reassembled(path)
    assert len(streams) == 4
    for stream, directions in streams.items():
        assert directions == {n: d for n, d in followed(path, stream).items() if n in directions}


@pytest.mark.parametrize("seed", range(3))
def test_streams_whose_start_was_not_captured(tmp_path, seed):
    rng = random.Random(seed)
    talks = [c.disorder(frames, rng, duplicate=0.2) for frames in conversations(rng, midstream=True)]
    path = tmp_path / "a.pcap"
    path.write_bytes(c.pcap_bytes(c.merged(*talks)))
    for stream, directions in reassembled(path).items():
        assert directions == {n: d for n, d in followed(path, stream).items() if n in directions}


def test_ports_used_again(tmp_path):
    first = c.TcpConversation().handshake().send(b"one").send(b"two", by_client=False).close()
    second = c.TcpConversation(client_isn=7_000_000, server_isn=8_000_000, start_ns=first.time_ns).handshake()
    second.send(b"three")
    third = c.TcpConversation(
        client_isn=17_000_000, server_isn=18_000_000, start_ns=second.time_ns
    ).handshake()
    third.send(b"four", by_client=False).close()
    path = tmp_path / "a.pcap"
    path.write_bytes(c.pcap_bytes(first.frames + second.frames + third.frames))
    streams = reassembled(path)
    assert len(streams) == 3
    for stream, directions in streams.items():
        assert directions == followed(path, stream)


@pytest.mark.parametrize("linktype", c.LINKS)
def test_udp_payloads_over_every_link(tmp_path, linktype):
    rng, link = random.Random(linktype), c.LINKS[linktype]
    packets = []
    for number in range(20):
        payload = rng.randbytes(rng.randint(1, 3000))
        if linktype != 229:
            packet = c.udp_packet(payload, ident=number)
            packets += rng.choice([[packet], c.fragments_4(packet, 800)])
        if linktype != 228:
            packet = c.udp_packet(payload, c.CLIENT_6, 3527, c.SERVER_6, 1801)
            packets += rng.choice([[packet], c.fragments_6(packet, 800, number)])
    for at in range(0, len(packets) - 4, 4):
        packets[at : at + 4] = rng.sample(packets[at : at + 4], 4)
    path = tmp_path / "a.pcap"
    path.write_bytes(c.pcap_bytes(map(link, packets), linktype=linktype))
    expected = [
        (int(number), src or src_6, dst or dst_6, int(src_port), int(dst_port), payload)
        for number, src, src_6, dst, dst_6, src_port, dst_port, payload in fields(
            path, "frame.number", "ip.src", "ipv6.src", "ip.dst", "ipv6.dst", "udp.srcport", "udp.dstport",
            "udp.payload", only="udp.payload",
        )
    ]  # fmt: skip
    decoder = IpDecoder()
    actual = [
        (d.frames[-1], d.src, d.dst, d.src_port, d.dst_port, d.payload.hex())
        for record in open_records(path)
        for d in decoder.feed(record)
    ]
    assert actual == expected
    assert len(actual) == (20 if linktype in (228, 229) else 40)


def test_the_writer_makes_right_checksums(tmp_path):
    talk = c.TcpConversation().handshake().send(b"odd").close()
    other = c.TcpConversation((c.CLIENT_6, 1), (c.SERVER_6, 2)).handshake().send(b"odd")
    frames = [*talk.frames, *other.frames, c.ethernet(c.udp_packet(b"odd", c.CLIENT_6, 1, c.SERVER_6, 2))]
    path = tmp_path / "a.pcap"
    path.write_bytes(c.pcap_bytes(frames))
    names = ("ip.checksum.status", "tcp.checksum.status", "udp.checksum.status")
    options = [f"-o{p}.check_checksum:TRUE" for p in ("ip", "tcp", "udp")]
    rows = tshark(path, *options, "-T", "fields", *(a for n in names for a in ("-e", n))).splitlines()
    assert len(rows) == len(frames)
    assert {value for row in rows for value in row.split("\t")} <= {"", "1"}


FRAMES = [
    c.Frame(c.START_NS + n * 1_234_567, c.ethernet(c.udp_packet(bytes(n * 50)))) for n in range(10)
]  # fmt: skip
VARIANTS = {
    **{
        f"pcap {order} {nano} {modified}": c.pcap_bytes(
            FRAMES, byteorder=order, nanoseconds=nano, modified=modified, snaplen=200
        )
        for order in "<>"
        for nano, modified in ((False, False), (True, False), (False, True))
    },
    **{
        f"pcapng {order} {resolution} {offset}": c.pcapng_bytes(
            FRAMES, byteorder=order, tsresol=resolution, tsoffset=offset, snaplen=150
        )
        for order in "<>"
        for resolution, offset in ((6, 0), (9, 0), (3, 1000), (0x8A, 0), (0x9E, 1_600_000_000), (9, -50))
    },
    "pcapng sections": c.PcapNg("<").section().interface(1, tsresol=9).interface(1).packet(FRAMES[0], 1).data
    + c.PcapNg(">").section().interface(1, tsresol=0x94).block(5, bytes(12)).packet(FRAMES[1]).data,
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", VARIANTS)
def test_times_and_lengths_of_every_kind_of_file(tmp_path, name, packed):
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(VARIANTS[name]) if packed else VARIANTS[name])
    rows = fields(
        path, "frame.number", "frame.time_epoch", "frame.len", "frame.cap_len", "frame.interface_id"
    )
    expected = [
        (int(number), int(time.replace(".", "")), int(length), int(cap_len), int(interface or 0))
        for number, time, length, cap_len, interface in rows
    ]
    actual = [(r.number, r.time_ns, r.length, len(r.data), r.interface) for r in open_records(path)]
    if name == "pcapng sections":  # tshark numbers interfaces across sections
        expected[1] = (*expected[1][:4], 0)
    assert actual == expected


NOT_OF_TSHARK = ("erspan, type III, IP", "vxlan, the port of GPE")
"""Forms of which it reads only Ethernet frames, or only those with the flag of the extension."""


@pytest.mark.parametrize("form", [form for form in t.FORMS if form not in NOT_OF_TSHARK])
def test_what_is_in_tunnels(tmp_path, form):
    """The innermost addresses, ports and payload that tshark finds."""
    linktype, make = t.FORMS[form]
    path = tmp_path / "a.pcapng"
    packets = [
        c.ipv4(c.udp(b"inner data", src_port=4000, dst_port=4001), protocol=17),
        c.ipv6(c.udp(b"of IPv6", c.CLIENT_6, 4000, c.SERVER_6, 4002), protocol=17),
    ]
    path.write_bytes(u.capture_of([(linktype, make(packet)) for packet in packets]))
    names = ("ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "udp.srcport", "udp.dstport", "udp.payload")
    decoder = IpDecoder()
    datagrams = [datagram for record in open_records(path) for datagram in decoder.feed(record)]
    # What follows a label is said by hand.
    kinds = {"mpls, pseudowire": "pwethnocw", "mpls, SNAP": "pwethnocw", "mpls, control word": "pwethcw"}
    says = [
        word
        for name, kind in kinds.items()
        if form.startswith(name)
        for word in ("-d", f"mpls.label==16,{kind}")
    ]
    says += ["-d", "udp.port==8472,vxlan"]
    found = fields(path, *names, only="udp", says=says)
    assert len(found) == len(datagrams) == 2
    for datagram, row in zip(datagrams, found, strict=True):
        src4, dst4, src6, dst6, src_port, dst_port, payload = (value.split(",")[-1] for value in row)
        is_ipv6 = ":" in datagram.src
        assert (datagram.src, datagram.dst) == ((src6, dst6) if is_ipv6 else (src4, dst4))
        assert (str(datagram.src_port), str(datagram.dst_port)) == (src_port, dst_port)
        assert datagram.payload.hex() == payload.replace(":", "")
