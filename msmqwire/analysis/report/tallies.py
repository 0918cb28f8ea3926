"""Queue managers, computers and queues, with counts of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from msmqwire.analysis.dissection.item import Item
from msmqwire.analysis.protocols import protocol_of
from msmqwire.analysis.report.facts import Facts, Group
from msmqwire.analysis.report.limits import Limits
from msmqwire.analysis.report.sessions import span_with, split_time
from msmqwire.names.printable import cut
from msmqwire.schema import Record

NIL: Final = "00000000-0000-0000-0000-000000000000"


@dataclass(slots=True)
class Manager:
    """A queue manager.

    Attributes:
        addresses: from which it said its GUID.
        more_addresses: whether there are more of them.
        sent: messages that it sent first.
        addressed: messages that go to it.
    """

    addresses: list[str] = field(default_factory=list)
    more_addresses: bool = False
    sent: int = 0
    addressed: int = 0


@dataclass(slots=True)
class Endpoint:
    """A computer: packets and bytes that it sent and received."""

    sent: int = 0
    received: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    findings: int = 0


@dataclass(slots=True)
class Queue:
    """A queue: packets about it, messages to it or from it, and the bytes of their bodies."""

    start_ns: int | None = None
    end_ns: int | None = None
    packets: int = 0
    messages: int = 0
    body_bytes: int = 0
    findings: int = 0


class Tallies:
    """Counts by queue manager, by address and by queue.

    Attributes:
        managers: the managers by GUID.
        endpoints: the endpoints by address.
        queues: the queues by name.
        left_out: the number of times there was no room for one, by its kind.
    """

    def __init__(self, limits: Limits) -> None:
        self.managers: dict[str, Manager] = {}
        self.endpoints: dict[str, Endpoint] = {}
        self.queues: dict[str, Queue] = {}
        self.left_out = {"managers": 0, "endpoints": 0, "queues": 0}
        self._limits = limits

    def add(self, item: Item, facts: Facts, *, by_initiator: bool) -> None:
        """Count an item, sent by the opener of its session or not."""
        self._add_endpoints(item)
        self._add_queue(item, facts)
        packet = item.packet
        if isinstance(packet, Record):
            self._add_managers(item, packet, by_initiator=by_initiator)
        elif (protocol := protocol_of(packet)) is not None and facts.group is Group.MESSAGE:
            source = self._manager(protocol.columns.value("source_qm", packet) or NIL)
            if source is not None:
                source.sent += 1

    def _add_endpoints(self, item: Item) -> None:
        sender, receiver = self._endpoint(item.src), self._endpoint(item.dst)
        if sender is not None:
            sender.sent += 1
            sender.bytes_sent += item.size
            sender.findings += len(item.findings)
        if receiver is not None:
            receiver.received += 1
            receiver.bytes_received += item.size

    def _endpoint(self, address: str) -> Endpoint | None:
        found = self.endpoints.get(address)
        if found is None:
            if len(self.endpoints) == self._limits.endpoints:
                self.left_out["endpoints"] += 1
                return None
            found = self.endpoints[address] = Endpoint()
        return found

    def _add_queue(self, item: Item, facts: Facts) -> None:
        if not facts.queue:
            return
        name = cut(facts.queue, self._limits.text)
        queue = self.queues.get(name)
        if queue is None:
            if len(self.queues) == self._limits.queues:
                self.left_out["queues"] += 1
                return
            queue = self.queues[name] = Queue()
        queue.start_ns, queue.end_ns = span_with(queue.start_ns, queue.end_ns, item.time_ns)
        queue.packets += 1
        queue.findings += len(item.findings)
        if facts.body_size is not None:
            queue.messages += 1
            queue.body_bytes += facts.body_size

    def _add_managers(self, item: Item, packet: Record, *, by_initiator: bool) -> None:
        if item.kind == "Ping":
            self._met(str(packet.QMGuid), item.src)
        elif item.kind == "EstablishConnection":
            header = packet.EstablishConnectionHeader
            if by_initiator:
                self._met(str(header.ClientGuid), item.src)
            else:
                self._met(str(header.ServerGuid), item.src)
        elif (user := packet.get("UserHeader")) is not None:
            source = self._manager(str(user.SourceQueueManager))
            if source is not None:
                source.sent += 1
            target = self._manager(str(user.QueueManagerAddress))
            if target is not None:
                target.addressed += 1

    def _met(self, guid: str, address: str) -> None:
        manager = self._manager(guid)
        if manager is None or address in manager.addresses:
            return
        if len(manager.addresses) == self._limits.addresses:
            manager.more_addresses = True
        else:
            manager.addresses.append(address)

    def _manager(self, guid: str) -> Manager | None:
        if guid == NIL:
            return None
        found = self.managers.get(guid)
        if found is None:
            if len(self.managers) == self._limits.managers:
                self.left_out["managers"] += 1
                return None
            found = self.managers[guid] = Manager()
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the three tables, the busiest first."""
        managers = sorted(self.managers.items(), key=lambda one: (-one[1].sent - one[1].addressed, one[0]))
        endpoints = sorted(self.endpoints.items(), key=lambda one: (-one[1].sent - one[1].received, one[0]))
        queues = sorted(self.queues.items(), key=lambda one: (-one[1].messages, -one[1].packets, one[0]))
        return {
            "managers": [
                [guid, one.addresses, one.more_addresses, one.sent, one.addressed] for guid, one in managers
            ],
            "endpoints": [
                [address, one.sent, one.received, one.bytes_sent, one.bytes_received, one.findings]
                for address, one in endpoints
            ],
            "queues": [
                [name, one.messages, one.body_bytes, one.packets, one.findings,
                 split_time(one.start_ns), split_time(one.end_ns)]
                for name, one in queues
            ],
        }  # fmt: skip
