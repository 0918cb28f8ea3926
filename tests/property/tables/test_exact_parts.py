"""Exact parts have the rows of one reader, in its order, wherever a capture is divided."""

from __future__ import annotations

import io
import pickle
import random
import warnings
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings

from msmqwire.analysis.dissection import Dissection, dissect
from msmqwire.capture.splits import records_with_offsets, whole_file
from msmqwire.errors import CaptureError
from msmqwire.tables import arrow_schema, record_batches
from msmqwire.tables.columns import UNJUDGED
from msmqwire.tables.exact_parts import ExactPart, exact_parts, plan_exact_parts
from msmqwire.tables.part_reader import PartReader
from msmqwire.tables.resumable_decoder import ResumableDecoder
from msmqwire.tables.scanning import row_buffer
from tests.property.spark import test_spark_reassembly
from tests.property.tables import test_columnar
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture import srmp_captures as s
from tests.support.capture.busy import busy_capture
from tests.support.nightly import nightly
from tests.support.paths import EXAMPLES

NAMES = [column.name for column in UNJUDGED]


def whole(paths: Sequence[Path]) -> tuple[pa.Table, list[str]]:
    """The rows and errors of one reader."""
    dissection = Dissection(paths, lint=False)
    table = pa.Table.from_batches(record_batches(dissection, columns=NAMES), arrow_schema(UNJUDGED))
    return table, [str(error) for error in dissection.errors]


def divided(paths: Sequence[Path], part_size: int) -> list[ExactPart]:
    files = [whole_file(str(path)) for path in paths]
    parts = exact_parts(files, part_size)
    return [pickle.loads(pickle.dumps(part)) for part in parts]


def joined(parts: Sequence[ExactPart], rng: random.Random) -> tuple[pa.Table, list[str]]:
    """The rows and errors of parts, which are read in any order."""
    batches: dict[int, list[pa.RecordBatch]] = {}
    errors: dict[int, list[str]] = {}
    for number in rng.sample(range(len(parts)), len(parts)):
        found: list[Exception] = []
        batches[number] = list(PartReader().batches(parts[number], NAMES, errors=found))  # type: ignore[arg-type]
        errors[number] = [str(error) for error in found]
    numbers = range(len(parts))
    table = pa.Table.from_batches([b for number in numbers for b in batches[number]], arrow_schema(UNJUDGED))
    return table, [error for number in numbers for error in errors[number]]


def assert_same(files: Sequence[bytes], chunk: int, part_size: int, seed: int = 1) -> list[ExactPart]:
    """Check that parts of a capture have its rows and errors; return the parts."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.pcap" for number in range(len(files))]
        for path, data in zip(paths, files, strict=True):
            path.write_bytes(data)
        expected = whole(paths)
        with mock.patch.multiple(row_buffer, CHUNK=chunk, ARENA=3000):
            parts = divided(paths, part_size)
            actual = joined(parts, random.Random(seed))
    assert actual[1] == expected[1]
    for name in NAMES:
        assert actual[0][name].to_pylist() == expected[0][name].to_pylist(), name
    return parts


CHUNKS = st.sampled_from([64, 300, 2000])
SIZES = st.sampled_from([0, 1, 1, 1, 1000, 5000])
few = settings(max_examples=max(15, settings.default.max_examples // 4))


@given(frames=test_columnar.captures(), data=st.data(), chunk=CHUNKS, size=SIZES, seed=st.integers(0, 99))
@few
def test_any_capture(frames: list[c.Frame], data: st.DataObject, chunk: int, size: int, seed: int) -> None:
    cut = data.draw(st.integers(0, len(frames)))
    files = [test_columnar.file_of(data, part) for part in (frames[:cut], frames[cut:])]
    assert_same(files, chunk, size, seed)


@given(files=test_spark_reassembly.captures(), chunk=CHUNKS, size=SIZES)
@few
def test_connections_with_disorder_pauses_and_reused_ports(files: list[bytes], chunk: int, size: int) -> None:
    assert_same(files, chunk, size)


@pytest.mark.parametrize("share", [pytest.param(0.0, marks=nightly), 0.1, pytest.param(0.3, marks=nightly)])
@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_a_capture_divided_at_any_of_its_records(share: float, form: str) -> None:
    frames = busy_capture(share)
    data = c.pcap_bytes(frames) if form == "pcap" else c.pcapng_bytes(frames, byteorder=">")
    parts = assert_same([data], 64, 1)
    assert len(parts) > len(frames) / 2


def fragmented() -> list[bytes]:
    """Fragments of IP, and of PGM over them, of several messages at a time."""
    segment = c.tcp(h.user_message(properties=h.properties_header(body=b"b" * 900)), src_port=50_001, seq=9)
    packet = c.ipv4(segment, ident=7)
    of_tcp = [c.ethernet(part) for part in c.fragments_4(packet, 64)]
    of_pgm = list(s.over_udp(s.multicast_with_a_repair()))
    mixed = [frame for pair in zip(of_tcp, [*of_pgm, *of_pgm], strict=False) for frame in pair]
    return [*mixed, *of_pgm, *of_tcp]


def test_fragments_and_multicast_sessions_cross_parts() -> None:
    frames = fragmented()
    parts = assert_same([c.pcap_bytes(frames)], 64, 1)
    assert len(parts) > len(frames) / 2


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.pcap*")), ids=lambda path: path.name)
def test_examples(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert len(assert_same([path.read_bytes()] * 2, 100, 1)) > 10


def test_successive_files_share_parts_unless_compressed() -> None:
    """A compressed file is one part."""
    import gzip

    frames = busy_capture(0.1)
    files = [c.pcap_bytes(frames[at : at + 40]) for at in range(0, len(frames), 40)]
    files[2:4] = [gzip.compress(data) for data in files[2:4]]
    parts = assert_same(files, 1000, 3 * len(files[0]))
    assert len(files) // 4 <= len(parts) <= len(files) // 2
    parts = assert_same(files, 1000, 0)
    assert [[window.start for window in part.windows] for part in parts] == [[0]] * len(files)


def test_parts_can_begin_at_any_record_that_is_named() -> None:
    frames = busy_capture(0.1)
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.pcap" for number in range(2)]
        paths[0].write_bytes(c.pcap_bytes(frames[:200]))
        paths[1].write_bytes(c.pcapng_bytes(frames[200:]))
        files = [whole_file(str(path)) for path in paths]
        with mock.patch.multiple(row_buffer, CHUNK=64, ARENA=3000):
            parts = list(exact_parts(files, 1))
            for number in (1, len(parts) // 3, len(parts) * 2 // 3):
                window = parts[number].windows[0]
                place = (paths.index(Path(window.path)), window.start)
                again = list(exact_parts(files, 1, start=place))
                assert [part.windows for part in again] == [part.windows for part in parts[number:]]
                assert_rows_of_end(parts, number, again)
            with pytest.raises(CaptureError, match="ends within"):
                list(exact_parts(files, 1, start=(0, parts[9].windows[0].start + 3)))


def assert_rows_of_end(parts: Sequence[ExactPart], number: int, end: Sequence[ExactPart]) -> None:
    """Check that parts have the rows of all parts from this number on."""
    expected, actual = joined(parts[number:], random.Random(1)), joined(end, random.Random(2))
    assert actual[1] == expected[1]
    assert actual[0].equals(expected[0])


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
@pytest.mark.parametrize("chunk", [pytest.param(64, marks=nightly), 1 << 20])
def test_frames_numbered_by_their_offsets(form: str, chunk: int, tmp_path: Path) -> None:
    frames = [*busy_capture(0.1), *fragmented()]
    paths = [tmp_path / "0", tmp_path / "1"]
    for path, part in zip(paths, (frames[:150], frames[150:]), strict=True):
        path.write_bytes(c.pcap_bytes(part) if form == "pcap" else c.pcapng_bytes(part))
    files = [whole_file(str(path)) for path in paths]
    offsets = {
        str(path): [0, *(start for start, _ in records_with_offsets(file.open()))]
        for path, file in zip(paths, files, strict=True)
    }
    with mock.patch.multiple(row_buffer, CHUNK=chunk, ARENA=3000):
        parts = list(exact_parts(files, 1, by_offset=True))
        rows, _ = joined(parts, random.Random(1))
    expected, _ = whole(paths)
    numbers = zip(expected["file"].to_pylist(), expected["frame"].to_pylist(), strict=True)
    assert rows["frame"].to_pylist() == [offsets[file][number] for file, number in numbers]
    assert rows.drop(["frame"]).equals(expected.drop(["frame"]))


@nightly
def test_parts_with_states_beyond_the_limit_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = busy_capture(0.1)
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.pcap" for number in range(3)]
        for number, path in enumerate(paths):
            path.write_bytes(c.pcap_bytes(frames[number::3]))
        expected = whole(paths)
        files = [whole_file(str(path)) for path in paths]
        with mock.patch.multiple(row_buffer, CHUNK=64, ARENA=3000):
            unbounded = plan_exact_parts(files, 1)
            size = sum(len(part.state) for part in unbounded.parts)
            counts = []
            for limit in (2 * size, size * 3 // 4, size // 10, 0):
                monkeypatch.setattr("msmqwire.tables.exact_parts.STATES_MAX", limit)
                plan = plan_exact_parts(files, 1)
                assert sum(len(part.state) for part in plan.parts) <= limit
                assert plan.is_coarse == (limit < size)
                actual = joined(plan.parts, random.Random(1))
                assert actual[1] == expected[1]
                assert actual[0].equals(expected[0])
                counts.append(len(plan.parts))
    assert counts[0] == len(unbounded.parts) > counts[1] > counts[2] > counts[3] == 1


def test_a_large_state_is_followed_by_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msmqwire.tables.resumable_decoder.STATE_MIN", 1000)
    monkeypatch.setattr("msmqwire.tables.resumable_decoder.STATE_SHARE", 2)
    save, states = ResumableDecoder.save, list[int]()

    def counted(self: ResumableDecoder) -> bytes:
        state = save(self)
        states.append(len(state))
        return state

    monkeypatch.setattr(ResumableDecoder, "save", counted)
    talk = c.TcpConversation((c.CLIENT, 50_000), (c.SERVER, 1801), mss=600).handshake()
    for number in range(300):
        body = random.Random(number).randbytes(900 if number else 60_000)
        talk.send(h.user_message(properties=h.properties_header(label=f"{number}", body=body)))
    parts = assert_same([c.pcap_bytes(talk.frames)], 64, 1)
    assert len(parts) > 10
    for part, following in pairwise(parts):
        size = sum(window.end - window.start for window in part.windows)
        assert 2 * len(following.state) <= size
    last = [sum(window.end - window.start for window in part.windows) for part in parts[-6:]]
    assert max(last) < 3 * max(states[-6:]) < max(states)  # though there was a large one
    assert len(states) < 4 * len(
        parts
    )  # about three for each part: none at each record while it is too large


def test_a_state_is_followed_by_bytes_of_its_uncompressed_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("msmqwire.tables.resumable_decoder.DUMPED_MIN", 0)
    assert len(assert_same([c.pcap_bytes(busy_capture(0.1))], 64, 1)) == 2  # states have more than the file


def test_a_state_is_small_and_has_no_bytes_that_are_done() -> None:
    frames = busy_capture(0.0)
    parts = assert_same([c.pcap_bytes(frames)], 64, 1)
    assert max(len(part.state) for part in parts) < 40_000


def test_a_pickled_dissection_omits_sources_and_errors() -> None:
    dissection = dissect(io.BytesIO(c.pcap_bytes([])[:-1]), lint=False)
    assert not list(dissection)
    assert dissection.errors
    copy = pickle.loads(pickle.dumps(dissection))
    assert (copy.sources, copy.errors, copy.files) == ([], [], dissection.files)
