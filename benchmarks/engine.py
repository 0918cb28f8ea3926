"""Two queue managers connected in memory: messages a second, and the cost of a message in a long queue.

    python benchmarks/engine.py [MESSAGES] [--profile] [--long]

Both queue managers, the codec and the stores run in one process and one thread: an application sends
messages of 1 KiB with a label to a queue of the other queue manager, another receives each of them. Messages
are express, recoverable and transactional, stores in memory and SQLite files; recoverable and transactional
messages are durable before they are acknowledged, many with each sync. The cores are bare: the benchmark
takes their changes and effects itself; `qm.py` measures them with their driver and a network. The aim is
12,000 express messages a second, and 8,000 recoverable ones with SQLite, on a machine where a broker confirms
1,800 one by one. ``--profile`` prints where the time of express messages goes; ``--long`` measures putting a
message into a queue that holds 100 to 1,000,000 others, and taking one from it.
"""

from __future__ import annotations

import argparse
import cProfile
import platform
import pstats
import random
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from msmqwire.names import parse_format_name
from msmqwire.qm.core import Core
from msmqwire.qm.model.effects import Connect, Disconnect, Effect, Resolve, Send
from msmqwire.qm.model.elements import OpenQueueDescriptor, Queue
from msmqwire.qm.model.enumerations import DeliveryGuarantee, QueueAccessType, QueueShareMode
from msmqwire.qm.model.message import NULL_GUID, Message
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.store import memory_store, open_store
from msmqwire.service.store import Store
from msmqwire.service.store.changes import Changes

BODY: Final = random.Random(1801).randbytes(1024)
BATCH: Final = 256
"""Messages that are sent between two commits."""
TRANSACTION_SIZE: Final = 16
AIMS: Final = {("express", "memory"): 12_000, ("recoverable", "SQLite"): 8_000}
UTC: Final = 1_700_000_000
QUOTA: Final = 1 << 40


class Manager:
    """A queue manager, its store, and the changes and effects that wait for a commit.

    Attributes:
        peers: by number of a connection, its number at the other queue manager.
    """

    def __init__(self, name: str, address: str, store: Store, rng: random.Random, **options: Any) -> None:
        """Start it; the options are as for `Core`."""
        self.name, self.address, self.store = name, address, store
        self.core = Core(
            store,
            new_guid=lambda: UUID(int=rng.getrandbits(128)),
            computer_name=name,
            addresses=[address],
            quota=QUOTA,
            **{"settings": Settings()} | options,
        )
        self.core.at(0, UTC)
        self.core.start()
        self.changes = Changes()
        self.effects: deque[Effect] = deque()
        self.peers: dict[int, int] = {}

    def step(self) -> None:
        """Collect the changes and effects of the last calls."""
        changes, effects = self.core.take()
        if changes:
            self.changes.add(changes)
        self.effects.extend(effects)

    def commit(self) -> None:
        """Make the changes durable."""
        if self.changes:
            self.store.commit(self.changes)
            self.changes = Changes()
            self.core.committed()


class ManagerPair:
    """A sending and a receiving queue manager, connected in memory.

    Args:
        make_store: returns the store of a queue manager by its name.
        sending, receiving: further options of `Core`.
    """

    def __init__(
        self,
        make_store: Callable[[str], Store],
        sending: Mapping[str, Any] | None = None,
        receiving: Mapping[str, Any] | None = None,
    ) -> None:
        rng = random.Random(1)
        self.sender = Manager("alpha", "10.0.0.1", make_store("alpha"), rng, **sending or {})
        self.receiver = Manager("beta", "10.0.0.2", make_store("beta"), rng, **receiving or {})
        self.now = 0

    def create_queue(self, name: str, *, transactional: bool) -> Queue:
        """Create a private queue at the receiver."""
        core = self.receiver.core
        template = Queue(NULL_GUID)
        core.queues.set_defaults(template)
        template.pathname, template.transactional = f"beta\\private$\\{name}", transactional
        _, queue = core.queues.create(template)
        assert queue is not None
        return queue

    def open(
        self, manager: Manager, name: str, access: QueueAccessType, prefix: str = "DIRECT=OS:beta\\private$\\"
    ) -> OpenQueueDescriptor:
        """Open a queue of the receiver."""
        format_name = parse_format_name(prefix + name)
        _, descriptor = manager.core.queues.open(format_name, access, QueueShareMode.DENY_NONE)
        assert descriptor is not None
        return descriptor

    def settle(self) -> None:
        """Commit changes and carry out effects until nothing is pending."""
        managers = (self.sender, self.receiver)
        for manager in managers:
            manager.step()
        while any(manager.effects or manager.changes for manager in managers):
            for manager in managers:
                manager.commit()
                effects, manager.effects = manager.effects, deque()
                for effect in effects:
                    self._perform(manager, effect)
            for manager in managers:
                manager.step()

    def _perform(self, manager: Manager, effect: Effect) -> None:
        other = self.receiver if manager is self.sender else self.sender
        match effect:
            case Send(connection, data):
                if connection in manager.peers:
                    other.core.binary.received(manager.peers[connection], data)
            case Resolve(request, _):
                manager.core.binary.resolved(request, [other.address])
            case Connect(connection, _, _):
                accepted = other.core.binary.next_connection()
                manager.peers[connection], other.peers[accepted] = accepted, connection
                other.core.binary.accepted(accepted, manager.address)
                manager.core.binary.connected(connection)
            case Disconnect(connection):
                peer = manager.peers.pop(connection, None)
                if peer is not None:
                    other.peers.pop(peer, None)
                    other.core.binary.disconnected(peer)

    def advance(self, milliseconds: int) -> None:
        """Advance the clocks."""
        self.now += milliseconds
        for manager in (self.sender, self.receiver):
            manager.core.at(self.now, UTC + self.now // 1000)
        self.settle()


def transfer(pair: ManagerPair, kind: str, count: int) -> float:
    """Transfer a number of messages from one application to the other; return the seconds it takes."""
    transactional = kind == "transactional"
    guarantee = DeliveryGuarantee.EXPRESS if kind == "express" else DeliveryGuarantee.RECOVERABLE
    sending = pair.open(pair.sender, kind, QueueAccessType.SEND_ACCESS)
    receiving = pair.open(pair.receiver, kind, QueueAccessType.RECEIVE_ACCESS)
    core, receiver = pair.sender.core, pair.receiver.core
    sent = received = 0
    start = time.perf_counter()
    while received < count:
        for _ in range(-(-min(BATCH, count - sent) // (TRANSACTION_SIZE if transactional else 1))):
            if transactional:
                transaction = core.transactions.create(core.context.new_guid())
                for _ in range(TRANSACTION_SIZE):
                    core.send(sending, Message(body=BODY, label="order 7"), transaction)
                core.commit(transaction)
                sent += TRANSACTION_SIZE
            else:
                core.send(sending, Message(body=BODY, label="order 7", delivery_guarantee=guarantee))
                sent += 1
        pair.settle()
        before = received
        while receiver.messages.dequeue(receiving, timeout=0).message is not None:
            received += 1
        if received == before:
            pair.advance(100)
    pair.advance(10_000)
    seconds = time.perf_counter() - start
    assert not len(sending.queue.positions), "all is acknowledged"  # type: ignore[union-attr]
    core.queues.close(sending)
    receiver.queues.close(receiving)
    return seconds


def rates(count: int, folder: Path) -> None:
    """Measure every kind of message with every store."""
    print(f"{'':16}{'store':>10}{'messages/s':>14}{'us each':>10}{'aim':>10}")
    for store in ("memory", "SQLite"):

        def make_store(name: str, store: str = store) -> Store:
            return memory_store() if store == "memory" else open_store(folder / f"{name}.msmq")

        pair = ManagerPair(make_store)
        for kind in ("express", "recoverable", "transactional"):
            pair.create_queue(kind, transactional=kind == "transactional")
            transfer(pair, kind, max(count // 10, BATCH))
            seconds = min(transfer(pair, kind, count) for _ in range(3))
            aim = AIMS.get((kind, store))
            rate = count / seconds
            verdict = "" if aim is None else f"{aim} {'reached' if rate >= aim else 'missed'}"
            print(f"{kind:16}{store:>10}{rate:>14.0f}{1e6 * seconds / count:>10.1f}  {verdict}")
        for manager in (pair.sender, pair.receiver):
            manager.store.close()


def long_queues() -> None:
    """Measure the cost of one message in a queue that holds many."""
    print(f"{'messages queued':>16}{'us a message put in and taken out':>36}")
    pair = ManagerPair(lambda name: memory_store())
    pair.create_queue("long", transactional=False)
    core = pair.receiver.core
    descriptor = pair.open(pair.receiver, "long", QueueAccessType.RECEIVE_ACCESS)
    queue = descriptor.queue
    assert queue is not None
    for depth in (100, 1_000, 10_000, 100_000, 1_000_000):
        while len(queue.positions) < depth:
            core.messages.enqueue(queue, Message(body=BODY))
            core.take()
        best = 1e9
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(2_000):
                core.messages.enqueue(queue, Message(body=BODY))
                core.messages.dequeue(descriptor, timeout=0)
                core.take()
            best = min(best, (time.perf_counter() - start) / 2_000)
        print(f"{depth:>16}{1e6 * best:>36.1f}")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser()
    parser.add_argument("messages", nargs="?", type=int, default=20_480)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--long", action="store_true")
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, {options.messages} messages of {len(BODY)} bytes")
    if options.profile:
        pair = ManagerPair(lambda name: memory_store())
        pair.create_queue("express", transactional=False)
        transfer(pair, "express", options.messages // 10)
        with cProfile.Profile() as profile:
            transfer(pair, "express", options.messages)
        pstats.Stats(profile).strip_dirs().sort_stats("tottime").print_stats(30)
        return
    with tempfile.TemporaryDirectory() as folder:
        rates(options.messages // BATCH * BATCH, Path(folder))
    if options.long:
        long_queues()


if __name__ == "__main__":
    main()
