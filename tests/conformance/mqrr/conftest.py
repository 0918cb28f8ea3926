"""The queue manager that remote readers use in most tests of [MS-MQRR]."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.elements import Queue
from tests.support.rpc.remote_read_harness import Client, RemoteReadHarness


@pytest.fixture
def harness() -> RemoteReadHarness:
    """A queue manager that others read."""
    return RemoteReadHarness()


@pytest.fixture
def client(harness: RemoteReadHarness, queue: Queue) -> Client:
    """A client, once the queue of the module is there."""
    return harness.client()
