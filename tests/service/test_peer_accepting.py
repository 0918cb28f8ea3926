"""Sessions that a server opens to a hand-written peer, and the messages it sends over them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import handmade as h
from tests.support.peer_server import (
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
from tests.support.raw_peer import (
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
from tests.support.running import InThread, attach

pytestmark = pytest.mark.uvloop

INBOX = r"OS:peer\private$\inbox"


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener() as found:
        yield found


@pytest.fixture
def server(tmp_path: Path, listener: Listener) -> Iterator[InThread]:
    with alpha(tmp_path / "alpha", listener) as found:
        yield found


def transactional(*given: bytes, **properties: object) -> list[dict[str, object]]:
    return [message(body, delivery="transactional", **properties) for body in given]


def taken(peer: Session, count: int) -> list[ReceivedPacket]:
    """The next messages."""
    return [peer.until("UserMessage") for _ in range(count)]


def order_ack(peer: Session, *of: ReceivedPacket) -> None:
    """Acknowledge transactional messages in their order; such a packet counts like any message."""
    for one in of:
        stamp, ordinal, number, _ = one.tx
        body = h.order_ack_body(ordinal=ordinal, time_stamp=stamp, number=number, previous=number - 1)
        peer.send(h.order_ack(body))
        peer.sent += 1


def until_gone(server: InThread) -> None:
    until(lambda: outgoing(server) == 0, "the server keeps nothing that is acknowledged")


# -- as it should be ------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "MQQB-3.1.5.2.3-02", "MQQB-3.1.5.2.3-03", "MQQB-3.1.5.2.3-05", "MQQB-3.1.5.2.3-06", "MQQB-3.1.5.3.2-02",
    "MQQB-3.1.5.3.2-06", "MQQB-2.2.3.1-09", "MQQB-2.2.3.1-10", "MQQB-2.2.3.1-12",
)  # fmt: skip
def test_a_session_is_asked_for_byte_for_byte(server: InThread, listener: Listener) -> None:
    send(server, *recoverable(b"1"))
    with listener.ring() as peer:
        request = peer.take()
        assert peer.socket.getpeername()[0] == server.address, "it connects from where it listens"
        fields = h.establish_connection_header(
            client=identity(server), server=h.NULL_GUID, time_stamp=request.TimeStamp, operating_system=0x0310
        )
        assert request == h.establish_connection(fields)
        peer.send(answer(request))
        asked = peer.take()
        assert 500 <= asked.RecoverableAckTimeout <= 120_000
        fields = h.connection_parameters_header(
            recoverable_ack_timeout=asked.RecoverableAckTimeout, ack_timeout=20_000, window=64
        )
        assert asked == h.connection_parameters(fields)
        peer.send(parameters(window=64, ack=20_000, recoverable=asked.RecoverableAckTimeout))
        assert taken(peer, 1)[0].body == b"1"


@pytest.mark.requirement("MQQB-3.1.5.5.2-01", "MQQB-3.1.5.5.3-01", "MQQB-3.1.5.5.3-02")
@pytest.mark.parametrize("delivery", ["express", "recoverable"])
def test_a_message_comes_as_it_was_sent(server: InThread, listener: Listener, delivery: str) -> None:
    given = message(b"body", delivery=delivery, label="label", priority=5, application=7, journal=True)
    with sending_session(listener, server, given) as peer:
        (found,) = taken(peer, 1)
        assert (found.SourceQueueManager, found.QueueManagerAddress) == (identity(server), h.NULL_GUID)
        assert (found.Flags >> 10 & 7, found.DestinationQueue) == (7, INBOX)
        assert (found.body, found.Label, found.PR, found.ApplicationTag) == (b"body", "label", 5, 7)
        assert (bool(found.Flags & 0x20), found.tx) == (delivery == "recoverable", None)
        peer.acknowledge()
        until_gone(server)
        assert peer.fence() == []
    assert in_queue(server, "system$;journal") == [b"body"]


@pytest.mark.requirement("MQQB-3.1.1.6-02", "MQQB-3.1.5.9-04")
@pytest.mark.parametrize("delivery", ["express", "recoverable"])
def test_what_was_not_acknowledged_is_sent_again(server: InThread, listener: Listener, delivery: str) -> None:
    given = [message(body, delivery=delivery) for body in (b"1", b"2")]
    with sending_session(listener, server, *given) as peer:
        first = taken(peer, 2)
    with listener.accept() as peer:
        again = taken(peer, 2)
        peer.acknowledge()
        until_gone(server)
    assert [one.body for one in again] == [b"1", b"2"]
    assert [one.MessageID for one in again] == [one.MessageID for one in first]


@pytest.mark.requirement("MQQB-3.1.1.6-01", "MQQB-3.1.1.6.1-03", "MQQB-3.1.1.6.1-05")
@pytest.mark.parametrize("delivery", ["express", "recoverable"])
def test_what_was_acknowledged_is_never_sent_again(
    server: InThread, listener: Listener, delivery: str
) -> None:
    with sending_session(
        listener, server, message(b"1", delivery=delivery), message(b"2", delivery=delivery)
    ) as peer:
        taken(peer, 2)
        peer.acknowledge()
        assert peer.fence() == []
    send(server, message(b"3", delivery=delivery))
    with listener.accept() as peer:
        assert [one.body for one in taken(peer, 1)] == [b"3"]
        peer.acknowledge()
        assert peer.fence() == []
        until_gone(server)


@pytest.mark.requirement("MQQB-3.1.5.5.3-02", "MQMQ-2.2.20.4-09")
def test_only_what_is_not_saved_is_sent_again(server: InThread, listener: Listener) -> None:
    with sending_session(listener, server, *recoverable(b"1", b"2", b"3", b"4")) as peer:
        taken(peer, 4)
        peer.acknowledge(recoverable_ack=1, recoverable_flags=0b0101)
        assert peer.fence() == []
        assert outgoing(server) == 2
    with listener.accept() as peer:
        assert [one.body for one in taken(peer, 2)] == [b"2", b"4"]
        peer.acknowledge()
        until_gone(server)


@pytest.mark.requirement("MQQB-3.1.5.4.2-01", "MQQB-3.1.7.1-03")
@pytest.mark.parametrize("window", [1, 3, 64])
def test_no_more_is_sent_than_the_window_allows(server: InThread, listener: Listener, window: int) -> None:
    count = 3 * window
    send(server, *recoverable(*(b"%d" % number for number in range(count))))
    with listener.accept(window=window) as peer:
        found = []
        for _ in range(3):
            found += taken(peer, window)
            assert peer.fence() == [], "the window is full"
            peer.acknowledge()
        until_gone(server)
    assert [one.body for one in found] == [b"%d" % number for number in range(count)]


@pytest.mark.requirement("MQQB-3.1.5.5-04", "MQMQ-2.2.20.4-15")
def test_a_session_acknowledgement_may_shrink_the_window(server: InThread, listener: Listener) -> None:
    with sending_session(listener, server, *recoverable(b"0")) as peer:
        taken(peer, 1)
        peer.acknowledge(window=1)
        send(server, *recoverable(b"1", b"2"))
        assert taken(peer, 1)[0].body == b"1"
        assert peer.fence() == []
        peer.acknowledge(window=1)
        assert taken(peer, 1)[0].body == b"2"


def test_messages_go_both_ways_over_one_session(server: InThread, listener: Listener) -> None:
    with sending_session(listener, server, *recoverable(b"out")) as peer:
        (found,) = taken(peer, 1)
        back = Message(b"back", recoverable=True)
        peer.count(back)
        peer.send(back.bytes(session=peer.acknowledging_header()))
        assert peer.until_acknowledged() == []
        until_gone(server)
    assert (found.body, in_queue(server)) == (b"out", [b"back"])


# -- transactional messages -----------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.5.5.3-04", "MQQB-3.1.1.6.2-08", "MQQB-3.1.5.6-07", "MQMQ-2.2.19.1-07")
def test_a_transactional_message_is_kept_until_its_order_acknowledgement(
    server: InThread, listener: Listener
) -> None:
    with sending_session(listener, server, *transactional(b"1", b"2")) as peer:
        first = taken(peer, 2)
        assert [one.tx[2:] for one in first] == [(1, 0), (2, 1)]
        assert [(one.PR, one.Flags & 0x60) for one in first] == [(0, 0x20)] * 2
        peer.acknowledge()
        assert peer.fence() == []
        assert outgoing(server) == 2
    with listener.accept() as peer:
        again = taken(peer, 2)
        assert [(one.tx, one.MessageID, one.body) for one in again] == [
            (one.tx, one.MessageID, one.body) for one in first
        ]
        peer.acknowledge()
        order_ack(peer, again[1])
        until_gone(server)
        assert peer.fence() == []
    send(server, *transactional(b"3"))
    with listener.accept() as peer:
        (third,) = taken(peer, 1)
        assert third.body == b"3"
        assert third.tx[:2] > first[0].tx[:2], "all was acknowledged: a new and greater sequence"
        assert third.tx[2:] == (1, 0)


@pytest.mark.requirement("MQQB-3.1.5.6-11")
def test_order_acknowledgements_of_others_end_nothing(server: InThread, listener: Listener) -> None:
    with sending_session(listener, server, *transactional(b"1")) as peer:
        (found,) = taken(peer, 1)
        peer.acknowledge()
        stamp, ordinal, *_ = found.tx
        for wrong in ((stamp, ordinal + 1, 1), (stamp + 1, ordinal, 1), (stamp, ordinal, 2), (0, 0, 1)):
            body = h.order_ack_body(time_stamp=wrong[0], ordinal=wrong[1], number=wrong[2], previous=0)
            peer.send(h.order_ack(body))
            peer.sent += 1
        assert peer.fence() == []
        assert outgoing(server) == 1
        order_ack(peer, found)
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
        (found,) = taken(peer, 1)
        peer.acknowledge()
        order_ack(peer, found)
        assert peer.fence() == []
        assert in_queue(server, ends_in) == []
        stamp, ordinal, number, previous = found.tx
        body = h.final_ack_body(
            ordinal=ordinal, time_stamp=stamp, number=number, previous=previous,
            source=identity(server), message_id=found.MessageID,
        )  # fmt: skip
        peer.send(h.final_ack(body, message_class=message_class))
        peer.sent, peer.recoverable_sent = peer.sent + 1, peer.recoverable_sent + 1
        assert peer.fence() == []
        assert in_queue(server, ends_in) == [b"1"]
        until_gone(server)


# -- answers that are not as they should be -------------------------------------------------------------


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
    comes_to_an_honest_one(server, listener)


@pytest.mark.requirement("MQQB-3.1.5.3.2-01")
def test_another_queue_manager_answers_than_was_asked_for(server: InThread, listener: Listener) -> None:
    """An acknowledgement is for the sender that asked for it by its GUID: nobody else gets it."""
    with Session.opened(at(server)) as peer:
        wish = Message(b"report", wants=1, admin=(7, h.direct_name(f"TCP:{PEER}\\private$\\admin")))
        peer.push(wish)
        with listener.ring() as other:
            other.send(answer(other.take(), client=GUID))
            assert other.ended() == []
        with listener.accept() as other:
            assert taken(other, 1)[0].MessageClass == 2
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
    comes_to_an_honest_one(server, listener)


@pytest.mark.requirement("MQQB-3.1.5.3-01", "MQQB-3.1.5.4-01", "MQQB-2.2.1-05", "MQQB-3.1.5.1.2-02")
@pytest.mark.parametrize("what", ["EC", "CP", "no kind", "signature"])
def test_an_open_session_takes_messages_only(server: InThread, listener: Listener, what: str) -> None:
    packets = {
        "EC": h.establish_connection(), "CP": parameters(),
        "no kind": h.connection_parameters(internal=7), "signature": b"\x10\x00\x03\x00ROIL" + bytes(8),
    }  # fmt: skip
    with sending_session(listener, server, *recoverable(b"1")) as peer:
        taken(peer, 1)
        peer.send(packets[what])
        assert peer.ended() == []
    comes_to_an_honest_one(server, listener)


def comes_to_an_honest_one(server: InThread, listener: Listener) -> None:
    """The message is sent to whoever answers as it should be."""
    with listener.accept() as peer:
        assert [one.body for one in taken(peer, 1)] == [b"1"]
        peer.acknowledge()
        until_gone(server)
    serves(server)


def test_who_does_not_answer_is_tried_again(tmp_path: Path, listener: Listener) -> None:
    with alpha(tmp_path / "alpha", listener, session_initialization_ms=300) as server:
        send(server, *recoverable(b"1"))
        with listener.ring() as peer:
            assert [one.kind for one in peer.ended()] == ["EstablishConnection"]
        with listener.ring() as peer:
            peer.send(answer(peer.take())[:571])
            assert peer.ended() == []
        comes_to_an_honest_one(server, listener)


def test_what_is_in_the_queue_to_the_peer_can_be_seen(server: InThread, listener: Listener) -> None:
    with sending_session(listener, server, *recoverable(b"1", b"2")) as peer:
        taken(peer, 2)
        with attach(server.data) as local:
            found = local.call("peek", queue=rf"DIRECT={INBOX}", count=10)["messages"]
        assert bodies(found) == [b"1", b"2"]
