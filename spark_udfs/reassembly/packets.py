"""Exact packets from segments, in any number of tasks.

The segments of a connection, both directions, are brought together by their flow number, put in the order
of the capture and walked over as a single machine would. What comes of a connection depends on its own
segments and on when the capture ended, so the rows are the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from msmqwire.columnar.arrow.batch import BatchMaker
from msmqwire.columnar.columns import BY_NAME, COLUMNS, INT64, arrow_schema
from msmqwire.columnar.filters import Filter
from msmqwire.dissection import Item, Tracker
from spark_udfs.reassembly.arrange import PIECE_SIZE, Flows, Paths, arrange
from spark_udfs.reassembly.flow_decoder import FlowDecoder
from spark_udfs.reassembly.segment_order import Cuts, Segments, pieces
from spark_udfs.source.schema import spark_batches, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FRAME_OFFSET: Final = pa.field(
    "frame_offset",
    INT64,
    metadata={"comment": "The byte of the unpacked file at which the frame stands.", "group": "where"},
)
BATCH_ROWS: Final = 8192


def packets(
    spark: SparkSession,
    paths: Paths,
    *,
    ports: Collection[int] = (),
    columns: Collection[str] | None = None,
    body_limit: int | None = None,
    partitions: int | None = None,
    piece_size: int | None = PIECE_SIZE,
    split_size: int | None = None,
) -> DataFrame:
    """The packets of captures, as `msmqwire.read_capture` has them, whatever is split or rotated where.

    Before it returns, all segments were looked at once; the packets are read when the result is. A file
    that is cut off or damaged has a row of kind Skipped with the error, without a time.

    Args:
        spark: a session that knows the data source ``msmq`` (`spark_udfs.register`).
        paths: capture files, patterns or folders: one capture, in this order.
        ports: as for `msmqwire.dissect`.
        columns: names of columns of `msmqwire.columnar.COLUMNS`, and ``frame_offset``; all but ``raw``
            when left out. ``stream`` is the flow number, and ``frame`` is null.
        body_limit: bytes of ``body`` at the most.
        partitions: how many tasks put packets together; as the session has it when left out.
        piece_size: bytes of payload from which on a connection is cut into pieces of about this size,
            each for a task; None to cut none.
        split_size: bytes of a file that one task reads.

    Raises:
        ValueError: no such column.
    """
    packet_schema(columns)  # refused now, not after the survey
    found = arrange(
        spark, paths, ports=ports, piece_size=piece_size, split_size=split_size, partitions=partitions
    )
    return packets_of(found, columns=columns, body_limit=body_limit, partitions=partitions)


def packets_of(
    found: Flows,
    *,
    columns: Collection[str] | None = None,
    body_limit: int | None = None,
    partitions: int | None = None,
) -> DataFrame:
    """The packets of flows; see `packets`."""
    stage = partial(
        _packet_stage,
        ports=found.ports,
        columns=None if columns is None else tuple(columns),
        body_limit=body_limit,
        end_ns=found.end_ns,
        cuts=found.cuts,
    )
    schema = packet_schema(columns)
    rows = found.arranged(partitions).mapInArrow(stage, spark_schema(schema))
    if not found.damaged:
        return rows
    told = [
        {"file": one.file, "kind": "Skipped", "error": f"byte {one.offset}: {one.error}"}
        for one in found.damaged
    ]
    cells = [tuple(row.get(name) for name in schema.names) for row in told]
    return rows.unionAll(rows.sparkSession.createDataFrame(cells, rows.schema))


def _packet_stage(batches: Iterable[Any], **how: Any) -> Iterator[Any]:
    return spark_batches(packet_batches(batches, **how))


def items(
    batches: Iterable[Any],
    *,
    ports: Collection[int] = (),
    lint: bool = False,
    end_ns: int = 0,
    cuts: Cuts | None = None,
) -> Iterator[tuple[int, Item]]:
    """The items of segments, each with its flow number, by a tracker for each flow: for who needs more than
    columns.

    Args:
        batches: record batches with the columns `NEEDED`. All segments of a flow, or of a piece of one
            that is cut, stand behind each other in the order of the capture.
        ports: as for `msmqwire.dissect`.
        lint: whether to judge the packets; not for flows that are cut.
        end_ns: when the last TCP segment of the whole capture was captured.
        cuts: where flows are cut.
    """
    segments = Segments(batches)
    for flow, _, saved, last, datagrams in pieces(segments, cuts or {}):
        tracker = Tracker(ports=ports, lint=lint, place=segments.place)
        if saved is not None:
            tracker.resume(saved)
        for datagram in datagrams:
            for item in tracker.feed(datagram):
                yield flow, item
        if last:
            for item in tracker.flush(end_ns):
                yield flow, item


def packet_schema(columns: Collection[str] | None = None) -> Any:
    """The Arrow schema of `packets`. Raises ValueError for a name that is no column."""
    names = columns
    if names is None:
        names = [column.name for column in COLUMNS if column.name != "raw"] + [FRAME_OFFSET.name]
    known = {**{field.name: field for field in arrow_schema()}, FRAME_OFFSET.name: FRAME_OFFSET}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"no column {', '.join(unknown)}")
    return pa.schema([known[name] for name in names])


def packet_batches(
    batches: Iterable[Any],
    *,
    ports: Collection[int] = (),
    columns: Collection[str] | None = None,
    body_limit: int | None = None,
    end_ns: int = 0,
    cuts: Cuts | None = None,
) -> Iterator[Any]:
    """The packets of segments as record batches with `packet_schema`; arguments as for `items`."""
    schema = packet_schema(columns)
    # The frame of a row is its offset here; the number of it in its file is not known.
    sources = {name: "frame" if name == FRAME_OFFSET.name else name for name in schema.names}
    decoded = [BY_NAME[name] for name in dict.fromkeys(sources.values())]
    maker = BatchMaker(decoded, Filter(()), BATCH_ROWS, body_limit)
    for batch in FlowDecoder(maker, ports=ports, end_ns=end_ns, cuts=cuts).batches(batches):
        arrays = [
            pa.nulls(batch.num_rows, INT64) if name == "frame" else batch.column(sources[name])
            for name in schema.names
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
