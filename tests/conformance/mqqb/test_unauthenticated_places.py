"""Unreachable places that only unauthenticated peers ask for: counted by origin, and given up."""

from __future__ import annotations

import json
from itertools import pairwise
from uuid import UUID

import pytest

from msmqwire.names import DirectName
from msmqwire.names.origins import UNKNOWN_ORIGIN
from msmqwire.qm.model.effects import Connect, ErrorReport, Resolve
from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.model.enumerations import ConnectionStatus, Relay
from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules.memory_pool import QUEUE_BYTES
from msmqwire.service.store.changes import Changes
from tests.support import handmade as h
from tests.support.engine_harness import THIRD_ID, EngineHarness, format_name
from tests.support.peers.handwritten_peer import JN, NA, PA, HandwrittenPeer, direct

FAR = THIRD_ID.bytes_le
PER_ORIGIN, TOTAL = 10, 25


def strict(**options: object) -> EngineHarness:
    """A queue manager with low limits that reaches nobody."""
    defaults = {
        "unreachable_per_origin_max": PER_ORIGIN, "unreachable_max": TOTAL,
        "third_place_messages": 5_000, "third_place_messages_total": 50_000, "hosts": {},
    }  # fmt: skip
    return EngineHarness(**defaults | options)


def unknown_peer(harness: EngineHarness, address: str = "10.0.0.99") -> HandwrittenPeer:
    return harness.accept_session(address=address, client=UUID(int=0x99))


def asks(harness: EngineHarness, peer: HandwrittenPeer, *hosts: str) -> None:
    """Send a message for each host, whose administration queue is there."""
    for host in hosts:
        peer.send(peer.message(queue="missing", acks=PA | NA, admin=direct("adm", host), session=True))


def hosts(harness: EngineHarness) -> list[str]:
    """The hosts of outgoing queues with messages, in the order in which they were asked for."""
    return [
        queue.destination.host
        for queue in harness.core.queue_manager.queues.values()
        if isinstance(queue, OutgoingQueue) and isinstance(queue.destination, DirectName) and queue.positions
    ]


def numbered(count: int, network: int = 1) -> list[str]:
    return [f"10.{network}.{number // 250}.{number % 250}" for number in range(count)]


@pytest.fixture
def harness() -> EngineHarness:
    harness = strict(send_insecure_nacks=True)
    harness.queue()
    return harness


def test_places_per_origin_are_limited_and_the_oldest_is_dropped(harness: EngineHarness) -> None:
    peer = unknown_peer(harness)
    asks(harness, peer, *numbered(100))
    assert hosts(harness) == numbered(100)[-PER_ORIGIN:]
    assert len(harness.engine.sessions) == PER_ORIGIN + 1
    assert len(harness.rows(Table.MESSAGE)) == 0
    assert not peer.closed


def test_an_honest_sender_keeps_its_places_under_a_flood(harness: EngineHarness) -> None:
    """The limit was once one for all: 1,100 tiny messages used it up."""
    honest = harness.accept_session()
    asks(harness, honest, "10.7.7.7")
    for network in range(1, 5):
        asks(harness, unknown_peer(harness, f"10.99.0.{network}"), *numbered(300, network))
    asks(harness, honest, "10.7.7.8")
    assert {"10.7.7.7", "10.7.7.8"} <= set(hosts(harness))
    assert len(hosts(harness)) == TOTAL


def test_it_holds_after_a_restart(harness: EngineHarness) -> None:
    recoverable = {"queue": "missing", "acks": NA, "recoverable": True, "session": True}
    for network in range(1, 4):
        peer = unknown_peer(harness, f"10.99.0.{network}")
        for host in numbered(30, network):
            peer.send(peer.message(admin=direct("adm", host), **recoverable))
    assert len(hosts(harness)) == TOTAL
    restarted = harness.restarted()
    assert len(hosts(restarted)) == TOTAL
    honest = restarted.accept_session()
    honest.send(honest.message(admin=direct("adm", "10.7.7.7"), **recoverable))
    assert "10.7.7.7" in hosts(restarted)
    assert len(hosts(restarted)) == TOTAL
    peer = unknown_peer(restarted, "10.99.0.1")
    peer.send(peer.message(admin=direct("adm", "10.8.8.8"), **recoverable))
    assert len(hosts(restarted)) == TOTAL, "its places of the last run count as its own"


def test_places_of_applications_are_neither_counted_nor_given_up(harness: EngineHarness) -> None:
    own = numbered(3 * TOTAL, 5)
    for host in own:
        harness.send(to=rf"DIRECT=TCP:{host}\private$\orders", recoverable=True)
    asks(harness, unknown_peer(harness), *numbered(100))
    assert hosts(harness) == own + numbered(100)[-PER_ORIGIN:]
    restarted = harness.restarted()
    asks(restarted, unknown_peer(restarted), *numbered(200))
    assert hosts(restarted)[: len(own)] == own


def test_a_place_that_an_application_asks_for_too_is_kept(harness: EngineHarness) -> None:
    asks(harness, unknown_peer(harness), "10.6.6.6")
    harness.send(b"own", to=r"DIRECT=TCP:10.6.6.6\private$\adm", recoverable=True)
    asks(harness, unknown_peer(harness), *numbered(100))
    queue = harness.outgoing(r"DIRECT=TCP:10.6.6.6\private$\adm")
    assert [position.message.body for position in queue.positions][-1] == b"own"
    assert queue.asked_by == ""


def test_a_place_is_kept_by_another_queue_of_an_application(harness: EngineHarness) -> None:
    asks(harness, unknown_peer(harness), "10.6.6.6")
    harness.send(b"own", to=r"DIRECT=TCP:10.6.6.6\private$\orders", recoverable=True)
    asks(harness, unknown_peer(harness), *numbered(100))
    assert hosts(harness).count("10.6.6.6") == 2


def test_dropped_forwarded_messages_are_dead_lettered_and_nacked() -> None:
    harness = strict(relay=Relay.ALL)
    peer = unknown_peer(harness)
    first = {"address": FAR, "recoverable": True, "session": True}
    peer.send(
        peer.message(
            b"1",
            destination=direct(address="10.6.6.6"),
            flags=JN,
            acks=NA,
            admin=(2, h.private_id(31)),
            **first,
        )
    )
    peer.send(peer.message(b"tx", destination=direct("tx", "10.6.6.6"), address=FAR, tx=(1, 0), session=True))
    for host in numbered(PER_ORIGIN):
        peer.send(peer.message(destination=direct(address=host), **first))
    assert "10.6.6.6" not in hosts(harness)
    deadletter = harness.core.queue_manager.system_deadletter_queue
    assert deadletter is not None
    assert [position.message.body for position in deadletter.positions] == [b"1"]
    assert [packet.MessageClass for packet in peer.take("UserMessage")] == [0x8002], "its sender is told"
    transactional = harness.core.queue_manager.system_transactional_deadletter_queue
    assert transactional is not None
    assert not transactional.positions, "its sender still has the transactional one, and sends it again"


def test_nacks_of_dropped_messages_displace_no_other_places() -> None:
    harness = strict(relay=Relay.ALL)
    peer = unknown_peer(harness)
    for number in range(5):
        peer.send(
            peer.message(
                destination=direct(address="10.6.6.6"), address=FAR, recoverable=True, session=True, acks=NA,
                admin=direct("adm", f"10.5.5.{number}"),
            )
        )  # fmt: skip
    others = numbered(PER_ORIGIN)
    for host in others:
        peer.send(peer.message(destination=direct(address=host), address=FAR, recoverable=True, session=True))
    assert set(others) <= set(hosts(harness))
    assert len(hosts(harness)) <= PER_ORIGIN + 1


def test_a_remotely_named_place_backs_off_and_is_reported_once() -> None:
    harness = strict(session_retry_connect_ms=5_000, session_retry_connect_max_ms=100_000)
    harness.queue()
    asks(harness, unknown_peer(harness), "10.6.6.6")
    harness.queue("missing")
    asks(harness, unknown_peer(harness), "10.6.6.6")
    harness.advance(1_000_000)
    times = [time for time, effect in harness.effect_log if isinstance(effect, Resolve)]
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert waits[:5] == [5_000, 10_000, 20_000, 40_000, 80_000]
    assert set(waits[5:]) == {100_000}
    reports = [report.text for report in harness.effects_of(ErrorReport)]
    assert len(reports) == 1
    assert "10.6.6.6" in reports[0]
    assert "10.0.0.99" in reports[0]


def test_an_application_does_not_inherit_a_remote_retry_delay() -> None:
    harness = strict(session_retry_connect_ms=5_000)
    harness.queue("missing")
    asks(harness, unknown_peer(harness), "10.6.6.6")
    harness.advance(400_000)
    before = len(harness.effects_of(Resolve))
    harness.send(to=r"DIRECT=TCP:10.6.6.6\private$\adm")
    harness.advance(20_000)
    assert len(harness.effects_of(Resolve)) >= before + 4


def test_idle_places_of_a_peer_need_bounded_memory() -> None:
    """Each queue is delivered to at once, and would stay as long as the session of the peer does."""
    harness = strict(memory=16 << 20)
    harness.queue("missing")
    peer = unknown_peer(harness)
    for number in range(2_000):
        peer.send(
            peer.message(queue="missing", acks=PA, admin=(2, number.to_bytes(4, "little")), session=True)
        )
        peer.acknowledge()
    queues = [
        queue for queue in harness.core.queue_manager.queues.values() if isinstance(queue, OutgoingQueue)
    ]
    assert 0 < len(queues) <= (16 << 20) // 8 // 4 // QUEUE_BYTES
    honest = harness.accept_session()
    honest.send(honest.message(queue="missing", acks=PA, admin=(2, b"\x01\0\0\0")))
    assert len(honest.take("UserMessage")) == 1


def test_places_stored_by_an_older_version_get_an_origin(
    harness: EngineHarness,
) -> None:
    """They count as those of an unknown origin, unless an application sent there."""
    peer = unknown_peer(harness)
    peer.send(peer.message(queue="missing", acks=NA, recoverable=True, admin=direct("adm", "10.6.6.6")))
    harness.send(b"own", to=r"DIRECT=TCP:10.5.5.5\private$\orders", recoverable=True)
    changes = Changes()
    for number, row in harness.rows(Table.QUEUE).items():
        changes.put(Table.QUEUE, number, _without_origin(row))
    harness.store.commit(changes)
    restarted = harness.restarted()
    askers = {
        queue.destination.host: queue.asked_by
        for queue in restarted.core.queue_manager.queues.values()
        if isinstance(queue, OutgoingQueue) and isinstance(queue.destination, DirectName)
    }
    assert askers == {"10.6.6.6": UNKNOWN_ORIGIN, "10.5.5.5": ""}
    again = restarted.restarted()
    assert len(hosts(again)) == 2


def _without_origin(row: bytes) -> bytes:
    content = json.loads(row)
    content.pop("asked_by", None)
    return json.dumps(content).encode()


def test_who_asked_for_a_session_is_known() -> None:
    harness = strict()
    harness.queue("missing")
    asks(harness, unknown_peer(harness), "10.6.6.6")
    harness.send(to=r"DIRECT=TCP:10.5.5.5\private$\orders")
    requested = {
        session.transfers[0].host: (session.asked_locally, session.asked_by)
        for session in harness.engine.sessions.values()
        if session.transfers
    }
    assert requested == {"10.6.6.6": (False, "10.0.0.99"), "10.5.5.5": (True, "")}


def test_a_returning_peer_resets_the_retry_delay_of_its_address() -> None:
    harness = strict(session_retry_connect_ms=5_000, hosts=None)
    harness.queue("missing")
    peer = harness.accept_session(address="10.6.6.6", client=UUID(int=0x66))
    asks(harness, peer, "10.6.6.6")
    peer.disconnect()
    for _ in range(8):
        harness.resolve("10.6.6.6")
        harness.engine.connect_failed(harness.last_effect(Connect).connection, ConnectionStatus.PING_FAILURE)
        harness.run()
        harness.advance(600_000)
    attempts = len(harness.effects_of(Connect))
    harness.resolve("10.6.6.6")
    harness.engine.connect_failed(harness.last_effect(Connect).connection, ConnectionStatus.PING_FAILURE)
    harness.accept_session(address="10.6.6.6", client=UUID(int=0x66))
    harness.advance(5_000)
    harness.resolve("10.6.6.6")
    assert len(harness.effects_of(Connect)) == attempts + 2


def test_an_application_keeps_a_place_with_nothing_to_send() -> None:
    """Its queue was forgotten while the application opened it."""
    harness = strict(session_retry_connect_ms=5_000)
    harness.queue("missing")
    asks(harness, unknown_peer(harness), "10.6.6.6")
    name = r"DIRECT=TCP:10.6.6.6\private$\adm"
    harness.advance(60_000)
    asked_for = harness.core.queues.lookup.outgoing(format_name(name))
    assert isinstance(asked_for, OutgoingQueue)
    harness.core.messages.purge(asked_for)
    harness.send(b"own", to=name, recoverable=True)
    harness.advance(60_000)
    restarted = harness.restarted()
    assert [position.message.body for position in restarted.outgoing(name).positions] == [b"own"]
