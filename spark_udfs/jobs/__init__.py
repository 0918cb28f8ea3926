"""The jobs that `spark-submit` runs, and what they share."""

from __future__ import annotations

from msmqwire.extras import missing

try:
    import pyspark  # noqa: F401
except ModuleNotFoundError as exc:
    raise missing(exc) or exc from None
