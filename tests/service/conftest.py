"""What the tests of servers share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.running import LEDGER, ORDERS, InThread, Process, options, process, served


@pytest.fixture(scope="session", autouse=True)
def commands_can_be_interrupted() -> Iterator[None]:
    """What is started in the background ignores SIGINT, and so would all that tests start in turn."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder that is not there yet."""
    return tmp_path / "alpha"


@pytest.fixture
def alpha(data: Path) -> Iterator[Process]:
    """A server as a process, with two queues."""
    with process(data, "--queue", ORDERS, "--queue", f"{LEDGER};transactional") as found:
        yield found


@pytest.fixture
def server(data: Path) -> Iterator[InThread]:
    """A server in a thread, with two queues."""
    with served(options(data, ORDERS, f"{LEDGER};transactional")) as found:
        yield found
