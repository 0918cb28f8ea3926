"""How the control channel ends: every change is answered, and unauthenticated clients are limited."""

from __future__ import annotations

import socket
import stat
import threading
from pathlib import Path

import pytest

from msmqwire.qm.runtime.data_folder import STORE
from msmqwire.qm.runtime.local import attach
from msmqwire.service.control import server as control
from tests.support.qm.control_lines import Lines
from tests.support.running import (
    ORDERS,
    InThread,
    bodies,
    message,
    options,
    peeked,
    process,
    put,
    recoverable,
    served,
    until,
)

pytestmark = pytest.mark.uvloop

TO_ORDERS = rf"DIRECT=OS:alpha\{ORDERS}"
WAITS = {"id": "waits", "op": "receive", "queue": ORDERS, "wait_ms": 600_000}


def sending(number: int) -> dict[str, object]:
    return {"id": number, "op": "send", "to": TO_ORDERS, "messages": recoverable(b"%d" % number)}


def test_a_stop_answers_all_that_it_has_done(data: Path) -> None:
    answered: list[int] = []
    with served(options(data, ORDERS)) as server, Lines(data) as lines:

        def listen() -> None:
            while line := lines.line():
                answered.append(int(line["id"]))

        listener = threading.Thread(target=listen)
        listener.start()
        number = 0
        while len(answered) < 50:
            lines.write(*(sending(number + n) for n in range(20)))
            number += 20
        server.run(server.server.stop())
        listener.join()
    with attach(data) as local:
        assert local.call("show", queue=ORDERS)["messages"] == len(answered)


def test_a_stop_ends_those_that_wait_with_nothing(data: Path) -> None:
    with served(options(data, ORDERS)) as server, Lines(data) as lines:
        lines.write(WAITS)
        until(lambda: readers(server) == 1, "the request waits")
        server.run(server.server.stop())
        assert lines.line() == {"id": "waits", "answer": {"messages": []}}
        assert lines.is_ended()


def readers(server: InThread) -> int:
    """The number of readers that have the queue open."""
    with attach(server.data) as local:
        return int(local.call("show", queue=ORDERS)["open"])


def test_who_asks_for_nothing_more_is_answered(server: InThread) -> None:
    with Lines(server.data) as lines:
        lines.write(*(sending(number) for number in range(50)), WAITS)
        lines.socket.shutdown(socket.SHUT_WR)
        answers = [lines.read() for _ in range(51)]
        assert lines.is_ended()
    assert sorted(answer["id"] for answer in answers if "sent" in answer["answer"]) == list(range(50))
    # what the last request received was given back when its connection ended
    until(lambda: len(peeked(server.data, ORDERS)) == 50, "all messages are given back")


def test_what_was_wrong_in_a_request_leaves_its_receipts(server: InThread) -> None:
    with Lines(server.data) as lines:
        lines.ask(sending(7))
        (received,) = lines.ask({"op": "receive", "queue": ORDERS})["answer"]["messages"]
        wrong = {"op": "receive", "queue": r"private$\nothing", "done": [received["receipt"]]}
        assert lines.error(wrong)["name"] == "MQ_ERROR_QUEUE_NOT_FOUND"
        assert lines.ask({"op": "end", "back": [received["receipt"]]})["answer"] == {"ended": 1}
    assert peeked(server.data, ORDERS) == [b"7"]


def test_who_does_not_read_is_not_listened_to(server: InThread) -> None:
    size = 1 << 20
    with attach(server.data) as local:
        put(local, ORDERS, message(bytes(size)))
    with Lines(server.data) as lines:
        count = 200
        lines.write(*({"id": n, "op": "peek", "queue": ORDERS} for n in range(count)))
        with Lines(server.data) as other:
            assert (
                other.ask({"op": "status"})["answer"]["messages"] == 1
            )  # the other requests have been started by now
        assert server.do(lambda _: unread(server)) < 20 * size
        assert [lines.read()["id"] for _ in range(count)] == list(range(count))


def test_an_unread_client_is_dropped_and_its_messages_return(
    server: InThread, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with attach(server.data) as local:
        for number in range(30):
            put(local, ORDERS, message(bytes([number]) * 200_000))
    # The clients before and after may be slow.
    with Lines(server.data) as lines, monkeypatch.context() as impatient:
        impatient.setattr(control, "_UNREAD_S", 0.2)
        lines.write(*({"id": n, "op": "receive", "queue": ORDERS, "count": 5} for n in range(6)))
        until(lambda: "does not read its answers" in caplog.text, "the client is given up")
        until(lambda: server.do(lambda _: clients(server)) == 0, "its connection is ended")
        assert server.do(lambda _: unread(server)) == 0
    assert [body[0] for body in peeked(server.data, ORDERS)] == list(range(30))


def clients(server: InThread) -> int:
    """The number of clients of the control channel."""
    return server.server._control.clients  # type: ignore[union-attr]


def unread(server: InThread) -> int:
    """The number of bytes of unread answers."""
    users = server.server._control._clients  # type: ignore[union-attr]
    transports = [user._transport for user in users if user._transport is not None]
    return sum(transport.get_write_buffer_size() for transport in transports)


# -- unauthenticated clients ----------------------------------------------------------------------------


@pytest.fixture
def by_tcp(data: Path) -> object:
    with served(options(data, ORDERS, control_tcp=True)) as server:
        yield server


@pytest.mark.parametrize("line", [b"no JSON\n", b"[]\n", b"{}\n", b"x" * 10_000])
def test_the_first_line_without_a_login_is_the_last(by_tcp: InThread, line: bytes) -> None:
    with Lines(by_tcp.data) as lines:
        lines.raw(line)
        assert lines.is_ended()


def test_a_connection_without_a_login_has_little_time(
    by_tcp: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_AUTHENTICATE_S", 0.1)
    with Lines(by_tcp.data) as lines:
        assert lines.is_ended()
    with Lines(by_tcp.data) as lines:
        assert lines.ask({"op": "status", "token": lines.token})["answer"]["name"] == "alpha"
        lines.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            lines.is_ended()


def test_there_are_few_connections_without_a_login(by_tcp: InThread) -> None:
    clients = [Lines(by_tcp.data) for _ in range(control._UNAUTHENTICATED_MAX + 1)]
    try:
        assert clients[-1].is_ended()
        assert clients[0].ask({"op": "status", "token": clients[0].token})["answer"]["name"] == "alpha"
    finally:
        for client in clients:
            client.close()


# -- what is left behind --------------------------------------------------------------------------------


def test_the_store_is_its_owners_alone(data: Path) -> None:
    data.mkdir(mode=0o755)
    with process(data, "--queue", ORDERS), attach(data) as local:
        put(local, ORDERS, *recoverable(b"secret"))
        modes = {
            path.name: stat.S_IMODE(path.stat().st_mode) for path in data.iterdir() if STORE in path.name
        }
    assert {STORE, f"{STORE}.lock", f"{STORE}-wal"} <= set(modes)
    assert set(modes.values()) == {0o600}


def test_the_folder_of_a_socket_goes_with_the_next_start(tmp_path: Path) -> None:
    data = tmp_path / ("x" * 100)
    with process(data, "--queue", ORDERS) as server:
        with Lines(data) as lines:
            before = Path(lines.socket.getpeername()).parent
        server.kill()
    assert before.exists()
    with process(data), attach(data) as local:
        assert not before.exists()
        assert bodies(local.call("peek", queue=ORDERS)["messages"]) == []
