"""A program that attaches again while the server is away: the store is for the next server."""

from __future__ import annotations

from pathlib import Path

import pytest

import msmqwire
from msmqwire.errors import Unreachable
from msmqwire.qm.runtime.data_folder import STORE
from msmqwire.qm.store import open_store
from tests.support.running import ORDERS, options, served


def test_the_store_is_left_to_the_next_server(data: Path) -> None:
    with served(options(data, ORDERS)), msmqwire.attach(data) as manager:
        manager.queue(ORDERS).send(b"1", recoverable=True)
    for path in (data, data.parent / "." / data.name):
        with pytest.raises(Unreachable, match=r"no server runs for .*leaves its store to the next"):
            msmqwire.attach(path).__enter__()
    open_store(data / STORE).close()  # not locked
    with served(options(data)), msmqwire.attach(data) as manager:
        assert manager.queue(ORDERS).receive(0).body == b"1"


def test_a_folder_without_a_server_is_opened(data: Path) -> None:
    for _ in range(2):
        with msmqwire.attach(data, create=True) as manager:
            assert not manager.served
