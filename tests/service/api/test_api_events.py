"""Messages as server-sent events: the window, slow readers, and the end of a stream."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import quote

import pytest

from msmqwire.qm.runtime.api.messaging_limits import MessagingLimits
from msmqwire.qm.runtime.console.options import ConsoleLimits
from msmqwire.qm.runtime.operations import LocalSession
from tests.support.qm.api_client import ApiClient, WithApi, with_api
from tests.support.qm.event_client import EventStream
from tests.support.running import ORDERS, until

LIMITS = MessagingLimits(streams=8, streams_per_token=6, stall_s=0.5, keep_alive_s=0.2, unread_bytes=1 << 20)


@pytest.fixture
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithApi]:
    limits = ConsoleLimits(wrong_token_s=0.0, messaging=LIMITS)
    with with_api(tmp_path_factory.mktemp("events") / "data", limits=limits) as running:
        yield running


def send(client: ApiClient, *labels: str, body: bytes = b"") -> None:
    messages = [{"label": label, "body": b64encode(body).decode()} for label in labels]
    client.told("POST", "/messages", {"to": ORDERS, "messages": messages}, 201)


def receive(client: ApiClient, **more: Any) -> list[dict[str, Any]]:
    path = f"/queues/{quote(ORDERS, safe='')}/receive"
    received: list[dict[str, Any]] = client.told("POST", path, more)["messages"]
    return received


def labels(messages: list[dict[str, Any]]) -> list[str]:
    return [message["label"] for message in messages]


def test_messages_come_as_far_as_the_window_allows(api: WithApi) -> None:
    send(api.own, "a", "b")
    with EventStream(api.own, ORDERS, "?window=3") as stream:
        assert stream.status == 200
        assert b"Content-Type: text/event-stream" in stream.head
        got = [stream.message(), stream.message()]
        send(api.own, "c", "d")
        got.append(stream.message())
        assert labels(got) == ["a", "b", "c"]
        assert stream.is_silent(0.3)
        told = {"done": [got[1]["receipt"]], "back": [got[0]["receipt"]]}
        api.own.told("POST", "/settle", told)
        again = [stream.message(), stream.message()]
        assert [(one["label"], one["deliveries"]) for one in again] == [("a", 1), ("d", 0)]


def test_receipts_are_good_for_a_time_after_the_stream(api: WithApi) -> None:
    send(api.own, "a", "b")
    with EventStream(api.own, ORDERS, "?settle_within_s=1") as stream:
        first, second = stream.message(), stream.message()
        assert stream.is_silent(1.5)  # longer than the time, which has not begun
    assert receive(api.own) == []
    api.own.told("POST", "/settle", {"done": [first["receipt"]]})
    (again,) = receive(api.own, wait_s=10)
    assert (again["label"], again["deliveries"]) == ("b", 0)  # pushed, and named by nobody
    assert api.own.told("POST", "/settle", {"done": [second["receipt"]]}, 409)["name"] == "ReceiptUnknown"


def test_a_reader_that_stops_holds_what_it_can_have_read(api: WithApi) -> None:
    """It has at most a part of 10 messages of 400 KiB: as its stream ends, all are back, not after a time."""
    for number in range(2):
        send(api.own, *(f"{number}{i}" for i in range(5)), body=bytes(400 << 10))
    query = "?window=1000&settle_within_s=3600"
    with EventStream(api.own, ORDERS, query, receive_buffer=4096) as stream:
        assert stream.status == 200
        left: list[dict[str, Any]] = []

        def all_are_back() -> bool:
            left.extend(receive(api.own, count=20))
            return len(left) == 10

        until(all_are_back, "all messages are back")
    assert len(set(labels(left))) == 10
    assert {message["deliveries"] for message in left} == {0}


def test_readers_that_stop_hold_little_memory_together(api: WithApi) -> None:
    with ExitStack() as streams:
        for _ in range(6):
            streams.enter_context(
                EventStream(api.own, ORDERS, "?window=1000&settle_within_s=1", receive_buffer=4096)
            )
        send(api.own, *(str(number) for number in range(10)), body=bytes(400 << 10))
        seen = [api.server.do(unread)]

        def all_have_ended() -> bool:
            seen.append(api.server.do(unread))
            return seen[-1] == 0

        until(all_have_ended, "the streams have ended")
    assert 0 < max(seen) < LIMITS.unread_bytes + (600 << 10)


def unread(server: Any) -> int:
    count: int = server._console.api.messaging.unread
    return count


def test_an_idle_stream_is_kept_alive(api: WithApi) -> None:
    with EventStream(api.own, ORDERS) as stream:
        assert [stream.event(), stream.event()] == [(":", None), (":", None)]


def test_too_many_streams_are_refused_and_none_ended(api: WithApi) -> None:
    with ExitStack() as opened:
        streams = [opened.enter_context(EventStream(api.own, ORDERS)) for _ in range(6)]
        for _ in range(20):
            with EventStream(api.own, ORDERS) as refused:
                assert refused.status == 429
        send(api.own, *(str(number) for number in range(6)))
        assert sorted(labels([stream.message() for stream in streams])) == list("012345")
    with EventStream(api.own, ORDERS) as stream:
        assert stream.status == 200


@pytest.mark.parametrize("query", ["?window=0", "?window=1001", "?window=x", "?settle_within_s=3601", "?x=1"])
def test_a_wrong_parameter_opens_no_stream(api: WithApi, query: str) -> None:
    with EventStream(api.own, ORDERS, query) as stream:
        assert stream.status == 400


def test_a_deleted_queue_ends_its_streams_with_the_reason(api: WithApi) -> None:
    with EventStream(api.own, ORDERS) as stream:
        stream.event()
        delete(api, ORDERS)
        while (event := stream.event()) is not None and event[0] == ":":
            pass
        assert event is not None
        assert (event[0], event[1]["name"]) == ("end", "MQ_ERROR_QUEUE_DELETED")
        assert stream.event() is None


def delete(api: WithApi, queue: str) -> None:
    driver = api.server.server.driver
    assert driver is not None
    api.server.run(LocalSession(driver).run({"op": "delete", "queue": queue}))


def test_the_end_of_the_server_ends_streams(api: WithApi) -> None:
    send(api.own, "a")
    with EventStream(api.own, ORDERS) as stream:
        assert stream.message()["label"] == "a"
        api.server.run(api.server.server.stop())
        while (event := stream_event(stream)) is not None and event[0] == ":":
            pass
        assert event is None or event[1]["status"] == 503


def stream_event(stream: EventStream) -> tuple[str, Any] | None:
    try:
        return stream.event()
    except (ConnectionError, ValueError):
        return None


def test_a_right_to_read_opens_no_stream(tmp_path_factory: pytest.TempPathFactory) -> None:
    reads = with_api(tmp_path_factory.mktemp("reads") / "data", write=False)
    with reads as running, EventStream(running.own, ORDERS) as stream:
        assert stream.status == 403
