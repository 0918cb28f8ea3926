"""Directories that record their requests, and a queue manager's directory events over one."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msmqwire.qm.directory import CreateResult, QueryResult, ReadResult, ResolveResult
from msmqwire.qm.directory.embedded import EmbeddedDirectory
from msmqwire.qm.model.directory_objects import DirectoryObject
from msmqwire.qm.model.elements import Queue, QueueManager
from msmqwire.qm.model.enumerations import DirectoryOperationResult as Result
from msmqwire.qm.model.enumerations import QueueType
from msmqwire.qm.model.timers import Timer, Timers
from msmqwire.qm.rules.directory_events import DirectoryEvents
from tests.support.engine_harness import OWN_ID

LISTED = UUID(int=0xD1)
"""Identifier of a distribution list."""
ONLINE = Timer.DIRECTORY_ONLINE, None


def guid(number: int) -> UUID:
    return UUID(int=number)


def public_queue(number: int = 100, pathname: str = "here\\orders", **attributes: Any) -> Queue:
    """A public queue."""
    queue = Queue(guid(number), pathname=pathname, **attributes)
    queue.queue_type = QueueType.PUBLIC
    return queue


class DirectoryRecorder:
    """A directory that records its requests and answers like an embedded directory.

    Attributes:
        log: the name of each operation and its arguments.
        directory: the directory that answers.
        status: if set, the result of every operation instead.
    """

    def __init__(self, log: list[tuple[Any, ...]] | None = None) -> None:
        self.log: list[tuple[Any, ...]] = [] if log is None else log
        self.directory = EmbeddedDirectory()
        self.status: Result | None = None

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> Any:
            self.log.append((name, *args))
            if self.status is None:
                return getattr(self.directory, name)(*args)
            answer = {
                "create_directory_object": CreateResult,
                "read_directory": ReadResult,
                "read_directory_begin": QueryResult,
                "read_directory_next": ReadResult,
                "resolve_distribution_list": ResolveResult,
            }.get(name, Result)
            return answer(self.status)

        return call

    def publish(self, *objects: DirectoryObject) -> None:
        """Put objects into the directory, unrecorded."""
        for published in objects:
            assert self.directory.create_directory_object(published).status is Result.SUCCESS

    def operations(self) -> list[str]:
        """The names of the operations, in order."""
        return [entry[0] for entry in self.log if isinstance(entry[0], str)]


class RecordedDirectoryEvents:
    """The directory events of one queue manager over a recorder.

    Attributes:
        log: the operations of the directory and the announced changes, in order.
        directory: the recorder; not used in workgroup mode.
        manager, timers: the queue manager and its timers.
        events: the events.
    """

    def __init__(self, *, workgroup: bool = False) -> None:
        self.log: list[tuple[Any, ...]] = []
        self.directory = DirectoryRecorder(self.log)
        self.manager = QueueManager(OWN_ID, computer_name="here", qualified_computer_name="here.example")
        self.timers = Timers()
        self.events = DirectoryEvents(
            self.manager,
            None if workgroup else self.directory,  # type: ignore[arg-type]  # it has every method
            self.timers,
            lambda operation, changed: self.log.append((operation, changed)),
        )

    def add(self, queue: Queue) -> Queue:
        """Add a queue to the queue manager."""
        queue.number = len(self.manager.queues) + 1
        queue.queue_manager = self.manager
        self.manager.queues[queue.number] = queue
        return queue

    def assert_offline(self) -> None:
        assert self.manager.directory_offline
        assert self.timers.active(*ONLINE)

    def assert_online(self) -> None:
        assert not self.manager.directory_offline
        assert not self.timers.active(*ONLINE)
