"""The table of packets by columns: texts by number, times in seconds and nanoseconds."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any, Final

from msmqwire.analysis.dissection.item import Item
from msmqwire.analysis.report.facts import GROUPS, Facts
from msmqwire.analysis.report.limits import Limits
from msmqwire.analysis.report.texts import Texts
from msmqwire.names.printable import safe

NUMBERS: Final = (
    "seconds",
    "nanoseconds",
    "file",
    "first_frame",
    "last_frame",
    "session",
    "kind",
    "group",
    "src",
    "dst",
    "size",
    "body_size",
    "findings",
    "severity",
    "ids",
    "queue",
    "label",
    "about",
    "again",
    "answers",
)
"""The columns, all of integers; -1 stands for none.

`again` is 1 for a packet sent again, `answers` the row of the request. Before 1970 seconds are negative, and
nanoseconds only of a packet without a time."""
_SECONDS_MAX: Final = 1 << 53
"""The largest number that JavaScript counts exactly."""
_BILLION: Final = 1_000_000_000
_NONE: Final = -1


class PacketTable:
    """Rows of packets.

    Attributes:
        count: their number.
        names: kinds, files, endpoints and ids of findings by number.
        texts: queues, labels and summaries by number.
    """

    def __init__(self, limits: Limits) -> None:
        self.count = 0
        self._max = limits.packets
        self.names = Texts(limits.text, limits.texts // 4)
        self.texts = Texts(limits.text, limits.texts)
        self._columns = {name: array("q") for name in NUMBERS}
        self._append = [self._columns[name].append for name in NUMBERS]
        self._groups = {group: number for number, group in enumerate(GROUPS)}

    @property
    def is_full(self) -> bool:
        """Whether no row fits any more."""
        return self.count >= self._max

    def add(
        self,
        item: Item,
        facts: Facts,
        *,
        session: int,
        severity: int,
        ends: tuple[str, str],
        is_again: bool,
        answers: int,
    ) -> int:
        """Add the row of an item; return its number."""
        seconds, nanoseconds = (_NONE, _NONE) if item.time_ns is None else divmod(item.time_ns, _BILLION)
        names, texts = self.names, self.texts
        body_size = -1 if facts.body_size is None else facts.body_size
        ids = ",".join(dict.fromkeys(finding.id for finding in item.findings))
        values = (
            min(seconds, _SECONDS_MAX),
            nanoseconds,
            names.number(safe(item.file)),
            item.frames[0] if item.frames else 0,
            item.frames[-1] if item.frames else 0,
            session,
            names.number(item.kind),
            self._groups[facts.group],
            names.number(ends[0]),
            names.number(ends[1]),
            item.size,
            body_size,
            len(item.findings),
            severity,
            names.number(ids, whole=True),
            texts.number(facts.queue),
            texts.number(facts.label),
            texts.number(facts.about),
            is_again,
            answers,
        )
        for append, value in zip(self._append, values, strict=True):
            append(value)
        self.count += 1
        return self.count - 1

    def extend(self, columns: Mapping[str, Any], count: int) -> None:
        """Add rows by columns, which are arrays of as many integers."""
        for name, column in self._columns.items():
            column.frombytes(columns[name].astype("q").tobytes())
        self.count += count

    def data(self) -> dict[str, Any]:
        """Return the columns, as arrays, and the texts that their numbers stand for."""
        return {
            "count": self.count,
            "columns": self._columns,
            "names": self.names.texts,
            "texts": self.texts.texts,
        }
