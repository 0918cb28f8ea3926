"""The elements of a session, their initial values, and queues on hold: [MS-MQQB] 3.1.1.3.1 and 3.1.3.2."""

from __future__ import annotations

from dataclasses import fields

import pytest

from msmqwire.qm.model.effects import Connect, Resolve
from msmqwire.qm.model.elements import SequenceInfo
from msmqwire.qm.model.enumerations import OutgoingQueueState
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.states import SessionMessageState, SessionState
from tests.support import handmade as h
from tests.support.engine_harness import OWN_ID, PEER_ADDRESS, PEER_ID, EngineHarness
from tests.support.peers.handwritten_peer import HandwrittenPeer
from tests.support.qm.harness_network import joined_pair
from tests.support.qm.received_packets import SessionHeader

S, Q = SessionState, OutgoingQueueState
TX = h.transaction_header
SECOND = r"DIRECT=TCP:10.0.0.2\private$\second"


def used(harness: EngineHarness) -> HandwrittenPeer:
    """A session that has seen every kind of traffic and that the initiator has lost."""
    harness.queue()
    harness.queue("tx", transactional=True)
    peer = harness.open_session(count=3)
    harness.send(recoverable=True, count=2)
    harness.send(transactional=True)
    peer.send(peer.message(), peer.message(recoverable=True), peer.message(queue="tx", transaction=TX()))
    peer.send(peer.ack(ack=1))
    return peer


def again(harness: EngineHarness, peer: HandwrittenPeer) -> HandwrittenPeer:
    peer.disconnect()
    harness.advance(5_000)
    harness.resolve(PEER_ADDRESS)
    return harness.connect()


# -- 3.1.3.2 -----------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "MQQB-3.1.3.2-01", "MQQB-3.1.3.2-09", "MQQB-3.1.3.2-12", "MQQB-3.1.3.2-14", "MQQB-3.1.3.2-15",
    "MQQB-3.1.3.2-08",
    *(f"MQQB-3.1.1.3.1-{row:02}" for row in (5, 6, 7, 8, 9, 10, 11, 22, 23, 24, 25, 31, 33)),
)  # fmt: skip
@pytest.mark.parametrize("new", [True, False], ids=["a new session", "the same one, connected again"])
def test_every_session_begins_with_the_same_values(new: bool) -> None:
    harness = EngineHarness()
    if new:
        peer = harness.accept_connection()
    else:
        lost = used(harness)
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
        peer = again(harness, lost)
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
    assert session.last_order_ack_send_time == harness.utc


@pytest.mark.requirement("MQQB-3.1.3.2-02", "MQQB-3.1.3.2-03")
def test_timers_at_the_beginning_of_a_session() -> None:
    harness = EngineHarness()
    peer = again(harness, used(harness))
    number = peer.session.number
    for timer in (Timer.SESSION_ACK_WAIT, Timer.SESSION_ACK_SEND, Timer.ORDER_ACK_SEND):
        assert harness.time_left(timer, number) is None
    assert harness.time_left(Timer.TRANSACTIONAL_ACK_WAIT, harness.outgoing().number) is None
    assert harness.time_left(Timer.SESSION_CLEANUP, number) == 300_000


@pytest.mark.requirement("MQQB-3.1.3.2-02")
def test_timers_that_still_run_are_stopped_at_the_beginning() -> None:
    harness = EngineHarness()
    peer = used(harness)
    number, queue = peer.session.number, harness.outgoing().number
    peer.disconnect()
    harness.advance(5_000)
    harness.resolve(PEER_ADDRESS)
    running = [
        (Timer.SESSION_ACK_WAIT, number), (Timer.SESSION_ACK_SEND, number), (Timer.ORDER_ACK_SEND, number),
        (Timer.TRANSACTIONAL_ACK_WAIT, queue),
    ]  # fmt: skip
    for timer in running:
        harness.core.context.timers.start(*timer, 100_000, lambda: None)
    harness.connect()
    assert [harness.time_left(*timer) for timer in running] == [None] * 4


@pytest.mark.requirement("MQQB-3.1.3.2-05", "MQQB-3.1.1.3.1-18", "MQQB-3.1.1.3.1.1-02", "MQQB-3.1.1.3.1.1-03")
def test_each_session_begins_a_new_outgoing_transfer_sequence() -> None:
    harness = EngineHarness()
    peer = harness.open_session(transactional=True, count=2)
    transfer = harness.transfer()
    sequence = transfer.sequence_id
    peer.acknowledge()
    harness.advance(30_000)  # resent: the next interval
    assert transfer.resend_index == 1
    peer.acknowledge()
    body = h.order_ack_body(ordinal=sequence.ordinal, time_stamp=sequence.time_stamp, number=1)
    peer.sent += 1
    peer.send(h.order_ack(body))
    transfer.resend_index = 4
    assert transfer.last_ack == SequenceInfo(sequence, 1, 0)
    assert transfer.last_ack_count == 1
    peer = again(harness, peer)
    assert transfer.last_ack.number == 0
    assert transfer.time_of_last_ack == harness.utc
    assert (transfer.last_ack_count, transfer.resend_index, transfer.resend_time) == (0, 0, 0)
    peer.answer_handshake()
    assert harness.time_left(Timer.TRANSACTIONAL_ACK_WAIT, harness.outgoing().number) == 30_000
    (packet,) = peer.take()
    assert packet.find(TX(ordinal=sequence.ordinal, time_stamp=sequence.time_stamp, number=2)[4:16]) > 0, (
        "it keeps its number"
    )


@pytest.mark.requirement("MQQB-3.1.3.2-07", "MQQB-3.1.1.3.1-28")
def test_many_waiting_messages_do_not_use_up_the_window() -> None:
    harness = EngineHarness()
    peer = harness.open_session(count=200)
    assert peer.kinds() == ["UserMessage"] * 64
    assert peer.session.unacked_message_count == 64
    peer = again(harness, peer)
    assert peer.session.unacked_message_count == 0
    peer.answer_handshake()
    assert peer.kinds() == ["UserMessage"] * 64
    for _ in range(10):
        peer.acknowledge()
    assert len(harness.transfer().table) == 0


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
def test_the_ack_wait_timeout_setting_is_kept_within_its_range(
    configured: int, delay: int, expected: int
) -> None:
    harness = EngineHarness(ack_wait_timeout_ms=configured, round_trip_delay_ms=delay)
    peer = harness.request_session()
    peer.take()
    peer.send(peer.establish(client=OWN_ID, server=PEER_ID))
    assert peer.session.ack_wait_timeout == expected
    assert int.from_bytes(peer.packets[0][24:28], "little") == expected


@pytest.mark.requirement(
    "MQQB-3.1.3.2-11", "MQQB-3.1.1.3.1-32", "MQQB-3.1.2.7-01", "MQQB-3.1.2.7-03", "MQQB-3.1.3.2-13"
)
def test_order_acknowledgements_wait_for_half_a_second() -> None:
    assert Settings().order_ack_timeout_ms == 500
    assert Settings().maximum_order_ack_delay_s == 10
    harness = EngineHarness()
    harness.queue("tx", transactional=True)
    peer = harness.accept_session(recoverable=1_000)
    assert harness.time_left(Timer.ORDER_ACK_SEND, peer.session.number) is None
    peer.send(peer.message(queue="tx", transaction=TX()))
    assert harness.time_left(Timer.ORDER_ACK_SEND, peer.session.number) == 500
    harness.advance(499)
    assert peer.packets == []
    harness.advance(1)
    assert peer.kinds() == ["OrderAck"]


@pytest.mark.requirement(
    "MQQB-3.1.2.7-02", "MQQB-3.1.3.2-13", "MQQB-3.1.3.2-14", "MQQB-3.1.1.3.1-33", "MQQB-3.1.1.3.1-34"
)
def test_order_acks_are_delayed_for_ten_seconds_at_most() -> None:
    harness = EngineHarness()
    harness.queue("tx", transactional=True)
    peer = harness.accept_session(recoverable=1_000)
    began = harness.now
    number = 0
    while not any(packet.kind == "OrderAck" for packet in peer.take()):
        number += 1
        peer.send(peer.message(queue="tx", transaction=TX(number=number, previous=number - 1)))
        assert harness.now - began < 20_000
        harness.advance(400)
    assert harness.now - began == 10_400, "the first interval runs from the start of the session"
    assert peer.session.last_order_ack_send_time == harness.utc


@pytest.mark.requirement(
    "MQQB-3.1.2.6-01", "MQQB-3.1.2.6-02", "MQQB-3.1.2.6-03", "MQQB-3.1.1.3.1.1-04", "MQQB-3.1.1.3.1.1-06"
)
def test_the_transactional_ack_wait_timer() -> None:
    harness = EngineHarness(resend_timer_table=(7, 11))
    peer = harness.open_session()
    key, transfer = harness.outgoing().number, harness.transfer()
    assert harness.time_left(Timer.TRANSACTIONAL_ACK_WAIT, key) is None
    harness.advance(2_000)
    harness.send(transactional=True)
    peer.take()
    assert harness.time_left(Timer.TRANSACTIONAL_ACK_WAIT, key) == 7_000
    assert transfer.resend_time == harness.utc + 7
    peer.acknowledge()
    harness.advance(6_999)
    assert peer.packets == []
    harness.advance(1)
    assert peer.kinds() == ["UserMessage"]
    assert harness.time_left(Timer.TRANSACTIONAL_ACK_WAIT, key) == 11_000
    assert transfer.resend_time == harness.utc + 11


# -- 3.1.1.3.1 ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.1.3.1-01", "MQQB-3.1.1.4-01")
def test_each_side_counts_for_itself() -> None:
    network, alpha, beta = joined_pair()
    beta.queue()
    alpha.send(count=3, recoverable=True)
    network.run()
    (session,) = alpha.engine.sessions.values()
    (opposite,) = beta.engine.sessions.values()
    assert (session.message_sent_count, session.message_received_count) == (3, 0)
    assert (opposite.message_sent_count, opposite.message_received_count) == (0, 3)
    assert (session.recoverable_ack_flags, opposite.recoverable_ack_flags) == (0, 0b111)
    assert not {id(getattr(session, name)) for name in ("in_flight", "unsaved", "framer")} & {
        id(getattr(opposite, name)) for name in ("in_flight", "unsaved", "framer")
    }


@pytest.mark.requirement("MQQB-3.1.1.3.1-31", "MQQB-3.1.3.2-12")
@pytest.mark.parametrize("direct", [True, False])
def test_the_order_queue_is_named_in_the_form_of_the_destination(direct: bool) -> None:
    """A direct name gets a direct name, and a private one a private one."""
    harness = EngineHarness()
    queue = harness.queue("tx", transactional=True)
    peer = harness.accept_session(recoverable=1_000)
    packet = peer.message(queue="tx", transaction=TX())
    if not direct:
        user = h.user_header(
            source=PEER_ID.bytes_le, address=OWN_ID.bytes_le, flags=h.MP | 0x20, sent_time=harness.utc,
            destination=(3, h.private_id(queue.private_queue_number)),
        )  # fmt: skip
        packet = h.user_message(user=user, transaction=TX())
    peer.send(packet)
    assert peer.session.direct_format_session is direct
    harness.advance(500)
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
    harness = EngineHarness()
    assert harness.transfer().table == {}
    first, second = harness.send(count=2)
    entries = list(harness.transfer().table.values())
    assert [entry.position.message for entry in entries] == [first, second]
    for entry in entries:
        assert (entry.sequence_number, entry.recoverable_sequence_number, entry.tx_sequence_number) == (
            0,
            0,
            0,
        )
        assert (entry.session, entry.transmitted) == (None, False)
        assert (entry.received_session_ack, entry.received_order_ack) == (False, False)
        assert entry.state is SessionMessageState.WAITING_TO_SEND
    harness.resolve(PEER_ADDRESS)
    peer = harness.connect()
    peer.answer_handshake()
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
        "Ping Response Timer", "ReceiveSymmetricKeyCache Cleanup Timer",
        "SendSymmetricKeyCache Cleanup Timer", "SendBaseSymmetricKeyCache Cleanup Timer",
        "UserCertCache Cleanup Timer",
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
    harness = EngineHarness()
    harness.queue()
    peer = harness.open_session(recoverable=True)
    peer.send(peer.message(recoverable=True), peer.message(), peer.message(recoverable=True))
    session = peer.session
    peer.take()
    assert harness.time_left(Timer.SESSION_ACK_SEND, session.number) is not None
    harness.core.queues.pause(harness.outgoing())
    harness.run()
    (packet,) = peer.take()
    assert packet == h.session_ack(
        h.session_header(
            ack=3, recoverable_ack=1, recoverable_flags=0b11, sent=1, recoverable_sent=1, window=1
        )
    )
    assert harness.time_left(Timer.SESSION_ACK_SEND, session.number) is None
    assert (session.recoverable_ack_flags, session.unacked_received_count) == (0, 0)
    assert session.last_acked_recoverable == 2
    assert session.session_active is False
    assert session.window_size == 64, "its own window is unchanged"


@pytest.mark.requirement("MQQB-3.1.7-01", "MQQB-3.1.7.13-03")
def test_a_queue_on_hold_sends_nothing_more() -> None:
    harness = EngineHarness(window_size=2)
    peer = harness.open_session(count=5)
    assert peer.kinds() == ["UserMessage"] * 2
    harness.core.queues.pause(harness.outgoing())
    assert harness.outgoing().state is Q.ON_HOLD
    harness.send(count=2)
    harness.run()
    peer.take()
    peer.acknowledge()
    harness.advance(10_000)
    assert "UserMessage" not in peer.kinds()
    assert len(harness.core.dispatch) == 0
    harness.send(to=SECOND)
    assert peer.kinds() == ["UserMessage"], "other queues of the session carry on"


@pytest.mark.requirement("MQQB-3.1.7.14-02")
def test_resuming_sends_every_message_and_activates_the_session() -> None:
    """The session is active also if nothing is left to send; messages of all priorities go on."""
    harness = EngineHarness(window_size=2)
    peer = harness.open_session(count=2)
    harness.core.queues.pause(harness.outgoing())
    assert peer.session.session_active is False
    harness.core.queues.resume(harness.outgoing())
    harness.run()
    assert peer.session.session_active is True
    harness.send(b"low", priority=0)
    harness.core.queues.pause(harness.outgoing())
    harness.send(b"high", priority=7)
    harness.send(b"middle")
    peer.take()
    peer.acknowledge()
    assert peer.bodies() == []
    harness.core.queues.resume(harness.outgoing())
    harness.run()
    assert peer.bodies() == [b"high", b"middle"]
    peer.acknowledge()
    assert peer.bodies() == [b"low"]


@pytest.mark.requirement("MQQB-3.1.7-01")
def test_resuming_sends_what_waits_and_nothing_twice() -> None:
    harness = EngineHarness()
    peer = harness.open_session(count=2)
    harness.send(transactional=True)
    harness.core.queues.pause(harness.outgoing())
    harness.send(count=3)
    peer.take()
    harness.core.queues.resume(harness.outgoing())
    harness.run()
    assert harness.outgoing().state is Q.CONNECTED
    assert peer.kinds() == ["UserMessage"] * 3
    assert peer.session.session_active is True
    assert len(harness.effects_of(Connect)) == 1
    established = [entry.status.value for entry in harness.outgoing().connection_history]
    assert established.count("Established") == 1, "no new session was established"


@pytest.mark.requirement("MQQB-3.1.7.14-01")
@pytest.mark.parametrize("waiting", [True, False])
def test_resuming_connects_when_there_is_anything_to_send(waiting: bool) -> None:
    harness = EngineHarness()
    peer = harness.open_session(count=1)
    if not waiting:
        peer.acknowledge()
    harness.core.queues.pause(harness.outgoing())
    peer.disconnect()
    harness.advance(60_000)
    assert len(harness.effects_of(Resolve)) == 1
    harness.core.queues.resume(harness.outgoing())
    harness.run()
    assert len(harness.effects_of(Resolve)) == 1 + waiting
    if waiting:
        harness.resolve(PEER_ADDRESS)
        second = harness.connect()
        second.answer_handshake()
        assert second.kinds() == ["UserMessage"]


def test_a_header_of_a_paused_queue_is_understood_by_the_peer() -> None:
    network, alpha, beta = joined_pair()
    beta.queue()
    alpha.send(count=1)
    network.run()
    alpha.core.queues.pause(alpha.outgoing())
    network.run()
    (session,) = beta.engine.sessions.values()
    assert session.received_window_size == 1
    assert session.is_open
    last = network.between("alpha", "beta")[-1]
    assert last.session_header == SessionHeader(0, 0, 0, 1, 0, 1, 0)
