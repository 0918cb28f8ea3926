"""Capture files that would take much time or memory for their size: compressed ones, and huge records."""

from __future__ import annotations

import gzip
import io
import json
import struct
import sys
import tracemalloc
import warnings
import zlib
from collections.abc import Iterable
from types import FrameType, SimpleNamespace

import pytest

import msmqwire
from msmqwire.analysis.dissection import dissect
from msmqwire.capture import open_records, source
from msmqwire.capture.record import RECORD_SIZE_MAX
from msmqwire.capture.record_index import one_per_step, record_positions
from msmqwire.capture.window import Window
from msmqwire.errors import CaptureError
from msmqwire.tables import CaptureWarning, record_batches
from tests.support import handmade as h
from tests.support.capture import attacks
from tests.support.capture_files import PcapNg, zstd
from tests.support.running import called

ACK = h.session_ack()
ACK_FRAME, NEXT_FRAME = attacks.segment(ACK), attacks.segment(ACK, seq=1 + len(ACK))
EMPTY_GZIP = gzip.compress(b"", mtime=0)
EMPTY_ZSTD = bytes.fromhex("28b52ffd 2000 010000")
SKIPPABLE = bytes.fromhex("502a4d18 00000000")
LIMIT = 1000


def read(data: bytes, **options: int) -> tuple[list[msmqwire.capture.Record], CaptureError | None]:
    records: list[msmqwire.capture.Record] = []
    try:
        for record in open_records(io.BytesIO(data), **options):  # type: ignore[arg-type]
            records.append(record)
    except CaptureError as error:
        return records, error
    return records, None


# --- members ---


def gzip_members(parts: Iterable[bytes]) -> bytes:
    return b"".join(gzip.compress(part, 1, mtime=0) for part in parts)


@pytest.mark.parametrize("between", [b"", b"\0"], ids=["adjoining", "padded"])
def test_each_gzip_member_costs_no_more_than_its_bytes(between, monkeypatch):
    """zlib hands back a copy of what follows a member: a chunk of a MiB for each would be quadratic."""
    capture = attacks.pcap([b""] * 2000)
    members = [
        gzip.compress(capture[at : at + 16], 1, mtime=0) + between for at in range(0, len(capture), 16)
    ]
    handed = []

    class Counting:
        def __init__(self, wbits: int) -> None:
            self.inner = zlib.decompressobj(wbits)

        def decompress(self, data: bytes, size: int) -> bytes:
            handed.append(len(data))
            return self.inner.decompress(data, size)

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

    monkeypatch.setattr(source, "zlib", SimpleNamespace(decompressobj=Counting, error=zlib.error))
    packed = b"".join(members)
    records, error = read(packed)
    assert (len(records), error) == (2000, None)
    assert sum(handed) < 20 * len(packed)


@pytest.mark.parametrize(
    "empty, pack",
    [(EMPTY_GZIP, gzip.compress), (EMPTY_ZSTD, zstd), (SKIPPABLE, zstd)],
    ids=["gzip", "zstd", "skippable"],
)
def test_empty_members_without_end_are_damage(empty, pack):
    capture = attacks.pcap([b"x"])
    few, many = empty * 1000, empty * (source.EMPTY_MEMBERS_MAX + 1)
    assert read(pack(capture) + few + pack(capture[24:]))[1] is None
    records, error = read(pack(capture) + many + pack(capture[24:]))
    assert len(records) == 1
    assert error is not None
    assert (error.offset, error.cut) == (len(capture), False)
    assert "in a row are empty" in error.why


def test_tiny_members_take_no_memory_for_each():
    record = struct.pack("<IIII", 0, 0, 100_000, 100_000) + bytes(100_000)
    packed = gzip_members([attacks.pcap([]), *(record[at : at + 2] for at in range(0, len(record), 2))])
    tracemalloc.start()
    records, error = read(packed)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert ([len(record.data) for record in records], error) == ([100_000], None)
    assert peak < 3 << 20


def test_a_zstd_window_that_is_too_large_is_damage():
    frame = bytes.fromhex("28b52ffd 00 98 010000")  # a window of 512 MiB
    records, error = read(frame + zstd(attacks.pcap([])))
    assert records == []
    assert error is not None


# --- records ---


def pcap_with(size: int, *, snaplen: int) -> tuple[bytes, int]:
    """A capture of three frames of which the second has this size, and its offset."""
    frames = [ACK_FRAME, bytes(size), NEXT_FRAME]
    data = attacks.pcap(frames, snaplen=snaplen)
    return data, 24 + 16 + len(ACK_FRAME)


def pcapng_with(size: int, *, snaplen: int, options: bytes = b"") -> tuple[bytes, int]:
    section = PcapNg().section().interface(snaplen=snaplen).data
    blocks = [_enhanced(ACK_FRAME), _enhanced(bytes(size)), _enhanced(NEXT_FRAME)]
    return section + b"".join(blocks), len(section) + len(blocks[0])


def _enhanced(frame: bytes) -> bytes:
    size = 32 + len(frame) + -len(frame) % 4
    body = struct.pack("<IIIII", 0, 0, 1, len(frame), len(frame)) + frame + bytes(-len(frame) % 4)
    return struct.pack("<II", 6, size) + body + struct.pack("<I", size)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd], ids=["plain", "gzip", "zstd"])
@pytest.mark.parametrize("snaplen", [0, 1 << 28])
@pytest.mark.parametrize("make", [pcap_with, pcapng_with])
def test_a_record_over_the_limit_is_damage_that_takes_no_memory(make, snaplen, pack):
    data, offset = make(60 << 20, snaplen=snaplen)
    packed = pack(data)
    del data
    tracemalloc.start()
    errors: list[CaptureError] = []
    numbers = [record.number for record in open_records(io.BytesIO(packed), on_damage=errors.append)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [error.offset for error in errors] == [offset]
    assert "over the limit" in errors[0].why
    assert numbers == [1, 3]
    assert peak < 8 << 20
    records, error = read(packed)
    assert ([record.number for record in records], error and error.offset) == ([1], offset)


@pytest.mark.parametrize("make", [pcap_with, pcapng_with])
def test_the_limit_is_an_option_of_both_readers(make):
    data, offset = make(2 * LIMIT, snaplen=0) if make is pcap_with else make(LIMIT + 0x1_1000, snaplen=0)
    dissection = dissect(io.BytesIO(data), record_size_max=LIMIT)
    kinds = [(item.kind, item.frames) for item in dissection]
    assert [frames for _, frames in kinds] == [(1,), (3,)]
    assert [error.offset for error in dissection.errors] == [offset]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = msmqwire.read_capture(io.BytesIO(data), record_size_max=LIMIT)
    rows = table.select(["kind", "frame"]).to_pylist()
    assert [(row["kind"], row["frame"]) for row in rows] == [(kind, frames[-1]) for kind, frames in kinds]
    warned = [warning.message for warning in caught if isinstance(warning.message, CaptureWarning)]
    assert [warning.error.offset for warning in warned] == [offset]


def test_a_pcapng_packet_over_the_limit_in_a_block_that_is_not():
    data, offset = pcapng_with(LIMIT + 1, snaplen=0)
    errors: list[CaptureError] = []
    records = list(open_records(io.BytesIO(data), record_size_max=LIMIT, on_damage=errors.append))
    assert ([record.number for record in records], [error.offset for error in errors]) == ([1, 3], [offset])


def test_a_size_over_the_file_s_own_limit_ends_reading():
    """No record of this file is so large, so that nobody knows where the next one begins."""
    data, offset = pcap_with(RECORD_SIZE_MAX + 1, snaplen=65_535)
    errors: list[CaptureError] = []
    dissection = dissect(io.BytesIO(data))
    assert [item.frames for item in dissection] == [(1,)]
    assert [error.offset for error in dissection.errors] == [offset]
    with pytest.raises(CaptureError):
        list(open_records(io.BytesIO(data), on_damage=errors.append))
    assert errors == []


def test_a_size_that_leads_beyond_the_file_ends_reading():
    data, offset = pcap_with(100, snaplen=0)
    data = data[: offset + 8] + struct.pack("<I", 0xF000_0000) + data[offset + 12 :]
    dissection = dissect(io.BytesIO(data))
    assert [item.frames for item in dissection] == [(1,)]
    assert [(error.offset, error.cut) for error in dissection.errors] == [(offset, False)]


def test_frames_of_the_next_file_are_numbered_from_one(tmp_path):
    for name in ("a.pcap", "b.pcap"):
        (tmp_path / name).write_bytes(pcap_with(2 * LIMIT, snaplen=0)[0])
    dissection = dissect(sorted(tmp_path.iterdir()), record_size_max=LIMIT)
    assert {item.frames[-1] for item in dissection} <= {1, 2, 3}
    assert [error.file[-6:] for error in dissection.errors] == ["a.pcap", "b.pcap"]


@pytest.mark.parametrize("make", [pcap_with, pcapng_with])
def test_a_final_record_over_the_limit_counts_in_both_readers(make):
    size, end = (
        (2 * LIMIT, 16 + len(NEXT_FRAME))
        if make is pcap_with
        else (LIMIT + 0x1_1000, len(_enhanced(NEXT_FRAME)))
    )
    data = make(size, snaplen=0)[0][:-end]
    by_items, by_columns = (
        dissect([io.BytesIO(data), io.BytesIO(data)], record_size_max=LIMIT) for _ in range(2)
    )
    frames = [item.frames[-1] for item in by_items]
    rows = [row for batch in record_batches(by_columns, columns=["frame"]) for row in batch.to_pylist()]
    assert rows == [{"frame": frame} for frame in frames]
    assert set(frames) == {1}
    assert (by_items.records, by_columns.records) == (4, 4)
    assert len(by_items.errors) == len(by_columns.errors) == 2


@pytest.mark.parametrize("command", ["dissect", "lint"])
def test_the_limit_on_the_command_line(command, tmp_path):
    path = tmp_path / "large.pcap"
    data, offset = pcap_with(2 * LIMIT, snaplen=0)
    path.write_bytes(data)
    assert called(command, path).status == 0
    run = called(command, path, "--record-size-max", str(LIMIT))
    assert run.status == 65
    assert json.loads(run.err)["offset"] == offset


def test_a_section_head_is_copied_only_where_it_is_reported(tmp_path):
    """20,000 interfaces take 400 kB, and took the square of that to append one by one."""
    data = PcapNg().section().data + PcapNg().interface().data * 20_000 + _enhanced(ACK_FRAME) * 3
    path = tmp_path / "interfaces.pcapng"
    path.write_bytes(data)
    copied = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal copied
        if event == "return" and frame.f_code.co_name in ("first", "_append_block"):
            copied += len(argument) if isinstance(argument, bytes) else 0

    sys.setprofile(count)
    try:
        positions = list(record_positions(Window(str(path), b"", 0, len(data)), one_per_step(1)))
    finally:
        sys.setprofile(None)
    assert [len(position.head or b"") for position in positions] == [
        len(data) - 3 * len(_enhanced(ACK_FRAME))
    ] * 3
    assert copied <= 4 * len(data)
