"""Spark jobs, functions and the ``msmq`` data source over captures of the MSMQ protocols.

Importing the package makes sure that Spark finds a Java (`spark_udfs.java`) and starts this Python, unless
PYSPARK_PYTHON names another; ``register`` registers the data source and the SQL functions with a session::

    import spark_udfs
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    spark_udfs.register(spark)
    spark.read.format("msmq").load("captures/*.pcapng")
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.extras import importing
from spark_udfs.java import NoJava, starts_no_jvm, use_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from msmqwire.analysis.dissection.message_security import FileContent
    from spark_udfs.fates import fate, fate_summary
    from spark_udfs.frames import frame
    from spark_udfs.lake_streams import lake_batches
    from spark_udfs.lakes import lake, read_lake
    from spark_udfs.reassembly.packets import packets
    from spark_udfs.spark_session import session

__all__ = [
    "fate", "fate_summary", "frame", "lake", "lake_batches", "packets", "read_lake", "register", "session",
]  # fmt: skip

_MODULES: Final = {
    "fate": "fates",
    "fate_summary": "fates",
    "frame": "frames",
    "lake": "lakes",
    "lake_batches": "lake_streams",
    "packets": "reassembly.packets",
    "read_lake": "lakes",
    "session": "spark_session",
}
"""The modules of the names that are imported on first use, as they import pyspark."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        with importing():
            return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


@importing()
def register(
    spark: SparkSession,
    *,
    keys: FileContent | Iterable[FileContent] = (),
    certificates: FileContent | Iterable[FileContent] = (),
    readings: Readings = DEFAULT,
) -> None:
    """Register the data source ``msmq`` and the functions ``msmq_*`` with a session.

    Also turn on ``spark.sql.python.filterPushdown.enabled`` for the session, for the option
    ``pushdown`` of the data source.

    Args:
        spark: the session.
        keys, certificates, readings: for ``msmq_parse``, as for `msmqwire.dissect`; files are read here, not
            by the tasks. The data source has options for them.

    Raises:
        InvalidValue: a file is not a private key, or not a certificate.
    """
    from spark_udfs import functions
    from spark_udfs.source.data_source import MsmqDataSource

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(MsmqDataSource)
    functions.register(spark, keys=keys, certificates=certificates, readings=readings)


if not starts_no_jvm():
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        use_java()
    except NoJava as exc:
        warnings.warn(str(exc), stacklevel=2)
