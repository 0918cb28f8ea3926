"""Establishing a protocol session as the acceptor: [MS-MQQB] 3.1.5.3, 3.1.5.4 and 3.1.5.10."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.states import SessionState
from tests.support import handmade as h
from tests.support.engine_harness import OWN_ID, PEER_ADDRESS, PEER_ID, THIRD_ID, EngineHarness

S = SessionState


@pytest.mark.requirement(
    "MQQB-3.1.5.10-01", "MQQB-3.1.5.10-02", "MQQB-3.1.1.1.1.2-01", "MQQB-3.1.3.2-19", "MQQB-3.1.2.1-02"
)
def test_a_connection_that_comes_in_begins_a_session() -> None:
    harness = EngineHarness()
    peer = harness.accept_connection()
    session = peer.session
    assert session.state is S.WAITING_EC_MSG
    assert session.remote_address == PEER_ADDRESS
    assert harness.time_left(Timer.SESSION_INITIALIZATION, session.number) == 60_000
    harness.advance(59_999)
    assert not peer.closed
    harness.advance(1)
    assert peer.closed, "a silent peer is disconnected"
    assert session.state is S.CLOSED
    assert peer.packets == []


@pytest.mark.requirement("MQQB-2.2.3.1-02", "MQQB-2.2.3.1-07", "MQQB-2.2.3.1-11")
@pytest.mark.requirement(
    "MQQB-3.1.5.3-02", "MQQB-3.1.5.3.1-01", "MQQB-3.1.5.3.1-03", "MQQB-3.1.5.3.1-04", "MQQB-3.1.5.3.1-05",
    "MQQB-3.1.5.3.1-06", "MQQB-3.1.5.3.1-07", "MQQB-3.1.5.3.1-08", "MQQB-3.1.5.3.1-10", "MQQB-3.1.1.1.1.2-03",
    "MQQB-2.2.3.1-03", "MQQB-2.2.3.1-05", "MQQB-2.2.1-08",
)  # fmt: skip
@pytest.mark.parametrize("server", [OWN_ID, UUID(int=0)])
@pytest.mark.parametrize("system", [0x0310, 0x0210, 0x0110, 0x0010])
def test_a_request_is_answered(server: UUID, system: int) -> None:
    harness = EngineHarness()
    peer = harness.accept_connection()
    peer.send(peer.establish(client=THIRD_ID, server=server, time_stamp=0xFEDC_BA98, operating_system=system))
    fields = h.establish_connection_header(
        client=THIRD_ID.bytes_le,
        server=OWN_ID.bytes_le,
        time_stamp=0xFEDC_BA98,
        operating_system=system & 0x100 | 0x210,
    )
    assert peer.take() == [h.establish_connection(fields)]
    assert peer.session.remote_guid == THIRD_ID
    assert peer.state is S.WAITING_CP_MSG


@pytest.mark.requirement("MQQB-3.1.5.3.1-08", "MQQB-3.1.5.3.1-09", "MQQB-3.1.5.3.1-10")
@pytest.mark.requirement("MQQB-3.1.5.3.1-03", "MQQB-2.2.1-08")
def test_a_request_for_another_is_refused_in_the_answer() -> None:
    harness = EngineHarness()
    peer = harness.accept_connection()
    peer.send(peer.establish(server=THIRD_ID))
    fields = h.establish_connection_header(client=PEER_ID.bytes_le, server=OWN_ID.bytes_le, time_stamp=77)
    assert peer.take() == [h.establish_connection(fields, internal=0x12)]
    assert peer.state is S.WAITING_CP_MSG
    assert not peer.closed


@pytest.mark.requirement(
    "MQQB-3.1.5.3.1-02", "MQQB-3.1.1.1.1.2-02", "MQQB-3.1.5.3.1-03", "MQQB-2.2.1-09", "MQQB-2.2.1-10"
)
@pytest.mark.parametrize(("system", "refused"), [(0x0310, True), (0x0110, True), (0x0210, False)])
@pytest.mark.parametrize("limit", [1, 2])
def test_beyond_the_limit_who_has_not_pinged_is_refused(system: int, refused: bool, limit: int) -> None:
    assert Settings().max_in_sessions == 0xFFFFFFFF
    harness = EngineHarness(max_in_sessions=limit)
    first = [harness.accept_session(client=UUID(int=number + 1)) for number in range(limit)]
    peer = harness.accept_connection()
    peer.send(peer.establish(operating_system=system))
    fields = h.establish_connection_header(
        client=PEER_ID.bytes_le,
        server=OWN_ID.bytes_le,
        time_stamp=77,
        operating_system=system & 0x100 | 0x210,
    )
    assert peer.take() == [h.establish_connection(fields, internal=0x12 if refused else 2)]
    assert peer.closed is refused
    assert not any(other.closed for other in first)
    if refused:
        assert peer.session.number not in harness.engine.sessions


@pytest.mark.requirement("MQQB-2.2.3.1-13")
def test_whether_a_caller_is_a_server_makes_no_difference() -> None:
    def sessions(system: int) -> list[tuple[bool, str]]:
        """Whether each of four callers is refused, two of them the same one, and the state of its session."""
        harness = EngineHarness(max_in_sessions=2)
        results = []
        for client in (PEER_ID, PEER_ID, THIRD_ID, UUID(int=7)):
            peer = harness.accept_connection(client=client)
            peer.send(peer.establish(operating_system=system), peer.parameters())
            results.append((peer.closed, peer.state.name))
        return results

    refused = [(False, "OPEN"), (False, "OPEN"), (True, "CLOSED"), (True, "CLOSED")]
    assert sessions(0x0310) == sessions(0x0110) == refused


@pytest.mark.requirement("MQQB-3.1.2.1-02")
@pytest.mark.requirement(
    "MQQB-3.1.5.4-02", "MQQB-3.1.5.4.1-01", "MQQB-3.1.5.4.1-02", "MQQB-3.1.5.4.1-03", "MQQB-3.1.1.1.1.2-05"
)
def test_the_parameters_of_the_one_that_asks_are_taken_over() -> None:
    harness = EngineHarness(window_size=50)
    harness.queue()
    harness.send(b"waiting", to=f"PRIVATE={PEER_ID}\\0000000a")
    peer = harness.accept_connection()
    peer.send(peer.establish())
    peer.take()
    peer.send(peer.parameters(recoverable=1_480, ack=45_000, window=33))
    fields = h.connection_parameters_header(recoverable_ack_timeout=1_480, ack_timeout=45_000, window=50)
    answer, message = peer.take()
    assert answer == h.connection_parameters(fields)
    assert message.body == b"waiting", "messages may be sent from now on"
    session = peer.session
    assert (session.received_window_size, session.ack_wait_timeout) == (33, 45_000)
    assert session.recoverable_ack_send_timeout == 1_480
    assert session.state is S.OPEN
    assert harness.time_left(Timer.SESSION_INITIALIZATION, session.number) is None
    harness.engine.session_timers.start_ack_wait(session)
    assert harness.time_left(Timer.SESSION_ACK_WAIT, session.number) == 45_000
    peer.send(peer.message())
    assert session.message_received_count == 1


# -- 2.1.1: the order of a session -------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-2.1.1-01")
def test_an_initiator_sends_no_message_before_both_exchanges() -> None:
    harness = EngineHarness()
    harness.queue()
    peer = harness.request_session(count=2)
    (request,) = peer.packets
    harness.advance(5_000)
    assert peer.kinds() == ["EstablishConnection"]
    peer.send(peer.answer(request))
    harness.send(count=1)
    harness.advance(5_000)
    assert peer.kinds() == ["ConnectionParameters"]
    peer.send(peer.parameters())
    assert peer.kinds() == ["UserMessage"] * 3
    peer.send(peer.message(b"the other way"))
    assert harness.receive(harness.find_queue()) == b"the other way"


@pytest.mark.requirement("MQQB-2.1.1-01")
def test_an_acceptor_sends_no_message_before_both_exchanges() -> None:
    harness = EngineHarness(routes={PEER_ID: ["beta"]})
    queue = harness.queue()
    peer = harness.accept_connection()
    harness.send(to=f"PRIVATE={PEER_ID}\\00000009")
    harness.advance(1_000)
    assert peer.kinds() == []
    peer.send(peer.establish(server=OWN_ID))
    harness.send(to=f"PRIVATE={PEER_ID}\\00000009")
    harness.advance(1_000)
    assert peer.kinds() == ["EstablishConnection"]
    peer.send(peer.parameters())
    assert peer.kinds() == ["ConnectionParameters", "UserMessage", "UserMessage"]
    peer.send(peer.message())
    assert len(queue.positions) == 1


@pytest.mark.requirement("MQQB-2.1.1-01")
@pytest.mark.parametrize("role", ["initiator", "acceptor"])
@pytest.mark.parametrize("kind", ["parameters", "message", "ack"])
def test_what_comes_out_of_order_ends_the_session(role: str, kind: str) -> None:
    harness = EngineHarness()
    queue = harness.queue()
    peer = harness.request_session() if role == "initiator" else harness.accept_connection()
    packet = {"parameters": peer.parameters, "message": peer.message, "ack": peer.ack}[kind]
    peer.send(packet())
    assert peer.closed
    assert len(queue.positions) == 0


@pytest.mark.requirement("MQQB-2.1.1-01")
@pytest.mark.parametrize("role", ["initiator", "acceptor"])
@pytest.mark.parametrize("kind", ["establish", "message", "ack"])
def test_what_comes_between_the_exchanges_ends_it(role: str, kind: str) -> None:
    harness = EngineHarness()
    queue = harness.queue()
    peer = harness.request_session() if role == "initiator" else harness.accept_connection()
    peer.send(peer.answer(peer.packets[0]) if role == "initiator" else peer.establish())
    assert not peer.closed
    packet = {"establish": peer.establish, "message": peer.message, "ack": peer.ack}[kind]
    peer.send(packet())
    assert peer.closed
    assert len(queue.positions) == 0


@pytest.mark.requirement("MQQB-2.1.1-01")
@pytest.mark.parametrize("role", ["initiator", "acceptor"])
def test_a_first_message_of_the_expected_size_ends_it(role: str) -> None:
    harness = EngineHarness()
    queue = harness.queue()
    peer = harness.request_session() if role == "initiator" else harness.accept_connection()
    size = len(peer.establish())
    packet = peer.message(bytes(size - len(peer.message(b"", count=False))))
    assert len(packet) == size
    peer.send(packet)
    assert peer.closed
    assert len(queue.positions) == 0


@pytest.mark.requirement("MQQB-2.2.2.1-02", "MQQB-2.2.2.1-04")
@pytest.mark.parametrize("role", ["initiator", "acceptor"])
@pytest.mark.parametrize(
    ("recoverable", "ack", "taken"),
    [
        (500, 20_000, True), (120_000, 120_000, True), (499, 20_000, False), (120_001, 20_000, False),
        (500, 19_999, False), (500, 120_001, False),
    ],
)  # fmt: skip
def test_the_times_of_the_parameters_have_limits(role: str, recoverable: int, ack: int, taken: bool) -> None:
    harness = EngineHarness()
    peer = harness.request_session() if role == "initiator" else harness.accept_connection()
    peer.send(peer.answer(peer.packets[0]) if role == "initiator" else peer.establish())
    peer.send(peer.parameters(recoverable=recoverable, ack=ack))
    assert (peer.state is S.OPEN, peer.closed) == (taken, not taken)
