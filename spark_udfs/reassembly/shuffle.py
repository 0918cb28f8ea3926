"""The plan of a distributed reassembly: the segments of captures shuffled by flow."""

from __future__ import annotations

import json
import pickle
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as F

from msmqwire.analysis.protocols import datagram_ports
from msmqwire.capture.not_read import NotRead, listed
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions
from msmqwire.ping import PING_PORT, PING_SIGNATURE, PING_SIZE
from spark_udfs.reassembly.boundary_search import (
    BOUNDARY_SCHEMA,
    CHECK_SCHEMA,
    HEADER_SCHEMA,
    check_chunks,
    find_boundaries,
    segment_headers,
    without_failed,
)
from spark_udfs.reassembly.chunks import OFFSET_BITS, SEGMENT_COLUMNS, ChunkBoundaries, ChunkBoundary
from spark_udfs.source.options import Paths, paths_option
from spark_udfs.source.schema import row_batches, spark_schema
from spark_udfs.source.segment_reader import DAMAGED, UNREAD

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

PIECE_SIZE: Final = 256 << 20
"""Bytes of payload above which a flow is divided, and about the size of its chunks."""
CHECKS_MAX: Final = 3
"""The number of times boundaries are checked; a flow with boundaries that fail all of them is not divided."""
_SURVEY_COLUMNS: Final = ("flow", "file", "offset", "time_ns", "transport", "size", "error")


class DamagedFile(NamedTuple):
    """A truncated or damaged file: reading stopped at this byte of the unpacked file."""

    file: str
    offset: int
    error: str


@dataclass(frozen=True)
class Flows:
    """The segments of a capture, and the facts about the whole capture that tasks need.

    Attributes:
        segments: rows with the columns `SEGMENT_COLUMNS`: TCP, PGM, and UDP that may be pings, PGM or NCP.
        damaged: the files that could not be read to their end.
        ports: as for `msmqwire.dissect`.
        end_ns: the time of the last TCP segment.
        boundaries: the chunk boundaries of giant flows.
        frames_not_read: the reasons why frames that may have packets were not read, each with its count.
    """

    segments: DataFrame
    damaged: tuple[DamagedFile, ...]
    ports: tuple[int, ...]
    end_ns: int
    boundaries: ChunkBoundaries = field(default_factory=dict)
    frames_not_read: tuple[NotRead, ...] = ()

    def shuffled(self, partitions: int | None = None) -> DataFrame:
        """Return the segments, each flow or chunk in one partition, in the order of the capture."""
        segments = self.segments.withColumn("chunk", _chunk_number(self.boundaries))
        return _shuffled(segments, partitions, "flow", "chunk")


def load_flows(
    spark: SparkSession,
    paths: Paths,
    *,
    ports: Collection[int] = (),
    piece_size: int | None = PIECE_SIZE,
    split_size: int | None = None,
    partitions: int | None = None,
    storage_options: StorageOptions = NO_OPTIONS,
) -> Flows:
    """Return the flows of captures; read all segments once, and the segments of giant flows again.

    Args:
        spark: a session with the data source ``msmq``.
        paths: capture files, patterns, folders or URLs: one capture, in this order.
        ports: as for `msmqwire.dissect`.
        piece_size: bytes of payload above which a flow is divided into chunks of about this size; None to
            divide none.
        split_size: as the option ``splitSize`` of the data source.
        partitions: of the shuffles; by default as configured in the session.
        storage_options: as for `msmqwire.dissect`; JSON values: text, numbers, and objects of them.
    """
    reader = spark.read.format("msmq").option("read", "segments").option("paths", paths_option(paths))
    if split_size is not None:
        reader = reader.option("splitSize", str(split_size))
    if storage_options:
        reader = reader.option("storageOptions", json.dumps(dict(storage_options)))
    reader = reader.option("columns", ",".join(_SURVEY_COLUMNS)).option("notRead", "true")
    survey = _survey(reader.load(), piece_size)
    reader = reader.option("columns", ",".join(SEGMENT_COLUMNS)).option("notRead", "false")
    # Each query has a load of its own: a filter that was pushed down stays with its load.
    segments = reader.load().where(_may_be_msmq(ports)).select(*SEGMENT_COLUMNS)
    boundaries: ChunkBoundaries = {}
    if piece_size is not None and survey.giants:
        is_giant = (F.col("transport") == "tcp") & F.col("flow").isin(survey.giants)
        giants = reader.load().where(is_giant).select(*SEGMENT_COLUMNS)
        boundaries = plan_boundaries(giants, piece_size, ports=ports, partitions=partitions)
    return Flows(segments, survey.damaged, tuple(ports), survey.end_ns, boundaries, survey.not_read)


def _may_be_msmq(ports: Collection[int]) -> Column:
    """Whether a segment may be of ours: TCP and PGM, which may be recognised later, UDP of some ports."""
    ping_ports = [PING_PORT, *ports]
    is_signed = F.substring("payload", 3, 2) == F.lit(PING_SIGNATURE.to_bytes(2, "little"))
    is_ping = F.col("src_port").isin(ping_ports) | F.col("dst_port").isin(ping_ports)
    is_ping |= (F.length("payload") == PING_SIZE) & is_signed
    others = datagram_ports()
    is_other = F.col("src_port").isin(*others) | F.col("dst_port").isin(*others)
    return F.col("transport").isin("tcp", "pgm") | ((F.col("transport") == "udp") & (is_ping | is_other))


class _Survey(NamedTuple):
    """The facts that all segments together show.

    Attributes:
        end_ns: the time of the last TCP segment.
        giants: the flows to divide.
        damaged: the damaged files.
        not_read: the frames that were not read.
    """

    end_ns: int
    giants: list[int]
    damaged: tuple[DamagedFile, ...]
    not_read: tuple[NotRead, ...]


def _survey(segments: DataFrame, piece_size: int | None) -> _Survey:
    is_tcp, is_damaged = F.col("transport") == "tcp", F.col("transport") == DAMAGED
    is_unread = F.col("transport") == UNREAD
    damage = F.struct("file", "offset", "error")
    reason = F.when(is_unread, F.col("error")).alias("reason")
    by_flow = segments.groupBy("flow", reason).agg(
        F.sum(F.when(is_unread, F.col("size"))).alias("frames"),
        F.sum(F.when(is_tcp, F.col("size"))).alias("size"),
        F.max(F.when(is_tcp, F.col("time_ns"))).alias("end_ns"),
        F.collect_list(F.when(is_damaged, damage)).alias("damaged"),
    )
    is_giant = F.lit(False) if piece_size is None else F.col("size") > piece_size
    (row,) = by_flow.agg(
        F.max("end_ns").alias("end_ns"),
        F.collect_list(F.when(is_giant, F.col("flow"))).alias("giants"),
        F.flatten(F.collect_list("damaged")).alias("damaged"),
        F.collect_list(F.when(F.col("reason").isNotNull(), F.struct("reason", "frames"))).alias("not_read"),
    ).collect()
    damaged = tuple(DamagedFile(*file) for file in sorted(row.damaged))
    return _Survey(row.end_ns or 0, row.giants, damaged, listed(Counter(dict(row.not_read))))


def plan_boundaries(
    giants: DataFrame, chunk_size: int, *, ports: Collection[int], partitions: int | None = None
) -> ChunkBoundaries:
    """Return the chunk boundaries of flows, each confirmed by the chunk before it."""
    headers = giants.mapInArrow(segment_headers, spark_schema(HEADER_SCHEMA))
    rows = (
        _shuffled(headers, partitions, "flow")
        .mapInArrow(partial(_find_stage, chunk_size=chunk_size), spark_schema(BOUNDARY_SCHEMA))
        .collect()
    )
    candidates: dict[int, list[ChunkBoundary]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.position):
        checkpoint = pickle.loads(row.pickled_checkpoint)  # pickled by our own tasks
        candidates[row.flow].append(ChunkBoundary(row.position, checkpoint))
    boundaries: ChunkBoundaries = candidates
    unconfirmed: ChunkBoundaries = candidates
    for _ in range(CHECKS_MAX):
        if not unconfirmed:
            return boundaries
        failed = _failed_chunks(giants, unconfirmed, ports, partitions)
        boundaries = without_failed(boundaries, failed)
        unconfirmed = {flow: of_flow for flow, of_flow in boundaries.items() if flow in failed}
    return {flow: of_flow for flow, of_flow in boundaries.items() if flow not in unconfirmed}


def _failed_chunks(
    giants: DataFrame, boundaries: ChunkBoundaries, ports: Collection[int], partitions: int | None
) -> dict[int, set[int]]:
    """The chunks, by flow, that do not end in the state with which the next one begins."""
    segments = giants.where(F.col("flow").isin(list(boundaries)))
    segments = segments.withColumn("chunk", _chunk_number(boundaries))
    stage = partial(_check_stage, boundaries=boundaries, ports=tuple(ports))
    checks = _shuffled(segments, partitions, "flow", "chunk").mapInArrow(stage, spark_schema(CHECK_SCHEMA))
    failed: dict[int, set[int]] = defaultdict(set)
    for row in checks.where("not matches").collect():
        failed[row.flow].add(row.chunk)
    return failed


def _chunk_number(boundaries: ChunkBoundaries) -> Column:
    """The number of the chunk of a segment: the number of boundaries of its flow that are not after it."""
    if not boundaries:
        return F.lit(0)
    position = F.shiftleft(F.col("file_index").cast("long"), OFFSET_BITS).bitwiseOR(F.col("offset"))
    positions = [
        column
        for flow, of_flow in boundaries.items()
        for column in (F.lit(flow), F.array(*(F.lit(boundary.position) for boundary in of_flow)))
    ]
    passed = F.filter(F.create_map(*positions)[F.col("flow")], lambda boundary: boundary <= position)
    return F.when(F.col("flow").isin(list(boundaries)), F.size(passed)).otherwise(0)


def _shuffled(segments: DataFrame, partitions: int | None, *keys: str) -> DataFrame:
    shuffled = segments.repartition(partitions, *keys) if partitions else segments.repartition(*keys)
    return shuffled.sortWithinPartitions("flow", "file_index", "offset")


# -- stages: ordinary functions over batches --------------------------------------------------------


def _find_stage(batches: Iterable[Any], chunk_size: int) -> Iterator[pa.RecordBatch]:
    rows = (
        {"flow": flow, "position": position, "pickled_checkpoint": pickle.dumps(checkpoint)}
        for flow, (position, checkpoint) in find_boundaries(batches, chunk_size)
    )
    return row_batches(rows, BOUNDARY_SCHEMA)


def _check_stage(
    batches: Iterable[Any], boundaries: ChunkBoundaries, ports: tuple[int, ...]
) -> Iterator[pa.RecordBatch]:
    checks = check_chunks(batches, boundaries, ports=ports)
    rows = (dict(zip(CHECK_SCHEMA.names, check, strict=True)) for check in checks)
    return row_batches(rows, CHECK_SCHEMA)
