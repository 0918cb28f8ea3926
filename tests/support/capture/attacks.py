"""The worst inputs known to the readers of captures, of any size, for tests and `benchmarks/attacks.py`.

Streams are the bytes of one direction of a connection; captures are the bytes of whole files. All are made
without the library.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Iterable, Iterator
from ipaddress import ip_address
from typing import Final

from tests.support import handmade as h
from tests.support.capture_files import START_NS

LARGEST: Final = 0x0040_0000
SECOND: Final = 1_000_000_000
SYN, ACK = 0x02, 0x10
_MARK: Final = 0x5A5A5A5A  # the placeholder for a size until it is known


# --- streams -----------------------------------------------------------------------------------------------


def signatures(size: int) -> bytes:
    """A header every eight bytes, each of a packet of 16 bytes."""
    return _of_size(bytes.fromhex("10000000") + b"LIOR", size)


def largest_claims(size: int) -> bytes:
    """Headers of packets of the largest size, and nothing else."""
    return _of_size(h.base_header(LARGEST), size)


def to_the_end(size: int) -> bytes:
    """Messages one in the other, each malformed only at its end, that of the stream: a DebugHeader lacks."""
    return _nested(size, _message(flags=h.DH))


def broken_acknowledgements(size: int) -> bytes:
    """FinalAcks one in the other, each malformed only because its body is too large."""
    user = h.user_header(destination=(3, h.private_id(4)))
    return _nested(size, _message(user, label="QM Ordering Ack", message_class=0x4000))


def shortened(size: int) -> bytes:
    """Malformed messages that claim 256 KiB, each with a good packet after its header."""
    return _of_size(h.base_header(0x4_0000) + bytes(4) + h.session_ack(), size)


def swallowed(size: int) -> bytes:
    """Messages that count the stream up to its last bytes after their headers, each before a good packet."""
    message, good = h.user_message(), h.session_ack()
    blocks = [
        _with_size(message, min(size - 64 - at, LARGEST)) + good
        for at in range(0, size - 512, len(message) + len(good))
    ]
    return b"".join(blocks).ljust(size, b"x")


def names_without_end(size: int) -> bytes:
    """Messages one in the other, each with a direct format name that has no end."""
    head = h.user_message(user=h.user_header(destination=(5, b"x\1")))[:66]
    blocks = [_with_size(head, min(size - at, LARGEST)) for at in range(0, size - 100, len(head))]
    return b"".join(blocks).ljust(size, b"x")


STREAMS: Final[dict[str, Callable[[int], bytes]]] = {
    make.__name__: make
    for make in (
        signatures, largest_claims, to_the_end, broken_acknowledgements, shortened, swallowed,
        names_without_end,
    )
}  # fmt: skip


def _message(
    user: bytes | None = None, *, label: str | None = None, message_class: int = 0, flags: int = 0
) -> bytes:
    """A message without its body, whose sizes are marked."""
    properties = h.properties_header(
        label=label, message_class=message_class, message_size=_MARK, allocation_body_size=_MARK
    )
    return h.user_message(user=user, properties=properties, flags=flags)


def _nested(size: int, message: bytes) -> bytes:
    """Messages each of which has the rest of the stream as its body, up to the largest size."""
    blocks, sizes_at = [], message.index(struct.pack("<L", _MARK))
    for at in range(0, size - 2 * len(message), len(message)):
        total = min(size - at, LARGEST) & ~3
        block = bytearray(_with_size(message, total))
        body = total - len(message)
        struct.pack_into("<LL", block, sizes_at, body, body)
        blocks.append(bytes(block))
    return b"".join(blocks).ljust(size, b"\0")


def _with_size(message: bytes, size: int) -> bytes:
    return message[:8] + struct.pack("<L", size) + message[12:]


def _of_size(pattern: bytes, size: int) -> bytes:
    return (pattern * (size // len(pattern) + 1))[:size]


# --- captures ----------------------------------------------------------------------------------------------


def segment(
    payload: bytes,
    *,
    client: int = 0,
    seq: int = 1,
    ack: int = 1,
    flags: int = ACK,
    by_client: bool = True,
    length: int | None = None,
) -> bytes:
    """A frame with a TCP segment of a client, given by its number, to port 1801; checksums are zero.

    ``length`` is that of the IP packet, if it is not that of the frame.
    """
    address = (ip_address("10.1.0.0") + (client >> 15)).packed
    ends = [(address, 1024 + (client & 0x7FFF)), (bytes((10, 0, 0, 2)), 1801)]
    (src, src_port), (dst, dst_port) = ends if by_client else ends[::-1]
    tcp = struct.pack("!HHIIBBHHH", src_port, dst_port, seq & 0xFFFFFFFF, ack, 0x50, flags, 0xFFFF, 0, 0)
    size = 40 + len(payload) if length is None else length
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, size, 0, 0, 64, 6, 0, src, dst)
    return bytes.fromhex("0200000000020200000000010800") + ip + tcp + payload


def fragment(payload: bytes, *, ident: int, offset: int, more: bool = True) -> bytes:
    """A frame with a fragment of an IP packet."""
    word = more << 13 | offset // 8
    src, dst = bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2))
    size = 20 + len(payload)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, size, ident & 0xFFFF, word, 64, 17, 0, src, dst)
    return bytes.fromhex("0200000000020200000000010800") + ip + payload


def pcap(
    frames: Iterable[bytes | tuple[int, bytes]], *, step_ns: int = 1000, snaplen: int = 0x40000
) -> bytes:
    """A pcap file with times in ns. A frame alone comes ``step_ns`` after the one before."""
    parts, now = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, snaplen, 1)], START_NS
    for frame in frames:
        now, data = (now + step_ns, frame) if isinstance(frame, bytes) else frame
        parts += struct.pack("<IIII", now // SECOND, now % SECOND, len(data), len(data)), data
    return b"".join(parts)


def one_stream(stream: bytes, *, client: int = 0, mss: int = 1460, handshake: bool = True) -> Iterator[bytes]:
    """The frames of a stream from its SYN on."""
    if handshake:
        yield segment(b"", client=client, seq=0, flags=SYN)
        yield segment(b"", client=client, seq=0, flags=SYN | ACK, by_client=False)
    for at in range(0, len(stream), mss):
        yield segment(stream[at : at + mss], client=client, seq=1 + at)


def out_of_order_starts(flows: int) -> bytes:
    """Connections each of which begins with a segment beyond a gap, which is never filled."""
    frames = []
    for client in range(flows):
        frames += one_stream(b"", client=client)
        frames.append(segment(b"x" * 40, client=client, seq=1001))
    return pcap(frames)


def midstream_starts(flows: int) -> bytes:
    """Connections without a SYN, each with one segment."""
    return pcap([segment(b"x" * 40, client=client) for client in range(flows)])


def sweeps_with_gaps(flows: int) -> bytes:
    """Connections with a gap, then segments that let time pass, and pass again."""
    frames: list[bytes | tuple[int, bytes]] = [
        frame
        for client in range(flows)
        for frame in (*one_stream(b"", client=client), segment(b"x" * 40, client=client, seq=1001))
    ]
    late = START_NS + SECOND
    for number in range(flows):
        at = late if number % 2 else late - 70 * SECOND
        frames.append((at, segment(b"", client=flows, seq=1 + number)))
    return pcap(frames)


def idle_sweeps(flows: int) -> bytes:
    """Connections without a time, then segments 80 seconds apart."""
    frames = [(0, frame) for client in range(flows) for frame in one_stream(b"x", client=client)]
    for number in range(flows):
        frames.append((START_NS + number * 80 * SECOND, segment(b"", client=flows, seq=1 + number)))
    return pcap(frames)


def gaps_in_turn(flows: int) -> bytes:
    """Connections with a gap to each of which, in turn, a segment comes when another gap is due."""
    frames = [
        frame
        for client in range(flows)
        for frame in (*one_stream(b"", client=client), segment(b"x" * 40, client=client, seq=1001))
    ]
    timed: list[bytes | tuple[int, bytes]] = list(frames)
    for number in range(flows):
        at = START_NS + (10 + number % 2) * SECOND
        timed.append((at, segment(b"x" * 40, client=number, seq=1201)))
    return pcap(timed)


def tiny_segments(count: int) -> bytes:
    """Segments of one byte, with one missing between any two."""
    frames = list(one_stream(b""))
    return pcap([*frames, *(segment(b"x", seq=2 + 2 * number) for number in range(count))])


def tiny_segments_overlapped(count: int) -> bytes:
    """Segments of one byte with gaps, and cut-off ones of 64 KiB that cover all of them."""
    frames = list(one_stream(b""))
    frames += [segment(b"x", seq=2 + 2 * number) for number in range(min(count, 4000))]
    frames += [segment(b"", seq=2, length=16_000) for _ in range(count)]
    return pcap(frames)


def tiny_fragments(count: int) -> bytes:
    """Fragments of eight bytes, the last first, of datagrams that are never complete."""
    frames = []
    for number in range(count):
        ident, at = divmod(number, 4000)
        frames.append(fragment(bytes(8), ident=ident, offset=8 * (4001 - at)))
    return pcap(frames)


def repeated_fragments(count: int) -> bytes:
    """The same fragment repeatedly."""
    return pcap([fragment(bytes(8), ident=1, offset=8) for _ in range(count)])


def evictions(flows: int) -> bytes:
    """Connections that begin with a SYN and say nothing."""
    return pcap([segment(b"", client=client, seq=0, flags=SYN) for client in range(flows)])


def many_packets_held(flows: int) -> bytes:
    """Connections each with the beginning of a packet, more than may be held."""
    data = h.base_header(LARGEST).ljust(1460, b"\0")
    return pcap([frame for client in range(flows) for frame in one_stream(data, client=client)])


CAPTURES: Final[dict[str, Callable[[int], bytes]]] = {
    make.__name__: make
    for make in (
        out_of_order_starts, midstream_starts, sweeps_with_gaps, idle_sweeps, gaps_in_turn, tiny_segments,
        tiny_segments_overlapped, tiny_fragments, repeated_fragments, evictions, many_packets_held,
    )
}  # fmt: skip


# --- packed files ------------------------------------------------------------------------------------------


def gzip_members(count: int) -> bytes:
    """A gzip member for each record, which is empty."""
    capture = pcap([b""] * count)
    first, record = _gzip(capture[:40]), _gzip(capture[40:56])
    return first + record * (count - 1)


def gzip_members_of_a_byte(count: int) -> bytes:
    """A gzip member for each byte of a frame."""
    head = struct.pack("<IIII", 0, 0, count, count)
    return _gzip(pcap([], snaplen=1 << 24) + head) + _gzip(b"x") * count


def gzip_members_without_content(count: int) -> bytes:
    """A capture without frames, followed by gzip members without content."""
    return _gzip(pcap([])) + _gzip(b"") * count


def zstd_blocks_without_content(count: int) -> bytes:
    """A zstd frame with the header of a capture, then with empty blocks."""
    head = pcap([])
    frame = b"\x28\xb5\x2f\xfd\0\x58" + (len(head) << 3).to_bytes(3, "little") + head
    return frame + bytes(3) * count + b"\1\0\0"


def huge_records(count: int) -> bytes:
    """Frames of 64 MiB of zeros, packed by zstd into a few bytes each 128 KiB."""
    head = pcap([], snaplen=0)
    record, size = struct.pack("<IIII", 0, 0, 1 << 26, 1 << 26), 1 << 17
    zeros = (size << 3 | 2).to_bytes(3, "little") + b"\0"
    parts = [b"\x28\xb5\x2f\xfd\0\x58", (len(head) << 3).to_bytes(3, "little"), head]
    for _ in range(count):
        parts += [(len(record) << 3).to_bytes(3, "little"), record, zeros * ((1 << 26) // size)]
    return b"".join(parts) + b"\1\0\0"


FILES: Final[dict[str, Callable[[int], bytes]]] = {
    make.__name__: make
    for make in (
        gzip_members, gzip_members_of_a_byte, gzip_members_without_content, zstd_blocks_without_content,
        huge_records,
    )
}  # fmt: skip


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, 1, mtime=0)
