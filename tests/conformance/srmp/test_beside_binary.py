"""SRMP and the binary protocol in one queue manager: what one leaves where the other looks."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.constants import MessageClass
from msmqwire.names import parse_format_name
from msmqwire.qm.model.enumerations import AcknowledgementsRequested, Relay
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.srmp.on_demand import srmp_of
from msmqwire.qm.rules.memory_pool import Kind
from msmqwire.qm.rules.queues import outgoing_bytes
from tests.support import handmade
from tests.support.engine_harness import PEER_ADDRESS
from tests.support.peers.handwritten_peer import JN, HandwrittenPeer, direct
from tests.support.qm.queue_contents import bodies, message_classes
from tests.support.srmp.srmp_harness import SrmpHarness
from tests.support.srmp.srmp_requests import ADMIN, SrmpPeer

C = MessageClass
OK = 200
OTHER = UUID(int=0xD4)
BY_HTTP = 7, handmade.direct_name("HTTP://here/msmq/private$/orders")
ADMIN_BY_HTTP = 7, handmade.direct_name("HTTP://there/msmq/private$/admin")
ALL_POSITIVE, ALL_NEGATIVE = 0x01 | 0x02, 0x08


def receiver(**attributes: object) -> tuple[SrmpHarness, HandwrittenPeer, SrmpPeer]:
    """A queue manager with a queue, a peer with a binary session, and the same peer over HTTP."""
    harness = SrmpHarness(answers=lambda _: OK)
    harness.queue("orders", **attributes)
    return harness, harness.accept_session(), SrmpPeer(harness)


@pytest.mark.parametrize("first", ["binary", "srmp"])
def test_a_binary_sequence_and_a_stream_of_one_name_are_separate(first):
    harness, session, peer = receiver(transactional=True)

    def binary(number: int) -> None:
        session.send_message(b"b%d" % number, destination=BY_HTTP, tx=(number, number - 1))

    if first == "binary":
        binary(1)
        assert peer.send_in_stream(1) == OK
    else:
        assert peer.send_in_stream(1) == OK
        binary(1)
    assert peer.send_in_stream(2) == OK
    binary(2)
    assert sorted(bodies(harness.find_queue())) == [b"b1", b"b2", b"s1", b"s2"]
    harness.advance(500)
    assert harness.take_one()["streamReceipt/lastOrdinal"] == "2"
    restarted = harness.restarted()
    assert SrmpPeer(restarted).send_in_stream(3, number=3) == OK
    assert bodies(restarted.find_queue())[-1] == b"s3"


def test_a_binary_message_with_an_envelope_that_is_none():
    harness, session, _ = receiver(transactional=True)
    session.send_message(
        b"m", tx=(1, 0), acks=ALL_POSITIVE, flags=JN, admin=ADMIN_BY_HTTP,
        srmp=handmade.srmp_envelope_header("<no envelope"),
        compound=handmade.compound_message_header(b"POST nothing"),
    )  # fmt: skip
    queue = harness.find_queue()
    assert bodies(queue) == [b"m"]
    assert harness.receive(queue) == b"m"
    harness.advance(60_000)


@pytest.mark.requirement("SRMP-3.1.7.3-01")
def test_a_binary_message_can_have_an_admin_queue_by_http():
    """That queue gets receipts, as messages of SRMP, instead of acknowledgements."""
    harness, session, _ = receiver()
    session.send_message(b"m", admin=ADMIN_BY_HTTP, acks=ALL_POSITIVE, label="l")
    arrived = harness.take_one()
    assert (arrived.url, arrived["Msmq/Class"]) == (ADMIN, "2")
    assert arrived["deliveryReceipt/id"] == f"uuid:1@{session.identifier}"
    assert harness.receive("DIRECT=OS:here\\private$\\orders") == b"m"
    received = harness.take_one()
    assert (received.url, received["commitmentReceipt/decision"]) == (ADMIN, "positive")
    assert received["Msmq/Class"] == str(int(MessageClass.MQMSG_CLASS_ACK_RECEIVE))


def test_an_admin_queue_by_http_gets_the_nack_of_a_purge():
    """The message itself came by the binary protocol."""
    harness, session, _ = receiver()
    session.send_message(b"m", admin=ADMIN_BY_HTTP, acks=ALL_NEGATIVE)
    assert harness.take() == []
    harness.purge(harness.find_queue())
    assert harness.take_one()["commitmentReceipt/decision"] == "negative"


def test_a_message_by_http_needs_an_admin_queue_by_http():
    """SRMP has no place for it: its sender is told so, and nothing is lost without notice."""
    harness = SrmpHarness(answers=lambda _: OK)
    harness.queue("admin")
    name = parse_format_name(r"DIRECT=OS:here\private$\admin")
    harness.send(
        b"m", administration=name, acknowledgements_requested=AcknowledgementsRequested.ACK_POS_ARRIVAL,
        negative_journaling_requested=True,
    )  # fmt: skip
    assert harness.take() == []
    assert harness.where() == {"dead": [b"m"]}
    ((key, refusal),) = harness.core.context.refusals.kept.items()
    assert (key.peer, key.reason, refusal.count) == (None, "malformed", 1)


def test_a_failed_message_by_http_has_no_binary_acknowledgement():
    """A message by HTTP that this queue manager gives up has no acknowledgement: its dead-letter queue."""
    harness = SrmpHarness(answers=lambda _: 400)
    harness.send(b"m")
    assert harness.where() == {}
    assert message_classes(harness.core.queue_manager.system_deadletter_queue) == []
    assert harness.time_left(Timer.SESSION_CLEANUP, 0) is None


@pytest.mark.parametrize("transactional", [False, True])
def test_a_queue_of_this_computer_by_its_http_name(transactional):
    """Nothing is transferred, and the receipts are there at once."""
    harness = SrmpHarness()
    queue, admin = harness.queue("orders", transactional=transactional), harness.queue("admin")
    harness.send(
        b"m", to="DIRECT=HTTP://here/msmq/private$/orders", transactional=transactional,
        administration=parse_format_name("DIRECT=HTTP://here/msmq/private$/admin"),
        acknowledgements_requested=AcknowledgementsRequested(0x0E | 0x01), positive_journaling_requested=True,
    )  # fmt: skip
    assert harness.receive(queue) == b"m"
    assert harness.take() == []
    assert message_classes(admin) == [C.MQMSG_CLASS_ACK_REACH_QUEUE, C.MQMSG_CLASS_ACK_RECEIVE]
    harness.restart()
    assert len(harness.find_queue("admin").positions) == (2 if transactional else 0)


def test_receipts_by_http_do_not_use_the_senders_binary_session():
    """An administration queue by HTTP on the sender's side is reached by HTTP although a session is open."""
    harness, session, _ = receiver()
    session.send_message(b"m", admin=ADMIN_BY_HTTP, acks=1)
    assert [sent.url for sent in harness.take()] == [ADMIN]
    assert session.bodies() == []


@pytest.mark.parametrize("transactional", [False, True])
def test_a_binary_message_is_not_passed_on_by_http(transactional):
    """Its sender can reach the queue itself: only what came by HTTP goes on by HTTP."""
    harness = SrmpHarness(relay=Relay.ALL, transparent_store_and_forward=True, answers=lambda _: OK)
    session = harness.accept_session()
    far = 7, handmade.direct_name("HTTP://there/msmq/private$/orders")
    tx = {"tx": (1, 0)} if transactional else {}
    session.send_message(b"m", destination=far, address=OTHER.bytes_le, **tx)
    assert (harness.take(), harness.where("DIRECT=HTTP://there/msmq/private$/orders")) == ([], {})
    assert srmp_of(harness.core).transfers == {}


def test_idle_queues_by_http_make_room_for_binary_queues():
    """An origin has one share of memory for the queues that it asks for, by whichever protocol."""
    harness = SrmpHarness(answers=lambda _: OK, memory=16 << 20, third_place_messages=10**6)
    harness.queue("orders")
    pool, kind = harness.core.messages.pool, Kind.QUEUES
    session = harness.accept_session()
    own = parse_format_name(r"DIRECT=TCP:10.9.9.9\private$\own")
    number = 0
    while pool.fits(kind, PEER_ADDRESS, outgoing_bytes(own)):
        number += 1
        admin = 7, handmade.direct_name(f"HTTP://there/msmq/private$/a{number}")
        session.send_message(b"", acks=ALL_POSITIVE, admin=admin)
    assert 10 < number == len(harness.take())
    session.send_message(b"", acks=ALL_POSITIVE, admin=direct("own", "10.9.9.9"))
    assert harness.core.queues.lookup.outgoing(own)
    assert pool.used[kind] == outgoing_bytes(own)
