"""Rows of sessions as rows of the table of packets, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from msmqwire.analysis.report.requirements import worst
from msmqwire.analysis.report.row_columns import RowColumns
from msmqwire.analysis.report.row_texts import labels, summaries
from msmqwire.analysis.report.texts import Texts
from msmqwire.capture.record import NO_TIME
from msmqwire.names.printable import safe
from msmqwire.tables.compiled.packet import KINDS
from msmqwire.tables.compiled.state import R_KIND, R_SIZE, R_TIME

_BILLION: Final = 1_000_000_000
_NONE: Final = -1


class Coded(NamedTuple):
    """A column of texts.

    Attributes:
        texts: the texts, each once or more.
        codes: for each row the place of its text among them.
        whole: whether they are kept whole.
    """

    texts: Sequence[str]
    codes: Any
    whole: bool = False


def table_rows(
    rows: RowColumns, sessions: Sequence[tuple[int, tuple[str, str]]], again: Any, names: Texts, texts: Texts
) -> dict[str, Any]:
    """Return the columns of the table of packets by name, see `packet_table.NUMBERS`.

    Args:
        rows: the rows.
        sessions: the number of the session, and the ends, of each of `RowColumns.ways`.
        again: for each row whether it was sent again.
        names: the names of the table so far.
        texts: its texts.
    """
    count, ways, places = len(rows), rows.ways, rows.places()
    seconds, nanoseconds = np.divmod(rows.rows[:, R_TIME], _BILLION)
    has_no_time = rows.rows[:, R_TIME] == NO_TIME
    seconds[has_no_time] = nanoseconds[has_no_time] = _NONE
    ids = [",".join(dict.fromkeys(finding.id for finding in found)) for found in rows.findings.values()]
    of_ids, severities = np.zeros(count, np.int64), np.zeros(count, np.int64)
    found = list(rows.findings)
    of_ids[found] = range(1, len(ids) + 1)
    severities[found] = [worst(findings) for findings in rows.findings.values()]
    kinds = rows.rows[ways.first, R_KIND].tolist()
    file, kind, src, dst, id_numbers = numbers_of(
        names,
        [
            Coded([safe(name) for name in places.files], places.file),
            Coded([KINDS[number] for number in kinds], ways.numbers),
            Coded([ends[0] for _, ends in sessions], ways.numbers),
            Coded([ends[1] for _, ends in sessions], ways.numbers),
            Coded(["", *ids], of_ids, whole=True),
        ],
    )
    queues, body_sizes = np.zeros(count, np.int64), np.full(count, _NONE)
    if len(rows.users):
        queues[rows.users] = rows.by_queue.numbers + 1
        body_sizes[rows.users] = rows.properties["MessageSize"]
    queue, label, about = numbers_of(
        texts, [Coded(["", *rows.queue_names], queues), Coded(*labels(rows)), Coded(*summaries(rows))]
    )
    return {
        "seconds": seconds,
        "nanoseconds": nanoseconds,
        "file": file,
        "first_frame": places.first,
        "last_frame": places.last,
        "session": np.array([number for number, _ in sessions])[ways.numbers],
        "kind": kind,
        "group": rows.groups,
        "src": src,
        "dst": dst,
        "size": rows.rows[:, R_SIZE],
        "body_size": body_sizes,
        "findings": rows.found,
        "severity": severities,
        "ids": id_numbers,
        "queue": queue,
        "label": label,
        "about": about,
        "again": again,
        "answers": np.full(count, _NONE),
    }


def numbers_of(texts: Texts, columns: Sequence[Coded]) -> Any:
    """Return columns of texts as numbers of `texts`, which are given row by row, as they come."""
    ends = np.cumsum([len(column.texts) for column in columns])
    codes = [column.codes + end - len(column.texts) for column, end in zip(columns, ends, strict=True)]
    in_order = np.column_stack(codes).ravel()
    first = np.full(ends[-1], len(in_order))
    first[in_order[::-1]] = np.arange(len(in_order))[::-1]  # of several places the last one assigned stays
    known = [(text, column.whole) for column in columns for text in column.texts]
    numbers = np.zeros(ends[-1], np.int64)
    for code in np.argsort(first)[: np.count_nonzero(first < len(in_order))].tolist():
        text, whole = known[code]
        numbers[code] = texts.number(text, whole=whole)
    return [numbers[column] for column in codes]
