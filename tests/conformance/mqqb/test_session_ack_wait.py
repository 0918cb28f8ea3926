"""Waiting for session acknowledgements: [MS-MQQB] 3.1.2.4 and 3.1.6.3, and figure 13."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.states import SessionState
from tests.support.engine_harness import PEER_ADDRESS, PEER_ID, PEER_QUEUE, EngineHarness
from tests.support.qm.harness_network import joined_pair

S = SessionState


@pytest.mark.requirement("MQQB-3.1.2.4-02", "MQQB-3.1.2.4-03", "MQQB-3.1.1.3.1-24")
@pytest.mark.parametrize(
    ("settings", "direct", "expected"),
    [
        ({}, True, 40_000),
        ({}, False, 20_000),
        ({"round_trip_delay_ms": 1_500}, False, 21_500),
        ({"ack_wait_timeout_ms": 119_000, "round_trip_delay_ms": 1_500}, True, 240_000),
        ({"direct_ack_wait_factor": 3}, True, 60_000),
    ],
)
def test_the_ack_wait_timer_starts_with_a_message(
    settings: dict[str, int], direct: bool, expected: int
) -> None:
    harness = EngineHarness(routes={PEER_ID: ["beta"]}, **settings)
    peer = harness.open_session(to=PEER_QUEUE if direct else f"PRIVATE={PEER_ID}\\00000009")
    timer = Timer.SESSION_ACK_WAIT, peer.session.number
    assert harness.time_left(*timer) == expected
    harness.advance(100)
    harness.send(to=PEER_QUEUE if direct else f"PRIVATE={PEER_ID}\\00000009")
    assert harness.time_left(*timer) == expected - 100, "it is only started when stopped"


@pytest.mark.requirement("MQQB-3.1.6.3-02", "MQQB-3.1.1.1.1.1-12", "MQQB-3.1.1.1.1.2-11")
@pytest.mark.parametrize("asked", [False, True])
def test_without_any_packet_the_session_is_closed(asked: bool) -> None:
    harness = EngineHarness(routes={PEER_ID: ["beta"]})
    if asked:
        peer = harness.accept_session(ack=20_000)
        harness.send(to=f"PRIVATE={PEER_ID}\\00000009")
    else:
        peer = harness.open_session(to=f"PRIVATE={PEER_ID}\\00000009")
    session = peer.session
    session.received_ack = False
    harness.advance(19_999)
    assert not peer.closed
    harness.advance(1)
    assert peer.closed
    assert session.state is (S.CLOSED if asked else S.WAITING_RECONNECT)


@pytest.mark.requirement("MQQB-3.1.6.3-03", "MQQB-3.1.1.3.1-23", "MQQB-3.1.1.1.1.1-12", "MQQB-3.1.1.1.1.2-11")
def test_any_packet_puts_off_the_end() -> None:
    harness = EngineHarness()
    harness.queue()
    peer = harness.open_session()
    session, timer = peer.session, (Timer.SESSION_ACK_WAIT, peer.session.number)
    session.received_ack = False
    harness.advance(39_000)
    peer.send(peer.message())
    harness.advance(1_000)
    assert session.received_ack is False
    assert harness.time_left(*timer) == 40_000
    assert peer.state is S.OPEN
    harness.advance(40_000)
    assert peer.closed


@pytest.mark.requirement("MQQB-3.1.2.4-01")
@pytest.mark.parametrize("recoverable", [False, True])
def test_unacknowledged_packets_are_resent_in_a_new_session(recoverable: bool) -> None:
    """A packet puts off the end once; silence ends the session, and the next one has all of it again."""
    harness = EngineHarness()
    harness.queue()
    peer = harness.open_session(count=3, recoverable=recoverable)
    first = peer.bodies()
    peer.send(peer.ack(ack=1, recoverable_ack=recoverable, recoverable_flags=recoverable))
    harness.advance(39_000)
    peer.send(peer.message())
    harness.advance(2_000)
    assert not peer.closed
    left = harness.time_left(Timer.SESSION_ACK_WAIT, peer.session.number)
    assert left is not None
    harness.advance(left - 1)
    assert not peer.closed
    harness.advance(1)
    assert peer.closed
    harness.advance(60_000)
    harness.resolve(PEER_ADDRESS)
    again = harness.connect()
    again.answer_handshake()
    assert again.bodies() == first[1:]
    assert again.session.message_sent_count == 2


@pytest.mark.requirement("MQQB-3.1.6.3-01", "MQQB-3.1.1.1.1.1-12", "MQQB-3.1.1.1.1.2-11")
def test_with_nothing_to_wait_for_the_timer_ends() -> None:
    harness = EngineHarness()
    peer = harness.open_session()
    peer.acknowledge()
    session, timer = peer.session, (Timer.SESSION_ACK_WAIT, peer.session.number)
    assert session.received_ack is True
    harness.advance(harness.time_left(*timer) or 0)
    assert session.received_ack is False
    assert harness.time_left(*timer) is None
    assert peer.state is S.OPEN


@pytest.mark.requirement("MQQB-3.1.5.5.5-02")
def test_a_partial_ack_restarts_the_ack_wait_timer() -> None:
    harness = EngineHarness()
    peer = harness.open_session(count=2)
    timer = Timer.SESSION_ACK_WAIT, peer.session.number
    harness.advance(10_000)
    peer.send(peer.ack(ack=1))
    assert harness.time_left(*timer) == 40_000
    harness.advance(10_000)
    peer.send(peer.ack(ack=2))
    assert harness.time_left(*timer) == 30_000, "it expires by itself"
    other = EngineHarness()
    peer = other.open_session(transactional=True)
    other.advance(10_000)
    peer.acknowledge()
    assert other.time_left(Timer.SESSION_ACK_WAIT, peer.session.number) == 30_000, (
        "an OrderAck is awaited, no session ack"
    )


@pytest.mark.requirement("MQQB-3.1.1.7.2-01", "MQQB-3.1.1.7.3-03")
def test_figure_13() -> None:
    network, alpha, beta = joined_pair(delay=1)
    queue = beta.queue()
    alpha.send(count=3)
    network.advance(15_000)
    assert network.exchanged()[4:] == [("alpha", "UserMessage")] * 3 + [("beta", "SessionAck")]
    session_header = network.log[-1].packet.session_header
    assert session_header is not None
    assert session_header.ack == 3
    assert len(queue.positions) == 3
    before = len(network.log)
    network.advance(600_000)
    assert alpha.engine.sessions == beta.engine.sessions == {}
    assert len(network.log) == before, "no packet announces the end"
