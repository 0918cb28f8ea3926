"""Traffic to third parties caused by unauthenticated peers: messages, acknowledgements, reports."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.names import parse_format_name
from msmqwire.qm.model.effects import ErrorReport, Resolve
from msmqwire.qm.model.elements import OutgoingQueue, QueueManager
from msmqwire.qm.model.enumerations import Relay
from tests.support import handmade as h
from tests.support.engine_harness import PEER_ADDRESS, PEER_ID, THIRD_ID, EngineHarness
from tests.support.peers.handwritten_peer import NA, PA, HandwrittenPeer, direct

THIRD = "10.0.0.3"
FAR = THIRD_ID.bytes_le
"""QueueManagerAddress of messages that have to be forwarded."""
THIRD_QUEUE = rf"DIRECT=TCP:{THIRD}\private$\orders"


def places(harness: EngineHarness) -> list[str]:
    """The destinations of all outgoing queues, without those of order acknowledgements."""
    return [
        str(queue.destination)
        for queue in harness.core.queue_manager.queues.values()
        if isinstance(queue, OutgoingQueue) and queue.acknowledged_peer is None
    ]


def messages_for_others(harness: EngineHarness) -> int:
    queues = harness.core.queue_manager.queues.values()
    return sum(len(queue.positions) for queue in queues if isinstance(queue, OutgoingQueue))


def is_forwarded(harness: EngineHarness, destination: tuple[int, bytes]) -> bool:
    """Whether the message of an unknown peer to a third computer is taken; it is counted in any case."""
    peer = harness.accept_session(address="10.0.0.99", client=UUID(int=0x99))
    before = messages_for_others(harness)
    peer.send(peer.message(destination=destination, address=FAR, recoverable=True))
    harness.advance(130_000)
    assert not peer.closed, "the session goes on"
    assert peer.acks[-1].ack == 1
    peer.disconnect()
    return messages_for_others(harness) > before


def to_third() -> tuple[int, bytes]:
    return direct(address=THIRD)


def private(guid: UUID = THIRD_ID) -> tuple[int, bytes]:
    return 6, guid.bytes_le + h.private_id(9)


# -- who may have messages forwarded ------------------------------------------------------------------------


@pytest.mark.parametrize("relay, forwarded", [(Relay.NONE, False), (Relay.KNOWN, False), (Relay.ALL, True)])
def test_no_unknown_peer_causes_connections_to_a_third_computer(relay: Relay, forwarded: bool) -> None:
    harness = EngineHarness(relay=relay)
    assert is_forwarded(harness, to_third()) is forwarded
    assert [effect.host for effect in harness.effects_of(Resolve)][:1] == [THIRD] * forwarded


def test_without_a_setting_the_known_places_are_served() -> None:
    assert not is_forwarded(EngineHarness(), to_third())


@pytest.mark.parametrize(
    "options, destination",
    [
        ({"known_hosts": [THIRD]}, to_third()),
        ({"known_hosts": ["Third.Example"]}, (7, h.direct_name("OS:third.example\\private$\\orders"))),
        ({"routes": {THIRD_ID: ["third"]}}, (3, h.private_id(9))),
        ({"routes": {THIRD_ID: ["third"]}}, (7, h.direct_name("OS:THIRD\\private$\\orders"))),
    ],
    ids=["host by address", "host by name", "route to a queue manager", "host of a route"],
)
@pytest.mark.parametrize("relay, forwarded", [(Relay.NONE, False), (Relay.KNOWN, True)])
def test_what_the_administrator_has_named_is_known(
    relay: Relay, forwarded: bool, options: dict[str, object], destination: tuple[int, bytes]
) -> None:
    assert is_forwarded(EngineHarness(relay=relay, **options), destination) is forwarded


def test_the_route_to_all_others_names_none_of_them() -> None:
    assert not is_forwarded(EngineHarness(routes={None: ["gate"]}), (3, h.private_id(9)))


def test_what_is_in_the_directory_is_known() -> None:
    harness = EngineHarness()
    known = QueueManager(THIRD_ID, computer_name="third", qualified_computer_name="third.example")

    def read(kind: str, identifier: UUID, attributes: object = None) -> QueueManager | None:
        return known if (kind, identifier) == ("QueueManager", THIRD_ID) else None

    harness.core.directory.read_by_identifier = read
    assert is_forwarded(harness, (3, h.private_id(9)))


@pytest.mark.parametrize("destination", [to_third(), direct("other", THIRD)], ids=["queue", "other queue"])
def test_where_an_application_sends_is_known(destination: tuple[int, bytes]) -> None:
    harness = EngineHarness()
    harness.send(to=THIRD_QUEUE)
    assert is_forwarded(harness, destination)
    restarted = EngineHarness()
    restarted.send(to=THIRD_QUEUE, recoverable=True)
    assert is_forwarded(restarted.restarted(), destination), "it is stored"


def test_a_place_is_not_known_because_a_peer_asked_for_it() -> None:
    harness = EngineHarness(relay=Relay.ALL)
    assert is_forwarded(harness, to_third())
    strict = harness.restarted(relay=Relay.KNOWN)
    peer = strict.accept_session()
    peer.send(peer.message(destination=direct("more", THIRD), address=FAR, recoverable=True))
    assert [place.lower() for place in places(strict)] == [THIRD_QUEUE.lower()], "the first one only"
    assert messages_for_others(strict) == 1


def test_who_is_refused_gets_what_the_specification_has() -> None:
    harness = EngineHarness(send_insecure_nacks=True)
    peer = harness.accept_session()
    admin = 2, h.private_id(31)
    peer.send(
        peer.message(b"1", destination=to_third(), address=FAR, acks=NA, admin=admin, recoverable=True),
        peer.message(b"2", destination=to_third(), address=FAR, tx=(1, 0)),
    )
    harness.advance(60_000)
    packets = peer.take()
    assert [packet.MessageClass for packet in packets if packet.kind == "UserMessage"] == [0x8000]
    assert [packet.MessageClass for packet in packets if packet.kind == "FinalAck"] == [0x8000]
    assert harness.core.context.troubles["relay refused"] == 2
    refusals = harness.core.context.refusals
    ((key, refusal),) = refusals.kept.items()
    assert (key.peer, key.reason, refusal.count) == (PEER_ADDRESS, "BAD_DST_Q", 2)
    assert [(report.key, report.count) for report in refusals.rest()] == [(key, 2)], "reported once"


def test_an_honest_sender_is_served_after_many_refusals() -> None:
    harness = EngineHarness()
    queue = harness.queue()
    sender = harness.accept_session(address="10.0.0.99", client=UUID(int=0x99))
    for number in range(500):
        destination = direct(address=f"10.1.{number // 250}.{number % 250}")
        sender.send(sender.message(destination=destination, address=FAR, session=True))
    assert not sender.closed
    assert harness.effects_of(Resolve) == []
    assert places(harness) == []
    honest = harness.accept_session()
    honest.send_message(b"honest")
    assert harness.receive(queue) == b"honest"


# -- acknowledgements and reports to third places ------------------------------------------------------------


def flood(harness: EngineHarness, peer: HandwrittenPeer, count: int, **fields: object) -> None:
    """Send expired messages, each of which is answered with its body."""
    for _ in range(count):
        peer.send_message(bytes(1_000), sent_time=1, time_to_reach_queue=1, acks=NA, session=True, **fields)


def waiting(harness: EngineHarness, name: str) -> tuple[int, int]:
    """How many messages wait for a destination, and their bytes."""
    queue = harness.core.queues.lookup.outgoing(parse_format_name(name))
    return (len(queue.positions), queue.total_bytes) if queue else (0, 0)


ADMIN = rf"DIRECT=TCP:{THIRD}\private$\adm"


def test_acknowledgements_to_a_third_place_are_bounded_in_number() -> None:
    harness = EngineHarness(third_place_messages=10)
    harness.queue()
    peer = harness.accept_session()
    flood(harness, peer, 50, admin=direct("adm", THIRD))
    assert waiting(harness, ADMIN)[0] == 10
    assert harness.core.context.troubles["third place"] == 40
    assert len([report for report in harness.effects_of(ErrorReport) if "third place" in report.text]) == 1
    harness.advance(30_000)
    flood(harness, peer, 50, admin=direct("adm", THIRD))
    assert waiting(harness, ADMIN)[0] == 15, "half of them come back in half a minute"


def test_acknowledgements_to_a_third_place_are_bounded_in_bytes() -> None:
    harness = EngineHarness(third_place_bytes=10_000)
    harness.queue()
    peer = harness.accept_session()
    flood(harness, peer, 50, admin=direct("adm", THIRD))
    count, size = waiting(harness, ADMIN)
    assert 5 <= count <= 10
    assert size <= 10_000


def test_all_unauthenticated_peers_together_are_bounded() -> None:
    harness = EngineHarness(third_place_messages=10, third_place_messages_total=25)
    harness.queue()
    for number in range(5):
        peer = harness.accept_session(address=f"10.9.0.{number}", client=UUID(int=0x900 + number))
        flood(harness, peer, 20, admin=direct("adm", THIRD))
    assert waiting(harness, ADMIN)[0] == 25


def test_one_ipv6_network_is_one_peer() -> None:
    harness = EngineHarness(third_place_messages=10)
    harness.queue()
    for number in range(5):
        peer = harness.accept_session(address=f"2001:db8::{number + 1}", client=UUID(int=0x900 + number))
        flood(harness, peer, 20, admin=direct("adm", THIRD))
    assert waiting(harness, ADMIN)[0] == 10
    peer = harness.accept_session(address="2001:db8:0:1::1", client=UUID(int=0x999))
    flood(harness, peer, 20, admin=direct("adm", THIRD))
    assert waiting(harness, ADMIN)[0] == 20, "the next network has its own"


@pytest.mark.parametrize(
    "admin", [direct("adm", PEER_ADDRESS), (2, h.private_id(31))], ids=["direct", "private"]
)
def test_acknowledgements_that_go_back_are_not_bounded(admin: tuple[int, bytes]) -> None:
    harness = EngineHarness(third_place_messages=3, third_place_bytes=1_000)
    harness.queue()
    peer = harness.accept_session()
    flood(harness, peer, 20, admin=admin)
    waits = harness.core.queues.lookup.outgoing(parse_format_name(rf"DIRECT=TCP:{PEER_ADDRESS}\private$\adm"))
    assert (len(waits.positions) if waits else len(peer.take("UserMessage"))) == 20


def test_acks_to_a_claimed_identifier_are_limited() -> None:
    """They go to an administration queue of the real owner of the identifier, over its own session."""
    harness = EngineHarness(third_place_messages=5)
    harness.queue()
    victim = harness.accept_session(address=THIRD, client=THIRD_ID)
    sender = harness.accept_session(address="10.0.0.99", client=UUID(int=0x99))
    flood(harness, sender, 50, admin=private())
    assert len(victim.take("UserMessage")) == 5


def test_order_acknowledgements_to_third_places_are_bounded() -> None:
    harness = EngineHarness(third_place_messages=5, order_ack_timeout_ms=0)
    harness.queue("tx", transactional=True)
    victim = harness.accept_session(address=THIRD, client=THIRD_ID)
    sender = harness.accept_session(address="10.0.0.99", client=UUID(int=0x99))
    for number in range(1, 21):
        sender.send(sender.message(queue="tx", source=THIRD_ID, tx=(number, number - 1), session=True))
        harness.advance(1_000)
    assert 5 <= len(victim.take("OrderAck")) <= 7, "five, and what comes back within twenty seconds"


def test_reports_to_third_places_are_bounded() -> None:
    harness = EngineHarness(third_place_messages=4)
    harness.queue()
    peer = harness.accept_session()
    report = UUID(int=0x77)
    sent: list[object] = []
    harness.core.queues.open = lambda name, *_, **__: (sent.append(name), (1, None))[1]
    for _ in range(20):
        peer.send(peer.message(trace=report, acks=0, session=True))
    assert len(sent) == 4


def test_an_honest_sender_gets_acks_elsewhere_during_a_flood() -> None:
    harness = EngineHarness(third_place_messages=10, third_place_messages_total=100)
    queue = harness.queue()
    sender = harness.accept_session(address="10.0.0.99", client=UUID(int=0x99))
    flood(harness, sender, 200, admin=direct("adm", THIRD))
    honest = harness.accept_session(client=PEER_ID)
    honest.send(honest.message(b"honest", acks=PA, admin=direct("honest", THIRD)))
    assert waiting(harness, rf"DIRECT=TCP:{THIRD}\private$\honest")[0] == 1
    assert harness.receive(queue) == b"honest"
