"""Parts of captures to tasks of Spark, by ``mapInArrow``.

A DataFrame starts from as many numbers as there are parts, each in a separate partition; the task of a
partition reads the part with that number.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from msmqwire.tables.exact_parts import ExactPart
from msmqwire.tables.parts import Part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ReadPart = Callable[[Any], Iterator[pa.RecordBatch]]
"""Reads a part, a `Part` or an `ExactPart`, as record batches in the form that Spark takes."""


def frame_of_parts(
    spark: SparkSession, parts: Sequence[Part | ExactPart], read: ReadPart, schema: Any
) -> DataFrame:
    """Return a DataFrame with the rows of parts, each read by a task.

    Args:
        spark: the session.
        parts: the parts to read.
        read: reads a part, in a task.
        schema: the Spark schema of the rows.
    """
    # Each by itself, so that a task makes only its own of the bytes.
    pickled = [pickle.dumps(part) for part in parts]
    numbers = spark.range(0, len(pickled), numPartitions=max(1, len(pickled)))
    return numbers.mapInArrow(partial(_rows, read=read, parts=pickled), schema)


def _rows(
    batches: Iterable[pa.RecordBatch], *, read: ReadPart, parts: Sequence[bytes]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the parts with the numbers in these batches."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from read(pickle.loads(parts[number]))
