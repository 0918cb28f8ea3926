"""Waiting for session acknowledgements: [MS-MQQB] 3.1.2.4 and 3.1.6.3, and figure 13."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.states import SessionState
from tests.support.engine_desk import (
    DIRECT,
    OTHER,
    Desk,
    header,
)
from tests.support.engine_pair import Pair

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
    desk = Desk(routes={OTHER: ["beta"]}, **settings)
    peer = desk.dialled(DIRECT if direct else f"PRIVATE={OTHER}\\00000009")
    timer = Timer.SESSION_ACK_WAIT, peer.session.number
    assert desk.left(*timer) == expected
    desk.advance(100)
    desk.send(DIRECT if direct else f"PRIVATE={OTHER}\\00000009")
    assert desk.left(*timer) == expected - 100, "it is started only if it is stopped"


@pytest.mark.requirement("MQQB-3.1.2.4-01", "MQQB-3.1.6.3-02", "MQQB-3.1.1.1.1.1-12", "MQQB-3.1.1.1.1.2-11")
@pytest.mark.parametrize("asked", [False, True])
def test_without_any_packet_the_session_is_closed(asked: bool) -> None:
    desk = Desk(routes={OTHER: ["beta"]})
    if asked:
        peer = desk.rung(ack=20_000)
        desk.send(f"PRIVATE={OTHER}\\00000009")
    else:
        peer = desk.dialled(f"PRIVATE={OTHER}\\00000009")
    session = peer.session
    session.received_ack = False
    desk.advance(19_999)
    assert not peer.closed
    desk.advance(1)
    assert peer.closed
    assert session.state is (S.CLOSED if asked else S.WAITING_RECONNECT)


@pytest.mark.requirement("MQQB-3.1.6.3-03", "MQQB-3.1.2.4-01", "MQQB-3.1.1.3.1-23")
def test_any_packet_puts_off_the_end() -> None:
    desk = Desk()
    desk.queue()
    peer = desk.dialled()
    session, timer = peer.session, (Timer.SESSION_ACK_WAIT, peer.session.number)
    session.received_ack = False
    desk.advance(39_000)
    peer.send(peer.message())
    desk.advance(1_000)
    assert session.received_ack is False
    assert desk.left(*timer) == 40_000
    assert peer.state is S.OPEN
    desk.advance(40_000)
    assert peer.closed


@pytest.mark.requirement("MQQB-3.1.6.3-01")
def test_with_nothing_to_wait_for_the_timer_ends() -> None:
    desk = Desk()
    peer = desk.dialled()
    peer.acknowledge()
    session, timer = peer.session, (Timer.SESSION_ACK_WAIT, peer.session.number)
    assert session.received_ack is True
    desk.advance(desk.left(*timer) or 0)
    assert session.received_ack is False
    assert desk.left(*timer) is None
    assert peer.state is S.OPEN


@pytest.mark.requirement("MQQB-3.1.5.5.5-02")
def test_an_acknowledgement_starts_the_timer_again_while_others_are_missing() -> None:
    desk = Desk()
    peer = desk.dialled(count=2)
    timer = Timer.SESSION_ACK_WAIT, peer.session.number
    desk.advance(10_000)
    peer.send(peer.ack(ack=1))
    assert desk.left(*timer) == 40_000
    desk.advance(10_000)
    peer.send(peer.ack(ack=2))
    assert desk.left(*timer) == 30_000, "it runs out by itself"
    other = Desk()
    peer = other.dialled(transactional=True)
    other.advance(10_000)
    peer.acknowledge()
    assert other.left(Timer.SESSION_ACK_WAIT, peer.session.number) == 30_000, (
        "an OrderAck is awaited, no session ack"
    )


@pytest.mark.requirement("MQQB-3.1.1.7.2-01")
def test_figure_13() -> None:
    pair = Pair(delay=1)
    queue = pair.beta.queue()
    pair.alpha.send(count=3)
    pair.advance(15_000)
    assert pair.heard()[4:] == [("alpha", "UM")] * 3 + [("beta", "SA")]
    found = header(pair.wire[-1][1])
    assert found is not None
    assert found.ack == 3
    assert len(queue.positions) == 3
    before = len(pair.wire)
    pair.advance(600_000)
    assert pair.alpha.engine.sessions == pair.beta.engine.sessions == {}
    assert len(pair.wire) == before, "no packet tells of the end"
