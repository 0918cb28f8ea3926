"""The queue manager used by most tests of [MS-MQDMPR]."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.elements import OpenQueueDescriptor, Queue
from tests.support.engine_harness import EngineHarness
from tests.support.qm.directory_recorder import DirectoryRecorder, RecordedDirectoryEvents


@pytest.fixture
def harness() -> EngineHarness:
    """A queue manager in a workgroup."""
    return EngineHarness()


@pytest.fixture
def queue(harness: EngineHarness) -> Queue:
    """A private queue of the harness."""
    return harness.queue()


@pytest.fixture
def open_queue(harness: EngineHarness, queue: Queue) -> OpenQueueDescriptor:
    """The queue, opened for receiving."""
    return harness.open(queue)


@pytest.fixture
def recorder() -> DirectoryRecorder:
    """A directory."""
    return DirectoryRecorder()


@pytest.fixture
def recorded() -> RecordedDirectoryEvents:
    """The directory events of a queue manager."""
    return RecordedDirectoryEvents()
