"""Remote readers whose connection or server breaks at every point: nothing is lost, nothing is there twice.

Each history is run once whole. Then it is run again for every event in it (bytes arrive, a commit is durable,
a pause is over), with a fault right before that event; one of them again for each byte that client and server
send, with a connection that breaks there.
"""

from __future__ import annotations

from itertools import count
from uuid import UUID

import pytest

from msmqwire.qm.model.enumerations import PositionState
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.sim.plan import REMOTE_MODES, SUBQUEUE, TRANSACTIONAL_REMOTE_MODES, Item, Plan
from msmqwire.qm.sim.tracked import SendState
from msmqwire.qm.sim.world import PREPARED_MS, World
from msmqwire.rpc.constants import FRAGMENT_SIZE

SERVER, CLIENT = "alpha", "beta"
PENDING_S = 2
OVER_MS = 9_000
"""After this time nothing waits any more, and every receive has ended or was given up."""
SEND = {"count": 2, "to": SERVER, "form": "OS", "queue": "plain", "size": 3, "recoverable": True}
TRANSACTION = {**SEND, "queue": "tx", "end": "commit", "hold_ms": 0}
LATE_SENDS = ("wait", "cancel", "several")
"""In these histories the messages come while they are awaited."""
IN_TRANSACTION = ("commit", "abort", "vanish in a transaction")


class History:
    """One history, in a world that goes on from one run of it to the next.

    Attributes:
        events: those of the whole history.
        sent: the bytes that the client and the server send in it.
    """

    def __init__(self, mode: str, *, messages: int = 2, size: int = 3) -> None:
        self.mode, self.messages = mode, messages
        self.transactional = mode in TRANSACTIONAL_REMOTE_MODES
        plan = Plan(
            1, (SERVER, CLIENT), Settings(), (0, 0), None, 0.0, 0.0, (), remote_pending_s=PENDING_S,
            commits_in_thread=True,
        )  # fmt: skip
        self.world = World(plan)
        guids = count(1)  # each run has others, though it has the delays of the first one
        self.world.environment.guid = lambda: UUID(int=next(guids))  # type: ignore[method-assign]
        kind = TRANSACTION if self.transactional else SEND
        self.send = {**kind, "count": messages, "size": size}
        for node in self.world.nodes.values():
            node.boot()
        self.world.workload.prepare()
        self.world.environment.run_until(PREPARED_MS)
        self.server = self.world.nodes[SERVER]
        before = tuple(self.world.rpc.sent)
        self.events = self.run(None, lambda: None)
        self.sent = [after - sent for after, sent in zip(self.world.rpc.sent, before, strict=True)]
        assert self.reading.decided in (None, mode != "abort")

    def run(self, before, fault) -> int:
        """Run it, with a fault before one of its events; return how many there were."""
        environment, workload = self.world.environment, self.world.workload
        environment.rng.seed(f"{self.mode} 2")
        environment.counts.clear()
        earlier = len(self.world.ledger.messages)
        kind = "transaction" if self.transactional else "send"
        late = 400 if self.mode in LATE_SENDS else 0
        environment.after(late, workload.action(Item(0, kind, SERVER, self.send)))
        environment.run_until(environment.now + (0 if late else 50))
        self.args = {
            "from": SERVER, "queue": self.send["queue"], "mode": self.mode, "count": self.messages,
            "hold_ms": 400 if self.mode == "cancel" else 10,
        }  # fmt: skip
        self.reader, self.reading = workload.read_remotely(self.world.nodes[CLIENT], self.args)
        end = environment.now + OVER_MS
        for number in count():
            if number == before:
                fault()
            if self.reader.finished or not environment.run_event(end):
                break
        environment.run_until(environment.now + OVER_MS)
        messages = [*self.world.ledger.messages.values()][earlier:]
        self.check(messages, crashed=fault in self.crashes())
        self.drain(messages)
        return number

    def run_broken(self, side, sent) -> None:
        """Run it, the connection breaks when the client (0) or the server (1) has sent so many bytes."""
        rpc = self.world.rpc
        rpc.breaks[side] = rpc.sent[side] + sent
        self.run(None, lambda: None)
        rpc.breaks[side] = None

    @property
    def progress(self):
        """How many messages the client was given, wanted to accept, and was told to have accepted."""
        return len(self.reading.given), len(self.reading.asked), len(self.reading.confirmed)

    def positions(self, queue):
        name, _, subqueue = queue.partition(";")
        found = self.server.core.queues.lookup.path(f"{SERVER}\\private$\\{name}")
        if subqueue:
            found = found.subqueues.get(subqueue)
        return [] if found is None else list(found.positions)

    def check(self, messages, *, crashed) -> None:
        """Check that each message is in one place only, and that the reader was told the truth."""
        core, reading, queue = self.server.core, self.reading, self.send["queue"]
        there = [*self.positions(queue), *self.positions(f"{queue};{SUBQUEUE}")]
        assert all(position.state is PositionState.AVAILABLE for position in there)
        numbers = [self.world.ledger.by_position[SERVER, position.number].number for position in there]
        assert len(set(numbers)) == len(numbers)
        for message in messages:
            if message.state is SendState.LOST:  # with a crash, before it was durable
                continue
            places = [message.number in numbers, message.received == 1, bool(message.failed)]
            assert places.count(True) == 1, f"{message}: {places}"
            assert message.failed == 0 or self.mode in ("purge", *IN_TRANSACTION)
            if message.number not in reading.asked:
                # A client that commits a transaction has all that it was given in it.
                assert not message.received or (reading.decided and message.number in reading.given.values())
            elif message.number in reading.confirmed and self.mode not in IN_TRANSACTION:
                assert message.received
            elif message.number in reading.confirmed and reading.decided and not crashed:
                assert message.received or message.failed  # the reader has said why it is rejected
            if self.mode in IN_TRANSACTION and not reading.decided:
                assert message.number in numbers
        assert [*self.main(numbers)] == sorted(self.main(numbers)), "each is in its place"
        shares = core.remote_read.shares
        left = shares.handles, shares.cursors, shares.waiting, shares.pending
        assert [share.total for share in left] == [0, 0, 0, 0]
        assert not len(core.remote_read.contexts)
        assert not core.queue_manager.transactions

    def main(self, numbers):
        return numbers[: len(self.positions(self.send["queue"]))]

    def drain(self, messages) -> None:
        """Read what is left, so that the next run finds the queue empty."""
        queue = self.send["queue"]
        for name in (queue, f"{queue};{SUBQUEUE}"):
            args = {"queue": name, "mode": "plain", "count": 9, "hold_ms": 0}
            self.world.workload.action(Item(0, "receive", SERVER, args))()
        self.world.environment.run_until(self.world.environment.now + 50)
        assert not self.positions(queue)
        assert all(
            message.received or message.failed for message in messages if message.state is not SendState.LOST
        )

    # -- faults

    def connections(self):
        return [connection for connection in self.world.network._connections if connection.ends[1].number < 0]

    def cut(self) -> None:
        """Break all connections; what is in flight is lost."""
        for connection in self.connections():
            connection.break_off(loses=True)

    def vanish(self) -> None:
        """Let the client go; what it has sent still arrives."""
        self.reader.kill()

    def crash_before_the_disk(self) -> None:
        self.server.crash(20)

    def crash_behind_the_disk(self) -> None:
        self.server.crash(20, stored=True)

    def stop_in_order(self) -> None:
        self.server.restart(20)

    def silence(self) -> None:
        """Let nothing pass until the time of every receive is over."""
        self.world.network.partition(SERVER, CLIENT, 1000 * PENDING_S + 500)

    def crashes(self):
        return self.crash_before_the_disk, self.crash_behind_the_disk, self.stop_in_order


FAULTS = ("cut", "vanish", "crash_before_the_disk")
MORE_FAULTS = (*FAULTS, "crash_behind_the_disk", "stop_in_order", "silence")
WITH_MORE_FAULTS = ("accept", "wait", "several", "move", "commit", "single")


@pytest.mark.requirement("MQRR-3.1.6.1-03", "MQRR-3.1.6.2-04", "MQRR-3.1.6.2-05")
@pytest.mark.parametrize("mode", [*REMOTE_MODES, *TRANSACTIONAL_REMOTE_MODES])
def test_a_break_at_any_event_loses_and_repeats_no_message(mode):
    history = History(mode)
    assert history.reader.finished
    whole = history.progress
    reached = []
    for name in MORE_FAULTS if mode in WITH_MORE_FAULTS else FAULTS:
        fault = getattr(history, name)
        for event in range(history.events):
            history.run(event, fault)
            reached.append(history.progress)
    assert min(reached) == (0, 0, 0)
    assert max(reached) == whole


@pytest.mark.requirement("MQRR-3.1.6.2-04")
@pytest.mark.parametrize("side", [0, 1])
def test_a_break_after_any_byte_loses_and_repeats_no_message(side):
    history = History("accept", messages=1)
    reached = set()
    for sent in range(history.sent[side]):
        history.run_broken(side, sent)
        reached.add(history.progress)
    # The message is handed out, and its end asked for and answered.
    assert reached == {(0, 0, 0), (1, 1, 0), (1, 1, 1)}


@pytest.mark.parametrize("mode", ["accept", "commit"])
def test_a_message_with_missing_fragments_is_not_delivered(mode):
    history = History(mode, size=12_000)
    assert history.sent[1] > 4 * FRAGMENT_SIZE
    parts = set()
    for sent in (*range(0, history.sent[1], 397), history.sent[1] - 1):
        history.run_broken(1, sent)
        parts.add(len(history.reading.given))
    assert parts == {0, 1, 2}


def test_what_a_client_has_is_its_own_over_its_other_connection():
    history = History("other connection", messages=1)
    ended = 0
    for event in range(history.events):
        history.run(event, lambda: [each.break_off() for each in history.connections()[:1]])
        ended += bool(history.reading.confirmed)
    assert 1 < ended < history.events
