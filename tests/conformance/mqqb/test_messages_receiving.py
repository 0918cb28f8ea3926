"""Receiving a UserMessage: [MS-MQQB] 3.1.5.8, .1, .2, .4, .5, .7 and .8."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.changes import Table
from msmqwire.qm.model.effects import Disconnect
from msmqwire.qm.model.enumerations import QueueType
from msmqwire.qm.model.message import ObjectId
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.states import SessionState
from tests.support import handmade
from tests.support.message_desk import (
    BEHIND,
    DM,
    HERE,
    JN,
    NA,
    PA,
    PEER_ADDRESS,
    THERE,
    Desk,
    Peer,
    acks,
    bodies,
    direct,
    messages,
)

ADMIN = direct("adm")
PRIVATE = 3, handmade.private_id(5)
ONWARD = {"address": BEHIND.bytes_le, "destination": (3, handmade.private_id(9))}


def session_of(peer: Peer):
    return peer.desk.core.engine.session_table.by_connection.get(peer.connection)


def routed(**how: object) -> Desk:
    desk = Desk(routes={BEHIND: ["far"]}, **how)
    desk.names["far"], desk.hosts[PEER_ADDRESS] = PEER_ADDRESS, BEHIND
    return desk


# --- 3.1.5.8 ---


@pytest.mark.requirement("MQQB-3.1.5.8-01")
@pytest.mark.parametrize("further", [False, True])
def test_a_message_before_the_session_is_open_closes_it(further):
    desk = Desk()
    queue = desk.queue()
    connection = desk.core.engine.next_connection()
    desk.peers[connection] = peer = Peer(desk, connection, THERE, PEER_ADDRESS)
    desk.core.engine.accepted(connection, PEER_ADDRESS)
    if further:  # EstablishConnection alone
        peer.put(
            handmade.establish_connection(
                handmade.establish_connection_header(client=THERE.bytes_le, server=handmade.NULL_GUID)
            )
        )
    peer.closed = False
    peer.put(peer.packet(b"early"))
    assert Disconnect(connection) in desk.effects
    assert bodies(queue) == []


@pytest.mark.requirement("MQQB-3.1.5.8-02", "MQQB-3.1.5.8.5-01", "MQQB-3.1.5.8.5-02", "MQQB-3.1.5.8.8-02")
def test_local_messages_go_to_their_queue_and_others_to_an_outgoing_one():
    desk = routed()
    desk.hosts.clear()
    queue, peer = desk.queue(), desk.peer()
    assert queue.private_queue_number == 5
    peer.send(b"direct")
    peer.send(b"private", destination=PRIVATE, address=HERE.bytes_le)
    peer.send(b"on", **ONWARD)
    assert bodies(queue) == [b"direct", b"private"]
    outgoing = desk.outgoing(f"PRIVATE={BEHIND}\\9")
    assert bodies(outgoing) == [b"on"]
    assert not outgoing.descriptors


@pytest.mark.requirement("MQQB-3.1.5.8-03")
def test_the_steps_are_made_in_their_order():
    desk = Desk(settings=Settings(send_insecure_nacks=True))
    desk.queue(), desk.queue("tx", transactional=True)
    admin, peer = desk.queue("adm"), desk.peer()
    bad = {"security": handmade.security_header(signature=b"s" * 8), "reach": 5, "sent_time": desk.utc - 9}
    how = {"acks": NA | PA, "admin": ADMIN}
    peer.send(b"known", message_id=70, **how)
    peer.send(b"known", message_id=70, destination=direct("none"), **bad, **how)  # Duplicate Detection
    peer.send(destination=direct("none"), **bad, **how)  # General Processing
    peer.send(destination=direct("tx"), **bad, **how)
    peer.send(**bad, **how)  # Security
    bad.pop("security")
    peer.send(**bad, session=True, **how)  # SessionHeader Processing, Message Expiration
    assert acks(admin) == [0x0002, 0x8000, 0x800A, 0x8006, 0x8002]
    peer.send(b"2", tx=(2, 1), destination=direct("tx"), reach=5, sent_time=desk.utc - 9, **how)
    assert acks(admin)[5:] == []  # Transactional Message Processing: not the next one, so not even late
    assert session_of(peer).state is SessionState.OPEN


@pytest.mark.requirement("MQQB-3.1.5.8-04")
@pytest.mark.parametrize("asked", [NA, 0])
@pytest.mark.parametrize(
    ("age", "reach", "late"),
    [(10, 10, False), (11, 10, True), (1 << 30, handmade.INFINITE, False), (1, 0, True)],
)
def test_a_message_that_is_too_old_is_not_delivered_but_counted(age, reach, late, asked):
    desk = Desk()
    queue, admin, peer = desk.queue(), desk.queue("adm"), desk.peer()
    peer.send(b"m", sent_time=desk.utc - age, reach=reach, acks=asked, admin=ADMIN)
    assert bodies(queue) == ([] if late else [b"m"])
    assert acks(admin) == ([0x8002] if late and asked else [])
    assert session_of(peer).message_received_count == 1


# --- 3.1.5.8.1 ---


@pytest.mark.requirement("MQQB-3.1.5.8.1-01")
def test_the_history_does_not_stand_against_a_transactional_message():
    desk = Desk()
    queue, plain, peer = desk.queue("tx", transactional=True), desk.queue(), desk.peer()
    peer.send(b"plain", message_id=9)
    peer.send(b"one", message_id=9, tx=(1, 0), destination=direct("tx"))
    peer.send(b"one", message_id=10, tx=(1, 0), destination=direct("tx"))
    assert bodies(plain) == [b"plain"]
    assert bodies(queue) == [b"one"]


@pytest.mark.requirement("MQQB-3.1.5.8.1-02")
def test_a_duplicate_has_the_same_number_and_the_same_sender():
    desk = Desk()
    queue, peer = desk.queue(), desk.peer()
    admin = desk.queue("adm")
    peer.send(b"1", message_id=9)
    peer.send(b"2", message_id=9, acks=PA | NA, admin=ADMIN)
    peer.send(b"3", message_id=9, source=BEHIND)
    peer.send(b"4", message_id=10)
    assert bodies(queue) == [b"1", b"3", b"4"]
    assert acks(admin) == []


@pytest.mark.requirement("MQQB-3.1.5.8.1-03")
def test_a_duplicate_keeps_its_entry_alive():
    desk = Desk(settings=Settings(message_id_history_cleanup_ms=60_000, session_cleanup_ms=1 << 30))
    queue, peer = desk.queue(), desk.peer()
    for _ in range(4):  # never a minute between two
        peer.send(b"1", message_id=9, recoverable=True)
        key = bytes(ObjectId(THERE, 9))
        assert int.from_bytes(desk.store.row(Table.HISTORY, key), "little") == desk.utc
        desk.passes(50_000)
    assert bodies(queue) == [b"1"]
    desk.passes(70_000)
    peer.send(b"1", message_id=9)
    assert bodies(queue) == [b"1", b"1"]
    assert desk.store.row(Table.HISTORY, key) is None


@pytest.mark.requirement("MQQB-3.1.5.8.1-04")
@pytest.mark.parametrize("recoverable", [False, True])
def test_a_duplicate_is_counted_and_acknowledged(recoverable):
    desk = Desk()
    desk.queue()
    peer = desk.peer()
    for _ in range(3):
        peer.send(b"1", message_id=9, recoverable=recoverable)
    peer.acknowledge()  # whose counts are checked: MQQB-3.1.5.5.5-01
    assert session_of(peer).state is SessionState.OPEN
    desk.passes(10_000)
    assert peer.acks[-1][:3] == ((3, 1, 0b111) if recoverable else (3, 0, 0))


# --- 3.1.5.8.2 ---


@pytest.mark.requirement("MQQB-3.1.5.8.2-01")
def test_a_message_to_pass_on_that_cannot_be_saved_is_disregarded():
    desk = routed()
    queue, peer = desk.queue(), desk.peer()
    session = session_of(peer)
    session = session_of(peer)
    desk.core.queues.begin_flow_control()
    peer.send(b"on", message_id=9, **ONWARD, acks=NA, admin=ADMIN)
    assert session.message_received_count == session.unacked_received_count == 0
    desk.passes(20_000)
    assert peer.kinds() == []
    assert desk.called == []
    assert bodies(queue) == []
    assert peer.closed  # for all that followed would be counted one too low
    desk.core.queues.end_flow_control()
    desk.peer().send(b"on", message_id=9, **ONWARD)
    assert desk.called[0].sent_bodies() == [b"on"]


@pytest.mark.requirement("MQQB-3.1.5.8.2-02", "MQQB-3.1.5.8.2-08", "MQQB-3.1.5.8.2-07")
def test_a_message_is_counted():
    desk = Desk()
    desk.queue()
    peer = desk.peer()
    session = session_of(peer)
    assert not session.session_active
    peer.send()
    assert (session.message_received_count, session.unacked_received_count) == (1, 1)
    assert session.session_active
    timers = desk.core.context.timers
    assert timers.active(Timer.SESSION_ACK_SEND, session.number)
    desk.passes(4_000)
    peer.send()
    assert (session.message_received_count, session.unacked_received_count) == (2, 2)
    desk.passes(5_999)
    assert peer.kinds() == []
    desk.passes(1)  # half of AckWaitTimeout after the first one
    assert peer.kinds() == ["SessionAck"]


@pytest.mark.requirement("MQQB-3.1.5.8.2-03")
def test_a_direct_name_is_remembered_for_the_session():
    desk = Desk()
    desk.queue()
    peer = desk.peer()
    peer.send(destination=PRIVATE, address=HERE.bytes_le)
    assert session_of(peer).direct_format_session is False
    peer.send()
    peer.send(destination=PRIVATE, address=HERE.bytes_le)
    assert session_of(peer).direct_format_session is True


@pytest.mark.requirement("MQQB-3.1.5.8.2-04", "MQQB-3.1.5.8.2-05", "MQQB-3.1.5.8.2-06")
def test_the_history_has_the_last_messages():
    desk = Desk(settings=Settings(remove_duplicate_size=3))
    queue, peer = desk.queue(), desk.peer()
    history, timers = desk.core.engine.history, desk.core.context.timers
    assert not timers.active(Timer.MESSAGE_ID_HISTORY_CLEANUP, None)
    for number in (1, 2, 3):
        peer.send(b"%d" % number, message_id=number)
        desk.passes(1000)
    assert timers.active(Timer.MESSAGE_ID_HISTORY_CLEANUP, None)
    peer.send(b"1", message_id=1)  # the earliest is 2 now
    assert history._times[ObjectId(THERE, 1)] == desk.utc
    peer.send(b"4", message_id=4)
    assert len(history) == 3
    peer.send(b"1", message_id=1)
    assert bodies(queue) == [b"1", b"2", b"3", b"4"]
    peer.send(b"2", message_id=2)
    assert bodies(queue) == [b"1", b"2", b"3", b"4", b"2"]


@pytest.mark.requirement("MQQB-3.1.5.8.2-09", "MQQB-3.1.5.8.2-16")
@pytest.mark.parametrize("asked", [NA, 0])
@pytest.mark.parametrize(
    ("destination", "address"),
    [(direct("none"), handmade.NULL_GUID), ((3, handmade.private_id(77)), HERE.bytes_le)],
)
def test_a_message_for_a_queue_that_is_not_there(asked, destination, address):
    desk = Desk(settings=Settings(send_insecure_nacks=True))
    admin, peer = desk.queue("adm"), desk.peer()
    peer.send(b"m", destination=destination, address=address, acks=asked, admin=ADMIN)
    assert acks(admin) == ([0x8000] if asked else [])
    assert bodies(admin) == ([b"m"] if asked else [])
    assert peer.take("FinalAck") == []


@pytest.mark.requirement("MQQB-3.1.5.8.2-09")
def test_a_message_for_a_journal_or_a_dead_letter_queue_is_rejected():
    desk = Desk(settings=Settings(send_insecure_nacks=True))
    queue, admin, peer = desk.queue(), desk.queue("adm"), desk.peer()
    for name in ("private$\\orders;JOURNAL", "system$;DEADLETTER", "system$;JOURNAL"):
        peer.send(destination=(7, handmade.direct_name(f"TCP:10.0.0.1\\{name}")), acks=NA, admin=ADMIN)
    manager = desk.core.queue_manager
    assert acks(admin) == [0x8000] * 3
    assert bodies(queue.journal) == []
    assert bodies(manager.system_deadletter_queue) == bodies(manager.system_journal_queue) == []


@pytest.mark.parametrize("asked", [NA, 0])
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("none", 0x8000, marks=pytest.mark.requirement("MQQB-3.1.5.8.2-10")),
        pytest.param(
            "orders",
            0x8009,
            marks=pytest.mark.requirement("MQQB-3.1.5.8.2-11", "MQQB-3.1.5.8.2-12", "DMPR-3.1.1.12-11"),
        ),
    ],
)
def test_a_transactional_message_that_has_no_queue(asked, name, expected):
    desk = Desk(settings=Settings(send_insecure_nacks=True))
    queue, admin, peer = desk.queue(), desk.queue("adm"), desk.peer()
    number = peer.send(tx=(1, 0), destination=direct(name), acks=asked, admin=ADMIN)
    (final,) = peer.take("FinalAck")
    assert final.MessagePropertiesHeader.MessageClass == expected
    assert final.FinalAckBody.MessageID == number
    assert acks(admin) == ([expected] if asked else [])
    assert bodies(queue) == []


@pytest.mark.requirement("MQQB-3.1.5.8.2-13", "DMPR-3.1.1.12-11")
@pytest.mark.parametrize("asked", [NA, 0])
def test_a_message_outside_a_transaction_for_a_transactional_queue(asked):
    desk = Desk()
    queue, admin, peer = desk.queue(transactional=True), desk.queue("adm"), desk.peer()
    peer.send(recoverable=True, acks=asked, admin=ADMIN)
    assert acks(admin) == ([0x800A] if asked else [])
    assert bodies(queue) == []
    assert peer.kinds() == []


@pytest.mark.requirement("MQQB-3.1.5.8.2-14", "MQQB-3.1.5.8.2-15")
def test_a_rejected_message_is_counted_and_acknowledged():
    desk = Desk()
    desk.queue()
    peer = desk.peer()
    peer.send(destination=direct("none"), recoverable=True)
    peer.send(b"good", recoverable=True)
    peer.send(destination=direct("none"), tx=(1, 0))
    desk.passes(500)
    assert peer.acks[-1][:3] == (3, 1, 0b111)
    peer.acknowledge()
    assert session_of(peer).state is SessionState.OPEN


@pytest.mark.requirement("MQQB-3.1.5.8.2-16", "MQQB-3.1.5.8.2-17")
def test_the_hop_count_grows_when_a_message_is_passed_on():
    desk = routed()
    queue, peer = desk.queue(), desk.peer()
    peer.send(b"here", hops=7)
    peer.send(b"here too", hops=7, destination=PRIVATE, address=HERE.bytes_le)
    peer.send(b"on", hops=7, **ONWARD)
    assert [message.hop_count for message in messages(queue)] == [7, 7]
    (sent,) = desk.called[0].take("UserMessage")
    assert sent.UserHeader.Flags.RC == 8


@pytest.mark.requirement("MQQB-3.1.5.8.2-18", "MQQB-3.1.5.8.2-19")
@pytest.mark.parametrize("asked", [NA, 0])
@pytest.mark.parametrize("tx", [None, (1, 0)])
def test_a_message_that_has_passed_too_many(asked, tx):
    desk = routed()
    admin, peer = desk.queue("adm"), desk.peer()
    peer.send(b"last", hops=0x1C, tx=tx, **ONWARD)
    assert desk.called[0].take("UserMessage")[0].UserHeader.Flags.RC == 0x1D
    peer.send(b"too far", hops=0x1D, tx=tx, acks=asked, admin=ADMIN, **ONWARD)
    assert desk.called[0].take("UserMessage") == []
    assert acks(admin) == ([0x8005] if asked else [])
    classes = [
        packet.MessagePropertiesHeader.MessageClass
        for one in (peer, *desk.called) for packet in one.take("FinalAck")
    ]  # fmt: skip
    assert classes == ([0x8005] if tx else [])


@pytest.mark.requirement("MQQB-3.1.5.8.2-20", "MQQB-3.1.5.8.7-04", "MQQB-3.1.5.8.7-06")
def test_recoverable_messages_are_counted_and_saved_beside():
    desk = Desk()
    desk.queue()
    peer = desk.peer()
    session = session_of(peer)
    flags = []
    for recoverable in (False, True, False, True):
        peer.send(recoverable=recoverable)
        flags.append((session.recoverable_message_received_count, session.recoverable_ack_flags))
    assert flags == [(0, 0), (1, 1), (1, 1), (2, 0b11)]
    assert len(list(desk.store.rows(Table.PACKET))) == 2  # stored, while nothing was acknowledged yet
    assert peer.kinds() == []


# --- 3.1.5.8.4 ---


@pytest.mark.requirement("MQQB-3.1.5.8.4-01", "MQQB-3.1.5.8.4-02")
@pytest.mark.parametrize("recoverable", [False, True])
def test_a_header_in_a_message_counts_that_message(recoverable):
    desk = Desk()
    queue, peer = desk.queue(), desk.peer()
    desk.send(b"out", to=desk.open(f"DIRECT=TCP:{PEER_ADDRESS}\\private$\\far"))
    far = desk.called[0]
    assert len(desk.core.engine.transfers[desk.outgoing().number].table) == 1
    far.take()
    far.send(b"with a header", recoverable=recoverable, session=True)
    assert len(desk.core.engine.transfers[desk.outgoing().number].table) == 0
    assert bodies(queue) == [b"with a header"]
    assert session_of(far).state is SessionState.OPEN
    peer.sent += 1
    peer.recoverable += recoverable
    peer.put(peer.packet(b"wrong count", recoverable=recoverable, session=peer.header(sent=0)))
    assert peer.closed


# --- 3.1.5.8.8 ---


@pytest.mark.requirement("MQQB-3.1.5.8.8-01", "MQQB-3.1.7.10-01")
def test_a_message_is_what_its_packet_says():
    desk = Desk()
    queue, peer = desk.queue(), desk.peer()
    peer.send(
        b"body", message_id=5, label="label", priority=6, acks=PA | NA, admin=ADMIN, receive=99, flags=JN
    )
    (message,) = messages(queue)
    assert (message.body, message.label, message.priority) == (b"body", "label", 6)
    assert message.identifier == ObjectId(THERE, 5)
    assert message.time_to_be_received == 99
    assert message.administration.canonical == "DIRECT=TCP:10.0.0.1\\PRIVATE$\\adm"
    assert message.negative_journaling_requested
    assert not message.positive_journaling_requested


@pytest.mark.requirement("MQQB-3.1.5.8.8-03", "MQQB-3.1.5.8.8-04", "MQQB-3.1.5.8.8-05")
@pytest.mark.parametrize("asked", [NA, 0])
@pytest.mark.parametrize("flags", [JN, 0])
@pytest.mark.parametrize("tx", [None, (1, 0)])
def test_a_queue_that_is_full(asked, flags, tx):
    desk = Desk()
    queue, admin, peer = desk.queue(quota=0, transactional=tx is not None), desk.queue("adm"), desk.peer()
    peer.send(b"m", tx=tx, acks=asked, admin=ADMIN, flags=flags)
    assert bodies(queue) == []
    assert acks(admin) == ([0x8003] if asked else [])
    finals = [packet.MessagePropertiesHeader.MessageClass for packet in peer.take("FinalAck")]
    assert finals == ([0x8003] if tx else [])
    dead = bodies(desk.core.queue_manager.system_deadletter_queue)
    assert dead == ([b"m"] if flags and not tx else [])
    assert session_of(peer).state is SessionState.OPEN


@pytest.mark.requirement("MQQB-3.1.5.8.8-06")
@pytest.mark.parametrize("tx", [None, (1, 0)])
def test_a_queue_manager_that_is_full_closes_the_session(tx):
    desk = Desk()
    queue, admin, peer = desk.queue(transactional=tx is not None), desk.queue("adm"), desk.peer()
    manager = desk.core.queue_manager
    quota, manager.queue_manager_quota = manager.queue_manager_quota, 0
    peer.send(b"m", tx=tx, message_id=9, acks=NA, admin=ADMIN, flags=JN)
    assert peer.closed
    assert peer.kinds() == []
    assert bodies(queue) == acks(admin) == []
    assert bodies(manager.system_deadletter_queue) == []
    manager.queue_manager_quota = quota
    desk.peer().send(b"m", tx=tx, message_id=9)  # later
    assert bodies(queue) == [b"m"]


@pytest.mark.requirement("MQQB-3.1.5.8.10-02")
def test_no_arrival_at_a_system_queue_is_acknowledged():
    desk = Desk()
    admin, peer = desk.queue("adm"), desk.peer()
    notify = desk.core.queues.lookup.path("here\\private$\\notify_queue$")
    assert notify.queue_type is QueueType.SYSTEM
    assert DM == 0x20
    peer.send(b"n", destination=direct("notify_queue$"), acks=PA, admin=ADMIN)
    assert bodies(notify) == [b"n"]
    assert acks(admin) == []
