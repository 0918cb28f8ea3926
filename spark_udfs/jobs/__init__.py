"""The jobs that `spark-submit` runs, and what they share."""

from __future__ import annotations

from msmqwire.extras import importing

with importing():
    import pyspark  # noqa: F401
