"""Two queue managers joined in memory: messages a second, and what a message costs in a long queue.

    python benchmarks/engine.py [MESSAGES] [--profile] [--long]

One process and one thread run both queue managers, the codec and the stores: an application sends messages
of 1 KiB with a label to a queue of the other queue manager, another receives each of them. Express,
recoverable and transactional ones, with stores in memory and in SQLite files; a recoverable or transactional
message is in a file, synced, before it is acknowledged, many with each sync. The aim is 12,000 express
messages a second, and 8,000 recoverable ones with SQLite, on a machine where a broker confirms 1,800 one by
one. ``--profile`` tells what an express message costs where; ``--long`` measures a message put into and
taken from a queue that holds 100 to 1,000,000 others.
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
from collections.abc import Callable
from pathlib import Path
from typing import Final
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from msmqwire.names import parse_format_name
from msmqwire.qm.core import Core
from msmqwire.qm.model.changes import Changes
from msmqwire.qm.model.effects import Connect, Disconnect, Effect, Resolve, Send
from msmqwire.qm.model.elements import OpenQueueDescriptor, Queue
from msmqwire.qm.model.enumerations import DeliveryGuarantee, QueueAccessType, QueueShareMode
from msmqwire.qm.model.message import NULL_GUID, Message
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.store import Store
from msmqwire.qm.store.memory import MemoryStore
from msmqwire.qm.store.sqlite import SqliteStore

BODY: Final = random.Random(1801).randbytes(1024)
AHEAD: Final = 256
"""Messages that are sent between two commits."""
IN_A_TRANSACTION: Final = 16
AIMS: Final = {("express", "memory"): 12_000, ("recoverable", "SQLite"): 8_000}
UTC: Final = 1_700_000_000
QUOTA: Final = 1 << 40


class Side:
    """A queue manager with its store and what waits for its commit."""

    def __init__(self, name: str, address: str, store: Store, chance: random.Random) -> None:
        self.name, self.address, self.store = name, address, store
        self.core = Core(
            store,
            new_guid=lambda: UUID(int=chance.getrandbits(128)),
            computer_name=name,
            addresses=[address],
            quota=QUOTA,
            settings=Settings(),
        )
        self.core.at(0, UTC)
        self.core.start()
        self.changes = Changes()
        self.effects: deque[Effect] = deque()
        self.peers: dict[int, int] = {}

    def step(self) -> None:
        """Keep what the last calls have brought about."""
        changes, effects = self.core.take()
        if changes:
            self.changes.add(changes)
        self.effects.extend(effects)

    def commit(self) -> None:
        """Make it durable."""
        if self.changes:
            self.store.commit(self.changes)
            self.changes = Changes()
            self.core.committed()


class Joined:
    """Two queue managers, each the only other one there is."""

    def __init__(self, make: Callable[[str], Store]) -> None:
        chance = random.Random(1)
        self.a = Side("alpha", "10.0.0.1", make("alpha"), chance)
        self.b = Side("beta", "10.0.0.2", make("beta"), chance)
        self.now = 0

    def queue(self, name: str, *, transactional: bool) -> None:
        """A private queue of the second queue manager."""
        core = self.b.core
        wanted = Queue(NULL_GUID)
        core.queues.set_defaults(wanted)
        wanted.pathname, wanted.transactional = f"beta\\private$\\{name}", transactional
        core.queues.create(wanted)

    def open(self, side: Side, name: str, access: QueueAccessType) -> OpenQueueDescriptor:
        """An open queue."""
        format_name = parse_format_name(f"DIRECT=OS:beta\\private$\\{name}")
        _, found = side.core.queues.open(format_name, access, QueueShareMode.DENY_NONE)
        assert found is not None
        return found

    def settle(self) -> None:
        """Commit and carry out, until nothing is left to do."""
        sides = (self.a, self.b)
        for side in sides:
            side.step()
        while any(side.effects or side.changes for side in sides):
            for side in sides:
                side.commit()
                effects, side.effects = side.effects, deque()
                for effect in effects:
                    self._carry_out(side, effect)
            for side in sides:
                side.step()

    def _carry_out(self, side: Side, effect: Effect) -> None:
        other = self.b if side is self.a else self.a
        match effect:
            case Send(connection, data):
                if connection in side.peers:
                    other.core.engine.received(side.peers[connection], data)
            case Resolve(request, _):
                side.core.engine.resolved(request, [other.address])
            case Connect(connection, _, _):
                theirs = other.core.engine.next_connection()
                side.peers[connection], other.peers[theirs] = theirs, connection
                other.core.engine.accepted(theirs, side.address)
                side.core.engine.connected(connection)
            case Disconnect(connection):
                theirs_or_none = side.peers.pop(connection, None)
                if theirs_or_none is not None:
                    other.peers.pop(theirs_or_none, None)
                    other.core.engine.disconnected(theirs_or_none)

    def advance(self, milliseconds: int) -> None:
        """Let time pass."""
        self.now += milliseconds
        for side in (self.a, self.b):
            side.core.at(self.now, UTC + self.now // 1000)
        self.settle()


def transfer(joined: Joined, kind: str, count: int) -> float:
    """Seconds that so many messages take from one application to the other."""
    transactional = kind == "transactional"
    guarantee = DeliveryGuarantee.EXPRESS if kind == "express" else DeliveryGuarantee.RECOVERABLE
    sender = joined.open(joined.a, kind, QueueAccessType.SEND_ACCESS)
    receiver = joined.open(joined.b, kind, QueueAccessType.RECEIVE_ACCESS)
    core, other = joined.a.core, joined.b.core
    sent = received = 0
    start = time.perf_counter()
    while received < count:
        for _ in range(-(-min(AHEAD, count - sent) // (IN_A_TRANSACTION if transactional else 1))):
            if transactional:
                transaction = core.transactions.create(core.context.new_guid())
                for _ in range(IN_A_TRANSACTION):
                    core.send(sender, Message(body=BODY, label="order 7"), transaction)
                core.commit(transaction)
                sent += IN_A_TRANSACTION
            else:
                core.send(sender, Message(body=BODY, label="order 7", delivery_guarantee=guarantee))
                sent += 1
        joined.settle()
        before = received
        while other.messages.dequeue(receiver, timeout=0).message is not None:
            received += 1
        if received == before:
            joined.advance(100)
    joined.advance(10_000)
    seconds = time.perf_counter() - start
    assert not len(sender.queue.positions), "all is acknowledged"  # type: ignore[union-attr]
    core.queues.close(sender)
    other.queues.close(receiver)
    return seconds


def rates(count: int, folder: Path) -> None:
    """Every kind with every store."""
    print(f"{'':16}{'store':>10}{'messages/s':>14}{'us each':>10}{'aim':>10}")
    for store in ("memory", "SQLite"):

        def make(name: str, store: str = store) -> Store:
            return MemoryStore() if store == "memory" else SqliteStore(folder / f"{name}.msmq")

        joined = Joined(make)
        for kind in ("express", "recoverable", "transactional"):
            joined.queue(kind, transactional=kind == "transactional")
            transfer(joined, kind, max(count // 10, AHEAD))
            seconds = min(transfer(joined, kind, count) for _ in range(3))
            aim = AIMS.get((kind, store))
            rate = count / seconds
            told = "" if aim is None else f"{aim} {'reached' if rate >= aim else 'missed'}"
            print(f"{kind:16}{store:>10}{rate:>14.0f}{1e6 * seconds / count:>10.1f}  {told}")
        for side in (joined.a, joined.b):
            side.store.close()


def long_queues() -> None:
    """What one message costs in a queue that holds many."""
    print(f"{'messages queued':>16}{'us a message put in and taken out':>36}")
    joined = Joined(lambda name: MemoryStore())
    joined.queue("long", transactional=False)
    core = joined.b.core
    receiver = joined.open(joined.b, "long", QueueAccessType.RECEIVE_ACCESS)
    queue = receiver.queue
    assert queue is not None
    for held in (100, 1_000, 10_000, 100_000, 1_000_000):
        while len(queue.positions) < held:
            core.messages.enqueue(queue, Message(body=BODY))
            core.take()
        best = 1e9
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(2_000):
                core.messages.enqueue(queue, Message(body=BODY))
                core.messages.dequeue(receiver, timeout=0)
                core.take()
            best = min(best, (time.perf_counter() - start) / 2_000)
        print(f"{held:>16}{1e6 * best:>36.1f}")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("messages", nargs="?", type=int, default=20_480)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--long", action="store_true")
    given = parser.parse_args()
    print(f"Python {platform.python_version()}, {given.messages} messages of {len(BODY)} bytes")
    if given.profile:
        joined = Joined(lambda name: MemoryStore())
        joined.queue("express", transactional=False)
        transfer(joined, "express", given.messages // 10)
        with cProfile.Profile() as profile:
            transfer(joined, "express", given.messages)
        pstats.Stats(profile).strip_dirs().sort_stats("tottime").print_stats(30)
        return
    with tempfile.TemporaryDirectory() as folder:
        rates(given.messages // AHEAD * AHEAD, Path(folder))
    if given.long:
        long_queues()


if __name__ == "__main__":
    main()
