"""Sending messages: [MS-MQQB] 3.1.7, 3.1.7.1, .1.1 to .1.3, .1.6, 3.1.7.11, 3.1.7.12 and 3.1.7.16."""

from __future__ import annotations

import pytest

from msmqwire.names import parse_format_name
from msmqwire.qm.model.effects import Connect, Resolve, Send
from msmqwire.qm.model.enumerations import (
    INFINITE,
    AcknowledgementsRequested,
    DeliveryGuarantee,
    OutgoingQueueState,
    QueueAccessType,
)
from msmqwire.qm.model.message import Message, ObjectId
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.tables import Table
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.states import SessionMessageState, SessionState
from msmqwire.qm.protocols.binary.transfer import SessionTransfer
from tests.support import handmade
from tests.support.engine_harness import (
    OWN_ADDRESS,
    OWN_ID,
    PEER_ADDRESS,
    PEER_ID,
    PEER_QUEUE,
    START_UTC,
    EngineHarness,
    harness_with_peer,
)
from tests.support.peers.handwritten_peer import JP, PR, direct
from tests.support.qm.queue_contents import bodies, message_classes
from tests.support.qm.received_packets import ReceivedPacket

RECOVERABLE = DeliveryGuarantee.RECOVERABLE


def transfer_of(harness: EngineHarness) -> SessionTransfer:
    return harness.core.binary.transfers[harness.outgoing().number]


def connect_again(harness: EngineHarness) -> None:
    """Let its session serve the queue again, without sending anything."""
    transfer = transfer_of(harness)
    transfer.queue.state = OutgoingQueueState.CONNECTED
    assert transfer.session is not None
    transfer.session.send_order.enter(transfer)


def header_of(packet: ReceivedPacket) -> tuple[int, ...] | None:
    """The SessionHeader of a message, without Reserved."""
    return packet.session_header and packet.session_header[:6]


# --- the events ---


@pytest.mark.requirement("MQQB-3.1.7-01")
def test_the_events_of_the_core_that_the_engine_answers():
    harness = harness_with_peer()
    queue = harness.queue("tx", transactional=True)
    peer = harness.accept_session()
    peer.send_message(tx=(1, 0), destination=direct("tx"), flags=JP)
    harness.receive(queue)  # Message Position Deleted
    assert [packet.kind for packet in peer.take()] == ["FinalAck"]
    harness.send(b"1")  # Message Position Available
    far = harness.called[0]
    assert far.bodies() == [b"1"]
    harness.core.queues.pause(harness.outgoing())  # Pause Queue
    harness.send(b"2")
    harness.run()
    assert far.bodies() == []
    harness.core.queues.resume(harness.outgoing())  # Resume Queue
    harness.run()
    assert far.bodies() == [b"2"]


@pytest.mark.requirement("MQQB-3.1.7.1-01", "MQQB-3.1.7.16-01", "MQQB-3.1.7.12-04", "MQQB-3.1.7.11-01")
def test_a_message_is_sent_by_way_of_the_dispatch_collection(monkeypatch):
    harness = harness_with_peer()
    dispatch, sending, log = harness.core.dispatch, harness.core.binary.sending, []
    for owner, name in ((dispatch, "add"), (sending, "send"), (dispatch, "remove")):
        inner = getattr(owner, name)

        def watch(*args, inner=inner, name=name):
            log.append((name, args[0]))
            return inner(*args)

        monkeypatch.setattr(owner, name, watch)
    harness.send(b"m")
    (outgoing,) = transfer_of(harness).table.values()
    (position,) = harness.outgoing().positions
    assert log == [("add", position), ("send", outgoing), ("remove", position)]
    assert outgoing.position is position
    assert position.queue is harness.outgoing()
    assert len(dispatch) == 0
    assert harness.called[0].bodies() == [b"m"]


@pytest.mark.requirement("MQQB-3.1.7.1-02")
@pytest.mark.parametrize("state", [state for state in OutgoingQueueState if state.value != "Connected"])
def test_nothing_is_sent_from_a_queue_that_is_not_connected(state):
    harness = harness_with_peer()
    harness.send(b"1")
    peer = harness.called[0]
    assert peer.bodies() == [b"1"]
    assert harness.outgoing().state is OutgoingQueueState.CONNECTED
    harness.outgoing().state = state
    harness.send(b"2")
    assert peer.bodies() == []
    assert transfer_of(harness).session.unacked_message_count == 1
    connect_again(harness)
    peer.acknowledge()
    assert peer.bodies() == [b"2"]


@pytest.mark.requirement("MQQB-3.1.7.1-03", "MQQB-3.1.7.1.3-08")
@pytest.mark.parametrize(("our_window", "peer_window", "window"), [(5, 64, 5), (64, 3, 3), (4, 4, 4)])
def test_no_more_are_sent_than_the_smaller_window_allows(our_window, peer_window, window):
    harness = harness_with_peer(settings=Settings(window_size=our_window))
    harness.send(b"first")
    peer = harness.called[0]
    peer.window = peer_window
    peer.acknowledge()
    peer.take()
    harness.send(*(b"%d" % number for number in range(10)))
    session = transfer_of(harness).session
    assert len(peer.bodies()) == window == session.unacked_message_count
    peer.acknowledge(ack=peer.received - 1)
    assert len(peer.bodies()) == window - 1
    assert session.unacked_message_count == window
    peer.acknowledge()
    assert len(peer.bodies()) == min(window, 10 - window - (window - 1))


@pytest.mark.requirement("MQQB-3.1.7.1-04")
def test_an_open_session_serves_the_first_queue_that_needs_it():
    harness = harness_with_peer()
    peer = harness.accept_session()
    session = harness.core.binary.session_table.by_connection[peer.connection]
    assert session.transfers == []
    queue = harness.queue("tx", transactional=True)
    peer.send_message(tx=(1, 0), destination=direct("tx"), flags=JP)
    harness.receive(queue)
    assert [transfer.queue.acknowledged_peer for transfer in session.transfers] == [PEER_ID]


def test_the_steps_of_sending_are_made_in_their_order(monkeypatch):
    harness = harness_with_peer()
    reports = harness.queue("reports")
    log = []
    engine = harness.core.binary
    for owner, name in (
        (harness.core.identity, "identify"), (engine.sending, "_protected"), (engine.sending, "_number"),
        (harness.core.system_messages, "trace"),
    ):  # fmt: skip
        original = getattr(owner, name)

        def record(*args, original=original, name=name, **kwargs):
            if any(getattr(arg, "body", None) == b"m" for arg in args):
                log.append((name, len(harness.core.context.effects)))
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, record)
    to = harness.open_to_send()
    harness.send(b"0", to=to)
    message = Message(body=b"m", tracing_requested=True, tracing_queue_identifier=reports.identifier)
    transaction = harness.begin()
    harness.core.send(to, message, transaction)
    log.clear()
    harness.core.commit(transaction)
    harness.run()
    assert log == [("identify", 0), ("_protected", 0), ("_number", 0), ("trace", 1)]


# --- 3.1.7.1.1 ---


@pytest.mark.requirement("MQQB-3.1.7.1.1-01")
def test_messages_are_numbered_once():
    harness = harness_with_peer()
    first, second = harness.send(b"1", b"2")
    assert (first.identifier, second.identifier) == (ObjectId(OWN_ID, 1), ObjectId(OWN_ID, 2))
    harness.called[0].disconnect()
    harness.advance(5_000)
    assert [packet.MessageID for packet in harness.called[1].take("UserMessage")] == [1, 2]
    (third,) = harness.send(b"3")
    assert third.identifier == ObjectId(OWN_ID, 3)
    (later,) = harness.restarted().send(b"4")
    assert later.identifier.uniquifier > 3


@pytest.mark.requirement("MQMQ-2.2.18.1.6-01", "MQMQ-2.2.19.2-01", "MQMQ-2.2.19.2-06", "MQMQ-2.2.19.2-07")
@pytest.mark.requirement("MQQB-3.1.7.1.1-02", "MQQB-3.1.7.1.6-01")
def test_the_bytes_of_a_message_that_is_sent():
    harness = harness_with_peer()
    harness.send(
        b"body", label="label", priority=5, application_tag=7, time_to_reach_queue=100,
        acknowledgements_requested=AcknowledgementsRequested(PR), positive_journaling_requested=True,
        administration=parse_format_name("DIRECT=TCP:10.0.0.1\\PRIVATE$\\adm"),
    )  # fmt: skip
    assert harness.called[0].all_packets[-1] == handmade.user_message(
        user=handmade.user_header(
            source=OWN_ID.bytes_le, sent_time=START_UTC, message_id=1, flags=handmade.MP | JP,
            destination=direct("orders", PEER_ADDRESS),
            admin=(7, handmade.direct_name("TCP:10.0.0.1\\PRIVATE$\\adm")),
        ),
        properties=handmade.properties_header(
            flags=PR, label="label", body=b"body", application_tag=7, hash_algorithm=0x8004,
            encryption_algorithm=0x6801,
        ),
        flags=5, time_to_reach_queue=100,
    )  # fmt: skip
    assert [entry.transmitted for entry in transfer_of(harness).table.values()] == [True]


# --- 3.1.7.1.2 ---


@pytest.mark.requirement("MQMQ-2.2.19.1-23")
@pytest.mark.requirement("MQQB-3.1.7.1.2-01", "MQQB-3.1.7.1.2-02", "DMPR-3.1.1.12-47", "DMPR-3.1.1.12-48")
@pytest.mark.parametrize(
    ("reach", "waited", "late"),
    [
        (10, 10, False), (10, 11, True), (0, 1, True), (0xFFFFFFFF, 1 << 24, False),
        (None, 345_600, False), (None, 345_601, True),
    ],
)  # fmt: skip
def test_an_expired_message_is_not_sent(reach, waited, late):
    _send_after(waited, {} if reach is None else {"time_to_reach_queue": reach}, late=late)


@pytest.mark.requirement("MQMQ-2.2.18.1.6-08")
@pytest.mark.parametrize(
    ("reach", "receive", "waited", "late"),
    [(100, 10, 10, False), (100, 10, 11, True), (10, 100, 11, True), (INFINITE, 0, 1, True)],
)
def test_a_message_whose_time_to_be_received_is_over_is_not_sent(reach, receive, waited, late):
    _send_after(waited, {"time_to_reach_queue": reach, "time_to_be_received": receive}, late=late)


def _send_after(waited: int, limits: dict[str, int], *, late: bool) -> None:
    """Send a message that had to wait some seconds."""
    harness = harness_with_peer()
    harness.send(b"0")
    harness.called[0].acknowledge()
    harness.outgoing().state = OutgoingQueueState.ON_HOLD  # so that only the time of sending matters
    harness.send(b"m", **limits)
    transfer = transfer_of(harness)
    (outgoing,) = transfer.table.values()
    harness.called[0].take()
    harness.core.context.timers.stop(Timer.TIME_TO_REACH_QUEUE, "binary")
    harness.utc_start += waited
    harness.core.at(harness.now, harness.utc)
    connect_again(harness)
    harness.core.binary.sending.send_waiting(transfer.session)
    harness.run()
    assert harness.called[0].bodies() == ([] if late else [b"m"])
    assert (len(transfer.table), outgoing.state is SessionMessageState.DONE) == (
        (0, True) if late else (1, False)
    )


@pytest.mark.requirement("MQMQ-2.2.19.2-16", "MQMQ-2.2.19.2-17")
@pytest.mark.requirement("MQQB-3.1.7.1.2-04", "MQQB-3.1.7.1.2-05", "DMPR-3.1.1.12-24", "DMPR-3.1.1.12-25")
@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("journaled", [False, True])
@pytest.mark.parametrize("own_queue", [False, True])
def test_where_an_expired_message_goes(transactional, journaled, own_queue):
    harness = harness_with_peer()
    harness.hosts.clear()
    queue = harness.queue("dead", transactional=True)
    attributes = {"application_deadletter_queue": queue.pathname} if own_queue else {}
    harness.send(
        b"m",
        transactional=transactional,
        time_to_reach_queue=10,
        negative_journaling_requested=journaled,
        **attributes,
    )
    harness.advance(11_000)
    manager = harness.core.queue_manager
    queued = [
        bodies(dead_letter_queue)
        for dead_letter_queue in (
            manager.system_deadletter_queue,
            manager.system_transactional_deadletter_queue,
            queue,
        )
    ]
    index = 0 if not transactional else 2 if own_queue else 1
    assert queued == [[b"m"] if journaled and position == index else [] for position in range(3)]
    assert bodies(harness.outgoing()) == []


@pytest.mark.requirement("DMPR-3.1.1.12-24", "DMPR-3.1.1.12-22")
@pytest.mark.parametrize("which", ["journal", "dead"])
def test_a_journal_that_is_full_does_not_get_it(which):
    harness = harness_with_peer()
    manager = harness.core.queue_manager
    manager.system_journal_queue.quota = manager.system_deadletter_queue.quota = 0
    harness.send(
        b"m", positive_journaling_requested=True, negative_journaling_requested=True, time_to_reach_queue=10
    )
    if which == "journal":
        harness.called[0].acknowledge()
    else:
        harness.advance(11_000)
    assert bodies(manager.system_journal_queue) == bodies(manager.system_deadletter_queue) == []
    assert bodies(harness.outgoing()) == []
    assert manager.total_bytes == 0


@pytest.mark.requirement("MQMQ-2.2.19.2-20")
@pytest.mark.requirement("DMPR-3.1.1.12-22", "DMPR-3.1.1.12-23", "DMPR-3.1.1.12-17", "DMPR-3.1.1.12-18")
@pytest.mark.parametrize("journaled", [False, True])
def test_a_delivered_message_is_journaled_across_a_restart(journaled):
    harness = harness_with_peer()
    harness.send(b"m", delivery_guarantee=RECOVERABLE, positive_journaling_requested=journaled, label="l")
    restarted = harness.restarted()
    peer = restarted.called[0]
    (packet,) = peer.take("UserMessage")
    assert (packet.Label, bool(packet.Flags & JP)) == ("l", journaled)
    peer.acknowledge()
    restarted_again = restarted.restarted()
    assert restarted_again.called == []
    assert bodies(restarted_again.core.queue_manager.system_journal_queue) == ([b"m"] if journaled else [])


# --- 3.1.7.1.3 ---


@pytest.mark.requirement("MQQB-3.1.7.1.3-06", "MQQB-3.1.7.1.3-07")
def test_what_is_sent_is_counted_each_time():
    harness = harness_with_peer()
    harness.send(b"e")
    harness.send(b"r", delivery_guarantee=RECOVERABLE)
    harness.send(b"t", transactional=True)
    transfer = transfer_of(harness)
    session, peer = transfer.session, harness.called[0]
    assert (session.message_sent_count, session.recoverable_message_sent_count) == (3, 2)
    numbers = [
        (entry.sequence_number, entry.recoverable_sequence_number) for entry in transfer.table.values()
    ]
    assert numbers == [(1, 0), (2, 1), (3, 2)]
    peer.acknowledge()
    harness.advance(30_000)  # the transactional message is resent
    assert (session.message_sent_count, session.recoverable_message_sent_count) == (4, 3)
    (outgoing,) = transfer.table.values()
    assert (outgoing.sequence_number, outgoing.recoverable_sequence_number) == (4, 3)


@pytest.mark.requirement("MQQB-3.1.7.1.3-12")
def test_what_a_sent_message_awaits():
    harness = harness_with_peer()
    harness.send(b"1")
    session, timers = transfer_of(harness).session, harness.core.context.timers
    (outgoing,) = transfer_of(harness).table.values()
    assert outgoing.session is session
    assert session.session_active
    assert timers.elapsed(Timer.SESSION_ACK_WAIT, session.number) == 0.0
    harness.advance(10_000)
    harness.send(b"2")
    assert timers.elapsed(Timer.SESSION_ACK_WAIT, session.number) == 0.25  # of 40 s: it was already running


# --- 3.1.7.11 and the SessionHeader of 3.1.7.1.3 ---


@pytest.mark.requirement("MQQB-3.1.7.11-02")
@pytest.mark.parametrize(
    ("waited", "came", "expected"), [(7_500, 1, False), (7_501, 1, True), (9_000, 0, False)]
)
def test_when_a_message_carries_a_session_header(waited, came, expected):
    harness = harness_with_peer()
    harness.queue()
    harness.send(b"0")
    peer = harness.called[0]
    peer.send_message()  # starts the timer of ten seconds
    if not came:
        harness.core.binary.session_timers.send_session_ack(transfer_of(harness).session)
        harness.run()
    peer.take()
    harness.advance(waited)
    harness.send(b"1")
    (packet,) = peer.take("UserMessage")
    assert (packet.session_header is not None) is expected
    assert bool(packet.base_flags & handmade.BASE_SH) is expected


@pytest.mark.requirement(
    "MQQB-3.1.7.11-03", "MQQB-3.1.7.11-04", "MQQB-3.1.7.1.3-09", "MQQB-3.1.7.1.3-10", "MQQB-3.1.7.1.3-11"
)
@pytest.mark.parametrize("recoverable", [False, True])
def test_what_the_header_of_a_message_says(recoverable):
    harness = harness_with_peer(settings=Settings(window_size=50))
    harness.queue()
    harness.send(b"0", delivery_guarantee=RECOVERABLE)
    peer = harness.called[0]
    session = transfer_of(harness).session
    for number in range(3):
        peer.send_message(recoverable=number > 0)
    harness.advance(400)  # of the 500 ms of RecoverableAckSendTimeout
    peer.take()
    harness.send(b"1", delivery_guarantee=DeliveryGuarantee(recoverable))
    harness.send(b"2")
    with_header, without = peer.take("UserMessage")
    assert header_of(with_header) == (3, 1, 0b11, 2, 1 + recoverable, 50)
    assert header_of(without) is None
    assert (session.recoverable_ack_flags, session.unacked_received_count) == (0, 0)
    assert session.last_acked_recoverable == session.recoverable_message_received_count == 2
    assert harness.core.context.timers.elapsed(Timer.SESSION_ACK_SEND, session.number) == 0.0
    harness.advance(9_999)
    assert peer.kinds() == []
    peer.send_message()
    harness.advance(1)
    assert peer.acks[-1][:5] == (4, 0, 0, 3, 1 + recoverable)


@pytest.mark.requirement("MQQB-3.1.7.11-02")
def test_order_and_final_acks_carry_no_session_header():
    harness = harness_with_peer()
    queue = harness.queue("tx", transactional=True)
    peer = harness.accept_session()
    peer.send_message(tx=(1, 0), destination=direct("tx"), flags=JP)
    peer.send_message(destination=direct("none"))
    harness.advance(490)
    harness.receive(queue)
    (final,) = peer.take()
    assert final.kind == "FinalAck"
    assert final.base_flags == 0


# --- 3.1.7.12 ---


@pytest.mark.requirement("MQQB-3.1.7.12-01")
@pytest.mark.parametrize("kind", ["local", "multicast", "locked", "on hold", "http", "https"])
def test_queues_that_are_not_served(kind):
    harness = harness_with_peer()
    harness.queue()
    name = {
        "local": f"DIRECT=TCP:{OWN_ADDRESS}\\private$\\orders",
        "http": f"DIRECT=http://{PEER_ADDRESS}/msmq/private$/far",
        "https": f"DIRECT=https://{PEER_ADDRESS}/msmq/private$/far",
        "multicast": "MULTICAST=234.1.1.1:8001",
    }.get(kind, PEER_QUEUE)
    to = harness.open_to_send(name)
    if kind in ("locked", "on hold"):
        to.queue.state = OutgoingQueueState.LOCKED if kind == "locked" else OutgoingQueueState.ON_HOLD
    harness.forget_effects()
    harness.send(b"m", to=to)
    harness.advance(60_000)
    assert not any(isinstance(effect, (Resolve, Connect, Send)) for effect in harness.effects)
    assert harness.called == []
    assert bodies(to.queue) == [b"m"]


@pytest.mark.requirement("MQQB-3.1.7.12-02")
def test_a_message_brings_up_a_connection():
    harness = harness_with_peer(settings=Settings(session_cleanup_ms=60_000))
    to = harness.open_to_send()
    assert harness.effects == []
    assert to.queue.state is OutgoingQueueState.INACTIVE
    harness.send(b"1", to=to)
    assert len(harness.called) == 1
    harness.called[0].acknowledge()
    harness.advance(200_000)
    assert harness.called[0].closed
    assert to.queue.connection_history
    assert to.queue.state in (OutgoingQueueState.DISCONNECTED, OutgoingQueueState.INACTIVE)
    harness.forget_effects()
    harness.send(b"2", to=to)
    assert any(isinstance(effect, Resolve) for effect in harness.effects)
    assert harness.called[1].bodies() == [b"2"]


# --- 3.1.7.1.6 ---


@pytest.mark.requirement("MQQB-3.1.7.1.6-02")
def test_a_connection_that_is_lost_while_messages_wait():
    harness = harness_with_peer(settings=Settings(window_size=2))
    reports = harness.queue("reports")
    harness.send(
        *(b"%d" % number for number in range(4)), tracing_requested=True,
        tracing_queue_identifier=reports.identifier,
    )  # fmt: skip
    session = transfer_of(harness).session
    assert len(bodies(reports)) == 2
    harness.called[0].disconnect()
    assert session.state in (SessionState.CLOSED, SessionState.WAITING_RECONNECT)
    assert len(harness.core.dispatch) == 0
    assert len(bodies(reports)) == 2
    assert harness.outgoing().state is OutgoingQueueState.DISCONNECTED
    assert [entry.state for entry in transfer_of(harness).table.values()] == [
        SessionMessageState.WAITING_TO_SEND
    ] * 4


@pytest.mark.requirement("DMPR-3.1.1.12-47")
@pytest.mark.requirement("DMPR-3.1.1.12-02", "DMPR-3.1.1.12-35")
def test_who_a_message_is_from():
    harness = harness_with_peer()
    first, second = harness.send(b"1", b"2")
    assert first.identifier != second.identifier
    assert first.source_machine_identifier == OWN_ID
    (packet, _) = harness.called[0].take("UserMessage")
    assert packet.SourceQueueManager == OWN_ID.bytes_le == first.identifier.lineage.bytes_le
    assert packet.SentTime == first.sent_time == harness.utc


@pytest.mark.requirement("MQMQ-2.2.19.2-05")
@pytest.mark.requirement("DMPR-3.1.1.12-49")
@pytest.mark.parametrize("recoverable", [False, True])
def test_the_time_to_be_received_counts_from_when_it_was_sent(recoverable):
    harness = harness_with_peer()
    queue, admin, peer = harness.queue(), harness.queue("adm"), harness.accept_session()
    peer.send_message(
        sent_time=harness.utc - 50,
        time_to_be_received=60,
        recoverable=recoverable,
        acks=8,
        admin=direct("adm"),
    )
    peer.send_message(b"stays", recoverable=recoverable)
    harness.advance(9_999)
    assert bodies(queue) == [b"x", b"stays"]
    harness.advance(1)
    assert bodies(queue) == [b"stays"]
    assert message_classes(admin) == [0xC002]
    assert len(list(harness.store.rows(Table.MESSAGE))) == (2 if recoverable else 0)


def test_a_reader_of_an_outgoing_queue_is_none():
    harness = harness_with_peer()
    status, _ = harness.core.queues.open(parse_format_name(PEER_QUEUE), QueueAccessType.RECEIVE_ACCESS)
    assert status != 0
