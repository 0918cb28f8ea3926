"""Queue managers, computers and queues, with counts of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from msmqwire.analysis.dissection.item import Item
from msmqwire.analysis.protocols import protocol_of
from msmqwire.analysis.report.alike import Alike
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
        """Count an item, sent by the opener of its session or not, by queue and by queue manager."""
        if facts.queue:
            messages = 0 if facts.body_size is None else 1
            self.add_queue(
                facts.queue,
                Queue(item.time_ns, item.time_ns, 1, messages, facts.body_size or 0, len(item.findings)),
            )
        packet = item.packet
        if isinstance(packet, Record):
            self.add_managers(item, packet, by_initiator=by_initiator)
        elif (protocol := protocol_of(packet)) is not None and facts.group is Group.MESSAGE:
            source = self._manager(protocol.columns.value("source_qm", packet) or NIL)
            if source is not None:
                source.sent += 1

    def add_endpoints(self, alike: Alike) -> None:
        """Count packets by their sender and their receiver."""
        sender = self._endpoint(alike.src, alike.packets)
        receiver = self._endpoint(alike.dst, alike.packets)
        if sender is not None:
            sender.sent += alike.packets
            sender.bytes_sent += alike.bytes
            sender.findings += alike.findings
        if receiver is not None:
            receiver.received += alike.packets
            receiver.bytes_received += alike.bytes

    def _endpoint(self, address: str, packets: int) -> Endpoint | None:
        found = self.endpoints.get(address)
        if found is None:
            if len(self.endpoints) == self._limits.endpoints:
                self.left_out["endpoints"] += packets
                return None
            found = self.endpoints[address] = Endpoint()
        return found

    def add_queue(self, name: str, more: Queue) -> None:
        """Add counts of the queue of a name."""
        name = cut(name, self._limits.text)
        queue = self.queues.get(name)
        if queue is None:
            if len(self.queues) == self._limits.queues:
                self.left_out["queues"] += more.packets
                return
            queue = self.queues[name] = Queue()
        queue.start_ns, queue.end_ns = span_with(queue.start_ns, queue.end_ns, more.start_ns, more.end_ns)
        queue.packets += more.packets
        queue.messages += more.messages
        queue.body_bytes += more.body_bytes
        queue.findings += more.findings

    def add_messages(self, source: str, target: str, messages: int) -> None:
        """Count messages of one queue manager to one other."""
        sender = self._manager(source, messages)
        if sender is not None:
            sender.sent += messages
        receiver = self._manager(target, messages)
        if receiver is not None:
            receiver.addressed += messages

    def add_managers(self, item: Item, packet: Record, *, by_initiator: bool) -> None:
        """Count the queue managers that a packet of MSMQ names."""
        if item.kind == "Ping":
            self._met(str(packet.QMGuid), item.src)
        elif item.kind == "EstablishConnection":
            header = packet.EstablishConnectionHeader
            if by_initiator:
                self._met(str(header.ClientGuid), item.src)
            else:
                self._met(str(header.ServerGuid), item.src)
        elif (user := packet.get("UserHeader")) is not None:
            self.add_messages(str(user.SourceQueueManager), str(user.QueueManagerAddress), 1)

    def _met(self, guid: str, address: str) -> None:
        manager = self._manager(guid)
        if manager is None or address in manager.addresses:
            return
        if len(manager.addresses) == self._limits.addresses:
            manager.more_addresses = True
        else:
            manager.addresses.append(address)

    def _manager(self, guid: str, packets: int = 1) -> Manager | None:
        if guid == NIL:
            return None
        found = self.managers.get(guid)
        if found is None:
            if len(self.managers) == self._limits.managers:
                self.left_out["managers"] += packets
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
