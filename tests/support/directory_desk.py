"""The events on a directory, with all that happened written down."""

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

HERE, THERE = UUID(int=1), UUID(int=2)
LISTED = UUID(int=0xD1)
ONLINE = Timer.DIRECTORY_ONLINE, None


def guid(number: int) -> UUID:
    return UUID(int=number)


def public(number: int = 100, pathname: str = "here\\orders", **attributes: Any) -> Queue:
    queue = Queue(guid(number), pathname=pathname, **attributes)
    queue.queue_type = QueueType.PUBLIC
    return queue


class Recorder:
    """A directory that writes down what it is asked; it answers with a set status, or as another one."""

    def __init__(self, log: list[tuple[Any, ...]]) -> None:
        self.log, self.behind, self.status = log, EmbeddedDirectory(), None

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> Any:
            self.log.append((name, *args))
            if self.status is None:
                return getattr(self.behind, name)(*args)
            kind = {
                "create_directory_object": CreateResult,
                "read_directory": ReadResult,
                "read_directory_begin": QueryResult,
                "read_directory_next": ReadResult,
                "resolve_distribution_list": ResolveResult,
            }.get(name, Result)
            return kind(self.status)

        return call


class Desk:
    """The events of one queue manager, and all that happened."""

    def __init__(self, *, workgroup: bool = False) -> None:
        self.log: list[tuple[Any, ...]] = []
        self.directory = Recorder(self.log)
        self.manager = QueueManager(HERE, computer_name="here", qualified_computer_name="here.example")
        self.timers = Timers()
        self.events = DirectoryEvents(
            self.manager,
            None if workgroup else self.directory,  # type: ignore[arg-type]  # it answers to all names
            self.timers,
            lambda operation, changed: self.log.append((operation, changed)),
        )

    def add(self, queue: Queue) -> Queue:
        queue.number = len(self.manager.queues) + 1
        queue.queue_manager = self.manager
        self.manager.queues[queue.number] = queue
        return queue

    def store(self, *objects: DirectoryObject) -> None:
        for each in objects:
            assert self.directory.behind.create_directory_object(each).status is Result.SUCCESS

    @property
    def asked(self) -> list[str]:
        return [entry[0] for entry in self.log if isinstance(entry[0], str)]


def assert_offline(desk: Desk) -> None:
    assert desk.manager.directory_offline
    assert desk.timers.active(*ONLINE)


def assert_online(desk: Desk) -> None:
    assert not desk.manager.directory_offline
    assert not desk.timers.active(*ONLINE)
