"""Surveys of windows of captures by tasks of Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from msmqwire.capture.window import Window
from msmqwire.tables.exact_parts import SURVEYORS_MIN, MapWindows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from msmqwire.tables.part_survey import PartSurvey

_AHEAD: Final = 2
"""Surveys for each concurrent task that the driver gets at once, and the same number again while it uses
them; each may keep `part_survey.KEPT_MAX` bytes.
"""


def surveys_by_tasks(spark: SparkSession) -> MapWindows | None:
    """Return the surveyor of windows in tasks, some ahead of their use.

    None if there are too few processors for any gain.

    Args:
        spark: the session. The tasks read the files themselves.
    """
    context = spark.sparkContext
    if context.defaultParallelism < SURVEYORS_MIN:
        return None

    def surveys(make: Callable[[Window], PartSurvey], windows: Sequence[Window]) -> Iterator[PartSurvey]:
        size = _AHEAD * context.defaultParallelism
        groups = [list(windows[start : start + size]) for start in range(0, len(windows), size)]

        def made(group: list[Window]) -> list[PartSurvey]:
            return context.parallelize(group, len(group)).map(make).collect()

        with ThreadPoolExecutor(1) as ahead:
            following = ahead.submit(made, groups[0])
            for group in [*groups[1:], None]:
                results = following.result()
                if group is not None:
                    following = ahead.submit(made, group)
                yield from results

    return surveys
