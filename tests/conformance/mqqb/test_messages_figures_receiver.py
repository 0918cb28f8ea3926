"""The states of received messages: figures 6, 8 and 10, [MS-MQQB] 3.1.1.1.1.4, .6 and .8."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.tables import Table
from tests.support import handmade
from tests.support.engine_harness import (
    OWN_ADDRESS,
    OWN_ID,
    PEER_ADDRESS,
    THIRD_ID,
    EngineHarness,
    harness_with_peer,
)
from tests.support.peers.handwritten_peer import JP, NA, NR, PA, PR, direct
from tests.support.qm.queue_contents import bodies, message_classes

HERE_ADMIN = direct("adm")
OPEN_NACKS = Settings(send_insecure_nacks=True)


def both(number: str) -> pytest.MarkDecorator:
    """Express and recoverable messages: the same row in figures 6 and 8."""
    return pytest.mark.parametrize(
        "recoverable",
        [
            pytest.param(False, marks=pytest.mark.requirement(f"MQQB-3.1.1.1.1.4-{number}"), id="express"),
            pytest.param(True, marks=pytest.mark.requirement(f"MQQB-3.1.1.1.1.6-{number}"), id="recoverable"),
        ],
    )


def signed() -> bytes:
    return handmade.security_header(signature=b"s" * 64, certificate=b"c" * 8)


def routed() -> EngineHarness:
    """A queue manager that reaches another over a fixed route."""
    harness = harness_with_peer(routes={THIRD_ID: ["far"]})
    harness.names["far"] = PEER_ADDRESS
    harness.hosts[PEER_ADDRESS] = THIRD_ID
    return harness


@both("01")
@pytest.mark.parametrize("asked", [NA, 0])
def test_a_message_that_fails_the_security_check_is_deleted(recoverable, asked):
    harness = harness_with_peer(settings=OPEN_NACKS)
    queue, admin, peer = harness.queue(), harness.queue("adm"), harness.accept_session()
    peer.send_message(recoverable=recoverable, security=signed(), acks=asked, admin=HERE_ADMIN)
    assert bodies(queue) == []
    assert message_classes(admin) == ([0x8006] if asked else [])


@both("02")
def test_a_duplicate_ends_at_once_without_an_acknowledgement(recoverable):
    harness = harness_with_peer(settings=OPEN_NACKS)
    queue, admin, peer = harness.queue(), harness.queue("adm"), harness.accept_session()
    peer.send_message(b"one", recoverable=recoverable, message_id=7, acks=PA | NA, admin=HERE_ADMIN)
    peer.send_message(b"one", recoverable=recoverable, message_id=7, acks=PA | NA, admin=HERE_ADMIN)
    peer.send_message(
        b"one", recoverable=recoverable, message_id=7, acks=PA | NA, admin=HERE_ADMIN, security=signed()
    )
    assert bodies(queue) == [b"one"]
    assert message_classes(admin) == [0x0002]


@both("02")
@pytest.mark.requirement("MQQB-3.1.5.8.1-02", "MQQB-3.1.5.8.2-04")
def test_a_duplicate_is_neither_forwarded_nor_reported(recoverable):
    harness = routed()
    queue, reports, peer = harness.queue(), harness.queue("reports"), harness.accept_session()
    onward = {"address": THIRD_ID.bytes_le, "destination": (3, handmade.private_id(9))}
    for _ in range(3):
        peer.send_message(b"here", recoverable=recoverable, message_id=7, trace=reports.identifier)
        peer.send_message(b"on", recoverable=recoverable, message_id=8, **onward)
    assert bodies(queue) == [b"here"]
    assert message_classes(reports) == [0x0001]
    assert harness.called[0].bodies() == [b"on"]


@both("02")
@pytest.mark.requirement("MQQB-3.1.5.8.1-02", "MQQB-3.1.5.8.2-04")
def test_a_refused_message_that_comes_again_is_a_duplicate(recoverable):
    """Its refusal is reported once, and it does not come into a queue that has been created meanwhile."""
    harness = harness_with_peer(settings=OPEN_NACKS)
    admin, peer = harness.queue("adm"), harness.accept_session()
    options = {"recoverable": recoverable, "message_id": 7, "acks": NA, "admin": HERE_ADMIN}
    peer.send_message(**options)
    peer.send_message(**options)
    assert message_classes(admin) == [0x8000]
    queue = harness.queue()
    peer.send_message(**options)
    assert bodies(queue) == []


@both("03")
@pytest.mark.parametrize("asked", [NA, 0])
def test_a_message_that_came_too_late_is_deleted(recoverable, asked):
    harness = harness_with_peer()
    queue, admin, peer = harness.queue(), harness.queue("adm"), harness.accept_session()
    options = {"recoverable": recoverable, "acks": asked, "admin": HERE_ADMIN, "time_to_reach_queue": 10}
    peer.send_message(b"late", sent_time=harness.utc - 11, **options)
    peer.send_message(b"in time", sent_time=harness.utc - 10, **options)
    assert bodies(queue) == [b"in time"]
    assert message_classes(admin) == ([0x8002] if asked else [])


@both("04")
def test_a_message_for_another_queue_manager_is_routed_onward(recoverable):
    harness = routed()
    queue, admin, peer = harness.queue(), harness.queue("adm"), harness.accept_session()
    peer.send_message(
        b"on", recoverable=recoverable, address=THIRD_ID.bytes_le, destination=(3, handmade.private_id(9)),
        acks=PA | NA, admin=HERE_ADMIN,
    )  # fmt: skip
    assert bodies(queue) == []
    assert message_classes(admin) == []
    assert harness.called[0].bodies() == [b"on"]


@both("05")
@pytest.mark.parametrize(("name", "expected"), [("nowhere", 0x8000), ("tx", 0x800A)])
@pytest.mark.parametrize("asked", [NA, 0])
def test_a_message_without_a_queue_that_takes_it_is_deleted(recoverable, name, expected, asked):
    harness = harness_with_peer(settings=OPEN_NACKS)
    queue, admin, peer = (
        harness.queue("tx", transactional=True),
        harness.queue("adm"),
        harness.accept_session(),
    )
    peer.send_message(recoverable=recoverable, destination=direct(name), acks=asked, admin=HERE_ADMIN)
    assert bodies(queue) == []
    assert message_classes(admin) == ([expected] if asked else [])


@both("06")
@pytest.mark.parametrize("asked", [PA, 0])
def test_a_deliverable_message_is_put_into_its_queue(recoverable, asked):
    harness = harness_with_peer()
    queue, admin, peer = harness.queue(), harness.queue("adm"), harness.accept_session()
    events = harness.record_events()
    peer.send_message(b"it", recoverable=recoverable, acks=asked, admin=HERE_ADMIN)
    assert bodies(queue) == [b"it"]
    first_queue, position = events.available()[0]
    assert (first_queue, position.message.body) == (queue, b"it")
    assert message_classes(admin) == ([0x0002] if asked else [])


@both("07")
@pytest.mark.parametrize("asked", [NR, PR | PA, 0])
@pytest.mark.parametrize(
    ("departure", "expected"), [("expires", 0xC002), ("purged", 0xC001), ("deleted", 0xC000)]
)
def test_a_message_that_leaves_its_queue_unread_is_nacked(recoverable, asked, departure, expected):
    harness = harness_with_peer()
    queue, admin, peer = harness.queue(), harness.queue("adm"), harness.accept_session()
    peer.send_message(recoverable=recoverable, acks=asked & ~PA, admin=HERE_ADMIN, time_to_be_received=60)
    if departure == "expires":
        harness.advance(60_000)
    elif departure == "purged":
        harness.core.messages.purge(queue)
    else:
        harness.core.queues.delete(queue)
    harness.run()
    assert bodies(queue) == []
    assert message_classes(admin) == ([expected] if asked == NR else [])


@both("08")
@pytest.mark.parametrize("asked", [PR, NR, 0])
def test_a_message_that_is_received_is_acknowledged_so(recoverable, asked):
    harness = harness_with_peer()
    queue, admin, peer = harness.queue(), harness.queue("adm"), harness.accept_session()
    peer.send_message(b"read me", recoverable=recoverable, acks=asked, admin=HERE_ADMIN)
    assert harness.receive(queue) == b"read me"
    assert bodies(queue) == []
    assert message_classes(admin) == ([0x4000] if asked == PR else [])


# --- figure 10 ---


def refused(harness: EngineHarness, asked: int, **options: object) -> tuple[list[int], list[int]]:
    """The classes of final and administration acknowledgements for a transactional message."""
    admin, peer = harness.queue("adm"), harness.accept_session()
    options.setdefault("destination", direct("tx"))
    peer.send_message(tx=(1, 0), acks=asked, admin=HERE_ADMIN, **options)  # type: ignore[arg-type]
    finals = [packet.MessageClass for packet in peer.take("FinalAck")]
    return finals, message_classes(admin)


@pytest.mark.requirement("MQQB-3.1.1.1.1.8-01")
@pytest.mark.parametrize("asked", [NA, 0])
def test_a_transactional_message_that_fails_the_security_check(asked):
    harness = harness_with_peer(settings=OPEN_NACKS)
    queue = harness.queue("tx", transactional=True)
    assert refused(harness, asked, security=signed()) == ([0x8006], [0x8006] if asked else [])
    assert bodies(queue) == []


@pytest.mark.requirement("MQQB-3.1.1.1.1.8-02")
def test_a_transactional_duplicate_is_not_queued_again():
    harness = harness_with_peer()
    queue, admin, peer = (
        harness.queue("tx", transactional=True),
        harness.queue("adm"),
        harness.accept_session(),
    )
    for _ in range(3):
        peer.send_message(b"once", tx=(1, 0), destination=direct("tx"), acks=PA | NA, admin=HERE_ADMIN)
    assert bodies(queue) == [b"once"]
    assert message_classes(admin) == [0x0002]
    assert peer.take("FinalAck") == []


@pytest.mark.requirement("MQQB-3.1.1.1.1.8-03")
def test_a_transactional_message_is_saved_before_its_ack():
    harness = harness_with_peer()
    harness.queue("tx", transactional=True)
    peer = harness.accept_session()
    stored = []
    came = peer.hear

    def watch(data: bytes) -> None:
        stored.append([row for _, row in harness.store.rows(Table.PACKET)])
        came(data)

    peer.hear = watch
    peer.send_message(b"safe first", tx=(1, 0), destination=direct("tx"))
    assert peer.kinds() == []
    assert len(list(harness.store.rows(Table.PACKET))) == 1
    harness.advance(500)
    assert sorted(peer.kinds()) == ["OrderAck", "SessionAck"]
    assert all(any(b"safe first" in row for row in rows) for rows in stored)


@pytest.mark.requirement("MQQB-3.1.1.1.1.8-04")
@pytest.mark.parametrize("asked", [NA, 0])
def test_a_transactional_message_that_came_too_late(asked):
    harness = harness_with_peer()
    queue = harness.queue("tx", transactional=True)
    late = {"time_to_reach_queue": 5, "sent_time": harness.utc - 6}
    assert refused(harness, asked, **late) == ([0x8002], [0x8002] if asked else [])
    assert bodies(queue) == []
    in_time = {"time_to_reach_queue": 6, "sent_time": harness.utc - 6}
    harness.accept_session().send_message(b"in time", tx=(2, 1), destination=direct("tx"), **in_time)
    assert bodies(queue) == [b"in time"]


@pytest.mark.requirement("MQQB-3.1.1.1.1.8-05", "MQQB-3.1.1.6.2-01", "MQQB-3.1.1.5-10")
def test_a_routed_transactional_message_is_only_forwarded():
    """Its order is not checked here, and no order acknowledgement is sent for it."""
    harness = routed()
    peer = harness.accept_session(address="10.0.0.8")
    header = {"address": THIRD_ID.bytes_le, "destination": (3, handmade.private_id(9))}
    for number, previous in ((3, 2), (1, 0), (1, 0), (8, 7)):  # order doesn't matter here
        peer.send_message(b"%d" % number, tx=(number, previous, 5), **header)
    harness.advance(10_000)
    assert set(peer.kinds()) == {"SessionAck"}
    sent = harness.called[0].take("UserMessage")
    assert [packet.body for packet in sent] == [b"3", b"1", b"1", b"8"]
    assert [packet.TransactionHeader for packet in sent] == [
        handmade.transaction_header(number=number, previous=previous, ordinal=5)
        for number, previous in ((3, 2), (1, 0), (1, 0), (8, 7))
    ]


@pytest.mark.requirement("MQQB-3.1.1.1.1.8-06")
@pytest.mark.parametrize(("name", "expected"), [("nowhere", 0x8000), ("plain", 0x8009)])
@pytest.mark.parametrize("asked", [NA, 0])
def test_a_transactional_message_without_a_transactional_queue(name, expected, asked):
    harness = harness_with_peer(settings=OPEN_NACKS)
    queue, other = harness.queue("plain"), harness.queue("tx", transactional=True)
    acknowledgements = refused(harness, asked, destination=direct(name))
    assert acknowledgements == ([expected], [expected] if asked else [])
    harness.accept_session().send_message(tx=(1, 0), destination=direct("tx"))
    assert (bodies(queue), bodies(other)) == ([], [b"x"])


@pytest.mark.requirement("MQQB-3.1.1.1.1.8-07")
@pytest.mark.parametrize("asked", [PA, 0])
def test_an_accepted_transactional_message(asked):
    harness = harness_with_peer()
    queue, admin, peer = (
        harness.queue("tx", transactional=True),
        harness.queue("adm"),
        harness.accept_session(),
    )
    peer.send_message(b"it", tx=(1, 0), destination=direct("tx"), acks=asked, admin=HERE_ADMIN)
    assert bodies(queue) == [b"it"]
    assert message_classes(admin) == ([0x0002] if asked else [])
    harness.advance(500)
    (ack,) = peer.take("OrderAck")
    assert ack.acknowledged_tx[2] == 1


@pytest.mark.requirement("MQQB-3.1.1.1.1.8-08")
@pytest.mark.parametrize("final", [JP, 0])
@pytest.mark.parametrize("asked", [NR, 0])
@pytest.mark.parametrize(
    ("departure", "expected"), [("expires", 0xC002), ("purged", 0xC001), ("deleted", 0xC000)]
)
def test_a_transactional_message_that_leaves_its_queue_unread(final, asked, departure, expected):
    harness = harness_with_peer()
    queue, admin, peer = (
        harness.queue("tx", transactional=True),
        harness.queue("adm"),
        harness.accept_session(),
    )
    peer.send_message(
        tx=(1, 0), destination=direct("tx"), acks=asked, admin=HERE_ADMIN, time_to_be_received=60, flags=final
    )
    if departure == "expires":
        harness.advance(60_000)
    elif departure == "purged":
        harness.core.messages.purge(queue)
    else:
        harness.core.queues.delete(queue)
    harness.run()
    finals = [packet.MessageClass for packet in peer.take("FinalAck")]
    assert finals == ([expected] if final else [])
    assert message_classes(admin) == ([expected] if asked else [])


@pytest.mark.requirement("MQQB-3.1.1.1.1.8-09")
@pytest.mark.parametrize("final", [JP, 0])
@pytest.mark.parametrize("asked", [PR, 0])
def test_a_transactional_message_that_is_received(final, asked):
    harness = harness_with_peer()
    queue, admin, peer = (
        harness.queue("tx", transactional=True),
        harness.queue("adm"),
        harness.accept_session(),
    )
    peer.send_message(b"it", tx=(1, 0), destination=direct("tx"), acks=asked, admin=HERE_ADMIN, flags=final)
    assert harness.receive(queue) == b"it"
    finals = [packet.MessageClass for packet in peer.take("FinalAck")]
    assert finals == ([0x4000] if final else [])
    assert message_classes(admin) == ([0x4000] if asked else [])


@pytest.mark.requirement("MQQB-3.1.1.1.1.8-09")
def test_a_waiting_reader_takes_a_message_and_sends_a_final_ack():
    harness = harness_with_peer()
    harness.queue("tx", transactional=True)
    peer = harness.accept_session()
    reader = harness.open(f"DIRECT=TCP:{OWN_ADDRESS}\\private$\\tx")
    harness.core.messages.dequeue(reader)
    peer.send_message(b"it", tx=(1, 0), destination=direct("tx"), flags=JP)
    (final,) = peer.take("FinalAck")
    assert final.body == handmade.final_ack_body(source=peer.identifier.bytes_le)
    assert final.SourceQueueManager == OWN_ID.bytes_le
