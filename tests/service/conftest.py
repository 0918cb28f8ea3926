"""What the tests of servers share: fixtures, and the event loop that they run on.

Tests with the marker ``uvloop`` run twice, on asyncio's own event loop and on that of uvloop.
``MSMQWIRE_LOOP=uvloop`` runs every test on uvloop's alone, and the processes that the tests start as well.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.many_computers import many_computers
from tests.support.pgm.multicast_networks import no_trouble_in_the_loop  # noqa: F401
from tests.support.running import LEDGER, LOOP, ORDERS, InThread, Process, options, process, served


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.definition.get_closest_marker("uvloop") is not None and LOOP not in os.environ:
        metafunc.parametrize("event_loop_policy", ["asyncio", "uvloop"], indirect=True)


@pytest.fixture(scope="module", autouse=True)
def event_loop_policy(request: pytest.FixtureRequest) -> Iterator[None]:
    """Choose the event loops of this process and of those that it starts."""
    kind = getattr(request, "param", None) or os.environ.get(LOOP, "asyncio")
    if kind == "asyncio":
        yield
        return
    uvloop = pytest.importorskip("uvloop")
    before = asyncio.get_event_loop_policy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOOP, kind)
        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
        yield
    asyncio.set_event_loop_policy(before)


@pytest.fixture(scope="session", autouse=True)
def commands_can_be_interrupted() -> Iterator[None]:
    """Restore SIGINT: a process in the background ignores it, and so would the processes that tests start."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The path of a folder that does not exist yet."""
    return tmp_path / "alpha"


@pytest.fixture
def computers() -> Iterator[None]:
    """Addresses of the loopback stand for computers of a network."""
    with many_computers():
        yield


@pytest.fixture(params=["served", "store"])
def folder(request: pytest.FixtureRequest, data: Path) -> Iterator[Path]:
    """A folder with two queues, with and without a server."""
    with served(options(data, ORDERS, f"{LEDGER};transactional")):
        if request.param == "served":
            yield data
    if request.param == "store":
        yield data


@pytest.fixture
def alpha(data: Path) -> Iterator[Process]:
    """A server as a process, with two queues."""
    with process(data, "--queue", ORDERS, "--queue", f"{LEDGER};transactional") as server:
        yield server


@pytest.fixture
def server(data: Path) -> Iterator[InThread]:
    """A server in a thread, with two queues."""
    with served(options(data, ORDERS, f"{LEDGER};transactional")) as server:
        yield server
