"""The windows of a capture file, read in order, yield the same as the whole file."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmqwire.capture import Record, open_records, record_index, source
from msmqwire.capture.record_index import RecordPosition, is_splittable, one_per_step
from msmqwire.capture.splits import Index, Window, last_part, plan
from msmqwire.errors import CaptureError
from msmqwire.tables.compiled.skip import skip_records
from tests.support.captures import Frame, PcapNg, pcap_bytes, pcapng_bytes

Damage = tuple[str, int | None]
Reading = tuple[list[Record], Damage | None, list[Damage]]


def read_whole(path: Path) -> Reading:
    """Return the records of a file, its error with its offset, and those of the records passed over."""
    records: list[Record] = []
    passed: list[Damage] = []
    try:
        for record in open_records(path, on_damage=lambda error: passed.append((error.why, error.offset))):
            records.append(record._replace(number=0))
    except CaptureError as error:
        return records, (error.why, error.offset), passed
    return records, None, passed


def read_windows(windows: list[Window]) -> Reading:
    """Return the same of its windows; the error must be in the last one."""
    records: list[Record] = []
    passed: list[Damage] = []
    for number, window in enumerate(windows):

        def located(error: CaptureError, window: Window = window) -> Damage:
            return error.why, window.file_offset(error.offset)

        try:
            with window.open() as stream:
                for record in open_records(stream, on_damage=lambda error: passed.append(located(error))):
                    records.append(record._replace(number=0))
        except CaptureError as error:
            assert number == len(windows) - 1
            return records, located(error), passed
    return records, None, passed


def adjoin(windows: list[Window], size: int) -> bool:
    """Whether the windows cover the file, in order and without overlap."""
    edges = [0, *(window.end for window in windows)]
    return [window.start for window in windows] == edges[:-1] and edges[-1] == size


@st.composite
def frames(draw: st.DrawFn, max_size: int = 300) -> list[Frame]:
    """Frames of random bytes, of zeros, and with captures inside."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    result = []
    for number in range(draw(st.integers(0, 40))):
        kind, size = rng.randrange(4), rng.randrange(max_size)
        inner = [Frame(1_700_000_000_000_000_000 + n, rng.randbytes(rng.randrange(40))) for n in range(3)]
        data = (
            bytes(size) if kind == 0
            else pcap_bytes(inner)[rng.choice((0, 24)) :] if kind == 1
            else pcapng_bytes(inner) if kind == 2
            else rng.randbytes(size)
        )  # fmt: skip
        result.append(Frame(1_700_000_000_000_000_000 + number * 1_000_000, data))
    return result


@st.composite
def pcaps(draw: st.DrawFn) -> bytes:
    nanoseconds = draw(st.booleans())
    return pcap_bytes(
        draw(frames()),
        byteorder=draw(st.sampled_from("<>")),
        nanoseconds=nanoseconds,
        modified=not nanoseconds and draw(st.booleans()),
        snaplen=draw(st.sampled_from([0, 64, 0x40000, 0x7FFFFFFF])),
    )


@st.composite
def pcapngs(draw: st.DrawFn) -> bytes:
    """Several sections in both byte orders, interfaces described in between, blocks of all kinds."""
    data = b""
    left = draw(frames())
    for _ in range(draw(st.integers(1, 3))):
        file = PcapNg(draw(st.sampled_from("<>"))).section()
        file.interface(1, snaplen=draw(st.sampled_from([0, 100])))
        for _ in range(draw(st.integers(0, 15))):
            action = draw(st.integers(0, 6))
            frame = left.pop() if left else Frame(1, b"last")
            if action == 0:
                file.interface(
                    draw(st.sampled_from([1, 101, 113])), tsresol=draw(st.sampled_from([3, 9, 0x8A]))
                )
            elif action == 1:
                file.block(0x0BAD, frame.data)
            elif action == 2:
                file.simple_packet(frame)
            elif action == 3:
                file.old_packet(frame, len(file.interfaces) - 1)
            else:
                file.packet(frame, draw(st.integers(0, len(file.interfaces) - 1)))
        data += file.data
    return data


@st.composite
def spoiled(draw: st.DrawFn, files: st.SearchStrategy[bytes]) -> bytes:
    """A file as it is, truncated, or with some bytes changed."""
    data = draw(files)
    damage = draw(st.sampled_from(["intact", "intact", "cut", "changed"]))
    if damage == "cut":
        return data[: draw(st.integers(0, len(data)))]
    if damage == "changed" and data:
        at = draw(st.integers(0, len(data) - 1))
        return data[:at] + draw(st.binary(min_size=1, max_size=8)) + data[at + 8 :]
    return data


@given(spoiled(st.one_of(pcaps(), pcapngs())), st.integers(1, 3000))
def test_windows_are_the_file(data: bytes, split_size: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.cap")
        path.write_bytes(data)
        windows = plan(str(path), split_size)
        assert adjoin(windows, len(data))
        assert read_windows(windows) == read_whole(path)


def positions(window: Window, **options: Any) -> tuple[list[RecordPosition], tuple[str, int] | None]:
    """Return the record positions of a window and its error, with its offset."""
    records: list[RecordPosition] = []
    try:
        records.extend(record_index.record_positions(window, **options))
    except CaptureError as error:
        return records, (error.why, error.offset)
    return records, None


def first_per_step(records: list[RecordPosition], step: int) -> list[RecordPosition]:
    """Return the first record of each step, and the last record."""
    target, selected = 0, list[RecordPosition]()
    for position in records:
        if position.start >= target:
            selected.append(position)
            target = (position.start // step + 1) * step
    return selected + [position for position in records[-1:] if position not in selected]


@given(spoiled(st.one_of(pcaps(), pcapngs())), st.integers(1, 3000), st.integers(30, 3000), st.booleans())
def test_skipping_records_changes_nothing(data: bytes, step: int, chunk: int, small: bool) -> None:
    """Wherever a chunk of the file or of a window ends, and whatever the compiled code encounters."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder, "a.cap")
        path.write_bytes(data)
        if not is_splittable(str(path)):
            return
        windows = [Window(str(path), b"", 0, len(data)), plan(str(path), 2000)[-1]]
        expected = [positions(window) for window in windows]
        planned = plan(str(path), step)
        if small:
            patch.setattr(record_index, "CHUNK_SIZE", chunk)
            patch.setattr(source, "CHUNK_SIZE", chunk)
        for window, (records, error) in zip(windows, expected, strict=True):
            assert positions(window, next_offset=one_per_step(1), skip=skip_records) == (records, error)
            assert positions(window, next_offset=one_per_step(step), skip=skip_records) == (
                first_per_step(records, step),
                error,
            )
        assert plan(str(path), step, skip=skip_records) == planned


@given(
    spoiled(st.one_of(pcaps(), pcapngs())), st.integers(1, 3000), st.lists(st.integers(0, 4000), max_size=2)
)
def test_tails_start_with_records_of_their_windows(data: bytes, split_size: int, tails: list[int]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.cap")
        path.write_bytes(data)
        plain = plan(str(path), split_size)
        noted = plan(str(path), split_size, tails=tails, skip=skip_records)
        assert [replace(window, tails=()) for window in noted] == plain
        for window in noted:
            records, *_ = read_windows([window])
            for start, head in window.tails:
                assert window.start < start < window.end
                rest, *_ = read_windows([Window(str(path), head, start, window.end)])
                assert rest
                assert rest == records[-len(rest) :]
            for tail in tails:
                rest, *_ = read_windows([last_part(window, tail, skip_records)])
                assert rest == records[len(records) - len(rest) :]


@settings(max_examples=40)
@given(st.data())
def test_windows_of_a_file_that_is_searched(data: st.DataObject) -> None:
    """Only records near the splits are searched; a record can be up to 256 KiB long."""
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    inner = pcap_bytes([Frame(n, rng.randbytes(rng.randrange(200))) for n in range(400)])
    contents = [bytes(2000), inner, rng.randbytes(60_000), inner[24:], bytes(range(256)) * 4]
    packets = [Frame(1_700_000_000_000_000_000 + n, rng.choice(contents)) for n in range(60)]
    file = pcap_bytes(packets, byteorder=data.draw(st.sampled_from("<>")), modified=data.draw(st.booleans()))
    if data.draw(st.booleans()):
        file = file[: data.draw(st.integers(24, len(file)))]
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.pcap")
        path.write_bytes(file)
        windows = plan(str(path), data.draw(st.integers(50_000, 800_000)), search=True)
        assert adjoin(windows, len(file))
        assert read_windows(windows) == read_whole(path)


@given(st.one_of(pcaps(), pcapngs()), st.lists(st.floats(0, 1), min_size=1, max_size=4), st.integers(1, 2000))
def test_a_file_that_grows(data: bytes, parts: list[float], step: int) -> None:
    """The windows between successive ends of a growing file have each record exactly once."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.cap")
        path.touch()
        index, read, ends = Index(str(path), step), list[Record](), [0]
        for part in [*sorted(parts), 1.0]:
            path.write_bytes(data[: int(len(data) * part)])
            index.refresh()
            again = Index(str(path), step)
            again.refresh()
            assert again.end == index.end
            assert index.error is None or index.error.cut
            if index.end > ends[-1]:
                window = index.window(ends[-1], index.end)
                assert window == again.window(ends[-1], index.end)
                records, error, _ = read_windows([window])
                assert error is None
                read += records
                ends.append(index.end)
        assert (read, None, []) == read_whole(path)
