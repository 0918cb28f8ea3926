"""Targets for captures: records of pcap and pcapng, plain or compressed, frames, all that dissection does."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from functools import cache
from typing import Final

from fuzz.readers.frames import PAYLOAD_MAX, capture_of, script_of, step
from fuzz.readers.inputs import EXAMPLES, payloads
from fuzz.readers.registry import target
from msmqwire.analysis.dissection import dissect
from msmqwire.capture import Record, links, open_records
from msmqwire.capture.ip import IpDecoder
from msmqwire.capture.source import GZIP_MAGIC, ZSTD_MAGIC
from msmqwire.errors import CaptureError

CAPTURES = ("session.pcap", "hostile.pcapng", "remote_read.pcap", "protected.pcap", "management.pcap")
LINKS = (
    links.ETHERNET,
    links.NULL,
    links.LOOP,
    *links.RAW_IP,
    links.COOKED,
    links.COOKED_2,
    links.IPV4,
    links.IPV6,
)
HEAD = 2000
"""Bytes of an example capture that make a seed."""


@cache
def files() -> tuple[bytes, ...]:
    """Return the beginnings of the example captures, which fit into an input."""
    found = [EXAMPLES / name for name in CAPTURES]
    return tuple(path.read_bytes()[:HEAD] for path in found if path.exists())


class Dripping(io.RawIOBase):
    """A file that gives a few bytes at each read."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__()
        self.name = "file"
        self._data, self._size, self._at = data, size, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        size = self._size if size < 0 else min(size, self._size)
        self._at += size
        return self._data[self._at - size : self._at]


def named(data: bytes) -> io.BytesIO:
    """Return a file of these bytes."""
    stream = io.BytesIO(data)
    stream.name = "file"
    return stream


def records_of(stream: object) -> tuple[list[Record], tuple[str, int, bool] | None]:
    """Return the records of a file, and its error with its place."""
    records: list[Record] = []
    try:
        for record in open_records(stream):  # type: ignore[arg-type]
            records.append(record)
    except CaptureError as error:
        return records, (error.why, error.offset, error.cut)
    return records, None


def _files() -> Iterator[bytes]:
    import zstandard

    for data in files():
        yield b"\x07" + data
    yield b"\x40" + gzip.compress(files()[0], mtime=0)
    yield b"\x01" + zstandard.compress(files()[0])


def _words() -> Iterator[bytes]:
    yield from (bytes.fromhex("a1b2c3d4"), bytes.fromhex("d4c3b2a1"), bytes.fromhex("4d3cb2a1"))
    yield from (bytes.fromhex("0a0d0d0a"), bytes.fromhex("1a2b3c4d"), bytes.fromhex("4d3c2b1a"))
    yield from (bytes([kind, 0, 0, 0]) for kind in (1, 2, 3, 5, 6))
    yield from (GZIP_MAGIC, ZSTD_MAGIC, b"\x50\x2a\x4d\x18", b"\x09\0\1\0", b"\x0e\0\x08\0", b"\x08\0\x45\0")


@target(seeds=_files, words=_words, size_max=4096)
def records(data: bytes) -> None:
    """Records lie in the file one after the other, however it is read, and an error comes after them."""
    content = data[1:]
    whole = records_of(named(content))
    assert records_of(Dripping(content, 1 + (data[0] if data else 0))) == whole
    found, error = whole
    assert [record.number for record in found] == list(range(1, len(found) + 1)) or error is not None
    if content.startswith((GZIP_MAGIC, ZSTD_MAGIC)) or content[1:4] == b"\x2a\x4d\x18":
        return
    at = 0
    for record in found:
        assert content.find(record.data, at) >= 0
        at += len(record.data)
    assert at <= len(content)
    if error is not None:
        assert 0 <= error[1] <= len(content)
        assert found == [] or error[1] > 0


RAW: Final = LINKS.index(links.RAW_IP[0])
CUT: Final = 0x80
"""The bit in the number of a link that marks a frame as longer on the wire than captured."""


def _frames() -> Iterator[bytes]:
    for data in files():
        for record in records_of(named(data))[0][:3]:
            yield _frame(LINKS.index(record.linktype), record.data[:255])
    first = bytes.fromhex("45000030000120004011000a 0a000001 0a000002") + bytes(28)
    second = first[:6] + b"\0\3" + first[8:]
    yield _frame(RAW, first) + _frame(RAW | CUT, second)
    six = bytes.fromhex("60000000001c2c40") + bytes(31) + b"\1" + bytes.fromhex("11000001") + bytes(24)
    yield _frame(RAW, six)


def _frame(link: int, data: bytes) -> bytes:
    return bytes([link, len(data)]) + data


@target(seeds=_frames, words=_words, size_max=1024)
def frames(data: bytes) -> None:
    """Any frames of any link, fragments too: each is a datagram within its bytes, or counted as ignored."""
    decoder, at, number, held = IpDecoder(), 0, 0, 0
    while at + 2 <= len(data):
        link, size = data[at : at + 2]
        frame = data[at + 2 : at + 2 + size]
        at += 2 + size
        number += 1
        held += len(frame)
        length = len(frame) + bool(link & CUT)
        record = Record("file", number, number, LINKS[(link & ~CUT) % len(LINKS)], frame, length, 0)
        datagram = decoder.decode(record)
        assert decoder.ignored.total() <= number
        if datagram is None:
            continue
        assert len(datagram.payload) <= held
        assert datagram.missing >= 0
        assert datagram.frames == tuple(sorted(set(datagram.frames)))
        assert datagram.frames[-1] <= number


def scripts() -> Iterator[bytes]:
    """Yield the scripts of the connections and datagrams in the example captures."""
    for name in CAPTURES:
        for port, stream in payloads(name, "tcp"):
            if port in (1801, 2103, 80):
                yield script_of(stream[: 2 * PAYLOAD_MAX], False, {1801: 0, 80: 2}.get(port, 3))
        for port, data in payloads(name, "udp"):
            yield step(0x08, 0 if port == 3527 else 2, data[:PAYLOAD_MAX])


@target(seeds=scripts, words=_words, size_max=4096)
def dissected(data: bytes) -> None:
    """Any connections: packets stand in frames of the capture, with findings that stand in them."""
    file = capture_of(data)
    dissection = dissect(named(file))
    for item in dissection:
        assert item.frames == tuple(sorted(set(item.frames)))
        assert all(1 <= number <= dissection.records for number in item.frames)
        assert item.to_json()
        assert (item.error is None) == (item.kind != "Malformed")
        for finding in item.findings:
            assert finding.message
            assert 0 <= finding.offset <= max(item.size, len(item.raw))
    assert dissection.errors == []
