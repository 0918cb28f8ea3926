"""Messages from a hand-written peer that a server refuses, and how it reports them: [MS-MQQB] 3.1.5.8.2.

Each is counted and acknowledged in the session, which stays open.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from msmqwire.qm.model.enumerations import Relay
from tests.support import handmade as h
from tests.support.peers.raw_peer import (
    GUID,
    NACK_ARRIVAL,
    OTHER,
    QUEUE,
    TX_QUEUE,
    Message,
    ReceivedPacket,
    Session,
    direct,
    new_id,
)
from tests.support.qm.peer_server import LEDGER, ORDERS, alpha, at, identity, in_queue, outgoing, serves
from tests.support.running import InThread, attach

ADMIN = (2, h.private_id(9))
NOWHERE = r"OS:alpha\private$\nowhere"


@pytest.fixture(scope="module", params=[True, False], ids=["insecure", "secure"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    """A server that sends insecure negative acknowledgements, and one that does not: SendInsecureNacks."""
    settings = {"send_insecure_nacks": request.param, "relay": Relay.ALL}
    with alpha(tmp_path_factory.mktemp("alpha"), **settings) as server:
        yield server


@pytest.fixture
def insecure(server: InThread) -> bool:
    return server.server.options.settings.send_insecure_nacks


@pytest.fixture(autouse=True)
def honest_peers_are_served(server: InThread) -> Iterator[None]:
    yield
    serves(server)


def refused(server: InThread, message: Message) -> list[ReceivedPacket]:
    """Send a message that no queue receives; return the answers. The session stays open."""
    before = [in_queue(server, queue) for queue in (ORDERS, LEDGER)]
    with Session.opened(at(server)) as peer:
        peer.push(message)
        packets = peer.until_acknowledged()
        assert peer.saved == ({1} if message.saved else set())
        packets += peer.fence()
        if message.tx is not None and message.address == h.NULL_GUID and not of_kind(packets, "OrderAck"):
            packets.append(peer.until("OrderAck"))  # its position is used up, whatever becomes of it
        peer.acknowledge()
        assert peer.fence() == []
    assert [in_queue(server, queue) for queue in (ORDERS, LEDGER)] == before
    return packets


def of_kind(packets: list[ReceivedPacket], kind: str) -> list[ReceivedPacket]:
    """The packets of a kind."""
    return [packet for packet in packets if packet.kind == kind]


def reporting(body: bytes = b"refused", **more: object) -> Message:
    """A message that requests a negative acknowledgement."""
    return Message(body, wants=NACK_ARRIVAL, admin=ADMIN, **more)  # type: ignore[arg-type]


def is_report(packet: ReceivedPacket, message: Message, message_class: int) -> bool:
    """Whether a packet is the negative administration acknowledgement of a message, with its body."""
    fields = packet.kind, packet.MessageClass, packet.CorrelationID, packet.body
    identifier = message.source + message.message_id.to_bytes(4, "little")
    return fields == ("UserMessage", message_class, identifier, message.body)


def is_final(packet: ReceivedPacket, message: Message, message_class: int) -> bool:
    """Whether a packet is the negative FinalAck of a message."""
    assert message.tx is not None
    stamp, ordinal, number, previous = message.tx
    body = h.final_ack_body(
        ordinal=ordinal, time_stamp=stamp, number=number, previous=previous,
        source=message.source, message_id=message.message_id,
    )  # fmt: skip
    return (packet.kind, packet.MessageClass, packet.body) == ("FinalAck", message_class, body)


def sequence() -> tuple[int, int, int, int]:
    """The head of a sequence later than all earlier ones."""
    return 1_000, new_id(), 1, 0


# -- no queue, or a wrong one ---------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.5.8.2-09", "MQQB-3.1.5.8.2-14", "MQQB-3.1.5.8.2-15", "MQQB-3.1.7.15-03")
@pytest.mark.parametrize("recoverable", [False, True])
def test_a_queue_that_is_not_there(server: InThread, insecure: bool, recoverable: bool) -> None:
    message = reporting(queue=direct(NOWHERE), recoverable=recoverable)
    packets = refused(server, message)
    assert len(packets) == insecure
    assert all(is_report(packet, message, 0x8000) for packet in packets)


def test_a_queue_that_is_not_there_and_nobody_asks(server: InThread) -> None:
    assert refused(server, Message(queue=direct(NOWHERE), admin=ADMIN)) == []


def test_the_queue_of_order_acknowledgements_takes_nothing_else(server: InThread, insecure: bool) -> None:
    message = reporting(queue=direct(r"OS:alpha\private$\order_queue$"))
    packets = refused(server, message)
    assert len(packets) == insecure
    assert all(is_report(packet, message, 0x8004) for packet in packets)


@pytest.mark.requirement("MQQB-3.1.5.8.2-10", "MQQB-2.2.5-02", "MQQB-2.2.5-03", "MQQB-2.2.5-07")
def test_a_queue_that_is_not_there_for_a_transactional_message(server: InThread) -> None:
    message = Message(b"refused", direct(NOWHERE), tx=sequence())
    (packet,) = of_kind(refused(server, message), "FinalAck")
    assert is_final(packet, message, 0x8000)
    assert (packet.Label, packet.MessageSize, packet.wants, packet.PR) == ("QM Ordering Ack", 36, 0, 0)


@pytest.mark.requirement("MQQB-3.1.5.8.2-11", "MQQB-3.1.5.8.2-12")
def test_a_transactional_message_for_a_queue_that_is_not(server: InThread) -> None:
    message = reporting(queue=direct(QUEUE), tx=sequence())
    packets = refused(server, message)
    assert sum(is_report(packet, message, 0x8009) for packet in packets) == 1
    assert sum(is_final(packet, message, 0x8009) for packet in packets) == 1


@pytest.mark.requirement("MQQB-3.1.5.8.2-13")
@pytest.mark.parametrize("recoverable", [False, True])
def test_a_transactional_queue_for_a_message_that_is_not(server: InThread, recoverable: bool) -> None:
    message = reporting(queue=direct(TX_QUEUE), recoverable=recoverable)
    (packet,) = refused(server, message)
    assert is_report(packet, message, 0x800A)


# -- too late, too far, for another ---------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.5.8-04", "MQMQ-2.2.19.1-22", "MQMQ-2.2.19.1-23")
@pytest.mark.parametrize("recoverable", [False, True])
def test_a_message_whose_time_is_over(server: InThread, recoverable: bool) -> None:
    message = reporting(age=3_600, time_to_reach_queue=3_000, recoverable=recoverable)
    (packet,) = refused(server, message)
    assert is_report(packet, message, 0x8002)


@pytest.mark.requirement("MQMQ-2.2.19.1-22", "MQMQ-2.2.19.1-23")
@pytest.mark.parametrize("limit", [7_200, h.INFINITE])
def test_a_message_whose_time_is_not_over(server: InThread, limit: int) -> None:
    body = b"in time %d" % limit
    with Session.opened(at(server)) as peer:
        peer.push(reporting(body, age=3_600, time_to_reach_queue=limit))
        assert peer.until_acknowledged() == []
    assert body in in_queue(server)


@pytest.mark.requirement("MQQB-3.1.5.8.2-17", "MQQB-3.1.5.8.2-18")
@pytest.mark.parametrize("recoverable", [False, True])
def test_a_message_that_has_come_too_far(server: InThread, recoverable: bool) -> None:
    message = reporting(queue=(3, h.private_id(7)), address=OTHER, hops=0x1D, recoverable=recoverable)
    (packet,) = refused(server, message)
    assert is_report(packet, message, 0x8005)
    assert outgoing(server, "PRIVATE=c0ffee00-31c5-4f0c-9d1d-0a7b8f2c6d02\\00000007") == 0


@pytest.mark.requirement("MQQB-3.1.5.8.2-19")
def test_a_transactional_message_that_has_come_too_far(server: InThread) -> None:
    message = Message(queue=(3, h.private_id(7)), address=OTHER, hops=0x1D, tx=sequence())
    (packet,) = refused(server, message)
    assert is_final(packet, message, 0x8005)


@pytest.mark.requirement("MQQB-3.1.5.8.2-16")
def test_hops_do_not_count_where_a_message_ends(server: InThread) -> None:
    body = b"far, but here" + new_id().to_bytes(4, "little")
    with Session.opened(at(server)) as peer:
        peer.push(reporting(body, hops=0x1D))
        assert peer.until_acknowledged() == []
    assert body in in_queue(server)


@pytest.mark.requirement("MQQB-3.1.5.8.5-02", "MQQB-3.1.5.8.8-02")
def test_a_message_for_another_queue_manager_waits_for_its_way(server: InThread) -> None:
    outgoing_queue = "PRIVATE=c0ffee00-31c5-4f0c-9d1d-0a7b8f2c6d02\\00000008"
    before = outgoing(server, outgoing_queue)
    message = reporting(queue=(3, h.private_id(8)), address=OTHER, hops=3, recoverable=True)
    assert refused(server, message) == []
    assert outgoing(server, outgoing_queue) == before + 1
    with Session.opened(at(server), client=OTHER) as other:
        packet = other.until("UserMessage")
        other.acknowledge()
        assert other.fence() == []
    assert (packet.MessageID, packet.SourceQueueManager) == (message.message_id, GUID)
    assert (packet.QueueManagerAddress, packet.Flags & 0x1F) == (OTHER, 4)
    assert outgoing(server, outgoing_queue) == 0


# -- signatures and false reports -----------------------------------------------------------------------


def secured(message: Message, security: bytes) -> bytes:
    """A message with a SecurityHeader."""
    return h.user_message(
        user=message.user(),
        security=security,
        properties=h.properties_header(flags=message.wants, body=message.body),
    )


def test_a_signature_that_can_not_be_verified(server: InThread, insecure: bool) -> None:
    message = reporting(b"signed")
    with Session.opened(at(server)) as peer:
        peer.count(message)
        peer.send(secured(message, h.security_header(signature=bytes(range(64)), certificate=b"certificate")))
        packets = peer.until_acknowledged() + peer.fence()
        peer.acknowledge()
        assert peer.fence() == []
    assert len(packets) == insecure
    assert all(is_report(packet, message, 0x8006) for packet in packets)
    assert b"signed" not in in_queue(server)


@pytest.mark.requirement("MQQB-3.1.7.15-02")
def test_without_an_administration_queue_nothing_is_said(server: InThread) -> None:
    message = Message(b"late", wants=0x0F, age=3_600, time_to_reach_queue=1)
    assert refused(server, message) == []


def test_reports_are_not_reported_on(server: InThread) -> None:
    """A negative acknowledgement that could not be delivered is not itself reported."""
    message = Message(b"nack of a nack", direct(NOWHERE), wants=0x0F, admin=direct(NOWHERE))
    assert refused(server, message) == []


@pytest.mark.parametrize(
    "queue", ["system$;deadletter", r"private$\orders;journal", r"private$\order_queue$"]
)
def test_what_is_not_for_others_takes_nothing(server: InThread, queue: str) -> None:
    message = Message(b"intruder", direct(f"OS:alpha\\{queue}"), recoverable=True)
    refused(server, message)
    for name in ("system$;deadletter", r"private$\orders;journal"):
        assert b"intruder" not in in_queue(server, name)


def test_an_order_acknowledgement_of_nothing_changes_nothing(server: InThread) -> None:
    """Send acknowledgements of sequences and messages that the server has never sent."""
    with Session.opened(at(server)) as peer:
        for number in (0, 1, 0xFFFFFFFF):
            body = h.order_ack_body(ordinal=1, time_stamp=1, number=number, previous=0)
            peer.send(h.order_ack(body))
            peer.sent += 1
            peer.send(h.final_ack(h.final_ack_body(message_id=number, source=identity(server))))
            peer.sent, peer.recoverable_sent = peer.sent + 1, peer.recoverable_sent + 1
        assert peer.until_acknowledged() == []
        assert peer.fence() == []
    with attach(server.data) as local:
        assert local.call("status")["name"] == "alpha"
