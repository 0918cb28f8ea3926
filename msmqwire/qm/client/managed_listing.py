"""The state of many queues of a computer: they are listed, and then asked for side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from msmqwire.constants import ManagementMachineProperty, VarEnum
from msmqwire.errors import InvalidName, ProtocolViolation, QueueError, RpcFault
from msmqwire.management.reports import (
    QueueReport,
    queue_report,
    unasked,
)
from msmqwire.management.variants import plain
from msmqwire.names import FormatName
from msmqwire.qm.client.managed_names import computer_of, listed_queue, managed_queue, of_computer
from msmqwire.qm.client.management_connection import CALLS_MAX, ManagementConnection, refusal_reason

PRIVATE_QUEUES: Final = int(ManagementMachineProperty.PROPID_MGMT_MSMQ_PRIVATEQ)
_ACTIVE_QUEUES: Final = int(ManagementMachineProperty.PROPID_MGMT_MSMQ_ACTIVEQUEUES)
QUEUES_MAX: Final = 65_536
"""Queues that a computer may list."""
NOT_ASKED: Final = "it was not asked: there are more queues than wanted"
"""The reason of a queue that was left out."""
_DIRECT: Final = "direct=os:"
_TRIED_MAX: Final = 100
"""Private queues that are looked at for the name of the computer."""
_LEFT_S: Final = 0.1
"""The part of the time of a method that is kept for its result, and that in seconds at most."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A queue that is to be asked.

    Attributes:
        path: the name by which the user or the computer knows it.
        name: its format name; None if there is none.
        reason: why there is none.
        listed: whether the computer has listed it.
    """

    path: str
    name: FormatName | None
    reason: str = ""
    listed: bool = True


class Listing:
    """One question for many queues."""

    def __init__(
        self, connection: ManagementConnection, host: str, names: Iterable[str], until: float
    ) -> None:
        """Take names that are asked for besides the listed ones, and the time of the loop to be done by."""
        self._connection, self._host, self._wanted, self._until = connection, host, names, until

    async def all(self, most: int | None = None) -> list[QueueReport]:
        """Return the state of private queues, active ones, and the others that are named; of `most` at most.

        Those that are named come first then, and rows of the others have the reason `NOT_ASKED`.
        """
        active, private = await self._lists()
        wanted = self._distinct(_row(name, listed=False) for name in self._wanted)
        first = {_key(row) for row in wanted}
        chosen, others = _chosen((*private, *active), most)
        rows = self._distinct([*map(_row, chosen), *wanted])
        named = set(map(_without_kind, first))
        left = [name for key, name in others.items() if key not in named]
        if most is not None and len(rows) > most:
            rows.sort(key=lambda row: _key(row) not in first)
            left += [row.path for row in rows[most:]]
        return [*_once(await self._reports(rows[:most])), *(unasked(path, NOT_ASKED) for path in left)]

    async def outgoing(self) -> list[QueueReport]:
        """Return the state of the outgoing queues, and of active ones that can't be asked."""
        active, private = await self._lists()
        local = {_key(row) for row in self._distinct(map(_row, private))}
        rows = [row for row in self._distinct(map(_row, active)) if _key(row) not in local]
        reports = [report for _, report in await self._reports(rows)]
        return [report for report in reports if report.reason is not None or report.outgoing]

    async def _lists(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of the active queues and of the private ones that the computer lists.

        Raises ProtocolViolation for what is no list of names, and for too many.
        """
        values, _ = await self._connection.machine_properties(_ACTIVE_QUEUES, PRIVATE_QUEUES)
        active, private = (self._names(values[number]) for number in (_ACTIVE_QUEUES, PRIVATE_QUEUES))
        self._connection.computer = private_computer(private[:_TRIED_MAX], self._host)
        return active, private

    def _names(self, value: Any) -> tuple[str, ...]:
        if value.vt in (VarEnum.VT_NULL, VarEnum.VT_EMPTY):
            return ()
        if value.vt != VarEnum.VT_VECTOR | VarEnum.VT_LPWSTR:  # MQMR-3.2.4-06
            raise ProtocolViolation(
                f"{self._host} gives no names of queues, but a value of type {value.vt:#06x}"
            )
        names: tuple[str, ...] = plain(value)
        if len(names) > QUEUES_MAX:
            raise ProtocolViolation(f"{self._host} lists more than {QUEUES_MAX:,} queues")
        return names

    def _distinct(self, rows: Iterable[_Row]) -> list[_Row]:
        """Return rows with their computers, those with the same name once."""
        computer = self._connection.computer or self._host
        found: dict[str, _Row] = {}
        for one in rows:
            row = one if one.name is None else replace(one, name=of_computer(one.name, computer))
            found.setdefault(_key(row), row)
        return list(found.values())

    async def _reports(self, rows: list[_Row]) -> list[tuple[_Row, QueueReport]]:
        """Ask for all rows, `CALLS_MAX` at a time. Raises the error that ends the connection."""
        reports: list[QueueReport | None] = [None] * len(rows)
        waiting = iter(enumerate(rows))

        async def work() -> None:
            for at, row in waiting:
                reports[at] = await self._report(row)

        loop = asyncio.get_running_loop()
        workers = [loop.create_task(work()) for _ in range(min(CALLS_MAX, len(rows)))]
        try:
            if workers:
                left = self._until - loop.time()
                left -= min(_LEFT_S, _LEFT_S * left)
                done, slow = await asyncio.wait(workers, timeout=left, return_when=asyncio.FIRST_EXCEPTION)
                for worker in done:
                    worker.result()
                if slow and not any(reports):
                    await asyncio.wait(slow, return_when=asyncio.FIRST_EXCEPTION)  # to the end of the time
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        return [
            (row, report or unasked(row.path, "there was no answer in time"))
            for row, report in zip(rows, reports, strict=True)
        ]

    async def _report(self, row: _Row) -> QueueReport:
        if row.name is None:
            return unasked(row.path, row.reason)
        try:
            return queue_report(row.path, *await self._connection.queue_properties(row.name))
        except QueueError as exc:
            return unasked(row.path, refusal_reason(exc))
        except (RpcFault, InvalidName) as exc:
            return unasked(row.path, str(exc))
        except ProtocolViolation as exc:
            if self._connection.closed:
                raise
            return unasked(row.path, str(exc))


def private_computer(paths: Iterable[str], host: str) -> str:
    """Return the name of a computer by its private queues; without any, the name that it was reached by."""
    return next((name for name in map(computer_of, paths) if name), host)


def _chosen(names: Iterable[Any], most: int | None) -> tuple[list[Any], dict[Any, Any]]:
    """Return the first queues that are listed, and the others by their keys.

    A private queue that is active is listed by two names. They are compared as texts: to read a name takes
    longer than to list it.
    """
    distinct: dict[Any, Any] = {}
    for name in names:
        distinct.setdefault(_without_kind(name), name)
    chosen = list(distinct)[:most]
    return [distinct.pop(key) for key in chosen], distinct


def _without_kind(name: Any) -> Any:
    """Return what a path name and the direct name of the same queue have in common."""
    return name.casefold().removeprefix(_DIRECT) if isinstance(name, str) else name


def _row(text: Any, *, listed: bool = True) -> _Row:
    if not isinstance(text, str):  # no well-formed UTF-16, or a null pointer
        path = bytes(text or b"").decode("utf-16-le", "backslashreplace").rstrip("\0")
        return _Row(path, None, "the name is not a text", listed)
    try:
        return _Row(text, listed_queue(text) if listed else managed_queue(text), listed=listed)
    except InvalidName as exc:
        return _Row(text, None, str(exc), listed)


def _key(row: _Row) -> str:
    return (row.path if row.name is None else str(row.name)).casefold()


def _once(rows: Iterable[tuple[_Row, QueueReport]]) -> Iterator[QueueReport]:
    """Yield reports; a local queue that is listed by two names once, with the path of its first."""
    seen: set[str] = set()
    for row, report in rows:
        local = report.reason is None and not report.outgoing and report.path and row.listed
        if local and not getattr(row.name, "is_read_only", False):
            path = str(report.path).casefold()
            if path in seen:
                continue
            seen.add(path)
        yield report
