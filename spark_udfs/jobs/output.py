"""Whether Spark can write a table at the place given to a job, asked of its file systems before any work."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.capture.stores import has_credentials, is_url

_MODULES: Final = {"s3": "hadoop-aws", "s3a": "hadoop-aws", "abfs": "hadoop-azure", "abfss": "hadoop-azure"}
"""The module of Hadoop with the file system of a scheme; its version must be that of Spark's Hadoop."""


def refusal(spark: Any, out: str, *, overwrite: bool) -> str | None:
    """Say in a line why a job can't write to this folder; None if nothing is known to prevent it.

    Args:
        spark: the session.
        out: a path or URL, for the file systems of Spark.
        overwrite: whether a folder that exists is replaced.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import IllegalArgumentException

    if is_url(out) and has_credentials(out):
        return "--out: credentials in a URL would be shown; Spark takes them as settings of its file system"
    hadoop = spark._jvm.org.apache.hadoop
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    missing = ""
    try:
        path = hadoop.fs.Path(out)
        if scheme := path.toUri().getScheme():
            missing = _missing(scheme, hadoop.util.VersionInfo.getVersion())
            hadoop.fs.FileSystem.getFileSystemClass(scheme, configuration)
            missing = ""
        exists = path.getFileSystem(configuration).exists(path)
    except Py4JJavaError as exc:
        reason = exc.java_exception.getMessage() or exc.java_exception.toString()
    except IllegalArgumentException as exc:  # pyspark makes it of Java's
        reason = str(exc)
    else:
        return f"{out} exists already; --overwrite replaces it" if exists and not overwrite else None
    return f"--out {out}: {missing}{reason.partition(chr(10))[0]}"


def _missing(scheme: str, hadoop_version: str) -> str:
    """Advice about a scheme without a file system in Spark."""
    advice = ""
    if module := _MODULES.get(scheme):
        advice = f"set spark.jars.packages=org.apache.hadoop:{module}:{hadoop_version}"
        advice += ", and write s3a: for s3:; " if scheme == "s3" else "; "
    return f"this Spark has no file system for {scheme}: URLs; {advice}"
