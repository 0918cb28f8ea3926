"""A Spark session whose JVMs read Arrow batches without checks, on request.

The JVM reads the rows of the data source, of `spark_udfs.frame` and of every Arrow function cell by cell from
Arrow batches. Before each read Arrow's Java library checks that it is within the buffer, and, in ``get``,
that the value is not null, which Spark has checked before. Two system properties that are read once, when a
JVM loads the library, turn these checks off: https://arrow.apache.org/java/current/reference/
(``BoundsChecking``, ``NullCheckingForGet``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msmqwire.errors import MsmqError
from msmqwire.extras import importing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DRIVER, _EXECUTOR = (f"spark.{part}.defaultJavaOptions" for part in ("driver", "executor"))
_BOUNDS_UNCHECKED: Final = "arrow.enable_unsafe_memory_access"
_NULLS_CHECKED: Final = "arrow.enable_null_check_for_get"
_CHECKED: Final = {_BOUNDS_UNCHECKED: "false", _NULLS_CHECKED: "true"}
"""The system properties of a JVM with both checks, the same as without settings."""
_UNCHECKED: Final = {_BOUNDS_UNCHECKED: "true", _NULLS_CHECKED: "false"}


class ArrowChecksDiffer(MsmqError, RuntimeError):
    """The JVMs of a Spark session check Arrow otherwise than was asked for, and can't be changed."""


@importing()
def session(
    master: str | None = None, *, arrow_checks: bool = True, config: Mapping[str, str] | None = None
) -> SparkSession:
    """Start Spark, or return the running session, if its JVMs check Arrow as requested.

    Without checks the JVMs take less time for rows made by Python. Then a batch whose offsets point beyond
    its buffers, which only a defect of a program that makes batches can cause, is not an exception any more:
    the JVM reads foreign memory, or crashes. This applies to all Arrow in these JVMs, including other
    libraries. This library does not need it.

    Args:
        master: the cluster, as ``local[4]``; None for the configured one.
        arrow_checks: whether Arrow's checks of bounds and nulls stay.
        config: more settings of the session, treated as by ``SparkSession.builder``: if one runs, only those
            that can still be changed have an effect. Options for JVMs in ``extraJavaOptions`` come after the
            flags, and win.

    Raises:
        MissingExtra: pyspark is not installed.
        ArrowChecksDiffer: a JVM that runs already, or other options for JVMs, say the contrary; or the
            session is one of Spark Connect, whose JVMs are started elsewhere.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    wanted = _CHECKED if arrow_checks else _UNCHECKED
    settings = {**(config or {})} if master is None else {**(config or {}), "spark.master": master}
    if SparkContext._active_spark_context is not None:
        _require(wanted, SparkContext._active_spark_context)
        return SparkSession.builder.config(map={**settings}).getOrCreate()
    for name in (_DRIVER, _EXECUTOR):
        settings[name] = with_flags(settings.get(name, ""), wanted)
    spark = SparkSession.builder.config(map={**settings}).getOrCreate()
    if not isinstance(spark, SparkSession):
        raise ArrowChecksDiffer("the JVMs of Spark Connect are started by its server: set the flags there")
    try:
        _require(wanted, spark.sparkContext)
    except ArrowChecksDiffer:
        spark.stop()
        raise
    return spark


def with_flags(options: str, flags: Mapping[str, str]) -> str:
    """Return options for a JVM with system properties after them."""
    return " ".join([options, *(f"-D{name}={value}" for name, value in flags.items())]).strip()


def flags_of(options: str) -> dict[str, str]:
    """Return Arrow's flags in a JVM started with these options; the last one of a name counts."""
    given = re.findall(rf"(?<!\S)-D({'|'.join(map(re.escape, _CHECKED))})=(\S*)", options)
    return {**_CHECKED, **dict(given)}


def _require(wanted: Mapping[str, str], context: Any) -> None:
    """Raise ArrowChecksDiffer unless the JVMs that run tasks have these flags."""
    if re.fullmatch(r"local(\[.*\])?", context.master):
        # Of the classes themselves: an environment variable may turn checks off too.
        where, arrow = "the driver's JVM", context._jvm.org.apache.arrow
        found = {
            _BOUNDS_UNCHECKED: str(not arrow.memory.BoundsChecking.BOUNDS_CHECKING_ENABLED).lower(),
            _NULLS_CHECKED: str(arrow.vector.NullCheckingForGet.NULL_CHECKING_ENABLED).lower(),
        }
    else:
        names = (_EXECUTOR, "spark.executor.extraJavaOptions")
        where, found = (
            "an executor's JVM",
            flags_of(" ".join(context.getConf().get(name, "") for name in names)),
        )
    wrong = [f"{name}={found[name]}, not {value}" for name, value in wanted.items() if found[name] != value]
    if wrong:
        options = " ".join(f'--conf "{name}={with_flags("", wanted)}"' for name in (_DRIVER, _EXECUTOR))
        raise ArrowChecksDiffer(
            f"{where} has {', '.join(wrong)}: it ran already, or other options for JVMs say so. A JVM keeps"
            f" its flags: call session() before Spark starts; to spark-submit pass {options}"
        )
