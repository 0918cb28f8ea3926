"""Windows of capture files: where they are split, and where they can't be."""

from __future__ import annotations

import gzip
import random
import struct
from pathlib import Path

import pytest

from msmqwire.capture import open_records
from msmqwire.capture.pcap_search import SEARCH_MAX, find_record
from msmqwire.capture.record import RECORD_SIZE_MAX
from msmqwire.capture.splits import Index, plan, records_with_offsets
from msmqwire.errors import CaptureError
from tests.support.captures import Frame, PcapNg, pcap_bytes, pcapng_bytes

FRAMES = [Frame(1_700_000_000_000_000_000 + n, bytes([n % 251]) * 1000) for n in range(1000)]


def test_a_pcap_is_split_at_its_records(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap_bytes(FRAMES))
    windows = plan(str(path), 200_000)
    # 24 bytes, then records of 1016: the first that starts at or after each multiple.
    assert [window.start for window in windows] == [0, 200_176, 400_328, 600_480, 800_632, 1_000_784]
    assert {window.head for window in windows[1:]} == {path.read_bytes()[:24]}
    assert windows[-1].end == path.stat().st_size


def test_the_head_of_a_pcapng_window_has_the_interfaces_so_far(tmp_path: Path) -> None:
    file = PcapNg(">").section().interface().packet(FRAMES[0])
    section = file.section()  # interfaces of the previous section do not count
    start = len(file.data) - 28
    head = section.interface(101).data[start:]
    file.block(5, b"1234").packet(FRAMES[1])
    offset = len(file.data)
    more = file.interface(1, tsresol=9).data[offset:]
    file.packet(FRAMES[2], 1)
    path = tmp_path / "a.pcapng"
    path.write_bytes(file.data)
    windows = plan(str(path), 500)
    assert [window.head for window in windows] == [b"", head, head + more]
    assert [next(open_records(window.open())).data for window in windows] == [
        frame.data for frame in FRAMES[:3]
    ]


@pytest.mark.parametrize("pack", [gzip.compress, lambda data: data], ids=["gzip", "nothing known"])
def test_what_cannot_be_split_is_one_window(tmp_path: Path, pack: object) -> None:
    data = random.Random(1).randbytes(10_000)
    assert callable(pack)
    path = tmp_path / "a"
    path.write_bytes(pack(data))
    (window,) = plan(str(path), 100)
    assert (window.head, window.start, window.end) == (b"", 0, path.stat().st_size)
    with window.open() as stream, pytest.raises(CaptureError):
        list(records_with_offsets(stream))


def test_no_window_starts_after_damage(tmp_path: Path) -> None:
    data = bytearray(pcap_bytes(FRAMES))
    at = 24 + 500 * 1016
    data[at + 8 : at + 12] = b"\xff" * 4
    path = tmp_path / "a.pcap"
    path.write_bytes(data)
    windows = plan(str(path), 200_000)
    assert [window.start for window in windows] == [0, 200_176, 400_328]
    assert windows[-1].end == len(data)


def test_a_section_with_too_long_a_description_is_not_split(tmp_path: Path) -> None:
    file = PcapNg().section().interface()
    file.block(1, struct.pack("<HHI", 1, 0, 0) + file.option(2, bytes(60_000)) * 20)
    for frame in FRAMES[:10]:
        file.packet(frame)
    path = tmp_path / "a.pcapng"
    path.write_bytes(file.data)
    assert len(plan(str(path), 2000)) == 1
    assert len(list(open_records(path))) == 10


def test_the_search_finds_the_records_of_the_scan(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap_bytes(FRAMES * 3))
    scanned = {(start - 24) % 1016 for start in (window.start for window in plan(str(path), 600_000)[1:])}
    searched = plan(str(path), 600_000, search=True)
    assert scanned == {0}
    assert len(searched) == 4
    assert all((window.start - 24) % 1016 == 0 for window in searched[1:])


def test_two_chains_that_stay_apart_are_not_split(tmp_path: Path) -> None:
    """The data of each record is another record, so that a second chain runs parallel to the first."""
    inner = struct.pack("<IIII", 1, 1, 16, 16)
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap_bytes([Frame(1, inner)] * 200_000))
    assert path.stat().st_size > SEARCH_MAX
    with path.open("rb") as file:
        assert find_record(file, path.read_bytes()[:24], 1_000_000) is None
    assert len(plan(str(path), 1_000_000, search=True)) == 1


def test_offsets_in_a_file_and_in_a_compressed_one(tmp_path: Path) -> None:
    data = pcapng_bytes(FRAMES[:5])
    starts = [len(pcapng_bytes(FRAMES[:n])) for n in range(5)]
    for name, content in (("a", data), ("b", gzip.compress(data))):
        path = tmp_path / name
        path.write_bytes(content)
        (window,) = plan(str(path), 0)
        with window.open() as stream:
            assert [offset for offset, _ in records_with_offsets(stream)] == starts
    last = plan(str(tmp_path / "a"), 2000)[-1]
    with last.open() as stream:
        assert [offset for offset, _ in records_with_offsets(stream)] == starts[4:]


@pytest.mark.parametrize("damaged", [False, True], ids=["cut", "damaged"])
def test_an_index_distinguishes_damage_from_truncation(tmp_path: Path, damaged: bool) -> None:
    data = pcap_bytes(FRAMES[:3])
    end = 24 + 2 * 1016
    path = tmp_path / "a.pcap"
    path.write_bytes(data[: end + 8] + b"\xff" * 4 + data[end + 12 :] if damaged else data[:-1])
    index = Index(str(path), 100)
    index.refresh()
    assert index.end == end
    assert index.error is not None
    assert index.error.cut is not damaged
    assert index.error.offset == end


@pytest.mark.parametrize("is_pcapng", [False, True], ids=["pcap", "pcapng"])
def test_a_record_above_the_limit_is_passed_over(tmp_path: Path, is_pcapng: bool) -> None:
    """What follows it is divided and indexed as if it were not there, and one window reports it."""
    huge = Frame(FRAMES[500].time_ns, bytes(RECORD_SIZE_MAX + 8))
    frames = [*FRAMES[:500], huge, *FRAMES[500:]]
    data = pcapng_bytes(frames) if is_pcapng else pcap_bytes(frames, snaplen=2 * RECORD_SIZE_MAX)
    path = tmp_path / "a"
    path.write_bytes(data)
    windows = plan(str(path), 200_000)
    assert len(windows) >= 6
    errors: list[CaptureError] = []
    payloads: list[bytes] = []
    for window in windows:
        with window.open() as stream:
            payloads += [record.data for record in open_records(stream, on_damage=errors.append)]
    assert payloads == [frame.data for frame in FRAMES]
    assert len(errors) == 1
    index = Index(str(path), 200_000)
    index.refresh()
    assert index.error is None
    assert index.end == len(data)
    later = index.window(len(data) - 100_000, len(data))
    with later.open() as stream:
        assert 90 < sum(1 for _ in open_records(stream)) < 110
    (tmp_path / "a.gz").write_bytes(gzip.compress(data, 1))
    whole = Index(str(tmp_path / "a.gz"), 200_000)
    whole.refresh()
    assert whole.error is None
    assert whole.end == (tmp_path / "a.gz").stat().st_size
