"""Subscriptions over the control channel, as a program in another language sees them; and records."""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Iterator

import pytest

from msmqwire.qm.client import ReceivedMessage
from msmqwire.qm.runtime import held_messages, subscriptions
from msmqwire.service.control import server as control
from tests.support.qm.control_lines import Frame, Lines
from tests.support.running import LEDGER, ORDERS, InThread, bodies, peeked, recoverable, until

pytestmark = pytest.mark.uvloop

TO_ORDERS = rf"DIRECT=OS:alpha\{ORDERS}"


@pytest.fixture
def lines(server: InThread) -> Iterator[Lines]:
    with Lines(server.data) as lines:
        yield lines


def send(lines: Lines, *bodies: bytes) -> None:
    lines.ask({"id": 0, "op": "send", "to": TO_ORDERS, "messages": recoverable(*bodies)})


def subscribe(lines: Lines, window: int, number: int = 7, queue: str = ORDERS) -> None:
    answer = lines.ask({"id": 1, "op": "subscribe", "subscription": number, "queue": queue, "window": window})
    assert answer["answer"] == {"subscription": number}


def done(lines: Lines, frame: Frame) -> None:
    """End messages without an answer."""
    lines.write({"op": "done", "subscription": frame.subscription, "upto": frame.receipt})


def is_quiet(lines: Lines) -> bool:
    """Whether nothing was pushed before the answer to one more request."""
    lines.ask({"id": "quiet", "op": "status"})
    return not lines.frames


def numbered(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


# -- pushing --------------------------------------------------------------------------------------------


def test_messages_are_pushed_up_to_the_window(lines: Lines, server: InThread) -> None:
    """More are pushed when some are done."""
    send(lines, *numbered(7))
    subscribe(lines, 3)
    first = lines.pushed(3)
    assert [frame.body for frame in first] == [b"0", b"1", b"2"]
    assert [(frame.subscription, frame.receipt) for frame in first] == [(7, 1), (7, 2), (7, 3)]
    assert is_quiet(lines)
    done(lines, first[1])  # and the one before
    assert [frame.body for frame in lines.pushed(2)] == [b"3", b"4"]
    assert is_quiet(lines)
    assert peeked(server.data, ORDERS) == [b"5", b"6"]


def test_an_arriving_message_is_pushed_at_once_within_the_window(lines: Lines, server: InThread) -> None:
    subscribe(lines, 2)
    with Lines(server.data) as sender:
        for body in (b"1", b"2", b"3"):
            send(sender, body)
    frames = lines.pushed(2)
    assert [frame.body for frame in frames] == [b"1", b"2"]
    assert is_quiet(lines)
    done(lines, frames[0])
    assert lines.pushed(1)[0].body == b"3"


def test_messages_are_ended_or_returned_one_by_one_in_any_order(lines: Lines, server: InThread) -> None:
    send(lines, *numbered(5))
    subscribe(lines, 3)
    frames = lines.pushed(3)
    lines.ask({"id": 2, "op": "end", "done": [frames[2].receipt], "back": [frames[0].receipt]})
    assert [frame.body for frame in lines.pushed(2)] == [b"0", b"3"]  # what is back comes again, at its place
    lines.write({"id": 3, "op": "done", "subscription": 7, "upto": frames[2].receipt})
    assert lines.read() == {"id": 3, "answer": {}}
    assert lines.pushed(1)[0].body == b"4"
    assert peeked(server.data, ORDERS) == []


def test_unsubscribing_deletes_the_done_and_returns_the_rest(lines: Lines, server: InThread) -> None:
    send(lines, *numbered(6))
    subscribe(lines, 4)
    frames = lines.pushed(4)
    lines.write({"id": 2, "op": "unsubscribe", "subscription": 7, "upto": frames[0].receipt})
    assert lines.read() == {"id": 2, "answer": {"returned": 3}}
    assert peeked(server.data, ORDERS) == numbered(6)[1:]
    assert is_quiet(lines)
    assert lines.error({"op": "end", "done": [frames[1].receipt]})["path"] == "done"
    assert lines.error({"id": 3, "op": "done", "subscription": 7, "upto": 1})["name"] == (
        "MQ_ERROR_INVALID_HANDLE"
    )
    assert lines.error({"op": "unsubscribe", "id": 4, "subscription": 7})["name"] == "MQ_ERROR_INVALID_HANDLE"
    subscribe(lines, 1)  # the number is free again
    assert lines.pushed(1)[0].body == b"1"


def test_unended_pushed_messages_return_with_the_connection(server: InThread) -> None:
    with Lines(server.data) as lines:
        send(lines, *numbered(5))
        subscribe(lines, 4)
        frames = lines.pushed(4)
        done(lines, frames[0])
        lines.pushed(1)
        assert peeked(server.data, ORDERS) == []
    until(lambda: peeked(server.data, ORDERS) == numbered(5)[1:], "all but the one that was done are back")


def test_subscriptions_and_other_readers_share_a_queue(lines: Lines, server: InThread) -> None:
    subscribe(lines, 2, 1)
    subscribe(lines, 2, 2)
    with Lines(server.data) as other:
        subscribe(other, 1)
        send(other, *numbered(6))
        mine, its = lines.pushed(4), other.pushed(1)
        assert {frame.subscription for frame in mine} == {1, 2}
        rest = other.ask({"op": "receive", "queue": ORDERS, "count": 10})["answer"]["messages"]
    assert sorted(frame.body for frame in mine + its) + bodies(rest) == numbered(6)


def test_a_subscription_of_one_connection_is_unknown_to_another(lines: Lines, server: InThread) -> None:
    send(lines, b"1")
    subscribe(lines, 1)
    (frame,) = lines.pushed(1)
    with Lines(server.data) as other:
        done(other, frame)
        error = other.error({"op": "unsubscribe", "subscription": 7})
        assert error["name"] == "MQ_ERROR_INVALID_HANDLE"
        assert "receipt 1" in other.error({"op": "end", "done": [frame.receipt]})["error"]
    lines.ask({"op": "end", "back": [frame.receipt]})
    assert lines.pushed(1)[0].body == b"1"


# -- ends that the client does not choose ------------------------------------------------------------------


@pytest.mark.parametrize("full", [False, True])
def test_a_client_is_notified_that_its_queue_was_deleted(lines: Lines, server: InThread, full: bool) -> None:
    send(lines, b"1")
    subscribe(lines, 1 if full else 2)
    (frame,) = lines.pushed(1)
    with Lines(server.data) as other:
        other.ask({"op": "delete", "queue": ORDERS})
        if full:  # it learns of it when it has room again
            done(lines, frame)
        notice = lines.notice()
        assert (notice["subscription"], notice["error"]["kind"]) == (7, "queue")
        name = "MQ_ERROR_QUEUE_NOT_AVAILABLE" if full else "MQ_ERROR_QUEUE_DELETED"
        assert notice["error"]["name"] == name
        assert notice["error"]["error"] == f"{ORDERS}: the queue was deleted"
        done(lines, frame)
        assert is_quiet(lines)
        other.ask({"op": "create", "queue": ORDERS})
        subscribe(lines, 1)
        send(other, b"2")
    assert lines.pushed(1)[0].body == b"2"


def test_a_purge_deletes_a_pushed_message_once_it_is_returned(lines: Lines, server: InThread) -> None:
    """Messages that were not pushed are deleted at once."""
    send(lines, *numbered(5))
    subscribe(lines, 2)
    frames = lines.pushed(2)
    lines.ask({"op": "purge", "queue": ORDERS})
    lines.ask({"op": "end", "back": [frames[0].receipt]})
    send(lines, b"later")
    assert lines.pushed(1)[0].body == b"later"
    lines.ask({"op": "unsubscribe", "subscription": 7})
    assert peeked(server.data, ORDERS) == [b"later"]


def test_a_server_that_stops_tells_so(lines: Lines, server: InThread) -> None:
    send(lines, *numbered(3))
    subscribe(lines, 2)
    lines.pushed(2)
    server.run(server.server.stop())
    notice = lines.notice()
    assert (notice["subscription"], notice["error"]["name"]) == (7, "MQ_ERROR_OPERATION_CANCELLED")
    assert lines.is_ended()
    assert peeked(server.data, ORDERS) == numbered(3)


def test_nothing_is_pushed_to_who_does_not_read(
    lines: Lines, server: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_UNREAD_S", 0.5)
    count, size = 60, 100_000
    lines.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with Lines(server.data) as other:
        for number in range(count):
            send(other, b"%06d" % number * (size // 6))
        lines.write({"id": 1, "op": "subscribe", "subscription": 7, "queue": ORDERS, "window": count})
        time.sleep(0.2)  # in which all could be pushed
        left = len(peeked(server.data, ORDERS))
        assert left > count // 2, "most are not taken out of the queue"
    until(lambda: len(peeked(server.data, ORDERS)) == count, "all are back when it has not read for long")


def test_who_reads_slowly_is_pushed_all_in_order(lines: Lines, server: InThread) -> None:
    count, size = 40, 100_000
    lines.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with Lines(server.data) as other:
        for number in range(count):
            send(other, b"%06d" % number * (size // 6))
    subscribe(lines, 10)
    for number in range(count):
        if number % 10 == 0:
            time.sleep(0.05)  # the reader is slow
        (frame,) = lines.pushed(1)
        assert frame.body == b"%06d" % number * (size // 6)
        done(lines, frame)
    lines.ask({"id": 2, "op": "unsubscribe", "subscription": 7})
    assert peeked(server.data, ORDERS) == []


# -- what is wrong -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [None, 0, -1, 1001, 1.5, "3", True, []])
def test_a_wrong_window_is_refused(lines: Lines, window: object) -> None:
    request = {"op": "subscribe", "subscription": 7, "queue": ORDERS, "window": window}
    assert lines.error(request)["path"] == "window"


@pytest.mark.parametrize("number", [None, 0, -1, 1 << 32, 1.5, "3", True, {}])
@pytest.mark.parametrize("op", ["subscribe", "unsubscribe", "done"])
def test_a_wrong_number_is_refused(lines: Lines, op: str, number: object) -> None:
    request = {"op": op, "subscription": number, "queue": ORDERS, "window": 1, "upto": 1}
    assert lines.error(request)["path"] == "subscription"  # of `done` as well, which has no id


@pytest.mark.parametrize("upto", [None, -1, 3, 1 << 53, 1.5, "1", True])
def test_a_receipt_that_was_not_given_ends_nothing(lines: Lines, server: InThread, upto: object) -> None:
    send(lines, *numbered(3))
    subscribe(lines, 2)
    lines.pushed(2)
    assert lines.error({"op": "done", "subscription": 7, "upto": upto})["path"] == "upto"
    if upto is not None:
        assert lines.error({"op": "unsubscribe", "subscription": 7, "upto": upto})["path"] == "upto"
    assert is_quiet(lines)
    assert lines.ask({"op": "unsubscribe", "subscription": 7})["answer"] == {"returned": 2}
    assert peeked(server.data, ORDERS) == numbered(3)


def test_subscriptions_have_limits(lines: Lines, server: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "SUBSCRIPTIONS_MAX", 2)
    monkeypatch.setattr(held_messages, "HELD_MAX", 5)
    ask = {"op": "subscribe", "queue": ORDERS}
    subscribe(lines, 3)
    assert lines.error({**ask, "subscription": 7, "window": 1})["path"] == "subscription"
    error = lines.error({**ask, "subscription": 8, "window": 3})
    assert error["name"] == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    subscribe(lines, 1, 8)
    error = lines.error({**ask, "subscription": 9, "window": 1})
    assert error["name"] == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    send(lines, *numbered(6))
    assert len(lines.pushed(4)) == 4
    received = lines.ask({"op": "receive", "queue": ORDERS, "count": 5})["answer"]["messages"]
    assert bodies(received) == [b"4"]  # the room that is left
    for number in (7, 8):
        lines.ask({"op": "unsubscribe", "subscription": number})
    received = lines.ask({"op": "receive", "queue": ORDERS, "count": 10})["answer"]["messages"]
    assert len(received) == 4  # and all of it again


def test_a_queue_that_is_not_there_is_reported(lines: Lines) -> None:
    request = {"op": "subscribe", "subscription": 7, "window": 1, "queue": r"private$\nothing"}
    assert lines.error(request)["name"] == "MQ_ERROR_QUEUE_NOT_FOUND"
    subscribe(lines, 1)  # the number is free


def test_a_request_is_started_before_a_later_unanswered_end(lines: Lines) -> None:
    send(lines, b"1")
    subscribe(lines, 1)
    (frame,) = lines.pushed(1)
    lines.write(
        {"id": 2, "op": "end", "back": [frame.receipt]},
        {"op": "done", "subscription": 7, "upto": frame.receipt},
    )
    assert "answer" in lines.read()
    assert lines.pushed(1)[0].body == b"1"


# -- records in answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_",
    [
        {"op": "peek", "count": 5},
        {"op": "receive", "count": 5},
        {"op": "read", "action": "peek"},
        {"op": "read", "action": "receive"},
    ],
    ids=str,
)
def test_answers_have_records_if_they_are_asked_for(lines: Lines, server: InThread, request_: dict) -> None:
    count = 1 if request_["op"] == "read" else 2
    send(lines, b"1" * 1000, b"2")
    plain = lines.ask({**request_, "queue": ORDERS})["answer"]
    messages = plain["messages"] if count == 2 else [plain["message"]]
    lines.ask({"op": "end", "back": [message["receipt"] for message in messages if "receipt" in message]})
    lines.write({**request_, "id": 9, "queue": ORDERS, "records": True}, {"id": 10, "op": "status"})
    assert lines.read() == {"id": 9, "answer": {"records": count}}
    frames = lines.pushed(count)
    assert lines.read()["id"] == 10
    for frame, message in zip(frames, messages, strict=True):
        receipt = message.pop("receipt", None)
        if receipt is not None:
            message["deliveries"] += 1  # it was given back
        assert frame.subscription == 0
        assert frame.receipt == (0 if receipt is None else receipt + count)
        assert json.loads(json.dumps(ReceivedMessage.from_record(frame.record).to_json())) == message


def test_records_are_all_of_a_message(lines: Lines) -> None:
    send(lines, b"1")
    request = {"op": "peek", "queue": ORDERS, "records": True}
    assert lines.error({**request, "body_max": 1})["path"] == "records"
    assert lines.error({**request, "records": 1})["path"] == "records"
    lines.write({**request, "queue": LEDGER, "id": 1})
    assert lines.read()["answer"] == {"records": 0}


def test_the_ends_of_the_messages_before_need_not_be_awaited(lines: Lines, server: InThread) -> None:
    send(lines, *numbered(3))
    done: list[int] = []
    for number in range(3):
        request = {"op": "receive", "queue": ORDERS, "done": done, "awaited": False}
        (message,) = lines.ask(request)["answer"]["messages"]
        assert bodies([message]) == [b"%d" % number]
        done = [message["receipt"]]
    assert lines.ask({"op": "end", "done": done})["answer"] == {"ended": 1}
    assert lines.error({"op": "receive", "queue": ORDERS, "awaited": 1})["path"] == "awaited"
    assert peeked(server.data, ORDERS) == []


def test_a_frame_is_refused_where_lines_are_expected(lines: Lines) -> None:
    lines.raw(struct.pack("<BBHIIQ", 0, 1, 0, 3, 1, 1) + b"abc\n")
    assert "not JSON" in lines.read()["error"]["error"]
    assert lines.ask({"op": "status"})["answer"]["name"] == "alpha"
