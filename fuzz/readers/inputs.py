"""Material for the inputs of targets: published bytes, the streams of the example captures, cuts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Final

from msmqwire.capture import open_records
from msmqwire.capture.ip import IpDecoder

ROOT: Final = Path(__file__).resolve().parents[2]
VECTORS: Final = ROOT / "tests" / "vectors"
EXAMPLES: Final = ROOT / "examples"


def vectors(pattern: str) -> list[bytes]:
    """Return the published bytes in the files of this pattern; hex text is decoded."""
    return [
        bytes.fromhex(path.read_text()) if path.suffix == ".hex" else path.read_bytes()
        for path in sorted(VECTORS.glob(pattern))
    ]


@cache
def payloads(capture: str, transport: str) -> tuple[tuple[int, bytes], ...]:
    """Return the bytes of each direction of an example capture, with the lower port of its connection.

    Of TCP they are joined, in the order of the capture, of anything else they come one by one.
    """
    path = EXAMPLES / capture
    if not path.exists():
        return ()
    decoder, streams = IpDecoder(), dict[object, bytes]()
    for record in open_records(path):
        datagram = decoder.decode(record)
        if datagram is not None and datagram.transport == transport and datagram.payload:
            port = min(datagram.src_port, datagram.dst_port)
            ends = (datagram.src, datagram.src_port, datagram.dst, datagram.dst_port)
            key = (port, *ends) if transport == "tcp" else (port, len(streams))
            streams[key] = streams.get(key, b"") + datagram.payload
    return tuple((key[0], data) for key, data in streams.items())  # type: ignore[index]


def pieces(data: bytes, choice: int) -> Iterator[bytes]:
    """Yield bytes in pieces, all at once for 0; else their sizes take turns, as the bits of a byte say."""
    if not choice:
        yield data
        return
    at = 0
    for size in cycle((1 + choice % 4, 1 + (choice >> 2) % 8 * 5, 1 + (choice >> 5) * 37)):
        if at >= len(data):
            return
        yield data[at : at + size]
        at += size
