"""The states of outgoing messages: figures 5, 7 and 9, [MS-MQQB] 3.1.1.1.1.3, .5 and .7."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.enumerations import ConnectionStatus, DeliveryGuarantee
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.protocols.binary.states import MESSAGES, SessionMessageEvent, SessionMessageState
from msmqwire.qm.protocols.binary.transfer import OutgoingMessagePosition, SessionTransfer
from tests.support.engine_harness import PEER_ADDRESS, PEER_ID, EngineHarness, harness_with_peer
from tests.support.peers.handwritten_peer import HandwrittenPeer
from tests.support.qm.queue_contents import bodies

WAITING_TO_SEND, WAITING_FOR_SESSION_ACK = (
    SessionMessageState.WAITING_TO_SEND,
    SessionMessageState.WAITING_FOR_SESSION_ACK,
)
WAITING_FOR_ORDER_ACK = SessionMessageState.WAITING_FOR_ORDER_ACK
WAITING_FOR_FINAL_ACK, DONE = SessionMessageState.WAITING_FOR_FINAL_ACK, SessionMessageState.DONE
SENT, SESSION_ACK, EXPIRED = (
    SessionMessageEvent.SENT,
    SessionMessageEvent.SESSION_ACK,
    SessionMessageEvent.EXPIRED,
)
TIMEOUT, ORDER_ACK, FINAL_ACK = (
    SessionMessageEvent.TIMEOUT,
    SessionMessageEvent.ORDER_ACK,
    SessionMessageEvent.FINAL_ACK,
)

KINDS = ("Express", "Recoverable", "Transactional")


def rows(kind: str, *numbers: str) -> pytest.MarkDecorator:
    figure = {"Express": "3", "Recoverable": "5", "Transactional": "7"}[kind]
    return pytest.mark.requirement(*(f"MQQB-3.1.1.1.1.{figure}-{number}" for number in numbers))


def each(**numbers: str) -> pytest.MarkDecorator:
    """The kinds of messages with the rows of their figures; omitted kinds have none."""
    kinds = [kind for kind in KINDS if kind.lower() in numbers]
    return pytest.mark.parametrize(
        "kind", [pytest.param(kind, marks=rows(kind, *numbers[kind.lower()].split())) for kind in kinds]
    )


def all_(number: str) -> pytest.MarkDecorator:
    return each(express=number, recoverable=number, transactional=number)


def send_message(
    harness: EngineHarness, kind: str, body: bytes = b"m", **attributes: object
) -> OutgoingMessagePosition:
    """Send one message of a kind."""
    if kind == "Transactional":
        harness.send(body, **attributes, transactional=True)
    else:
        harness.send(body, delivery_guarantee=DeliveryGuarantee[kind.upper()], **attributes)
    return list(transfer(harness).table.values())[-1]


def transfer(harness: EngineHarness) -> SessionTransfer:
    return harness.core.binary.transfers[harness.outgoing().number]


def unreachable() -> EngineHarness:
    harness = harness_with_peer()
    harness.hosts.clear()
    return harness


def reachable(harness: EngineHarness) -> None:
    harness.hosts[PEER_ADDRESS] = PEER_ID


def queued_bodies(harness: EngineHarness) -> dict[str, list[bytes]]:
    """The bodies in each queue that a message can end up in; empty queues are omitted."""
    manager = harness.core.queue_manager
    queues = {
        "journal": manager.system_journal_queue,
        "dead": manager.system_deadletter_queue,
        "dead transactional": manager.system_transactional_deadletter_queue,
        "outgoing": harness.outgoing(),
    }
    return {name: bodies(queue) for name, queue in queues.items() if bodies(queue)}


def order_acknowledge(peer: HandwrittenPeer) -> None:
    """Send an OrderAck for the last transactional message received."""
    time_stamp, ordinal, number, _ = [packet.tx for packet in peer.take("UserMessage") if packet.tx][-1]
    peer.send_order_ack((time_stamp, ordinal), number)


@all_("01")
def test_a_message_starts_waiting_to_send(kind):
    harness = unreachable()
    assert send_message(harness, kind).state is WAITING_TO_SEND
    assert queued_bodies(harness) == {"outgoing": [b"m"]}


@all_("02")
def test_a_message_that_cannot_be_sent_waits_and_is_tried_again(kind):
    harness = harness_with_peer()
    harness.hosts = {PEER_ADDRESS: PEER_ID}
    outgoing = send_message(harness, "Express", b"first")
    harness.called[0].disconnect()  # from now on nothing can be sent
    harness.hosts.clear()
    harness.forget_effects()
    outgoing = send_message(harness, kind)
    assert outgoing.state is WAITING_TO_SEND
    harness.advance(5_000)  # another attempt fails
    assert outgoing.state is WAITING_TO_SEND
    assert len(harness.effects) >= 1
    history = harness.outgoing().connection_history
    assert history[-1].status is ConnectionStatus.DNS_FAILURE
    reachable(harness)
    harness.advance(5_000)
    assert harness.called[-1].bodies() == [b"first", b"m"]
    assert outgoing.state is WAITING_FOR_SESSION_ACK


@all_("03")
def test_a_sent_message_waits_for_its_session_ack(kind):
    harness = harness_with_peer()
    outgoing = send_message(harness, kind)
    assert harness.called[0].bodies() == [b"m"]
    assert outgoing.state is MESSAGES[kind][WAITING_TO_SEND, SENT] is WAITING_FOR_SESSION_ACK
    assert queued_bodies(harness) == {"outgoing": [b"m"]}


@each(express="04", recoverable="04", transactional="05")
def test_an_unacknowledged_message_is_resent_in_a_new_session(kind):
    harness = harness_with_peer()
    outgoing = send_message(harness, kind)
    harness.hosts.clear()
    harness.advance(2 * 2 * 20_000)  # once after an answer, twice for a direct name
    assert harness.called[0].closed
    assert outgoing.state is MESSAGES[kind][WAITING_FOR_SESSION_ACK, TIMEOUT] is WAITING_TO_SEND
    reachable(harness)
    harness.advance(5_000)
    assert harness.called[1].bodies() == [b"m"]
    assert outgoing.state is WAITING_FOR_SESSION_ACK


@pytest.mark.parametrize("journaled", [False, True])
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("Express", marks=rows("Express", "05", "07", "08")),
        pytest.param("Recoverable", marks=rows("Recoverable", "05", "07", "08")),
        pytest.param("Transactional", marks=rows("Transactional", "09", "12", "13")),
    ],
)
def test_a_message_that_expires_before_it_is_sent(kind, journaled):
    harness = unreachable()
    outgoing = send_message(
        harness, kind, time_to_reach_queue=20, negative_journaling_requested=journaled,
        positive_journaling_requested=True,
    )  # fmt: skip
    harness.advance(20_999)
    assert queued_bodies(harness) == {"outgoing": [b"m"]}
    harness.advance(1)
    assert outgoing.state is MESSAGES[kind][WAITING_TO_SEND, EXPIRED] is DONE
    dead = "dead transactional" if kind == "Transactional" else "dead"
    assert queued_bodies(harness) == ({dead: [b"m"]} if journaled else {})
    reachable(harness)
    harness.advance(60_000)
    assert not transfer(harness).table
    assert harness.called == []


EXPIRES = Settings(expire_in_doubt=True)


@pytest.mark.parametrize("journaled", [False, True])
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("Express", marks=rows("Express", "06", "07", "08")),
        pytest.param("Recoverable", marks=rows("Recoverable", "06", "07", "08")),
        pytest.param("Transactional", marks=rows("Transactional", "10", "12", "13")),
    ],
)
def test_a_message_that_expires_before_its_session_ack(kind, journaled):
    harness = harness_with_peer(settings=EXPIRES if kind == "Transactional" else Settings())
    outgoing = send_message(
        harness, kind, time_to_reach_queue=20, negative_journaling_requested=journaled,
        positive_journaling_requested=True,
    )  # fmt: skip
    harness.advance(20_999)
    assert outgoing.state is WAITING_FOR_SESSION_ACK
    harness.advance(1)
    assert outgoing.state is MESSAGES[kind][WAITING_FOR_SESSION_ACK, EXPIRED] is DONE
    dead = "dead transactional" if kind == "Transactional" else "dead"
    assert queued_bodies(harness) == ({dead: [b"m"]} if journaled else {})
    harness.called[0].acknowledge()
    harness.called[0].disconnect()
    harness.advance(60_000)
    assert queued_bodies(harness) == ({dead: [b"m"]} if journaled else {})
    assert all(peer.bodies() == [] for peer in harness.called[1:])


@rows("Transactional", "11", "12", "13")
@pytest.mark.parametrize("journaled", [False, True])
def test_a_message_that_expires_before_its_order_acknowledgement(journaled):
    harness = harness_with_peer(settings=EXPIRES)
    outgoing = send_message(
        harness, "Transactional", time_to_reach_queue=20, negative_journaling_requested=journaled,
        positive_journaling_requested=True,
    )  # fmt: skip
    harness.called[0].acknowledge()
    assert outgoing.state is WAITING_FOR_ORDER_ACK
    harness.advance(21_000)
    assert outgoing.state is DONE
    assert queued_bodies(harness) == ({"dead transactional": [b"m"]} if journaled else {})


@rows("Transactional", "10", "11")
@pytest.mark.parametrize("acknowledged", [False, True])
def test_a_message_in_doubt_does_not_expire_unless_that_is_set(acknowledged):
    harness = harness_with_peer()
    outgoing = send_message(
        harness, "Transactional", time_to_reach_queue=20, negative_journaling_requested=True
    )
    peer = harness.called[0]
    if acknowledged:
        peer.acknowledge()
    harness.advance(25_000)
    assert outgoing.state is (WAITING_FOR_ORDER_ACK if acknowledged else WAITING_FOR_SESSION_ACK)
    assert queued_bodies(harness) == {"outgoing": [b"m"]}
    order_acknowledge(peer)
    peer.acknowledge()
    assert outgoing.state is WAITING_FOR_FINAL_ACK


@pytest.mark.parametrize("journaled", [False, True])
@each(express="09 10", recoverable="09 10")
def test_a_message_that_is_acknowledged_is_done(kind, journaled):
    harness = harness_with_peer()
    outgoing = send_message(
        harness, kind, positive_journaling_requested=journaled, negative_journaling_requested=True
    )
    harness.called[0].acknowledge()
    assert outgoing.state is MESSAGES[kind][WAITING_FOR_SESSION_ACK, SESSION_ACK] is DONE
    assert queued_bodies(harness) == ({"journal": [b"m"]} if journaled else {})
    assert not transfer(harness).table


@rows("Transactional", "04")
def test_a_session_ack_does_not_end_a_transactional_message():
    harness = harness_with_peer()
    outgoing = send_message(harness, "Transactional")
    harness.called[0].acknowledge()
    assert outgoing.state is MESSAGES["Transactional"][WAITING_FOR_SESSION_ACK, SESSION_ACK]
    assert outgoing.state is WAITING_FOR_ORDER_ACK
    assert queued_bodies(harness) == {"outgoing": [b"m"]}


@rows("Transactional", "06")
def test_a_message_without_an_order_ack_is_sent_again():
    harness = harness_with_peer()
    outgoing = send_message(harness, "Transactional")
    peer = harness.called[0]
    peer.acknowledge()
    peer.take()
    assert MESSAGES["Transactional"][WAITING_FOR_ORDER_ACK, TIMEOUT] is WAITING_TO_SEND
    harness.advance(29_999)
    assert peer.bodies() == []
    harness.advance(1)
    assert peer.bodies() == [b"m"]
    assert outgoing.state is WAITING_FOR_SESSION_ACK


@rows("Transactional", "07", "15")
def test_an_unjournaled_message_ends_with_its_order_ack():
    """A transactional message needs no final acknowledgement when no journaling is asked for."""
    harness = harness_with_peer()
    outgoing = send_message(harness, "Transactional")
    harness.called[0].acknowledge()
    order_acknowledge(harness.called[0])
    assert outgoing.state is DONE
    assert queued_bodies(harness) == {}


@rows("Transactional", "08", "14", "15", "16")
@pytest.mark.parametrize(
    ("positive", "negative", "message_class", "expected"),
    [
        (True, False, 0x4000, {"journal": [b"m"]}),
        (True, True, 0x4000, {"journal": [b"m"]}),
        (False, True, 0x4000, {}),
        (False, True, 0xC001, {"dead transactional": [b"m"]}),
        (True, False, 0xC001, {}),
    ],
)
def test_a_final_acknowledgement_that_is_awaited(positive, negative, message_class, expected):
    harness = harness_with_peer()
    outgoing = send_message(
        harness,
        "Transactional",
        positive_journaling_requested=positive,
        negative_journaling_requested=negative,
    )
    peer = harness.called[0]
    (packet,) = peer.take("UserMessage")
    peer.acknowledge()
    peer.send_order_ack(packet.tx[:2], 1)
    assert outgoing.state is MESSAGES["Transactional"][WAITING_FOR_ORDER_ACK, ORDER_ACK]
    assert outgoing.state is WAITING_FOR_FINAL_ACK
    assert queued_bodies(harness) == {"outgoing": [b"m"]}
    peer.send_final_ack(packet, message_class)
    assert outgoing.state is MESSAGES["Transactional"][WAITING_FOR_FINAL_ACK, FINAL_ACK] is DONE
    assert queued_bodies(harness) == expected
