"""Lakes of `msmqwire.write_lake` whose parts are written by tasks of Spark, and read by Spark.

Each task decodes its part of the captures, writes Parquet files into the lake itself, and returns their list.
The driver plans and commits once, as `msmqwire.write_lake` does: files of a failed attempt, or of a second
attempt at the same task, are in no commit, and nobody reads them. Spark has one row for each part.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from msmqwire.analysis.dissection.message_security import FileContent
from msmqwire.analysis.protocols.readings import PROPOSED, NcpReadings
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.errors import LakeError
from msmqwire.tables import Where
from msmqwire.tables.lake import LakeCommit, write_lake
from msmqwire.tables.lake.part_writer import NumberedPart, PartFiles, PartWriter
from msmqwire.tables.lake.partitions import NULL, By, folder_of
from msmqwire.tables.lake.place import LocalPlace, Place, lake_place
from msmqwire.tables.lake.planning import OVERLAP, SPLIT_SIZE
from msmqwire.tables.lake.reading import lake_contents
from msmqwire.tables.lake.state import FOLDER
from msmqwire.tables.lake.table import LakeFile
from msmqwire.tables.parts import Splits
from spark_udfs.lake_files import SparkPlace, spark_place
from spark_udfs.source.schema import spark_schema
from spark_udfs.source.survey_tasks import surveys_by_tasks

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrameReader, SparkSession


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
    splits: Splits | None = None,
    storage_options: StorageOptions = NO_OPTIONS,
) -> LakeCommit:
    """Read captures into a lake by the tasks of a session: `msmqwire.write_lake` on a cluster.

    A run of either adds to the lake of the other. The driver and all executors need captures and lake at the
    same paths, or URLs.

    Args:
        spark: the session, not one of Spark Connect.
        paths: capture files, patterns, folders or URLs: one capture, in this order.
        out: the folder of the lake, which driver and executors share, or its URL; created if missing.
        by, columns, where, ports, body_limit: as for `msmqwire.write_lake`, the same for all runs of a lake.
        findings: as for `msmqwire.write_lake`; then there is one task.
        keys, certificates, readings, ncp_readings: as for `msmqwire.dissect`; files are read here, not by the
            tasks.
        split_size, overlap, splits: as for `msmqwire.write_lake`. With exact splits tasks make the pass over
            all captures too if four or more run at a time, else the driver does.
        storage_options: as for `msmqwire.dissect`.

    Raises:
        FileNotFoundError: a path or pattern names no file.
        UnsupportedStore: a store can't be used.
        LakeMismatch: the folder is not a lake, or is one with other settings, an exact one of which captures
            are not named, or one of an earlier or later version.
        LakeDamaged: the log or the state of the lake is broken.
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
        map_windows=surveys_by_tasks(spark) if splits in ("exact", None) else None,
    )


def _write_by_tasks(
    spark: SparkSession, writer: PartWriter, parts: Sequence[NumberedPart]
) -> Iterator[tuple[int, PartFiles]]:
    """Yield the place of each part in the list with the result of its task, once all are written."""
    if not parts:
        return
    # Each in a partition of its own; only the one is sent to a task, with the state of an exact part.
    tasks = spark.sparkContext.parallelize(list(enumerate(parts)), len(parts))
    results = tasks.map(partial(_write, writer)).collect()
    check_shared(writer.place, [file for _, written in results for file in written.files])
    yield from results


def _write(writer: PartWriter, numbered: tuple[int, NumberedPart]) -> tuple[int, PartFiles]:
    """Write a part, in a task."""
    number, part = numbered
    check_here(writer.place)
    return number, writer.write(part)


def check_here(place: Place) -> None:
    """Refuse, in a task, a local folder that the driver has not prepared. Raises LakeError."""
    if isinstance(place, LocalPlace) and not place.has(FOLDER):
        raise LakeError(
            "the driver has prepared this folder, which is not here: executors and driver need the lake in a"
            " folder that they share, or in a store",
            file=place.shown,
        )


def check_shared(place: Place, files: Sequence[LakeFile]) -> None:
    """Refuse files that the driver does not see as the tasks have left them, and remove them all.

    Raises:
        LakeError: there is one.
    """
    if not isinstance(place, LocalPlace):
        return
    for file in files:
        path = Path(place.full(file.path))
        if not path.exists() or path.stat().st_size != file.size:
            place.remove(each.path for each in files)
            raise LakeError(
                "a file that a task has written is not here, or not whole: executors and driver need the lake"
                " in a folder that they share, or in a store",
                file=str(path),
            )


def read_lake(
    spark: SparkSession,
    path: str | os.PathLike[str],
    version: int | None = None,
    *,
    storage_options: StorageOptions = NO_OPTIONS,
) -> DataFrame:
    """Return a lake as a DataFrame of the Parquet files of a version.

    Its columns are those of `msmqwire.read_lake`, with the keys of partitions: ``date``, and ``kind`` or
    ``queue``. Conditions on the keys skip files, conditions on other columns row groups.

    Call it again for the rows of a later commit.

    Args:
        spark: the session.
        path: the folder, at the same path for the driver and all executors, or its URL.
        version: the number of the version; None for the last one.
        storage_options: as for `msmqwire.read_lake`; of S3, for which Spark needs Hadoop's client.

    Raises:
        LakeMissing: the folder is not a lake, or has not this version, or no longer its files.
        LakeMismatch: an earlier or a later version has made it, or somebody else has changed its columns.
        LakeDamaged: the log is broken, or a file is missing.
        UnsupportedStore: the session can't read the store.
        OSError: it can't be read.
    """
    place = spark_place(spark, lake_place(path, storage_options))
    contents = lake_contents(path, version, storage_options)
    schema = spark_schema(contents.schema)
    reader = _Reader(spark, place, schema, contents.table.keys)
    by_path, by_values = list[LakeFile](), dict[tuple[str | None, ...], list[LakeFile]]()
    for file in contents.files:
        if _tells_its_values(file):
            by_path.append(file)
        else:
            by_values.setdefault(tuple(file.keys.values()), []).append(file)
    frames = [reader.partition(files) for files in by_values.values()]
    if by_path or not frames:
        frames.append(reader.partitioned(by_path))
    rows = reduce(DataFrame.unionAll, frames)
    return rows.select(*(rows[field.name].alias(field.name, metadata=field.metadata) for field in schema))


def _tells_its_values(file: LakeFile) -> bool:
    """Whether readers of the path find the values of the partition in it, as in those of our writers."""
    return file.path.rpartition("/")[0] == folder_of(file.keys) and NULL not in file.keys.values()


@dataclass(frozen=True)
class _Reader:
    """Reads files of a lake.

    Attributes:
        spark: the session.
        place: where they are.
        schema: the Spark schema of their rows, with the keys of partitions.
        keys: the names of these keys.
    """

    spark: SparkSession
    place: SparkPlace
    schema: StructType
    keys: Sequence[str]

    def partitioned(self, files: Sequence[LakeFile]) -> DataFrame:
        """The rows of files whose paths tell their partitions."""
        if not files:
            return self.spark.createDataFrame([], self.schema)
        reader = self._reader(self.schema).option("basePath", self.place.folder)
        rows = reader.parquet(*self.place.paths(files))
        mangled = [name for name in self.keys if any(not (file.keys[name] or "").isascii() for file in files)]
        return rows.withColumns({name: _utf_8(rows[name]) for name in mangled})

    def partition(self, files: Sequence[LakeFile]) -> DataFrame:
        """The rows of files of one partition, of whose values their paths say nothing."""
        columns = StructType([field for field in self.schema if field.name not in self.keys])
        rows = self._reader(columns).parquet(*self.place.paths(files))
        constants = {
            name: F.lit(value).cast(self.schema[name].dataType) for name, value in files[0].keys.items()
        }
        return rows.withColumns(constants)

    def _reader(self, schema: StructType) -> DataFrameReader:
        # A file that is gone belongs to an earlier commit: rows must not be missing without a word.
        reader = self.spark.read.options(**self.place.options)
        return reader.schema(schema).options(ignoreMissingFiles="false", ignoreCorruptFiles="false")


def _utf_8(key: Column) -> Column:
    """A key that Spark has taken from the name of a folder: it reads each byte of UTF-8 as a character."""
    return F.decode(F.encode(key, "ISO-8859-1"), "UTF-8")
