"""Floods of connections, streams of garbage and incomplete packets, for `hostile_captures`.

Each is a generator of runs of frames without end.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.support.captures import ACK, FIN, MSMQ, MSS, PSH, SYN, Direction
from benchmarks.support.hostile_packets import message

RST: Final = 0x04
_HTTP: Final = 80
HEADER: Final = struct.pack("<BBHIII", 0x10, 0, 3, 0x524F494C, 0x0040_0000, 0xFFFF_FFFF)
"""A BaseHeader that claims 4 MiB."""

Runs = Iterator[list[bytes]]


def fragments(frame: bytes, ident: int) -> list[bytes]:
    """Return the frames of an IP packet in four fragments, or the frame itself if it has no data."""
    six = frame[12:14] == b"\x86\xdd"
    at = 54 if six else 34
    end = at + struct.unpack_from("!H", frame, 18)[0] if six else 14 + struct.unpack_from("!H", frame, 16)[0]
    payload = frame[at:end]
    if len(payload) < 64:
        return [frame]
    step, frames = (len(payload) // 4 + 7) & ~7, []
    for start in range(0, len(payload), step):
        part, more = payload[start : start + step], start + step < len(payload)
        if six:
            head = frame[:18] + struct.pack("!HB", 8 + len(part), 44) + frame[21:54]
            head += struct.pack("!BBHI", frame[20], 0, start | more, ident)
        else:
            word = more << 13 | start // 8
            head = frame[:16] + struct.pack("!HHH", 20 + len(part), ident & 0xFFFF, word) + frame[22:34]
        frames.append((head + part).ljust(60, b"\0"))
    return frames


def endpoints(number: int, port: int) -> tuple[Direction, Direction]:
    """Return both directions of the connection with this number."""
    client = f"10.{16 + (number >> 23 & 127)}.{number >> 15 & 255}.{1 + (number >> 23 & 1)}"
    ends = (client, 1024 + (number & 0x7FFF)), ("10.2.0.1", port)
    return Direction(*ends, 1000, padded=True), Direction(*ends[::-1], 2000, padded=False)


def short_flows() -> Runs:
    """Yield connections of three frames: SYN, its answer, and a packet."""
    packet = message(64).data
    for number in range(1 << 30):
        there, back = endpoints(number, MSMQ)
        yield [
            there.frame(SYN, 1000, 0), back.frame(SYN | ACK, 2000, 1001),
            there.frame(ACK | PSH, 1001, 2001, packet),
        ]  # fmt: skip


def midstream_flows() -> Runs:
    """Yield connections with only three segments, a packet in each."""
    packet = message(64).data
    for number in range(1 << 30):
        there, _ = endpoints(number, MSMQ)
        yield [there.frame(ACK | PSH, 1001 + len(packet) * n, 2001, packet) for n in range(3)]


def syn_flood() -> Runs:
    for number in range(1 << 30):
        there, _ = endpoints(number, MSMQ)
        yield [there.frame(SYN, 1000, 0)]


def whole_flows() -> Runs:
    """Yield connections from their SYN to their FIN, with one packet each."""
    packet = message(64).data
    for number in range(1 << 30):
        there, back = endpoints(number, MSMQ)
        end = 1001 + len(packet)
        yield [
            there.frame(SYN, 1000, 0), back.frame(SYN | ACK, 2000, 1001), there.frame(ACK, 1001, 2001),
            there.frame(ACK | PSH, 1001, 2001, packet), there.frame(FIN | ACK, end, 2001),
            back.frame(FIN | ACK, 2001, end + 1), there.frame(ACK, end + 1, 2002),
        ]  # fmt: skip


def repeated(data: bytes, port: int, *, streams: int = 64) -> Runs:
    """Yield segments of connections that carry these bytes again and again."""
    links = [endpoints(number, port)[0] for number in range(streams)]
    for number, there in enumerate(links):
        back = endpoints(number, port)[1]
        yield [there.frame(SYN, 1000, 0), back.frame(SYN | ACK, 2000, 1001)]
    stream, sent = data * (MSS // len(data) + 2), 0
    while True:
        for there in links:
            at = sent % len(data)
            yield [there.frame(ACK | PSH, 1001 + sent, 2001, stream[at : at + MSS])]
        sent += MSS


def held(beginning: bytes) -> Runs:
    """Yield connections, each with the beginning of a packet of 4 MiB that is never completed."""
    for number in range(1 << 30):
        there, back = endpoints(number, MSMQ)
        yield [
            there.frame(SYN, 1000, 0), back.frame(SYN | ACK, 2000, 1001),
            there.frame(ACK | PSH, 1001, 2001, beginning),
        ]  # fmt: skip


def beyond_gaps() -> Runs:
    """Yield connections each with 20 segments beyond a gap that is never filled."""
    for number in range(1 << 30):
        there, back = endpoints(number, MSMQ)
        run = [there.frame(SYN, 1000, 0), back.frame(SYN | ACK, 2000, 1001)]
        yield run + [there.frame(ACK | PSH, 1011 + MSS * n, 2001, bytes(MSS)) for n in range(20)]


def lone_fragments() -> Runs:
    """Yield first fragments of datagrams that are never complete."""
    there, _ = endpoints(0, MSMQ)
    frame = there.frame(ACK | PSH, 1001, 2001, bytes(4 * MSS))
    for number in range(1 << 30):
        yield fragments(frame, number)[:1]


def port_scan() -> Runs:
    """Yield connections that are refused."""
    for number in range(1 << 30):
        there, back = endpoints(number, MSMQ)
        yield [there.frame(SYN, 1000, 0), back.frame(RST | ACK, 0, 1001)]


def reset_flows() -> Runs:
    """Yield connections of one packet each, which end with a reset."""
    packet = message(64).data
    for number in range(1 << 30):
        there, back = endpoints(number, MSMQ)
        yield [
            there.frame(SYN, 1000, 0), back.frame(SYN | ACK, 2000, 1001),
            there.frame(ACK | PSH, 1001, 2001, packet), there.frame(RST | ACK, 1001 + len(packet), 2001),
        ]  # fmt: skip


def cut_flows() -> Runs:
    """Yield connections that end with a FIN inside their only packet."""
    packet = message(64).data[:-30]
    for number in range(1 << 30):
        there, back = endpoints(number, MSMQ)
        yield [
            there.frame(SYN, 1000, 0), back.frame(SYN | ACK, 2000, 1001),
            there.frame(ACK | PSH, 1001, 2001, packet), there.frame(FIN | ACK, 1001 + len(packet), 2001),
        ]  # fmt: skip


def bare_acks() -> Runs:
    """Yield connections with only a single ACK."""
    for number in range(1 << 30):
        there, _ = endpoints(number, MSMQ)
        yield [there.frame(ACK, 1001, 2001)]


def syns_again(*, ports: int = 64) -> Runs:
    """Yield SYNs on the same ports again and again, each of another connection."""
    links = [endpoints(number, MSMQ)[0] for number in range(ports)]
    for number in range(1 << 30):
        yield [links[number % ports].frame(SYN, 1000 + 100_000 * number & 0xFFFF_FFFF, 0)]


def post_flows() -> Runs:
    """Yield connections each with the head of an HTTP request whose body is not there."""
    request = b"POST /msmq/private$/orders HTTP/1.1\r\nHost: server\r\nContent-Length: 1000\r\n\r\n"
    for number in range(1 << 30):
        there, back = endpoints(number, _HTTP)
        yield [
            there.frame(SYN, 1000, 0), back.frame(SYN | ACK, 2000, 1001),
            there.frame(ACK | PSH, 1001, 2001, request),
        ]  # fmt: skip


def far_segments() -> Runs:
    """Yield segments further from the next byte than any window reaches, none beside another."""
    there, back = endpoints(0, MSMQ)
    yield [there.frame(SYN, 1000, 0), back.frame(SYN | ACK, 2000, 1001)]
    for number in range(1 << 30):
        yield [there.frame(ACK | PSH, 1001 + (1 << 30) + 50 * number & 0xFFFF_FFFF, 2001, bytes(20))]


def holes_among_headers(*, connections: int = 16, segments: int = 20) -> Runs:
    """Yield a header that claims 4 MiB, then small ones, then an acknowledged hole, again and again."""
    small = HEADER[:8] + struct.pack("<I", 60) + HEADER[12:]
    rest = (small * 100)[:MSS]
    links = [endpoints(number, MSMQ) for number in range(connections)]
    for there, back in links:
        yield [there.frame(SYN, 1000, 0), back.frame(SYN | ACK, 2000, 1001)]
    at = 1001
    while True:
        for there, back in links:
            frames = [there.frame(ACK | PSH, at, 2001, (HEADER + rest)[:MSS])]
            frames += [there.frame(ACK | PSH, at + MSS * n, 2001, rest) for n in range(1, segments)]
            yield [*frames, back.frame(ACK, 2001, at + MSS * segments)]
        at = at + MSS * (segments + 1) & 0xFFFF_FFFF
