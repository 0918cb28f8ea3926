"""Administration acknowledgements: [MS-MQQB] 3.1.5.8.10, 3.1.5.11, 3.1.7.2 and 3.1.7.15."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.constants import MessageClass
from msmqwire.names import parse_format_name
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import (
    INFINITE,
    AcknowledgementsRequested,
    AuthenticationLevel,
    DeliveryGuarantee,
)
from msmqwire.qm.model.message import Message, ObjectId
from msmqwire.qm.model.settings import Settings
from tests.support import handmade
from tests.support.engine_harness import OWN_ID, PEER_ADDRESS, PEER_ID, EngineHarness, harness_with_peer
from tests.support.peers.handwritten_peer import JN, JP, NA, NR, PA, PR, direct
from tests.support.qm.queue_contents import bodies, message_classes, messages

ADMIN = direct("adm")
INSECURE = {0x8000, 0x8004, 0x8006, 0x8007, 0x800B}
OTHERS = {0x0002, 0x4000, 0x8001, 0x8002, 0x8003, 0x8005, 0x8009, 0x800A, 0xC000, 0xC001, 0xC002, 0xC004}
PRIVATE = {"destination": (3, handmade.private_id(5)), "address": OWN_ID.bytes_le}


# --- 3.1.5.8.10, 3.1.5.11 ---


@pytest.mark.requirement("DMPR-3.1.1.12-39")
@pytest.mark.requirement("MQMQ-2.2.18.1.6-03", "MQMQ-2.2.19.3-02")
@pytest.mark.requirement("MQQB-3.1.5.8.10-01", "DMPR-3.1.1.12-40", "DMPR-3.1.1.12-43", "DMPR-3.1.1.12-08")
@pytest.mark.parametrize("address_fields", [{"destination": direct()}, PRIVATE], ids=["zero", "own"])
@pytest.mark.parametrize("asked", [PA, PA | NA, NA | PR | NR, 0])
def test_an_arrival_is_acknowledged(address_fields, asked):
    harness = harness_with_peer()
    queue, admin, peer = harness.queue(), harness.queue("adm"), harness.accept_session()
    events = harness.record_events()
    peer.send_message(b"m", acks=asked, admin=ADMIN, **address_fields)
    assert message_classes(admin) == ([0x0002] if asked & PA else [])
    queues = [filled for filled, _ in events.available()]
    assert queues == ([queue, admin] if asked & PA else [queue])  # after the message was put into its queue


@pytest.mark.requirement("MQQB-3.1.5.11-01", "MQQB-3.1.5.11-02")
@pytest.mark.parametrize("message_class", sorted(INSECURE | OTHERS))
def test_a_received_acknowledgement_enters_the_admin_queue(message_class):
    harness = harness_with_peer()
    admin, peer = harness.queue("adm"), harness.accept_session()
    peer.send_message(b"told", destination=ADMIN, message_class=message_class)
    assert [(message.message_class, message.body) for message in messages(admin)] == [
        (message_class, b"told")
    ]


def test_between_two_of_them_the_acknowledgement_comes_back():
    """The same with the acknowledgement that a queue manager itself sends for an arrival."""
    harness = harness_with_peer()
    harness.queue()
    peer = harness.accept_session()
    number = peer.send_message(acks=PA, admin=direct("adm", PEER_ADDRESS))
    (ack,) = harness.called[0].take("UserMessage")
    assert ack.CorrelationID == handmade.objectid(PEER_ID.bytes_le, number)


# --- 3.1.7.2 ---

ALL_REASONS = {
    "received": 0x4000,
    "deleted": 0xC000,
    "purged": 0xC001,
    "expires": 0xC002,
}


def leave(harness: EngineHarness, queue: object, departure: str) -> None:
    if departure == "received":
        harness.receive(queue)
    elif departure == "expires":
        harness.advance(60_000)
    elif departure == "purged":
        harness.core.messages.purge(queue)
    else:
        harness.core.queues.delete(queue)
    harness.run()


@pytest.mark.requirement("DMPR-3.1.1.12-40", "DMPR-3.1.1.12-39")
@pytest.mark.requirement("MQMQ-2.2.19.3-03", "MQMQ-2.2.19.3-05")
@pytest.mark.requirement("MQQB-3.1.7.2-01", "MQQB-3.1.7.2.1-01", "MQQB-3.1.7.2.1-02", "MQQB-3.1.7.2.1-03")
@pytest.mark.requirement("DMPR-3.1.1.12-42", "DMPR-3.1.1.12-44", "DMPR-3.1.1.12-45", "DMPR-3.1.1.12-08")
@pytest.mark.parametrize(
    ("asked", "positive", "negative"),
    [
        (PR, True, False), (NR, False, True), (NA | NR, False, True), (NA | PR | NR, True, True),
        (PA | NA, False, False), (PA | PR, True, False), (0, False, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "departure",
    [pytest.param("received", marks=pytest.mark.requirement("MQMQ-2.2.18.1.6-05")), *list(ALL_REASONS)[1:]],
)
def test_a_sender_that_asked_is_notified_how_a_message_left(asked, positive, negative, departure):
    harness = harness_with_peer()
    queue, admin, peer = harness.queue(), harness.queue("adm"), harness.accept_session()
    number = peer.send_message(acks=asked, admin=ADMIN, time_to_be_received=60)
    arrival = [0x0002] if asked & PA else []
    assert message_classes(admin) == arrival
    leave(harness, queue, departure)
    acknowledged = positive if departure == "received" else negative
    assert message_classes(admin) == arrival + ([ALL_REASONS[departure]] if acknowledged else [])
    assert all(
        message.correlation_identifier == bytes(ObjectId(PEER_ID, number)) for message in messages(admin)
    )


@pytest.mark.requirement("MQQB-3.1.7.2.1-03", "MQQB-3.1.7.2.2-02")
def test_a_message_that_its_reader_rejects():
    harness = harness_with_peer()
    queue, admin, peer = harness.queue(transactional=True), harness.queue("adm"), harness.accept_session()
    peer.send_message(tx=(1, 0), acks=NR, admin=ADMIN, flags=JN)
    (position,) = queue.positions
    harness.core.messages.position_deleted(queue, position, MessageClass.MQMSG_CLASS_NACK_RECEIVE_REJECTED)
    harness.run()
    (final,) = peer.take("FinalAck")
    assert message_classes(admin) == [0xC004]
    assert final.MessageClass == 0xC004


@pytest.mark.requirement("MQQB-3.1.7.2.1-04", "MQQB-3.1.7.15-16")
@pytest.mark.parametrize("recoverable", [False, True])
@pytest.mark.parametrize("departure", ["received", "purged"])
def test_an_acknowledgement_is_as_recoverable_as_its_message(recoverable, departure):
    harness = harness_with_peer()
    queue, admin, peer = harness.queue(), harness.queue("adm"), harness.accept_session()
    peer.send_message(acks=PA | PR | NR, admin=ADMIN, recoverable=recoverable)
    leave(harness, queue, departure)
    assert [message.recoverable for message in messages(admin)] == [recoverable, recoverable]


@pytest.mark.requirement("MQQB-3.1.7.2.2-01", "MQQB-3.1.7.2.2-02", "MQQB-2.2.5-02")
@pytest.mark.parametrize("departure", ALL_REASONS)
@pytest.mark.parametrize(("flags", "final"), [(JP, True), (JN, True), (JP | JN, True), (0, False)])
@pytest.mark.parametrize("tx", [None, (1, 0)])
def test_a_final_acknowledgement_tells_how_a_message_left(departure, flags, final, tx):
    harness = harness_with_peer()
    queue, peer = harness.queue(transactional=tx is not None), harness.accept_session()
    peer.send_message(tx=tx, flags=flags, time_to_be_received=60)
    leave(harness, queue, departure)
    finals = [packet.MessageClass for packet in peer.take("FinalAck")]
    assert finals == ([ALL_REASONS[departure]] if final and tx else [])


@pytest.mark.requirement("MQMQ-2.2.20.5-05")
@pytest.mark.requirement("MQQB-3.1.7.2.2-01", "DMPR-3.1.1.12-72")
@pytest.mark.parametrize("required", [True, False])
def test_the_transaction_header_can_require_a_final_ack(required):
    harness = harness_with_peer()
    queue, peer = harness.queue(transactional=True), harness.accept_session()
    header = handmade.transaction_header(flags=0x02 if required else 0)  # FA
    user = handmade.user_header(
        source=PEER_ID.bytes_le, flags=handmade.MP | 0x20, destination=direct(), sent_time=harness.utc
    )
    peer.sent, peer.recoverable_sent = 1, 1
    peer.send(handmade.user_message(user=user, transaction=header, flags=0))
    assert harness.receive(queue) == b""
    finals = [packet.MessageClass for packet in peer.take("FinalAck")]
    assert finals == ([0x4000] if required else [])


def _reject(harness: EngineHarness, queue: Queue) -> None:
    """A reader rejects the first message in its transaction."""
    transaction = harness.begin()
    position = next(iter(queue.positions))
    harness.core.messages.lock(position, transaction, MessageClass.MQMSG_CLASS_NACK_RECEIVE_REJECTED)
    harness.core.commit(transaction)
    harness.run()


@pytest.mark.requirement("DMPR-3.1.1.12-12")
@pytest.mark.parametrize(
    ("failure", "message_class"),
    [
        pytest.param("deleted", 0xC000, marks=pytest.mark.requirement("MQMQ-2.2.18.1.6-17")),
        pytest.param("purged", 0xC001, marks=pytest.mark.requirement("MQMQ-2.2.18.1.6-18")),
        pytest.param("expires", 0xC002, marks=pytest.mark.requirement("MQMQ-2.2.18.1.6-19")),
        pytest.param("rejected", 0xC004, marks=pytest.mark.requirement("MQMQ-2.2.18.1.6-20")),
    ],
)
def test_each_way_of_not_being_received_has_its_class(failure, message_class):
    harness = harness_with_peer()
    queue, admin, peer = harness.queue(), harness.queue("adm"), harness.accept_session()
    peer.send_message(acks=NR, admin=ADMIN, time_to_be_received=60)
    if failure == "rejected":
        _reject(harness, queue)
    else:
        leave(harness, queue, failure)
    assert message_classes(admin) == [message_class]


def unreachable() -> tuple[EngineHarness, Queue]:
    """A queue manager that reaches nobody, and its administration queue."""
    harness = harness_with_peer()
    harness.hosts.clear()
    return harness, harness.queue("adm")


@pytest.mark.requirement("DMPR-3.1.1.12-12", "MQMQ-2.2.18.1.6-07")
@pytest.mark.parametrize("asked", [NA, NA | NR, PA | PR | NR, 0])
@pytest.mark.parametrize("kind", ["express", "recoverable", "transactional"])
def test_a_message_purged_at_its_sender_is_negatively_acked(kind, asked):
    harness, admin = unreachable()
    harness.send(
        b"m", acknowledgements_requested=AcknowledgementsRequested(asked),
        administration=parse_format_name("DIRECT=OS:here\\private$\\adm"),
        transactional=kind == "transactional", recoverable=kind == "recoverable",
    )  # fmt: skip
    harness.core.messages.purge(harness.outgoing())
    harness.run()
    assert len(harness.outgoing().positions) == 0
    assert message_classes(admin) == ([0x8001] if asked & NA else [])
    assert harness.restarted().outgoing().total_bytes == 0


def test_a_purged_message_that_may_have_arrived_is_not_nacked():
    """No acknowledgement reports as deleted a sequence message that may be in its queue."""
    harness = EngineHarness()
    admin = harness.queue("adm")
    administration = parse_format_name("DIRECT=OS:here\\private$\\adm")
    harness.open_session(
        count=1, transactional=True, administration=administration,
        acknowledgements_requested=AcknowledgementsRequested(NA),
    )  # fmt: skip
    harness.core.messages.purge(harness.outgoing())
    harness.run()
    assert len(harness.outgoing().positions) == 0
    assert message_classes(admin) == []


@pytest.mark.requirement("DMPR-3.1.1.12-12", "MQMQ-2.2.18.1.6-08")
@pytest.mark.parametrize("asked", [NA, NR, NA | NR, PA | PR, 0])
@pytest.mark.parametrize(("reach", "receive"), [(INFINITE, 10), (60, 10), (10, 60), (10, INFINITE)])
def test_a_message_that_expires_at_its_sender_is_dead_lettered(reach, receive, asked):
    """Its time to be received counts there too, and is acknowledged as the time to reach the queue."""
    harness, admin = unreachable()
    harness.send(
        b"m", acknowledgements_requested=AcknowledgementsRequested(asked), time_to_reach_queue=reach,
        time_to_be_received=receive, negative_journaling_requested=True,
        administration=parse_format_name("DIRECT=OS:here\\private$\\adm"),
    )  # fmt: skip
    harness.advance(10_999)
    assert message_classes(admin) == []
    assert len(harness.outgoing().positions) == 1
    harness.advance(1)
    told = asked & (NA | NR if receive == 10 else NA)
    assert message_classes(admin) == ([0x8002] if told else [])
    assert bodies(harness.core.queue_manager.system_deadletter_queue) == [b"m"]


# --- 3.1.7.15 ---


@pytest.mark.requirement("MQQB-3.1.7.15-02", "DMPR-3.1.1.12-30")
def test_without_an_administration_queue_nothing_is_sent():
    harness = harness_with_peer()
    queue, peer = harness.queue(), harness.accept_session()
    peer.send_message(acks=PA | PR)
    assert harness.receive(queue) == b"x"
    assert harness.called == []
    assert peer.kinds() == []


@pytest.mark.requirement("MQQB-5.1-04")
@pytest.mark.requirement("MQQB-3.1.7.15-03", "MQQB-3.1.7.15-04")
@pytest.mark.parametrize("insecure", [False, True])
@pytest.mark.parametrize("message_class", sorted(INSECURE | OTHERS))
def test_the_classes_that_are_sent(insecure, message_class):
    harness = harness_with_peer(settings=Settings(send_insecure_nacks=insecure))
    admin = harness.queue("adm")
    message = Message(
        body=b"m",
        identifier=ObjectId(PEER_ID, 5),
        administration=parse_format_name("DIRECT=OS:here\\private$\\adm"),
    )
    harness.core.system_messages.acknowledge(message, message_class)
    sent = insecure or message_class not in INSECURE
    assert message_classes(admin) == ([message_class] if sent else [])


@pytest.mark.requirement("MQQB-3.1.7.15-01", "MQQB-3.1.7.15-05", "MQQB-3.1.7.15-11", "MQQB-3.1.7.15-12")
@pytest.mark.requirement("MQQB-3.1.7.15-04", "MQQB-3.1.7.15-16", "MQQB-3.1.7.15-17", "MQQB-3.1.7.15-18")
@pytest.mark.requirement("MQQB-3.1.5.11-01", "MQQB-3.1.7.2.1-04")
@pytest.mark.parametrize(
    ("message_class", "privacy", "body"),
    [(0x0002, 0, b""), (0x4000, 0, b""), (0x8002, 0, b"told"), (0xC001, 0, b"told"), (0xC001, 3, b"")],
)
def test_what_an_acknowledgement_is(message_class, privacy, body):
    harness = harness_with_peer()
    admin = harness.queue("adm")
    destination = parse_format_name("DIRECT=TCP:10.0.0.7\\private$\\q")
    message = Message(
        body=b"told", identifier=ObjectId(PEER_ID, 5), destination=destination, privacy_level=privacy,
        administration=parse_format_name("DIRECT=OS:here\\private$\\adm"), positive_journaling_requested=True,
        negative_journaling_requested=True, time_to_reach_queue=5, time_to_be_received=5,
        acknowledgements_requested=AcknowledgementsRequested(15),
        delivery_guarantee=DeliveryGuarantee.RECOVERABLE, authentication_level=AuthenticationLevel.SIG20,
        label="its label", body_type=8,
    )  # fmt: skip
    harness.core.system_messages.acknowledge(message, message_class)
    (ack,) = messages(admin)
    assert (ack.message_class, ack.body) == (message_class, body)
    assert ack.correlation_identifier == handmade.objectid(PEER_ID.bytes_le, 5)
    assert (ack.destination, ack.response) == (message.administration, destination)
    assert (ack.label, ack.body_type) == ("its label", 8)
    assert (ack.time_to_reach_queue, ack.time_to_be_received) == (INFINITE, INFINITE)
    assert not ack.positive_journaling_requested
    assert not ack.negative_journaling_requested
    assert not ack.acknowledgements_requested
    assert not ack.privacy_level
    assert not ack.authentication_level
    assert ack.recoverable
    assert ack.source_machine_identifier == OWN_ID
    assert ack.administration is None


def row(requirement: str, *values: object) -> object:
    return pytest.param(*values, marks=pytest.mark.requirement(requirement))


QUEUE = UUID(int=0x77)
OTHER = UUID(int=0x88)


@pytest.mark.parametrize(
    ("admin", "name"),
    [
        row("MQQB-3.1.7.15-06", (2, handmade.private_id(0x1F)), f"PRIVATE={PEER_ID}\\0000001f"),
        row("MQQB-3.1.7.15-07", (3, handmade.private_id(0x1F)), f"PRIVATE={OWN_ID}\\0000001f"),
        row("MQQB-3.1.7.15-08", (5, QUEUE.bytes_le), f"PUBLIC={QUEUE}"),
        row("MQQB-3.1.7.15-09", (6, handmade.private_name(OTHER.bytes_le, 31)), f"PRIVATE={OTHER}\\0000001f"),
        row("MQQB-3.1.7.15-10", direct("adm", "10.0.0.7"), "DIRECT=TCP:10.0.0.7\\PRIVATE$\\adm"),
    ],
)  # fmt: skip
@pytest.mark.requirement("MQQB-3.1.7.15-19/a")
def test_where_an_acknowledgement_goes(admin, name, monkeypatch):
    harness = harness_with_peer()
    harness.queue()
    asked = []
    opened = harness.core.queues.open

    def watch(format_name, access_type, *more, **named):
        asked.append((format_name.canonical, access_type.value, *more))
        return opened(format_name, access_type, *more, **named)

    monkeypatch.setattr(harness.core.queues, "open", watch)
    harness.accept_session().send_message(acks=PA, admin=admin, **PRIVATE)
    assert asked == [(name, "SendAccess")]


@pytest.mark.parametrize(
    ("destination", "address", "name"),
    [
        row("MQQB-3.1.7.15-13", (3, handmade.private_id(0x1F)), OWN_ID, f"PRIVATE={OWN_ID}\\0000001f"),
        row("MQQB-3.1.7.15-14", (5, QUEUE.bytes_le), OWN_ID, f"PUBLIC={QUEUE}"),
        row("MQQB-3.1.7.15-15", direct("none"), UUID(int=0), "DIRECT=TCP:10.0.0.1\\PRIVATE$\\none"),
    ],
)  # fmt: skip
def test_the_response_queue_of_an_ack_is_the_destination(destination, address, name):
    harness = harness_with_peer(settings=Settings(send_insecure_nacks=True))
    admin = harness.queue("adm")
    harness.accept_session().send_message(
        destination=destination, address=address.bytes_le, acks=NA, admin=ADMIN
    )
    (ack,) = messages(admin)
    assert ack.message_class == 0x8000
    assert ack.response.canonical == name


@pytest.mark.requirement("MQQB-3.1.7.15-19/b")
def test_an_ack_is_put_into_its_queue():
    harness = harness_with_peer()
    queue, admin = harness.queue(), harness.queue("adm")
    harness.accept_session().send_message(b"m", acks=PA, admin=ADMIN, **PRIVATE)
    assert (bodies(queue), message_classes(admin)) == ([b"m"], [0x0002])


@pytest.mark.requirement("MQQB-3.1.7.15-19/c")
@pytest.mark.parametrize("admin", [direct("none"), (5, QUEUE.bytes_le), (3, handmade.private_id(99))])
def test_an_ack_is_discarded_if_its_queue_cannot_be_opened(admin):
    harness = harness_with_peer()
    queue, peer = harness.queue(), harness.accept_session()
    outgoing = len(harness.core.queue_manager.queues)
    peer.send_message(b"m", acks=PA, admin=admin, **PRIVATE)
    assert bodies(queue) == [b"m"]
    assert harness.called == []
    assert len(harness.core.queue_manager.queues) == outgoing
    assert not peer.closed
    ((key, refusal),) = harness.core.context.refusals.kept.items()
    assert (key.reason, refusal.why.partition(":")[0]) == ("BAD_DST_Q", "the queue for a report on a message")


@pytest.mark.requirement(
    "MQQB-3.1.7.1.2-03", "DMPR-3.1.1.12-41", "DMPR-3.1.1.12-43", "DMPR-3.1.1.12-44", "DMPR-3.1.1.12-45"
)
@pytest.mark.parametrize("asked", [NA, PA | NA, NA | PR | NR, PA | PR | NR, 0])
def test_an_unsent_message_is_acked_by_its_own_queue_manager(asked):
    harness = harness_with_peer()
    harness.hosts.clear()
    admin = harness.queue("adm")
    harness.send(
        b"m", acknowledgements_requested=AcknowledgementsRequested(asked), time_to_reach_queue=10,
        administration=parse_format_name("DIRECT=OS:here\\private$\\adm"),
    )  # fmt: skip
    harness.advance(10_999)
    assert message_classes(admin) == []
    harness.advance(1)
    assert message_classes(admin) == ([0x8002] if asked & NA else [])
