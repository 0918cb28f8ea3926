"""The exporter asks targets over sockets: honest ones, and such that lie, are slow, cut or flood."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from msmqwire.constants import HResult
from msmqwire.exporter import machine
from msmqwire.exporter.scraping import Scraping
from msmqwire.exporter.server import by_mqmr
from msmqwire.exporter.targets import Target
from msmqwire.management.constants import Opnum
from msmqwire.management.interface import parse_response
from msmqwire.qm.client import managed_listing, management_connection
from msmqwire.qm.client.managed_names import listed_queue
from tests.support.patience import PATIENCE_S, limit
from tests.support.rpc.management_server import BREAK, HOST, SILENCE, ManagedMachine, local, managed_machine

ADDRESS = "127.0.0.1"
INFO = Opnum.R_QMMgmtGetInfo


@pytest.fixture(autouse=True)
def always_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer is so fresh that it counts for the next page."""
    monkeypatch.setattr(machine, "FRESH_S", -1.0)


def target(name: str, port: int, timeout: float = 0.0, **more: Any) -> Target:
    return Target(ADDRESS, name, port, timeout=timeout or limit(10), **more)


@contextmanager
def honest(messages: int = 7) -> Iterator[ManagedMachine]:
    with managed_machine() as found:
        found.has_private("orders", messages)
        found.has_outgoing(r"beta\private$\q", 3)
        found.add(rf"DIRECT=OS:{HOST}\SYSTEM$;DEADLETTER", local("system$;deadletter", 5))
        yield found


class Scraped:
    """An exporter's targets, scraped by a loop of its own: the servers have theirs."""

    def __init__(self, *targets: Target, queues_max: int = 1000) -> None:
        self._runner = asyncio.Runner()
        self._scraping = Scraping(by_mqmr, queues_max=queues_max)
        self._runner.run(self._scraping.use(targets))

    def page(self) -> list[str]:
        """The lines of the page of all targets."""
        return b"".join(self._runner.run(self._scraping.all(PATIENCE_S))).decode().splitlines()

    def close(self) -> None:
        self._runner.run(self._scraping.close())
        self._runner.close()


def scraped(*targets: Target, queues_max: int = 1000) -> list[str]:
    """The lines of the page of all targets, scraped once."""
    with closing(Scraped(*targets, queues_max=queues_max)) as found:
        return found.page()


def test_an_honest_computer() -> None:
    with honest() as found:
        found.add(rf"DIRECT=OS:{HOST}\orders", local("orders", 2))
        text = scraped(target("alpha", found.port, queues=("orders", "missing")))
    counted = [line for line in text if line.startswith("windows_msmq_messages_in_queue")]
    assert sorted(counted) == [
        rf'windows_msmq_messages_in_queue{{target="alpha",name="{HOST}\\orders"}} 2',
        rf'windows_msmq_messages_in_queue{{target="alpha",name="{HOST}\\private$\\orders"}} 7',
        rf'windows_msmq_messages_in_queue{{target="alpha",name="{HOST}\\system$;deadletter"}} 5',
    ]
    outgoing = r'{target="alpha",name="DIRECT=OS:beta\\private$\\q"}'
    assert {
        'msmq_up{target="alpha"} 1',
        f"msmq_outgoing_messages{outgoing} 3",
        f"msmq_outgoing_unacknowledged_messages{outgoing} 3",
        f"msmq_connection_failures{outgoing} 1",
        f"msmq_connection_last_failure_timestamp_seconds{outgoing} 1700000000.0",
        'msmq_scrape_errors_total{target="alpha",reason="name"} 1',
        'msmq_bytes_all_queues{target="alpha"} 1099511627776',
    } <= set(text)
    assert not any("last_acknowledgement" in line for line in text if not line.startswith("#"))


def test_an_old_computer() -> None:
    """Server 2003 fails calls with properties that it lacks; what it has is reported."""

    with honest() as found:
        found.old = True
        text = scraped(target("old", found.port))
    assert 'msmq_up{target="old"} 1' in text
    assert any(line.startswith("windows_msmq_messages_in_queue") for line in text)
    assert not any(line.startswith("msmq_connection_failures{") for line in text)


def test_one_connection_serves_all_scrapes() -> None:
    """It is made again after the computer has restarted, in the same scrape."""

    with honest() as found, closing(Scraped(target("alpha", found.port))) as exporter:
        for _ in range(4):
            assert 'msmq_up{target="alpha"} 1' in exporter.page()
        assert found.server is not None
        assert len(found.server.connections) == 1
        calls = 0

        def restarting(answer: Callable[[], Any], _arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            return BREAK if calls == 1 else answer()

        found.twists[INFO] = restarting
        text = exporter.page()
        assert 'msmq_up{target="alpha"} 1' in text
        assert not any(line.startswith("msmq_scrape_errors") for line in text)
        assert len(found.server.connections) == 2


def test_more_queues_than_wanted() -> None:
    """Those that are configured, and the dead letters, come first."""

    with honest() as found:
        for number in range(40):
            found.has_private(f"q{number}", number)
        found.add(rf"DIRECT=OS:{HOST}\private$\last", local(r"private$\last", 9))
        text = scraped(target("alpha", found.port, queues=(r"private$\last",)), queues_max=10)
    counted = [
        line for line in text if line.startswith(("windows_msmq_messages_in_queue", "msmq_outgoing_m"))
    ]
    assert rf'windows_msmq_messages_in_queue{{target="alpha",name="{HOST}\\private$\\last"}} 9' in counted
    assert any("deadletter" in line for line in counted)
    assert len(counted) == 9, "ten were asked, and there is no transactional dead-letter queue"
    assert 'msmq_queues_left_out{target="alpha"} 35' in text


@pytest.mark.parametrize("queues_max, left", [(10, 6), (15, 1), (16, 0)])
def test_a_queue_with_two_names_is_left_out_once(queues_max: int, left: int) -> None:
    """A private queue that is active is listed twice; one that is configured too is not left out at all."""

    with honest() as found:
        for number in range(12):
            found.has_private(f"q{number}", number)
            found.active.append(rf"DIRECT=OS:{HOST}\private$\q{number}")
        named = tuple(rf"private$\q{number}" for number in (8, 11))
        text = scraped(target("alpha", found.port, queues=named), queues_max=queues_max)
    assert f'msmq_queues_left_out{{target="alpha"}} {left}' in text
    counted = [line for line in text if line.startswith("windows_msmq_messages_in_queue")]
    assert [number for number in (8, 11) if not any(rf'q{number}"' in line for line in counted)] == []


def test_a_flood_of_names_does_not_stop_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long answer is read in a thread beside the loop, and no more names than wanted are looked into."""
    threads: set[str] = set()
    read: list[str] = []

    def parse(*arguments: Any) -> Any:
        threads.add(threading.current_thread().name)
        return parse_response(*arguments)

    def queue_of(name: str) -> Any:
        read.append(name)
        return listed_queue(name)

    monkeypatch.setattr(management_connection, "parse_response", parse)
    monkeypatch.setattr(managed_listing, "listed_queue", queue_of)
    with honest() as found:
        scraped(target("alpha", found.port))
        assert threads == {threading.main_thread().name}
        assert len(read) == 2
        found.active += [rf"DIRECT=OS:gamma\private$\q{number}" for number in range(3000)]
        text = scraped(target("alpha", found.port), queues_max=10)
        assert {name.rpartition("_")[0] for name in threads} == {"", "msmq-answers"}
        assert len(read) == 2 + 10
    assert 'msmq_up{target="alpha"} 1' in text
    (left,) = [line for line in text if line.startswith("msmq_queues_left_out")]
    assert int(left.split()[-1]) == 3002 + 2 - 10


@contextmanager
def listener(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port whose connections a function serves, each in a thread."""
    with closing(socket.create_server((ADDRESS, 0))) as server:

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=served, args=(connection,), daemon=True).start()

        def served(connection: socket.socket) -> None:
            with connection:
                try:
                    serve(connection)
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def silent(connection: socket.socket) -> None:
    while connection.recv(4096):
        pass


def cutting(connection: socket.socket) -> None:
    connection.recv(4)


def flooding(connection: socket.socket) -> None:
    connection.recv(4096)
    while True:
        connection.sendall(bytes(65536))


def flooding_fragments(connection: socket.socket) -> None:
    """First fragments of an answer without end, in right PDUs: DCE/RPC version 5.0, a response."""
    connection.recv(4096)
    head = bytes.fromhex("05000203100000000010000000000000") + bytes.fromhex("ffffffff00000000")
    while True:
        connection.sendall(head + bytes(0x1000 - len(head)))


def dripping(connection: socket.socket) -> None:
    connection.recv(4096)
    while True:
        connection.sendall(b"\x05")
        threading.Event().wait(0.05)


@pytest.mark.parametrize(
    "serve, reasons",
    [
        (silent, {"timeout"}),
        (cutting, {"unreachable"}),
        (flooding, {"protocol", "unreachable"}),
        (flooding_fragments, {"protocol", "unreachable"}),
        (dripping, {"protocol", "timeout", "unreachable"}),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_what_is_no_server_ends_in_its_time(
    serve: Callable[[socket.socket], None], reasons: set[str]
) -> None:
    with listener(serve) as port, honest() as found:
        begin = time.monotonic()
        text = scraped(target("bad", port, limit(0.5)), target("alpha", found.port))
        assert time.monotonic() - begin < limit(5)
    assert {'msmq_up{target="bad"} 0', 'msmq_up{target="alpha"} 1'} <= set(text)
    (error,) = [line for line in text if line.startswith("msmq_scrape_errors_total")]
    assert error in {f'msmq_scrape_errors_total{{target="bad",reason="{reason}"}} 1' for reason in reasons}


def test_a_closed_port_is_unreachable() -> None:
    with closing(socket.create_server((ADDRESS, 0))) as server:
        port = server.getsockname()[1]
    text = scraped(target("gone", port))
    assert 'msmq_scrape_errors_total{target="gone",reason="unreachable"} 1' in text


def test_a_computer_that_refuses_shows_no_names() -> None:
    with honest() as found:
        found.denied = int(HResult.MQ_ERROR_ACCESS_DENIED)
        text = scraped(target("alpha", found.port, queues=("secret-orders",)))
    assert 'msmq_scrape_errors_total{target="alpha",reason="refused"} 1' in text
    assert not any("name=" in line or "secret" in line for line in text)


def _many_values(_answer: Callable[[], Any], arguments: Any) -> Any:
    return {"apVar": (*arguments.apVar, *arguments.apVar), "status": 0}


LIES: dict[str, tuple[Callable[[Callable[[], Any], Any], Any], str]] = {
    "nothing": (lambda _answer, _arguments: b"", "protocol"),
    "noise": (lambda _answer, _arguments: b"\xff" * 999, "protocol"),
    "many values": (_many_values, "protocol"),
    "a fault": (lambda _answer, _arguments: 0x1C01_0002, "protocol"),
    "access denied": (lambda _answer, _arguments: 5, "refused"),
    "silence": (lambda _answer, _arguments: SILENCE, "timeout"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_server_that_lies_is_a_reason(lie: str) -> None:
    twist, reason = LIES[lie]

    with honest() as bad, honest() as found:
        bad.twists[INFO] = twist
        text = scraped(target("bad", bad.port, limit(0.5)), target("alpha", found.port))
    assert {
        'msmq_up{target="bad"} 0',
        'msmq_up{target="alpha"} 1',
        f'msmq_scrape_errors_total{{target="bad",reason="{reason}"}} 1',
    } <= set(text)
    assert not any("windows" in line and 'target="bad"' in line for line in text)


def test_one_queue_that_is_lied_about_is_one_row() -> None:
    """The others of that computer are reported."""

    def about_a_queue(answer: Callable[[], Any], arguments: Any) -> Any:
        return b"\xff" * 99 if "orders" in str(arguments.pObjectFormat.arm).lower() else answer()

    with honest() as found:
        found.has_private("ledger", 4)
        found.twists[INFO] = about_a_queue
        text = scraped(target("alpha", found.port))
    assert rf'windows_msmq_messages_in_queue{{target="alpha",name="{HOST}\\private$\\ledger"}} 4' in text
    assert 'msmq_queues_refused{target="alpha"} 1' in text
    assert not any(r"private$\\orders" in line for line in text)
