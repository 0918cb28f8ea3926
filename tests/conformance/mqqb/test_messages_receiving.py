"""Receiving a UserMessage: [MS-MQQB] 3.1.5.8, .1, .2, .4, .5, .7 and .8."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.effects import Disconnect
from msmqwire.qm.model.enumerations import QueueType
from msmqwire.qm.model.message import NULL_GUID, ObjectId
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.tables import Table
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.states import SessionState
from tests.support import handmade
from tests.support.engine_harness import (
    OWN_ID,
    PEER_ADDRESS,
    PEER_ID,
    THIRD_ID,
    EngineHarness,
    harness_with_peer,
)
from tests.support.peers.handwritten_peer import DM, JN, NA, PA, HandwrittenPeer, direct
from tests.support.qm.queue_contents import bodies, message_classes, messages

ADMIN = direct("adm")
PRIVATE = 3, handmade.private_id(5)
ONWARD = {"address": THIRD_ID.bytes_le, "destination": (3, handmade.private_id(9))}


def session_of(peer: HandwrittenPeer):
    return peer.harness.core.binary.session_table.by_connection.get(peer.connection)


def routed(**options: object) -> EngineHarness:
    harness = harness_with_peer(routes={THIRD_ID: ["far"]}, **options)
    harness.names["far"], harness.hosts[PEER_ADDRESS] = PEER_ADDRESS, THIRD_ID
    return harness


# --- 3.1.5.8 ---


@pytest.mark.requirement("MQQB-3.1.5.8-01")
@pytest.mark.parametrize("further", [False, True])
def test_a_message_before_the_session_is_open_closes_it(further):
    harness = harness_with_peer()
    queue = harness.queue()
    peer = harness.accept_connection()
    if further:  # EstablishConnection alone
        peer.send(peer.establish(server=NULL_GUID))
    assert not peer.closed
    peer.send(peer.message(b"early", count=False))
    assert Disconnect(peer.connection) in harness.effects
    assert bodies(queue) == []


@pytest.mark.requirement("MQQB-3.1.5.8-02", "MQQB-3.1.5.8.5-01", "MQQB-3.1.5.8.5-02", "MQQB-3.1.5.8.8-02")
def test_local_and_forwarded_messages_go_to_their_own_queues():
    harness = routed()
    harness.hosts.clear()
    queue, peer = harness.queue(), harness.accept_session()
    assert queue.private_queue_number == 5
    peer.send_message(b"direct")
    peer.send_message(b"private", destination=PRIVATE, address=OWN_ID.bytes_le)
    peer.send_message(b"on", **ONWARD)
    assert bodies(queue) == [b"direct", b"private"]
    outgoing = harness.outgoing(f"PRIVATE={THIRD_ID}\\9")
    assert bodies(outgoing) == [b"on"]
    assert not outgoing.descriptors


@pytest.mark.requirement("MQQB-3.1.5.8-03")
def test_the_steps_are_made_in_their_order():
    harness = harness_with_peer(settings=Settings(send_insecure_nacks=True))
    harness.queue(), harness.queue("tx", transactional=True)
    admin, peer = harness.queue("adm"), harness.accept_session()
    faults = {
        "security": handmade.security_header(signature=b"s" * 8),
        "time_to_reach_queue": 5,
        "sent_time": harness.utc - 9,
    }
    options = {"acks": NA | PA, "admin": ADMIN}
    peer.send_message(b"known", message_id=70, **options)
    peer.send_message(
        b"known", message_id=70, destination=direct("none"), **faults, **options
    )  # Duplicate Detection
    peer.send_message(destination=direct("none"), **faults, **options)  # General Processing
    peer.send_message(destination=direct("tx"), **faults, **options)
    peer.send_message(**faults, **options)  # Security
    faults.pop("security")
    peer.send_message(**faults, session=True, **options)  # SessionHeader Processing, Message Expiration
    assert message_classes(admin) == [0x0002, 0x8000, 0x800A, 0x8006, 0x8002]
    peer.send_message(
        b"2", tx=(2, 1), destination=direct("tx"), time_to_reach_queue=5, sent_time=harness.utc - 9, **options
    )
    assert (
        message_classes(admin)[5:] == []
    )  # Transactional Message Processing: out of sequence, so its lateness does not matter
    assert session_of(peer).state is SessionState.OPEN


@pytest.mark.requirement("MQMQ-2.2.19.1-23")
@pytest.mark.requirement("DMPR-3.1.1.12-09/b", "MQQB-3.1.5.8-04")
@pytest.mark.parametrize("asked", [NA, 0])
@pytest.mark.parametrize(
    ("age", "reach", "late"),
    [(10, 10, False), (11, 10, True), (1 << 30, handmade.INFINITE, False), (1, 0, True)],
)
def test_a_message_that_is_too_old_is_not_delivered_but_counted(age, reach, late, asked):
    harness = harness_with_peer()
    queue, admin, peer = harness.queue(), harness.queue("adm"), harness.accept_session()
    peer.send_message(b"m", sent_time=harness.utc - age, time_to_reach_queue=reach, acks=asked, admin=ADMIN)
    assert bodies(queue) == ([] if late else [b"m"])
    assert message_classes(admin) == ([0x8002] if late and asked else [])
    assert session_of(peer).message_received_count == 1


# --- 3.1.5.8.1 ---


@pytest.mark.requirement("MQQB-3.1.5.8.1-01")
def test_the_history_admits_every_transactional_message():
    """Identifiers of the history do not count for transactional messages: their sequence decides."""
    harness = harness_with_peer()
    queue, plain, peer = harness.queue("tx", transactional=True), harness.queue(), harness.accept_session()
    peer.send_message(b"plain", message_id=9)
    peer.send_message(b"one", message_id=9, tx=(1, 0), destination=direct("tx"))
    peer.send_message(b"one", message_id=10, tx=(1, 0), destination=direct("tx"))
    assert bodies(plain) == [b"plain"]
    assert bodies(queue) == [b"one"]


@pytest.mark.requirement("MQQB-3.1.5.8.1-02")
def test_a_duplicate_has_the_same_number_and_the_same_sender():
    harness = harness_with_peer()
    queue, peer = harness.queue(), harness.accept_session()
    admin = harness.queue("adm")
    peer.send_message(b"1", message_id=9)
    peer.send_message(b"2", message_id=9, acks=PA | NA, admin=ADMIN)
    peer.send_message(b"3", message_id=9, source=THIRD_ID)
    peer.send_message(b"4", message_id=10)
    assert bodies(queue) == [b"1", b"3", b"4"]
    assert message_classes(admin) == []


@pytest.mark.requirement("MQQB-3.1.5.8.1-03")
def test_a_duplicate_keeps_its_entry_alive():
    harness = harness_with_peer(
        settings=Settings(message_id_history_cleanup_ms=60_000, session_cleanup_ms=1 << 30)
    )
    queue, peer = harness.queue(), harness.accept_session()
    for _ in range(4):  # never a minute apart
        peer.send_message(b"1", message_id=9, recoverable=True)
        key = bytes(ObjectId(PEER_ID, 9))
        assert int.from_bytes(harness.store.row(Table.HISTORY, key), "little") == harness.utc
        harness.advance(50_000)
    assert bodies(queue) == [b"1"]
    harness.advance(70_000)
    peer.send_message(b"1", message_id=9)
    assert bodies(queue) == [b"1", b"1"]
    assert harness.store.row(Table.HISTORY, key) is None


@pytest.mark.requirement("MQQB-3.1.5.8.1-04")
@pytest.mark.parametrize("recoverable", [False, True])
def test_a_duplicate_is_counted_and_acknowledged(recoverable):
    harness = harness_with_peer()
    harness.queue()
    peer = harness.accept_session()
    for _ in range(3):
        peer.send_message(b"1", message_id=9, recoverable=recoverable)
    peer.acknowledge()  # its counts are checked: MQQB-3.1.5.5.5-01
    assert session_of(peer).state is SessionState.OPEN
    harness.advance(10_000)
    assert peer.acks[-1][:3] == ((3, 1, 0b111) if recoverable else (3, 0, 0))


# --- 3.1.5.8.2 ---


@pytest.mark.requirement("MQQB-3.1.5.8.2-01")
def test_a_forwarded_message_that_is_not_saved_is_not_acked():
    """While nothing can be saved it is disregarded, and the session ends, so that it is sent again."""
    harness = routed()
    queue, peer = harness.queue(), harness.accept_session()
    session = session_of(peer)
    session = session_of(peer)
    harness.core.queues.begin_flow_control()
    peer.send_message(b"on", message_id=9, **ONWARD, acks=NA, admin=ADMIN)
    assert session.message_received_count == session.unacked_received_count == 0
    harness.advance(20_000)
    assert peer.kinds() == []
    assert harness.called == []
    assert bodies(queue) == []
    assert peer.closed  # since everything that followed would be counted one too low
    harness.core.queues.end_flow_control()
    harness.accept_session().send_message(b"on", message_id=9, **ONWARD)
    assert harness.called[0].bodies() == [b"on"]


@pytest.mark.requirement("MQQB-3.1.5.8.2-02", "MQQB-3.1.5.8.2-08", "MQQB-3.1.5.8.2-07")
def test_a_message_is_counted():
    harness = harness_with_peer()
    harness.queue()
    peer = harness.accept_session()
    session = session_of(peer)
    assert not session.session_active
    peer.send_message()
    assert (session.message_received_count, session.unacked_received_count) == (1, 1)
    assert session.session_active
    timers = harness.core.context.timers
    assert timers.active(Timer.SESSION_ACK_SEND, session.number)
    harness.advance(4_000)
    peer.send_message()
    assert (session.message_received_count, session.unacked_received_count) == (2, 2)
    harness.advance(5_999)
    assert peer.kinds() == []
    harness.advance(1)  # half of AckWaitTimeout after the first message
    assert peer.kinds() == ["SessionAck"]


@pytest.mark.requirement("MQQB-3.1.5.8.2-03")
def test_a_direct_name_is_remembered_for_the_session():
    harness = harness_with_peer()
    harness.queue()
    peer = harness.accept_session()
    peer.send_message(destination=PRIVATE, address=OWN_ID.bytes_le)
    assert session_of(peer).direct_format_session is False
    peer.send_message()
    peer.send_message(destination=PRIVATE, address=OWN_ID.bytes_le)
    assert session_of(peer).direct_format_session is True


@pytest.mark.requirement("MQQB-3.1.5.8.2-04", "MQQB-3.1.5.8.2-05", "MQQB-3.1.5.8.2-06")
def test_the_history_has_the_last_messages():
    harness = harness_with_peer(settings=Settings(remove_duplicate_size=3))
    queue, peer = harness.queue(), harness.accept_session()
    history, timers = harness.core.history, harness.core.context.timers
    assert not timers.active(Timer.MESSAGE_ID_HISTORY_CLEANUP, None)
    for number in (1, 2, 3):
        peer.send_message(b"%d" % number, message_id=number)
        assert history._entries[PEER_ID.int << 32 | number][0] == harness.utc
        harness.advance(1000)
    left = harness.time_left(Timer.MESSAGE_ID_HISTORY_CLEANUP)
    assert left == 1_800_000 - 3_000, "it was started with the first, and not again"
    peer.send_message(b"1", message_id=1)  # the oldest remembered is now 2
    assert history._entries[PEER_ID.int << 32 | 1][0] == harness.utc
    peer.send_message(b"4", message_id=4)
    assert len(history) == 3
    peer.send_message(b"1", message_id=1)
    assert bodies(queue) == [b"1", b"2", b"3", b"4"]
    peer.send_message(b"2", message_id=2)
    assert bodies(queue) == [b"1", b"2", b"3", b"4", b"2"]


@pytest.mark.requirement("MQMQ-2.2.18.1.6-06", "MQMQ-2.2.19.3-04")
@pytest.mark.requirement("DMPR-3.1.1.12-09/a", "MQQB-3.1.5.8.2-09", "MQQB-3.1.5.8.2-16")
@pytest.mark.parametrize("asked", [NA, 0])
@pytest.mark.parametrize(
    ("destination", "address"),
    [(direct("none"), handmade.NULL_GUID), ((3, handmade.private_id(77)), OWN_ID.bytes_le)],
)
def test_a_message_for_a_queue_that_is_not_there(asked, destination, address):
    harness = harness_with_peer(settings=Settings(send_insecure_nacks=True))
    admin, peer = harness.queue("adm"), harness.accept_session()
    peer.send_message(b"m", destination=destination, address=address, acks=asked, admin=ADMIN)
    assert message_classes(admin) == ([0x8000] if asked else [])
    assert bodies(admin) == ([b"m"] if asked else [])
    assert peer.take("FinalAck") == []


@pytest.mark.requirement("MQQB-3.1.5.8.2-09")
def test_journal_and_dead_letter_queues_reject_messages():
    harness = harness_with_peer(settings=Settings(send_insecure_nacks=True))
    queue, admin, peer = harness.queue(), harness.queue("adm"), harness.accept_session()
    for name in ("private$\\orders;JOURNAL", "system$;DEADLETTER", "system$;JOURNAL"):
        peer.send_message(
            destination=(7, handmade.direct_name(f"TCP:10.0.0.1\\{name}")), acks=NA, admin=ADMIN
        )
    manager = harness.core.queue_manager
    assert message_classes(admin) == [0x8000] * 3
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
            marks=pytest.mark.requirement(
                "MQQB-3.1.5.8.2-11",
                "MQQB-3.1.5.8.2-12",
                "DMPR-3.1.1.12-11",
                "DMPR-3.1.1.2-14",
                "MQMQ-2.2.18.1.6-14",
            ),
        ),
    ],
)
def test_a_transactional_message_that_has_no_queue(asked, name, expected):
    harness = harness_with_peer(settings=Settings(send_insecure_nacks=True))
    queue, admin, peer = harness.queue(), harness.queue("adm"), harness.accept_session()
    number = peer.send_message(tx=(1, 0), destination=direct(name), acks=asked, admin=ADMIN)
    (final,) = peer.take("FinalAck")
    assert final.MessageClass == expected
    assert final.acknowledged_message[1] == number
    assert message_classes(admin) == ([expected] if asked else [])
    assert bodies(queue) == []
    peer.send_message(b"plain")
    assert bodies(queue) == [b"plain"]


@pytest.mark.requirement("DMPR-3.1.1.2-14")
@pytest.mark.requirement("MQMQ-2.2.18.1.6-15")
@pytest.mark.requirement("MQQB-3.1.5.8.2-13", "DMPR-3.1.1.12-11")
@pytest.mark.parametrize("asked", [NA, 0])
def test_a_transactional_queue_refuses_a_plain_message(asked):
    harness = harness_with_peer()
    queue, admin, peer = harness.queue(transactional=True), harness.queue("adm"), harness.accept_session()
    peer.send_message(recoverable=True, acks=asked, admin=ADMIN)
    assert message_classes(admin) == ([0x800A] if asked else [])
    assert bodies(queue) == []
    assert peer.kinds() == []
    peer.send_message(b"transactional", tx=(1, 0))
    assert bodies(queue) == [b"transactional"]


@pytest.mark.requirement("MQQB-3.1.5.8.2-14", "MQQB-3.1.5.8.2-15")
def test_a_rejected_message_is_counted_and_acknowledged():
    harness = harness_with_peer()
    harness.queue()
    peer = harness.accept_session()
    peer.send_message(destination=direct("none"), recoverable=True)
    peer.send_message(b"good", recoverable=True)
    peer.send_message(destination=direct("none"), tx=(1, 0))
    harness.advance(500)
    assert peer.acks[-1][:3] == (3, 1, 0b111)
    peer.acknowledge()
    assert session_of(peer).state is SessionState.OPEN


@pytest.mark.requirement("MQMQ-2.2.19.2-10")
@pytest.mark.requirement("MQQB-3.1.5.8.2-16", "MQQB-3.1.5.8.2-17")
def test_the_hop_count_grows_when_a_message_is_passed_on():
    harness = routed()
    queue, peer = harness.queue(), harness.accept_session()
    peer.send_message(b"here", hops=7)
    peer.send_message(b"here too", hops=7, destination=PRIVATE, address=OWN_ID.bytes_le)
    peer.send_message(b"on", hops=7, **ONWARD)
    assert [message.hop_count for message in messages(queue)] == [7, 7]
    (sent,) = harness.called[0].take("UserMessage")
    assert sent.hops == 8


@pytest.mark.requirement("MQMQ-2.2.18.1.6-11", "MQMQ-2.2.19.2-10")
@pytest.mark.requirement("DMPR-3.1.1.12-09/e", "MQQB-3.1.5.8.2-18", "MQQB-3.1.5.8.2-19")
@pytest.mark.parametrize("asked", [NA, 0])
@pytest.mark.parametrize("tx", [None, (1, 0)])
def test_a_message_that_has_passed_too_many(asked, tx):
    harness = routed()
    admin, peer = harness.queue("adm"), harness.accept_session()
    peer.send_message(b"last", hops=0x1C, tx=tx, **ONWARD)
    assert harness.called[0].take("UserMessage")[0].hops == 0x1D
    peer.send_message(b"too far", hops=0x1D, tx=tx, acks=asked, admin=ADMIN, **ONWARD)
    assert harness.called[0].take("UserMessage") == []
    assert message_classes(admin) == ([0x8005] if asked else [])
    classes = [
        packet.MessageClass
        for each_peer in (peer, *harness.called) for packet in each_peer.take("FinalAck")
    ]  # fmt: skip
    assert classes == ([0x8005] if tx else [])


@pytest.mark.requirement("MQQB-3.1.5.8.2-20", "MQQB-3.1.5.8.7-04", "MQQB-3.1.5.8.7-06")
def test_recoverable_messages_are_counted_and_saved_beside():
    harness = harness_with_peer()
    harness.queue()
    peer = harness.accept_session()
    session = session_of(peer)
    flags = []
    for recoverable in (False, True, False, True):
        peer.send_message(recoverable=recoverable)
        flags.append((session.recoverable_message_received_count, session.recoverable_ack_flags))
    assert flags == [(0, 0), (1, 1), (1, 1), (2, 0b11)]
    assert len(list(harness.store.rows(Table.PACKET))) == 2  # stored, since nothing was acknowledged yet
    assert peer.kinds() == []


# --- 3.1.5.8.4 ---


@pytest.mark.requirement("MQQB-3.1.5.8.4-01", "MQQB-3.1.5.8.4-02")
@pytest.mark.parametrize("recoverable", [False, True])
def test_a_header_in_a_message_counts_that_message(recoverable):
    harness = harness_with_peer()
    queue, peer = harness.queue(), harness.accept_session()
    harness.send(b"out")
    far = harness.called[0]
    assert len(harness.core.binary.transfers[harness.outgoing().number].table) == 1
    far.take()
    far.send_message(b"with a header", recoverable=recoverable, session=True)
    assert len(harness.core.binary.transfers[harness.outgoing().number].table) == 0
    assert bodies(queue) == [b"with a header"]
    assert session_of(far).state is SessionState.OPEN
    peer.sent += 1
    peer.recoverable_sent += recoverable
    peer.send(
        peer.message(
            b"wrong count", count=False, recoverable=recoverable, header={"ack": peer.received, "sent": 0}
        )
    )
    assert peer.closed


# --- 3.1.5.8.8 ---


@pytest.mark.requirement("MQQB-3.1.5.8.8-01", "MQQB-3.1.7.10-01")
def test_a_message_is_what_its_packet_says():
    harness = harness_with_peer()
    queue, peer = harness.queue(), harness.accept_session()
    peer.send_message(
        b"body",
        message_id=5,
        label="label",
        priority=6,
        acks=PA | NA,
        admin=ADMIN,
        time_to_be_received=99,
        flags=JN,
    )
    (message,) = messages(queue)
    assert (message.body, message.label, message.priority) == (b"body", "label", 6)
    assert message.identifier == ObjectId(PEER_ID, 5)
    assert message.time_to_be_received == 99
    assert message.administration.canonical == "DIRECT=TCP:10.0.0.1\\PRIVATE$\\adm"
    assert message.negative_journaling_requested
    assert not message.positive_journaling_requested


@pytest.mark.requirement("MQMQ-2.2.18.1.6-09")
@pytest.mark.requirement("DMPR-3.1.1.12-09/c", "MQQB-3.1.5.8.8-03", "MQQB-3.1.5.8.8-04", "MQQB-3.1.5.8.8-05")
@pytest.mark.parametrize("asked", [NA, 0])
@pytest.mark.parametrize("flags", [JN, 0])
@pytest.mark.parametrize("tx", [None, (1, 0)])
def test_a_queue_that_is_full(asked, flags, tx):
    harness = harness_with_peer()
    queue, admin, peer = (
        harness.queue(quota=0, transactional=tx is not None),
        harness.queue("adm"),
        harness.accept_session(),
    )
    peer.send_message(b"m", tx=tx, acks=asked, admin=ADMIN, flags=flags)
    assert bodies(queue) == []
    assert message_classes(admin) == ([0x8003] if asked else [])
    finals = [packet.MessageClass for packet in peer.take("FinalAck")]
    assert finals == ([0x8003] if tx else [])
    dead = bodies(harness.core.queue_manager.system_deadletter_queue)
    assert dead == ([b"m"] if flags and not tx else [])
    assert session_of(peer).state is SessionState.OPEN


@pytest.mark.requirement("MQQB-3.1.5.8.8-06")
@pytest.mark.parametrize("tx", [None, (1, 0)])
def test_a_queue_manager_that_is_full_closes_the_session(tx):
    harness = harness_with_peer()
    queue, admin, peer = (
        harness.queue(transactional=tx is not None),
        harness.queue("adm"),
        harness.accept_session(),
    )
    manager = harness.core.queue_manager
    quota, manager.queue_manager_quota = manager.queue_manager_quota, 0
    peer.send_message(b"m", tx=tx, message_id=9, acks=NA, admin=ADMIN, flags=JN)
    assert peer.closed
    assert peer.kinds() == []
    assert bodies(queue) == message_classes(admin) == []
    assert bodies(manager.system_deadletter_queue) == []
    manager.queue_manager_quota = quota
    harness.accept_session().send_message(b"m", tx=tx, message_id=9)  # later
    assert bodies(queue) == [b"m"]


@pytest.mark.requirement("MQQB-3.1.5.8.10-02")
def test_no_arrival_at_a_system_queue_is_acknowledged():
    harness = harness_with_peer()
    admin, peer = harness.queue("adm"), harness.accept_session()
    notify = harness.core.queues.lookup.path("here\\private$\\notify_queue$")
    assert notify.queue_type is QueueType.SYSTEM
    assert DM == 0x20
    peer.send_message(b"n", destination=direct("notify_queue$"), acks=PA, admin=ADMIN)
    assert bodies(notify) == [b"n"]
    assert message_classes(admin) == []
