"""The routing table and its timer: [MS-MQBR] 3.1.1.2, 3.1.2, 3.1.3, 3.1.6 and 4."""

from __future__ import annotations

from itertools import permutations
from uuid import UUID

import pytest

from msmqwire.qm.model.directory_objects import RoutingLink
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.rules.routing import next_sites
from tests.support.qm.enterprises import A, B, C, D, E, Enterprise, gate_enterprise, guid

requirement = pytest.mark.requirement
HOUR = 3_600_000
QUERY = Timer.QUEUE_MANAGER_QUERY, None
Costs = dict[tuple[UUID, UUID], int]


def links(costs: Costs) -> list[RoutingLink]:
    return [
        RoutingLink(NULL_GUID, site1_identifier=first, site2_identifier=second, actual_cost=cost)
        for (first, second), cost in costs.items()
    ]


def table(costs: Costs, root: UUID = A) -> dict[UUID, UUID]:
    return next_sites([root], [A, B, C, D, E], links(costs))


def gate(costs: Costs, *, settings: Settings | None = None) -> Enterprise:
    """An enterprise seen by the gate of site A, with gates 11, 12 and 13 of B, C and D."""
    enterprise = gate_enterprise(settings=settings)
    for number, site in ((11, B), (12, C), (13, D)):
        enterprise.site(site, enterprise.router(number, site))
    for (first, second), cost in costs.items():
        enterprise.link(first, second, cost)
    enterprise.routing.initialize()
    return enterprise


# -- what is in it ----------------------------------------------------------------------------------------


@requirement("MQBR-3.1.3.1-01")
def test_who_is_no_gate_has_an_empty_table() -> None:
    enterprise = Enterprise(routing_server=True)
    enterprise.site(A, enterprise.router(7, A))
    enterprise.site(B, enterprise.router(8, B))
    enterprise.link(A, B)
    enterprise.routing.initialize()
    assert enterprise.table == {}
    enterprise.site_of(A).site_gates.append(enterprise.here)
    enterprise.routing.initialize()
    assert enterprise.table == {A: A, B: B}


@requirement("MQBR-3.1.3.1-02", "MQBR-3.1.3.1-03", "MQBR-3.1.5.9-02")
def test_all_sites_and_links_are_read() -> None:
    enterprise = gate({(A, B): 1})
    assert [read for read in enterprise.directory.reads() if read[0] != "QueueManager"] == [
        ("Site", []),
        ("RoutingLink", []),
    ]


@requirement("MQBR-3.1.3.1-04")
def test_without_links_the_table_is_empty() -> None:
    enterprise = gate({})
    assert enterprise.table == {}
    link = enterprise.link(A, B)
    enterprise.routing.initialize()
    assert enterprise.table == {A: A, B: B}
    enterprise.remove(link)
    enterprise.routing.initialize()
    assert enterprise.table == {}
    enterprise.directory.objects.append(link)
    enterprise.routing.initialize()
    assert enterprise.table == {A: A, B: B}
    for site in (A, B, C, D):
        enterprise.remove(enterprise.site_of(site))
    enterprise.routing.initialize()
    assert enterprise.table == {}
    assert link in enterprise.directory.objects


@requirement("MQBR-3.1.3.1-05", "MQBR-1.3.3-02")
@pytest.mark.parametrize("way", [(A, B), (B, A)])
def test_a_link_goes_both_ways(way: tuple[UUID, UUID]) -> None:
    costs = {way: 2, (B, C): 1}
    assert table(costs, A) == {A: A, B: B, C: B}
    assert table(costs, B) == {B: B, A: A, C: C}
    assert table(costs, C) == {C: C, B: B, A: B}


@requirement("MQBR-3.1.3.1-05")
def test_links_between_unknown_sites_are_no_edges() -> None:
    foreign = guid(0x99)
    assert table({(A, foreign): 1, (foreign, B): 1, (A, C): 5, (C, B): 5}) == {A: A, B: C, C: C}


@requirement("MQBR-3.1.3.1-06", "MQBR-1.3.3-02")
@pytest.mark.parametrize("direct, following", [(0, B), (1, B), (9, B), (11, C), (999_999, C)])
def test_the_weight_of_an_edge_is_the_cost_of_its_link(direct: int, following: UUID) -> None:
    costs = {(A, B): direct, (A, C): 5, (C, B): 5}
    assert table(costs)[B] == following
    assert table(costs, B)[A] == {B: A, C: C}[following]


@requirement("MQBR-3.1.3.1-06")
def test_of_two_links_the_cheaper_counts() -> None:
    for first, second in ((3, 12), (12, 3)):
        both = links({(A, B): first}) + links({(B, A): second, (A, C): 5, (C, B): 5})
        assert next_sites([A], [A, B, C], both)[B] == B
    both = links({(A, B): 11}) + links({(B, A): 12, (A, C): 5, (C, B): 5})
    assert next_sites([A], [A, B, C], both)[B] == C


@requirement("MQBR-3.1.3.1-07", "MQBR-1.3.3-03")
def test_the_cost_of_a_path_is_the_sum_of_its_edges() -> None:
    long = {(A, B): 1, (B, C): 1, (C, D): 1}
    assert table(long | {(A, D): 4})[D] == B  # three edges for 3, though one edge leads there
    assert table(long | {(A, D): 2})[D] == D
    assert table({(A, B): 1, (B, D): 9, (A, C): 5, (C, D): 4})[D] == C  # 10 and 9: not by the first edge
    assert table({(A, B): 6, (B, D): 2, (A, C): 1, (C, D): 6})[D] == C  # 8 and 7: not by the last


@requirement("MQBR-3.1.1.2-01", "MQBR-3.1.3.1-09")
def test_a_row_for_each_site() -> None:
    enterprise = gate({(A, B): 1, (B, C): 1, (C, D): 1, (B, D): 3})
    assert enterprise.table == {A: A, B: B, C: B, D: B}
    assert set(map(type, (*enterprise.table, *enterprise.table.values()))) == {UUID}


@requirement("MQBR-3.1.3.1-10")
def test_a_site_that_no_link_reaches_has_no_row() -> None:
    enterprise = gate({(A, B): 1, (C, D): 1})
    assert enterprise.table == {A: A, B: B}
    enterprise.manager(2, D)
    assert enterprise.hops() == []


@requirement("MQBR-3.1.3.1-11", "MQBR-3.1.3.1-08")
def test_of_equal_paths_always_the_same() -> None:
    costs = {(A, B): 1, (A, C): 1, (B, D): 1, (C, D): 1, (A, E): 2, (E, D): 0}
    tables = [
        next_sites([A], sites, links(dict(order)))
        for order in permutations(costs.items())
        for sites in ([A, B, C, D, E], [E, D, C, B, A])
    ]
    assert tables[0][D] in (B, C, E)
    assert [found for found in tables if found != tables[0]] == []


@requirement("MQBR-3.1.3.1-11")
@pytest.mark.parametrize("far", [C, guid(1)], ids=["after", "before"])
def test_of_equal_paths_that_of_the_fewest_links(far: UUID) -> None:
    """Over a link of no cost, two gates would send a message to and fro else."""
    costs = links({(A, B): 0, (A, far): 5, (B, far): 5})
    assert [next_sites([root], [A, B, far], costs)[far] for root in (A, B)] == [far, far]


@requirement("MQBR-4-01")
def test_the_example_with_a_cheap_direct_link() -> None:
    costs = {(A, B): 3, (B, C): 1, (B, D): 1, (C, D): 1}
    assert (table(costs, A)[C], table(costs, B)[C]) == (B, C)


@requirement("MQBR-4-02")
def test_the_example_with_a_dear_direct_link() -> None:
    costs = {(A, B): 3, (B, C): 3, (B, D): 1, (C, D): 1}
    assert (table(costs, A)[C], table(costs, B)[C], table(costs, D)[C]) == (B, D, C)


# -- when it is built -------------------------------------------------------------------------------------


@requirement("MQBR-3.1.2-01", "MQBR-3.1.3-01")
@pytest.mark.parametrize("routing_server", [True, False])
def test_the_query_timer_has_an_hour(routing_server: bool) -> None:
    enterprise = Enterprise(routing_server=routing_server)
    assert not enterprise.timers.active(*QUERY)
    enterprise.routing.initialize()
    assert enterprise.timers.active(*QUERY)
    enterprise.directory.log.clear()
    enterprise.timers.advance(HOUR - 1)
    assert enterprise.directory.log == []
    enterprise.timers.advance(HOUR)
    assert enterprise.directory.reads() != []


@requirement("MQBR-3.1.2.1-01", "MQBR-3.1.6.1-02", "MQBR-1.3.3-04")
def test_the_table_is_as_old_as_the_timer_allows() -> None:
    enterprise = gate({(A, B): 3, (B, C): 1})
    assert enterprise.table[C] == B
    link = enterprise.link(A, C, 1)
    enterprise.timers.advance(HOUR - 1)
    assert enterprise.table[C] == B
    enterprise.timers.advance(HOUR)
    assert enterprise.table[C] == C
    enterprise.remove(link)
    enterprise.timers.advance(2 * HOUR - 1)
    assert enterprise.table[C] == C
    enterprise.timers.advance(2 * HOUR)
    assert enterprise.table[C] == B
    assert enterprise.timers.active(*QUERY)


@requirement("MQBR-3.1.2.1-01")
def test_the_age_of_the_table_is_a_setting() -> None:
    enterprise = gate({(A, B): 1}, settings=Settings(queue_manager_query_ms=5_000))
    enterprise.link(A, C, 1)
    enterprise.timers.advance(4_999)
    assert C not in enterprise.table
    enterprise.timers.advance(5_000)
    assert enterprise.table[C] == C


@requirement("MQBR-3.1.6.1-01", "MQBR-1.3.3-04")
def test_a_gate_comes_and_goes() -> None:
    enterprise = Enterprise(routing_server=True)
    site = enterprise.site(A, enterprise.router(7, A))
    enterprise.site(B, enterprise.router(8, B))
    enterprise.link(A, B)
    enterprise.routing.initialize()
    assert enterprise.table == {}
    site.site_gates.append(enterprise.here)
    enterprise.timers.advance(HOUR)
    assert enterprise.table == {A: A, B: B}
    site.site_gates.remove(enterprise.here)
    enterprise.timers.advance(2 * HOUR)
    assert enterprise.table == {}


@requirement("MQBR-3.1.5.9-04", "MQBR-3.1.5.9-03")
@pytest.mark.parametrize("kind", ["QueueManager", "Site", "RoutingLink"])
@pytest.mark.parametrize("breaks", [True, False], ids=["breaks off", "unreadable"])
@pytest.mark.parametrize("keep", [True, False], ids=["kept", "emptied"])
def test_a_directory_that_fails_makes_no_table(kind: str, breaks: bool, keep: bool) -> None:
    enterprise = gate({(A, B): 1, (B, C): 1}, settings=Settings(keep_routing_table=keep))
    before = dict(enterprise.table)
    assert before == {A: A, B: B, C: B}
    enterprise.link(A, C)
    enterprise.link(A, D)
    if breaks:
        enterprise.directory.breaking[kind] = 1 if kind == "QueueManager" else 3
    else:
        enterprise.directory.unreadable.add(kind)
    enterprise.timers.advance(HOUR)
    assert enterprise.table == (before if keep else {})
    enterprise.directory.breaking.clear()
    enterprise.directory.unreadable.clear()
    enterprise.timers.advance(2 * HOUR)
    assert enterprise.table == {A: A, B: B, C: C, D: D}


@requirement("MQBR-3.1.5.9-04")
def test_a_first_reading_that_fails_leaves_no_table() -> None:
    enterprise = gate_enterprise()
    enterprise.site(B)
    enterprise.link(A, B)
    enterprise.directory.breaking["RoutingLink"] = 1
    enterprise.routing.initialize()
    assert enterprise.table == {}
