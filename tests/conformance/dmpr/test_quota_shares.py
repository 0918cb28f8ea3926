"""Messages kept for unauthenticated peers: QueueManagerQuota and the disk in shares by origin."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.constants import MessageClass
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import EnqueueStatus, Relay
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules import stored_rows
from msmqwire.service.origin_shares import OriginShares
from tests.support.engine_harness import PEER_ADDRESS, RECOVERABLE, EngineHarness
from tests.support.peers.handwritten_peer import JN, NA, HandwrittenPeer, direct

QUOTA = 1 << 20
SIZE = 10_000
"""Bytes of a body; its packet has a little more."""


def small(**options: object) -> EngineHarness:
    options = {"quota": QUOTA, "known_hosts": [PEER_ADDRESS], "order_ack_timeout_ms": 0, **options}
    harness = EngineHarness(**options)
    harness.queue()
    harness.queue("tx", transactional=True)
    return harness


def shares(harness: EngineHarness) -> OriginShares:
    return harness.core.messages.quotas.shares


def unknown(harness: EngineHarness, number: int = 99) -> HandwrittenPeer:
    return harness.accept_session(address=address(number), client=UUID(int=0x99 + number))


def address(number: int = 99) -> str:
    return f"10.99.0.{number}"


def fill(peer: HandwrittenPeer, count: int = 1_000, size: int = SIZE, **fields: object) -> int:
    """Send messages until the session ends; return the count of those before."""
    fields = {"recoverable": True, **fields}
    for sent in range(count):
        peer.send(peer.message(bytes(size), session=True, **fields))
        if peer.closed:
            return sent
    return count


def is_accepted(harness: EngineHarness, peer: HandwrittenPeer, **fields: object) -> bool:
    """Send a message; return whether it is stored and acknowledged."""
    before = len(harness.find_queue().positions)
    peer.send(peer.message(bytes(SIZE), recoverable=True, session=True, **fields))
    harness.advance(1_000)
    return len(harness.find_queue().positions) == before + 1 and bool(peer.acks)


def refused(harness: EngineHarness) -> set[tuple[str | None, str]]:
    return {(key.peer, key.reason) for key in harness.core.context.refusals.kept}


def check_counts(harness: EngineHarness) -> None:
    """Counted are exactly the messages, and of stored ones the origin is stored too."""
    harness.run()
    counts: dict[str, int] = {}
    for queue in harness.core.queue_manager.queues.values():
        for position in queue.positions:
            counts[position.origin] = counts.get(position.origin, 0) + position.size
            if position.stored:
                row = harness.store.row(Table.MESSAGE, position.number)
                assert row is not None
                assert stored_rows.read_message(row).origin == position.origin
    assert shares(harness).by_origin() == counts
    assert shares(harness).used == harness.core.queue_manager.total_bytes


@pytest.mark.parametrize("recoverable", [True, False])
def test_one_origin_has_a_quarter_and_honest_ones_go_on(recoverable: bool) -> None:
    """A known computer is acknowledged, and the owner sends; the sender may try again."""
    harness = small()
    sent = fill(unknown(harness), recoverable=recoverable)
    used = shares(harness).used_by(address())
    assert QUOTA // 4 - 2 * SIZE < used <= QUOTA // 4
    assert sent == used // SIZE, "none was lost: the session has ended before the first beyond"
    assert (address(), "share") in refused(harness)
    assert is_accepted(harness, harness.accept_session())
    assert is_accepted(harness, unknown(harness, 1)), "and another unknown one too"
    local = Message(body=bytes(QUOTA // 2), delivery_guarantee=RECOVERABLE)
    assert harness.core.send(harness.open_to_send(), local) is EnqueueStatus.OK
    check_counts(harness)


@pytest.mark.parametrize("origins", [4, 80])
def test_all_unknown_origins_together_leave_a_reserve(origins: int) -> None:
    harness = small()
    for number in range(origins):
        fill(unknown(harness, number))
    assert QUOTA // 2 < shares(harness).used <= QUOTA - QUOTA // 8
    assert is_accepted(harness, harness.accept_session())
    local = Message(body=bytes(QUOTA // 16), delivery_guarantee=RECOVERABLE)
    assert harness.core.send(harness.open_to_send(), local) is EnqueueStatus.OK


@pytest.mark.parametrize("at", ["127.0.0.1", "127.9.9.9", "::1"])
def test_a_user_of_this_computer_has_the_share_of_a_peer(at: str) -> None:
    """From the loopback anybody may send; the owner sends over the control channel, which has no origin."""
    harness = small(known_hosts=[PEER_ADDRESS, at])
    fill(harness.accept_session(address=at))
    assert QUOTA // 4 - 2 * SIZE < shares(harness).used_by("127.0.0.1") <= QUOTA // 4
    local = Message(body=bytes(QUOTA // 2), delivery_guarantee=RECOVERABLE)
    assert harness.core.send(harness.open_to_send(), local) is EnqueueStatus.OK
    assert is_accepted(harness, harness.accept_session())


def test_a_known_origin_has_the_whole_quota() -> None:
    harness = small()
    fill(harness.accept_session())
    assert shares(harness).used > QUOTA - 2 * SIZE
    assert (PEER_ADDRESS, "quota") in refused(harness)


def test_shares_are_settings() -> None:
    harness = small(quota_per_origin_percent=50, quota_reserve_percent=10)
    fill(unknown(harness))
    assert QUOTA // 2 - 2 * SIZE < shares(harness).used <= QUOTA // 2
    unlimited = small(quota_per_origin_percent=100, quota_reserve_percent=0)
    fill(unknown(unlimited))
    assert shares(unlimited).used > QUOTA - 2 * SIZE


def test_the_count_comes_back_with_a_restart() -> None:
    harness = small()
    fill(unknown(harness))
    before = shares(harness).by_origin()
    restarted = harness.restarted()
    assert shares(restarted).by_origin() == before
    assert fill(unknown(restarted)) == 0
    check_counts(restarted)


def test_a_message_of_an_older_version_counts_for_the_owner() -> None:
    """Version 1 stored no origin."""
    harness = small()
    fill(unknown(harness), 1)
    for number, row in list(harness.store.rows(Table.MESSAGE)):
        harness.core.context.changes.put(Table.MESSAGE, number, row.partition(b"\0" + address().encode())[0])
    harness.run()
    restarted = harness.restarted()
    assert shares(restarted).by_origin().keys() == {""}
    assert restarted.receive(restarted.find_queue()) is not None
    assert shares(restarted).used == 0


def test_room_comes_back_with_each_message_that_leaves() -> None:
    harness = small()
    sent = fill(unknown(harness))
    queue = harness.find_queue()
    for position in list(queue.positions):
        harness.core.messages.position_deleted(queue, position, MessageClass.MQMSG_CLASS_NACK_Q_PURGED)
    assert shares(harness).by_origin() == {}
    assert fill(unknown(harness)) == sent


def test_copies_in_journals_count_on() -> None:
    harness = small()
    queue: Queue = harness.find_queue()
    queue.journaling = True
    sent = fill(unknown(harness))
    used = shares(harness).by_origin()
    for _ in range(sent):
        assert harness.receive(queue) is not None
    assert queue.journal is not None
    assert len(queue.journal.positions) == sent
    assert shares(harness).by_origin() == used
    assert fill(unknown(harness)) == 0
    check_counts(harness)


def test_dead_letters_of_a_full_queue_count() -> None:
    """MQQB-3.1.5.8.8-05 copies what a full queue refuses, whatever the quota of the dead-letter queue is."""
    harness = small()
    harness.find_queue().quota = 1
    peer = unknown(harness)
    sent = fill(peer, flags=JN)
    dead = harness.core.queue_manager.system_deadletter_queue
    assert dead is not None
    assert sent == len(dead.positions) > 10
    assert peer.closed
    assert shares(harness).used_by(address()) <= QUOTA // 4
    check_counts(harness)


def test_answers_to_refused_messages_count() -> None:
    """Recoverable acknowledgements that nobody takes are on the disk for their origin."""
    harness = small(third_place_messages=10**6, third_place_bytes=1 << 40)
    peer = unknown(harness)
    fields = {"acks": NA, "sent_time": 1, "time_to_reach_queue": 1, "admin": direct("adm", "10.8.8.8")}
    fill(peer, **fields)
    assert peer.closed
    assert shares(harness).used_by(address()) <= QUOTA // 4 + SIZE
    assert is_accepted(harness, harness.accept_session())
    check_counts(harness)


def test_final_acknowledgements_count_for_their_origin() -> None:
    """They are on the disk until the sender, which may be an invention, takes them."""
    harness = small(third_place_messages=10**6, third_place_bytes=1 << 40)
    peer = unknown(harness)
    for number in range(1, 6):
        forged = UUID(int=0x10_0000 + number)
        peer.send(peer.message(b"x", queue="missing", source=forged, tx=(1, 0), session=True))
    by_origin = shares(harness).by_origin()
    assert by_origin.keys() == {address()}
    assert by_origin[address()] > 500, "five acknowledgements"
    check_counts(harness)
    assert shares(harness.restarted()).by_origin() == by_origin


def test_messages_to_pass_on_count() -> None:
    harness = small(relay=Relay.ALL)
    for number in range(40):
        peer = unknown(harness)
        there = direct("x", f"10.8.0.{number + 1}")
        fill(peer, 3, destination=there, address=UUID(int=0x777).bytes_le)
    assert QUOTA // 4 - 2 * SIZE < shares(harness).used_by(address()) <= QUOTA // 4
    assert is_accepted(harness, harness.accept_session())
    check_counts(harness)


def test_claims_of_a_message_make_no_other_origin() -> None:
    """Neither another sender, nor another address of the same IPv6 network."""
    harness = small()
    for number in range(8):
        peer = harness.accept_session(address=f"2001:db8::{number + 1}", client=UUID(int=0x99 + number))
        fill(peer, source=UUID(int=0xF00 + number))
    assert shares(harness).by_origin().keys() == {"2001:db8::/64"}
    assert shares(harness).used <= QUOTA // 4


def test_a_refused_transactional_message_leaves_no_hole() -> None:
    """The sequence does not advance past it: its sender continues with it when there is room."""
    harness = small()
    peer = unknown(harness)
    number = 0
    while not peer.closed:
        number += 1
        peer.send(peer.message(bytes(SIZE), queue="tx", tx=(number, number - 1), session=True))
    (info,) = harness.core.incoming_sequences.infos.values()
    assert info.sequence_number == number - 1 == len(harness.find_queue("tx").positions)
    assert harness.receive(r"DIRECT=OS:here\private$\tx") is not None
    again = unknown(harness)
    again.send(again.message(bytes(SIZE), queue="tx", tx=(number, number - 1), session=True))
    assert info.sequence_number == number
    check_counts(harness)


def test_a_small_disk_is_shared_like_a_small_quota() -> None:
    harness = small(quota=1 << 40)
    quotas = harness.core.messages.quotas
    quotas.disk_has(QUOTA)
    fill(unknown(harness))
    assert QUOTA // 4 - 2 * SIZE < shares(harness).used <= QUOTA // 4
    quotas.disk_has(QUOTA - shares(harness).used)
    assert shares(harness).limit == QUOTA
    assert fill(unknown(harness)) == 0
    assert is_accepted(harness, harness.accept_session())
    quotas.disk_has(-1)
    assert shares(harness).limit == shares(harness).used
    assert is_accepted(harness, harness.accept_session()), "known ones are bound by --min-free alone"
    quotas.disk_has(1 << 41)
    assert fill(unknown(harness), 10) == 10
