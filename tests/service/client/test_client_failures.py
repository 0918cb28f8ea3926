"""The client when things fail: unreachable peers, restarts, state files, kills."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import msmqwire
from msmqwire.errors import (
    InvalidName,
    QueueError,
    StoreDamaged,
    StoreForeign,
    StoreInUse,
    StoreRefused,
    Unreachable,
)
from msmqwire.qm.client import Connection
from msmqwire.qm.runtime.local import attach
from tests.support.running import PATIENCE_S, InThread, Process, bodies, environment, options, served, until
from tests.support.sending import LEDGER, ORDERS, connect, messages, run

ADDRESS = "127.0.0.34"
TO_ADDRESS = rf"DIRECT=TCP:{ADDRESS}\{ORDERS}"
UNKNOWN = rf"DIRECT=OS:nowhere.invalid\{ORDERS}"


@contextmanager
def silent() -> Iterator[int]:
    """A port that accepts connections and never answers."""
    with socket.create_server((ADDRESS, 0)) as listening:
        yield listening.getsockname()[1]


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.create_server((ADDRESS, 0)) as reserved:
        port: int = reserved.getsockname()[1]
        return port


def lossy(queue: str = ORDERS, **more: Any) -> Connection:
    """A connection to an address without a server, with a short drain time."""
    arguments = {"port": free_port(), "drain": 0.1, **more}
    return msmqwire.connect(rf"DIRECT=TCP:{ADDRESS}\{queue}", **arguments)


def all_of(server: InThread | Process, queue: str = LEDGER) -> list[dict[str, Any]]:
    """Receive all messages of a queue, also if one answer does not hold them."""
    with attach(server.data) as local:
        received: list[dict[str, Any]] = []
        while batch := local.call("receive", queue=queue, count=1000)["messages"]:
            local.call("end", done=[message["receipt"] for message in batch])
            received += batch
    return received


# -- unreachable peers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, obstacle",
    [(TO_ADDRESS, "(nobody listens at {})"), (UNKNOWN, "(nowhere.invalid has no address)")],
)
def test_leaving_says_what_is_lost_and_why(name: str, obstacle: str) -> None:
    port = free_port()
    obstacle = obstacle.format(f"{ADDRESS}:{port}")

    async def send(count: int) -> None:
        async with msmqwire.connect(name, port=port, drain=0.1) as client:
            for _ in range(count):
                sent = await client.send(b"x", recoverable=True)
            with pytest.raises(TimeoutError) as caught:
                await sent.transferred(timeout=0.5)
            assert str(caught.value) == f"{sent.identifier}: not transferred within 0.5 s {obstacle}"

    with pytest.raises(Unreachable) as left:
        run(send(1))
    assert str(left.value) == f"a message was not transferred {obstacle}"
    with pytest.raises(Unreachable) as left:
        run(send(3))
    assert str(left.value) == f"3 messages were not transferred {obstacle}"


def test_a_peer_that_says_nothing() -> None:
    with silent() as port, pytest.raises(Unreachable) as left, lossy(port=port) as client:
        client.send(b"x")
    assert str(left.value) == f"a message was not transferred (no answer from {ADDRESS})"


def test_what_goes_nowhere_is_refused_at_once() -> None:
    with pytest.raises(InvalidName, match="/MSMQ is missing after the host"):
        msmqwire.connect(rf"{TO_ADDRESS},DIRECT=HTTP://x/{ORDERS}").__enter__()
    with pytest.raises(QueueError, match="read only"):  # and nothing reads by HTTP
        msmqwire.connect(rf"DIRECT=HTTP://x/msmq/{ORDERS};journal").__enter__()
    with msmqwire.connect(rf"{TO_ADDRESS};journal") as client, pytest.raises(QueueError, match="read only"):
        client.send(b"x")


def test_an_exception_in_the_block_does_not_wait() -> None:
    def send() -> None:
        with lossy(drain=10_000) as client:
            client.send(b"x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        send()


# -- the file -------------------------------------------------------------------------------------------


def test_what_is_recoverable_is_sent_at_the_next_use(tmp_path: Path) -> None:
    state = tmp_path / "state"

    def send() -> None:
        with lossy(state=state) as client:
            client.send(b"lost: it is express")
            client.send(b"1", recoverable=True, label="one")
            client.send(b"2", recoverable=True)

    with pytest.raises(Unreachable, match="a message was not"):
        send()
    with lossy(state=state) as client:
        client.send(b"3", recoverable=True)
    with served(options(tmp_path / "alpha", ORDERS, address=ADDRESS)) as server:
        with connect(server, state=state) as client:
            client.send(b"4", recoverable=True)
        received = messages(server)
        assert bodies(received) == [b"1", b"2", b"3", b"4"]
        assert received[0]["label"] == "one"
        with connect(server, state=state):
            pass
        assert len(messages(server)) == 4


def test_transactions_are_kept_as_well(tmp_path: Path) -> None:
    state = tmp_path / "state"
    expected = [b"%d" % number for number in range(20)]
    with msmqwire.connect(
        rf"DIRECT=TCP:{ADDRESS}\{LEDGER}", state=state, port=free_port(), drain=0.1
    ) as client:
        with client.transaction() as transaction:
            for body in expected[:10]:
                transaction.send(body)
        for body in expected[10:]:
            client.send(body, transactional=True)
    with served(options(tmp_path / "alpha", f"{LEDGER};transactional", address=ADDRESS)) as server:
        with connect(server, LEDGER, state=state):
            pass
        assert bodies(messages(server, LEDGER)) == expected


def test_what_is_kept_for_another_queue_is_sent_too(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with lossy(state=state) as client:
        client.send(b"for orders", recoverable=True)
    with served(options(tmp_path / "alpha", ORDERS, r"private$\other", address=ADDRESS)) as server:
        with connect(server, r"private$\other", state=state) as client:
            client.send(b"for the other")
        assert bodies(messages(server)) == [b"for orders"]
        assert bodies(messages(server, r"private$\other")) == [b"for the other"]


SENDER = """
import sys
import msmqwire
name, port, state = sys.argv[1:]
with msmqwire.connect(name, port=int(port), state=state, drain=1000) as client:
    for number in range(1000000):
        client.send(b"%d" % number, transactional=True)
        print(number, flush=True)
"""


@pytest.mark.parametrize("up", [False, True])
def test_a_killed_process_loses_nothing_acknowledged(tmp_path: Path, up: bool) -> None:
    state = tmp_path / "state"
    with served(options(tmp_path / "alpha", f"{LEDGER};transactional", address=ADDRESS)) as server:
        port = server.port if up else free_port()
        name = rf"DIRECT=TCP:{ADDRESS}\{LEDGER}"
        sender = subprocess.Popen(
            [sys.executable, "-c", SENDER, name, str(port), str(state)],
            stdout=subprocess.PIPE,
            env=environment(),
        )
        assert sender.stdout is not None
        for _ in range(100):
            last = int(sender.stdout.readline())
        sender.kill()
        last = max([last, *map(int, sender.stdout.read().split(b"\n")[:-1])])
        sender.wait(PATIENCE_S)
        sender.stdout.close()
        with connect(server, LEDGER, state=state):
            pass
        numbers = [int(body) for body in bodies(all_of(server))]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) in (last + 1, last + 2)  # the last may have been stored but not printed


def test_a_file_that_is_in_use_is_refused(tmp_path: Path, server: InThread) -> None:
    state = tmp_path / "state"
    with connect(server, state=state) as client:
        with pytest.raises(StoreInUse):
            connect(server, state=state).__enter__()
        with pytest.raises(StoreInUse):
            run(connect(server, state=state).__aenter__())
        client.send(b"x", recoverable=True)
    with connect(server, state=state):
        pass
    assert len(messages(server)) == 1


def test_a_file_of_something_else_is_left_alone(tmp_path: Path, server: InThread) -> None:
    text = tmp_path / "text"
    text.write_text("no store " * 100)
    with pytest.raises(StoreForeign):
        connect(server, state=text).__enter__()
    assert text.read_text() == "no store " * 100
    with pytest.raises((StoreRefused, StoreDamaged)):
        connect(server, state=tmp_path / "no folder" / "state").__enter__()


# -- the other side restarts ----------------------------------------------------------------------------


@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize("queue", [ORDERS, LEDGER])
def test_a_server_restarts_while_the_client_sends(tmp_path: Path, queue: str, kill: bool) -> None:
    data, stop = tmp_path / "alpha", threading.Event()
    sent: list[bytes] = []
    queues = ("--queue", ORDERS, "--queue", f"{LEDGER};transactional")
    properties: dict[str, Any] = {"transactional": True} if queue == LEDGER else {"recoverable": True}

    async def send(port: int) -> None:
        name = rf"DIRECT=TCP:{ADDRESS}\{queue}"
        async with msmqwire.connect(name, port=port, drain=PATIENCE_S) as client:
            while not stop.is_set():
                await client.send(b"%d" % len(sent), **properties)
                sent.append(b"%d" % len(sent))
                await asyncio.sleep(0.002)  # the pace of a program: some hundreds over all restarts

    port = free_port()
    listen = ("--listen", f"{ADDRESS}:{port}", "--ping", "off")
    sender = threading.Thread(target=lambda: run(send(port)))
    servers = [Process(data, *listen, *queues)]
    sender.start()
    try:
        for _ in range(2):
            before = len(sent)
            until(lambda b=before: len(sent) > b + 50 and len(messages(servers[-1], queue)) > 50, "it sends")
            servers[-1].kill() if kill else servers[-1].stop()
            before = len(sent)
            until(lambda b=before: len(sent) > b + 50, "it goes on sending")
            servers.append(Process(data, *listen))
        stop.set()
        sender.join(2 * PATIENCE_S)
        received = bodies(all_of(servers[-1], queue))
    finally:
        stop.set()
        for server in servers:
            server.close()
        sender.join()
    if queue == LEDGER:
        assert received == sent
    assert sorted(received, key=int) == sent


# -- names ----------------------------------------------------------------------------------------------


@pytest.mark.uvloop
def test_leaving_does_not_wait_for_a_name_that_is_being_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    release, resolving = threading.Event(), []

    def stuck(*_: Any, **__: Any) -> None:
        resolving.append(threading.current_thread())
        release.wait(PATIENCE_S)
        raise socket.gaierror("no answer")

    monkeypatch.setattr(socket, "getaddrinfo", stuck)

    def send() -> None:
        with msmqwire.connect(UNKNOWN, drain=0.1) as client:
            client.send(b"x")
            until(lambda: resolving, "the name is resolved")

    with pytest.raises(Unreachable, match="was not transferred"):
        send()
    (thread,) = resolving
    assert thread.is_alive()
    assert thread.daemon  # the end of the process does not wait for it
    release.set()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
