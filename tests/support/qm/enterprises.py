"""Enterprises of sites, links and queue managers for tests of routing: a directory of plain lists that notes
how it is read and can fail, and an enterprise as one queue manager sees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from msmqwire.qm.directory import QueryResult, ReadResult
from msmqwire.qm.directory.attributes import ATTRIBUTES, Filter, satisfies
from msmqwire.qm.model.directory_objects import DirectoryObject, RoutingLink, Site
from msmqwire.qm.model.elements import QueueManager
from msmqwire.qm.model.enumerations import DirectoryOperationResult as Result
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.timers import Timers
from msmqwire.qm.rules.directory_events import DirectoryEvents
from msmqwire.qm.rules.routing import Routing

HERE, THERE = UUID(int=1), UUID(int=2)
"""The queue manager that routes, and the destination."""
A, B, C, D, E = (UUID(int=number) for number in (0xA0, 0xB0, 0xC0, 0xD0, 0xE0))
"""Sites."""


def guid(number: int) -> UUID:
    return UUID(int=number)


class ListedDirectory:
    """A directory that reads from a list, in its order.

    Attributes:
        objects: what it contains.
        log: the events of reading several objects, in order: name and arguments.
        unreadable: types whose Read Directory Begin fails.
        breaking: types whose Read Directory Next fails, with the count of objects read before.
    """

    def __init__(self) -> None:
        self.objects: list[DirectoryObject] = []
        self.log: list[tuple[Any, ...]] = []
        self.unreadable: set[str] = set()
        self.breaking: dict[str, int] = {}
        self._queries: dict[int, list[ReadResult]] = {}

    def _find(self, object_type: str, filters: Sequence[Filter] | None) -> list[DirectoryObject]:
        fields = ATTRIBUTES[object_type]
        return [
            element
            for element in self.objects
            if type(element).__name__ == object_type
            and satisfies(filters or (), lambda name, element=element: getattr(element, fields[name]))  # type: ignore[misc]
        ]

    def read_directory(
        self, object_type: str, filters: Sequence[Filter] | None = None, attributes: object = None
    ) -> ReadResult:
        for element in self._find(object_type, filters):
            return ReadResult(Result.SUCCESS, element)
        return ReadResult(Result.OBJECT_NOT_FOUND)

    def read_directory_begin(
        self, object_type: str, filters: Sequence[Filter] | None = None, *_: object
    ) -> QueryResult:
        self.log.append(("begin", object_type, list(filters or ())))
        if object_type in self.unreadable:
            return QueryResult(Result.GENERIC_ERROR)
        answers = [ReadResult(Result.SUCCESS, element) for element in self._find(object_type, filters)]
        answers.append(ReadResult(Result.END_OF_DATA))
        if object_type in self.breaking:
            answers[self.breaking[object_type] :] = [ReadResult(Result.GENERIC_ERROR)]
        handle = 100 + len(self.log)
        self._queries[handle] = answers
        return QueryResult(Result.SUCCESS, handle)

    def read_directory_next(self, handle: int) -> ReadResult:
        self.log.append(("next", handle))
        return self._queries[handle].pop(0)

    def read_directory_end(self, handle: int) -> Result:
        self.log.append(("end", handle))
        del self._queries[handle]
        return Result.SUCCESS

    def reads(self) -> list[tuple[str, list[Filter]]]:
        """The types and filters of the reads, in order."""
        return [(entry[1], entry[2]) for entry in self.log if entry[0] == "begin"]

    @property
    def open_queries(self) -> int:
        """The count of reads without Read Directory End."""
        return len(self._queries)


class Enterprise:
    """An enterprise as queue manager HERE sees it, in site A unless said otherwise.

    Attributes:
        directory: its directory.
        timers: the timers of the queue manager.
        routing: its routing.
    """

    def __init__(self, *sites: UUID, settings: Settings | None = None, **here: Any) -> None:
        self.directory, self.timers = ListedDirectory(), Timers()
        self.here = self.manager(1, *sites or (A,), **here)
        events = DirectoryEvents(self.here, self.directory, self.timers)  # type: ignore[arg-type]
        self.routing = Routing(self.here, events, self.timers, settings=settings)

    def manager(self, number: int, *sites: UUID, **attributes: Any) -> QueueManager:
        """Add a queue manager."""
        manager = QueueManager(
            guid(number), computer_name=f"m{number}", site_identifier_list=list(sites), **attributes
        )
        self.directory.objects.append(manager)
        return manager

    def router(self, number: int, *sites: UUID, **attributes: Any) -> QueueManager:
        """Add a routing server."""
        return self.manager(number, *sites, routing_server=True, **attributes)

    def site(self, site: UUID, *gates: QueueManager) -> Site:
        """Add a site with its gates."""
        added = Site(site, site_gates=list(gates))
        self.directory.objects.append(added)
        return added

    def link(self, site1: UUID, site2: UUID, cost: int = 1) -> RoutingLink:
        """Add a link."""
        identifier = guid(0x1000 + len(self.directory.objects))
        added = RoutingLink(identifier, actual_cost=cost, site1_identifier=site1, site2_identifier=site2)
        self.directory.objects.append(added)
        return added

    def site_of(self, identifier: UUID) -> Site:
        """A site that was added."""
        found = [element for element in self.directory.objects if element.identifier == identifier]
        assert isinstance(found[0], Site)
        return found[0]

    def remove(self, element: DirectoryObject) -> None:
        """Remove an object from the directory."""
        self.directory.objects.remove(element)

    def hops(self, destination: UUID = THERE) -> list[UUID]:
        """The result of GetNextHops; empty if routing fails."""
        return self.routing.next_hops(destination)

    @property
    def table(self) -> dict[UUID, UUID]:
        """The routing table."""
        return self.routing.routing_table


def gate_enterprise(**here: Any) -> Enterprise:
    """An enterprise whose queue manager HERE is the gate of site A, before its table is built."""
    enterprise = Enterprise(A, routing_server=True, **here)
    enterprise.site(A, enterprise.here)
    return enterprise
