"""The directory and the routing table against simple models."""

from __future__ import annotations

from itertools import pairwise
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from msmqwire.names import parse_format_name
from msmqwire.qm.directory.attributes import Filter, Operator, satisfies
from msmqwire.qm.directory.embedded import EmbeddedDirectory
from msmqwire.qm.model.directory_objects import RoutingLink
from msmqwire.qm.model.elements import Queue, QueueManager
from msmqwire.qm.model.enumerations import DirectoryOperationResult, QueuePrivacy, QueueType
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.timers import Timers
from msmqwire.qm.rules.directory_events import DirectoryEvents
from msmqwire.qm.rules.routing import next_sites

SITES = [UUID(int=number) for number in range(1, 7)]
sites = st.sampled_from(SITES)
links = st.lists(st.tuples(sites, sites, st.integers(1, 5)), max_size=12)


def costs(edges: list[tuple[UUID, UUID, int]]) -> dict[tuple[UUID, UUID], float]:
    """Return the lowest costs between all sites, by the Floyd-Warshall algorithm."""
    cost = {(source, target): float("inf") for source in SITES for target in SITES}
    cost |= {(site, site): 0 for site in SITES}
    for source, target, step in edges:
        cost[source, target] = cost[target, source] = min(cost[source, target], step)
    for middle in SITES:
        for source in SITES:
            for target in SITES:
                cost[source, target] = min(cost[source, target], cost[source, middle] + cost[middle, target])
    return cost


@given(st.sets(sites, min_size=1, max_size=2), links)
def test_the_next_site_is_on_a_path_of_least_cost(
    own_sites: set[UUID], edges: list[tuple[UUID, UUID, int]]
) -> None:
    routing_links = [
        RoutingLink(NULL_GUID, site1_identifier=first, site2_identifier=second, actual_cost=cost)
        for first, second, cost in edges
    ]
    table, cost = next_sites(own_sites, SITES, routing_links), costs(edges)
    for site in SITES:
        least = min(cost[start, site] for start in own_sites)
        assert (site in table) == (least < float("inf"))
        if site in own_sites:
            assert table[site] == site
        elif site in table:
            following = table[site]
            steps = [
                step
                for first, second, step in edges
                if (first in own_sites and second == following)
                or (second in own_sites and first == following)
            ]
            assert following not in own_sites
            assert min(steps) + cost[following, site] == least


@given(st.integers(-5, 5), st.integers(-5, 5))
def test_operators_agree_with_numbers(left: int, right: int) -> None:
    expected = {
        Operator.EQUALS: left == right,
        Operator.NOT_EQUALS: left != right,
        Operator.LESS_THAN: left < right,
        Operator.GREATER_THAN: left > right,
        Operator.LESS_THAN_OR_EQUAL: left <= right,
        Operator.GREATER_THAN_OR_EQUAL: left >= right,
    }
    results = {operator: satisfies([("A", operator, right)], lambda _: left) for operator in Operator}
    assert results == expected


@given(
    label=st.text(max_size=20),
    quota=st.integers(0, 0xFFFFFFFF),
    journaling=st.booleans(),
    kind=st.uuids(),
    security=st.binary(max_size=20),
    privacy=st.sampled_from(QueuePrivacy),
    multicast=st.none() | st.text(max_size=10),
)
def test_what_is_written_is_read(
    label: str,
    quota: int,
    journaling: bool,
    kind: UUID,
    security: bytes,
    privacy: QueuePrivacy,
    multicast: str | None,
) -> None:
    directory = EmbeddedDirectory()
    queue = Queue(
        UUID(int=1), label=label, pathname="m\\q", quota=quota, journaling=journaling, type=kind,
        security=security, privacy_level=privacy, multicast_address=multicast,
    )  # fmt: skip
    queue.queue_type = QueueType.PUBLIC
    assert directory.create_directory_object(queue).status is DirectoryOperationResult.SUCCESS
    filters: list[Filter] = [("Label", "EQUALS", label), ("Type", "EQUALS", kind)]
    stored = directory.read_directory("Queue", filters).object
    assert isinstance(stored, Queue)
    for field in ("label", "pathname", "quota", "journaling", "type", "security", "privacy_level"):
        assert getattr(stored, field) == getattr(queue, field)
    assert stored.multicast_address == multicast


@given(st.lists(st.sampled_from("abcABC"), min_size=2, max_size=8))
def test_expanded_names_are_sorted_and_different(hosts: list[str]) -> None:
    events = DirectoryEvents(QueueManager(UUID(int=1)), None, Timers())
    name = parse_format_name(",".join(f"DIRECT=OS:{host}\\q" for host in hosts))
    texts = str(events.expand_format_name(name)).lower().split(",")
    assert texts == sorted({f"direct=os:{host.lower()}\\q" for host in hosts})
    assert all(first < second for first, second in pairwise(texts))
