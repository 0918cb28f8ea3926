"""The files of a lake as Spark names them, and what it needs to read them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from msmqwire.capture.stores import StorageOptions
from msmqwire.errors import UnsupportedStore
from msmqwire.tables.lake.place import LocalPlace, Place, StorePlace
from msmqwire.tables.lake.table import LakeFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GLOB: Final = re.compile(r"([\\\[\]{}*?])")
"""Characters that Spark takes for a pattern in a path."""
_PROVIDER: Final = "fs.s3a.aws.credentials.provider"
_PROVIDERS: Final = "org.apache.hadoop.fs.s3a"
_Translated = Callable[[str], Mapping[str, str]]


def _named(name: str) -> _Translated:
    return lambda value: {name: value}


_S3: Final[Mapping[str, _Translated]] = {
    "access_key": _named("fs.s3a.access.key"),
    "secret_key": _named("fs.s3a.secret.key"),
    "session_token": lambda value: {
        "fs.s3a.session.token": value,
        _PROVIDER: f"{_PROVIDERS}.TemporaryAWSCredentialsProvider",
    },
    "region": _named("fs.s3a.endpoint.region"),
    "endpoint_override": _named("fs.s3a.endpoint"),
    "scheme": lambda value: {"fs.s3a.connection.ssl.enabled": str(value != "http").lower()},
    "anonymous": lambda value: (
        {_PROVIDER: f"{_PROVIDERS}.AnonymousAWSCredentialsProvider"} if value in ("true", "1") else {}
    ),
    "force_virtual_addressing": lambda value: {
        "fs.s3a.path.style.access": str(value not in ("true", "1")).lower()
    },
    "connect_timeout": lambda value: {"fs.s3a.connection.establish.timeout": f"{value}s"},
    "request_timeout": lambda value: {"fs.s3a.connection.request.timeout": f"{value}s"},
}
"""Hadoop's names of the storage options that a lake in S3 can have."""


@dataclass(frozen=True)
class SparkPlace:
    """A place of a lake as Spark reads it.

    Attributes:
        folder: its address.
        options: the options of a reader.
    """

    folder: str
    options: Mapping[str, str]

    def paths(self, files: Iterable[LakeFile]) -> list[str]:
        """Return the addresses of files, in a form for any characters in a name."""
        return [_GLOB.sub(r"\\\1", f"{self.folder}/{file.path}") for file in files]


def spark_place(spark: SparkSession, place: Place) -> SparkPlace:
    """Return how a session reads a lake.

    Raises:
        UnsupportedStore: it can't read the store.
    """
    if isinstance(place, StorePlace):
        scheme, _, path = place.url.partition("://")
        if scheme != "s3":
            raise UnsupportedStore(
                f"{place.url}: Spark reads lakes from local folders and s3://; msmqwire.read_lake,"
                " Polars and DuckDB read this one"
            )
        _need_s3a(spark, place.url)
        return SparkPlace(f"s3a://{path}", hadoop_options(place.storage_options))
    assert isinstance(place, LocalPlace)
    return SparkPlace(f"file:{place.folder}", {})  # whatever the default file system is


def _need_s3a(spark: SparkSession, url: str) -> None:
    """Refuse a session without Hadoop's client of S3."""
    from py4j.protocol import Py4JJavaError

    context = spark.sparkContext
    jvm: Any = context._jvm
    hadoop = jvm.org.apache.hadoop
    try:
        hadoop.fs.FileSystem.getFileSystemClass("s3a", context._jsc.hadoopConfiguration())
    except Py4JJavaError:
        version = hadoop.util.VersionInfo.getVersion()
        raise UnsupportedStore(
            f"{url}: Spark needs the jar org.apache.hadoop:hadoop-aws:{version} to read it: name that in"
            " spark.jars.packages; msmqwire.read_lake reads it without"
        ) from None


def hadoop_options(options: StorageOptions) -> dict[str, str]:
    """Return the storage options of a lake in S3 by the names that Hadoop has for them."""
    result: dict[str, str] = {}
    for name, value in options.items():
        result.update(_S3[name](str(value).lower() if isinstance(value, bool) else str(value)))
    if "fs.s3a.endpoint" in result:  # which may be a host without a name for each bucket
        result.setdefault("fs.s3a.path.style.access", "true")
    return result
