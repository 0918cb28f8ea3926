"""What the engine itself sends about messages on their way: [MS-MQQB] 3.1.5.8.9, 3.1.7.1.7 and 3.1.7.17."""

from __future__ import annotations

import re
from uuid import UUID

import pytest

from msmqwire.names import PrivateName
from msmqwire.packets import parse
from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.model.message import Message, ObjectId, TxSequenceId
from msmqwire.qm.model.settings import Settings
from tests.support import handmade
from tests.support.message_desk import (
    BEHIND,
    HERE,
    JP,
    PEER_ADDRESS,
    THERE,
    Desk,
    Peer,
    bodies,
    direct,
    messages,
)

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


def traced() -> tuple[Desk, Peer]:
    """A queue manager with a queue for reports, which is named by its GUID."""
    desk = Desk()
    desk.queue()
    reports = desk.queue("reports")
    desk.reports = reports
    return desk, desk.peer()


# --- reports of arrivals ---


@pytest.mark.requirement(
    "MQQB-3.1.5.8.9-01", "MQQB-3.1.5.8.9-02", "MQQB-3.1.5.8.9-03", "MQQB-3.1.5.8.9-05", "MQQB-3.1.5.8.9-06",
    "DMPR-3.1.1.12-07", "DMPR-3.1.1.12-19", "DMPR-3.1.1.12-20",
)  # fmt: skip
def test_the_report_of_an_arrival():
    desk, peer = traced()
    peer.send(message_id=0xABC, hops=3, trace=desk.reports.identifier)
    peer.send()
    (report,) = messages(desk.reports)
    assert report.message_class == 1
    assert not report.recoverable
    assert report.destination.canonical == f"PUBLIC={desk.reports.identifier}"
    source = str(desk.reports.identifier)[:4].upper()
    assert LABEL.fullmatch(report.label)
    assert report.label.startswith(f"{source}:00000ABC:03 received by {str(THERE).upper()} at ")
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
    ],
)
def test_the_time_in_a_report(utc, text):
    desk, peer = traced()
    desk.start = utc
    desk.passes(0)
    peer.send(trace=desk.reports.identifier)
    assert messages(desk.reports)[0].label.endswith(f" at {text}")


@pytest.mark.requirement("MQQB-3.1.5.8.9-07")
def test_without_its_queue_a_report_is_discarded():
    desk, peer = traced()
    queue = desk.core.queues.lookup.path("here\\private$\\orders")
    peer.send(b"m", trace=UUID(int=0x999))
    assert bodies(queue) == [b"m"]
    assert bodies(desk.reports) == []
    assert desk.called == []


def test_nothing_is_reported_of_what_is_refused():
    desk, peer = traced()
    peer.send(trace=desk.reports.identifier, destination=direct("none"))
    peer.send(trace=desk.reports.identifier, reach=5, sent_time=desk.utc - 6)
    peer.send(b"m", message_id=50)
    peer.send(b"m", message_id=50, trace=desk.reports.identifier)
    assert bodies(desk.reports) == []


# --- reports of departures ---


@pytest.mark.requirement("MQQB-3.1.7.1.7-01", "MQQB-3.1.7.1.7-02", "MQQB-3.1.7.1.7-03")
@pytest.mark.parametrize("own", [True, False])
def test_the_report_of_a_departure(own):
    desk = Desk(routes={BEHIND: ["far"]})
    desk.names["far"], desk.hosts[PEER_ADDRESS] = PEER_ADDRESS, BEHIND
    reports = desk.queue("reports")
    if own:
        desk.send(
            b"m", to=desk.open(f"PRIVATE={BEHIND}\\9"), tracing_requested=True,
            tracing_queue_identifier=reports.identifier,
        )  # fmt: skip
        number, hops, source = 1, 0, HERE
    else:
        desk.peer(THERE, "10.0.0.8").send(
            b"m", message_id=7, hops=4, trace=reports.identifier, address=BEHIND.bytes_le,
            destination=(3, handmade.private_id(9)),
        )  # fmt: skip
        number, hops, source = 7, 5, THERE
    assert desk.called[0].sent_bodies() == [b"m"]
    departure = [one for one in messages(reports) if b"N\0E\0X\0T\0" in one.body]
    assert len(departure) == 1
    assert len(messages(reports)) == (1 if own else 2)
    report = departure[0]
    assert report.message_class == 1
    assert not report.recoverable
    start = str(reports.identifier)[:4].upper()
    assert LABEL.fullmatch(report.label)
    assert report.label.startswith(f"{start}:{number:08X}:{hops:02X} received by {str(source).upper()} at ")
    assert report.body.decode("utf-16-le") == (
        f"<MESSAGE ID>{number:08X}</MESSAGE ID>\r\n"
        f"<TARGET QUEUE>PRIVATE={BEHIND}\\00000009</TARGET QUEUE>\r\n"
        f"<NEXT HOP>{PEER_ADDRESS}</NEXT HOP>\r\n<HOP COUNT>{hops:02X} </HOP COUNT>\r\n"
    )


# --- order and final acknowledgements ---


def ack_of(peer: Peer, kind: str) -> bytes:
    (found,) = [data for data in peer.raw if parse(data).schema.name == kind]
    return found


def expected(body: bytes, message_id: int, message_class: int, destination: tuple[int, bytes]) -> bytes:
    """The packet as 3.1.7.17 has it, in bytes of our own."""
    return handmade.user_message(
        user=handmade.user_header(
            source=HERE.bytes_le, flags=handmade.MP | 0x20, message_id=message_id, destination=destination,
            sent_time=1_700_000_000, address=THERE.bytes_le if destination[0] == 3 else handmade.NULL_GUID,
        ),
        properties=handmade.properties_header(
            label="QM Ordering Ack", message_class=message_class, body=body, hash_algorithm=0x8004,
            encryption_algorithm=0x6801,
        ),
        flags=0,
    )  # fmt: skip


ORDER_QUEUE = direct("order_queue$", PEER_ADDRESS)


@pytest.mark.requirement("MQQB-3.1.7.17-01", "MQQB-3.1.7.17-03", "MQQB-3.1.7.17-04", "MQQB-3.1.7.17-07")
@pytest.mark.requirement("MQQB-3.1.7.17-02")
def test_the_bytes_of_an_order_acknowledgement():
    desk = Desk(settings=Settings(order_ack_timeout_ms=0))
    desk.queue("tx", transactional=True)
    peer = desk.peer()
    peer.send(tx=(5, 0, 9), destination=direct("tx"))
    desk.passes(0)
    found = ack_of(peer, "OrderAck")
    destination = 7, handmade.direct_name(f"TCP:{PEER_ADDRESS}\\PRIVATE$\\order_queue$")
    body = handmade.order_ack_body(ordinal=9, number=5, previous=4)
    assert found == expected(body, 1, 0x00FF, destination)


@pytest.mark.requirement("MQQB-3.1.7.17-01", "MQQB-3.1.7.17-03", "MQQB-3.1.7.17-05", "MQQB-3.1.7.17-06")
@pytest.mark.parametrize("how", ["refused", "received"])
def test_the_bytes_of_a_final_acknowledgement(how):
    desk = Desk()
    queue = desk.queue("tx", transactional=True)
    peer = desk.peer()
    peer.send(tx=(1, 0, 9), destination=direct("tx"))
    name = "tx" if how == "received" else "none"
    previous = 0 if how == "refused" else 1
    number = peer.send(tx=(5, previous, 9), destination=direct(name), flags=JP, message_id=0x123)
    if how == "received":
        desk.receive(queue), desk.receive(queue)
    destination = 7, handmade.direct_name(f"TCP:{PEER_ADDRESS}\\PRIVATE$\\order_queue$")
    body = handmade.final_ack_body(
        ordinal=9, number=5, previous=previous, source=THERE.bytes_le, message_id=number
    )
    message_class = 0x4000 if how == "received" else 0x8000
    assert ack_of(peer, "FinalAck") == expected(body, 1, message_class, destination)


@pytest.mark.requirement("MQQB-3.1.7.17-02")
@pytest.mark.parametrize("message_class", CLASSES)
def test_each_class_of_final_acknowledgement(message_class):
    desk = Desk()
    peer = desk.peer()
    message = Message(
        identifier=ObjectId(THERE, 5), source_machine_identifier=THERE, transaction_sequence_number=3,
        transactional_message_sequence_identifier=TxSequenceId(1, 2), transaction_previous_sequence_number=1,
    )  # fmt: skip
    session = desk.core.engine.session_table.by_connection[peer.connection]
    session.direct_format_session = True
    desk.core.engine.order_acks.send_final_ack(message, message_class, session)
    desk.run()
    (packet,) = peer.take("FinalAck")
    assert packet.MessagePropertiesHeader.MessageClass == message_class
    assert packet.FinalAckBody.TxSequenceNumber == 3


@pytest.mark.requirement("MQQB-3.1.7.17-07")
def test_an_address_of_ipv6_in_the_name():
    desk = Desk()
    desk.queue("tx", transactional=True)
    peer = desk.peer(address="2001:db8::7")
    peer.send(tx=(1, 0), destination=direct("none"))
    (packet,) = peer.take("FinalAck")
    assert (
        packet.UserHeader.DestinationQueue.DirectFormatName.lower()
        == "tcp:2001:db8::7\\private$\\order_queue$"
    )


@pytest.mark.requirement("MQQB-3.1.7.17-08")
@pytest.mark.parametrize("source", [THERE, BEHIND])
def test_without_direct_names_it_goes_to_the_queue_manager_that_sent_the_message(source):
    desk = Desk()
    tx = desk.queue("tx", transactional=True)
    peer = desk.peer()
    peer.send(
        tx=(1, 0), destination=(3, handmade.private_id(tx.private_queue_number)), address=HERE.bytes_le,
        source=source,
    )  # fmt: skip
    desk.passes(500)
    (queue,) = [
        one for one in desk.core.queue_manager.queues.values()
        if isinstance(one, OutgoingQueue) and one.destination == PrivateName(source, 4)
    ]  # fmt: skip
    if source == THERE:  # the session leads there
        (ack,) = peer.take("OrderAck")
        assert ack.UserHeader.QueueManagerAddress == THERE
        assert ack.UserHeader.DestinationQueue.PrivateQueueIdentifier == 4
    else:
        assert peer.take("OrderAck") == []
        assert [one.message_class for one in messages(queue)] == [0x00FF]


@pytest.mark.requirement("MQQB-3.1.7.17-08")
def test_the_address_of_a_session_is_not_that_of_a_sender_behind_it():
    desk = Desk()
    tx = desk.queue("tx", transactional=True)
    peer = desk.peer()
    peer.send(destination=direct("none"))  # makes it a session of direct names
    private = {"destination": (3, handmade.private_id(tx.private_queue_number)), "address": HERE.bytes_le}
    peer.send(tx=(1, 0), source=BEHIND, **private)
    desk.passes(500)
    assert bodies(tx) == [b"x"]
    assert peer.take("OrderAck") == []
    (queue,) = [
        one for one in desk.core.queue_manager.queues.values()
        if isinstance(one, OutgoingQueue) and one.acknowledged_peer == BEHIND
    ]  # fmt: skip
    assert queue.destination == PrivateName(BEHIND, 4)
