"""The states of outgoing queues and what is remembered of their connections: [MS-MQDMPR] 3.1.1.3."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.qm.model.effects import Connect, Disconnect, Effect, Resolve, Send
from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.model.enumerations import ConnectionStatus, OutgoingQueueState
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.settings import Settings
from tests.support.queue_manager_desk import SEND, Desk, bodies

State, Status = OutgoingQueueState, ConnectionStatus
THERE = UUID(int=0xB2)


class Pair:
    """Two queue managers; what one sends is carried to the other by hand."""

    def __init__(self) -> None:
        settings = Settings(session_cleanup_ms=30_000)
        self.here = Desk(settings=settings)
        self.there = Desk(computer_name="there", identifier=THERE, settings=settings)
        status, target = self.there.core.queues.create(_private(self.there))
        assert status == 0
        assert target is not None
        self.target = target
        self.queue: OutgoingQueue = self.here.outgoing()
        self.connections: dict[int, int] = {}

    def put(self) -> None:
        descriptor = self.here.open("DIRECT=OS:there\\private$\\orders", SEND)
        assert self.here.core.send(descriptor, Message(body=b"1")) == 0

    def effect(self, kind: type) -> Effect:
        (found,) = [one for one in self.here.step() if isinstance(one, kind)]
        return found

    def connecting(self) -> int:
        """A message waits, the address is known, the connection is asked for: its number."""
        self.put()
        resolve = self.effect(Resolve)
        assert isinstance(resolve, Resolve)
        assert resolve.host == "there"
        self.here.core.engine.resolved(resolve.request, ["10.0.0.2"])
        connect = self.effect(Connect)
        assert isinstance(connect, Connect)
        return connect.connection

    def connect(self) -> None:
        """The connection is there, and all is carried until nothing is left."""
        mine = self.connecting()
        theirs = self.there.core.engine.next_connection()
        self.there.core.engine.accepted(theirs, "10.0.0.1")
        self.here.core.engine.connected(mine)
        for _ in range(20):
            for desk, to, number in ((self.here, self.there, theirs), (self.there, self.here, mine)):
                for effect in desk.step():
                    if isinstance(effect, Send):
                        to.core.engine.received(number, effect.data)

    @property
    def history(self) -> list[ConnectionStatus]:
        return [one.status for one in self.queue.connection_history]


def _private(desk: Desk):
    wanted = desk.wanted()
    wanted.pathname = "there\\private$\\orders"
    return wanted


@pytest.fixture
def pair() -> Pair:
    return Pair()


@pytest.mark.requirement(
    "DMPR-3.1.1.3-06",
    "DMPR-3.1.1.3-08",
    "DMPR-3.1.1.3-11",
    "DMPR-3.1.1.3-12",
    "DMPR-3.1.1.3-14",
    "DMPR-3.1.1.3-02",
)
def test_a_connection_from_its_first_message_on(pair: Pair) -> None:
    assert pair.queue.state is State.INACTIVE
    pair.here.advance(7_000)
    pair.connect()
    assert pair.queue.state is State.CONNECTED
    assert bodies(pair.target) == [b"1"]
    assert pair.history == [Status.IN_PROCESS, Status.ESTABLISH_PACKET_RECEIVED, Status.ESTABLISHED]
    assert pair.queue.next_hops == ["IP=10.0.0.2"]
    for one in pair.queue.connection_history:
        assert (one.time, one.error, one.addresses) == (pair.here.utc, 0, ("10.0.0.2",))


@pytest.mark.requirement("DMPR-3.1.1.3-11")
def test_while_a_connection_is_being_opened_the_queue_waits(pair: Pair) -> None:
    pair.connecting()
    assert pair.queue.state is State.WAITING


@pytest.mark.requirement("DMPR-3.1.1.3-07")
def test_a_session_that_nobody_uses_ends(pair: Pair) -> None:
    pair.connect()
    seen = []
    for _ in range(100):
        effects = pair.here.advance(1_000)
        seen.append(pair.queue.state)
        if any(isinstance(one, Disconnect) for one in effects):
            break
    assert set(seen[:-1]) == {State.CONNECTED}
    assert pair.queue.state in (State.DISCONNECTED, State.INACTIVE)


@pytest.mark.requirement("DMPR-3.1.1.3-10", "DMPR-3.1.1.3-15", "DMPR-3.1.1.3-12")
def test_a_host_that_has_no_address(pair: Pair) -> None:
    pair.put()
    resolve = pair.effect(Resolve)
    assert isinstance(resolve, Resolve)
    pair.here.core.engine.resolved(resolve.request, [])
    assert pair.queue.state is State.NEED_VALIDATION
    (entry,) = pair.queue.connection_history
    assert (entry.status, entry.time, entry.addresses) == (Status.DNS_FAILURE, pair.here.utc, ())
    assert entry.error & 0x8000_0000


@pytest.mark.requirement("DMPR-3.1.1.3-15", "DMPR-3.1.1.3-12")
@pytest.mark.parametrize(
    "status",
    [
        Status.SOCKET_CREATE_FAILURE,
        Status.SOCKET_BIND_FAILURE,
        Status.SOCKET_CONNECT_FAILURE,
        Status.TCP_NOT_ENABLED,
        Status.UNKNOWN_FAILURE,
    ],
)
def test_a_connection_that_fails_is_remembered_with_its_reason(pair: Pair, status: ConnectionStatus) -> None:
    pair.here.core.engine.connect_failed(pair.connecting(), status)
    (entry,) = pair.queue.connection_history
    assert (entry.status, entry.time, entry.addresses) == (status, pair.here.utc, ("10.0.0.2",))
    assert entry.error & 0x8000_0000
