"""Reports and acknowledgements that the engine itself sends: [MS-MQQB] 3.1.5.8.9, 3.1.7.1.7 and 3.1.7.17."""

from __future__ import annotations

import re
from calendar import timegm
from uuid import UUID

import pytest

from msmqwire.names import PrivateName
from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.model.message import Message, ObjectId, TxSequenceId
from msmqwire.qm.model.settings import Settings
from tests.support import handmade
from tests.support.codec_checks import proving
from tests.support.engine_harness import (
    OWN_ID,
    PEER_ADDRESS,
    PEER_ID,
    THIRD_ID,
    EngineHarness,
    harness_with_peer,
)
from tests.support.peers.handwritten_peer import JP, HandwrittenPeer, direct
from tests.support.qm.queue_contents import bodies, messages

CLASSES = (
    0x4000, 0x8000, 0x8001, 0x8002, 0x8003, 0x8004, 0x8005, 0x8006, 0x8007, 0x8009, 0x800A, 0x800B,
    0xC000, 0xC001, 0xC002, 0xC004,
)  # fmt: skip
ADMIN = direct("adm")
LABEL = re.compile(
    r"[0-9A-F]{4}:[0-9A-F]{8}:[0-9A-F]{2} received by [0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12} at "
    r"\d\d:\d\d(:\d\d)? (AM|PM) (Mon|Tue|Wed|Thu|Fri|Sat|Sun),"
    r"(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d\d \d\d"
)


def traced() -> tuple[EngineHarness, HandwrittenPeer]:
    """A queue manager with a report queue, named by its GUID."""
    harness = harness_with_peer()
    harness.queue()
    reports = harness.queue("reports")
    harness.reports = reports
    return harness, harness.accept_session()


# --- reports of arrivals ---


@pytest.mark.requirement("MQMQ-2.2.18.1.6-02")
@pytest.mark.requirement(
    "MQQB-3.1.5.8.9-01", "MQQB-3.1.5.8.9-02", "MQQB-3.1.5.8.9-03", "MQQB-3.1.5.8.9-05", "MQQB-3.1.5.8.9-06",
    "DMPR-3.1.1.12-07", "DMPR-3.1.1.12-19", "DMPR-3.1.1.12-20",
)  # fmt: skip
def test_the_report_of_an_arrival():
    harness, peer = traced()
    peer.send_message(message_id=0xABC, hops=3, trace=harness.reports.identifier)
    peer.send_message()
    (report,) = messages(harness.reports)
    assert report.message_class == 1
    assert not report.recoverable
    assert report.destination.canonical == f"PUBLIC={harness.reports.identifier}"
    source = str(harness.reports.identifier)[:4].upper()
    assert LABEL.fullmatch(report.label)
    assert report.label.startswith(f"{source}:00000ABC:03 received by {str(PEER_ID).upper()} at ")
    assert report.body.decode("utf-16-le") == (
        "<MESSAGE ID>00000ABC</MESSAGE ID>\r\n"
        "<TARGET QUEUE>DIRECT=TCP:10.0.0.1\\PRIVATE$\\orders</TARGET QUEUE>\r\n"
    )


@pytest.mark.requirement("MQQB-3.1.5.8.9-04")
@pytest.mark.parametrize(
    ("utc", "text"),
    [
        (1_136_239_445, "10:04:05 PM Mon,Jan 02 06"),
        (1_136_160_000, "12:00:00 AM Mon,Jan 02 06"),
        (1_700_000_000, "10:13:20 PM Tue,Nov 14 23"),
        (951_825_599, "11:59:59 AM Tue,Feb 29 00"),
        *(
            (timegm((2023, month, 1, 0, 0, 0)), f"12:00:00 AM {text} 01 23")
            for month, text in enumerate(
                (
                    "Sun,Jan", "Wed,Feb", "Wed,Mar", "Sat,Apr", "Mon,May", "Thu,Jun", "Sat,Jul", "Tue,Aug",
                    "Fri,Sep", "Sun,Oct", "Wed,Nov", "Fri,Dec",
                ), 1,
            )
        ),
    ],
)  # fmt: skip
def test_the_time_in_a_report(utc, text):
    harness, peer = traced()
    harness.utc_start = utc
    harness.advance(0)
    peer.send_message(trace=harness.reports.identifier)
    assert messages(harness.reports)[0].label.endswith(f" at {text}")


@pytest.mark.requirement("MQQB-3.1.5.8.9-07")
def test_without_its_queue_a_report_is_discarded():
    harness, peer = traced()
    queue = harness.core.queues.lookup.path("here\\private$\\orders")
    peer.send_message(b"m", trace=UUID(int=0x999))
    assert bodies(queue) == [b"m"]
    assert bodies(harness.reports) == []
    assert harness.called == []


@pytest.mark.requirement("MQMQ-2.2.20.8-06")
@pytest.mark.parametrize("enabled", [True, False])
def test_reports_are_sent_if_they_are_enabled(enabled):
    harness = harness_with_peer(routes={THIRD_ID: ["far"]}, settings=Settings(report_messages=enabled))
    harness.names["far"], harness.hosts[PEER_ADDRESS] = PEER_ADDRESS, THIRD_ID
    queue, reports = harness.queue(), harness.queue("reports")
    harness.accept_session(address="10.0.0.8").send_message(b"arrives", trace=reports.identifier)
    harness.send(
        b"leaves", to=harness.open_to_send(f"PRIVATE={THIRD_ID}\\9"), tracing_requested=True,
        tracing_queue_identifier=reports.identifier,
    )  # fmt: skip
    assert (bodies(queue), harness.called[0].bodies()) == ([b"arrives"], [b"leaves"])
    departures = [b"N\0E\0X\0T\0" in body for body in bodies(reports)]
    assert departures == ([False, True] if enabled else [])


def test_nothing_is_reported_of_what_is_refused():
    harness, peer = traced()
    peer.send_message(trace=harness.reports.identifier, destination=direct("none"))
    peer.send_message(trace=harness.reports.identifier, time_to_reach_queue=5, sent_time=harness.utc - 6)
    peer.send_message(b"m", message_id=50)
    peer.send_message(b"m", message_id=50, trace=harness.reports.identifier)
    assert bodies(harness.reports) == []


# --- reports of departures ---


@pytest.mark.requirement("MQQB-3.1.7.1.7-01", "MQQB-3.1.7.1.7-02", "MQQB-3.1.7.1.7-03")
@pytest.mark.parametrize("sent_here", [True, False])
def test_the_report_of_a_departure(sent_here):
    harness = harness_with_peer(routes={THIRD_ID: ["far"]})
    harness.names["far"], harness.hosts[PEER_ADDRESS] = PEER_ADDRESS, THIRD_ID
    reports = harness.queue("reports")
    if sent_here:
        harness.send(
            b"m", to=harness.open_to_send(f"PRIVATE={THIRD_ID}\\9"), tracing_requested=True,
            tracing_queue_identifier=reports.identifier,
        )  # fmt: skip
        number, hops, source = 1, 0, OWN_ID
    else:
        harness.accept_session(client=PEER_ID, address="10.0.0.8").send_message(
            b"m", message_id=7, hops=4, trace=reports.identifier, address=THIRD_ID.bytes_le,
            destination=(3, handmade.private_id(9)),
        )  # fmt: skip
        number, hops, source = 7, 5, PEER_ID
    assert harness.called[0].bodies() == [b"m"]
    departures = [message for message in messages(reports) if b"N\0E\0X\0T\0" in message.body]
    assert len(departures) == 1
    assert len(messages(reports)) == (1 if sent_here else 2)
    report = departures[0]
    assert report.message_class == 1
    assert not report.recoverable
    start = str(reports.identifier)[:4].upper()
    assert LABEL.fullmatch(report.label)
    assert report.label.startswith(f"{start}:{number:08X}:{hops:02X} received by {str(source).upper()} at ")
    assert report.body.decode("utf-16-le") == (
        f"<MESSAGE ID>{number:08X}</MESSAGE ID>\r\n"
        f"<TARGET QUEUE>PRIVATE={THIRD_ID}\\00000009</TARGET QUEUE>\r\n"
        f"<NEXT HOP>{PEER_ADDRESS}</NEXT HOP>\r\n<HOP COUNT>{hops:02X} </HOP COUNT>\r\n"
    )


# --- order and final acknowledgements ---


def ack_of(peer: HandwrittenPeer, kind: str) -> bytes:
    (ack,) = [packet for packet in peer.all_packets if packet.kind == kind]
    return ack


def expected(body: bytes, message_id: int, message_class: int, destination: tuple[int, bytes]) -> bytes:
    """The packet as in 3.1.7.17, from bytes built independently."""
    return handmade.user_message(
        user=handmade.user_header(
            source=OWN_ID.bytes_le, flags=handmade.MP | 0x20, message_id=message_id, destination=destination,
            sent_time=1_700_000_000, address=PEER_ID.bytes_le if destination[0] == 3 else handmade.NULL_GUID,
        ),
        properties=handmade.properties_header(
            label="QM Ordering Ack", message_class=message_class, body=body, hash_algorithm=0x8004,
            encryption_algorithm=0x6801,
        ),
        flags=0,
    )  # fmt: skip


ORDER_QUEUE = direct("order_queue$", PEER_ADDRESS)


@pytest.mark.requirement("MQQB-2.2.4.1-04")
@pytest.mark.requirement("MQMQ-2.2.18.1.6-04")
@pytest.mark.requirement("MQQB-3.1.7.17-01", "MQQB-3.1.7.17-03", "MQQB-3.1.7.17-04", "MQQB-3.1.7.17-07")
@pytest.mark.requirement("MQQB-3.1.7.17-02")
def test_the_bytes_of_an_order_acknowledgement():
    harness = harness_with_peer(settings=Settings(order_ack_timeout_ms=0))
    harness.queue("tx", transactional=True)
    peer = harness.accept_session()
    peer.send_message(tx=(5, 0, 9), destination=direct("tx"))
    harness.advance(0)
    packet = ack_of(peer, "OrderAck")
    destination = 7, handmade.direct_name(f"TCP:{PEER_ADDRESS}\\PRIVATE$\\order_queue$")
    body = handmade.order_ack_body(ordinal=9, number=5, previous=4)
    assert packet == expected(body, 1, 0x00FF, destination)


@pytest.mark.requirement(
    "MQQB-2.2.5-01",
    "MQQB-2.2.5-03",
    "MQQB-2.2.5-04",
    "MQQB-2.2.5-06",
    "MQQB-2.2.5-07",
    "MQQB-2.2.5-10",
    "MQQB-2.2.5.1-02",
    "MQQB-2.2.5.1-03",
    "MQQB-2.2.5.1-04",
    "MQQB-2.2.5.1-05",
    "MQQB-2.2.5.1-06",
)
@pytest.mark.requirement("MQQB-3.1.7.17-01", "MQQB-3.1.7.17-03", "MQQB-3.1.7.17-05", "MQQB-3.1.7.17-06")
@pytest.mark.parametrize(
    "outcome", ["refused", pytest.param("received", marks=pytest.mark.requirement("MQQB-2.2.5-08"))]
)
def test_the_bytes_of_a_final_acknowledgement(outcome):
    harness = harness_with_peer()
    queue = harness.queue("tx", transactional=True)
    peer = harness.accept_session()
    peer.send_message(tx=(1, 0, 9), destination=direct("tx"))
    name = "tx" if outcome == "received" else "none"
    previous = 0 if outcome == "refused" else 1
    number = peer.send_message(tx=(5, previous, 9), destination=direct(name), flags=JP, message_id=0x123)
    if outcome == "received":
        harness.receive(queue), harness.receive(queue)
    destination = 7, handmade.direct_name(f"TCP:{PEER_ADDRESS}\\PRIVATE$\\order_queue$")
    body = handmade.final_ack_body(
        ordinal=9, number=5, previous=previous, source=PEER_ID.bytes_le, message_id=number
    )
    message_class = 0x4000 if outcome == "received" else 0x8000
    assert ack_of(peer, "FinalAck") == expected(body, 1, message_class, destination)


@pytest.mark.requirement("MQQB-3.1.7.17-02")
@pytest.mark.parametrize("message_class", CLASSES)
def test_each_class_of_final_acknowledgement(message_class):
    harness = harness_with_peer()
    peer = harness.accept_session()
    message = Message(
        identifier=ObjectId(PEER_ID, 5), source_machine_identifier=PEER_ID, transaction_sequence_number=3,
        transactional_message_sequence_identifier=TxSequenceId(1, 2), transaction_previous_sequence_number=1,
    )  # fmt: skip
    session = harness.core.binary.session_table.by_connection[peer.connection]
    session.direct_format_session = True
    harness.core.binary.order_acks.send_final_ack(message, message_class, session)
    harness.run()
    (packet,) = peer.take("FinalAck")
    assert packet.MessageClass == message_class
    assert packet.acknowledged_tx[2] == 3


@pytest.mark.requirement("MQQB-3.1.7.17-07")
@pytest.mark.parametrize(
    ("kind", "queue"),
    [proving("OrderAck", "tx", ids="MQQB-2.2.4-06"), proving("FinalAck", "none", ids="MQQB-2.2.5-06")],
)
def test_an_address_of_ipv6_in_the_name(kind, queue):
    harness = harness_with_peer(settings=Settings(order_ack_timeout_ms=0))
    harness.queue("tx", transactional=True)
    peer = harness.accept_session(address="2001:db8::7")
    peer.send_message(tx=(1, 0), destination=direct(queue))
    harness.advance(0)
    packet = ack_of(peer, kind)
    assert packet.DestinationQueue.lower() == "tcp:2001:db8::7\\private$\\order_queue$"


@pytest.mark.requirement("MQQB-3.1.7.17-08")
@pytest.mark.parametrize("source", [PEER_ID, THIRD_ID])
def test_an_order_ack_goes_to_the_sender_named_in_the_message(source):
    """Without direct names it goes to the queue manager that sent the message, over a session or a queue."""
    harness = harness_with_peer()
    tx = harness.queue("tx", transactional=True)
    peer = harness.accept_session()
    peer.send_message(
        tx=(1, 0), destination=(3, handmade.private_id(tx.private_queue_number)), address=OWN_ID.bytes_le,
        source=source,
    )  # fmt: skip
    harness.advance(500)
    (queue,) = [
        candidate for candidate in harness.core.queue_manager.queues.values()
        if isinstance(candidate, OutgoingQueue) and candidate.destination == PrivateName(source, 4)
    ]  # fmt: skip
    if source == PEER_ID:  # the session is with it
        (ack,) = peer.take("OrderAck")
        assert ack.QueueManagerAddress == PEER_ID.bytes_le
        assert ack.DestinationQueue == handmade.private_id(4)
    else:
        assert peer.take("OrderAck") == []
        assert [message.message_class for message in messages(queue)] == [0x00FF]


@pytest.mark.requirement("MQQB-3.1.7.17-08")
def test_an_order_ack_for_a_relayed_sender_skips_the_session():
    """The address of a session is that of the relay; the sender is named by its identifier."""
    harness = harness_with_peer()
    tx = harness.queue("tx", transactional=True)
    peer = harness.accept_session()
    peer.send_message(destination=direct("none"))  # marks the session as using direct names
    private = {"destination": (3, handmade.private_id(tx.private_queue_number)), "address": OWN_ID.bytes_le}
    peer.send_message(tx=(1, 0), source=THIRD_ID, **private)
    harness.advance(500)
    assert bodies(tx) == [b"x"]
    assert peer.take("OrderAck") == []
    (queue,) = [
        candidate for candidate in harness.core.queue_manager.queues.values()
        if isinstance(candidate, OutgoingQueue) and candidate.acknowledged_peer == THIRD_ID
    ]  # fmt: skip
    assert queue.destination == PrivateName(THIRD_ID, 4)


@pytest.mark.requirement("MQQB-3.1.7.17-09")
@pytest.mark.parametrize("room", [True, False])
def test_an_acknowledgement_without_a_queue_is_discarded(room):
    harness = harness_with_peer(settings=Settings(incoming_sequences_max=1 if room else 0))
    harness.queue("tx", transactional=True)
    peer = harness.accept_session()
    peer.send_message(tx=(1, 0), destination=direct("none"), acks=0x0F, admin=ADMIN)
    queues = [
        queue for queue in harness.core.queue_manager.queues.values() if isinstance(queue, OutgoingQueue)
    ]
    sent = [0x8000] if room else []
    assert [message.message_class for queue in queues for message in messages(queue)] == sent
    assert [packet.MessageClass for packet in peer.take("FinalAck")] == sent
    assert len(queues) == room
    assert harness.core.binary.session_table.by_connection[peer.connection].is_open
