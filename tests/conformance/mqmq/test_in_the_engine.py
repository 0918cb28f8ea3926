"""Rows of [MS-MQMQ] on what a queue manager does with the fields of a message."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

import msmqwire
from msmqwire.errors import InvalidValue
from msmqwire.qm.model.effects import Resolve
from msmqwire.qm.model.elements import Queue, QueueManager
from msmqwire.qm.model.enumerations import INFINITE, EnqueueStatus, QueueType
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.settings import Settings
from tests.support import handmade as h
from tests.support.engine_harness import (
    OWN_ID,
    PEER_ADDRESS,
    PEER_ID,
    SEND,
    THIRD_ID,
    EngineHarness,
    harness_with_peer,
)
from tests.support.peers.handwritten_peer import DM, NA, HandwrittenPeer, direct
from tests.support.qm.directory_recorder import DirectoryRecorder
from tests.support.qm.queue_contents import bodies, message_classes, messages

requirement = pytest.mark.requirement
ORDERS = UUID(int=0x0D)
ODD = bytes(range(0x10, 0x20))


# -- what is the application's -----------------------------------------------------------------------------

FIELDS = [
    pytest.param("connector_type", ODD, marks=requirement("MQMQ-2.2.19.2-45"), id="ConnectorType"),
    pytest.param("connector_type", bytes(16), marks=requirement("MQMQ-2.2.19.2-45"), id="ConnectorType-null"),
    pytest.param("connector_type", OWN_ID.bytes_le, marks=requirement("MQMQ-2.2.19.2-45"), id="of-this-qm"),
    pytest.param(
        "correlation_id",
        b"\xff" * 20,
        marks=requirement("MQMQ-2.2.19.3-10", "DMPR-3.1.1.12-38"),
        id="CorrelationID",
    ),
    pytest.param(
        "correlation_id",
        OWN_ID.bytes_le + b"\1\0\0\0",
        marks=requirement("MQMQ-2.2.19.3-10", "DMPR-3.1.1.12-38"),
        id="of-a-message",
    ),
    pytest.param("application_tag", 0xFFFFFFFF, marks=requirement("MQMQ-2.2.19.3-14"), id="ApplicationTag"),
    pytest.param("application_tag", 1, marks=requirement("MQMQ-2.2.19.3-14"), id="ApplicationTag-1"),
    pytest.param("connector", ODD, marks=requirement("MQMQ-2.2.20.5-16"), id="ConnectorQMGuid"),
    pytest.param("connector", THIRD_ID.bytes_le, marks=requirement("MQMQ-2.2.20.5-16"), id="of-another-qm"),
]
ATTRIBUTES = {
    "connector_type": ("connector_type_identifier", lambda value: UUID(bytes_le=value)),
    "correlation_id": ("correlation_identifier", bytes),
    "application_tag": ("application_tag", int),
    "connector": ("connector_queue_manager_identifier", lambda value: UUID(bytes_le=value)),
}


def packet(harness: EngineHarness, *, hops: int = 0, forward: bool = False, **fields: Any) -> bytes:
    """A transactional message of the peer, to a queue here or to a third queue manager."""
    connector = fields.pop("connector", None)
    connector_type = fields.pop("connector_type", None)
    return h.user_message(
        user=h.user_header(
            source=PEER_ID.bytes_le, sent_time=harness.utc, message_id=5, flags=h.MP | DM | hops,
            address=THIRD_ID.bytes_le if forward else bytes(16),
            destination=(3, h.private_id(9)) if forward else direct("tx"), connector_type=connector_type,
        ),
        transaction=h.transaction_header(flags=0 if connector is None else 1, connector=connector),
        properties=h.properties_header(body=b"m", **fields),
        flags=0,
    )  # fmt: skip


def sent(peer: HandwrittenPeer, *packets: bytes) -> None:
    for one in packets:
        peer.count_sent(recoverable=bool(msmqwire.parse(one).UserHeader.Flags.DM))
    peer.send(*packets)


@pytest.mark.parametrize(("field", "value"), FIELDS)
def test_a_field_of_the_application_is_carried_and_means_nothing(field: str, value: Any) -> None:
    harness = harness_with_peer()
    queue = harness.queue("tx", transactional=True)
    events = harness.record_events()
    sent(harness.accept_session(), packet(harness, **{field: value}))
    (message,) = messages(queue)
    attribute, read = ATTRIBUTES[field]
    assert getattr(message, attribute) == read(value)
    assert [filled for filled, _ in events.available()] == [queue]
    (restored,) = messages(harness.restarted().find_queue("tx"))
    assert getattr(restored, attribute) == read(value)
    assert harness.called == []


@pytest.mark.parametrize(("field", "value"), FIELDS)
def test_a_field_of_the_application_is_passed_on_unchanged(field: str, value: Any) -> None:
    harness = harness_with_peer(routes={THIRD_ID: ["far"]})
    harness.names["far"], harness.hosts[PEER_ADDRESS] = PEER_ADDRESS, THIRD_ID
    source = harness.accept_session(address="10.0.0.8")
    sent(source, packet(harness, forward=True, **{field: value}))
    assert harness.called[0].take("UserMessage") == [packet(harness, forward=True, hops=1, **{field: value})]


# -- what makes a message transactional --------------------------------------------------------------------


@requirement("MQMQ-2.2.19.2-12", "MQMQ-2.2.19.2-13", "MQMQ-2.2.20.5-02")
@pytest.mark.parametrize("recoverable", [False, True])
@pytest.mark.parametrize("header", [False, True])
def test_the_transaction_header_makes_a_message_transactional(header: bool, recoverable: bool) -> None:
    harness = harness_with_peer()
    queues = harness.queue("tx", transactional=True), harness.queue()
    peer = harness.accept_session()
    for number, name in enumerate(("tx", "orders"), 1):
        transaction = h.transaction_header(ordinal=number) if header else b""
        peer.send_message(b"m", queue=name, transaction=transaction, recoverable=recoverable)
    assert [bodies(queue) for queue in queues] == ([[b"m"], []] if header else [[], [b"m"]])
    (message,) = messages(queues[0] if header else queues[1])
    assert message.transactional is header
    assert message.recoverable is (header or recoverable)
    survives = harness.restarted().find_queue("tx" if header else "orders")
    assert bodies(survives) == ([b"m"] if header or recoverable else [])


@requirement("MQMQ-2.2.20.5-08")
@pytest.mark.parametrize("flags", [0, 0x04, 0x08, 0x0C])
def test_first_and_last_flags_of_a_transaction_are_optional(flags: int) -> None:
    harness = harness_with_peer()
    queue = harness.queue("tx", transactional=True)
    peer = harness.accept_session()
    for number in (1, 2, 3):
        header = h.transaction_header(flags=flags, number=number, previous=number - 1)
        peer.send_message(b"%d" % number, queue="tx", transaction=header)
    assert bodies(queue) == [b"1", b"2", b"3"]
    assert peer.take("FinalAck") == []


@requirement("MQMQ-2.2.20.5-10")
def test_each_transaction_numbers_all_its_messages_alike() -> None:
    """No number comes twice, after a restart either."""

    def numbers(harness: EngineHarness) -> list[int]:
        harness.send(count=3, transactional=True)
        harness.send(count=2, transactional=True)
        packets = harness.called[0].take("UserMessage")[-5:]
        return [msmqwire.parse(bytes(sent)).TransactionHeader.Flags.ID for sent in packets]

    harness = harness_with_peer()
    found = []
    for _ in range(3):
        first, second = (given := numbers(harness))[0], given[-1]
        assert given == [first] * 3 + [second] * 2
        found += [first, second]
        harness = harness.restarted()
    assert len(set(found)) == 6, "after a restart too"


@requirement("MQMQ-2.2.20.5-06", "MQMQ-2.2.20.5-07")
@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_ends_of_each_transaction_are_marked(count: int) -> None:
    harness = harness_with_peer()
    for _ in "12":
        harness.send(count=count, transactional=True)
        packets = harness.called[0].take("UserMessage")
        flags = [msmqwire.parse(bytes(sent)).TransactionHeader.Flags for sent in packets]
        assert [(flag.FM, flag.LM) for flag in flags] == [(n == 0, n == count - 1) for n in range(count)]


# -- one packet a message and destination ------------------------------------------------------------------


@requirement("MQMQ-2.2.20-01")
def test_a_message_is_in_one_packet_or_not_sent() -> None:
    harness = harness_with_peer()
    harness.queue()
    peer = harness.accept_session()
    whole = peer.message(bytes(100_000))
    peer.send(whole[:-1])
    assert harness.receive("DIRECT=OS:here\\private$\\orders") is None
    peer.send(whole[-1:])
    assert harness.receive("DIRECT=OS:here\\private$\\orders") == bytes(100_000)
    largest = (4 << 20) - 1024
    harness.send(bytes(largest))
    (packet_,) = harness.called[0].take("UserMessage")
    assert len(packet_.body) == largest
    with pytest.raises(InvalidValue):
        harness.send(bytes(4 << 20))
    assert harness.called[0].take() == []


@requirement("MQMQ-2.2.20.1-03")
@requirement("MQMQ-2.2.20.1-01")
def test_each_packet_to_several_queues_lists_all_of_them() -> None:
    hosts = {PEER_ADDRESS: PEER_ID, "10.0.0.3": THIRD_ID}
    harness = EngineHarness(hosts=hosts)
    names = [rf"DIRECT=TCP:{address}\private$\q" for address in hosts]
    harness.send(b"to all", to=",".join(names))
    harness.send(b"to one", to=names[0])
    several = []
    for peer, own in zip(harness.called, names, strict=True):
        first, *others = (msmqwire.parse(bytes(packet)) for packet in peer.take("UserMessage"))
        elements = first.MultiQueueFormatHeader.Destination.FormatNameList
        several.append([element.FormatName.DirectFormatName.lower() for element in elements])
        assert f"direct={first.UserHeader.DestinationQueue.DirectFormatName}".lower() == own.lower()
        assert first.MessagePropertiesHeader.MessageBody == b"to all"
        assert all(other.get("MultiQueueFormatHeader") is None for other in others)
    assert several == [[name.lower().removeprefix("direct=") for name in names]] * 2


# -- security and counts -----------------------------------------------------------------------------------


@requirement("MQMQ-2.2.19.3-20")
@pytest.mark.parametrize(
    ("level", "message_class"),
    [(2, 0x8006), (4, 0x8006), (6, 0x8006), (0xFFFFFFFF, 0x8006), (1, 0x8007), (3, 0x8007), (5, 0x8007)],
)
def test_an_unknown_privacy_level_is_a_failure_of_authentication(level: int, message_class: int) -> None:
    harness = harness_with_peer(settings=Settings(send_insecure_nacks=True))
    queue, admin = harness.queue(), harness.queue("adm")
    harness.accept_session().send_message(privacy=level, acks=NA, admin=direct("adm"))
    assert (bodies(queue), message_classes(admin)) == ([], [message_class])


@requirement("MQMQ-2.2.20.4-10", "MQMQ-2.2.20.4-13")
@requirement("MQMQ-2.2.20.4-05")
def test_the_numbers_of_a_session_say_how_many_were_sent() -> None:
    harness = EngineHarness()
    peer = harness.open_session()
    for recoverable in (True, True, False, True, False, True, True):
        harness.send(recoverable=recoverable)
    entries = [
        (entry.sequence_number, entry.recoverable_sequence_number)
        for entry in harness.transfer().table.values()
    ]
    assert entries == [(1, 0), (2, 1), (3, 2), (4, 0), (5, 3), (6, 0), (7, 4), (8, 5)]
    harness.queue()
    peer.send(peer.message())
    harness.engine.session_timers.send_session_ack(peer.session)
    harness.run()
    assert (peer.acks[-1].sent, peer.acks[-1].recoverable_sent) == (8, 5)


@requirement("MQMQ-2.2.20.4-17")
@pytest.mark.parametrize(("settings", "window"), [({}, 64), ({"window_size": 7}, 7)])
def test_the_largest_window_is_a_setting(settings: dict[str, int], window: int) -> None:
    harness = EngineHarness(**settings)
    peer = harness.accept_connection()
    peer.send(peer.establish(), peer.parameters(window=1_000))
    assert msmqwire.parse(bytes(peer.take()[1])).ConnectionParametersHeader.WindowSize == window
    harness.send(count=100)
    harness.resolve(PEER_ADDRESS)
    called = harness.connect()
    called.answer_handshake(window=1_000)
    assert len(called.take("UserMessage")) == window


# -- the directory -----------------------------------------------------------------------------------------


@pytest.fixture
def recorder() -> DirectoryRecorder:
    """A directory with a public queue of another computer."""
    recorder = DirectoryRecorder()
    public = Queue(ORDERS, pathname="there\\orders", base_priority=9)
    public.queue_type = QueueType.PUBLIC
    recorder.publish(
        QueueManager(OWN_ID, computer_name="here"),
        QueueManager(THIRD_ID, computer_name="there", qualified_computer_name="there.example"),
        public,
    )
    return recorder


@requirement("MQMQ-2.1.2-01")
def test_a_direct_name_needs_no_directory(recorder: DirectoryRecorder) -> None:
    harness = EngineHarness(directory=recorder)
    queue = harness.queue()
    recorder.log.clear()
    harness.open_session(to=rf"DIRECT=TCP:{PEER_ADDRESS}\orders", count=1)
    harness.send(b"m", to=r"DIRECT=OS:here\private$\orders")
    assert harness.receive(r"DIRECT=TCP:10.0.0.1\private$\orders") == b"m"
    assert bodies(queue) == []
    harness.send(b"far", to=r"DIRECT=OS:there\orders")
    assert [asked.host for asked in harness.effects_of(Resolve)][-1:] == ["there"]
    assert recorder.log == []


@requirement("MQMQ-2.1.3-03")
@requirement("MQMQ-2.1.3-04")
def test_a_public_name_is_routed(recorder: DirectoryRecorder) -> None:
    for routes, host in (({}, "there.example"), ({THIRD_ID: ["hop"]}, "hop")):
        harness = EngineHarness(directory=recorder, routes=routes)
        harness.send(to=f"PUBLIC={ORDERS}")
        assert [asked.host for asked in harness.effects_of(Resolve)] == [host]


@requirement("MQMQ-2.1.4-03")
@requirement("MQMQ-2.1.4-04")
def test_a_private_name_reads_only_its_computer_in_the_directory(recorder: DirectoryRecorder) -> None:
    harness = EngineHarness(directory=recorder)
    recorder.log.clear()
    harness.send(to=f"PRIVATE={THIRD_ID}\\9")
    assert [asked.host for asked in harness.effects_of(Resolve)] == ["there.example"]
    asked = [entry[1] for entry in recorder.log if entry[0].startswith("read_directory") and entry[1:]]
    assert "QueueManager" in asked
    assert "Queue" not in asked


@requirement("MQMQ-2.3.1.6-02")
def test_base_priority_counts_for_public_names_alone(recorder: DirectoryRecorder) -> None:
    harness = EngineHarness(directory=recorder)
    names = (f"PUBLIC={ORDERS}", r"DIRECT=OS:there\orders", f"PRIVATE={THIRD_ID}\\9")
    assert [harness.outgoing(name).base_priority for name in names] == [9, 0, 0]


@requirement("MQMQ-2.3.1.6-02")
def test_base_priority_sends_what_has_a_public_name_first(recorder: DirectoryRecorder) -> None:
    """All wait for the same session; a base priority of 9 is more than any priority of a message."""
    harness = EngineHarness(directory=recorder)
    harness.send(b"private", to=f"PRIVATE={THIRD_ID}\\9", priority=7)
    harness.send(b"public", to=f"PUBLIC={ORDERS}", priority=0)
    harness.resolve(PEER_ADDRESS)
    peer = harness.connect()
    peer.answer_handshake(server=THIRD_ID)
    assert peer.bodies() == [b"public", b"private"]


@requirement("MQMQ-2.3.1.5-02")
def test_a_queue_without_a_quota_has_that_of_the_computer() -> None:
    harness = EngineHarness(quota=10_000)
    queue = harness.queue()
    assert queue.quota == INFINITE
    descriptor = harness.open(queue, SEND)
    statuses = [
        harness.core.messages.enqueue_to_open_queue(descriptor, Message(body=bytes(4_000))) for _ in "123"
    ]
    assert statuses == [EnqueueStatus.OK, EnqueueStatus.OK, EnqueueStatus.QUEUE_MANAGER_QUOTA_EXCEEDED]
    own = harness.queue("own", quota=1)
    assert (
        harness.core.messages.enqueue(own, Message(body=bytes(1_000))) is EnqueueStatus.QUEUE_QUOTA_EXCEEDED
    )


@requirement("MQMQ-2.3.1.4-02")
@pytest.mark.parametrize("journaling", [False, True])
def test_what_is_received_is_kept_where_that_is_set(journaling: bool) -> None:
    harness = EngineHarness()
    queue = harness.queue(journaling=journaling)
    harness.enqueue(queue, b"received")
    harness.enqueue(queue, b"purged")
    assert harness.receive(queue) == b"received"
    harness.core.messages.purge(queue)
    assert queue.journal is not None
    assert (bodies(queue), bodies(queue.journal)) == ([], [b"received"] if journaling else [])
