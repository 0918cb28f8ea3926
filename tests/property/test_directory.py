"""The directory and the routing table against what they stand for."""

from __future__ import annotations

from itertools import pairwise
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from msmqwire.names import parse_format_name
from msmqwire.qm.directory.attributes import Operator, satisfies
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
    """The least costs between all sites, after Floyd and Warshall."""
    cost = {(one, other): float("inf") for one in SITES for other in SITES}
    cost |= {(site, site): 0 for site in SITES}
    for one, other, step in edges:
        cost[one, other] = cost[other, one] = min(cost[one, other], step)
    for middle in SITES:
        for one in SITES:
            for other in SITES:
                cost[one, other] = min(cost[one, other], cost[one, middle] + cost[middle, other])
    return cost


@given(st.sets(sites, min_size=1, max_size=2), links)
def test_the_next_site_is_on_a_way_of_least_cost(own: set[UUID], edges: list[tuple[UUID, UUID, int]]) -> None:
    made = [
        RoutingLink(NULL_GUID, site1_identifier=one, site2_identifier=other, actual_cost=cost)
        for one, other, cost in edges
    ]
    table, cost = next_sites(own, SITES, made), costs(edges)
    for site in SITES:
        least = min(cost[start, site] for start in own)
        assert (site in table) == (least < float("inf"))
        if site in own:
            assert table[site] == site
        elif site in table:
            following = table[site]
            steps = [
                step
                for one, other, step in edges
                if (one in own and other == following) or (other in own and one == following)
            ]
            assert following not in own
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
    assert {each: satisfies([("A", each, right)], lambda _: left) for each in Operator} == expected


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
    found = directory.read_directory("Queue", [("Label", "EQUALS", label), ("Type", "EQUALS", kind)]).found
    assert isinstance(found, Queue)
    for field in ("label", "pathname", "quota", "journaling", "type", "security", "privacy_level"):
        assert getattr(found, field) == getattr(queue, field)
    assert found.multicast_address == multicast


@given(st.lists(st.sampled_from("abcABC"), min_size=2, max_size=8))
def test_expanded_names_are_sorted_and_different(hosts: list[str]) -> None:
    events = DirectoryEvents(QueueManager(UUID(int=1)), None, Timers())
    name = parse_format_name(",".join(f"DIRECT=OS:{host}\\q" for host in hosts))
    texts = str(events.expand_format_name(name)).lower().split(",")
    assert texts == sorted({f"direct=os:{host.lower()}\\q" for host in hosts})
    assert all(one < other for one, other in pairwise(texts))
