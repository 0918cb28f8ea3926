"""Lakes of `msmqwire.write_lake` whose parts are written by tasks of Spark, and read by Spark.

Each task decodes its part of the captures, writes Parquet files itself, and returns their list. The driver
plans and commits, as `msmqwire.write_lake` does, so a failed attempt, or a second attempt at the same task,
leaves no files that are read. Spark has one row for each part.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msmqwire.analysis.dissection.message_security import FileContent
from msmqwire.analysis.protocols.readings import PROPOSED, NcpReadings
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.errors import LakeError
from msmqwire.tables import Where
from msmqwire.tables.exact_parts import ExactPart
from msmqwire.tables.lake import LakeCommit, write_lake
from msmqwire.tables.lake.part_writer import PartFiles, PartWriter
from msmqwire.tables.lake.partitions import By
from msmqwire.tables.lake.planning import OVERLAP, SPLIT_SIZE
from msmqwire.tables.lake.reading import LakeContents, lake_contents
from msmqwire.tables.parts import Part, Splits
from spark_udfs.source.schema import spark_schema
from spark_udfs.source.survey_tasks import surveys_by_tasks

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession

_GLOB: Final = re.compile(r"([\\\[\]{}*?])")
"""Characters that Spark takes for a pattern in a path."""


def lake(
    spark: SparkSession,
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    by: By | None = None,
    columns: Collection[str] | None = None,
    findings: bool = False,
    where: Where = (),
    ports: Collection[int] = (),
    body_limit: int | None = None,
    keys: FileContent | Iterable[FileContent] = (),
    certificates: FileContent | Iterable[FileContent] = (),
    readings: Readings = DEFAULT,
    ncp_readings: NcpReadings = PROPOSED,
    split_size: int = SPLIT_SIZE,
    overlap: int = OVERLAP,
    splits: Splits = "walked",
    storage_options: StorageOptions = NO_OPTIONS,
) -> LakeCommit:
    """Read captures into a lake by the tasks of a session: `msmqwire.write_lake` on a cluster.

    A run of either adds to the lake of the other. The driver and all executors need captures and lake at the
    same paths; captures may be URLs.

    Args:
        spark: the session, not one of Spark Connect.
        paths: capture files, patterns, folders or URLs: one capture, in this order.
        out: the folder of the lake; created if missing.
        by, columns, where, ports, body_limit: as for `msmqwire.write_lake`, the same for all runs of a lake.
        findings: as for `msmqwire.write_lake`; then there is one task.
        keys, certificates, readings, ncp_readings: as for `msmqwire.dissect`; files are read here, not by the
            tasks.
        split_size, overlap, splits: as for `msmqwire.write_lake`. With exact splits tasks make the pass over
            all captures too if four or more run at a time, else the driver does.
        storage_options: as for `msmqwire.dissect`.

    Raises:
        FileNotFoundError: a path or pattern names no file.
        UnsupportedStore: the lake is a URL, or the store of a capture can't be used.
        LakeMismatch: the folder is not a lake, or is one with other settings, or an exact one of which
            captures are not named.
        LakeDamaged: the manifest is broken.
        LakeError: an executor has another folder than the driver.
        InvalidValue: something is not a private key, or no certificate.
        ValueError: no such column, operator or key.
        OSError: a file can't be read or written by the driver. An error that fails a task ends in an error of
            Spark.
    """
    return write_lake(
        paths,
        out,
        by=by,
        columns=columns,
        findings=findings,
        where=where,
        ports=ports,
        body_limit=body_limit,
        keys=keys,
        certificates=certificates,
        readings=readings,
        ncp_readings=ncp_readings,
        split_size=split_size,
        overlap=overlap,
        splits=splits,
        storage_options=storage_options,
        write=partial(_write_by_tasks, spark),
        map_windows=surveys_by_tasks(spark) if splits == "exact" else None,
    )


def _write_by_tasks(
    spark: SparkSession, writer: PartWriter, parts: Sequence[Part | ExactPart]
) -> Iterator[tuple[int, PartFiles]]:
    """Yield the number of each part with the result of its task, once all are written."""
    # Each in a partition of its own; only the one is sent to a task, with the state of an exact part.
    numbered = spark.sparkContext.parallelize(list(enumerate(parts)), len(parts))
    for number, written in numbered.map(partial(_write, writer)).collect():
        _check_shared(writer, written)
        yield number, written


def _write(writer: PartWriter, numbered: tuple[int, Part | ExactPart]) -> tuple[int, PartFiles]:
    """Write a part, in a task."""
    number, part = numbered
    if not Path(writer.lake, writer.run).is_dir():
        raise LakeError("the driver has begun a run in this folder, which is not here", file=writer.lake)
    return number, writer.write(part)


def _check_shared(writer: PartWriter, written: PartFiles) -> None:
    """Refuse files that the driver does not see as the task has left them. Raises LakeError."""
    for staged, file in zip(written.staged, written.files, strict=True):
        path = Path(writer.lake, staged)
        if not path.exists() or path.stat().st_size != file.size:
            raise LakeError("a file that a task has written is not here, or not whole", file=str(path))


def read_lake(spark: SparkSession, path: str | os.PathLike[str]) -> DataFrame:
    """Return a lake as a DataFrame of its Parquet files after the last commit.

    The keys of partitions are its last columns: ``date``, and ``kind`` or ``queue``. Conditions on them skip
    files, conditions on other columns row groups.

    Call it again after a commit that replaces files of captures that have grown.

    Args:
        spark: the session.
        path: the folder, at the same path for the driver and all executors.

    Raises:
        LakeMissing: the folder is not a lake.
        LakeDamaged: the manifest is broken.
        UnsupportedStore: it is a URL.
        OSError: it can't be read.
    """
    from pyspark.sql import DataFrame

    contents = lake_contents(path)
    schema = spark_schema(contents.schema)
    in_place, staged = list[str](), dict[tuple[str | None, ...], list[str]]()
    for place, file in contents.files.items():
        if Path(place) == Path(contents.folder, file.path):
            in_place.append(place)
        else:
            staged.setdefault(tuple(file.keys.get(name) for name in contents.keys), []).append(place)
    frames = [_partition(spark, schema, contents.keys, values, places) for values, places in staged.items()]
    if in_place or not frames:
        frames.append(_partitioned(spark, schema, contents, in_place))
    return reduce(DataFrame.unionAll, frames)


def _partitioned(
    spark: SparkSession, schema: Any, contents: LakeContents, places: Sequence[str]
) -> DataFrame:
    """The rows of files whose paths tell their partitions."""
    if not places:
        return spark.createDataFrame([], schema)
    files = _reader(spark, schema).option("basePath", f"file:{contents.folder}").parquet(*_local(places))
    mangled = [
        name
        for name in contents.keys
        if any(not (file.keys.get(name) or "").isascii() for file in contents.files.values())
    ]
    return files.withColumns({name: _utf_8(files[name]) for name in mangled})


def _partition(
    spark: SparkSession, schema: Any, keys: Sequence[str], values: Sequence[str | None], places: Sequence[str]
) -> DataFrame:
    """The rows of files of one partition that are not in its folder yet: a commit is not complete."""
    from pyspark.sql import functions as F

    columns = type(schema)([field for field in schema if field.name not in keys])
    constants = {
        name: F.lit(value).cast(schema[name].dataType) for name, value in zip(keys, values, strict=True)
    }
    return _reader(spark, columns).parquet(*_local(places)).withColumns(constants)


def _utf_8(key: Column) -> Column:
    """A key that Spark has taken from the name of a folder: it reads each byte of UTF-8 as a character."""
    from pyspark.sql import functions as F

    return F.decode(F.encode(key, "ISO-8859-1"), "UTF-8")


def _reader(spark: SparkSession, schema: Any) -> DataFrameReader:
    # A file that is gone belongs to an earlier commit: rows must not be missing without a word.
    return spark.read.schema(schema).options(ignoreMissingFiles="false", ignoreCorruptFiles="false")


def _local(places: Iterable[str]) -> list[str]:
    """Local paths in a form for Spark, for any default file system and any characters in a name."""
    return ["file:" + _GLOB.sub(r"\\\1", place) for place in places]
