"""Streams that are hard to put in order, or to find packets in, and captures of next to nothing.

For `hostile_captures`. Each stream is a generator of runs of frames without end.
"""

from __future__ import annotations

import gzip
import random
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.support.captures import ACK, FILE_HEADER, MSMQ, MSS, PSH, SYN, CaptureSummary, Direction
from benchmarks.support.hostile_floods import HEADER, Runs, endpoints
from benchmarks.support.hostile_packets import SEED, message
from benchmarks.support.messages import KIB
from msmqwire.ncp.headers import NCP_PORT

_RPC_PORT, _HTTP = 2103, 80
_CONNECTIONS = 16
Link = tuple[Direction, Direction]


def _opened(port: int, connections: int = _CONNECTIONS) -> tuple[list[Link], list[bytes]]:
    """Return connections, and the frames that open them."""
    links = [endpoints(number, port) for number in range(connections)]
    frames = []
    for there, back in links:
        frames += [there.frame(SYN, 1000, 0), back.frame(SYN | ACK, 2000, 1001)]
    return links, frames


def _segment(there: Direction, at: int, content: bytes, size: int) -> bytes:
    """Return the frame with a number of bytes of a stream from an offset on; the stream repeats this
    content.
    """
    first = at % len(content)
    data = content[first : first + size]
    while len(data) < size:
        data += content[: size - len(data)]
    return there.frame(ACK | PSH, 1001 + at, 2001, data)


# --- segments ----------------------------------------------------------------------------------------------


def with_holes(size: int, every: int, *, acknowledged: bool) -> Runs:
    """Yield segments of messages with every n-th one missing, and perhaps acknowledgements."""
    links, frames = _opened(MSMQ)
    yield frames
    content, number = message(KIB).data, 0
    while True:
        number += 1
        at = size * (number - 1)
        for there, back in links:
            run = [_segment(there, at, content, size)] if number % every else []
            if acknowledged and number % (2 * every) == 0:
                run.append(back.frame(ACK, 2001, 1001 + at + size))
            yield run


def reversed_windows(size: int, window: int, connections: int = _CONNECTIONS) -> Runs:
    """Yield segments of messages backwards, a number at a time."""
    links, frames = _opened(MSMQ, connections)
    yield frames
    content, start = message(KIB).data, 0
    while True:
        for there, _ in links:
            offsets = range(start + size * (window - 1), start - 1, -size)
            yield [_segment(there, at, content, size) for at in offsets]
        start += size * window


def overlaps(size: int, step: int, *, window: int = 1) -> Runs:
    """Yield segments of messages, each of which begins a number of bytes after the start of the one before.

    Those of a window come backwards.
    """
    links, frames = _opened(MSMQ)
    yield frames
    content, start = message(KIB).data, 0
    while True:
        for there, _ in links:
            offsets = range(start + step * (window - 1), start - 1, -step)
            yield [_segment(there, at, content, size) for at in offsets]
        start += step * window


# --- false signatures --------------------------------------------------------------------------------------


def _base_header(size: int, version: int = 0x10) -> bytes:
    return struct.pack("<B", version) + HEADER[1:8] + struct.pack("<I", size) + HEADER[12:]


def false_sizes(largest: int) -> Callable[[random.Random], bytes]:
    """Return a function that makes headers, each with a size up to the largest, and eight bytes more."""
    return lambda chance: _base_header(chance.randrange(16, largest)) + bytes(8)


def false_versions(chance: random.Random) -> bytes:
    """Return a header of an invalid version."""
    return _base_header(chance.randrange(16, 3000), chance.randrange(256))


def bare_headers(chance: random.Random) -> bytes:
    """Return a header that says it is all of its packet."""
    return _base_header(16)


def large_claims() -> Callable[[random.Random], bytes]:
    """Return a function that makes headers of 4 MiB, each before the beginning of a message."""
    data = HEADER + message(64).data[16:76]
    return lambda _: data


def packets_among_claims() -> Callable[[random.Random], bytes]:
    """Return a function that makes the same, each before a whole message."""
    packet = message(64).data
    data = HEADER + packet[16:76] + packet
    return lambda _: data


def false_headers(make: Callable[[random.Random], bytes], port: int, connections: int = 64) -> Runs:
    """Yield segments of connections that carry one false header after the other."""
    links, frames = _opened(port, connections)
    yield frames
    chance = random.Random(SEED)
    rest, sent = [b""] * connections, 0
    while True:
        for number, (there, _) in enumerate(links):
            data = rest[number]
            while len(data) < MSS:
                data += make(chance)
            yield [there.frame(ACK | PSH, 1001 + sent, 2001, data[:MSS])]
            rest[number] = data[MSS:]
        sent += MSS


# --- other protocols ---------------------------------------------------------------------------------------


def http_heads() -> Runs:
    """Yield HTTP requests without bodies and answers to them, all of kept connections."""
    yield from _answered(
        _HTTP,
        b"POST /msmq/private$/orders HTTP/1.1\r\nHost: server\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    )


def plain_http() -> Runs:
    """Yield HTTP requests of other kinds and answers to them, all of kept connections."""
    body = b"<p>order</p>" * 50
    yield from _answered(
        _HTTP,
        b"GET /orders HTTP/1.1\r\nHost: www.example.com\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body,
    )


def _answered(port: int, request: bytes, answer: bytes) -> Runs:
    links, frames = _opened(port, 64)
    yield frames
    seq, ack = 1001, 2001
    while True:
        for there, back in links:
            yield [
                there.frame(ACK | PSH, seq, ack, request),
                back.frame(ACK | PSH, ack, seq + len(request), answer),
            ]
        seq, ack = seq + len(request), ack + len(answer)


def rpc_fragments(size: int = 64) -> Runs:
    """Yield endless requests of DCE/RPC, in fragments with a number of stub bytes each."""
    links, frames = _opened(_RPC_PORT, 64)
    yield frames
    head = struct.pack("<BBBBIHHIIHH", 5, 0, 0, 0, 0x10, 24 + size, 0, 1, size, 0, 7)
    yield from _repeated(links, head + bytes(size))


def ncp_fragments() -> Runs:
    """Yield requests of NCP over TCP, each in three segments."""
    links, frames = _opened(NCP_PORT, 64)
    yield frames
    unit = b"DmdT" + struct.pack(">III", 16 + 7 + 48, 1, 48) + bytes.fromhex("22220001010000") + bytes(48)
    yield from _repeated(links, unit, parts=3)


def _repeated(links: list[Link], unit: bytes, parts: int = 1) -> Iterator[list[bytes]]:
    """Yield the same bytes repeatedly on each connection, each time in a number of segments."""
    seq, step = 1001, -(-len(unit) // parts)
    while True:
        for there, _ in links:
            yield [
                there.frame(ACK | PSH, seq + at, 2001, unit[at : at + step])
                for at in range(0, len(unit), step)
            ]
        seq += len(unit)


# --- files -------------------------------------------------------------------------------------------------


def empty_records(path: Path, frames: int) -> CaptureSummary:
    """Write a packed capture of records without a byte: of 256 MiB 261 KB are left."""
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(FILE_HEADER)
        for at in range(0, frames, 1 << 16):
            file.write(bytes(16 * min(1 << 16, frames - at)))
    return CaptureSummary(frames, 0, len(FILE_HEADER) + 16 * frames)
