"""Sessions that a server opens to a hand-written peer, and the messages it sends over them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import handmade as h
from tests.support.peers.raw_peer import (
    GUID,
    OTHER,
    PEER,
    Listener,
    Message,
    ReceivedPacket,
    Session,
    answer,
    parameters,
)
from tests.support.qm.peer_server import (
    alpha,
    at,
    bodies,
    identity,
    in_queue,
    message,
    outgoing,
    recoverable,
    send,
    sending_session,
    serves,
    until,
)
from tests.support.running import InThread, attach

pytestmark = pytest.mark.uvloop

INBOX = r"OS:peer\private$\inbox"


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener() as listener:
        yield listener


@pytest.fixture
def server(tmp_path: Path, listener: Listener) -> Iterator[InThread]:
    with alpha(tmp_path / "alpha", listener) as server:
        yield server


def transactional(*bodies: bytes, **properties: object) -> list[dict[str, object]]:
    return [message(body, delivery="transactional", **properties) for body in bodies]


def receive(peer: Session, count: int) -> list[ReceivedPacket]:
    """Receive the next messages."""
    return [peer.until("UserMessage") for _ in range(count)]


def order_ack(peer: Session, *packets: ReceivedPacket) -> None:
    """Send OrderAcks of transactional messages; each counts like any message."""
    for packet in packets:
        stamp, ordinal, number, _ = packet.tx
        body = h.order_ack_body(ordinal=ordinal, time_stamp=stamp, number=number, previous=number - 1)
        peer.send(h.order_ack(body))
        peer.sent += 1


def until_gone(server: InThread) -> None:
    until(lambda: outgoing(server) == 0, "the outgoing queue becomes empty")


# -- correct peers --------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "MQQB-3.1.5.2.3-02", "MQQB-3.1.5.2.3-03", "MQQB-3.1.5.2.3-05", "MQQB-3.1.5.2.3-06", "MQQB-3.1.5.3.2-02",
    "MQQB-3.1.5.3.2-06", "MQQB-2.2.3.1-09", "MQQB-2.2.3.1-10", "MQQB-2.2.3.1-12",
)  # fmt: skip
def test_a_session_is_asked_for_byte_for_byte(server: InThread, listener: Listener) -> None:
    send(server, *recoverable(b"1"))
    with listener.ring() as peer:
        request = peer.take()
        assert peer.socket.getpeername()[0] == server.address, (
            "it connects from the address on which it listens"
        )
        fields = h.establish_connection_header(
            client=identity(server), server=h.NULL_GUID, time_stamp=request.TimeStamp, operating_system=0x0310
        )
        assert request == h.establish_connection(fields)
        peer.send(answer(request))
        offered = peer.take()
        assert 500 <= offered.RecoverableAckTimeout <= 120_000
        fields = h.connection_parameters_header(
            recoverable_ack_timeout=offered.RecoverableAckTimeout, ack_timeout=20_000, window=64
        )
        assert offered == h.connection_parameters(fields)
        peer.send(parameters(window=64, ack=20_000, recoverable=offered.RecoverableAckTimeout))
        assert receive(peer, 1)[0].body == b"1"


@pytest.mark.requirement("MQQB-3.1.5.5.2-01", "MQQB-3.1.5.5.3-01", "MQQB-3.1.5.5.3-02")
@pytest.mark.parametrize("delivery", ["express", "recoverable"])
def test_a_message_comes_as_it_was_sent(server: InThread, listener: Listener, delivery: str) -> None:
    properties = message(b"body", delivery=delivery, label="label", priority=5, application=7, journal=True)
    with sending_session(listener, server, properties) as peer:
        (packet,) = receive(peer, 1)
        assert (packet.SourceQueueManager, packet.QueueManagerAddress) == (identity(server), h.NULL_GUID)
        assert (packet.Flags >> 10 & 7, packet.DestinationQueue) == (7, INBOX)
        assert (packet.body, packet.Label, packet.PR, packet.ApplicationTag) == (b"body", "label", 5, 7)
        assert (bool(packet.Flags & 0x20), packet.tx) == (delivery == "recoverable", None)
        peer.acknowledge()
        until_gone(server)
        assert peer.fence() == []
    assert in_queue(server, "system$;journal") == [b"body"]


@pytest.mark.requirement("MQQB-3.1.1.6-02", "MQQB-3.1.5.9-04")
@pytest.mark.parametrize("delivery", ["express", "recoverable"])
def test_what_was_not_acknowledged_is_sent_again(server: InThread, listener: Listener, delivery: str) -> None:
    messages = [message(body, delivery=delivery) for body in (b"1", b"2")]
    with sending_session(listener, server, *messages) as peer:
        first = receive(peer, 2)
    with listener.accept() as peer:
        repeated = receive(peer, 2)
        peer.acknowledge()
        until_gone(server)
    assert [packet.body for packet in repeated] == [b"1", b"2"]
    assert [packet.MessageID for packet in repeated] == [packet.MessageID for packet in first]


@pytest.mark.requirement("MQQB-3.1.1.6-01", "MQQB-3.1.1.6.1-03", "MQQB-3.1.1.6.1-05")
@pytest.mark.parametrize("delivery", ["express", "recoverable"])
def test_what_was_acknowledged_is_never_sent_again(
    server: InThread, listener: Listener, delivery: str
) -> None:
    with sending_session(
        listener, server, message(b"1", delivery=delivery), message(b"2", delivery=delivery)
    ) as peer:
        receive(peer, 2)
        peer.acknowledge()
        assert peer.fence() == []
    send(server, message(b"3", delivery=delivery))
    with listener.accept() as peer:
        assert [packet.body for packet in receive(peer, 1)] == [b"3"]
        peer.acknowledge()
        assert peer.fence() == []
        until_gone(server)


@pytest.mark.requirement("MQQB-3.1.5.5.3-02", "MQMQ-2.2.20.4-09")
def test_only_what_is_not_saved_is_sent_again(server: InThread, listener: Listener) -> None:
    with sending_session(listener, server, *recoverable(b"1", b"2", b"3", b"4")) as peer:
        receive(peer, 4)
        peer.acknowledge(recoverable_ack=1, recoverable_flags=0b0101)
        assert peer.fence() == []
        assert outgoing(server) == 2
    with listener.accept() as peer:
        assert [packet.body for packet in receive(peer, 2)] == [b"2", b"4"]
        peer.acknowledge()
        until_gone(server)


@pytest.mark.requirement("MQQB-3.1.5.4.2-01", "MQQB-3.1.7.1-03")
@pytest.mark.parametrize("window", [1, 3, 64])
def test_no_more_is_sent_than_the_window_allows(server: InThread, listener: Listener, window: int) -> None:
    count = 3 * window
    send(server, *recoverable(*(b"%d" % number for number in range(count))))
    with listener.accept(window=window) as peer:
        packets = []
        for _ in range(3):
            packets += receive(peer, window)
            assert peer.fence() == [], "the window is full"
            peer.acknowledge()
        until_gone(server)
    assert [packet.body for packet in packets] == [b"%d" % number for number in range(count)]


@pytest.mark.requirement("MQQB-3.1.5.5-04", "MQMQ-2.2.20.4-15")
def test_a_session_acknowledgement_may_shrink_the_window(server: InThread, listener: Listener) -> None:
    with sending_session(listener, server, *recoverable(b"0")) as peer:
        receive(peer, 1)
        peer.acknowledge(window=1)
        send(server, *recoverable(b"1", b"2"))
        assert receive(peer, 1)[0].body == b"1"
        assert peer.fence() == []
        peer.acknowledge(window=1)
        assert receive(peer, 1)[0].body == b"2"


def test_messages_go_both_ways_over_one_session(server: InThread, listener: Listener) -> None:
    with sending_session(listener, server, *recoverable(b"out")) as peer:
        (packet,) = receive(peer, 1)
        reply = Message(b"reply", recoverable=True)
        peer.count(reply)
        peer.send(reply.bytes(session=peer.acknowledging_header()))
        assert peer.until_acknowledged() == []
        until_gone(server)
    assert (packet.body, in_queue(server)) == (b"out", [b"reply"])


# -- transactional messages -----------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.5.5.3-04", "MQQB-3.1.1.6.2-08", "MQQB-3.1.5.6-07", "MQMQ-2.2.19.1-07")
def test_a_transactional_message_is_kept_until_its_order_ack(server: InThread, listener: Listener) -> None:
    with sending_session(listener, server, *transactional(b"1", b"2")) as peer:
        first = receive(peer, 2)
        assert [packet.tx[2:] for packet in first] == [(1, 0), (2, 1)]
        assert [(packet.PR, packet.Flags & 0x60) for packet in first] == [(0, 0x20)] * 2
        peer.acknowledge()
        assert peer.fence() == []
        assert outgoing(server) == 2
    with listener.accept() as peer:
        repeated = receive(peer, 2)
        assert [(packet.tx, packet.MessageID, packet.body) for packet in repeated] == [
            (packet.tx, packet.MessageID, packet.body) for packet in first
        ]
        peer.acknowledge()
        order_ack(peer, repeated[1])
        until_gone(server)
        assert peer.fence() == []
    send(server, *transactional(b"3"))
    with listener.accept() as peer:
        (third,) = receive(peer, 1)
        assert third.body == b"3"
        assert third.tx[:2] > first[0].tx[:2], (
            "all messages were acknowledged: a new sequence with a greater stamp"
        )
        assert third.tx[2:] == (1, 0)


@pytest.mark.requirement("MQQB-3.1.5.6-11")
def test_order_acknowledgements_of_others_end_nothing(server: InThread, listener: Listener) -> None:
    with sending_session(listener, server, *transactional(b"1")) as peer:
        (packet,) = receive(peer, 1)
        peer.acknowledge()
        stamp, ordinal, *_ = packet.tx
        for wrong in ((stamp, ordinal + 1, 1), (stamp + 1, ordinal, 1), (stamp, ordinal, 2), (0, 0, 1)):
            body = h.order_ack_body(time_stamp=wrong[0], ordinal=wrong[1], number=wrong[2], previous=0)
            peer.send(h.order_ack(body))
            peer.sent += 1
        assert peer.fence() == []
        assert outgoing(server) == 1
        order_ack(peer, packet)
        until_gone(server)


@pytest.mark.requirement("MQQB-3.1.5.6-08", "MQQB-3.1.5.7-02", "MQQB-3.1.5.7-03", "MQQB-3.1.5.7-04")
@pytest.mark.parametrize(
    ("message_class", "ends_in"),
    [(0x4000, "system$;journal"), (0x8009, "system$;deadxact"), (0xC001, "system$;deadxact")],
)
def test_the_final_acknowledgement_tells_what_becomes_of_it(
    server: InThread, listener: Listener, message_class: int, ends_in: str
) -> None:
    with sending_session(listener, server, *transactional(b"1", journal=True, dead_letter=True)) as peer:
        (packet,) = receive(peer, 1)
        peer.acknowledge()
        order_ack(peer, packet)
        assert peer.fence() == []
        assert in_queue(server, ends_in) == []
        stamp, ordinal, number, previous = packet.tx
        body = h.final_ack_body(
            ordinal=ordinal, time_stamp=stamp, number=number, previous=previous,
            source=identity(server), message_id=packet.MessageID,
        )  # fmt: skip
        peer.send(h.final_ack(body, message_class=message_class))
        peer.sent, peer.recoverable_sent = peer.sent + 1, peer.recoverable_sent + 1
        assert peer.fence() == []
        assert in_queue(server, ends_in) == [b"1"]
        until_gone(server)


# -- wrong answers --------------------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.5.3.2-01", "MQQB-3.1.5.3.2-03", "MQQB-3.1.5.3.2-04", "MQQB-3.1.5.9-04")
@pytest.mark.parametrize(
    "wrong", [{"client": OTHER}, {"client": h.NULL_GUID}, {"cs": True}], ids=["other", "null", "CS"]
)
def test_an_answer_that_is_not_to_the_request(
    server: InThread, listener: Listener, wrong: dict[str, object]
) -> None:
    send(server, *recoverable(b"1"))
    with listener.ring() as peer:
        peer.send(answer(peer.take(), **wrong))
        assert peer.ended() == [], "no ConnectionParameters follow"
    is_sent_to_an_honest_peer(server, listener)


@pytest.mark.requirement("MQQB-3.1.5.3.2-01")
def test_another_queue_manager_answers_than_was_asked_for(server: InThread, listener: Listener) -> None:
    """An acknowledgement goes to the sender that requested it, known by its GUID, and to no other."""
    with Session.opened(at(server)) as peer:
        message = Message(b"report", wants=1, admin=(7, h.direct_name(f"TCP:{PEER}\\private$\\admin")))
        peer.push(message)
        with listener.ring() as other:
            other.send(answer(other.take(), client=GUID))
            assert other.ended() == []
        with listener.accept() as other:
            assert receive(other, 1)[0].MessageClass == 2
            other.acknowledge()
            assert other.fence() == []


@pytest.mark.requirement("MQQB-3.1.5.4-01", "MQQB-3.1.5.4-03", "MQQB-3.1.5.3-01", "MQQB-3.1.5.8-01")
@pytest.mark.parametrize(
    "packet",
    [
        parameters(cs=True), parameters(ack=1), parameters(recoverable=0), "again",
        Message(b"early").bytes(), h.session_ack(),
    ],
    ids=["CS", "AckTimeout", "RecoverableAckTimeout", "EC twice", "UserMessage", "SessionAck"],
)  # fmt: skip
def test_what_is_not_the_parameters_ends_the_session(
    server: InThread, listener: Listener, packet: bytes | str
) -> None:
    send(server, *recoverable(b"1"))
    with listener.ring() as peer:
        response = answer(peer.take())
        peer.send(response)
        assert peer.take().kind == "ConnectionParameters"
        peer.send(response if packet == "again" else packet)
        assert peer.ended() == []
    assert in_queue(server) == []
    is_sent_to_an_honest_peer(server, listener)


@pytest.mark.requirement("MQQB-3.1.5.3-01", "MQQB-3.1.5.4-01", "MQQB-2.2.1-05", "MQQB-3.1.5.1.2-02")
@pytest.mark.parametrize("kind", ["EC", "CP", "no kind", "signature"])
def test_an_open_session_takes_messages_only(server: InThread, listener: Listener, kind: str) -> None:
    packets = {
        "EC": h.establish_connection(), "CP": parameters(),
        "no kind": h.connection_parameters(internal=7), "signature": b"\x10\x00\x03\x00ROIL" + bytes(8),
    }  # fmt: skip
    with sending_session(listener, server, *recoverable(b"1")) as peer:
        receive(peer, 1)
        peer.send(packets[kind])
        assert peer.ended() == []
    is_sent_to_an_honest_peer(server, listener)


def is_sent_to_an_honest_peer(server: InThread, listener: Listener) -> None:
    """Check that the message is sent to a peer that answers correctly."""
    with listener.accept() as peer:
        assert [packet.body for packet in receive(peer, 1)] == [b"1"]
        peer.acknowledge()
        until_gone(server)
    serves(server)


def test_who_does_not_answer_is_tried_again(tmp_path: Path, listener: Listener) -> None:
    with alpha(tmp_path / "alpha", listener, session_initialization_ms=300) as server:
        send(server, *recoverable(b"1"))
        with listener.ring() as peer:
            assert [packet.kind for packet in peer.ended()] == ["EstablishConnection"]
        with listener.ring() as peer:
            peer.send(answer(peer.take())[:571])
            assert peer.ended() == []
        is_sent_to_an_honest_peer(server, listener)


def test_what_is_in_the_queue_to_the_peer_can_be_seen(server: InThread, listener: Listener) -> None:
    with sending_session(listener, server, *recoverable(b"1", b"2")) as peer:
        receive(peer, 2)
        with attach(server.data) as local:
            messages = local.call("peek", queue=rf"DIRECT={INBOX}", count=10)["messages"]
        assert bodies(messages) == [b"1", b"2"]
