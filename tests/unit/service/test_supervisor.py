"""The supervisor of a process, as systemd: what it is told, over a real socket."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from msmqwire.service.supervisor import EXTENSION_S, Supervisor
from tests.support.patience import happens, limit

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs Unix sockets")


class Heard:
    """A socket in place of that of systemd."""

    def __init__(self, address: str | bytes) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.setblocking(False)
        self.lines: list[str] = []

    def read(self) -> list[str]:
        """All lines so far."""
        while True:
            try:
                self.lines += self.socket.recv(4096).decode().splitlines()
            except BlockingIOError:
                return self.lines


@pytest.fixture
def heard(tmp_path: Path) -> Iterator[Heard]:
    one = Heard(str(tmp_path / "notify"))
    with one.socket:
        yield one


def environment(heard: Heard, **more: str) -> dict[str, str]:
    return {"NOTIFY_SOCKET": heard.socket.getsockname(), **more}


def test_it_is_told_and_the_environment_is_taken(heard: Heard) -> None:
    variables = environment(heard, WATCHDOG_USEC="3000000", WATCHDOG_PID=str(os.getpid()), HOME="/")
    supervisor = Supervisor(variables)
    assert (variables, supervisor.watchdog_s) == ({"HOME": "/"}, 3.0)
    supervisor.status("two\nlines")
    supervisor.status("two lines")
    supervisor.ready()
    supervisor.stopping()
    assert heard.read() == ["STATUS=two lines", "READY=1", "STOPPING=1"]


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="only Linux has abstract sockets")
def test_an_abstract_socket_is_one_too() -> None:
    name = f"msmqwire-test-{os.getpid()}"
    heard = Heard(f"\0{name}")
    with heard.socket:
        Supervisor({"NOTIFY_SOCKET": f"@{name}"}).ready()
        assert heard.read() == ["READY=1"]


@pytest.mark.parametrize(
    "more",
    [
        {"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "-5"},
        {"WATCHDOG_USEC": "9" * 30},
        {"WATCHDOG_USEC": "٣"},
        {},
    ],
)
def test_a_watchdog_of_others_or_none(heard: Heard, more: dict[str, str]) -> None:
    assert Supervisor(environment(heard, **more)).watchdog_s is None


@pytest.mark.parametrize("text", ["", "relative", "vsock:2:1234"])
def test_without_a_socket_nothing_is_sent(text: str) -> None:
    supervisor = Supervisor({"NOTIFY_SOCKET": text, "WATCHDOG_USEC": "1000"})
    supervisor.ready()
    assert supervisor.watchdog_s is None


def test_a_start_asks_for_time_while_it_goes_on(heard: Heard) -> None:
    async def start() -> None:
        goes_on = True
        supervisor = Supervisor(environment(heard, WATCHDOG_USEC="40000"))
        supervisor.watch(lambda: "restores", lambda: goes_on)
        await happens(lambda: heard.read().count("WATCHDOG=1") >= 2, "two turns")
        assert heard.lines[:2] == ["STATUS=restores", f"EXTEND_TIMEOUT_USEC={EXTENSION_S * 1_000_000}"]
        goes_on = False
        await happens(lambda: heard.read()[-2:] == ["WATCHDOG=1"] * 2, "no more time is asked for")
        supervisor.end()

    asyncio.run(start())


def test_a_loop_that_is_blocked_pings_no_more(heard: Heard) -> None:
    async def hang() -> None:
        supervisor = Supervisor(environment(heard, WATCHDOG_USEC="20000"))
        supervisor.watch(lambda: "", lambda: False)
        await happens(lambda: heard.read().count("WATCHDOG=1") >= 3, "pings")
        before = len(heard.read())
        time.sleep(0.2)  # blocks the loop for ten times what the watchdog allows
        assert len(heard.read()) == before
        await happens(lambda: len(heard.read()) > before, "it pings again")
        supervisor.end()

    asyncio.run(hang())


def test_a_full_socket_is_told_later(heard: Heard) -> None:
    """systemd reads late: the readiness must not be lost."""

    async def start() -> None:
        supervisor = Supervisor(environment(heard, WATCHDOG_USEC="20000"))
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.setblocking(False)
            with suppress(BlockingIOError):
                while True:
                    other.sendto(b"X=1", heard.socket.getsockname())
        supervisor.ready()
        assert "READY=1" not in heard.read()
        supervisor.watch(lambda: "", lambda: False)
        async with asyncio.timeout(limit(60)):
            await happens(lambda: heard.read().count("READY=1") == 1, "readiness is told")
        supervisor.end()

    asyncio.run(start())
