"""Queue managers joined with each other: [MS-MQQB] 3.1.1.5, 3.1.1.6.2, 3.1.1.7.3 and 3.1.5.8."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.names import parse_format_name
from msmqwire.qm.core import Core
from msmqwire.qm.model.enumerations import AcknowledgementsRequested, DeliveryGuarantee, QueueAccessType
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.settings import Settings
from msmqwire.schema import Record
from tests.support.message_desk import PA, PR, acks, bodies, make_queue
from tests.support.message_net import Net

A, M, B = UUID(int=0xA1), UUID(int=0xA2), UUID(int=0xA3)
SEND, RECEIVE = QueueAccessType.SEND_ACCESS, QueueAccessType.RECEIVE_ACCESS


def pair() -> tuple[Net, Core, Core]:
    net = Net()
    return net, net.node("alpha", "10.0.0.1", A), net.node("beta", "10.0.0.3", B)


def routed(**how: object) -> tuple[Net, Core, Core, Core]:
    """Alpha and beta know only the one in the middle."""
    net = Net()
    alpha = net.node("alpha", "10.0.0.1", A, routes={B: ["middle"]}, **how)
    middle = net.node("middle", "10.0.0.2", M, routes={A: ["alpha"], B: ["beta"]}, **how)
    return net, alpha, middle, net.node("beta", "10.0.0.3", B, routes={A: ["middle"]}, **how)


def send(net: Net, core: Core, name: str, *some: bytes, tx: bool = True, **how: object) -> None:
    status, descriptor = core.queues.open(parse_format_name(name), SEND)
    assert status == 0
    assert descriptor is not None
    transaction = core.transactions.create(UUID(int=next(net.numbers) << 32)) if tx else None
    for body in some:
        assert not core.send(descriptor, Message(body=body, **how), transaction)
    if transaction is not None:
        core.commit(transaction)
    net.run()


def receive(net: Net, core: Core, name: str) -> list[bytes]:
    status, descriptor = core.queues.open(parse_format_name(name), RECEIVE)
    assert status == 0
    assert descriptor is not None
    found = []
    while (read := core.messages.dequeue(descriptor, timeout=0)).message is not None:
        found.append(read.message.body)
    net.run()
    return found


@pytest.mark.requirement("MQQB-3.1.1.7.3-01", "MQQB-3.1.1.7.3-02", "MQQB-3.1.1.7.3-03")
def test_the_exchange_of_figure_14():
    net, alpha, beta = pair()
    make_queue(beta, "tx", transactional=True)
    name = "DIRECT=OS:beta\\private$\\tx"
    # the order acknowledgements are sent before the session's here, as they are in the figure
    send(net, alpha, name, b"1", positive_journaling_requested=True)
    send(net, alpha, name, b"2", positive_journaling_requested=True)
    net.passes(500)
    sent = [
        kind for one, _, kind, _ in net.log if kind not in ("EstablishConnection", "ConnectionParameters")
    ]
    assert sent[:2] == ["UserMessage", "UserMessage"]
    assert sorted(sent[2:]) == ["OrderAck", "SessionAck"]
    (order,) = net.between("beta", "alpha", "OrderAck")
    assert order.OrderAckBody.TxSequenceNumber == 2
    (ack,) = net.between("beta", "alpha", "SessionAck")
    assert ack.SessionHeader.RecoverableMsgAckFlags == 0b11
    net.log.clear()
    assert receive(net, beta, "DIRECT=OS:beta\\private$\\tx") == [b"1", b"2"]
    finals = net.between("beta", "alpha", "FinalAck")
    assert [one.FinalAckBody.TxSequenceNumber for one in finals] == [1, 2]
    assert [one.MessagePropertiesHeader.MessageClass for one in finals] == [0x4000, 0x4000]
    assert bodies(alpha.queue_manager.system_journal_queue) == [b"1", b"2"]
    net.passes(500)
    (ack,) = net.between("alpha", "beta", "SessionAck")
    # order and final acknowledgements are messages of the session
    assert (ack.SessionHeader.AckSequenceNumber, ack.SessionHeader.RecoverableMsgAckFlags) == (3, 0b111)
    net.log.clear()
    net.passes(10 * 300_000)
    assert {kind for _, _, kind, _ in net.log} <= {"SessionAck"}
    assert net.links == {}


@pytest.mark.requirement("MQQB-3.1.1.5-10", "MQQB-3.1.1.6.2-01", "MQQB-3.1.1.6.2-02", "MQQB-3.1.7.17-08")
def test_transactional_acknowledgements_go_from_end_to_end():
    net, alpha, middle, beta = routed()
    queue = make_queue(beta, "tx", transactional=True)
    some = [b"%d" % number for number in range(5)]
    send(
        net, alpha, f"PRIVATE={B}\\{queue.private_queue_number:x}", *some, positive_journaling_requested=True
    )
    net.passes(3_000)
    assert bodies(queue) == some
    first, passed = (
        net.between("alpha", "middle", "UserMessage"),
        net.between("middle", "beta", "UserMessage"),
    )
    headers = [[one.TransactionHeader.to_bytes() for one in carried] for carried in (first, passed)]
    assert headers[0] == headers[1]
    assert [one.UserHeader.Flags.RC for one in passed] == [1] * 5
    orders = net.between("beta", "middle", "OrderAck")
    assert orders[-1].OrderAckBody.TxSequenceNumber == 5
    assert orders[-1].UserHeader.QueueManagerAddress == A
    assert orders[-1].UserHeader.SourceQueueManager == B
    arrived = net.between("middle", "alpha", "OrderAck")
    assert [one.OrderAckBody.to_bytes() for one in arrived] == [one.OrderAckBody.to_bytes() for one in orders]
    assert middle.engine.incoming_sequences.infos == {}
    for core in (alpha, middle):
        assert all(not transfer.table for transfer in core.engine.transfers.values())
    assert receive(net, beta, "DIRECT=OS:beta\\private$\\tx") == some
    net.passes(3_000)
    assert len(net.between("middle", "alpha", "FinalAck")) == 5
    assert bodies(alpha.queue_manager.system_journal_queue) == some
    assert bodies(middle.queue_manager.system_journal_queue) == []


@pytest.mark.requirement("MQQB-3.1.5.8.4-01", "MQQB-3.1.5.8.7-06")
def test_much_goes_over_a_router_both_ways_and_everything_is_acknowledged():
    net, alpha, middle, beta = routed(settings=Settings(window_size=7))
    there, back = make_queue(beta, "tx", transactional=True), make_queue(alpha, "tx", transactional=True)
    routes = (
        (alpha, f"PRIVATE={B}\\{there.private_queue_number:x}"),
        (beta, f"PRIVATE={A}\\{back.private_queue_number:x}"),
    )
    for round_ in range(20):
        for core, name in routes:
            send(
                net,
                core,
                name,
                *(b"%d.%d" % (round_, number) for number in range(10)),
                final_ack_required=False,
            )
        net.passes(137)
    net.passes(30_000)
    expected = [b"%d.%d" % (round_, number) for round_ in range(20) for number in range(10)]
    assert bodies(there) == expected
    assert bodies(back) == expected
    for core in (alpha, middle, beta):
        assert all(not transfer.table for transfer in core.engine.transfers.values())
    # no session was closed for a wrong count, so that nothing was sent twice
    for sender, receiver in (
        ("alpha", "middle"),
        ("middle", "beta"),
        ("beta", "middle"),
        ("middle", "alpha"),
    ):
        carried = net.between(sender, receiver, "UserMessage")
        assert len(carried) == 200


@pytest.mark.requirement("MQQB-3.1.5.11-02", "MQQB-3.1.5.8.10-01", "MQQB-3.1.7.2.1-01")
def test_administration_acknowledgements_find_their_way_back():
    net, alpha, _, beta = routed()
    queue, admin = make_queue(beta, "orders"), make_queue(alpha, "adm")
    send(
        net, alpha, f"PRIVATE={B}\\{queue.private_queue_number:x}", b"m", tx=False,
        acknowledgements_requested=AcknowledgementsRequested(PA | PR),
        administration=parse_format_name(f"PRIVATE={A}\\{admin.private_queue_number:x}"),
    )  # fmt: skip
    assert receive(net, beta, "DIRECT=OS:beta\\private$\\orders") == [b"m"]
    net.passes(20_000)
    assert acks(admin) == [0x0002, 0x4000]


@pytest.mark.requirement("MQQB-3.1.1.5-04", "MQQB-3.1.5.8.6-03", "MQQB-3.1.6.5-01")
def test_lost_connections_lose_and_repeat_nothing():
    net, alpha, beta = pair()
    queue = make_queue(beta, "tx", transactional=True)
    plain = make_queue(beta, "plain")
    lost = 0

    def loses(sender: str, receiver: str, packet: Record) -> bool:
        nonlocal lost
        lost += 1
        if lost % 23:
            return False
        address = "10.0.0.1" if sender == "alpha" else "10.0.0.3"
        for where, connection in [one for one in net.links if one[0] == address]:
            net.cut(where, connection)
            core = net.nodes[where][1]
            core.engine.disconnected(connection)
        return True

    net.loses = loses
    for number in range(10):
        send(net, alpha, "DIRECT=OS:beta\\private$\\tx", b"t%d" % number)
        send(
            net, alpha, "DIRECT=OS:beta\\private$\\plain", b"p%d" % number, tx=False,
            delivery_guarantee=DeliveryGuarantee.RECOVERABLE,
        )  # fmt: skip
        net.passes(1_700)
    net.passes(600_000)
    assert bodies(queue) == [b"t%d" % number for number in range(10)]
    assert sorted(bodies(plain)) == [b"p%d" % number for number in range(10)]
    assert all(not transfer.table for transfer in alpha.engine.transfers.values())
    assert lost > 50
