"""What the overviews of [MS-MQQB] 1.3 and 2.2 say of sessions, acknowledgements and journaling."""

from __future__ import annotations

import pytest

from msmqwire.names import parse_format_name
from msmqwire.qm.model.effects import Connect
from msmqwire.qm.model.enumerations import AcknowledgementsRequested
from msmqwire.qm.protocols.binary.states import SessionState
from tests.support import handmade as h
from tests.support.engine_harness import OWN_ID, PEER_ADDRESS, EngineHarness, harness_with_peer
from tests.support.peers.handwritten_peer import DM, JN, JP, NA, PA, PR, direct
from tests.support.qm.queue_contents import bodies


def kept(harness: EngineHarness) -> list[list[bytes]]:
    """The bodies in the system's journal, dead-letter and transactional dead-letter queues."""
    manager = harness.core.queue_manager
    queues = (
        manager.system_journal_queue,
        manager.system_deadletter_queue,
        manager.system_transactional_deadletter_queue,
    )
    return [bodies(queue) for queue in queues if queue is not None]


@pytest.mark.requirement("MQQB-1.3.4-01", "MQMQ-2.2.19.2-18")
def test_acks_and_messages_that_ask_for_none_are_not_journaled() -> None:
    harness = harness_with_peer()
    queue, peer = harness.queue("tx", transactional=True), harness.accept_session()
    admin = direct("adm", PEER_ADDRESS)
    peer.send_message(queue="tx", tx=(1, 0), flags=JP, acks=PA | PR, admin=admin)
    assert harness.receive(queue) == b"x"
    harness.advance(1_000)
    assert {"OrderAck", "FinalAck"} <= set(peer.kinds())
    (called,) = harness.called
    acks = called.take("UserMessage")
    assert [packet.MessageClass for packet in acks] == [0x0002, 0x4000]
    assert not any(packet.Flags & (JN | JP) for packet in acks)
    for one in (peer, called):
        one.acknowledge()
    harness.send(b"m", to=rf"DIRECT=TCP:{PEER_ADDRESS}\private$\adm")
    harness.called[-1].acknowledge()
    assert all(not transfer.table for transfer in harness.engine.transfers.values())
    assert kept(harness) == [[], [], []]
    harness.hosts.clear()
    harness.send(b"late", to=r"DIRECT=TCP:10.0.0.9\q", time_to_reach_queue=1)
    harness.send(b"late", to=r"DIRECT=TCP:10.0.0.9\q", time_to_reach_queue=1, transactional=True)
    harness.advance(10_000)
    assert len(harness.outgoing(r"DIRECT=TCP:10.0.0.9\q").positions) == 0
    assert kept(harness) == [[], [], []]


@pytest.mark.requirement("MQQB-1.3.4.2-01")
@pytest.mark.parametrize(
    ("transactional", "end", "where"),
    [
        (False, "not transferred", 1), (False, "transferred", None), (True, "not transferred", 2),
        (True, "received", None), (True, "refused", 2), (True, "nothing yet", None),
    ],
)  # fmt: skip
def test_where_a_message_is_kept_that_was_not_delivered(
    transactional: bool, end: str, where: int | None
) -> None:
    harness = EngineHarness(hosts={} if end == "not transferred" else None)
    attributes = {"transactional": transactional, "negative_journaling_requested": True}
    if end == "not transferred":
        harness.send(b"m", time_to_reach_queue=10, **attributes)
        harness.advance(11_000)
    else:
        harness.send(b"m", **attributes)
        harness.resolve(PEER_ADDRESS)
        peer = harness.connect()
        peer.answer_handshake()
        (packet,) = peer.take("UserMessage")
        peer.acknowledge()
        if transactional:
            peer.send_order_ack(packet.tx[:2], 1)
        if end in ("received", "refused"):
            peer.send_final_ack(packet, 0x4000 if end == "received" else 0xC000)
    assert kept(harness) == [[b"m"] if where == position else [] for position in range(3)]
    assert len(harness.outgoing().positions) == (end == "nothing yet")


@pytest.mark.requirement("MQQB-1.3.5.2-01")
@pytest.mark.parametrize("recoverable", [False, True])
def test_an_ack_uses_an_open_session_or_opens_a_new_one(recoverable: bool) -> None:
    harness = harness_with_peer()
    harness.queue()
    peer = harness.accept_session()
    for admin in [direct("adm", PEER_ADDRESS)] * 2:
        peer.send_message(acks=PA, admin=admin, recoverable=recoverable)
    assert [connect.address for connect in harness.effects_of(Connect)] == [PEER_ADDRESS], "one for both"
    (called,) = harness.called
    packets = called.take("UserMessage")
    assert [(packet.MessageClass, bool(packet.Flags & DM)) for packet in packets] == [(2, recoverable)] * 2
    peer.take()
    peer.send_message(acks=PA, admin=(2, h.private_id(9)), recoverable=recoverable)
    (packet,) = peer.take("UserMessage")
    assert (packet.MessageClass, bool(packet.Flags & DM)) == (2, recoverable)
    assert len(harness.effects_of(Connect)) == 1, "it goes over the session with the queue manager it names"


@pytest.mark.requirement("MQQB-1.3.5.2-01")
def test_the_senders_own_ack_is_as_recoverable_as_its_message() -> None:
    harness = harness_with_peer()
    harness.hosts.clear()
    admin = harness.queue("adm")
    for recoverable in (False, True):
        harness.send(
            b"m", recoverable=recoverable, time_to_reach_queue=1,
            acknowledgements_requested=AcknowledgementsRequested(NA),
            administration=parse_format_name(r"DIRECT=OS:here\private$\adm"),
        )  # fmt: skip
    harness.advance(5_000)
    assert [position.message.recoverable for position in admin.positions] == [False, True]


@pytest.mark.requirement("MQQB-2.2.3-03")
def test_only_the_state_tells_a_request_from_a_response() -> None:
    harness = EngineHarness()
    fields = h.establish_connection_header(client=OWN_ID.bytes_le, server=OWN_ID.bytes_le)
    accepts, refuses = h.establish_connection(fields), h.establish_connection(fields, internal=0x12)

    acceptor = harness.accept_connection()
    assert acceptor.state is SessionState.WAITING_EC_MSG
    acceptor.send(accepts)
    assert [(packet.kind, packet.CS) for packet in acceptor.take()] == [("EstablishConnection", False)]

    initiator = harness.request_session()
    assert initiator.state is SessionState.WAITING_ECR_MSG
    initiator.take()
    initiator.send(accepts)
    assert initiator.kinds() == ["ConnectionParameters"]

    refused = harness.request_session(to=r"DIRECT=TCP:10.0.0.3\q", addresses=("10.0.0.3",))
    refused.take()
    refused.send(refuses)
    assert (refused.kinds(), refused.closed) == ([], True)
