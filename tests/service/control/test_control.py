"""The control channel: lines of JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from msmqwire.qm.model.effects import ReadCompleted
from msmqwire.qm.runtime import held_messages
from msmqwire.qm.runtime.operations import LocalSession
from tests.support.qm.control_lines import Lines
from tests.support.running import ORDERS, InThread, bodies, message, peeked, recoverable, until

pytestmark = pytest.mark.uvloop

TO_ORDERS = rf"DIRECT=OS:alpha\{ORDERS}"


@pytest.fixture
def lines(server: InThread) -> Iterator[Lines]:
    with Lines(server.data) as lines:
        yield lines


# -- requests and answers -------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 17, "seven", None, [1, {"a": None}], 1.5, True, {"b": []}])
def test_an_answer_bears_the_id_of_its_request(lines: Lines, number: object) -> None:
    answer = lines.ask({"id": number, "op": "status"})
    assert answer["id"] == number
    assert answer["answer"]["name"] == "alpha"
    assert lines.ask({"id": number, "op": "nothing"})["id"] == number


def test_a_request_without_an_id_is_answered_with_none(lines: Lines) -> None:
    assert lines.ask({"op": "status"})["id"] is None


def test_many_requests_are_under_way_at_once(lines: Lines) -> None:
    count = 2500  # more than the server accepts before it has answered some
    lines.write(
        *({"id": n, "op": "send", "to": TO_ORDERS, "messages": recoverable(b"%d" % n)} for n in range(count))
    )
    answers = [lines.read() for _ in range(count)]
    assert sorted(answer["id"] for answer in answers) == list(range(count))
    assert all(len(answer["answer"]["sent"]) == 1 for answer in answers)
    lines.write({"id": "status", "op": "status"})
    assert lines.read()["answer"]["messages"] == count


def test_requests_of_one_connection_are_begun_in_their_order(lines: Lines, server: InThread) -> None:
    lines.write(
        *({"id": n, "op": "send", "to": TO_ORDERS, "messages": [message(b"%d" % n)]} for n in range(300))
    )
    for _ in range(300):
        lines.read()
    assert peeked(server.data, ORDERS) == [b"%d" % n for n in range(300)]


def test_a_request_that_waits_holds_up_no_other(lines: Lines) -> None:
    lines.write({"id": "waits", "op": "receive", "queue": ORDERS, "wait_ms": 3_600_000})
    assert lines.ask({"id": "other", "op": "status"})["id"] == "other"
    lines.write({"id": "send", "op": "send", "to": TO_ORDERS, "messages": [message(b"late")]})
    answers = {answer["id"]: answer["answer"] for answer in (lines.read(), lines.read())}
    assert len(answers["send"]["sent"]) == 1
    assert bodies(answers["waits"]["messages"]) == [b"late"]


def test_a_line_may_come_in_segments_and_many_in_one(lines: Lines) -> None:
    for byte in b'{"id": 1, "op": "status"}\n{"id": 2, "op": "status"}':
        lines.raw(bytes([byte]))
    lines.raw(b'\n\n{"id": 3, "op": "status"}\r\n')
    answers = {answer["id"]: answer for answer in (lines.read() for _ in range(4))}
    assert set(answers) == {1, 2, 3, None}
    assert "not JSON" in answers[None]["error"]["error"]  # the empty line


def test_unended_messages_return_when_the_connection_ends(server: InThread) -> None:
    with Lines(server.data) as first:
        first.ask({"op": "send", "to": TO_ORDERS, "messages": recoverable(b"1", b"2", b"3")})
        received = first.ask({"op": "receive", "queue": ORDERS, "count": 2})["answer"]["messages"]
        assert bodies(received) == [b"1", b"2"]
        assert first.ask({"op": "end", "done": [received[0]["receipt"]]})["answer"] == {"ended": 1}
        assert peeked(server.data, ORDERS) == [b"3"]
    until(lambda: peeked(server.data, ORDERS) == [b"2", b"3"], "the second message is given back")


def test_a_message_given_back_is_where_it_was(lines: Lines, server: InThread) -> None:
    lines.ask({"op": "send", "to": TO_ORDERS, "messages": recoverable(b"1", b"2", b"3")})
    received = lines.ask({"op": "receive", "queue": ORDERS, "count": 3})["answer"]["messages"]
    done, back = [received[0]["receipt"]], [received[2]["receipt"], received[1]["receipt"]]
    assert lines.ask({"op": "end", "done": done, "back": back})["answer"] == {"ended": 3}
    assert peeked(server.data, ORDERS) == [b"2", b"3"]


@pytest.mark.parametrize(
    "wrong", [{"done": [1, 1]}, {"back": [1, 1]}, {"done": [1], "back": [1]}, {"done": [1, 7]}]
)
def test_receipts_that_do_not_hold_end_nothing(lines: Lines, server: InThread, wrong: dict) -> None:
    lines.ask({"op": "send", "to": TO_ORDERS, "messages": recoverable(b"1")})
    assert lines.ask({"op": "receive", "queue": ORDERS})["answer"]["messages"][0]["receipt"] == 1
    assert lines.error({"op": "end", **wrong})["path"] in ("done", "back")
    assert peeked(server.data, ORDERS) == []
    assert lines.ask({"op": "end", "back": [1]})["answer"] == {"ended": 1}
    assert peeked(server.data, ORDERS) == [b"1"]


def test_a_receipt_is_of_one_connection_alone(lines: Lines, server: InThread) -> None:
    lines.ask({"op": "send", "to": TO_ORDERS, "messages": recoverable(b"1")})
    lines.ask({"op": "receive", "queue": ORDERS})
    with Lines(server.data) as other:
        assert "receipt 1" in other.error({"op": "end", "done": [1]})["error"]


def test_a_reader_holds_no_more_than_it_may(
    lines: Lines, server: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_messages, "HELD_MAX", 3)
    lines.ask({"op": "send", "to": TO_ORDERS, "messages": recoverable(*(b"%d" % n for n in range(5)))})
    received = lines.ask({"op": "receive", "queue": ORDERS, "count": 5})["answer"]["messages"]
    assert bodies(received) == [b"0", b"1", b"2"]
    assert lines.error({"op": "receive", "queue": ORDERS})["path"] == "count"
    lines.ask({"op": "end", "done": [row["receipt"] for row in received]})
    assert len(lines.ask({"op": "receive", "queue": ORDERS, "count": 5})["answer"]["messages"]) == 2


def test_an_answer_ends_when_it_is_large(lines: Lines, server: InThread) -> None:
    big = b"x" * 3_000_000
    for _ in range(4):
        lines.ask({"op": "send", "to": TO_ORDERS, "messages": [message(big)]})
    assert len(lines.ask({"op": "peek", "queue": ORDERS, "count": 10})["answer"]["messages"]) == 3
    assert len(lines.ask({"op": "receive", "queue": ORDERS, "count": 10})["answer"]["messages"]) == 3
    assert len(lines.ask({"op": "receive", "queue": ORDERS, "count": 10})["answer"]["messages"]) == 1


def test_a_session_closed_as_its_message_comes_returns_it(server: InThread) -> None:
    async def race() -> None:
        driver = server.server.driver
        assert driver is not None
        on_read, reader = driver.on_read, LocalSession(driver)

        def goes_when_it_comes(request: int, report: Callable[[ReadCompleted], None]) -> None:
            def completed(read: ReadCompleted) -> None:
                report(read)
                waiting.cancel()
                reader.close()

            on_read(request, completed)

        driver.on_read = goes_when_it_comes  # type: ignore[method-assign]
        waiting = asyncio.create_task(reader.run({"op": "receive", "queue": ORDERS, "wait_ms": 3_600_000}))
        await asyncio.sleep(0)
        await LocalSession(driver).run({"op": "send", "to": TO_ORDERS, "messages": [message(b"1")]})
        with pytest.raises(asyncio.CancelledError):
            await waiting

    server.run(race())
    until(lambda: peeked(server.data, ORDERS) == [b"1"], "the message is given back")


def test_two_users_share_a_queue_and_no_message_comes_to_both(server: InThread) -> None:
    count = 400
    with Lines(server.data) as first, Lines(server.data) as second:
        users = (first, second)
        for user in users:
            user.write(
                *(
                    {"id": n, "op": "receive", "queue": ORDERS, "wait_ms": 3_600_000}
                    for n in range(count // 2)
                )
            )
        with Lines(server.data) as writer:
            for n in range(count):
                writer.ask({"op": "send", "to": TO_ORDERS, "messages": [message(b"%d" % n)]})
        received = [bodies(user.read()["answer"]["messages"]) for user in users for _ in range(count // 2)]
    assert sorted(received, key=lambda answer: int(answer[0])) == [[b"%d" % n] for n in range(count)]
