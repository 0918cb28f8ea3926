"""What becomes of received messages: figures 6, 8 and 10, [MS-MQQB] 3.1.1.1.1.4, .6 and .8."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.qm.model.changes import Table
from msmqwire.qm.model.settings import Settings
from tests.support import handmade
from tests.support.message_desk import (
    ADDRESS,
    BEHIND,
    JP,
    NA,
    NR,
    PA,
    PEER_ADDRESS,
    PR,
    Desk,
    acks,
    bodies,
    direct,
)

HERE_ADMIN = direct("adm")
OPEN_NACKS = Settings(send_insecure_nacks=True)


def both(number: str) -> pytest.MarkDecorator:
    """Express and recoverable messages: the same row of figures 6 and 8."""
    return pytest.mark.parametrize(
        "recoverable",
        [
            pytest.param(False, marks=pytest.mark.requirement(f"MQQB-3.1.1.1.1.4-{number}"), id="express"),
            pytest.param(True, marks=pytest.mark.requirement(f"MQQB-3.1.1.1.1.6-{number}"), id="recoverable"),
        ],
    )


def signed() -> bytes:
    return handmade.security_header(signature=b"s" * 64, certificate=b"c" * 8)


def routed() -> Desk:
    """A queue manager that reaches another one by a fixed route."""
    desk = Desk(routes={BEHIND: ["far"]})
    desk.names["far"] = PEER_ADDRESS
    desk.hosts[PEER_ADDRESS] = BEHIND
    return desk


@both("01")
@pytest.mark.parametrize("asked", [NA, 0])
def test_a_message_that_fails_the_security_check_is_deleted(recoverable, asked):
    desk = Desk(settings=OPEN_NACKS)
    queue, admin, peer = desk.queue(), desk.queue("adm"), desk.peer()
    peer.send(recoverable=recoverable, security=signed(), acks=asked, admin=HERE_ADMIN)
    assert bodies(queue) == []
    assert acks(admin) == ([0x8006] if asked else [])


@both("02")
def test_a_duplicate_ends_at_once_without_an_acknowledgement(recoverable):
    desk = Desk(settings=OPEN_NACKS)
    queue, admin, peer = desk.queue(), desk.queue("adm"), desk.peer()
    peer.send(b"one", recoverable=recoverable, message_id=7, acks=PA | NA, admin=HERE_ADMIN)
    peer.send(b"one", recoverable=recoverable, message_id=7, acks=PA | NA, admin=HERE_ADMIN)
    peer.send(
        b"one", recoverable=recoverable, message_id=7, acks=PA | NA, admin=HERE_ADMIN, security=signed()
    )
    assert bodies(queue) == [b"one"]
    assert acks(admin) == [0x0002]


@both("03")
@pytest.mark.parametrize("asked", [NA, 0])
def test_a_message_that_came_too_late_is_deleted(recoverable, asked):
    desk = Desk()
    queue, admin, peer = desk.queue(), desk.queue("adm"), desk.peer()
    how = {"recoverable": recoverable, "acks": asked, "admin": HERE_ADMIN, "reach": 10}
    peer.send(b"late", sent_time=desk.utc - 11, **how)
    peer.send(b"in time", sent_time=desk.utc - 10, **how)
    assert bodies(queue) == [b"in time"]
    assert acks(admin) == ([0x8002] if asked else [])


@both("04")
def test_a_message_for_another_queue_manager_is_routed_onward(recoverable):
    desk = routed()
    queue, admin, peer = desk.queue(), desk.queue("adm"), desk.peer()
    peer.send(
        b"on", recoverable=recoverable, address=BEHIND.bytes_le, destination=(3, handmade.private_id(9)),
        acks=PA | NA, admin=HERE_ADMIN,
    )  # fmt: skip
    assert bodies(queue) == []
    assert acks(admin) == []
    assert desk.called[0].sent_bodies() == [b"on"]


@both("05")
@pytest.mark.parametrize(("name", "expected"), [("nowhere", 0x8000), ("tx", 0x800A)])
@pytest.mark.parametrize("asked", [NA, 0])
def test_a_message_without_a_queue_that_takes_it_is_deleted(recoverable, name, expected, asked):
    desk = Desk(settings=OPEN_NACKS)
    queue, admin, peer = desk.queue("tx", transactional=True), desk.queue("adm"), desk.peer()
    peer.send(recoverable=recoverable, destination=direct(name), acks=asked, admin=HERE_ADMIN)
    assert bodies(queue) == []
    assert acks(admin) == ([expected] if asked else [])


@both("06")
@pytest.mark.parametrize("asked", [PA, 0])
def test_a_deliverable_message_is_put_into_its_queue(recoverable, asked):
    desk = Desk()
    queue, admin, peer = desk.queue(), desk.queue("adm"), desk.peer()
    seen = []

    class Watcher:
        def message_position_available(self, queue, position):
            seen.append((queue, position.message.body))

    desk.core.context.subscribers.append(Watcher())
    peer.send(b"it", recoverable=recoverable, acks=asked, admin=HERE_ADMIN)
    desk.core.context.subscribers.pop()
    assert bodies(queue) == [b"it"]
    assert seen[0] == (queue, b"it")
    assert acks(admin) == ([0x0002] if asked else [])


@both("07")
@pytest.mark.parametrize("asked", [NR, PR | PA, 0])
@pytest.mark.parametrize(("how", "expected"), [("expires", 0xC002), ("purged", 0xC001), ("deleted", 0xC000)])
def test_a_message_that_leaves_its_queue_unread_is_acknowledged_so(recoverable, asked, how, expected):
    desk = Desk()
    queue, admin, peer = desk.queue(), desk.queue("adm"), desk.peer()
    peer.send(recoverable=recoverable, acks=asked & ~PA, admin=HERE_ADMIN, receive=60)
    if how == "expires":
        desk.passes(60_000)
    elif how == "purged":
        desk.core.messages.purge(queue)
    else:
        desk.core.queues.delete(queue)
    desk.run()
    assert bodies(queue) == []
    assert acks(admin) == ([expected] if asked == NR else [])


@both("08")
@pytest.mark.parametrize("asked", [PR, NR, 0])
def test_a_message_that_is_received_is_acknowledged_so(recoverable, asked):
    desk = Desk()
    queue, admin, peer = desk.queue(), desk.queue("adm"), desk.peer()
    peer.send(b"read me", recoverable=recoverable, acks=asked, admin=HERE_ADMIN)
    assert desk.receive(queue) == b"read me"
    assert bodies(queue) == []
    assert acks(admin) == ([0x4000] if asked == PR else [])


# --- figure 10 ---


def refused(desk: Desk, asked: int, **how: object) -> tuple[list[int], list[int]]:
    """The classes of final and administration acknowledgements for a transactional message."""
    admin, peer = desk.queue("adm"), desk.peer()
    how.setdefault("destination", direct("tx"))
    peer.send(tx=(1, 0), acks=asked, admin=HERE_ADMIN, **how)  # type: ignore[arg-type]
    finals = [packet.MessagePropertiesHeader.MessageClass for packet in peer.take("FinalAck")]
    return finals, acks(admin)


@pytest.mark.requirement("MQQB-3.1.1.1.1.8-01")
@pytest.mark.parametrize("asked", [NA, 0])
def test_a_transactional_message_that_fails_the_security_check(asked):
    desk = Desk(settings=OPEN_NACKS)
    queue = desk.queue("tx", transactional=True)
    assert refused(desk, asked, security=signed()) == ([0x8006], [0x8006] if asked else [])
    assert bodies(queue) == []


@pytest.mark.requirement("MQQB-3.1.1.1.1.8-02")
def test_a_transactional_duplicate_is_not_queued_again():
    desk = Desk()
    queue, admin, peer = desk.queue("tx", transactional=True), desk.queue("adm"), desk.peer()
    for _ in range(3):
        peer.send(b"once", tx=(1, 0), destination=direct("tx"), acks=PA | NA, admin=HERE_ADMIN)
    assert bodies(queue) == [b"once"]
    assert acks(admin) == [0x0002]
    assert peer.take("FinalAck") == []


@pytest.mark.requirement("MQQB-3.1.1.1.1.8-03")
def test_a_transactional_message_is_saved_before_it_is_acknowledged():
    desk = Desk()
    desk.queue("tx", transactional=True)
    peer = desk.peer()
    stored = []
    came = peer.came

    def watch(data: bytes) -> None:
        stored.append([row for _, row in desk.store.rows(Table.PACKET)])
        came(data)

    peer.came = watch
    peer.send(b"safe first", tx=(1, 0), destination=direct("tx"))
    assert peer.kinds() == []
    assert len(list(desk.store.rows(Table.PACKET))) == 1
    desk.passes(500)
    assert sorted(peer.kinds()) == ["OrderAck", "SessionAck"]
    assert all(any(b"safe first" in row for row in rows) for rows in stored)


@pytest.mark.requirement("MQQB-3.1.1.1.1.8-04")
@pytest.mark.parametrize("asked", [NA, 0])
def test_a_transactional_message_that_came_too_late(asked):
    desk = Desk()
    queue = desk.queue("tx", transactional=True)
    late = {"reach": 5, "sent_time": desk.utc - 6}
    assert refused(desk, asked, **late) == ([0x8002], [0x8002] if asked else [])
    assert bodies(queue) == []


@pytest.mark.requirement("MQQB-3.1.1.1.1.8-05", "MQQB-3.1.1.6.2-01", "MQQB-3.1.1.5-10")
def test_a_transactional_message_for_another_queue_manager_is_only_passed_on():
    desk = routed()
    peer = desk.peer(address="10.0.0.8")
    header = {"address": BEHIND.bytes_le, "destination": (3, handmade.private_id(9))}
    for number, previous in ((3, 2), (1, 0), (1, 0), (8, 7)):  # in no order: it is none of its business
        peer.send(b"%d" % number, tx=(number, previous, 5), **header)
    desk.passes(10_000)
    assert set(peer.kinds()) == {"SessionAck"}
    sent = desk.called[0].take("UserMessage")
    assert [packet.MessagePropertiesHeader.MessageBody for packet in sent] == [b"3", b"1", b"1", b"8"]
    assert [packet.TransactionHeader.to_bytes() for packet in sent] == [
        handmade.transaction_header(number=number, previous=previous, ordinal=5)
        for number, previous in ((3, 2), (1, 0), (1, 0), (8, 7))
    ]


@pytest.mark.requirement("MQQB-3.1.1.1.1.8-06")
@pytest.mark.parametrize(("name", "expected"), [("nowhere", 0x8000), ("plain", 0x8009)])
@pytest.mark.parametrize("asked", [NA, 0])
def test_a_transactional_message_without_a_transactional_queue(name, expected, asked):
    desk = Desk(settings=OPEN_NACKS)
    queue = desk.queue("plain")
    found = refused(desk, asked, destination=direct(name))
    assert found == ([expected], [expected] if asked else [])
    assert bodies(queue) == []


@pytest.mark.requirement("MQQB-3.1.1.1.1.8-07")
@pytest.mark.parametrize("asked", [PA, 0])
def test_an_accepted_transactional_message(asked):
    desk = Desk()
    queue, admin, peer = desk.queue("tx", transactional=True), desk.queue("adm"), desk.peer()
    peer.send(b"it", tx=(1, 0), destination=direct("tx"), acks=asked, admin=HERE_ADMIN)
    assert bodies(queue) == [b"it"]
    assert acks(admin) == ([0x0002] if asked else [])
    desk.passes(500)
    (ack,) = peer.take("OrderAck")
    assert ack.OrderAckBody.TxSequenceNumber == 1


@pytest.mark.requirement("MQQB-3.1.1.1.1.8-08")
@pytest.mark.parametrize("final", [JP, 0])
@pytest.mark.parametrize("asked", [NR, 0])
@pytest.mark.parametrize(("how", "expected"), [("expires", 0xC002), ("purged", 0xC001), ("deleted", 0xC000)])
def test_a_transactional_message_that_leaves_its_queue_unread(final, asked, how, expected):
    desk = Desk()
    queue, admin, peer = desk.queue("tx", transactional=True), desk.queue("adm"), desk.peer()
    peer.send(tx=(1, 0), destination=direct("tx"), acks=asked, admin=HERE_ADMIN, receive=60, flags=final)
    if how == "expires":
        desk.passes(60_000)
    elif how == "purged":
        desk.core.messages.purge(queue)
    else:
        desk.core.queues.delete(queue)
    desk.run()
    finals = [packet.MessagePropertiesHeader.MessageClass for packet in peer.take("FinalAck")]
    assert finals == ([expected] if final else [])
    assert acks(admin) == ([expected] if asked else [])


@pytest.mark.requirement("MQQB-3.1.1.1.1.8-09")
@pytest.mark.parametrize("final", [JP, 0])
@pytest.mark.parametrize("asked", [PR, 0])
def test_a_transactional_message_that_is_received(final, asked):
    desk = Desk()
    queue, admin, peer = desk.queue("tx", transactional=True), desk.queue("adm"), desk.peer()
    peer.send(b"it", tx=(1, 0), destination=direct("tx"), acks=asked, admin=HERE_ADMIN, flags=final)
    assert desk.receive(queue) == b"it"
    finals = [packet.MessagePropertiesHeader.MessageClass for packet in peer.take("FinalAck")]
    assert finals == ([0x4000] if final else [])
    assert acks(admin) == ([0x4000] if asked else [])


@pytest.mark.requirement("MQQB-3.1.1.1.1.8-09")
def test_a_reader_that_waits_takes_the_first_message_and_its_sender_is_told():
    desk = Desk()
    desk.queue("tx", transactional=True)
    peer = desk.peer()
    reader = desk.open(f"DIRECT=TCP:{ADDRESS}\\private$\\tx", access=desk.RECEIVE)
    desk.core.messages.dequeue(reader)
    peer.send(b"it", tx=(1, 0), destination=direct("tx"), flags=JP)
    (final,) = peer.take("FinalAck")
    assert final.FinalAckBody.to_bytes() == handmade.final_ack_body(source=peer.guid.bytes_le)
    assert final.UserHeader.SourceQueueManager == UUID(int=0xA0)
