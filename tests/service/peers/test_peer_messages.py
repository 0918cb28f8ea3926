"""Messages from a hand-written peer, and how the server acknowledges them: [MS-MQQB] 3.1.5.8."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import handmade as h
from tests.support.peers.raw_peer import (
    ACK_ARRIVAL,
    ACK_RECEIVE,
    GUID,
    PEER,
    TX_QUEUE,
    Listener,
    Message,
    ReceivedPacket,
    Session,
    direct,
)
from tests.support.qm.peer_server import LEDGER, alpha, at, identity, in_queue, serves
from tests.support.running import InThread, attach

pytestmark = pytest.mark.uvloop

LATE = 60_000
ORDER_QUEUE = f"TCP:{PEER}\\PRIVATE$\\order_queue$"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[InThread]:
    with alpha(tmp_path / "alpha") as server:
        yield server


@contextmanager
def late(tmp_path: Path, *, window: int) -> Iterator[Session]:
    """A session with a server that delays acknowledgements, so that only the window can trigger one."""
    with (
        alpha(tmp_path / "alpha", ack_delay_ms=LATE, recoverable_ack_delay_ms=LATE) as server,
        Session.opened(at(server), window=window, ack=120_000, recoverable=120_000) as peer,
    ):
        yield peer


def transactional(*numbers: int, ordinal: int = 1, stamp: int = 1_000) -> list[Message]:
    """Messages at positions of a sequence, each following the one before."""
    return [
        Message(b"%d.%d" % (ordinal, number), direct(TX_QUEUE), tx=(stamp, ordinal, number, number - 1))
        for number in numbers
    ]


# -- session acknowledgements ---------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-2.2.6-01", "MQQB-2.2.6-02", "MQQB-3.1.5.8.2-02", "MQMQ-2.2.20.4-08")
def test_an_express_message_is_acknowledged_by_its_number(server: InThread) -> None:
    with Session.opened(at(server)) as peer:
        peer.push(Message(b"express"))
        assert peer.packet() == h.session_ack(h.session_header(ack=1))
    assert in_queue(server) == [b"express"]


@pytest.mark.requirement("MQQB-3.1.5.8.7-04", "MQQB-3.1.5.8.7-06", "MQMQ-2.2.20.4-09")
def test_a_recoverable_message_is_acknowledged_by_a_bit(server: InThread) -> None:
    with Session.opened(at(server)) as peer:
        peer.push(Message(b"saved", recoverable=True))
        assert peer.packet() == h.session_ack(h.session_header(ack=1, recoverable_ack=1, recoverable_flags=1))
    assert in_queue(server) == [b"saved"]


@pytest.mark.requirement("MQMQ-2.2.20.4-03", "MQMQ-2.2.20.4-04", "MQQB-3.1.1.6.1-02", "MQQB-3.1.1.6.1-04")
def test_recoverable_messages_are_numbered_among_themselves(tmp_path: Path) -> None:
    """The window triggers the acknowledgement, so that one covers all messages."""
    with late(tmp_path, window=10) as peer:
        kinds = (False, True, False, False, True)
        for turn in (1, 2):
            peer.push(*(Message(recoverable=kind) for kind in kinds))
            fields = h.session_header(ack=5 * turn, recoverable_ack=2 * turn - 1, recoverable_flags=0b11)
            assert peer.packet() == h.session_ack(fields)


@pytest.mark.requirement("MQQB-3.1.1.6.1-07", "MQQB-3.1.5.4.1-01")
@pytest.mark.parametrize(("window", "count"), [(4, 2), (9, 4), (64, 32), (1_000, 32), (1, 1), (0, 1)])
def test_half_a_window_is_acknowledged_at_once(tmp_path: Path, window: int, count: int) -> None:
    with late(tmp_path, window=window) as peer:
        for turn in (1, 2, 3):
            peer.push(*(Message() for _ in range(count)))
            assert peer.packet() == h.session_ack(h.session_header(ack=turn * count))


@pytest.mark.requirement("MQQB-3.1.5.8.7-02", "MQQB-3.1.5.8.7-03")
def test_hundreds_at_once_are_each_acknowledged_once(server: InThread) -> None:
    with Session.opened(at(server)) as peer:
        for batch in range(5):
            peer.push(*(Message(b"%d" % (batch * 100 + number), recoverable=True) for number in range(100)))
        assert peer.until_acknowledged() == []
        assert peer.saved == set(range(1, 501))
    assert in_queue(server) == [b"%d" % number for number in range(500)]


@pytest.mark.requirement("MQMQ-2.2.20.4-19")
def test_counts_go_round_after_16_bits(server: InThread) -> None:
    with Session.opened(at(server)) as peer:
        packet = Message(b"round").bytes()  # the same one each time: all but the first are duplicates
        count, acknowledged = 0, 0
        while count < 0x10000 + 5:
            step = min(1_000, 0x10000 + 5 - count)
            peer.send(packet * step)
            count += step
            while acknowledged != count % 0x10000:
                acknowledged = int.from_bytes(peer.packet()[20:22], "little")
        peer.send(h.session_ack(h.session_header(sent=5)))
        peer.send(packet)
        assert peer.packet() == h.session_ack(h.session_header(ack=6))
    assert in_queue(server) == [b"round"]


@pytest.mark.requirement("MQQB-3.1.5.8.4-01", "MQQB-3.1.5.8.4-02")
@pytest.mark.parametrize("recoverable", [False, True])
def test_a_header_may_ride_on_a_message_that_it_counts(server: InThread, recoverable: bool) -> None:
    with Session.opened(at(server)) as peer:
        first, second = (Message(body, recoverable=recoverable) for body in (b"1", b"2"))
        peer.push(first)
        peer.count(second)
        peer.send(second.bytes(session=peer.acknowledging_header()))
        assert peer.until_acknowledged() == []
        assert peer.fence() == []
    assert in_queue(server) == [b"1", b"2"]


# -- unusual headers ------------------------------------------------------------------------------------


@pytest.mark.requirement("MQMQ-2.2.19.2-27")
@pytest.mark.parametrize(
    "admin", [(0, b""), (5, GUID), direct(r"TCP:10.0.0.9\private$\adm")], ids=["none", "public", "direct"]
)
def test_a_response_queue_that_can_not_be_named(server: InThread, admin: tuple[int, bytes]) -> None:
    """RQ 4 puts it on the host of an administration queue whose name has no GUID of a host."""
    message = Message(b"asks", admin=admin, response=(4, h.private_id(7)), recoverable=True)
    with Session.opened(at(server)) as peer:
        peer.push(Message(b"before"), message, Message(b"after"))
        assert peer.until_acknowledged() == []
        assert peer.saved == {1}
    with attach(server.data) as local:
        stored = local.call("peek", queue=r"private$\orders", count=3)["messages"]
    assert [(base64.b64decode(m["body"]), m["response_queue"]) for m in stored] == [
        (b"before", None), (b"asks", None), (b"after", None),
    ]  # fmt: skip
    assert [m["admin_queue"] is None for m in stored] == [True, not admin[0], True]


@pytest.mark.requirement("MQMQ-2.2.19.2-34")
@pytest.mark.parametrize("properties", [b"", h.properties_header(body=b"bad")], ids=["absent", "denied"])
@pytest.mark.parametrize("recoverable", [False, True])
def test_a_message_that_claims_to_have_no_properties(
    server: InThread, properties: bytes, recoverable: bool
) -> None:
    """It is counted and goes nowhere; those before and after it are stored and acknowledged."""
    good, bad, later = (Message(body, recoverable=recoverable) for body in (b"good", b"bad", b"later"))
    with Session.opened(at(server)) as peer:
        peer.send(good.bytes(), without_properties(bad, properties), later.bytes())
        peer.count(good, bad, later)
        assert peer.until_acknowledged() == []
        assert peer.saved == ({1, 2, 3} if recoverable else set())
        assert peer.fence() == []
    assert in_queue(server) == [b"good", b"later"]


@pytest.mark.requirement("MQMQ-2.2.19.2-34")
def test_a_transactional_message_without_properties_is_nacked(server: InThread) -> None:
    """It takes its position, so that the sequence goes on, and a FinalAck reports it to its sender."""
    good, bad, later = transactional(1, 2, 3)
    with Session.opened(at(server)) as peer:
        peer.send(good.bytes(), without_properties(bad), later.bytes())
        peer.count(good, bad, later)
        final = peer.until("FinalAck")
        assert (final.MessageClass, final.acknowledged_message) == (0x8004, (GUID, bad.message_id))
        assert final.acknowledged_tx == bad.tx
        take_order_ack(peer, later)
        assert peer.fence() == []
    assert in_queue(server, LEDGER) == [b"1.1", b"1.3"]


def without_properties(message: Message, properties: bytes = b"") -> bytes:
    """The packet of a message with MP clear, and the header that it denies or nothing in its place."""
    return h.user_message(
        user=message.user(), transaction=message.transaction(), properties=properties, user_flags=0,
        flags=0 if message.tx else 3,
    )  # fmt: skip


# -- duplicates -----------------------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.5.8.1-02", "MQQB-3.1.5.8.1-04", "MQQB-3.1.5.8.2-04")
@pytest.mark.parametrize("recoverable", [False, True])
def test_a_message_sent_again_is_there_once(server: InThread, recoverable: bool) -> None:
    message = Message(b"again", recoverable=recoverable)
    for _ in range(2):
        with Session.opened(at(server)) as peer:
            peer.push(message, message)
            assert peer.until_acknowledged() == []
    assert in_queue(server) == [b"again"]


@pytest.mark.requirement("MQQB-3.1.5.8.1-02")
def test_a_number_of_another_queue_manager_is_no_duplicate(server: InThread) -> None:
    message = Message(b"of one", recoverable=True)
    with Session.opened(at(server)) as peer:
        peer.push(message, replace(message, body=b"of two", source=h.SERVER))
        peer.until_acknowledged()
    assert in_queue(server) == [b"of one", b"of two"]


def test_a_recoverable_message_resent_after_a_restart_is_single(tmp_path: Path) -> None:
    message, head = Message(b"again", recoverable=True), transactional(1)
    for _ in range(2):
        with alpha(tmp_path / "alpha") as server:
            with Session.opened(at(server)) as peer:
                peer.push(message, *head)
                others = peer.until_acknowledged()
                assert (others or [peer.until("OrderAck")])[0].body == expected_body(head[0])
            assert (in_queue(server), in_queue(server, LEDGER)) == ([b"again"], [b"1.1"])


# -- transactional sequences ----------------------------------------------------------------------------


def expected_body(message: Message) -> bytes:
    """The body of the OrderAck for a message."""
    assert message.tx is not None
    stamp, ordinal, number, _ = message.tx
    return h.order_ack_body(ordinal=ordinal, time_stamp=stamp, number=number, previous=number - 1)


def take_order_ack(peer: Session, message: Message) -> ReceivedPacket:
    """Take packets until the OrderAck of a message comes, and acknowledge it."""
    while (packet := peer.until("OrderAck")).body != expected_body(message):
        pass
    peer.acknowledge()
    return packet


@pytest.mark.requirement(
    "MQQB-2.2.4-01", "MQQB-2.2.4-02", "MQQB-2.2.4-05", "MQQB-2.2.4-06", "MQQB-2.2.4-07", "MQQB-2.2.4-08",
    "MQQB-2.2.4-09", "MQQB-2.2.4-10", "MQQB-2.2.4-11", "MQQB-2.2.4.1-01", "MQQB-2.2.4.1-02",
    "MQQB-2.2.4.1-03", "MQQB-2.2.4.1-04", "MQQB-3.1.7.17-07",
)  # fmt: skip
def test_a_transactional_message_is_acknowledged_in_its_order(server: InThread) -> None:
    with Session.opened(at(server)) as peer:
        (message,) = transactional(1)
        peer.push(message)
        packet = take_order_ack(peer, message)
        assert peer.saved == {1}, "it is stored before it is acknowledged"
        expected = h.user_message(
            user=h.user_header(
                source=identity(server),
                sent_time=packet.SentTime,
                message_id=packet.MessageID,
                flags=0x20,  # DM as in [MS-MQQB] 3.1.7.17
                destination=direct(ORDER_QUEUE),
            ),
            properties=h.properties_header(
                label="QM Ordering Ack", message_class=0xFF, body=expected_body(message),
                hash_algorithm=0x8004, encryption_algorithm=0x6801,
            ),
            flags=0,
        )  # fmt: skip
        assert packet == expected
        assert peer.fence() == []
    assert in_queue(server, LEDGER) == [b"1.1"]


@pytest.mark.requirement("MQQB-2.2.4-04", "MQQB-3.1.7.17-08")
def test_an_order_ack_goes_by_guid_if_its_message_did(server: InThread) -> None:
    guid = identity(server)
    with attach(server.data) as local:
        number = int(local.call("show", queue=LEDGER)["format_name"].rpartition("\\")[2], 16)
    with Session.opened(at(server)) as peer:
        message = Message(b"1", (3, h.private_id(number)), address=guid, tx=(1, 1, 1, 0))
        peer.push(message)
        packet = take_order_ack(peer, message)
        assert (packet.Flags >> 10 & 7, packet.DestinationQueue) == (3, h.private_id(4))
        assert packet.QueueManagerAddress == GUID
    assert in_queue(server, LEDGER) == [b"1"]


@pytest.mark.requirement("MQQB-3.1.1.6.2-06")
def test_one_order_acknowledgement_may_tell_of_many(server: InThread) -> None:
    with Session.opened(at(server)) as peer:
        messages = transactional(*range(1, 51))
        peer.push(*messages)
        take_order_ack(peer, messages[-1])
        assert peer.received < 50
    assert in_queue(server, LEDGER) == [message.body for message in messages]


@pytest.mark.requirement("MQQB-3.1.1.6.2-03", "MQQB-3.1.5.8.6-03", "MQQB-3.1.5.8.6-05", "MQQB-3.1.5.8.6-09")
def test_what_does_not_follow_is_not_taken(server: InThread) -> None:
    first, second, third, fourth = transactional(1, 2, 3, 4)
    with Session.opened(at(server)) as peer:
        peer.push(first, second, fourth)
        take_order_ack(peer, second)
        peer.fence()
        assert len(peer.saved) == 3, "a refused message is acknowledged in the session"
        assert in_queue(server, LEDGER) == [b"1.1", b"1.2"]
        peer.push(third, fourth)
        take_order_ack(peer, fourth)
    assert in_queue(server, LEDGER) == [b"1.1", b"1.2", b"1.3", b"1.4"]


@pytest.mark.requirement("MQQB-3.1.5.8.1-01", "MQQB-3.1.5.8.6-05")
def test_a_place_is_taken_once_also_over_other_sessions(server: InThread) -> None:
    first, second = transactional(1, 2)
    for sent in ([first, first], [first, second], [second, first]):
        with Session.opened(at(server)) as peer:
            peer.push(*sent)
            take_order_ack(peer, second if second in sent else first)
    assert in_queue(server, LEDGER) == [b"1.1", b"1.2"]


@pytest.mark.requirement("MQQB-3.1.5.8.6-04", "MQQB-3.1.5.8.6-05", "MQMQ-2.2.18.1.2-03")
def test_a_later_sequence_replaces_an_older_one(server: InThread) -> None:
    (first,) = transactional(1)
    (later,) = transactional(1, ordinal=2)
    (middle,) = transactional(2, ordinal=3)
    (newer,) = transactional(1, ordinal=1, stamp=1_001)
    with Session.opened(at(server)) as peer:
        peer.push(first, later, first, middle)
        take_order_ack(peer, later)
        peer.fence()
        assert in_queue(server, LEDGER) == [b"1.1", b"2.1"]
        peer.push(newer)
        take_order_ack(peer, newer)
    assert in_queue(server, LEDGER) == [b"1.1", b"2.1", b"1.1"]


# -- administration acknowledgements --------------------------------------------------------------------


@pytest.mark.requirement(
    "MQQB-3.1.5.8.10-01", "MQQB-3.1.7.15-06", "MQQB-3.1.7.15-11", "MQQB-3.1.7.15-15", "MQQB-3.1.7.15-16",
    "MQQB-3.1.7.15-17", "MQQB-3.1.7.15-18", "MQQB-3.1.5.11-01", "MQMQ-2.2.19.3-11",
)  # fmt: skip
@pytest.mark.parametrize("recoverable", [False, True])
def test_arrival_and_receipt_are_reported_over_the_same_session(server: InThread, recoverable: bool) -> None:
    message = Message(
        b"report", recoverable=recoverable, label="L", wants=ACK_ARRIVAL | ACK_RECEIVE,
        admin=(2, h.private_id(9)),
    )  # fmt: skip
    with Session.opened(at(server)) as peer:
        peer.push(message)
        reports = [peer.until("UserMessage")]
        peer.acknowledge()
        with attach(server.data) as local:
            (received,) = local.call("receive", queue=r"private$\orders")["messages"]
            local.call("end", done=[received["receipt"]])
        reports.append(peer.until("UserMessage"))
        peer.acknowledge()
        assert peer.fence() == []
    assert [report.MessageClass for report in reports] == [0x0002, 0x4000]
    for report in reports:
        assert report.CorrelationID == GUID + message.message_id.to_bytes(4, "little")
        assert (report.Flags >> 10 & 7, report.DestinationQueue) == (3, h.private_id(9))
        assert (report.SourceQueueManager, report.QueueManagerAddress) == (identity(server), GUID)
        assert (report.ResponseQueue, report.Label, report.body) == (r"OS:alpha\private$\orders", "L", b"")
        assert (report.wants, report.AdminQueue, bool(report.Flags & 0x20)) == (0, b"", recoverable)
        assert (report.TimeToReachQueue, report.TimeToBeReceived) == (h.INFINITE, h.INFINITE)


@pytest.mark.requirement("MQQB-3.1.7.15-10")
def test_a_report_to_a_direct_name_goes_to_its_host(tmp_path: Path) -> None:
    with Listener() as listener, alpha(tmp_path / "alpha", listener) as server:
        admin = f"TCP:{PEER}\\private$\\admin"
        with Session.opened(at(server)) as peer:
            peer.push(Message(b"report", wants=ACK_ARRIVAL, admin=direct(admin)))
            with listener.accept() as other:
                report = other.until("UserMessage")
                other.acknowledge()
                assert (report.MessageClass, report.DestinationQueue) == (0x0002, admin)
                assert peer.fence() == []
        serves(server)
