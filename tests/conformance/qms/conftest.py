"""The queue service that the tests of the rules use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.netware.queue_service import QueueServiceHarness


@pytest.fixture
def harness() -> Iterator[QueueServiceHarness]:
    """A file server with one queue. After the test its store has to be as its memory is."""
    harness = QueueServiceHarness()
    yield harness
    harness.check()
