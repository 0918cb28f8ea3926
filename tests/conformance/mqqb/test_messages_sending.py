"""Sending messages: [MS-MQQB] 3.1.7, 3.1.7.1, .1.1 to .1.3, .1.6, 3.1.7.11, 3.1.7.12 and 3.1.7.16."""

from __future__ import annotations

import struct

import pytest

from msmqwire.names import parse_format_name
from msmqwire.qm.model.changes import Table
from msmqwire.qm.model.effects import Resolve
from msmqwire.qm.model.enumerations import (
    AcknowledgementsRequested,
    DeliveryGuarantee,
    OutgoingQueueState,
    QueueAccessType,
)
from msmqwire.qm.model.message import Message, ObjectId
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.states import MessageState, SessionState
from msmqwire.qm.protocols.binary.transfer import Transfer
from tests.support import handmade
from tests.support.message_desk import (
    ADDRESS,
    HERE,
    JP,
    PEER_ADDRESS,
    PR,
    THERE,
    UTC,
    Desk,
    acks,
    bodies,
    direct,
)

RECOVERABLE = DeliveryGuarantee.RECOVERABLE


def transfer_of(desk: Desk) -> Transfer:
    return desk.core.engine.transfers[desk.outgoing().number]


def header_of(packet: object) -> tuple[int, ...] | None:
    """The SessionHeader of a message: acknowledgement, first saved, flags, sent, saved ones sent, window."""
    header = packet.SessionHeader
    return header and struct.unpack("<HHLHHHH", header.to_bytes())[:6]


# --- the events ---


@pytest.mark.requirement("MQQB-3.1.7-01")
def test_the_events_of_the_core_that_the_engine_answers():
    desk = Desk()
    queue = desk.queue("tx", transactional=True)
    peer = desk.peer()
    peer.send(tx=(1, 0), destination=direct("tx"), flags=JP)
    desk.receive(queue)  # Message Position Deleted
    assert [one.schema.name for one in peer.take()] == ["FinalAck"]
    desk.send(b"1")  # Message Position Available
    far = desk.called[0]
    assert far.sent_bodies() == [b"1"]
    desk.core.queues.pause(desk.outgoing())  # Pause Queue
    desk.send(b"2")
    desk.run()
    assert far.sent_bodies() == []
    desk.core.queues.resume(desk.outgoing())  # Resume Queue
    desk.run()
    assert far.sent_bodies() == [b"2"]


@pytest.mark.requirement("MQQB-3.1.7.1-01", "MQQB-3.1.7.16-01", "MQQB-3.1.7.12-04", "MQQB-3.1.7.11-01")
def test_a_message_is_sent_by_way_of_the_dispatch_collection(monkeypatch):
    desk = Desk()
    dispatch, sending, log = desk.core.dispatch, desk.core.engine.sending, []
    for owner, name in ((dispatch, "add"), (sending, "send"), (dispatch, "remove")):
        inner = getattr(owner, name)

        def watch(*args, inner=inner, name=name):
            log.append((name, args[0]))
            return inner(*args)

        monkeypatch.setattr(owner, name, watch)
    desk.send(b"m")
    (outgoing,) = transfer_of(desk).table.values()
    (position,) = desk.outgoing().positions
    assert log == [("add", position), ("send", outgoing), ("remove", position)]
    assert outgoing.position is position
    assert position.queue is desk.outgoing()
    assert len(dispatch) == 0
    assert desk.called[0].sent_bodies() == [b"m"]


@pytest.mark.requirement("MQQB-3.1.7.1-02")
@pytest.mark.parametrize("state", [state for state in OutgoingQueueState if state.value != "Connected"])
def test_nothing_is_sent_from_a_queue_that_is_not_connected(state):
    desk = Desk()
    desk.send(b"1")
    peer = desk.called[0]
    assert peer.sent_bodies() == [b"1"]
    assert desk.outgoing().state is OutgoingQueueState.CONNECTED
    desk.outgoing().state = state
    desk.send(b"2")
    assert peer.sent_bodies() == []
    assert transfer_of(desk).session.unacked_message_count == 1
    desk.outgoing().state = OutgoingQueueState.CONNECTED
    peer.acknowledge()
    assert peer.sent_bodies() == [b"2"]


@pytest.mark.requirement("MQQB-3.1.7.1-03", "MQQB-3.1.7.1.3-08")
@pytest.mark.parametrize(("own", "theirs", "window"), [(5, 64, 5), (64, 3, 3), (4, 4, 4)])
def test_no_more_are_sent_than_the_smaller_window_allows(own, theirs, window):
    desk = Desk(settings=Settings(window_size=own))
    desk.send(b"first")
    peer = desk.called[0]
    peer.window = theirs
    peer.acknowledge()
    peer.take()
    desk.send(*(b"%d" % number for number in range(10)))
    session = transfer_of(desk).session
    assert len(peer.sent_bodies()) == window == session.unacked_message_count
    peer.acknowledge(ack=peer.received - 1)
    assert len(peer.sent_bodies()) == window - 1
    assert session.unacked_message_count == window
    peer.acknowledge()
    assert len(peer.sent_bodies()) == min(window, 10 - window - (window - 1))


@pytest.mark.requirement("MQQB-3.1.7.1-04")
def test_an_open_session_serves_the_first_queue_that_needs_it():
    desk = Desk()
    peer = desk.peer()
    session = desk.core.engine.session_table.by_connection[peer.connection]
    assert session.transfers == []
    queue = desk.queue("tx", transactional=True)
    peer.send(tx=(1, 0), destination=direct("tx"), flags=JP)
    desk.receive(queue)
    assert [transfer.queue.acknowledged_peer for transfer in session.transfers] == [THERE]


def test_the_steps_of_sending_are_made_in_their_order(monkeypatch):
    desk = Desk()
    reports = desk.queue("reports")
    log = []
    engine = desk.core.engine
    for owner, name in (
        (desk.core.identity, "identify"), (engine.sending, "_protect"), (engine.sending, "_number"),
        (desk.core.system_messages, "trace"),
    ):  # fmt: skip
        inner = getattr(owner, name)

        def watch(*args, inner=inner, name=name, **how):
            if any(getattr(one, "body", None) == b"m" for one in args):
                log.append((name, len(desk.core.context.effects)))
            return inner(*args, **how)

        monkeypatch.setattr(owner, name, watch)
    to = desk.open()
    desk.send(b"0", to=to)
    message = Message(body=b"m", tracing_requested=True, tracing_queue_identifier=reports.identifier)
    transaction = desk.begin()
    desk.core.send(to, message, transaction)
    log.clear()
    desk.core.commit(transaction)
    desk.run()
    assert log == [("identify", 0), ("_protect", 0), ("_number", 0), ("trace", 1)]


# --- 3.1.7.1.1 ---


@pytest.mark.requirement("MQQB-3.1.7.1.1-01")
def test_messages_are_numbered_once():
    desk = Desk()
    first, second = desk.send(b"1", b"2")
    assert (first.identifier, second.identifier) == (ObjectId(HERE, 1), ObjectId(HERE, 2))
    desk.called[0].drop()
    desk.passes(5_000)
    assert [packet.UserHeader.MessageID for packet in desk.called[1].take("UserMessage")] == [1, 2]
    (third,) = desk.send(b"3")
    assert third.identifier == ObjectId(HERE, 3)
    (later,) = desk.restart().send(b"4")
    assert later.identifier.uniquifier > 3


@pytest.mark.requirement("MQQB-3.1.7.1.1-02", "MQQB-3.1.7.1.6-01")
def test_the_bytes_of_a_message_that_is_sent():
    desk = Desk()
    desk.send(
        b"body", label="label", priority=5, application_tag=7, time_to_reach_queue=100,
        acknowledgements_requested=AcknowledgementsRequested(PR), positive_journaling_requested=True,
        administration=parse_format_name("DIRECT=TCP:10.0.0.1\\PRIVATE$\\adm"),
    )  # fmt: skip
    assert desk.called[0].raw[-1] == handmade.user_message(
        user=handmade.user_header(
            source=HERE.bytes_le, sent_time=UTC, message_id=1, flags=handmade.MP | JP,
            destination=direct("far", PEER_ADDRESS),
            admin=(7, handmade.direct_name("TCP:10.0.0.1\\PRIVATE$\\adm")),
        ),
        properties=handmade.properties_header(
            flags=PR, label="label", body=b"body", application_tag=7, hash_algorithm=0x8004,
            encryption_algorithm=0x6801,
        ),
        flags=5, time_to_reach_queue=100,
    )  # fmt: skip
    assert [one.transmitted for one in transfer_of(desk).table.values()] == [True]


# --- 3.1.7.1.2 ---


@pytest.mark.requirement("MQQB-3.1.7.1.2-01", "MQQB-3.1.7.1.2-02", "DMPR-3.1.1.12-47", "DMPR-3.1.1.12-48")
@pytest.mark.parametrize(
    ("reach", "waited", "late"),
    [
        (10, 10, False), (10, 11, True), (0, 1, True), (0xFFFFFFFF, 1 << 24, False),
        (None, 345_600, False), (None, 345_601, True),
    ],
)  # fmt: skip
def test_an_expired_message_is_not_sent(reach, waited, late):
    desk = Desk()
    desk.send(b"0")
    desk.called[0].acknowledge()
    desk.outgoing().state = OutgoingQueueState.ON_HOLD  # so that only the moment of sending tells
    desk.send(b"m", **({} if reach is None else {"time_to_reach_queue": reach}))
    transfer = transfer_of(desk)
    (outgoing,) = transfer.table.values()
    desk.called[0].take()
    desk.core.context.timers.stop(Timer.TIME_TO_REACH_QUEUE, None)
    desk.start += waited
    desk.core.at(desk.now, desk.utc)
    desk.outgoing().state = OutgoingQueueState.CONNECTED
    desk.core.engine.sending.send_waiting(transfer.session)
    desk.run()
    assert desk.called[0].sent_bodies() == ([] if late else [b"m"])
    assert (len(transfer.table), outgoing.state is MessageState.DONE) == ((0, True) if late else (1, False))


@pytest.mark.requirement("MQQB-3.1.7.1.2-04", "MQQB-3.1.7.1.2-05", "DMPR-3.1.1.12-24", "DMPR-3.1.1.12-25")
@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_where_an_expired_message_goes(transactional, wanted, own):
    desk = Desk()
    desk.hosts.clear()
    queue = desk.queue("dead", transactional=True)
    send = desk.send_all if transactional else desk.send
    how = {"application_deadletter_queue": queue.pathname} if own else {}
    send(b"m", time_to_reach_queue=10, negative_journaling_requested=wanted, **how)
    desk.passes(11_000)
    manager = desk.core.queue_manager
    found = [
        bodies(one)
        for one in (manager.system_deadletter_queue, manager.system_transactional_deadletter_queue, queue)
    ]
    place = 0 if not transactional else 2 if own else 1
    assert found == [[b"m"] if wanted and number == place else [] for number in range(3)]
    assert bodies(desk.outgoing()) == []


@pytest.mark.requirement("DMPR-3.1.1.12-24", "DMPR-3.1.1.12-22")
@pytest.mark.parametrize("which", ["journal", "dead"])
def test_a_journal_that_is_full_does_not_get_it(which):
    desk = Desk()
    manager = desk.core.queue_manager
    manager.system_journal_queue.quota = manager.system_deadletter_queue.quota = 0
    desk.send(
        b"m", positive_journaling_requested=True, negative_journaling_requested=True, time_to_reach_queue=10
    )
    if which == "journal":
        desk.called[0].acknowledge()
    else:
        desk.passes(11_000)
    assert bodies(manager.system_journal_queue) == bodies(manager.system_deadletter_queue) == []
    assert bodies(desk.outgoing()) == []
    assert manager.total_bytes == 0


@pytest.mark.requirement("DMPR-3.1.1.12-22", "DMPR-3.1.1.12-23", "DMPR-3.1.1.12-17", "DMPR-3.1.1.12-18")
@pytest.mark.parametrize("wanted", [False, True])
def test_a_delivered_message_is_journaled_and_the_journal_survives(wanted):
    desk = Desk()
    desk.send(b"m", delivery_guarantee=RECOVERABLE, positive_journaling_requested=wanted, label="l")
    again = desk.restart()
    peer = again.called[0]
    (packet,) = peer.take("UserMessage")
    assert (packet.MessagePropertiesHeader.Label, packet.UserHeader.Flags.JP) == ("l", wanted)
    peer.acknowledge()
    third = again.restart()
    assert third.called == []
    assert bodies(third.core.queue_manager.system_journal_queue) == ([b"m"] if wanted else [])


# --- 3.1.7.1.3 ---


@pytest.mark.requirement("MQQB-3.1.7.1.3-06", "MQQB-3.1.7.1.3-07")
def test_what_is_sent_is_counted_each_time():
    desk = Desk()
    desk.send(b"e")
    desk.send(b"r", delivery_guarantee=RECOVERABLE)
    desk.send_all(b"t")
    transfer = transfer_of(desk)
    session, peer = transfer.session, desk.called[0]
    assert (session.message_sent_count, session.recoverable_message_sent_count) == (3, 2)
    numbers = [(one.sequence_number, one.recoverable_sequence_number) for one in transfer.table.values()]
    assert numbers == [(1, 0), (2, 1), (3, 2)]
    peer.acknowledge()
    desk.passes(30_000)  # the transactional one again
    assert (session.message_sent_count, session.recoverable_message_sent_count) == (4, 3)
    (outgoing,) = transfer.table.values()
    assert (outgoing.sequence_number, outgoing.recoverable_sequence_number) == (4, 3)


@pytest.mark.requirement("MQQB-3.1.7.1.3-12")
def test_what_a_sent_message_awaits():
    desk = Desk()
    desk.send(b"1")
    session, timers = transfer_of(desk).session, desk.core.context.timers
    (outgoing,) = transfer_of(desk).table.values()
    assert outgoing.session is session
    assert session.session_active
    assert timers.elapsed(Timer.SESSION_ACK_WAIT, session.number) == 0.0
    desk.passes(10_000)
    desk.send(b"2")
    assert timers.elapsed(Timer.SESSION_ACK_WAIT, session.number) == 0.25  # of 40 s: it was running


# --- 3.1.7.11 and the SessionHeader of 3.1.7.1.3 ---


@pytest.mark.requirement("MQQB-3.1.7.11-02")
@pytest.mark.parametrize(
    ("waited", "came", "expected"), [(7_500, 1, False), (7_501, 1, True), (9_000, 0, False)]
)
def test_when_a_message_carries_a_session_header(waited, came, expected):
    desk = Desk()
    desk.queue()
    desk.send(b"0")
    peer = desk.called[0]
    peer.send()  # starts the timer of ten seconds
    if not came:
        desk.core.engine.session_timers.send_session_ack(transfer_of(desk).session)
        desk.run()
    peer.take()
    desk.passes(waited)
    desk.send(b"1")
    (packet,) = peer.take("UserMessage")
    assert (packet.SessionHeader is not None) is expected
    assert bool(packet.BaseHeader.Flags.SH) is expected


@pytest.mark.requirement(
    "MQQB-3.1.7.11-03", "MQQB-3.1.7.11-04", "MQQB-3.1.7.1.3-09", "MQQB-3.1.7.1.3-10", "MQQB-3.1.7.1.3-11"
)
@pytest.mark.parametrize("recoverable", [False, True])
def test_what_the_header_of_a_message_says(recoverable):
    desk = Desk(settings=Settings(window_size=50))
    desk.queue()
    desk.send(b"0", delivery_guarantee=RECOVERABLE)
    peer = desk.called[0]
    session = transfer_of(desk).session
    for number in range(3):
        peer.send(recoverable=number > 0)
    desk.passes(400)  # of the 500 ms of RecoverableAckSendTimeout
    peer.take()
    desk.send(b"1", delivery_guarantee=DeliveryGuarantee(recoverable))
    desk.send(b"2")
    with_header, without = peer.take("UserMessage")
    assert header_of(with_header) == (3, 1, 0b11, 2, 1 + recoverable, 50)
    assert header_of(without) is None
    assert (session.recoverable_ack_flags, session.unacked_received_count) == (0, 0)
    assert session.last_acked_recoverable == session.recoverable_message_received_count == 2
    assert desk.core.context.timers.elapsed(Timer.SESSION_ACK_SEND, session.number) == 0.0
    desk.passes(9_999)
    assert peer.kinds() == []
    peer.send()
    desk.passes(1)
    assert peer.acks[-1][:5] == (4, 0, 0, 3, 1 + recoverable)


@pytest.mark.requirement("MQQB-3.1.7.11-02")
def test_an_acknowledgement_of_order_or_receipt_never_carries_one():
    desk = Desk()
    queue = desk.queue("tx", transactional=True)
    peer = desk.peer()
    peer.send(tx=(1, 0), destination=direct("tx"), flags=JP)
    peer.send(destination=direct("none"))
    desk.passes(490)
    desk.receive(queue)
    (final,) = peer.take()
    assert final.schema.name == "FinalAck"
    assert int(final.BaseHeader.Flags) == 0


# --- 3.1.7.12 ---


@pytest.mark.requirement("MQQB-3.1.7.12-01")
@pytest.mark.parametrize("how", ["local", "multicast", "locked", "on hold", "http", "https"])
def test_queues_that_are_not_served(how):
    desk = Desk()
    desk.queue()
    name = {
        "local": f"DIRECT=TCP:{ADDRESS}\\private$\\orders",
        "http": f"DIRECT=http://{PEER_ADDRESS}/msmq/private$/far",
        "https": f"DIRECT=https://{PEER_ADDRESS}/msmq/private$/far",
    }.get(how, f"DIRECT=TCP:{PEER_ADDRESS}\\private$\\far")
    to = desk.open(name)
    if how in ("locked", "on hold"):
        to.queue.state = OutgoingQueueState.LOCKED if how == "locked" else OutgoingQueueState.ON_HOLD
    elif how == "multicast":
        to.queue.multicast = True
    desk.effects.clear()
    desk.send(b"m", to=to)
    desk.passes(60_000)
    assert desk.effects == []
    assert desk.called == []
    assert bodies(to.queue) == [b"m"]


@pytest.mark.requirement("MQQB-3.1.7.12-02")
def test_a_message_brings_up_a_connection():
    desk = Desk(settings=Settings(session_cleanup_ms=60_000))
    to = desk.open()
    assert desk.effects == []
    assert to.queue.state is OutgoingQueueState.INACTIVE
    desk.send(b"1", to=to)
    assert len(desk.called) == 1
    desk.called[0].acknowledge()
    desk.passes(200_000)
    assert desk.called[0].closed
    assert to.queue.connection_history
    assert to.queue.state in (OutgoingQueueState.DISCONNECTED, OutgoingQueueState.INACTIVE)
    desk.effects.clear()
    desk.send(b"2", to=to)
    assert any(isinstance(effect, Resolve) for effect in desk.effects)
    assert desk.called[1].sent_bodies() == [b"2"]


# --- 3.1.7.1.6 ---


@pytest.mark.requirement("MQQB-3.1.7.1.6-02")
def test_a_connection_that_is_lost_while_messages_wait():
    desk = Desk(settings=Settings(window_size=2))
    reports = desk.queue("reports")
    desk.send(
        *(b"%d" % number for number in range(4)), tracing_requested=True,
        tracing_queue_identifier=reports.identifier,
    )  # fmt: skip
    session = transfer_of(desk).session
    assert len(bodies(reports)) == 2
    desk.called[0].drop()
    assert session.state in (SessionState.CLOSED, SessionState.WAITING_RECONNECT)
    assert len(desk.core.dispatch) == 0
    assert len(bodies(reports)) == 2
    assert desk.outgoing().state is OutgoingQueueState.DISCONNECTED
    assert [one.state for one in transfer_of(desk).table.values()] == [MessageState.WAITING_TO_SEND] * 4


@pytest.mark.requirement("DMPR-3.1.1.12-02", "DMPR-3.1.1.12-35")
def test_who_a_message_is_from():
    desk = Desk()
    first, second = desk.send(b"1", b"2")
    assert first.identifier != second.identifier
    assert first.source_machine_identifier == HERE
    (packet, _) = desk.called[0].take("UserMessage")
    assert packet.UserHeader.SourceQueueManager == HERE == first.identifier.lineage


@pytest.mark.requirement("DMPR-3.1.1.12-49")
@pytest.mark.parametrize("recoverable", [False, True])
def test_the_time_to_be_received_counts_from_when_it_was_sent(recoverable):
    desk = Desk()
    queue, admin, peer = desk.queue(), desk.queue("adm"), desk.peer()
    peer.send(sent_time=desk.utc - 50, receive=60, recoverable=recoverable, acks=8, admin=direct("adm"))
    peer.send(b"stays", recoverable=recoverable)
    desk.passes(9_999)
    assert bodies(queue) == [b"x", b"stays"]
    desk.passes(1)
    assert bodies(queue) == [b"stays"]
    assert acks(admin) == [0xC002]
    assert len(list(desk.store.rows(Table.MESSAGE))) == (2 if recoverable else 0)


def test_a_reader_of_an_outgoing_queue_is_none():
    desk = Desk()
    status, _ = desk.core.queues.open(
        parse_format_name(f"DIRECT=TCP:{PEER_ADDRESS}\\private$\\far"), QueueAccessType.RECEIVE_ACCESS
    )
    assert status != 0
