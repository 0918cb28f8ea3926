"""Routing through random enterprises, against shortest paths found in another way."""

from __future__ import annotations

from itertools import combinations, pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire.qm.model.elements import QueueManager
from msmqwire.qm.model.timers import Timers
from msmqwire.qm.rules.directory_events import DirectoryEvents
from msmqwire.qm.rules.routing import Routing
from tests.support.qm.enterprises import Enterprise, ListedDirectory, guid

requirement = pytest.mark.requirement
SITES = [UUID(int=0xA0 + number) for number in range(7)]
Edges = list[tuple[UUID, UUID, int]]
sites = st.sampled_from(SITES)
edges = st.lists(st.tuples(sites, sites, st.integers(0, 6)), min_size=1, max_size=16)


def distances(root: UUID, edges: Edges) -> dict[UUID, float]:
    """The least costs from a site to all, by the algorithm of Bellman and Ford."""
    cost = dict.fromkeys(SITES, float("inf")) | {root: 0}
    for _ in SITES:
        for first, second, step in edges:
            for source, target in ((first, second), (second, first)):
                cost[target] = min(cost[target], cost[source] + step)
    return cost


def routing_of(manager: QueueManager, directory: ListedDirectory) -> Routing:
    """The routing of one queue manager of a directory."""
    timers = Timers()
    routing = Routing(manager, DirectoryEvents(manager, directory, timers), timers)  # type: ignore[arg-type]
    routing.initialize()
    return routing


@requirement("MQBR-3.1.3.1-07", "MQBR-3.1.3.1-08", "MQBR-3.1.3.1-09", "MQBR-3.1.3.1-10", "MQBR-1.3.3-03")
@given(edges)
def test_ways_by_the_tables_of_all_gates_cost_least(edges: Edges) -> None:
    """Each gate on the way goes by its own table: links of no cost must not make messages go round."""
    enterprise = Enterprise(UUID(int=0xFF))
    gates = {site: enterprise.router(10 + number, site) for number, site in enumerate(SITES)}
    for site, gate in gates.items():
        enterprise.site(site, gate)
    for link in edges:
        enterprise.link(*link)
    tables = {site: routing_of(gate, enterprise.directory).routing_table for site, gate in gates.items()}
    for root in SITES:
        least = distances(root, edges)
        assert tables[root].keys() == {site for site in SITES if least[site] < float("inf")}
        for target, following in tables[root].items():
            if target == root:
                assert following == root
                continue
            steps = [step for *ends, step in edges if {root, following} == set(ends)]
            assert following != root
            assert min(steps) + distances(following, edges)[target] == least[target]
            way = [root]
            while way[-1] != target:
                way.append(tables[way[-1]][target])
                assert len(way) <= len(SITES)


@requirement("MQBR-3.1-02", "MQBR-1.3.3-01")
@given(st.data())
def test_only_gates_cross_sites(data: st.DataObject) -> None:
    own_sites = SITES[: data.draw(st.integers(1, 4), "sites")]
    enterprise = Enterprise(UUID(int=0xFF))
    managers: list[QueueManager] = []
    gates = set()
    for number, site in enumerate(own_sites):
        base = 100 * (number + 1)
        gate, router = enterprise.router(base, site), enterprise.router(base + 1, site)
        gates.add(gate.identifier)
        enterprise.site(site, gate)
        servers = st.lists(st.sampled_from([gate.identifier, router.identifier]), unique=True)
        members = [
            enterprise.manager(
                base + 10 + member, site,
                out_routing_server_identifier_list=data.draw(servers),
                in_routing_server_identifier_list=data.draw(servers),
            )
            for member in range(2)
        ]  # fmt: skip
        managers += [gate, router, *members]
    for before, after in pairwise(own_sites):
        enterprise.link(before, after, data.draw(st.integers(1, 5)))
    for first, second in combinations(own_sites, 2):
        if data.draw(st.booleans()):
            enterprise.link(first, second, data.draw(st.integers(1, 5)))
    by_identifier = {manager.identifier: manager for manager in managers}
    routings = {manager.identifier: routing_of(manager, enterprise.directory) for manager in managers}
    sender, target = data.draw(st.permutations(managers))[:2]
    way = [sender.identifier]
    while way[-1] != target.identifier:
        hops = routings[way[-1]].next_hops(target.identifier)
        assert hops
        way.append(data.draw(st.sampled_from(hops)))
        assert len(way) <= len(own_sites) + 5
    for here, there in pairwise(way):
        if by_identifier[here].site_identifier_list != by_identifier[there].site_identifier_list:
            assert {here, there} <= gates
    assert guid(1) not in way
