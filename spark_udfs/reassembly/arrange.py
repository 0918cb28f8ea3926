"""The segments of captures brought together by flow: the plan of a distributed reassembly."""

from __future__ import annotations

import json
import os
import pickle
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as F

from msmqwire.ping import PING_PORT, PING_SIGNATURE, PING_SIZE
from spark_udfs.reassembly.cuts import CHECKS, CUTS, HEADS, check_pieces, find_cuts, heads, without_bad
from spark_udfs.reassembly.segment_order import NEEDED, OFFSET_BITS, Cut, Cuts
from spark_udfs.source.schema import spark_schema
from spark_udfs.source.segment_reader import DAMAGED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

PIECE_SIZE: Final = 256 << 20
"""Bytes of payload from which on a flow is cut into pieces of about this size."""
CHECKS_MAX: Final = 3
"""How often cuts are checked; a flow some of whose cuts fail that often is not cut."""
_SURVEYED: Final = ("flow", "file", "offset", "time_ns", "transport", "size", "error")

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class Damaged(NamedTuple):
    """A file that is cut off or damaged: reading it stopped at this byte of the unpacked file."""

    file: str
    offset: int
    error: str


@dataclass(frozen=True)
class Flows:
    """The segments of a capture, and what must be known of the whole of it before they are dealt out.

    Attributes:
        segments: rows with the columns `NEEDED`; TCP, and UDP as far as it can be pings.
        damaged: the files that could not be read to their end.
        ports: as for `msmqwire.dissect`.
        end_ns: when the last TCP segment was captured.
        cuts: where giant flows are cut.
    """

    segments: DataFrame
    damaged: tuple[Damaged, ...]
    ports: tuple[int, ...]
    end_ns: int
    cuts: Cuts = field(default_factory=dict)

    def arranged(self, partitions: int | None = None) -> DataFrame:
        """The segments with those of a flow, or of a piece of it, in one partition, in capture order."""
        return _arranged(self.segments.withColumn("piece", _piece(self.cuts)), partitions, "flow", "piece")


def arrange(
    spark: SparkSession,
    paths: Paths,
    *,
    ports: Collection[int] = (),
    piece_size: int | None = PIECE_SIZE,
    split_size: int | None = None,
    partitions: int | None = None,
) -> Flows:
    """The flows of captures; looks at all segments once, and again at those of flows that are to be cut.

    Args:
        spark: a session with the data source ``msmq``.
        paths: capture files, patterns or folders: one capture, in this order.
        ports: as for `msmqwire.dissect`.
        piece_size: bytes of payload from which on a flow is cut; None to cut none.
        split_size: as the option ``splitSize`` of the data source.
        partitions: of the shuffles; as the session has it when left out.
    """
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    reader = spark.read.format("msmq").option("read", "segments")
    reader = reader.option("paths", json.dumps([os.fspath(path) for path in listed]))
    if split_size is not None:
        reader = reader.option("splitSize", str(split_size))
    end_ns, giants, damaged = _survey(reader.option("columns", ",".join(_SURVEYED)).load(), piece_size)
    reader = reader.option("columns", ",".join(NEEDED))
    # Each with a load of its own: a filter that was pushed down stays with a load.
    found = reader.load().where(_relevant(ports)).select(*NEEDED)
    cuts: Cuts = {}
    if piece_size is not None and giants:
        is_giant = (F.col("transport") == "tcp") & F.col("flow").isin(giants)
        giant = reader.load().where(is_giant).select(*NEEDED)
        cuts = plan_cuts(giant, piece_size, ports=ports, partitions=partitions)
    return Flows(found, damaged, tuple(ports), end_ns, cuts)


def _relevant(ports: Collection[int]) -> Column:
    """Whether a segment can be MSMQ: any TCP, as it may be recognised later, and what can be a ping."""
    known = [PING_PORT, *ports]
    signed = F.substring("payload", 3, 2) == F.lit(PING_SIGNATURE.to_bytes(2, "little"))
    ping = F.col("src_port").isin(known) | F.col("dst_port").isin(known)
    ping |= (F.length("payload") == PING_SIZE) & signed
    return (F.col("transport") == "tcp") | ((F.col("transport") == "udp") & ping)


def _survey(every: DataFrame, piece_size: int | None) -> tuple[int, list[int], tuple[Damaged, ...]]:
    """When the last TCP segment was captured, the flows with more than `piece_size` bytes of payload,
    and the damaged files."""
    tcp, damaged = F.col("transport") == "tcp", F.col("transport") == DAMAGED
    why = F.struct("file", "offset", "error")
    by_flow = every.groupBy("flow").agg(
        F.sum(F.when(tcp, F.col("size"))).alias("size"),
        F.max(F.when(tcp, F.col("time_ns"))).alias("end_ns"),
        F.collect_list(F.when(damaged, why)).alias("damaged"),
    )
    is_giant = F.lit(False) if piece_size is None else F.col("size") > piece_size
    (row,) = by_flow.agg(
        F.max("end_ns").alias("end_ns"),
        F.collect_list(F.when(is_giant, F.col("flow"))).alias("giants"),
        F.flatten(F.collect_list("damaged")).alias("damaged"),
    ).collect()
    return row.end_ns or 0, row.giants, tuple(Damaged(*one) for one in sorted(row.damaged))


def plan_cuts(
    giant: DataFrame, piece_size: int, *, ports: Collection[int], partitions: int | None = None
) -> Cuts:
    """Where flows are cut, each place confirmed by the piece before it."""
    shorn = giant.mapInArrow(heads, spark_schema(HEADS))
    rows = (
        _arranged(shorn, partitions, "flow")
        .mapInArrow(partial(_find_stage, piece_size=piece_size), spark_schema(CUTS))
        .collect()
    )
    found: dict[int, list[Cut]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.place):
        found[row.flow].append(Cut(row.place, pickle.loads(row.saved)))  # pickled by our own tasks
    cuts: Cuts = found
    doubtful: Cuts = found
    for _ in range(CHECKS_MAX):
        if not doubtful:
            return cuts
        bad = _bad_pieces(giant, doubtful, ports, partitions)
        cuts = without_bad(cuts, bad)
        doubtful = {flow: places for flow, places in cuts.items() if flow in bad}
    return {flow: places for flow, places in cuts.items() if flow not in doubtful}


def _bad_pieces(
    giant: DataFrame, cuts: Cuts, ports: Collection[int], partitions: int | None
) -> dict[int, set[int]]:
    """By flow, the pieces that do not end as the next begins."""
    segments = giant.where(F.col("flow").isin(list(cuts))).withColumn("piece", _piece(cuts))
    stage = partial(_check_stage, cuts=cuts, ports=tuple(ports))
    checks = _arranged(segments, partitions, "flow", "piece").mapInArrow(stage, spark_schema(CHECKS))
    bad: dict[int, set[int]] = defaultdict(set)
    for row in checks.where("not good").collect():
        bad[row.flow].add(row.piece)
    return bad


def _piece(cuts: Cuts) -> Column:
    """The number of the piece that a segment belongs to: how many cuts of its flow are not behind it."""
    if not cuts:
        return F.lit(0)
    place = F.shiftleft(F.col("file_index").cast("long"), OFFSET_BITS).bitwiseOR(F.col("offset"))
    places = [
        one
        for flow, found in cuts.items()
        for one in (F.lit(flow), F.array(*(F.lit(cut.place) for cut in found)))
    ]
    before = F.filter(F.create_map(*places)[F.col("flow")], lambda cut: cut <= place)
    return F.when(F.col("flow").isin(list(cuts)), F.size(before)).otherwise(0)


def _arranged(segments: DataFrame, partitions: int | None, *keys: str) -> DataFrame:
    together = segments.repartition(partitions, *keys) if partitions else segments.repartition(*keys)
    return together.sortWithinPartitions("flow", "file_index", "offset")


# -- stages: plain functions over batches ------------------------------------------------------------------


def _find_stage(batches: Iterable[Any], piece_size: int) -> Iterator[Any]:
    for flow, cut in find_cuts(batches, piece_size):
        yield _row(CUTS, flow, cut.place, pickle.dumps(cut.saved))


def _check_stage(batches: Iterable[Any], cuts: Cuts, ports: tuple[int, ...]) -> Iterator[Any]:
    for values in check_pieces(batches, cuts, ports=ports):
        yield _row(CHECKS, *values)


def _row(schema: Any, *values: object) -> Any:
    return pa.RecordBatch.from_pylist([dict(zip(schema.names, values, strict=True))], schema=schema)
