"""Queue managers that reach each other, without wires: what one sends another has received."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from typing import Any
from uuid import UUID

from msmqwire.packets import parse
from msmqwire.qm.core import Core
from msmqwire.qm.model.effects import Connect, Disconnect, Effect, Resolve, Send
from msmqwire.qm.store.memory import MemoryStore
from msmqwire.schema import Record
from tests.support.message_desk import UTC


class Net:
    """Cores that reach each other; `log` is every packet as (from, to, kind, packet)."""

    def __init__(self) -> None:
        self.now = 0
        self.nodes: dict[str, tuple[str, Core, MemoryStore]] = {}
        self.links: dict[tuple[str, int], tuple[str, int]] = {}
        self.log: list[tuple[str, str, str, Record]] = []
        self.loses: Callable[[str, str, Record], bool] = lambda sender, receiver, packet: False
        self.numbers = itertools.count(0x2000)

    def node(
        self, name: str, address: str, identifier: UUID, *, addresses: Collection[str] = (), **how: Any
    ) -> Core:
        store = how.pop("store", None) or MemoryStore()
        core = Core(
            store, new_guid=lambda: UUID(int=next(self.numbers) << 64), computer_name=name,
            addresses=[address, *addresses], identifier=identifier, quota=1 << 40, **how,
        )  # fmt: skip
        core.at(self.now, UTC + self.now // 1000)
        core.start()
        self.nodes[address] = name, core, store
        self.run()
        return core

    def run(self) -> None:
        busy = True
        while busy:
            busy = False
            for address, (name, core, store) in list(self.nodes.items()):
                changes, effects = core.take()
                store.commit(changes)
                for effect in effects:
                    busy = True
                    self._do(address, name, core, effect)

    def _do(self, address: str, name: str, core: Core, effect: Effect) -> None:
        if isinstance(effect, Resolve):
            found = [one for one, (other, _, _) in self.nodes.items() if effect.host in (other, one)]
            core.engine.resolved(effect.request, found)
        elif isinstance(effect, Connect):
            other = self.nodes[effect.address][1]
            connection = other.engine.next_connection()
            self.links[address, effect.connection] = effect.address, connection
            self.links[effect.address, connection] = address, effect.connection
            other.engine.accepted(connection, address)
            core.engine.connected(effect.connection)
        elif isinstance(effect, Send):
            link = self.links.get((address, effect.connection))
            if link is None:
                return
            to, other, _ = self.nodes[link[0]]
            packet = parse(effect.data)
            self.log.append((name, to, packet.schema.name, packet))
            if not self.loses(name, to, packet):
                other.engine.received(link[1], effect.data)
        elif isinstance(effect, Disconnect):
            self.cut(address, effect.connection)

    def cut(self, address: str, connection: int) -> None:
        """A connection is lost."""
        link = self.links.pop((address, connection), None)
        if link is not None and self.links.pop(link, None) is not None:
            self.nodes[link[0]][1].engine.disconnected(link[1])

    def passes(self, ms: int) -> None:
        end = self.now + ms
        while True:
            deadlines = [core.deadline for _, core, _ in self.nodes.values()]
            due = min((one for one in deadlines if one is not None), default=end + 1)
            if due > end:
                break
            self.now = max(self.now, due)
            self._tell()
        self.now = end
        self._tell()

    def _tell(self) -> None:
        for _, core, _ in self.nodes.values():
            core.at(self.now, UTC + self.now // 1000)
        self.run()

    def between(self, sender: str, receiver: str, *kinds: str) -> list[Record]:
        """The packets that went from one to another."""
        return [
            packet
            for one, other, kind, packet in self.log
            if (one, other) == (sender, receiver) and (not kinds or kind in kinds)
        ]
