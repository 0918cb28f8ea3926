"""The jobs that `spark-submit` runs, and their common part."""

from __future__ import annotations

from msmqwire.extras import importing

with importing():
    import pyspark  # noqa: F401
