"""Routing to the next hop: [MS-MQQB] 3.1.7.4 and 3.1.7.5 over [MS-MQBR], and fixed routes."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar
from uuid import UUID

from msmqwire.names import ConnectorName, DirectName, FormatName, MachineName, PrivateName, PublicName
from msmqwire.qm.directory.attributes import Filter, Operator
from msmqwire.qm.model.directory_objects import DirectoryObject, RoutingLink, Site
from msmqwire.qm.model.elements import Queue, QueueManager
from msmqwire.qm.model.enumerations import DirectoryOperationResult
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.timers import Timer, Timers
from msmqwire.qm.rules.directory_events import DirectoryEvents

_T = TypeVar("_T", bound=DirectoryObject)


class Destination(NamedTuple):
    """The host of a queue: [MS-MQQB] 3.1.7.4.

    Attributes:
        host: rHostName; empty if only the queue manager is known.
        queue_manager: rQueueManagerGuid; zero if only the host is known.
    """

    host: str
    queue_manager: UUID


Routes = Mapping[UUID | None, Sequence[UUID | str]]
"""Fixed routes: next hops, as identifiers of queue managers or names of hosts, by the identifier of the
destination's queue manager; the hops under None are for all destinations without another route."""


def next_sites(
    local: Collection[UUID], sites: Iterable[UUID], links: Iterable[RoutingLink]
) -> dict[UUID, UUID]:
    """Return the RoutingTable: by destination site, the next site on a path of least cost: [MS-MQBR] 3.1.3.1.

    Sites that can't be reached are missing. Of paths of equal cost, every call selects the same one, with the
    fewest links; otherwise links without a cost could send a message in a circle. The rows begin with the
    farthest site.

    Args:
        local: the sites of the queue manager.
        sites: all sites.
        links: all links, which go both ways; those of unknown sites do not count.
    """
    all_sites = set(sites)
    neighbours: dict[UUID, list[tuple[int, UUID]]] = {site: [] for site in all_sites}
    for link in links:
        ends = link.site1_identifier, link.site2_identifier
        if all_sites.issuperset(ends):  # MQBR-3.1.3.1-05
            neighbours[ends[0]].append((link.actual_cost, ends[1]))  # MQBR-3.1.3.1-06, MQBR-1.3.3-02
            # MQBR-3.1.3.1-05, MQBR-3.1.3.1-06, MQBR-1.3.3-02
            neighbours[ends[1]].append((link.actual_cost, ends[0]))
    table: dict[UUID, UUID] = {}
    roots = all_sites.intersection(local)
    candidates = [(0, 0, site, site) for site in sorted(roots)]  # MQBR-3.1.3.1-08
    while candidates:
        cost, passed, site, first = heapq.heappop(candidates)  # MQBR-3.1.3.1-08, MQBR-1.3.3-03
        if site not in table:  # MQBR-3.1.3.1-11
            table[site] = first  # MQBR-3.1.3.1-09, MQBR-3.1.3.1-11, MQBR-3.1.1.2-01, MQBR-3.1.3.1-10
            for step, neighbour in neighbours[site]:
                start = neighbour if site in roots else first  # MQBR-3.1.3.1-09
                total = cost + step  # MQBR-3.1.3.1-07, MQBR-4-01, MQBR-4-02, MQBR-1.3.3-03
                heapq.heappush(candidates, (total, passed + 1, neighbour, start))  # MQBR-3.1.3.1-11
    # The last row that matches decides (MQBR-3.1.5.3-05): of the sites of a destination, the nearest.
    return dict(reversed(table.items()))


class Routing:
    """The routes from one queue manager to its peers.

    Attributes:
        routes: the fixed routes.
        routing_table: RoutingTable of [MS-MQBR] 3.1.1.2; empty unless this queue manager is a site gate.
    """

    def __init__(
        self,
        queue_manager: QueueManager,
        directory: DirectoryEvents,
        timers: Timers,
        routes: Routes | None = None,
        *,
        settings: Settings | None = None,
    ) -> None:
        self._queue_manager, self._directory, self._timers = queue_manager, directory, timers
        self._settings = settings or Settings()
        self.routes: Routes = routes or {}
        self.routing_table: dict[UUID, UUID] = {}  # MQBR-3.1.1.2-01, MQBR-3.1.1.2-02

    def initialize(self) -> None:
        """Build the routing table and start QueueManager Query Timer, which rebuilds it: [MS-MQBR] 3.1.3."""
        # MQBR-3.1.2-01, MQBR-3.1.2.1-01, MQBR-3.1.3-01, MQBR-3.1.6.1-01, MQBR-3.1.6.1-02, MQBR-1.3.3-04
        self._timers.start(
            Timer.QUEUE_MANAGER_QUERY, None, self._settings.queue_manager_query_ms, self.initialize
        )
        table = self._build_table()
        if table is not None or not self._settings.keep_routing_table:
            self.routing_table = table or {}  # MQBR-3.1.6.1-01, MQBR-3.1.1.2-02

    def _build_table(self) -> dict[UUID, UUID] | None:
        """RoutingTable Initialization, [MS-MQBR] 3.1.3.1; None if the directory fails."""
        managers = self._read(QueueManager, self._queue_manager.identifier)  # MQBR-3.1.1.1-01
        sites = self._read(Site)  # MQBR-3.1.3.1-02, MQBR-3.1.1.1-01
        if managers is None or sites is None:  # MQBR-3.1.5.9-03, MQBR-3.1.5.9-04
            return None
        if not managers or not _is_gate(managers[0], sites):  # MQBR-3.1.3.1-01
            return {}
        links = self._read(RoutingLink)  # MQBR-3.1.3.1-03, MQBR-3.1.1.1-01
        if not links:  # MQBR-3.1.3.1-04
            return None if links is None else {}
        return next_sites(managers[0].site_identifier_list, (site.identifier for site in sites), links)

    # -- [MS-MQQB] ------------------------------------------------------------------------------------

    def get_destination_info(self, name: FormatName) -> Destination | None:
        """Get Destination Info, [MS-MQQB] 3.1.7.4; None where the specification says FALSE.

        Names of several destinations, and of multicast addresses, have no single host: None.
        """
        match name:
            case DirectName():
                # MQBR-1.4-01, MQQB-3.1.7.4-01, MQQB-3.1.7.4-02
                return Destination(name.host, NULL_GUID)
            case PublicName() | ConnectorName():
                return self._host_of(name.guid)  # MQMQ-2.1.3-03, MQMQ-2.1.3-04
            case PrivateName() | MachineName():
                return Destination("", name.guid)  # MQQB-3.1.7.4-05, MQMQ-2.1.4-03
        return None

    def _host_of(self, identifier: UUID) -> Destination | None:
        queue = self._directory.read_by_identifier("Queue", identifier)
        if not isinstance(queue, Queue) or queue.queue_manager is None:  # MQQB-3.1.7.4-04
            return None
        host = queue.queue_manager  # not the queue itself, as MQQB-3.1.7.4-03 reads
        # MQQB-3.1.7.4-03
        return Destination(host.qualified_computer_name or host.computer_name, host.identifier)

    def get_next_hops(self, destination: UUID) -> list[QueueManager]:
        """Get Next Hops, [MS-MQQB] 3.1.7.5; empty where the specification says FALSE.

        A fixed route to the destination comes first, then the routes of the directory, then the fixed route
        for all destinations. A next hop known only by its host has a zero identifier.
        """
        for hops in (
            self.routes.get(destination, ()),
            # whatever the priority: MQBR-3.1-01, and nothing else changes: MQBR-2.1-01
            self.next_hops(destination),  # MQQB-3.1.7.5-02, MQMQ-2.1.3-04
            self.routes.get(None, ()),
        ):
            managers = [manager for hop in hops if (manager := self._hop(hop)) is not None]  # MQQB-3.1.7.5-03
            if managers:  # MQBR-1.3.2-03, MQQB-3.1.7.5-01, MQQB-3.1.7.5-04, MQBR-3.1.5.1-08
                return managers
        return []  # MQBR-3.1.5.1-08

    def _hop(self, hop: UUID | str) -> QueueManager | None:
        if isinstance(hop, str):
            return QueueManager(NULL_GUID, computer_name=hop, qualified_computer_name=hop)
        manager = self._directory.read_by_identifier("QueueManager", hop)  # MQMQ-2.1.4-04
        return manager if isinstance(manager, QueueManager) else None  # MQMQ-2.1.4-04

    # -- [MS-MQBR] ------------------------------------------------------------------------------------

    def next_hops(self, destination: UUID) -> list[UUID]:
        """GetNextHops, [MS-MQBR] 3.1.5.1: the possible next queue managers; empty if routing fails."""
        source = self._find_queue_manager(self._queue_manager.identifier)  # MQBR-3.1.5.1-01
        target = self._find_queue_manager(destination)  # MQBR-3.1.5.1-01
        if source is None or target is None:  # MQBR-3.1.5.1-02, MQBR-1.6-01
            return []
        if source.routing_server:  # MQBR-3.1.5.1-03
            return self._next_hops_for_router(source, target)
        if source.out_routing_server_identifier_list:  # MQBR-3.1.5.1-04, MQBR-1.3.2-01, MQBR-1.3.1-01
            # MQBR-1.3-01, MQBR-1.3-02, MQBR-3.1.5.1-01
            return source.out_routing_server_identifier_list
        # MQBR-1.3-02, MQBR-3.1.5.1-01, MQBR-3.1.5.1-05, MQBR-3.1.5.1-06
        if _share_site(source, target):
            return _into_site(target)  # MQBR-3.1.5.1-01
        return self._routing_server(source)  # MQBR-3.1.5.1-07

    def _next_hops_for_router(self, source: QueueManager, target: QueueManager) -> list[UUID]:
        """GetNextHopsForRouter and GetNextHopsForSiteGate: [MS-MQBR] 3.1.5.2 and 3.1.5.3."""
        if source.identifier in target.in_routing_server_identifier_list:  # MQBR-3.1.5.2-02, MQBR-3.1.5.3-01
            return [target.identifier]
        if _share_site(source, target):  # MQBR-3.1.5.2-03, MQBR-3.1.5.2-04, MQBR-3.1.5.3-02, MQBR-3.1.5.3-03
            return _into_site(target)
        sites = self._read(Site) or []
        if not _is_gate(source, sites):  # MQBR-3.1.5.2-01
            # MQBR-3.1.5.2-05, MQBR-3.1.5.2-06, MQBR-3.1.5.6-01, MQBR-3.1.5.6-02, MQBR-3.1-02
            return _one_gate(_own(source, sites))
        following = None
        for site, next_site in self.routing_table.items():
            # MQBR-3.1.5.3-04, MQBR-3.1.5.3-05, MQBR-1.3.3-01
            if site in target.site_identifier_list:
                following = next_site  # MQBR-3.1.5.3-05
        # MQBR-3.1.5.3-06, MQBR-3.1.5.7-01, MQBR-3.1.5.7-02
        return _one_gate(self._read(Site, following) or []) if following is not None else []

    def _routing_server(self, source: QueueManager) -> list[UUID]:
        """GetRoutingServer: [MS-MQBR] 3.1.5.5."""
        for manager in self._read(QueueManager) or ():
            # MQBR-3.1.5.1-07, MQBR-3.1.5.5-01, MQBR-3.1.5.5-02
            if manager.routing_server and _share_site(manager, source):
                return [manager.identifier]
        return []  # MQBR-3.1.5.5-02

    def _find_queue_manager(self, identifier: UUID) -> QueueManager | None:
        """GetQueueManager: [MS-MQBR] 3.1.5.4."""
        managers = self._read(QueueManager, identifier)
        return managers[0] if managers else None  # MQBR-3.1.5.4-01

    def _read(self, kind: type[_T], identifier: UUID | None = None) -> list[_T] | None:
        """GetDirectoryData, [MS-MQBR] 3.1.5.9: the objects of a type, all or those with an identifier.

        Returns None, which is Nothing, if the directory fails.
        """
        # MQBR-3.1.3.1-02, MQBR-3.1.3.1-03, MQBR-3.1.5.4-01, MQBR-3.1.5.7-01, MQBR-3.1.5.9-02
        filters: list[Filter] = [] if identifier is None else [("Identifier", Operator.EQUALS, identifier)]
        status, handle = self._directory.read_directory_begin(kind.__name__, filters)
        if status is not DirectoryOperationResult.SUCCESS:  # MQBR-3.1.5.9-03
            return None
        objects = []
        while (read := self._directory.read_directory_next(handle)).object is not None:  # MQBR-3.1.5.9-01
            objects.append(read.object)
        self._directory.read_directory_end(handle)  # MQBR-3.1.5.9-05
        if read.status is not DirectoryOperationResult.END_OF_DATA:  # MQBR-3.1.5.9-04
            return None
        return [element for element in objects if isinstance(element, kind)]  # MQBR-3.1.1.1-01


def _is_gate(manager: QueueManager, sites: Iterable[Site]) -> bool:
    """IsSiteGate: [MS-MQBR] 3.1.5.8."""
    # MQBR-3.1.5.8-01, MQBR-3.1.5.8-02, MQBR-3.1.5.8-03, MQBR-3.1.5.8-04, MQBR-1.5-02
    return manager.routing_server and any(
        gate.identifier == manager.identifier for site in _own(manager, sites) for gate in site.site_gates
    )


def _own(manager: QueueManager, sites: Iterable[Site]) -> list[Site]:
    # MQBR-3.1-02, MQBR-3.1.5.2-05, MQBR-3.1.5.2-06, MQBR-3.1.5.6-02
    return [site for site in sites if site.identifier in manager.site_identifier_list]


def _share_site(first: QueueManager, second: QueueManager) -> bool:
    """Return whether two queue managers share a site.

    Two without any site do, a deviation from MQBR-3.1.5.1-09: a small directory needs no sites.
    """
    if not first.site_identifier_list and not second.site_identifier_list:
        return True
    return not set(first.site_identifier_list).isdisjoint(second.site_identifier_list)


def _into_site(target: QueueManager) -> list[UUID]:
    """Return the last hops to a queue manager of the same site."""
    # MQBR-1.3-01, MQBR-1.3-02, MQBR-1.3.2-02, MQBR-3.1.5.1-05, MQBR-3.1.5.1-06
    return target.in_routing_server_identifier_list or [target.identifier]


def _one_gate(sites: Sequence[Site]) -> list[UUID]:
    """GetSiteGate and GetSiteGateForSite, [MS-MQBR] 3.1.5.6 and 3.1.5.7: a gate of the first site, if any."""
    first = sites[:1]  # MQBR-3.1.5.6-03
    # MQBR-3.1.5.6-01, MQBR-3.1.5.7-01
    return [gate.identifier for site in first for gate in site.site_gates[:1]]
