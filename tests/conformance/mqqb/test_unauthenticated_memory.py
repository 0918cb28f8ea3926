"""Memory kept for unauthenticated peers: bounded in bytes, by kind and by origin."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from uuid import UUID

import pytest

from msmqwire.constants import MQ_OK
from msmqwire.qm.model.enumerations import EnqueueStatus
from msmqwire.qm.model.message import Message
from msmqwire.qm.rules.memory_pool import Kind, MemoryPool
from tests.support import handmade as h
from tests.support.engine_harness import OWN_ADDRESS, PEER_ADDRESS, PEER_ID, RECOVERABLE, EngineHarness
from tests.support.peers.handwritten_peer import NA, HandwrittenPeer, direct

MIB = 1 << 20
FORGED = range(0x10_0000, 0x20_0000)
"""Numbers of identifiers that nobody has."""


def small(memory: int = MIB, **options: object) -> EngineHarness:
    harness = EngineHarness(memory=memory, order_ack_timeout_ms=0, **options)
    harness.queue()
    harness.queue("tx", transactional=True)
    return harness


def pool(harness: EngineHarness) -> MemoryPool:
    return harness.core.messages.pool


def unknown_peer(harness: EngineHarness, number: int = 99) -> HandwrittenPeer:
    return harness.accept_session(address=f"10.99.0.{number}", client=UUID(int=0x99 + number))


def express(peer: HandwrittenPeer, count: int, body: bytes = b"", **fields: object) -> int:
    """Send express messages until the session ends; return how many."""
    for sent in range(count):
        if peer.closed:
            return sent
        peer.send(peer.message(body, session=True, **fields))
    return count


def forge(harness: EngineHarness, peer: HandwrittenPeer, count: int, queue: str = "tx") -> None:
    """Send transactional messages, each of another sender."""
    for number in FORGED[:count]:
        peer.send(peer.message(b"forged", queue=queue, source=UUID(int=number), tx=(1, 0), session=True))
        harness.receive(r"DIRECT=OS:here\private$\tx")


# -- express messages ----------------------------------------------------------------------------------------


def test_express_messages_have_a_memory_limit_per_origin() -> None:
    """Other senders, local ones and recoverable messages go on."""
    harness = small()
    sent = express(unknown_peer(harness), 10_000, bytes(1_000))
    assert 10 < sent < 100, "the session was closed, as MQQB-3.1.5.8.8-06 has it for quotas"
    share = pool(harness).share(Kind.EXPRESS)
    assert pool(harness).used[Kind.EXPRESS] <= share // 4
    honest = harness.accept_session()
    assert express(honest, 10, bytes(1_000)) == 10
    assert not honest.closed
    harness.send(bytes(1_000), to=r"DIRECT=OS:here\private$\orders")
    honest.send(honest.message(b"recoverable", recoverable=True))
    assert honest.take("UserMessage") == []
    assert not honest.closed


@pytest.mark.parametrize("unknown_peers", [4, 40])
@pytest.mark.parametrize("known", ["named", "sent to", "unknown"])
def test_many_unauthenticated_peers_leave_something(unknown_peers: int, known: str) -> None:
    harness = small(known_hosts=[PEER_ADDRESS] if known == "named" else [])
    if known == "sent to":
        harness.open_session()
    for number in range(unknown_peers):
        express(unknown_peer(harness, number), 10_000, bytes(1_000))
    share = pool(harness).share(Kind.EXPRESS)
    assert pool(harness).used[Kind.EXPRESS] <= share - share // 8
    honest = harness.accept_session()
    express(honest, 3)
    assert honest.closed is (known == "unknown" and unknown_peers == 40)
    harness.send(bytes(1_000), to=r"DIRECT=OS:here\private$\orders")


def test_known_computers_have_the_whole_share() -> None:
    harness = small(known_hosts=["10.7.7.7"])
    express(harness.accept_session(address="10.7.7.7"), 10_000, bytes(1_000))
    share = pool(harness).share(Kind.EXPRESS)
    assert share - 4_000 < pool(harness).used[Kind.EXPRESS] <= share


LOCAL = ["127.0.0.1", "127.0.0.9", "127.3.0.1", "::1", "::ffff:127.0.0.1"]
"""Addresses that all users of this computer have."""


def test_users_of_this_computer_are_one_unknown_origin() -> None:
    """Even if the owner has named their addresses: only the control channel proves him."""
    harness = small(known_hosts=[*LOCAL, OWN_ADDRESS, "localhost"])
    for address in LOCAL:
        express(harness.accept_session(address=address), 10_000, bytes(1_000))
    share = pool(harness).share(Kind.EXPRESS)
    assert share // 8 < pool(harness).used[Kind.EXPRESS] <= share // 4
    express(harness.accept_session(address=OWN_ADDRESS), 10_000, bytes(1_000))
    assert pool(harness).used_by(Kind.EXPRESS, OWN_ADDRESS) <= share // 4
    harness.send(bytes(share // 4), to=r"DIRECT=OS:here\private$\orders")


def test_where_the_owner_sends_on_this_computer_is_not_known() -> None:
    """Another queue manager here has the address of every other user."""
    harness = EngineHarness(memory=MIB, hosts={"127.0.0.7": PEER_ID})
    harness.queue()
    harness.send(to=r"DIRECT=TCP:127.0.0.7\private$\orders")
    harness.run()
    assert harness.called, "a session is open"
    assert harness.core.messages.pool.known == set()


def test_room_comes_back_with_every_message_that_leaves() -> None:
    harness = small()
    queue = harness.find_queue()
    express(unknown_peer(harness), 10_000, bytes(1_000))
    for position in list(queue.positions):
        harness.core.messages.position_deleted(queue, position, 0x4000)
    assert pool(harness).used[Kind.EXPRESS] == 0
    assert express(unknown_peer(harness), 10, bytes(1_000)) == 10


def test_recoverable_messages_are_not_bounded_by_memory() -> None:
    harness = small()
    peer = unknown_peer(harness)
    for _ in range(200):
        peer.send(peer.message(bytes(10_000), recoverable=True, session=True))
    assert not peer.closed
    assert len(harness.find_queue().positions) == 200
    assert pool(harness).used[Kind.EXPRESS] == 0


def test_acks_of_express_messages_count_towards_the_memory_limit() -> None:
    """Otherwise a sender whose messages are refused would fill the memory with acknowledgements."""
    harness = small(third_place_messages=10**6, third_place_bytes=1 << 40)
    peer = unknown_peer(harness)
    sent = express(peer, 1_000, bytes(10_000), acks=NA, sent_time=1, time_to_reach_queue=1,
                   admin=direct("adm", "10.8.8.8"))  # fmt: skip
    assert sent < 30
    assert pool(harness).used[Kind.EXPRESS] < pool(harness).share(Kind.EXPRESS)


def test_an_application_is_notified_that_memory_is_used_up() -> None:
    harness = small()
    descriptor = harness.open_to_send()
    statuses = [harness.core.send(descriptor, Message(body=bytes(10_000))) for _ in range(100)]
    assert statuses[0] is EnqueueStatus.OK
    assert statuses[-1] is EnqueueStatus.QUEUE_MANAGER_QUOTA_EXCEEDED
    assert pool(harness).used[Kind.EXPRESS] <= pool(harness).share(Kind.EXPRESS)
    recoverable = Message(body=bytes(10_000), delivery_guarantee=RECOVERABLE)
    assert harness.core.send(descriptor, recoverable) is EnqueueStatus.OK


def test_express_memory_is_returned_after_a_prepared_receive() -> None:
    """A message that its transaction has made recoverable is given back as express, as it was taken."""
    harness = small()
    express(unknown_peer(harness), 3)
    descriptor = harness.open(harness.find_queue())
    transaction = harness.core.transactions.create(harness.guid())
    transaction.single_phase = False
    assert harness.core.messages.dequeue(descriptor, timeout=0, transaction=transaction).message is not None
    harness.core.transactions.prepare(transaction.identifier)
    assert harness.core.transactions.commit(transaction.identifier) == MQ_OK
    while harness.receive(harness.find_queue()) is not None:
        pass
    assert pool(harness).used[Kind.EXPRESS] == 0


# -- senders of transactional messages -----------------------------------------------------------------------


def test_forged_senders_have_a_limit_and_forget_no_honest_one() -> None:
    harness = small()
    honest = harness.accept_session()
    honest.send(honest.message(b"1", queue="tx", tx=(1, 0), session=True))
    assert harness.receive(r"DIRECT=OS:here\private$\tx") == b"1"
    forge(harness, unknown_peer(harness), 1_000)
    held = pool(harness)
    for kind in (Kind.SENDERS, Kind.ROUTES):
        assert 0 < held.used[kind] <= held.share(kind)
    assert len(harness.core.incoming_sequences.infos) < 200
    assert len(harness.core.queue_manager.queues) < 50
    honest.send(honest.message(b"1", queue="tx", tx=(1, 0), session=True))
    honest.send(honest.message(b"2", queue="tx", tx=(2, 1), session=True))
    queue = harness.find_queue("tx")
    assert [position.message.body for position in queue.positions] == [b"2"], "1 is still a duplicate"
    harness.advance(100)
    assert honest.take("OrderAck"), "and it is acknowledged"


def test_it_holds_after_a_restart() -> None:
    harness = small()
    honest = harness.accept_session()
    honest.send(honest.message(b"1", queue="tx", tx=(1, 0), session=True))
    forge(harness, unknown_peer(harness), 300)
    restarted = harness.restarted()
    assert pool(restarted).used[Kind.SENDERS] == pool(harness).used[Kind.SENDERS]
    assert pool(restarted).used[Kind.ROUTES] == pool(harness).used[Kind.ROUTES]
    forge(restarted, unknown_peer(restarted), 300, "missing")
    honest = restarted.accept_session()
    honest.send(honest.message(b"2", queue="tx", tx=(2, 1), session=True))
    bodies = [position.message.body for position in restarted.find_queue("tx").positions]
    assert bodies[-1] == b"2"
    held = pool(restarted)
    assert held.used[Kind.SENDERS] <= held.share(Kind.SENDERS)


def test_forged_senders_of_many_origins_are_bounded_too() -> None:
    harness = small()
    for number in range(30):
        peer = unknown_peer(harness, number)
        for identifier in FORGED[number * 100 : number * 100 + 100]:
            peer.send(peer.message(queue="missing", source=UUID(int=identifier), tx=(2, 1), session=True))
    held = pool(harness)
    assert held.used[Kind.SENDERS] <= held.share(Kind.SENDERS)
    honest = harness.accept_session()
    honest.send(honest.message(b"1", queue="tx", tx=(1, 0), session=True))
    honest.send(honest.message(b"1", queue="tx", tx=(1, 0), session=True))
    assert len(harness.find_queue("tx").positions) == 1


def test_names_that_are_long_count_more() -> None:
    harness = small()
    peer = unknown_peer(harness)
    for number in FORGED[:300]:
        peer.send(peer.message(queue="q" * 120, source=UUID(int=number), tx=(2, 1), session=True))
    assert len(harness.core.incoming_sequences.infos) < 40


def test_identifiers_received_are_bounded_in_bytes() -> None:
    harness = small(remove_duplicate_size=1 << 30)
    peer = unknown_peer(harness)
    for _ in range(2_000):
        peer.send(peer.message(queue="missing", session=True))
    held = pool(harness)
    assert 0 < held.used[Kind.HISTORY] <= held.share(Kind.HISTORY)
    assert len(harness.core.history) <= held.share(Kind.HISTORY) // 256
    honest = harness.accept_session()
    for _ in range(2):
        honest.send(honest.message(b"once", message_id=7, session=True))
    assert len(harness.find_queue().positions) == 1


# -- the measure ---------------------------------------------------------------------------------------------


def _express(peer: HandwrittenPeer, number: int) -> None:
    peer.send(peer.message(bytes(100), session=True, label="label", admin=direct("adm", "10.9.9.9")))


def _lists(peer: HandwrittenPeer, number: int) -> None:
    names = [h.mqf_direct("OS:a\\q")] * 30
    queues = h.multi_queue_format_header(names, names, names)
    peer.send(peer.message(session=True, multi_queue=queues))


def _senders(peer: HandwrittenPeer, number: int) -> None:
    peer.send(peer.message(queue="missing", source=UUID(int=FORGED[number]), tx=(2, 1), session=True))


def _history(peer: HandwrittenPeer, number: int) -> None:
    peer.send(peer.message(queue="missing", session=True))


def _queues(peer: HandwrittenPeer, number: int) -> None:
    admin = 2, number.to_bytes(4, "little")
    peer.send(peer.message(sent_time=1, time_to_reach_queue=1, acks=NA, admin=admin, session=True))
    peer.acknowledge()


@pytest.mark.parametrize("keeps", [_express, _lists, _senders, _history, _queues])
def test_what_is_counted_is_not_less_than_what_it_takes(
    keeps: Callable[[HandwrittenPeer, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = small(1 << 34)
    monkeypatch.setattr(harness.store, "commit", lambda changes: None)  # its rows would be on disk
    peer = unknown_peer(harness)

    def repeat(numbers: range) -> None:
        for number in numbers:
            keeps(peer, number)
            for kept in (peer.packets, peer.all_packets, peer.acks, harness.effect_log):
                kept.clear()

    repeat(range(50))
    gc.collect()
    tracemalloc.start()
    counted = -sum(pool(harness).used.values())
    taken = -tracemalloc.get_traced_memory()[0]
    repeat(range(50, 300))
    gc.collect()
    taken += tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    counted += sum(pool(harness).used.values())
    assert 0 < taken <= counted
    assert counted <= 3 * taken
