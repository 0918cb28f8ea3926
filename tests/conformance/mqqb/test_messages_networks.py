"""Networks of queue managers: [MS-MQQB] 3.1.1.5, 3.1.1.6.2, 3.1.1.7.3 and 3.1.5.8."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from msmqwire.names import parse_format_name
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import AcknowledgementsRequested
from tests.support import handmade
from tests.support.engine_harness import THIRD_ID, EngineHarness
from tests.support.peers.handwritten_peer import PA, PR
from tests.support.qm.harness_network import HarnessNetwork, joined_pair
from tests.support.qm.queue_contents import bodies, message_classes
from tests.support.qm.received_packets import ReceivedPacket

A, M, B = UUID(int=0xA1), UUID(int=0xA2), UUID(int=0xA3)
TX_QUEUE = r"DIRECT=OS:beta\private$\tx"


def routed(**options: Any) -> tuple[HarnessNetwork, EngineHarness, EngineHarness, EngineHarness]:
    """Alpha and beta know only the queue manager in the middle."""
    network = HarnessNetwork()
    alpha = network.add("alpha", "10.0.0.1", A, routes={B: ["middle"]}, **options)
    middle = network.add("middle", "10.0.0.2", M, routes={A: ["alpha"], B: ["beta"]}, **options)
    beta = network.add("beta", "10.0.0.3", B, routes={A: ["middle"]}, **options)
    return network, alpha, middle, beta


def receive_all(network: HarnessNetwork, harness: EngineHarness, queue: Queue) -> list[bytes]:
    """Receive all messages of a queue."""
    received = []
    while (body := harness.receive(queue)) is not None:
        received.append(body)
    network.run()
    return received


@pytest.mark.requirement("MQQB-3.1.1.7.3-01")
def test_the_order_of_figure_14():
    network, alpha, beta = joined_pair(delay=200)  # session acknowledgements wait for eight round trips
    queue = beta.queue("tx", transactional=True)
    for body in (b"1", b"2"):
        alpha.send(body, to=TX_QUEUE, transactional=True, positive_journaling_requested=True)
        network.advance(1_800)
    network.advance(900)
    sent, acks = ("alpha", "UserMessage"), [("beta", "OrderAck"), ("beta", "SessionAck")]
    assert network.exchanged()[4:] == [sent, acks[0], sent, *acks]
    assert [packet.acknowledged_tx[2] for packet in network.between("beta", "alpha", "OrderAck")] == [1, 2]
    (ack,) = network.between("beta", "alpha", "SessionAck")
    assert ack.RecoverableMsgAckFlags == 0b11
    network.log.clear()
    assert receive_all(network, beta, queue) == [b"1", b"2"]
    network.advance(3_000)
    assert network.exchanged() == [("beta", "FinalAck")] * 2 + [("alpha", "SessionAck")]
    assert bodies(alpha.core.queue_manager.system_journal_queue) == [b"1", b"2"]


@pytest.mark.requirement("MQQB-3.1.1.7.3-01", "MQQB-3.1.1.7.3-02", "MQQB-3.1.1.7.3-03")
def test_the_exchange_of_figure_14():
    network, alpha, beta = joined_pair()
    queue = beta.queue("tx", transactional=True)
    # order acknowledgements are sent before session acknowledgements, as in the figure
    for body in (b"1", b"2"):
        alpha.send(body, to=TX_QUEUE, transactional=True, positive_journaling_requested=True)
        network.run()
    network.advance(500)
    handshake = ("EstablishConnection", "ConnectionParameters")
    sent = [kind for _, kind in network.exchanged() if kind not in handshake]
    assert sent[:2] == ["UserMessage", "UserMessage"]
    assert sorted(sent[2:]) == ["OrderAck", "SessionAck"]
    (order,) = network.between("beta", "alpha", "OrderAck")
    assert order.acknowledged_tx[2] == 2
    (ack,) = network.between("beta", "alpha", "SessionAck")
    assert ack.RecoverableMsgAckFlags == 0b11
    network.log.clear()
    assert receive_all(network, beta, queue) == [b"1", b"2"]
    finals = network.between("beta", "alpha", "FinalAck")
    assert [ack.acknowledged_tx[2] for ack in finals] == [1, 2]
    assert [ack.MessageClass for ack in finals] == [0x4000, 0x4000]
    assert bodies(alpha.core.queue_manager.system_journal_queue) == [b"1", b"2"]
    network.advance(500)
    (ack,) = network.between("alpha", "beta", "SessionAck")
    # order and final acknowledgements count as messages of the session
    assert (ack.AckSequenceNumber, ack.RecoverableMsgAckFlags) == (3, 0b111)
    network.log.clear()
    network.advance(10 * 300_000)
    assert {kind for _, kind in network.exchanged()} <= {"SessionAck"}
    assert network.connections("alpha") == network.connections("beta") == []


@pytest.mark.requirement("MQQB-2.2.4-12", "MQQB-2.2.5-11", "MQMQ-2.2.18.1.6-21")
@pytest.mark.requirement("MQQB-3.1.1.5-10", "MQQB-3.1.1.6.2-01", "MQQB-3.1.1.6.2-02", "MQQB-3.1.7.17-08")
def test_transactional_acknowledgements_go_from_end_to_end():
    network, alpha, middle, beta = routed()
    queue = beta.queue("tx", transactional=True)
    some = [b"%d" % number for number in range(5)]
    alpha.send(
        *some, to=f"PRIVATE={B}\\{queue.private_queue_number:x}", transactional=True,
        positive_journaling_requested=True,
    )  # fmt: skip
    network.run()
    network.advance(3_000)
    assert bodies(queue) == some
    first, passed = (
        network.between("alpha", "middle", "UserMessage"),
        network.between("middle", "beta", "UserMessage"),
    )
    headers = [[packet.TransactionHeader for packet in carried] for carried in (first, passed)]
    assert headers[0] == headers[1]
    assert [packet.hops for packet in passed] == [1] * 5
    orders = network.between("beta", "middle", "OrderAck")
    assert orders[-1].acknowledged_tx[2] == 5
    assert orders[-1].QueueManagerAddress == A.bytes_le
    assert orders[-1].SourceQueueManager == B.bytes_le
    arrived = network.between("middle", "alpha", "OrderAck")
    assert [ack.body for ack in arrived] == [ack.body for ack in orders]
    assert middle.core.incoming_sequences.infos == {}
    for harness in (alpha, middle):
        assert all(not transfer.table for transfer in harness.engine.transfers.values())
    awaited = [transfer.awaiting_final_ack for transfer in alpha.engine.transfers.values()]
    assert [len(messages) for messages in awaited if messages] == [5]
    assert bodies(alpha.core.queue_manager.system_journal_queue) == []
    assert receive_all(network, beta, queue) == some
    network.advance(3_000)
    assert len(network.between("middle", "alpha", "FinalAck")) == 5
    assert bodies(alpha.core.queue_manager.system_journal_queue) == some
    assert bodies(middle.core.queue_manager.system_journal_queue) == []


@pytest.mark.requirement("MQQB-3.1.5.8.4-01", "MQQB-3.1.5.8.7-06")
def test_traffic_over_a_router_both_ways_is_all_acknowledged():
    network, alpha, middle, beta = routed(window_size=7)
    beta_queue, alpha_queue = beta.queue("tx", transactional=True), alpha.queue("tx", transactional=True)
    routes = (
        (alpha, f"PRIVATE={B}\\{beta_queue.private_queue_number:x}"),
        (beta, f"PRIVATE={A}\\{alpha_queue.private_queue_number:x}"),
    )
    for round_ in range(20):
        for harness, name in routes:
            numbered = [b"%d.%d" % (round_, number) for number in range(10)]
            harness.send(*numbered, to=name, transactional=True, final_ack_required=False)
            network.run()
        network.advance(137)
    network.advance(30_000)
    expected = [b"%d.%d" % (round_, number) for round_ in range(20) for number in range(10)]
    assert bodies(beta_queue) == expected
    assert bodies(alpha_queue) == expected
    for harness in (alpha, middle, beta):
        assert all(not transfer.table for transfer in harness.engine.transfers.values())
    # no session was closed for a wrong count, so nothing was sent twice
    for sender, receiver in (
        ("alpha", "middle"),
        ("middle", "beta"),
        ("beta", "middle"),
        ("middle", "alpha"),
    ):
        packets = network.between(sender, receiver, "UserMessage")
        assert len(packets) == 200


@pytest.mark.requirement("MQQB-3.1.5.11-02", "MQQB-3.1.5.8.10-01", "MQQB-3.1.7.2.1-01")
def test_administration_acknowledgements_find_their_way_back():
    network, alpha, _, beta = routed()
    queue, admin = beta.queue("orders"), alpha.queue("adm")
    alpha.send(
        b"m", to=f"PRIVATE={B}\\{queue.private_queue_number:x}",
        acknowledgements_requested=AcknowledgementsRequested(PA | PR),
        administration=parse_format_name(f"PRIVATE={A}\\{admin.private_queue_number:x}"),
    )  # fmt: skip
    network.run()
    assert receive_all(network, beta, queue) == [b"m"]
    network.advance(20_000)
    assert message_classes(admin) == [0x0002, 0x4000]


@pytest.mark.requirement("MQQB-3.1.1.5-04", "MQQB-3.1.5.8.6-03", "MQQB-3.1.6.5-01")
def test_lost_connections_lose_and_repeat_nothing():
    network, alpha, beta = joined_pair()
    queue = beta.queue("tx", transactional=True)
    simple = beta.queue("simple")
    sent = 0

    def loses(sender: str, receiver: str, packet: ReceivedPacket) -> bool:
        nonlocal sent
        sent += 1
        if sent % 23:
            return False
        for connection in network.connections(sender):
            network.disconnect(sender, connection)
        return True

    network.loses = loses
    for number in range(10):
        alpha.send(b"t%d" % number, to=TX_QUEUE, transactional=True)
        network.run()
        alpha.send(b"s%d" % number, to=r"DIRECT=OS:beta\private$\simple", recoverable=True)
        network.run()
        network.advance(1_700)
    network.advance(600_000)
    assert bodies(queue) == [b"t%d" % number for number in range(10)]
    assert sorted(bodies(simple)) == [b"s%d" % number for number in range(10)]
    assert all(not transfer.table for transfer in alpha.engine.transfers.values())
    assert sent > 50


@pytest.mark.requirement("DMPR-3.1.1.12-47", "DMPR-3.1.1.12-48", "MQMQ-2.2.19.1-23", "MQQB-3.1.7.1.2-01")
@pytest.mark.parametrize("clock", ["runs", "jumps"])
def test_a_message_passed_on_is_as_old_as_its_sender_says(clock: str) -> None:
    """Seven of its ten seconds are over when it arrives; the next hop does not answer."""
    harness = EngineHarness(routes={THIRD_ID: ["far"]})
    sender = harness.accept_session()
    sender.send_message(
        b"m", address=THIRD_ID.bytes_le, destination=(3, handmade.private_id(9)), recoverable=True,
        sent_time=harness.utc - 7, time_to_reach_queue=10,
    )  # fmt: skip
    queue = harness.outgoing(f"PRIVATE={THIRD_ID}\\9")
    if clock == "jumps":  # it is noticed when the session opens
        harness.utc_start += 4
        harness.resolve("10.0.0.3")
        peer = harness.connect()
        peer.answer_handshake(server=THIRD_ID)
        assert peer.take("UserMessage") == []
    else:
        harness.advance(3_999)
        assert bodies(queue) == [b"m"]
        harness.advance(1)
    assert bodies(queue) == []
