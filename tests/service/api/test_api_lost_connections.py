"""Connections that end at any point of a receive: no message is lost, and none is held for nobody."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import time
from base64 import b64encode
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from msmqwire.qm.runtime.api.messaging_limits import MessagingLimits
from msmqwire.qm.runtime.console.options import ConsoleLimits
from tests.support.qm.api_client import ApiClient, WithApi, with_api
from tests.support.qm.event_client import connected, raw_request
from tests.support.running import LEDGER, ORDERS, until

RESET = struct.pack("ii", 1, 0)
_SETTLE_S = 3600
"""So long that no message is back by time."""


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithApi]:
    limits = ConsoleLimits(wrong_token_s=0.0, messaging=MessagingLimits(stall_s=0.5))
    with with_api(tmp_path_factory.mktemp("lost") / "data", limits=limits) as running:
        yield running


def path_of(queue: str) -> str:
    return f"/queues/{quote(queue, safe='')}/receive"


def send(client: ApiClient, queue: str, *labels: str, body: bytes = b"") -> None:
    messages = [{"label": label, "body": b64encode(body).decode()} for label in labels]
    client.told("POST", "/messages", {"to": queue, "messages": messages}, 201)


def taken(client: ApiClient, queue: str) -> list[tuple[str, int]]:
    """Return labels and deliveries of the messages that are there, and delete them."""
    got = client.told("POST", path_of(queue), {"count": 1000})["messages"]
    client.told("POST", "/settle", {"done": [message["receipt"] for message in got]})
    return [(message["label"], message["deliveries"]) for message in got]


def held(api: WithApi) -> int:
    def count(server: Any) -> int:
        number: int = server._console.api.messaging.held
        return number

    return api.server.do(count)


def readers(api: WithApi, queue: str = ORDERS) -> int:
    """Return the number of reads that wait for a message of a queue."""

    def count(server: Any) -> int:
        found = server.driver.core.queue_manager.queues.values()
        return sum(
            len(descriptor.waiting)
            for one in found
            if one.pathname.lower().endswith(queue)
            for descriptor in one.descriptors.values()
        )

    return api.server.do(count)


def end(connection: socket.socket, how: str) -> None:
    if how == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    if how == "half":
        connection.shutdown(socket.SHUT_WR)
    else:
        connection.close()


@pytest.mark.parametrize("how", ["close", "reset", "half"])
@pytest.mark.parametrize("queue", [ORDERS, LEDGER])
def test_a_wait_ends_with_its_connection(api: WithApi, how: str, queue: str) -> None:
    told: dict[str, Any] = {"wait_s": 60, "settle_within_s": _SETTLE_S}
    transaction = ""
    if queue == LEDGER:
        transaction = api.own.told("POST", "/transactions", status=201)["transaction"]
        told["transaction"] = transaction
    with connected(api.own) as connection:
        connection.sendall(raw_request(api.own, "POST", path_of(queue), told))
        until(lambda: readers(api, queue) == 1, "it waits")
        end(connection, how)
        until(lambda: readers(api, queue) == 0, "it does not wait any more")
    send(api.own, queue, "a")
    if transaction:
        api.own.told("POST", f"/transactions/{transaction}/commit")
    assert (taken(api.own, queue), held(api)) == ([("a", 0)], 0)


def test_a_request_cut_at_any_point_takes_nothing(api: WithApi) -> None:
    request = raw_request(api.own, "POST", path_of(ORDERS), {"settle_within_s": _SETTLE_S})
    send(api.own, ORDERS, "a")
    for cut in range(0, len(request), 7):
        with connected(api.own) as connection:
            connection.sendall(request[:cut])
    assert (taken(api.own, ORDERS), held(api)) == ([("a", 0)], 0)


@pytest.mark.parametrize("pause_ms", [0, 1, 2, 4, 8])
def test_a_client_that_leaves_around_its_answer_keeps_nothing(api: WithApi, pause_ms: int) -> None:
    """The message is back at once, or it was written and is back in time; it is never lost."""
    with connected(api.own) as connection:
        told = {"wait_s": 60, "settle_within_s": 1}
        connection.sendall(raw_request(api.own, "POST", path_of(ORDERS), told))
        until(lambda: readers(api) == 1, "it waits")
        send(api.own, ORDERS, "a")
        time.sleep(pause_ms / 1000)  # another moment of the way of the answer each time
        end(connection, "reset")
    got: list[tuple[str, int]] = []
    until(lambda: bool(got.extend(taken(api.own, ORDERS)) or got), "the message is back")
    assert [label for label, _ in got] == ["a"]
    until(lambda: held(api) == 0, "nothing is held")


@pytest.mark.parametrize("how", ["reset", "never reads"])
def test_an_answer_that_is_not_read_gives_its_messages_back(api: WithApi, how: str) -> None:
    """8 MiB are more than the systems take without a reader: all are back as soon as that is known."""
    send(api.own, ORDERS, *(str(number) for number in range(8)), body=bytes(700 << 10))
    with connected(api.own, receive_buffer=4096) as connection:
        told = {"count": 8, "settle_within_s": _SETTLE_S}
        connection.sendall(raw_request(api.own, "POST", path_of(ORDERS), told))
        until(lambda: held(api) == 8, "they are received")
        if how == "reset":
            connection.recv(10_000)
            end(connection, how)
        until(lambda: held(api) == 0, "they are back")
    assert taken(api.own, ORDERS) == [(str(number), 0) for number in range(8)]


def test_an_answer_is_read_slowly_and_whole(api: WithApi) -> None:
    send(api.own, ORDERS, *(str(number) for number in range(4)), body=bytes(100 << 10))
    with connected(api.own, receive_buffer=4096) as connection:
        told = {"count": 8, "settle_within_s": _SETTLE_S}
        connection.sendall(raw_request(api.own, "POST", path_of(ORDERS), told))
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(1000)
        head, _, data = data.partition(b"\r\n\r\n")
        size = int(head.split(b"Content-Length: ")[1].split()[0])
        while len(data) < size:
            data += connection.recv(8000)
        assert held(api) == 4
        send_more = raw_request(api.own, "POST", path_of(ORDERS), {"count": 8})
        connection.sendall(send_more)  # the connection can be used on
        assert connection.recv(12) == b"HTTP/1.1 200"
    receipts = [message["receipt"] for message in json.loads(data)["messages"]]
    assert api.own.told("POST", "/settle", {"done": receipts}) == {"done": 4, "back": 0}


def test_bytes_during_a_wait_do_not_pile_up(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A client that floods its waiting connection is cut off, or its bytes are not taken."""
    with with_api(tmp_path_factory.mktemp("flood") / "data") as running:
        with connected(running.own) as connection:
            request = raw_request(running.own, "POST", path_of(ORDERS), {"wait_s": 60})
            connection.sendall(request)
            until(lambda: readers(running) == 1, "it waits")
            connection.settimeout(1.0)
            sent = 0
            with contextlib.suppress(TimeoutError, ConnectionError):
                while sent < 64 << 20:
                    sent += connection.send(raw_request(running.own, "GET", "/queues") * 100)
        assert sent < 64 << 20
