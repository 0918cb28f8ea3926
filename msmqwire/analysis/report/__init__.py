"""Captures as a report: one file of HTML that anybody can open, without a network.

`write_report` reads captures once and writes the page. Memory and the page are bounded by `Limits`, for any
capture; packets beyond them are counted, and the page says so.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from msmqwire.analysis.dissection import Dissection
from msmqwire.analysis.report.collecting import Collector
from msmqwire.analysis.report.limits import Limits
from msmqwire.analysis.report.page import page
from msmqwire.durable import new_content

__all__ = ["Limits", "Written", "write_report"]


BATCH_ROWS = 4_096


class Written(NamedTuple):
    """The totals of a report.

    Attributes:
        packets: in the captures.
        findings: in them.
        size: bytes of the page.
    """

    packets: int
    findings: int
    size: int


def write_report(
    dissection: Dissection,
    path: str | os.PathLike[str],
    *,
    title: str = "",
    version: str = "",
    limits: Limits | None = None,
) -> Written:
    """Read captures to their end, and write the report of them to a file.

    The file is replaced when the report is complete, so that nobody sees half of one.

    Args:
        dissection: the captures, not read yet.
        path: the path of the file.
        title: the title of the page; by default the name of the first capture.
        version: the version of msmqwire, which the page names.
        limits: the limits of the page.

    Raises:
        CaptureError: the first of the errors, if nothing of any file could be read. Nothing is written.
        OSError: a capture can't be read, or the file can't be written: its `filename` is `path` then.
    """
    # Columns take an extra, which the help of commands does not.
    from msmqwire.analysis.fate import BODY_LIMIT, COLUMNS, KINDS, fates_of, summary
    from msmqwire.analysis.report.lives import Lives
    from msmqwire.analysis.report.omissions import omissions
    from msmqwire.tables.columns import BY_NAME
    from msmqwire.tables.filters import Filter
    from msmqwire.tables.observed import observed_batches

    collector, lives = Collector(limits or Limits()), Lives(limits or Limits())
    columns = [BY_NAME[name] for name in COLUMNS]
    dissection.follow_attempts()
    batches = observed_batches(
        dissection, collector.take, columns, Filter([("kind", "in", KINDS)]),
        batch_rows=BATCH_ROWS, body_limit=BODY_LIMIT,
    )  # fmt: skip
    queues = summary(lives.observed(fates_of(batches)))
    data = collector.to_json(dissection)
    if dissection.errors and not dissection.records and not any(e.offset for e in dissection.errors):
        raise dissection.errors[0]
    data["lives"] = lives.summary_json(queues)
    attempts = 0 if dissection.attempts is None else dissection.attempts.failed()[1]
    data["left_out"] = list(omissions(collector, lives, attempts))
    if not title:
        names = [Path(name).name for name in data["captures"]]
        more = data["totals"]["captures"] - 1
        title = f"{names[0] if names else 'No capture'}{f' and {more:,} more' if more > 0 else ''}"
    tables = {"packet-table": collector.table.data(), "life-table": lives.data()}
    size = 0
    with new_content(path) as file:
        for text in page(title, version, data, tables, collector.details.pieces):
            size += file.write(text.encode("utf-8", "replace"))
    return Written(collector.packets, collector.findings, size)
