"""Remote readers in any order against a model: where each message is, and that nobody has it twice."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from msmqwire.qm.model.enumerations import PositionState
from msmqwire.qm.protocols.remote_read.configuration import Limit
from msmqwire.remote_read.constants import Acknowledge, Action
from msmqwire.remote_read.procedures import XACTUOW
from msmqwire.rpc.handles import NULL_HANDLE, ContextHandle
from msmqwire.rpc.queue_format import QUEUE_FORMAT
from tests.support.engine_harness import RECOVERABLE
from tests.support.qm.queue_contents import bodies, states
from tests.support.rpc.remote_read_harness import (
    ANNE,
    BOB,
    FOREVER,
    NO_MESSAGE,
    OK,
    ORDERS,
    Client,
    RemoteReadHarness,
)

QUEUES = (ORDERS, rf"{ORDERS};done")
PENDING_S = 10
UNKNOWN_TX = bytes(15) + b"\xff"
AVAILABLE = PositionState.AVAILABLE


@dataclass(frozen=True)
class Read:
    """A receive or peek that a client has begun."""

    association: int
    handle: ContextHandle
    request: int
    receives: bool
    tx: bytes | None
    queue: int


@dataclass
class Hold:
    """A message that a client has received and not ended: in which queue, and until when."""

    read: Read
    until: int


class Scene:
    """Two clients of a transactional queue and its subqueue, and what should become of its messages.

    Attributes:
        there: the messages that are in the queues, and in which.
        held: those that a client has received and not ended.
        in_tx: those that the open transaction has received, whether ended or not.
        doomed: those that are purged once nobody has them any more.
    """

    def __init__(self) -> None:
        self.harness = RemoteReadHarness(pending_s=PENDING_S)
        self.harness.queue(transactional=True)
        self.harness.queue("orders;done", transactional=True)
        self.sent = 0
        self.there: dict[bytes, int] = {}
        self.held: dict[bytes, Hold] = {}
        self.in_tx: set[bytes] = set()
        self.doomed: set[bytes] = set()
        self.tx: bytes | None = None
        self.transactions = 0
        self.reset()

    def reset(self) -> None:
        """The clients begin anew."""
        self.clients = [self.harness.client(1, ANNE), self.harness.client(2, BOB)]
        self.handles: list[dict[ContextHandle, int]] = [{}, {}]  # of each client: to which queue
        self.cursors: dict[ContextHandle, int] = {}
        self.targets: list[dict[int, int]] = [{}, {}]
        self.reads: dict[int, Read] = {}

    @property
    def queues(self):
        queue = self.harness.find_queue()
        return queue, queue.subqueues["done"]

    # -- the model

    def gone(self, body: bytes) -> None:
        del self.there[body]
        self.in_tx.discard(body)
        self.doomed.discard(body)

    def back(self, body: bytes) -> None:
        """Nobody has a message any more."""
        if body in self.doomed:
            self.gone(body)

    def release(self, hold_of) -> None:
        """The messages of these holds return, also out of the transaction."""
        for body in [body for body, hold in self.held.items() if hold_of(hold)]:
            del self.held[body]
            self.in_tx.discard(body)
            self.back(body)

    def take_answers(self) -> None:
        """Look at what the calls have returned."""
        for call, answer in sorted(self.harness.answers.items()):
            read = self.reads.pop(call, None)
            if read is None or isinstance(answer, int) or answer.status != OK:
                continue
            body = self.clients[read.association].result(call)
            assert self.there[body] == read.queue or not read.receives
            if read.receives:
                assert body not in self.held, "handed out twice"
                assert body not in self.in_tx, "handed out twice"
                self.held[body] = Hold(read, self.harness.now + 1000 * PENDING_S)
                if read.tx is not None and read.tx == self.tx:
                    self.in_tx.add(body)
        self.harness.answers.clear()

    def check(self) -> None:
        """Compare the queues with the model."""
        for number, queue in enumerate(self.queues):
            its = {body for body, where in self.there.items() if where == number}
            assert set(bodies(queue)) == its
            assert len(bodies(queue)) == len(its)
            free = its - self.held.keys() - self.in_tx
            assert set(bodies(queue, AVAILABLE)) == free
            if free:
                assert not any(read.queue == number and read.receives for read in self.reads.values())

    # -- what happens

    def step(self, operation: str, who: int, a: int, b: int) -> None:
        client, handles = self.clients[who], self.handles[who]
        handle = list(handles)[a % len(handles)] if handles and a < 11 else NULL_HANDLE
        getattr(self, operation)(client, who, handle, a, b)
        for other in (0, 1):
            if not self.handles[other]:
                self.connect(other)
        self.take_answers()
        self.check()

    def send(self, client, who, handle, a, b) -> None:
        self.sent += 1
        body = b"%d" % self.sent
        self.there[body] = a % 2
        self.harness.enqueue_message(self.queues[a % 2], body, delivery_guarantee=RECOVERABLE)
        self.harness.run()

    def connect(self, who: int) -> None:
        """A client opens queues."""
        client = self.clients[who]
        for number in (0, 0, 1, 0):
            self.open(client, who, NULL_HANDLE, number, 0)
        self.open_for_move(client, who, NULL_HANDLE, 1 - who, 0)
        self.create_cursor(client, who, next(iter(self.handles[who])), 0, 0)

    def open(self, client, who, handle, a, b) -> None:
        self.handles[who][client.open(QUEUES[a % 2])] = a % 2

    def open_for_move(self, client, who, handle, a, b) -> None:
        number, _ = client.open_for_move(QUEUES[a % 2])
        self.targets[who][number] = a % 2

    def create_cursor(self, client, who, handle, a, b) -> None:
        if handle in self.handles[who]:
            self.cursors[handle] = client.create_cursor(handle)

    def close(self, client, who, handle, a, b) -> None:
        status, _ = client.close(handle)
        assert (status == OK) is (self.handles[who].pop(handle, None) is not None)
        self.cursors.pop(handle, None)
        self.release(lambda hold: hold.read.handle == handle)

    def _begin(self, client, who, handle, a, b, action, tx=None, **options) -> None:
        request = b % 5
        queue = self.handles[who].get(handle, -1)
        call = client.start(handle, action, request=request, tx=tx, **options)
        self.reads[call] = Read(who, handle, request, action.receives, tx, queue)

    def receive(self, client, who, handle, a, b) -> None:
        tx = (None, self.tx, UNKNOWN_TX)[a % 3]
        self._begin(
            client, who, handle, a, b, Action.MQ_ACTION_RECEIVE, tx, timeout=(0, 3_000, FOREVER)[b % 3]
        )

    def peek(self, client, who, handle, a, b) -> None:
        self._begin(client, who, handle, a, b, Action.MQ_ACTION_PEEK_CURRENT, timeout=(0, 3_000)[b % 2])

    def read_at_cursor(self, client, who, handle, a, b) -> None:
        action = (Action.MQ_ACTION_RECEIVE, Action.MQ_ACTION_PEEK_CURRENT, Action.MQ_ACTION_PEEK_NEXT)[b % 3]
        # A cursor that has passed messages may wait although there are some before it.
        self._begin(client, who, handle, a, b, action, cursor=self.cursors.get(handle, 1), timeout=0)

    def look_up(self, client, who, handle, a, b) -> None:
        positions = list(self.queues[a % 2].positions)
        lookup = positions[b % len(positions)].lookup_identifier if positions else 1
        action = [each for each in Action if each.by_lookup_identifier][b % 6]
        tx = (None, self.tx)[a % 2] if action.receives else None
        self._begin(client, who, handle, a, b, action, tx, lookup=lookup)

    def end(self, client, who, handle, a, b) -> None:
        """End a receive: one that the client has, or some other."""
        mine = sorted((body for body, hold in self.held.items() if hold.read.association == who), key=int)
        request, transactional = b % 5, bool(a & 1)
        if mine:
            read = self.held[mine[a % len(mine)]].read
            handle, request, transactional = read.handle, read.request, read.tx is not None or transactional
        ack = (Acknowledge.RR_ACK, Acknowledge.RR_NACK)[b % 2]
        status = client.end(handle, request, ack, transactional=transactional)
        ended = [
            body
            for body, hold in self.held.items()
            if (hold.read.handle, hold.read.request) == (handle, request)
        ]
        assert (status == OK) is bool(ended)
        for body in ended:
            tx = self.held.pop(body).read.tx
            if ack is Acknowledge.RR_ACK and tx is not None and tx == self.tx:
                continue  # it stays in the transaction
            self.in_tx.discard(body)
            if ack is Acknowledge.RR_ACK:
                self.gone(body)
            else:
                self.back(body)

    def cancel(self, client, who, handle, a, b) -> None:
        waiting = [read for read in self.reads.values() if read.association == who]
        if waiting:
            handle = waiting[a % len(waiting)].handle
        request = waiting[a % len(waiting)].request if waiting else b % 5
        assert (client.cancel(handle, request) == OK) is bool(waiting)

    def cancel_call(self, client, who, handle, a, b) -> None:
        call = sorted(self.reads)[a % len(self.reads)] if self.reads else 0
        self.harness.core.remote_read.cancelled(call)
        self.harness.run()

    def purge(self, client, who, handle, a, b) -> None:
        queue = self.handles[who].get(handle)
        assert (client.purge(handle) == OK) is (queue is not None)
        for body in [body for body, where in self.there.items() if where == queue]:
            if body in self.held or body in self.in_tx:
                self.doomed.add(body)
            else:
                self.gone(body)

    def move(self, client, who, handle, a, b) -> None:
        targets = self.targets[who]
        number = list(targets)[a % len(targets)] if targets else 1
        positions = list(self.queues[self.handles[who].get(handle, 0)].positions)
        position = positions[b % len(positions)] if positions else None
        free = position is not None and position.state is AVAILABLE
        body = position.message.body if position is not None else b""
        status = client.move(handle, number, position.lookup_identifier if position else 1)
        assert (status == OK) is (free and bool(targets) and handle in self.handles[who])
        if status == OK:
            self.there[body] = targets[number]

    def enlist(self, client, who, handle, a, b) -> None:
        if self.tx is None:
            self.transactions += 1
            self.tx = self.transactions.to_bytes(16, "little")
            client.enlisted(self.tx)

    def _decided(self) -> set[bytes]:
        """The transaction is over: nobody holds its messages any more, and a late end of one fails."""
        its, self.in_tx, self.tx = self.in_tx, set(), None
        self.held = {body: hold for body, hold in self.held.items() if body not in its}
        return its

    def commit(self, client, who, handle, a, b) -> None:
        if self.tx is not None:
            self.harness.core.transactions.dtc_prepare(UUID(bytes_le=self.tx), single_phase=True)
            self.harness.run()
            for body in self._decided():
                self.gone(body)

    def abort(self, client, who, handle, a, b) -> None:
        if self.tx is not None:
            self.harness.core.transactions.dtc_abort(UUID(bytes_le=self.tx))
            self.harness.run()
            for body in self._decided():
                self.back(body)

    def lose(self, client, who, handle, a, b) -> None:
        self.harness.lose(client.association)
        self.reads = {call: read for call, read in self.reads.items() if read.association != who}
        self.handles[who], self.targets[who] = {}, {}
        self.release(lambda hold: hold.read.association == who)

    def restart(self, client, who, handle, a, b) -> None:
        """Kill the queue manager."""
        for body in [*self.doomed]:
            self.gone(body)
        self.held, self.in_tx, self.tx = {}, set(), None
        self.harness.restart()
        self.reset()

    def wait(self, client, who, handle, a, b) -> None:
        for _ in range(a % 12):
            self.harness.advance(1_000)
            self.release(lambda hold: hold.until <= self.harness.now)
            self.take_answers()

    def finish(self) -> None:
        """All clients go; one more receives what is left."""
        for who, client in enumerate(self.clients):
            self.lose(client, who, NULL_HANDLE, 0, 0)
        self.abort(None, 0, NULL_HANDLE, 0, 0)
        self.check()
        assert self.harness.nothing_is_left() or self.harness.core.remote_read.shares.transactions.total
        left = self.harness.client(3)
        for number, name in enumerate(QUEUES):
            handle = left.open(name)
            for body in bodies(self.queues[number]):
                assert left.read(handle, request=1) == body
                assert left.end(handle, 1) == OK
                self.gone(body)
            assert left.read(handle) == NO_MESSAGE
        assert self.there == {}


OPERATIONS = st.sampled_from(
    [
        *["send", "receive", "end"] * 5,
        *["open", "peek", "look_up", "read_at_cursor", "wait", "move", "enlist", "cancel"] * 2,
        *["open_for_move", "create_cursor", "close", "cancel_call", "purge", "commit", "abort", "lose"],
        "restart",
    ]
)


@given(
    st.lists(
        st.tuples(OPERATIONS, st.integers(0, 1), st.integers(0, 11), st.integers(0, 11)),
        min_size=20,
        max_size=80,
    )
)
def test_each_message_is_where_the_model_has_it(operations):
    scene = Scene()
    for operation in operations:
        scene.step(*operation)
    scene.finish()


NUMBERS = st.just(0) | st.integers(0, 3) | st.sampled_from([0xFFFF, 0x7FFFFFFF, FOREVER])
LONG_NUMBERS = NUMBERS | st.sampled_from([1 << 56, 4 << 56 | 1, (1 << 64) - 1])
UNITS = st.sampled_from([bytes(16), UNKNOWN_TX, b"\1" * 16]).map(lambda rgb: XACTUOW.value(rgb=rgb))
HERE = ORDERS.removeprefix("DIRECT=")
OTHERS = [r"OS:here\private$\order_queue$", "OS:" + "x" * 300, *(f"{HERE};{letter * 30}" for letter in "abc")]
TEXTS = st.sampled_from([None, "", "OS:", HERE, f"{HERE};done", f"{HERE};JOURNAL", *OTHERS])
SUFFIXES = st.integers(0, 5) | st.integers(0, 255)
GUIDS = st.sampled_from([UUID(int=0), UUID(int=0xA1)])


def forms(kinds: list[int], arms: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.builds(
        QUEUE_FORMAT.value, m_qft=st.sampled_from(kinds), m_SuffixAndFlags=st.just(0) | SUFFIXES, arm=arms
    )


FORMS = forms([3], TEXTS) | forms([8, 0, 7], TEXTS) | forms([1, 4, 5], GUIDS)


@st.composite
def anything(draw: st.DrawFn, client: Client, numbers: list[int]) -> tuple[int, SimpleNamespace]:
    """A call with any arguments."""
    handles = [context.handle for context in client.harness.core.remote_read.contexts]
    handle = draw(st.sampled_from([*handles, NULL_HANDLE]))
    opnum = draw(st.integers(0, 16) | st.sampled_from([7, 9, 13]))
    values = {
        name: draw(NUMBERS)
        for name in (
            "dwAccess", "dwShareMode", "hCursor", "ulTimeout", "dwRequestId", "dwMaxBodySize",
            "dwMaxCompoundMessageSize", "dwAck",
        )
    }  # fmt: skip
    action, lookup = draw(st.sampled_from([*Action, 1])), draw(LONG_NUMBERS)
    if draw(st.booleans()):  # what goes together
        if action & 0x40000000:
            values["hCursor"] = values["ulTimeout"] = 0
        else:
            lookup = 0
    return opnum, SimpleNamespace(
        **values,
        pphContext=handle,
        phContext=handle,
        phContextFrom=handle,
        pQueueFormat=draw(FORMS),
        ullContextTo=draw(st.sampled_from([*numbers, 0])),
        LookupId=lookup,
        ulAction=action,
        pTransactionId=draw(UNITS),
        usClass=draw(st.sampled_from([0, 0xC004, 0xFFFF])),
        cbPropagationToken=3,
        pbPropagationToken=draw(st.sampled_from([b"abc", b""])),
    )


@given(st.data())
def test_any_call_is_answered_once_and_leaves_no_state(data):
    limit = Limit(6, 9)
    harness = RemoteReadHarness(handles=limit, cursors=limit, waiting=Limit(3, 9), subqueues_max=2)
    harness.queue(transactional=True)
    engine, client = harness.core.remote_read, harness.client()
    engine.transacting.coordinated = True
    client.create_cursor(client.open())
    client.open(QUEUE_FORMAT.value(m_qft=3, arm=f"{HERE};JOURNAL"))
    numbers = [client.open_for_move(name)[0] for name in QUEUES]
    for call in range(101, 101 + data.draw(st.integers(1, 25))):
        opnum, arguments = data.draw(anything(client, numbers))
        harness.opnums[call] = opnum
        harness.enqueue_message(harness.find_queue(), b"body")
        engine.called(call, client.association, client.caller, opnum, arguments)
        harness.run()
        assert call in harness.answers or opnum in (7, 12, 13)
    assert len(harness.find_queue().subqueues) <= 2
    for asked in harness.enlistments:
        engine.enlisted(asked.request, done=False)
    harness.lose()
    assert harness.nothing_is_left()
    assert set(states(harness.find_queue())) <= {AVAILABLE}
