"""Outgoing queue states and connection history: [MS-MQDMPR] 3.1.1.3."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.effects import Connect, Disconnect, Resolve
from msmqwire.qm.model.enumerations import ConnectionStatus, OutgoingQueueState
from tests.support.engine_harness import EngineHarness
from tests.support.qm.harness_network import HarnessNetwork, joined_pair
from tests.support.qm.queue_contents import bodies

State, Status = OutgoingQueueState, ConnectionStatus
TARGET = r"DIRECT=OS:beta\private$\orders"
Pair = tuple[HarnessNetwork, EngineHarness, EngineHarness]


@pytest.fixture
def pair() -> Pair:
    """Two queue managers whose idle sessions end after 30 seconds."""
    network, alpha, beta = joined_pair(session_cleanup_ms=30_000)
    beta.queue()
    return network, alpha, beta


@pytest.fixture
def harness() -> EngineHarness:
    """A queue manager with a message for another, whose name it is resolving."""
    harness = EngineHarness()
    harness.send(b"1", to=TARGET)
    (resolve,) = harness.effects_of(Resolve)
    assert resolve.host == "beta"
    return harness


def connecting(harness: EngineHarness) -> int:
    """Resolve the name; return the number of the requested connection."""
    harness.resolve("10.0.0.2")
    (connect,) = harness.effects_of(Connect)
    return int(connect.connection)


@pytest.mark.requirement(
    "DMPR-3.1.1.3-06",
    "DMPR-3.1.1.3-08",
    "DMPR-3.1.1.3-12",
    "DMPR-3.1.1.3-14",
    "DMPR-3.1.1.3-02",
)
def test_a_connection_from_its_first_message_on(pair: Pair) -> None:
    network, alpha, beta = pair
    queue = alpha.outgoing(TARGET)
    assert queue.state is State.INACTIVE
    network.advance(7_000)
    alpha.send(b"1", to=TARGET)
    network.run()
    assert queue.state is State.CONNECTED
    assert bodies(beta.find_queue()) == [b"1"]
    history = [entry.status for entry in queue.connection_history]
    assert history == [Status.IN_PROCESS, Status.ESTABLISH_PACKET_RECEIVED, Status.ESTABLISHED]
    assert queue.next_hops == ["IP=10.0.0.2"]
    for entry in queue.connection_history:
        assert (entry.time, entry.error, entry.addresses) == (alpha.utc, 0, ("10.0.0.2",))


@pytest.mark.requirement(
    "DMPR-3.1.1.4-02", "DMPR-3.1.1.4-03", "DMPR-3.1.1.4-05", "DMPR-3.1.1.4-06", "DMPR-3.1.1.4-07",
    "DMPR-3.1.1.4-08", "DMPR-3.1.1.4-09", "DMPR-3.1.1.4-11", "DMPR-3.1.1.4-12",
)  # fmt: skip
def test_a_queue_without_transactions_reports_nothing(harness: EngineHarness) -> None:
    info = harness.outgoing("DIRECT=HTTP://there/msmq/private$/q").transfer
    reported = [info.eod_first_non_ack, info.eod_last_ack, info.eod_last_non_ack, info.eod_next_seq]
    assert reported == [None] * 4
    counts = [info.eod_last_ack_count, info.eod_no_ack_count, info.eod_no_read_count, info.eod_resend_count]
    assert counts == [0] * 4
    assert (info.eod_last_ack_time, info.eod_resend_interval, info.eod_resend_time) == (0, 0, 0)


@pytest.mark.requirement("DMPR-3.1.1.3-11/a")
def test_while_a_connection_is_being_opened_the_queue_waits(harness: EngineHarness) -> None:
    connecting(harness)
    assert harness.outgoing(TARGET).state is State.WAITING


def test_a_session_that_nobody_uses_ends(pair: Pair) -> None:
    network, alpha, _ = pair
    alpha.send(b"1", to=TARGET)
    network.run()
    states = []
    for _ in range(100):
        network.advance(1_000)
        states.append(alpha.outgoing(TARGET).state)
        if alpha.effects_of(Disconnect):
            break
    assert set(states[:-1]) == {State.CONNECTED}
    assert states[-1] in (State.DISCONNECTED, State.INACTIVE)


@pytest.mark.requirement("DMPR-3.1.1.3-10", "DMPR-3.1.1.3-15", "DMPR-3.1.1.3-12")
def test_a_host_that_has_no_address(harness: EngineHarness) -> None:
    harness.resolve()
    queue = harness.outgoing(TARGET)
    assert queue.state is State.NEED_VALIDATION
    (entry,) = queue.connection_history
    assert (entry.status, entry.time, entry.addresses) == (Status.DNS_FAILURE, harness.utc, ())
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
def test_a_connection_that_fails_is_remembered_with_its_reason(
    harness: EngineHarness, status: ConnectionStatus
) -> None:
    harness.engine.connect_failed(connecting(harness), status)
    (entry,) = harness.outgoing(TARGET).connection_history
    assert (entry.status, entry.time, entry.addresses) == (status, harness.utc, ("10.0.0.2",))
    assert entry.error & 0x8000_0000
