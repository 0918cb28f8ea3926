"""The states of a session, in the table and in practice: [MS-MQQB] 3.1.1.1.1.1, -2, 3.1.5.9 and 3.1.6.1."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from msmqwire.qm.model.effects import Connect, Disconnect, Resolve
from msmqwire.qm.model.elements import QueueManager
from msmqwire.qm.model.enumerations import DeliveryGuarantee, OutgoingQueueState
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.states import SESSION, SessionEvent, SessionRole, SessionState
from tests.support import handmade as h
from tests.support.engine_harness import OWN_ID, PEER_ADDRESS, PEER_ID, PEER_QUEUE, THIRD_ID, EngineHarness
from tests.support.peers.handwritten_peer import HandwrittenPeer

ASKS, ASKED, S, E = SessionRole.INITIATOR, SessionRole.ACCEPTOR, SessionState, SessionEvent
Q = OutgoingQueueState
OF_A_SESSION = (
    Timer.SESSION_INITIALIZATION, Timer.SESSION_CLEANUP, Timer.SESSION_ACK_WAIT, Timer.SESSION_ACK_SEND,
    Timer.ORDER_ACK_SEND,
)  # fmt: skip

FIGURE_3 = {
    (S.CLOSED, E.START): S.WAITING_ECR_MSG,
    (S.WAITING_ECR_MSG, E.ESTABLISH_CONNECTION): S.WAITING_CPR_MSG,
    (S.WAITING_CPR_MSG, E.CONNECTION_PARAMETERS): S.OPEN,
    (S.OPEN, E.USER_MESSAGE): S.OPEN,
    (S.OPEN, E.SESSION_ACK): S.OPEN,
    (S.OPEN, E.ORDER_ACK): S.OPEN,
    (S.OPEN, E.FINAL_ACK): S.OPEN,
    **{(state, E.CLOSE): S.CLOSED for state in S},
    (S.CLOSED, E.RECONNECT_LATER): S.WAITING_RECONNECT,
    (S.WAITING_RECONNECT, E.START): S.WAITING_ECR_MSG,
}
FIGURE_4 = {
    (S.CLOSED, E.ACCEPT): S.WAITING_EC_MSG,
    (S.WAITING_EC_MSG, E.ESTABLISH_CONNECTION): S.WAITING_CP_MSG,
    (S.WAITING_CP_MSG, E.CONNECTION_PARAMETERS): S.OPEN,
    (S.OPEN, E.USER_MESSAGE): S.OPEN,
    (S.OPEN, E.SESSION_ACK): S.OPEN,
    (S.OPEN, E.ORDER_ACK): S.OPEN,
    (S.OPEN, E.FINAL_ACK): S.OPEN,
    **{(state, E.CLOSE): S.CLOSED for state in S},
}


@pytest.mark.requirement("MQQB-3.1.1.3.1-21")
@pytest.mark.requirement(
    *(f"MQQB-3.1.1.1.1.1-{row:02}" for row in (1, 4, 6, 7, 8, 13, 15)),
    *(f"MQQB-3.1.1.1.1.2-{row:02}" for row in (1, 3, 5, 6, 7, 12)),
)
def test_the_table_is_exactly_the_transitions_of_figures_3_and_4() -> None:
    for role, figure in ((ASKS, FIGURE_3), (ASKED, FIGURE_4)):
        assert {(state, event): to for (who, state, event), to in SESSION.items() if who is role} == figure


@pytest.mark.requirement("MQQB-3.1.1.3.1-21")
def test_the_states_are_these() -> None:
    assert {state.value for state in S} == {
        "OPEN", "CLOSED", "WAITING_CP_MSG", "WAITING_CPR_MSG", "WAITING_EC_MSG", "WAITING_ECR_MSG",
        "WAITING_RECONNECT",
    }  # fmt: skip


def in_state(state: SessionState, role: SessionRole) -> tuple[EngineHarness, HandwrittenPeer]:
    """A session in one of the handshake states, or open. A message waits if the harness is the initiator."""
    harness = EngineHarness()
    harness.queue()
    if role is ASKS:
        peer = harness.request_session()
        if state is not S.WAITING_ECR_MSG:
            peer.send(peer.establish(client=OWN_ID, server=PEER_ID))
    else:
        peer = harness.accept_connection()
        if state is not S.WAITING_EC_MSG:
            peer.send(peer.establish())
    if state is S.OPEN:
        peer.send(peer.parameters())
    assert peer.state is state
    peer.take()
    return harness, peer


HALFWAY = [
    (S.WAITING_ECR_MSG, ASKS),
    (S.WAITING_CPR_MSG, ASKS),
    (S.WAITING_EC_MSG, ASKED),
    (S.WAITING_CP_MSG, ASKED),
]
ANY = [*HALFWAY, (S.OPEN, ASKS), (S.OPEN, ASKED)]
EACH = pytest.mark.parametrize(("state", "role"), ANY, ids=lambda param: param.value)


def packets(peer: HandwrittenPeer) -> dict[SessionEvent, bytes]:
    return {
        E.ESTABLISH_CONNECTION: peer.establish(client=OWN_ID, server=PEER_ID),
        E.CONNECTION_PARAMETERS: peer.parameters(),
        E.USER_MESSAGE: peer.message(count=False),
        E.SESSION_ACK: peer.ack(),
        E.ORDER_ACK: h.order_ack(),
        E.FINAL_ACK: h.final_ack(),
    }


@pytest.mark.requirement(
    "MQQB-3.1.5.5-01", "MQQB-3.1.1.1.1.1-07", "MQQB-3.1.1.1.1.1-08", "MQQB-3.1.1.1.1.1-10",
    "MQQB-3.1.1.1.1.2-06", "MQQB-3.1.1.1.1.2-07", "MQQB-3.1.1.1.1.2-09",
)  # fmt: skip
@EACH
@pytest.mark.parametrize(
    "event", list(packets(HandwrittenPeer(EngineHarness(), 0, PEER_ID))), ids=lambda event: event.name
)
def test_each_packet_in_each_state(state: SessionState, role: SessionRole, event: SessionEvent) -> None:
    harness, peer = in_state(state, role)
    session = peer.session
    expected = SESSION.get((role, state, event))
    peer.send(packets(peer)[event])
    if expected is None:
        assert peer.closed
        assert session.state is (S.WAITING_RECONNECT if role is ASKS else S.CLOSED)
        assert peer.packets == [], "none of it is processed"
    else:
        assert session.state is expected
        assert not peer.closed
    assert harness.effects_of(Disconnect) == [Disconnect(peer.connection)] * (expected is None)


@pytest.mark.requirement(
    "MQQB-3.1.1.1.1.1-02", "MQQB-3.1.1.1.1.1-05", "MQQB-3.1.1.1.1.2-04", "MQQB-3.1.6.6-01", "MQQB-3.1.2.1-02"
)
@pytest.mark.parametrize(("state", "role"), HALFWAY, ids=lambda param: param.value)
def test_a_handshake_that_takes_too_long_closes_the_session(state: SessionState, role: SessionRole) -> None:
    harness, peer = in_state(state, role)
    session = peer.session
    assert harness.time_left(Timer.SESSION_INITIALIZATION, session.number) == 60_000
    harness.advance(59_999)
    assert session.state is state
    harness.advance(1)
    assert peer.closed
    assert session.state is (S.WAITING_RECONNECT if role is ASKS else S.CLOSED)


@pytest.mark.requirement("MQQB-3.1.2.1-03")
def test_each_session_has_an_initialization_timer_of_its_own() -> None:
    harness = EngineHarness()
    first = harness.accept_connection()
    harness.advance(40_000)
    second = harness.accept_connection()
    harness.advance(20_000)
    assert (first.closed, second.closed) == (True, False)
    harness.advance(40_000)
    assert second.closed


# -- 3.1.5.9: closing --------------------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.5.9-01", "MQQB-3.1.5.9-03", "MQQB-3.1.7.3-01")
@EACH
@pytest.mark.parametrize("cause", ["closed here", "the connection breaks"])
def test_closing_sends_no_packet_and_stops_all_timers(
    state: SessionState, role: SessionRole, cause: str
) -> None:
    harness, peer = in_state(state, role)
    session, other = peer.session, harness.accept_session()
    if state is S.OPEN:
        harness.send(transactional=True)
        transaction = h.transaction_header(number=1)
        peer.send(peer.message(transaction=transaction, flags=0), peer.message())
        harness.engine.session_timers.start_ack_wait(session)
        assert harness.time_left(Timer.SESSION_ACK_SEND, session.number) is not None
    peer.take()
    if cause == "closed here":
        harness.engine.close(session)
        harness.run()
    else:
        peer.disconnect()
    assert peer.packets == []
    assert harness.effects_of(Disconnect) == ([Disconnect(peer.connection)] if cause == "closed here" else [])
    for timer in OF_A_SESSION:
        assert harness.time_left(timer, session.number) is None, timer
    for transfer in harness.engine.transfers.values():
        assert harness.time_left(Timer.TRANSACTIONAL_ACK_WAIT, transfer.queue.number) is None
    assert session.state is (S.WAITING_RECONNECT if role is ASKS else S.CLOSED)
    assert other.state is S.OPEN, "other sessions are unaffected"
    assert harness.time_left(Timer.SESSION_CLEANUP, other.session.number) is not None


@pytest.mark.parametrize(
    "how", [{}, {"delivery_guarantee": DeliveryGuarantee.RECOVERABLE}, {"transactional": True}]
)
def test_an_open_session_takes_over_from_a_closed_one_at_once(how: dict[str, Any]) -> None:
    """Nothing else may come that would move it."""
    harness = EngineHarness()
    peer, other = harness.accept_session(), harness.accept_session()
    harness.send(b"1", b"2", to=f"PRIVATE={PEER_ID}\\00000007", **how)
    assert (peer.bodies(), other.bodies()) == ([b"1", b"2"], [])
    peer.disconnect()
    assert other.bodies() == [b"1", b"2"]


def test_sessions_closed_in_a_row_hand_over_without_recursion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sessions end in a row when a message can't be encrypted any more; a peer may have opened any number."""
    harness = EngineHarness()
    peers = [harness.accept_session() for _ in range(2 * sys.getrecursionlimit())]
    harness.send(b"1", to=f"PRIVATE={PEER_ID}\\00000007")
    monkeypatch.setattr(harness.engine.connecting, "_send_waiting", harness.engine.close)
    peers[0].disconnect()
    assert not any(session.is_open for session in harness.engine.sessions.values())


@pytest.mark.requirement(
    "MQQB-3.1.5.9-02", "MQQB-3.1.5.9-04", "MQQB-3.1.1.1.1.1-13", "MQQB-3.1.2.3-01", "DMPR-3.1.1.3-07"
)
def test_with_messages_left_the_initiator_reconnects_later() -> None:
    harness = EngineHarness(round_trip_delay_ms=40)
    peer = harness.open_session()
    session = peer.session
    states = []
    harness.engine.session_table.forget_connection, forget = (  # type: ignore[method-assign]
        lambda closed: (states.append(harness.outgoing().state), forget(closed))[1],
        harness.engine.session_table.forget_connection,
    )
    harness.engine.close(session)
    assert states == [Q.DISCONNECTING], "before the transport is closed"
    assert harness.outgoing().state is Q.DISCONNECTED
    assert session.state is S.WAITING_RECONNECT
    assert harness.time_left(Timer.SESSION_RETRY_CONNECT, session.number) == 5_040


@pytest.mark.requirement("MQQB-3.1.5.9-04", "MQQB-3.1.1.1.1.1-14", "MQQB-3.1.5.9-02")
def test_without_messages_the_session_ends() -> None:
    harness = EngineHarness()
    peer = harness.open_session()
    peer.acknowledge()
    harness.engine.close(peer.session)
    assert harness.outgoing().state is Q.DISCONNECTED
    assert harness.engine.sessions == {}
    harness.advance(600_000)
    assert len(harness.effects_of(Connect)) == len(harness.effects_of(Resolve)) == 1


@pytest.mark.requirement("MQQB-3.1.5.9-05", "MQQB-3.1.5.9-02", "MQQB-3.1.5.9-04")
def test_a_queue_on_hold_is_left_alone_by_closing() -> None:
    harness = EngineHarness()
    peer = harness.open_session()
    session = peer.session
    harness.core.queues.pause(harness.outgoing())
    harness.run()
    peer.disconnect()
    assert harness.outgoing().state is Q.ON_HOLD
    assert len(harness.outgoing().positions) == 1
    assert harness.time_left(Timer.SESSION_RETRY_CONNECT, session.number) is None
    harness.advance(600_000)
    assert harness.engine.sessions == {}
    assert len(harness.effects_of(Resolve)) == len(harness.effects_of(Connect)) == 1, (
        "no reconnect is scheduled"
    )


@pytest.mark.requirement("MQQB-3.1.1.1.1.2-12", "MQQB-3.1.5.9-03")
def test_the_session_of_an_acceptor_ends_with_its_connection() -> None:
    harness = EngineHarness()
    peer = harness.accept_session()
    session = peer.session
    harness.new_effects()
    peer.disconnect()
    assert session.state is S.CLOSED
    assert harness.engine.sessions == {}
    harness.advance(600_000)
    assert harness.new_effects() == []


@pytest.mark.requirement("MQQB-3-01")
def test_once_open_both_sides_send_over_the_same_connection() -> None:
    harness = EngineHarness(routes={PEER_ID: ["beta"]})
    queue = harness.queue()
    peer = harness.accept_session()
    name = f"PRIVATE={PEER_ID}\\00000009"
    harness.send(to=name)
    assert [packet.kind for packet in peer.packets] == ["UserMessage"]
    assert harness.effects_of(Connect) == []
    peer.send(peer.message())
    peer.acknowledge()
    assert len(queue.positions) == 1
    assert len(harness.outgoing(name).positions) == 0
    second = EngineHarness()
    second.queue()
    asked = second.open_session()
    asked.acknowledge()
    asked.send(asked.message())
    assert second.engine.sessions[asked.session.number].message_received_count == 1


@pytest.mark.requirement("MQQB-3-01")
def test_messages_of_a_lost_accepted_session_get_a_new_session() -> None:
    harness = EngineHarness(routes={PEER_ID: ["beta"]})
    peer = harness.accept_session()
    names = [f"PRIVATE={PEER_ID}\\0000000{number}" for number in (7, 8, 9)]
    for name in names:
        harness.send(to=name, recoverable=True)
    assert peer.kinds() == ["UserMessage"] * 3
    peer.disconnect()
    (session,) = harness.engine.sessions.values()
    assert session.role is ASKS
    assert session.state is S.WAITING_RECONNECT
    harness.advance(5_000)
    harness.resolve(PEER_ADDRESS)
    reconnected = harness.connect()
    reconnected.answer_handshake()
    assert reconnected.kinds() == ["UserMessage"] * 3


# -- 3.1.6.1: retrying -------------------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.2.3-01", "MQQB-3.1.2.3-02", "MQQB-3.1.1.1.1.1-15", "MQQB-3.1.6.1-02")
@pytest.mark.parametrize(
    ("settings", "after"), [({}, 5_000), ({"session_retry_connect_ms": 700, "round_trip_delay_ms": 25}, 725)]
)
def test_the_retry_starts_over_after_its_time(settings: dict[str, int], after: int) -> None:
    harness = EngineHarness(**settings)
    peer = harness.open_session()
    peer.disconnect()
    harness.advance(after - 1)
    assert len(harness.effects_of(Resolve)) == 1
    harness.advance(1)
    assert len(harness.effects_of(Resolve)) == 2, "addresses are resolved again"
    harness.resolve("10.0.0.77")
    second = harness.connect()
    assert harness.last_effect(Connect).address == "10.0.0.77"
    assert second.state is S.WAITING_ECR_MSG
    assert second.kinds() == ["EstablishConnection"]


@pytest.mark.requirement("MQQB-3.1.6.1-01")
def test_a_retry_without_messages_does_nothing() -> None:
    harness = EngineHarness()
    peer = harness.open_session()
    peer.disconnect()
    harness.core.messages.purge(harness.outgoing())
    harness.run()
    harness.advance(600_000)
    assert len(harness.effects_of(Resolve)) == len(harness.effects_of(Connect)) == 1


@pytest.mark.requirement("MQQB-3.1.6.1-03", "MQQB-3.1.6.1-02", "MQQB-3.1.6.1-04", "MQQB-3.1.1.3.1-03")
def test_a_retry_goes_to_the_next_address_without_resolving() -> None:
    harness = EngineHarness()
    peer = harness.request_session(addresses=(PEER_ADDRESS, "10.0.0.3", "10.0.0.4"))
    addresses = [harness.last_effect(Connect).address]
    for hop in (1, 2):
        peer.disconnect()
        harness.advance(5_000)
        peer = harness.connect()
        addresses.append(harness.last_effect(Connect).address)
        assert peer.session.hop == hop
        assert peer.session.remote_address == addresses[-1]
        assert int.from_bytes(peer.take()[0][56:58], "little") & 0x100, "SE is 1"
    assert addresses == [PEER_ADDRESS, "10.0.0.3", "10.0.0.4"]
    assert len(harness.effects_of(Resolve)) == 1
    peer.disconnect()
    harness.advance(5_000)
    assert len(harness.effects_of(Resolve)) == 2, "after the last address it starts over"


@pytest.mark.requirement("MQQB-3.1.6.1-03")
def test_a_retry_takes_name_and_guid_of_the_next_hop() -> None:
    harness = EngineHarness()
    gates = [
        QueueManager(guid, computer_name=name, qualified_computer_name=f"{name}.example")
        for guid, name in ((PEER_ID, "beta"), (THIRD_ID, "gamma"))
    ]
    harness.core.routing.get_next_hops = lambda _: gates  # type: ignore[method-assign]
    harness.send(to=f"PRIVATE={PEER_ID}\\00000009")
    for question, address in zip(harness.effects_of(Resolve), (PEER_ADDRESS, "10.0.0.4"), strict=True):
        harness.engine.resolved(question.request, [address])
    harness.run()
    harness.connect().disconnect()
    harness.advance(5_000)
    session = harness.connect().session
    assert (session.remote_address, session.remote_host_name) == ("10.0.0.4", "gamma.example")
    assert session.remote_guid == THIRD_ID


@pytest.mark.requirement("MQQB-3.1.6.1-05", "MQQB-3.1.1.6-02", "MQQB-3.1.4.1-01")
def test_what_was_not_acknowledged_is_sent_again_in_order() -> None:
    harness = EngineHarness()
    peer = harness.open_session(count=2)
    harness.send(count=2, recoverable=True)
    harness.send(count=2, transactional=True)
    first = peer.take()
    assert len(first) == 6
    peer.send(peer.ack(ack=1))
    peer.disconnect()
    harness.advance(5_000)
    harness.resolve(PEER_ADDRESS)
    reconnected = harness.connect()
    reconnected.answer_handshake()
    second = reconnected.take()
    assert [packet[56:60] for packet in second] == [packet[56:60] for packet in first[1:]]
    assert not any(packet.base_flags & h.BASE_SH for packet in second)


# -- 3.1.2.2 and 3.1.6.2: idle sessions --------------------------------------------------------------------


@pytest.mark.requirement(
    "MQQB-3.1.6.2-01",
    "MQQB-3.1.2.2-01",
    "MQQB-3.1.2.2-02",
    "MQQB-3.1.1.1.1.1-11",
    "MQQB-3.1.1.1.1.2-10",
    "MQQB-3.1.3.2-03",
)
@pytest.mark.parametrize("role", [ASKS, ASKED], ids=lambda role: role.value)
@pytest.mark.parametrize("cleanup", [300_000, 120_000])
def test_an_idle_session_is_closed(role: SessionRole, cleanup: int) -> None:
    harness = EngineHarness(session_cleanup_ms=cleanup)
    began = harness.now
    peer = harness.open_session() if role is ASKS else harness.accept_session()
    if role is ASKS:
        peer.acknowledge()
        peer.session.session_active = False
    remaining = harness.time_left(Timer.SESSION_CLEANUP, peer.session.number)
    assert remaining == cleanup - (harness.now - began)
    harness.advance(remaining - 1)
    assert peer.state is S.OPEN
    harness.advance(1)
    assert peer.closed
    assert peer.session.state is S.CLOSED


@pytest.mark.requirement("MQQB-3.1.6.2-02", "MQQB-3.1.2.2-01", "MQQB-3.1.1.3.1-22")
@pytest.mark.parametrize("event", ["sent", "received"])
def test_a_session_with_messages_is_closed_one_period_later(event: str) -> None:
    harness = EngineHarness()
    harness.queue()
    peer = harness.open_session()
    peer.acknowledge()
    session = peer.session
    session.session_active = False
    harness.advance(10_000)
    if event == "sent":
        harness.send()
        peer.acknowledge()
    else:
        peer.send(peer.message())
    assert session.session_active is True
    remaining = harness.time_left(Timer.SESSION_CLEANUP, session.number)
    assert remaining is not None
    harness.advance(remaining)
    assert session.session_active is False
    assert harness.time_left(Timer.SESSION_CLEANUP, session.number) == 300_000
    harness.advance(299_999)
    assert not peer.closed
    harness.advance(1)
    assert peer.closed


@pytest.mark.requirement("MQQB-3.1.1.1.1.1-09", "MQQB-3.1.1.1.1.2-08", "MQQB-3.1.1.6-02")
@pytest.mark.parametrize("role", [ASKS, ASKED], ids=lambda role: role.value)
def test_transactional_messages_are_resent_in_the_same_session(role: SessionRole) -> None:
    harness = EngineHarness(routes={PEER_ID: ["beta"]})
    name = PEER_QUEUE if role is ASKS else f"PRIVATE={PEER_ID}\\00000009"
    peer = harness.open_session(to=name, transactional=True) if role is ASKS else harness.accept_session()
    if role is ASKED:
        harness.send(to=name, transactional=True)
    (first,) = (packet for packet in peer.take() if packet.kind == "UserMessage")
    peer.acknowledge()
    harness.advance(30_000)
    (second,) = peer.take()
    assert second[56:60] == first[56:60]
    assert peer.state is S.OPEN
