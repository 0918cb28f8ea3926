"""Queue managers that an exporter asks, without a network: each answers, waits or fails as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from msmqwire.exporter.targets import Target
from msmqwire.management.reports import ConnectionEvent, Eod, MachineReport, QueueReport

ACKNOWLEDGED = datetime(2026, 3, 1, 12, tzinfo=UTC)
FAILED = datetime(2026, 3, 1, 13, tzinfo=UTC)
OUTGOING = r"DIRECT=OS:beta\private$\orders"


def local(name: str = r"alpha\private$\orders", messages: int = 7) -> QueueReport:
    """The report of a queue of the computer."""
    return QueueReport(
        name, path=name, location="LOCAL", messages=messages, bytes=messages * 100, journal_messages=2,
        journal_bytes=64, state="LOCAL CONNECTION",
    )  # fmt: skip


def outgoing(name: str = OUTGOING, **values: object) -> QueueReport:
    """The report of a queue whose messages wait for another computer."""
    history = (
        ConnectionEvent(FAILED, 0x80000004, 0x274D, ("IP=10.0.0.5",)),
        ConnectionEvent(ACKNOWLEDGED, 0x80000001, 0),
        ConnectionEvent(datetime(2026, 3, 1, 14, tzinfo=UTC), 2, 0),
    )
    usual: dict[str, object] = {
        "format_name": name,
        "location": "REMOTE",
        "messages": 3,
        "bytes": 300,
        "state": "WAITING",
        "eod": Eod(last_ack_time=ACKNOWLEDGED, no_ack_count=2, no_read_count=1, resend_count=4),
        "connection_history": history,
    }
    return QueueReport(name, **(usual | values))  # type: ignore[arg-type]


class FakeManager:
    """A queue manager, see `msmqwire.exporter.asking.Managed`.

    Attributes:
        rows: the reports of its queues.
        fails: raised in place of an answer.
        waits: an answer waits for it.
        asked: how often its queues were asked for.
        names: the names of the last time.
        closed: how often the connection was ended.
    """

    def __init__(self, rows: Iterable[QueueReport] = (), fails: Exception | None = None) -> None:
        self.rows, self.fails = list(rows), fails
        self.waits: asyncio.Event | None = None
        self.asked = self.closed = 0
        self.names: tuple[str, ...] = ()
        self.at_once = self.most_at_once = 0

    async def machine(self) -> MachineReport:
        return MachineReport("alpha", connected=True, bytes_all_queues=700)

    async def queues(self, names: Iterable[str] = (), *, most: int | None = None) -> list[QueueReport]:
        self.asked += 1
        self.names = tuple(names)
        if self.waits is not None:
            await self.waits.wait()
        else:
            await asyncio.sleep(0)  # others have a turn, as when bytes are on their way
        if self.fails is not None:
            raise self.fails
        return self.rows

    async def close(self) -> None:
        self.closed += 1


def connecting(managers: dict[str, FakeManager]) -> Callable[[Target], FakeManager]:
    """Return the way to fake queue managers, by the names of their targets."""
    return lambda target: managers[target.name]
