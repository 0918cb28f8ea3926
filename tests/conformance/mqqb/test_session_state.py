"""The elements of a session, their first values, and queues on hold: [MS-MQQB] 3.1.1.3.1 and 3.1.3.2."""

from __future__ import annotations

from dataclasses import fields

import pytest

from msmqwire.qm.model.effects import Connect, Resolve
from msmqwire.qm.model.elements import SequenceInfo
from msmqwire.qm.model.enumerations import OutgoingQueueState
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.states import MessageState, SessionState
from tests.support import handmade as h
from tests.support.engine_desk import OTHER, OWN, THERE, Desk, Header, Peer, header, kind
from tests.support.engine_pair import Pair

S, Q = SessionState, OutgoingQueueState
TX = h.transaction_header
SECOND = r"DIRECT=TCP:10.0.0.2\private$\second"


def used(desk: Desk) -> Peer:
    """A session over which everything has happened, and that the initiator has lost."""
    desk.queue()
    desk.queue("tx", transactional=True)
    peer = desk.dialled(count=3)
    desk.send(recoverable=True, count=2)
    desk.send(transactional=True)
    peer.send(peer.message(), peer.message(recoverable=True), peer.message("tx", transaction=TX()))
    peer.send(peer.ack(ack=1))
    return peer


def again(desk: Desk, peer: Peer) -> Peer:
    peer.drop()
    desk.advance(5_000)
    desk.resolve(THERE)
    return desk.connect()


# -- 3.1.3.2 -----------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "MQQB-3.1.3.2-01", "MQQB-3.1.3.2-09", "MQQB-3.1.3.2-12", "MQQB-3.1.3.2-14", "MQQB-3.1.3.2-15",
    "MQQB-3.1.3.2-08",
    *(f"MQQB-3.1.1.3.1-{row:02}" for row in (5, 6, 7, 8, 9, 10, 11, 19, 22, 23, 24, 25, 31, 33)),
)  # fmt: skip
@pytest.mark.parametrize("new", [True, False], ids=["a new session", "the same one, connected again"])
def test_every_session_begins_with_the_same_values(new: bool) -> None:
    desk = Desk()
    if new:
        peer = desk.ring()
    else:
        lost = used(desk)
        session = lost.session
        assert session.message_sent_count
        assert session.recoverable_message_sent_count
        assert session.message_received_count
        assert session.recoverable_message_received_count
        assert session.recoverable_ack_flags
        assert session.unacked_received_count
        assert session.session_active
        assert session.received_ack
        assert session.direct_format_session
        peer = again(desk, lost)
        assert peer.session is session
    session = peer.session
    assert (session.message_sent_count, session.recoverable_message_sent_count) == (0, 0)
    assert (session.message_received_count, session.recoverable_message_received_count) == (0, 0)
    assert (session.last_acked_recoverable, session.unacked_received_count) == (0, 0)
    assert session.recoverable_ack_flags == 0
    assert session.session_active is False
    assert session.received_ack is False
    assert session.direct_format_session is False
    assert session.window_size == 64
    assert session.ack_wait_timeout == 20_000
    assert session.recoverable_ack_send_timeout == 0xFFFF_FFFF
    assert session.last_order_ack_send_time == desk.utc


@pytest.mark.requirement("MQQB-3.1.3.2-02", "MQQB-3.1.3.2-03")
def test_timers_at_the_beginning_of_a_session() -> None:
    desk = Desk()
    peer = again(desk, used(desk))
    number = peer.session.number
    for timer in (Timer.SESSION_ACK_WAIT, Timer.SESSION_ACK_SEND, Timer.ORDER_ACK_SEND):
        assert desk.left(timer, number) is None
    assert desk.left(Timer.TRANSACTIONAL_ACK_WAIT, desk.outgoing().number) is None
    assert desk.left(Timer.SESSION_CLEANUP, number) == 300_000


@pytest.mark.requirement("MQQB-3.1.3.2-05", "MQQB-3.1.1.3.1-18", "MQQB-3.1.1.3.1.1-02", "MQQB-3.1.1.3.1.1-03")
def test_each_session_begins_a_new_outgoing_transfer_sequence() -> None:
    desk = Desk()
    peer = desk.dialled(transactional=True, count=2)
    transfer = desk.transfer()
    sequence = transfer.sequence_id
    peer.acknowledge()
    desk.advance(30_000)  # sent again: the next interval
    assert transfer.resend_index == 1
    peer.acknowledge()
    body = h.order_ack_body(ordinal=sequence.ordinal, time_stamp=sequence.time_stamp, number=1)
    peer.sent += 1
    peer.send(h.order_ack(body))
    transfer.resend_index = 4
    assert transfer.last_ack == SequenceInfo(sequence, 1, 0)
    assert transfer.last_ack_count == 1
    peer = again(desk, peer)
    assert transfer.last_ack.number == 0
    assert transfer.time_of_last_ack == desk.utc
    assert (transfer.last_ack_count, transfer.resend_index, transfer.resend_time) == (0, 0, 0)
    peer.accept()
    assert desk.left(Timer.TRANSACTIONAL_ACK_WAIT, desk.outgoing().number) == 30_000
    (packet,) = peer.take()
    assert packet.find(TX(ordinal=sequence.ordinal, time_stamp=sequence.time_stamp, number=2)[4:16]) > 0, (
        "it keeps its number"
    )


@pytest.mark.requirement("MQQB-3.1.3.2-07", "MQQB-3.1.1.3.1-28")
def test_many_waiting_messages_do_not_use_up_the_window() -> None:
    desk = Desk()
    peer = desk.dialled(count=200)
    assert peer.kinds() == " ".join(["UM"] * 64)
    assert peer.session.unacked_message_count == 64
    peer = again(desk, peer)
    assert peer.session.unacked_message_count == 0
    peer.accept()
    assert peer.kinds() == " ".join(["UM"] * 64)
    for _ in range(10):
        peer.acknowledge()
    assert len(desk.transfer().table) == 0


@pytest.mark.requirement("MQQB-3.1.3.2-10", "MQQB-3.1.1.3.1-24")
@pytest.mark.parametrize(
    ("configured", "delay", "expected"),
    [
        (20_000, 0, 20_000),
        (20_000, 750, 20_750),
        (1, 0, 20_000),
        (200_000, 0, 120_000),
        (119_999, 5, 120_000),
    ],
)
def test_the_ack_wait_timeout_comes_from_the_settings_within_its_range(
    configured: int, delay: int, expected: int
) -> None:
    desk = Desk(ack_wait_timeout_ms=configured, round_trip_delay_ms=delay)
    peer = desk.dial()
    peer.take()
    peer.send(peer.establish(client=OWN, server=OTHER))
    assert peer.session.ack_wait_timeout == expected
    assert int.from_bytes(peer.packets[0][24:28], "little") == expected


@pytest.mark.requirement(
    "MQQB-3.1.3.2-11", "MQQB-3.1.1.3.1-32", "MQQB-3.1.2.7-01", "MQQB-3.1.2.7-03", "MQQB-3.1.3.2-13"
)
def test_order_acknowledgements_wait_for_half_a_second() -> None:
    assert Settings().order_ack_timeout_ms == 500
    assert Settings().maximum_order_ack_delay_s == 10
    desk = Desk()
    desk.queue("tx", transactional=True)
    peer = desk.rung()
    assert desk.left(Timer.ORDER_ACK_SEND, peer.session.number) is None
    peer.send(peer.message("tx", transaction=TX()))
    assert desk.left(Timer.ORDER_ACK_SEND, peer.session.number) == 500
    desk.advance(499)
    assert peer.packets == []
    desk.advance(1)
    assert peer.kinds() == "UM"


@pytest.mark.requirement(
    "MQQB-3.1.2.7-02", "MQQB-3.1.3.2-13", "MQQB-3.1.3.2-14", "MQQB-3.1.1.3.1-33", "MQQB-3.1.1.3.1-34"
)
def test_order_acknowledgements_are_put_off_for_ten_seconds_at_most() -> None:
    desk = Desk()
    desk.queue("tx", transactional=True)
    peer = desk.rung()
    began = desk.now
    number = 0
    while not any(kind(packet) == "UM" for packet in peer.take()):
        number += 1
        peer.send(peer.message("tx", transaction=TX(number=number, previous=number - 1)))
        assert desk.now - began < 20_000
        desk.advance(400)
    assert desk.now - began == 10_400, "the first one counts from the start of the session"
    assert peer.session.last_order_ack_send_time == desk.utc


@pytest.mark.requirement(
    "MQQB-3.1.2.6-01", "MQQB-3.1.2.6-02", "MQQB-3.1.2.6-03", "MQQB-3.1.1.3.1.1-04", "MQQB-3.1.1.3.1.1-06"
)
def test_the_transactional_ack_wait_timer() -> None:
    desk = Desk(resend_timer_table=(7, 11))
    peer = desk.dialled()
    key, transfer = desk.outgoing().number, desk.transfer()
    assert desk.left(Timer.TRANSACTIONAL_ACK_WAIT, key) is None
    desk.advance(2_000)
    desk.send(transactional=True)
    peer.take()
    assert desk.left(Timer.TRANSACTIONAL_ACK_WAIT, key) == 7_000
    assert transfer.resend_time == desk.utc + 7
    peer.acknowledge()
    desk.advance(6_999)
    assert peer.packets == []
    desk.advance(1)
    assert peer.kinds() == "UM"
    assert desk.left(Timer.TRANSACTIONAL_ACK_WAIT, key) == 11_000
    assert transfer.resend_time == desk.utc + 11


# -- 3.1.1.3.1 ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.1.3.1-01", "MQQB-3.1.1.4-01")
def test_each_side_counts_for_itself() -> None:
    pair = Pair()
    pair.beta.queue()
    pair.alpha.send(count=3, recoverable=True)
    pair.run()
    (alpha,) = pair.alpha.engine.sessions.values()
    (beta,) = pair.beta.engine.sessions.values()
    assert (alpha.message_sent_count, alpha.message_received_count) == (3, 0)
    assert (beta.message_sent_count, beta.message_received_count) == (0, 3)
    assert (alpha.recoverable_ack_flags, beta.recoverable_ack_flags) == (0, 0b111)
    assert not {id(getattr(alpha, name)) for name in ("in_flight", "unsaved", "framer")} & {
        id(getattr(beta, name)) for name in ("in_flight", "unsaved", "framer")
    }


@pytest.mark.requirement("MQQB-3.1.1.3.1-31", "MQQB-3.1.3.2-12")
@pytest.mark.parametrize("direct", [True, False])
def test_how_the_sender_named_the_queue_decides_the_name_of_its_order_queue(direct: bool) -> None:
    desk = Desk()
    queue = desk.queue("tx", transactional=True)
    peer = desk.rung()
    packet = peer.message("tx", transaction=TX())
    if not direct:
        user = h.user_header(
            source=OTHER.bytes_le, address=OWN.bytes_le, flags=h.MP | 0x20, sent_time=desk.utc,
            destination=(3, h.private_id(queue.private_queue_number)),
        )  # fmt: skip
        packet = h.user_message(user=user, transaction=TX())
    peer.send(packet)
    assert peer.session.direct_format_session is direct
    desk.advance(500)
    (ack,) = peer.take()
    form = int.from_bytes(ack[60:64], "little") >> 10 & 7
    assert form == (7 if direct else 3)
    if direct:
        name = ack[66 : 64 + 2 + int.from_bytes(ack[64:66], "little")].decode("utf-16-le")
        assert name.lower() == "tcp:10.0.0.2\\private$\\order_queue$\0"


@pytest.mark.requirement(
    "MQQB-3.1.1.3.1-29",
    "MQQB-3.1.1.3.1.2-01",
    "MQQB-3.1.1.3.1.2-02",
    "MQQB-3.1.1.3.1.2-03",
    "MQQB-3.1.1.3.1.2-05",
)
def test_entries_of_the_table_begin_with_nothing() -> None:
    desk = Desk()
    assert desk.transfer().table == {}
    first, second = desk.send(count=2)
    entries = list(desk.transfer().table.values())
    assert [entry.position.message for entry in entries] == [first, second]
    for entry in entries:
        assert (entry.sequence_number, entry.recoverable_sequence_number, entry.tx_sequence_number) == (
            0,
            0,
            0,
        )
        assert (entry.session, entry.transmitted) == (None, False)
        assert (entry.received_session_ack, entry.received_order_ack) == (False, False)
        assert entry.state is MessageState.WAITING_TO_SEND
    desk.resolve(THERE)
    peer = desk.connect()
    peer.accept()
    assert [(entry.session, entry.transmitted, entry.sequence_number) for entry in entries] == [
        (peer.session, True, 1), (peer.session, True, 2),
    ]  # fmt: skip


@pytest.mark.requirement("MQQB-3.1.2-01")
def test_there_are_these_timers() -> None:
    names = {timer.value for timer in Timer}
    assert names >= {
        "Session Initialization Timer", "Session Cleanup Timer", "Session Retry Connect Timer",
        "Session Ack Wait Timer",
        "Session Ack Send Timer", "Transactional Ack Wait Timer", "Order Ack Send Timer",
        "MessageIDHistory Cleanup Timer",
        "Ping Response Timer",
    }  # fmt: skip
    defaults = {field.name: field.default for field in fields(Settings)}
    assert defaults["session_initialization_ms"] == 60_000
    assert defaults["session_cleanup_ms"] == 300_000
    assert defaults["session_retry_connect_ms"] == 5_000
    assert defaults["message_id_history_cleanup_ms"] == 1_800_000
    assert defaults["ping_response_ms"] == 1_000


# -- 3.1.7.13 and 3.1.7.14: on hold ------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.7-01", "MQQB-3.1.7.13-01", "MQQB-3.1.7.13-02")
def test_pausing_tells_the_peer_to_slow_down() -> None:
    desk = Desk()
    desk.queue()
    peer = desk.dialled(recoverable=True)
    peer.send(peer.message(recoverable=True), peer.message(), peer.message(recoverable=True))
    session = peer.session
    peer.take()
    assert desk.left(Timer.SESSION_ACK_SEND, session.number) is not None
    desk.core.queues.pause(desk.outgoing())
    desk.take()
    (packet,) = peer.take()
    assert packet == h.session_ack(
        h.session_header(
            ack=3, recoverable_ack=1, recoverable_flags=0b11, sent=1, recoverable_sent=1, window=1
        )
    )
    assert desk.left(Timer.SESSION_ACK_SEND, session.number) is None
    assert (session.recoverable_ack_flags, session.unacked_received_count) == (0, 0)
    assert session.last_acked_recoverable == 2
    assert session.session_active is False
    assert session.window_size == 64, "its own window is as before"


@pytest.mark.requirement("MQQB-3.1.7-01", "MQQB-3.1.7.13-03")
def test_a_queue_on_hold_sends_nothing_more() -> None:
    desk = Desk(window_size=2)
    peer = desk.dialled(count=5)
    assert peer.kinds() == "UM UM"
    desk.core.queues.pause(desk.outgoing())
    assert desk.outgoing().state is Q.ON_HOLD
    desk.send(count=2)
    desk.take()
    peer.take()
    peer.acknowledge()
    desk.advance(10_000)
    assert "UM" not in peer.kinds()
    assert len(desk.core.dispatch) == 0
    desk.send(SECOND)
    assert peer.kinds() == "UM", "other queues that the session serves go on"


@pytest.mark.requirement("MQQB-3.1.7-01", "MQQB-3.1.7.14-02")
def test_resuming_sends_what_waits_and_nothing_twice() -> None:
    desk = Desk()
    peer = desk.dialled(count=2)
    desk.send(transactional=True)
    desk.core.queues.pause(desk.outgoing())
    desk.send(count=3)
    peer.take()
    desk.core.queues.resume(desk.outgoing())
    desk.take()
    assert desk.outgoing().state is Q.CONNECTED
    assert peer.kinds() == "UM UM UM"
    assert peer.session.session_active is True
    assert len(desk.of(Connect)) == 1
    established = [entry.status.value for entry in desk.outgoing().connection_history]
    assert established.count("Established") == 1, "nothing was established anew"


@pytest.mark.requirement("MQQB-3.1.7.14-01")
@pytest.mark.parametrize("waiting", [True, False])
def test_resuming_connects_when_there_is_anything_to_send(waiting: bool) -> None:
    desk = Desk()
    peer = desk.dialled(count=1)
    if not waiting:
        peer.acknowledge()
    desk.core.queues.pause(desk.outgoing())
    peer.drop()
    desk.advance(60_000)
    assert len(desk.of(Resolve)) == 1
    desk.core.queues.resume(desk.outgoing())
    desk.take()
    assert len(desk.of(Resolve)) == 1 + waiting
    if waiting:
        desk.resolve(THERE)
        second = desk.connect()
        second.accept()
        assert second.kinds() == "UM"


def test_a_header_of_a_paused_queue_is_understood_by_the_peer() -> None:
    pair = Pair()
    pair.beta.queue()
    pair.alpha.send(count=1)
    pair.run()
    pair.alpha.core.queues.pause(pair.alpha.outgoing())
    pair.run()
    (session,) = pair.beta.engine.sessions.values()
    assert session.received_window_size == 1
    assert session.is_open
    last = [packet for who, packet in pair.wire if who == "alpha"][-1]
    assert header(last) == Header(0, 0, 0, 1, 0, 1, 0)
