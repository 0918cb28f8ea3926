"""Capture files of every format to records; truncated and damaged ones to all records before the damage."""

from __future__ import annotations

import contextlib
import gzip
import io
import random
import struct
import sys
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from msmqwire.capture import Record, expand, open_records
from msmqwire.capture.record import NO_TIME, RECORD_SIZE_MAX, RECORD_SIZE_USUAL
from msmqwire.errors import CaptureError
from tests.support.capture_files import zstd
from tests.support.captures import START_NS, Frame, PcapNg, ethernet, pcap_bytes, pcapng_bytes, udp_packet

FRAMES = [
    Frame(START_NS + 1_111_111 * number, ethernet(udp_packet(bytes([number]) * (37 * number))))
    for number in range(1, 5)
]


def in_members(data: bytes, pack: Callable[[bytes], bytes]) -> bytes:
    return b"".join(pack(data[at : at + 100]) for at in range(0, len(data), 100))


def zstd_frames(data: bytes) -> bytes:
    skippable = b"\x50\x2a\x4d\x18" + struct.pack("<I", 3) + b"abc"
    return skippable + in_members(data, partial(zstd, write_content_size=False))


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "gzip members": lambda data: in_members(data, gzip.compress) + bytes(512),
    "zstd": partial(zstd, write_checksum=True),
    "zstd frames": zstd_frames,
}  # fmt: skip


def read(data: bytes) -> list[Record]:
    return list(open_records(io.BytesIO(data)))


def read_until_error(data: bytes) -> tuple[list[Record], CaptureError]:
    records: list[Record] = []
    source = open_records(io.BytesIO(data))
    try:
        for record in source:
            records.append(record)
    except CaptureError as error:
        return records, error
    pytest.fail("no error")


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("byteorder", ["<", ">"])
@pytest.mark.parametrize("kind", ["micro", "nano", "modified"])
def test_pcap(packing, byteorder, kind):
    data = pcap_bytes(
        FRAMES, byteorder=byteorder, nanoseconds=kind == "nano", modified=kind == "modified", linktype=113
    )
    unit = 1 if kind == "nano" else 1000
    assert read(PACKINGS[packing](data)) == [
        Record("<stream>", number, frame.time_ns // unit * unit, 113, frame.data, len(frame.data), 0)
        for number, frame in enumerate(FRAMES, 1)
    ]


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("byteorder", ["<", ">"])
@pytest.mark.parametrize(
    "tsresol, tsoffset",
    [(0, 0), (3, -3600), (6, 1_600_000_000), (9, 0), (12, 1_699_000_000), (0x80, 0), (0x8A, -5), (0x9E, 0),
     (0xA2, 1_699_999_999)],
)  # fmt: skip
def test_pcapng(packing, byteorder, tsresol, tsoffset):
    data = pcapng_bytes(FRAMES, byteorder=byteorder, linktype=276, tsresol=tsresol, tsoffset=tsoffset)
    per_second = 1 << (tsresol & 0x7F) if tsresol & 0x80 else 10**tsresol
    records = read(PACKINGS[packing](data))
    assert [(r.number, r.linktype, r.data, r.length, r.interface) for r in records] == [
        (number, 276, frame.data, len(frame.data), 0) for number, frame in enumerate(FRAMES, 1)
    ]
    for record, frame in zip(records, FRAMES, strict=True):
        assert 0 <= frame.time_ns - record.time_ns <= 1_000_000_000 // per_second + 1


def test_sections_interfaces_and_all_kinds_of_packet_blocks():
    first, second, third, fourth = FRAMES
    little = PcapNg("<").section().interface(1, tsresol=9).interface(113, tsresol=0x9E, snaplen=20)
    little.packet(first, 1, options=struct.pack("<HH", 1, 4) + b"note" + bytes(4))
    little.block(0x0BAD, b"what is this").simple_packet(second)
    big = PcapNg(">").section().block(5, bytes(8)).interface(101, tsresol=6, snaplen=30)
    big.old_packet(third).simple_packet(fourth).packet(fourth)
    records = read(little.data + big.data)
    assert [(r.number, r.linktype, r.interface, r.data, r.length) for r in records] == [
        (1, 113, 1, first.data[:20], len(first.data)),
        (2, 1, 0, second.data, len(second.data)),
        (3, 101, 0, third.data[:30], len(third.data)),
        (4, 101, 0, fourth.data[:30], len(fourth.data)),
        (5, 101, 0, fourth.data[:30], len(fourth.data)),
    ]
    times = [r.time_ns for r in records]
    assert times[1] == times[3] == NO_TIME
    assert 0 <= first.time_ns - times[0] <= 1
    assert times[2] == third.time_ns // 1000 * 1000


def boundaries(data: bytes) -> list[int]:
    """Where the records of a file from ``pcap_bytes`` or ``pcapng_bytes`` start, and where the last ends."""
    starts, at = [], 24
    while at < len(data):
        starts.append(at)
        at += 16 + struct.unpack_from("<I", data, at + 8)[0]
    return [*starts, at]


def blocks(data: bytes) -> list[int]:
    starts, at = [], 0
    while at < len(data):
        starts.append(at)
        at += struct.unpack_from("<I", data, at + 4)[0]
    return [*starts, at]


def test_a_pcap_file_cut_anywhere():
    data = pcap_bytes(FRAMES)
    starts, complete_records = boundaries(data), read(data)
    for cut in range(len(data)):
        if cut in starts:
            assert read(data[:cut]) == complete_records[: starts.index(cut)]
            continue
        records, error = read_until_error(data[:cut])
        complete = max(0, sum(start < cut for start in starts) - 1)
        assert records == complete_records[:complete]
        assert error.offset == (starts[complete] if cut > 24 else 0)


def test_a_pcapng_file_cut_anywhere():
    data = (
        PcapNg().section().interface(tsresol=9).packet(FRAMES[0]).block(77, bytes(50)).packet(FRAMES[1]).data
    )
    starts, complete_records = blocks(data), read(data)
    for cut in range(4, len(data)):
        complete = sum(start <= cut for start in starts) - 1
        expected = complete_records[: (complete >= 3) + (complete >= 5)]
        if cut in starts:
            assert read(data[:cut]) == expected
            continue
        records, error = read_until_error(data[:cut])
        assert records == expected
        assert error.offset == starts[complete]


@pytest.mark.parametrize("packing", [name for name in PACKINGS if name != "plain"])
def test_a_packed_file_cut_anywhere(packing):
    frames = [*FRAMES, Frame(START_NS, random.Random(1).randbytes(150_000)), *FRAMES]
    plain = pcap_bytes(frames)
    packed = PACKINGS[packing](plain).rstrip(b"\0") if packing == "gzip members" else PACKINGS[packing](plain)
    starts, complete_records = boundaries(plain), read(plain)
    seen = set()
    for cut in range(0, len(packed), max(7, len(packed) // 100)):
        try:
            records = read(packed[:cut])
        except CaptureError:
            records, error = read_until_error(packed[:cut])
            offset = error.offset
        else:
            assert (
                "members" in packing or "frames" in packing
            )  # truncated between two members and two records
            offset = starts[len(records)]
        assert offset == (starts[len(records)] if offset else 0)
        assert records == complete_records[: len(records)]
        seen.add(len(records))
    assert {0, 4} <= seen


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_a_compressed_file_without_its_last_byte_is_incomplete(packing):
    plain = pcap_bytes(FRAMES)
    records, error = read_until_error(PACKINGS[packing](plain)[:-1])
    assert records == read(plain)
    assert error.offset == len(plain)


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_a_damaged_packed_file_never_raises_anything_else(packing):
    packed, rng = PACKINGS[packing](pcap_bytes(FRAMES)), random.Random(5)
    for _ in range(500):
        damaged = bytearray(packed)
        damaged[rng.randrange(len(packed))] ^= 1 << rng.randrange(8)
        with contextlib.suppress(CaptureError):
            read(bytes(damaged))


def patched(data: bytes, at: int, layout: str, value: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(layout, changed, at, value)
    return bytes(changed)


@pytest.mark.parametrize("size", [RECORD_SIZE_USUAL + 1, 0xFFFFFFFF])
def test_an_absurd_size_of_a_pcap_record(size):
    data = pcap_bytes(FRAMES, snaplen=65535)
    third = boundaries(data)[2]
    records, error = read_until_error(patched(data, third + 8, "<I", size))
    assert (records, error.offset) == (read(data)[:2], third)


def test_a_record_may_be_as_long_as_the_file_declares():
    frame = Frame(START_NS, bytes(RECORD_SIZE_USUAL * 2))
    assert read(pcap_bytes([frame], snaplen=len(frame.data)))[0].data == frame.data
    records, error = read_until_error(patched(pcap_bytes([frame], snaplen=len(frame.data)), 16, "<I", 65535))
    assert (records, error.offset) == ([], 24)


@pytest.mark.parametrize(
    "at, value",
    [(4, 0), (4, 8), (4, 11), (4, 33), (4, RECORD_SIZE_MAX * 2), (20, 0xFFFFFFF0), (8, 5), (-4, 12)],
)
def test_a_damaged_pcapng_block(at, value):
    data = pcapng_bytes(FRAMES)
    starts = blocks(data)
    offset = starts[4] + at if at >= 0 else starts[5] + at
    records, error = read_until_error(patched(data, offset, "<I", value))
    assert (records, error.offset) == (read(data)[:2], starts[4])


def test_a_skipped_block_whose_lengths_differ():
    data = PcapNg().section().interface().packet(FRAMES[0]).block(99, bytes(20)).packet(FRAMES[1]).data
    starts = blocks(data)
    records, error = read_until_error(patched(data, starts[4] - 4, "<I", 36))
    assert (len(records), error.offset) == (1, starts[3])


@pytest.mark.parametrize(
    "data",
    [b"", b"\xd4", b"GIF89a, surely", bytes(100), b"\n\r\r\n" + bytes(24), gzip.compress(b"hello", mtime=0),
     b"\x1f\x8b", b"\x28\xb5\x2f\xfd", pcap_bytes([])[:23], patched(pcap_bytes([]), 4, "<H", 3),
     patched(pcapng_bytes([]), 12, "<H", 2)],
)  # fmt: skip
def test_not_a_capture(data):
    records, error = read_until_error(data)
    assert (records, error.offset, error.file) == ([], 0, "<stream>")


@pytest.mark.parametrize("pack", ["gzip", "zstd"])
def test_a_file_that_expands_far_takes_little_memory(pack):
    size = 1 << 26
    block = struct.pack("<II", 0xBAD, size + 12) + bytes(size) + struct.pack("<I", size + 12)
    packed = PACKINGS[pack](PcapNg().section().interface().data + block)
    del block
    tracemalloc.start()
    assert read(packed) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20


def test_a_size_that_is_not_there_is_not_allocated():
    data = pcap_bytes([], snaplen=RECORD_SIZE_MAX)
    data += struct.pack("<IIII", 0, 0, RECORD_SIZE_MAX, RECORD_SIZE_MAX)
    tracemalloc.start()
    records, error = read_until_error(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (records, error.offset) == ([], 24)
    assert peak < 4 << 20


def test_hostile_bytes_after_a_header_raise_nothing_else():
    rng = random.Random(11)
    heads = [pcap_bytes([]), pcapng_bytes([]), pcapng_bytes([], byteorder=">")[:8], b""]
    for _ in range(1000):
        with contextlib.suppress(CaptureError):
            read(rng.choice(heads) + rng.randbytes(rng.randrange(200)))


def test_zstd_without_the_package_is_an_error_of_the_file(monkeypatch):
    packed = PACKINGS["zstd"](pcap_bytes(FRAMES))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    _, error = read_until_error(packed)
    assert "zstandard" in error.why


def test_files_are_named_and_streams_are_left_open(tmp_path):
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap_bytes(FRAMES))
    assert {record.file for record in open_records(path)} == {str(path)}
    assert list(open_records(str(path))) == list(open_records(path))
    with path.open("rb") as stream:
        assert [record.file for record in open_records(stream)] == [str(path)] * 4
        assert not stream.closed
    with pytest.raises(FileNotFoundError):
        next(open_records(tmp_path / "b.pcap"))


def test_expand(tmp_path, monkeypatch):
    for name in ["b.pcap", "a.pcap", "c[1].pcap", "sub/d.pcap", "e.txt"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert expand(["e.txt", "*.pcap", Path("a.pcap")]) == [
        Path(n) for n in ("e.txt", "a.pcap", "b.pcap", "c[1].pcap")
    ]
    assert expand(["c[1].pcap"]) == [Path("c[1].pcap")]
    assert expand([tmp_path / "**" / "d.*"]) == [tmp_path / "sub" / "d.pcap"]
    assert expand(["sub", "a.pcap"]) == [Path("sub/d.pcap"), Path("a.pcap")]
    assert expand([]) == []
    for missing in ["nothing.pcap", "*.none", "sub/none"]:
        with pytest.raises(FileNotFoundError) as caught:
            expand(["a.pcap", missing])
        assert caught.value.filename == missing
