"""Sending to queues of other queue managers: through the small one inside a connection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msmqwire.qm.client.properties import Properties, to_message
from msmqwire.qm.client.protecting import protecting_of
from msmqwire.qm.client.sending import Unit, of_another
from msmqwire.qm.client.sent import Sent
from msmqwire.qm.model.elements import OpenQueueDescriptor, Transaction

if TYPE_CHECKING:
    from msmqwire.qm.client.manager import ClientManager


class NetworkUnit:
    """A transaction of the queue manager inside a connection."""

    def __init__(self, manager: ClientManager) -> None:
        self._manager = manager
        self.transaction: Transaction = manager.begin()
        self.identifier = self.transaction.identifier

    async def commit(self) -> None:
        self._manager.commit(self.transaction)
        await _kept(self._manager)

    async def abort(self) -> None:
        self._manager.abort(self.transaction)

    def belongs_to(self, manager: ClientManager) -> bool:
        """Whether the transaction was begun in this queue manager."""
        return manager is self._manager


async def _kept(manager: ClientManager) -> None:
    """Wait until sent messages are durable, if they have to be. Raises as `EngineDriver.durable` does."""
    if manager.stored:
        await manager.driver.durable()
    elif manager.driver.is_full:  # let other tasks have a turn
        await asyncio.sleep(0)


class NetworkSending:
    """A queue of another queue manager, sent to through the small one inside a connection."""

    def __init__(self, manager: ClientManager, descriptor: OpenQueueDescriptor) -> None:
        self._manager, self._descriptor = manager, descriptor
        self.format_name = str(descriptor.format_name)

    async def send(self, body: bytes | str, properties: Properties) -> Sent:
        sent = self._send(body, properties)
        await _kept(self._manager)
        return sent

    async def begin(self) -> Unit:
        return NetworkUnit(self._manager)

    def add(self, unit: Unit, body: bytes | str, properties: Properties) -> Sent:
        if not isinstance(unit, NetworkUnit) or not unit.belongs_to(self._manager):
            raise of_another()
        return self._send(body, properties, unit.transaction)

    def _send(
        self, body: bytes | str, properties: Properties, transaction: Transaction | None = None
    ) -> Sent:
        message, protecting = to_message(body, properties), protecting_of(properties)
        return self._manager.send(self._descriptor, message, transaction, protecting)
