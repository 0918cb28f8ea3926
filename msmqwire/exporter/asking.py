"""One target is asked: its state and that of its queues become samples, and errors reasons."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, Protocol

from msmqwire.errors import (
    AuthenticationFailed,
    InvalidName,
    InvalidValue,
    MsmqError,
    ProtocolViolation,
    QueueError,
    RpcFault,
    RpcRefused,
    Unreachable,
)
from msmqwire.exporter.families import Blocks
from msmqwire.exporter.samples import samples
from msmqwire.exporter.targets import Target
from msmqwire.management.reports import MachineReport, QueueReport
from msmqwire.qm.client.managed_listing import NOT_ASKED

DEAD_LETTERS: Final = (";deadletter", ";deadxact")
"""The queues of a computer with dead letters, which it lists nowhere."""
UNREACHABLE, TIMEOUT, REFUSED, PROTOCOL, NAME, BUSY, FAULT = REASONS = (
    "unreachable",
    "timeout",
    "refused",
    "protocol",
    "name",
    "busy",
    "fault",
)
"""Why a scrape failed, the values of the label ``reason``.

`BUSY` means that others were asked so long that there was no time for a target, `FAULT` a fault of msmqwire
itself. `NAME` counts queues: the target was asked and has answered.
"""
_ACCESS_DENIED: Final = 5, 0x8007_0005


class Managed(Protocol):
    """A queue manager that can be asked, see `msmqwire.qm.client.management.ManagedHost`."""

    async def machine(self) -> MachineReport:
        """Return the state of the queue manager."""

    async def queues(self, names: Iterable[str] = (), *, most: int | None = None) -> list[QueueReport]:
        """Return that of its queues; of those that it does not report, rows with a reason."""

    async def close(self) -> None:
        """End the connection, if there is one."""


async def ask(managed: Managed, target: Target, queues_max: int) -> tuple[Blocks, list[QueueReport]]:
    """Ask a target; return its samples, and the rows of queues that it does not report.

    Raises as the methods of `Managed`.
    """
    state = asyncio.ensure_future(managed.machine())
    queues = asyncio.ensure_future(managed.queues((*target.queues, *DEAD_LETTERS), most=queues_max))
    try:
        machine, rows = await asyncio.gather(state, queues)
    finally:
        state.cancel()
        queues.cancel()
    refused = [row for row in rows if row.reason not in (None, NOT_ASKED) and row.asked not in DEAD_LETTERS]
    left_out = sum(row.reason == NOT_ASKED for row in rows)
    known = [row for row in rows if row.reason is None]
    return samples(target.name, machine, known, left_out=left_out, refused=len(refused)), refused


def reason_of(exc: Exception) -> str:
    """Return why a scrape failed, one of `REASONS`."""
    if isinstance(exc, TimeoutError):
        return TIMEOUT
    if isinstance(exc, ProtocolViolation):
        return PROTOCOL
    if isinstance(exc, Unreachable):
        return UNREACHABLE
    if isinstance(exc, AuthenticationFailed | QueueError | RpcRefused):
        return REFUSED
    if isinstance(exc, RpcFault):
        return REFUSED if exc.status in _ACCESS_DENIED else PROTOCOL
    if isinstance(exc, InvalidName | InvalidValue):
        return NAME
    return PROTOCOL if isinstance(exc, MsmqError) else FAULT
