"""Exact parts as tasks of Spark read them: the rows of one reader, with offsets of frames, flow numbers."""

from __future__ import annotations

import pickle
import random
import warnings
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings

from msmqwire.analysis.dissection import Dissection
from msmqwire.capture.splits import records_with_offsets, whole_file
from msmqwire.errors import CaptureError
from msmqwire.tables import arrow_schema, record_batches
from msmqwire.tables.columns import UNJUDGED
from msmqwire.tables.flow_number import FlowNumbers
from msmqwire.tables.part_reader import PartReader
from msmqwire.tables.scanning import row_buffer
from spark_udfs.reassembly.packet_columns import damage_row, packet_schema
from spark_udfs.reassembly.part_packets import PartPackets, plan_parts
from spark_udfs.source.options import Options, paths_option
from tests.property.spark import test_spark_reassembly
from tests.property.tables.test_exact_parts import CHUNKS
from tests.support import captures as c
from tests.support.capture.busy import busy_capture
from tests.support.nightly import NIGHTLY

NAMES = [column.name for column in UNJUDGED] + ["frame_offset"]
few = settings(max_examples=max(12, settings.default.max_examples // 5))


def record_offsets(path: Path) -> list[int]:
    """The offsets of the records of a file, by their numbers; that of no record comes first."""
    offsets = [-1]
    try:
        for offset, _ in records_with_offsets(whole_file(str(path)).open()):
            offsets.append(offset)
    except CaptureError:
        pass
    return offsets


def one_reader(paths: Sequence[Path]) -> pa.Table:
    """The rows of one reader, with frame_offset, without frame, and with flow numbers; damage at the end."""
    dissection = Dissection(paths, lint=False)
    names = NAMES[:-1]
    batches = list(record_batches(dissection, columns=names))
    table = pa.Table.from_batches(batches, arrow_schema(UNJUDGED))
    offsets = {str(path): record_offsets(path) for path in paths}
    numbers = zip(table["file"].to_pylist(), table["frame"].to_pylist(), strict=True)
    columns = dict(zip(names, table.columns, strict=True))
    columns["frame_offset"] = pa.array([offsets[file][frame] for file, frame in numbers], pa.int64())
    columns["frame"] = pa.nulls(table.num_rows, pa.int64())
    flows = FlowNumbers()
    columns["stream"] = pa.chunked_array([flows.column(batch) for batch in batches], pa.int64())
    rows = pa.Table.from_arrays([columns[name] for name in NAMES], schema=packet_schema(NAMES))
    damage = [damage_row(error.file, error.offset, error.why) for error in dissection.errors]
    return pa.concat_tables([rows, pa.Table.from_pylist(damage, packet_schema(NAMES))])


def by_parts(paths: Sequence[Path], part_size: int) -> pa.Table:
    """The rows of parts in their order, damage at the end."""
    plan = plan_parts(Options.parse({"paths": paths_option(paths), "splitSize": str(part_size)}))
    reader = PartPackets(PartReader(), packet_schema(NAMES))
    batches: dict[int, list[pa.RecordBatch]] = {}
    for number in random.Random(1).sample(range(len(plan.parts)), len(plan.parts)):
        batches[number] = list(reader.batches(pickle.loads(pickle.dumps(plan.parts[number]))))
    ordered = [batch for number in sorted(batches) for batch in batches[number]]
    table = pa.Table.from_batches(ordered, packet_schema(NAMES))
    is_damage = pc.is_null(table["frame_offset"])
    return pa.concat_tables([table.filter(pc.invert(is_damage)), table.filter(is_damage)])


def assert_same(files: Sequence[bytes], chunk: int, part_size: int) -> pa.Table:
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        paths = [Path(folder) / f"part-{number}" for number in range(len(files))]
        for path, data in zip(paths, files, strict=True):
            path.write_bytes(data)
        expected = one_reader(paths)
        with mock.patch.multiple(row_buffer, CHUNK=chunk, ARENA=3000):
            actual = by_parts(paths, part_size)
    for name in NAMES:
        kind = pa.int64() if name == "time" else packet_schema(NAMES).field(name).type
        columns = [table[name].cast(kind).to_pylist() for table in (actual, expected)]
        assert columns[0] == columns[1], name
    return actual


@given(test_spark_reassembly.captures(), CHUNKS, st.sampled_from([0, 1, 1, 1000, 5000]))
@few
def test_any_capture_of_the_shuffle(files, chunk, part_size):
    assert_same(files, chunk, part_size)


@given(test_spark_reassembly.long_flows(), CHUNKS, st.sampled_from([1, 2000, 8000]))
@few
def test_a_long_connection(files, chunk, part_size):
    assert_same(files, chunk, part_size)


DISORDERED = c.pcap_bytes(busy_capture(0.1))
DISORDERED_NG = c.pcapng_bytes(busy_capture(0.1))


@given(st.sampled_from([DISORDERED, DISORDERED_NG]), st.floats(0, 1), st.floats(0, 1), CHUNKS)
@settings(max_examples=1000 if NIGHTLY else 2)
def test_disordered_captures_cut_at_any_byte(data, cut, divided, chunk):
    size = int(len(data) * cut)
    assert_same([data[:size], data], chunk, 1 + int(20_000 * divided))


def test_damage_in_the_middle_is_reported_once():
    data = bytearray(DISORDERED)
    data[len(data) // 2 :] = b"\xff" * (len(data) - len(data) // 2)
    rows = assert_same([bytes(data), DISORDERED], 300, 5000)
    errors = rows.filter(pc.is_null(rows["frame_offset"]))["error"].to_pylist()
    assert len(errors) == 1
    assert errors[0].startswith("byte ")
