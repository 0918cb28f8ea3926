"""Directory reads: [MS-MQDMPR] 3.1.7.1.20 to 3.1.7.1.23."""

from __future__ import annotations

from typing import Any

import pytest

from msmqwire.qm.directory import SortOrder
from msmqwire.qm.directory.attributes import Operator
from msmqwire.qm.model.directory_objects import RoutingLink, Site
from msmqwire.qm.model.elements import Queue, QueueManager
from msmqwire.qm.model.enumerations import DirectoryOperationResult as Result
from msmqwire.qm.model.message import NULL_GUID
from tests.support.engine_harness import PEER_ID
from tests.support.qm.directory_recorder import RecordedDirectoryEvents, guid, public_queue

# -- Read -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.20-01", "DMPR-3.1.7.1.20-07")
def test_the_first_object_that_satisfies_all_expressions_is_read(recorded: RecordedDirectoryEvents) -> None:
    sites = [Site(guid(n), name=f"s{n}", inter_site_replication_interval=n % 2) for n in (20, 21, 22, 23)]
    recorded.directory.publish(*sites)
    read = recorded.events.read_directory
    odd = ("InterSiteReplicationInterval", "EQUALS", 1)
    first, second = read("Site").object, read("Site", [odd]).object
    both = read("Site", [odd, ("Name", "GREATER-THAN", "s21")]).object
    assert [each and each.identifier for each in (first, second, both)] == [guid(20), guid(21), guid(23)]
    assert read("Site", [odd, ("Name", "EQUALS", "s20")]).status is Result.OBJECT_NOT_FOUND
    assert recorded.directory.operations() == ["read_directory"] * 4


@pytest.mark.requirement("DMPR-3.1.7.1.20-02")
@pytest.mark.parametrize(
    "operator, costs",
    [
        ("EQUALS", [5]),
        ("NOT-EQUALS", [3, 8]),
        ("LESS-THAN", [3]),
        ("GREATER-THAN", [8]),
        ("LESS-THAN-OR-EQUAL", [3, 5]),
        ("GREATER-THAN-OR-EQUAL", [5, 8]),
    ],
)
def test_the_six_operators(recorded: RecordedDirectoryEvents, operator: str, costs: list[int]) -> None:
    for cost in (3, 5, 8):
        link = RoutingLink(
            guid(cost), actual_cost=cost, site1_identifier=guid(70), site2_identifier=guid(70 + cost)
        )
        recorded.directory.publish(link)
    status, handle = recorded.events.read_directory_begin("RoutingLink", [("ActualCost", operator, 5)])
    assert status is Result.SUCCESS
    found_costs = []
    while isinstance(link := recorded.events.read_directory_next(handle).object, RoutingLink):
        found_costs.append(link.actual_cost)
    assert found_costs == costs
    assert len(Operator) == 6


@pytest.mark.requirement("DMPR-3.1.7.1.20-02")
@pytest.mark.parametrize("bad", [("ActualCost", "LIKE", 5), ("Cost", "EQUALS", 5)])
def test_other_operators_and_attributes_are_refused(
    recorded: RecordedDirectoryEvents, bad: tuple[str, str, object]
) -> None:
    assert recorded.events.read_directory("RoutingLink", [bad]).status is Result.GENERIC_ERROR
    assert recorded.events.read_directory_begin("RoutingLink", [bad]).status is Result.GENERIC_ERROR


@pytest.mark.requirement("DMPR-3.1.7.1.20-03")
def test_only_the_attributes_asked_for_are_read(recorded: RecordedDirectoryEvents) -> None:
    recorded.directory.publish(public_queue(label="a", quota=7))
    whole = recorded.events.read_directory("Queue").object
    assert isinstance(whole, Queue)
    assert (whole.label, whole.quota, whole.pathname) == ("a", 7, "here\\orders")
    part = recorded.events.read_directory("Queue", None, ["Label"]).object
    assert isinstance(part, Queue)
    assert part.label == "a"
    assert (part.quota, part.pathname) == (Queue(NULL_GUID).quota, "")


@pytest.mark.requirement("DMPR-3.1.7.1.20-04")
def test_offline_queues_are_those_of_this_computer(recorded: RecordedDirectoryEvents) -> None:
    first = recorded.add(public_queue(100, "here\\orders"))
    second = recorded.add(public_queue(101, "here\\bills", label="b"))
    recorded.directory.publish(public_queue(102, "there\\orders"))
    recorded.manager.directory_offline = True
    assert recorded.events.read_directory("Queue") == (Result.SUCCESS, first)
    assert recorded.events.read_directory("Queue", [("Label", "EQUALS", "b")]) == (Result.SUCCESS, second)
    assert recorded.events.read_directory("Queue", [("Identifier", "EQUALS", guid(102))]) == (
        Result.OBJECT_NOT_FOUND,
        None,
    )
    assert recorded.log == []


@pytest.mark.requirement("DMPR-3.1.7.1.20-05", "DMPR-3.1.7.1.20-06")
def test_offline_only_the_queue_manager_here_is_known(recorded: RecordedDirectoryEvents) -> None:
    recorded.directory.publish(QueueManager(PEER_ID, computer_name="there"), Site(guid(9), name="north"))
    recorded.manager.directory_offline = True
    read = recorded.events.read_directory
    assert read("QueueManager", [("ComputerName", "EQUALS", "HERE")]) == (Result.SUCCESS, recorded.manager)
    assert read("QueueManager", [("Identifier", "EQUALS", PEER_ID)]) == (Result.DIRECTORY_NOT_CONNECTED, None)
    for kind in ("Site", "User", "Enterprise", "RoutingLink"):
        assert read(kind) == (Result.DIRECTORY_NOT_CONNECTED, None)
    assert recorded.log == []


@pytest.mark.requirement("DMPR-3.1.7.1.20-04", "DMPR-3.1.7.1.20-05", "DMPR-3.1.7.1.20-06")
def test_a_forced_read_asks_the_directory_all_the_same(recorded: RecordedDirectoryEvents) -> None:
    there, queue = QueueManager(PEER_ID, computer_name="there"), public_queue(102, "there\\orders")
    site = Site(guid(9), name="north")
    recorded.directory.publish(there, queue, site)
    recorded.manager.directory_offline = True
    for each in (there, queue, site):
        filters = [("Identifier", "EQUALS", each.identifier)]
        found = recorded.events.read_directory(type(each).__name__, filters, force=True).object
        assert found is not None
        assert found.identifier == each.identifier
    assert recorded.directory.operations() == ["read_directory"] * 3


@pytest.mark.requirement("DMPR-3.1.7.1.20-08")
def test_a_forced_read_does_not_make_it_offline(recorded: RecordedDirectoryEvents) -> None:
    recorded.directory.directory.connected = False
    result = recorded.events.read_directory("Site", force=True)
    assert result == (Result.DIRECTORY_NOT_CONNECTED, None)
    recorded.assert_online()


@pytest.mark.requirement("DMPR-3.1.7.1.20-07")
@pytest.mark.parametrize(
    "status", [Result.OBJECT_NOT_FOUND, Result.ATTRIBUTE_NOT_FOUND, Result.GENERIC_ERROR]
)
def test_the_status_of_a_read_is_passed_on(recorded: RecordedDirectoryEvents, status: Result) -> None:
    recorded.directory.status = status
    assert recorded.events.read_directory("Site") == (status, None)
    assert recorded.log == [("read_directory", "Site", None, None)]
    recorded.assert_online()


def names_read(recorded: RecordedDirectoryEvents, *query: Any) -> list[str]:
    status, handle = recorded.events.read_directory_begin(*query)
    assert status is Result.SUCCESS
    names = []
    while isinstance(site := recorded.events.read_directory_next(handle).object, Site):
        names.append(site.name)
    assert recorded.events.read_directory_next(handle).status is Result.END_OF_DATA
    assert recorded.events.read_directory_end(handle) is Result.SUCCESS
    return names


@pytest.mark.requirement("DMPR-3.1.7.1.21-01", "DMPR-3.1.7.1.22-01", "DMPR-3.1.7.1.23-01")
def test_reading_one_after_another(recorded: RecordedDirectoryEvents) -> None:
    recorded.directory.publish(*(Site(guid(n), name=f"s{n}", foreign_site=n > 21) for n in (20, 21, 22, 23)))
    assert names_read(recorded, "Site") == ["s20", "s21", "s22", "s23"]
    foreign = [("ForeignSite", "EQUALS", True), ("Name", "NOT-EQUALS", "s22")]
    assert names_read(recorded, "Site", foreign) == ["s23"]
    assert names_read(recorded, "Site", [("Name", "EQUALS", "nowhere")]) == []
    assert set(recorded.directory.operations()) == {
        "read_directory_begin",
        "read_directory_next",
        "read_directory_end",
    }


@pytest.mark.requirement("DMPR-3.1.7.1.23-01")
def test_the_end_of_a_read(recorded: RecordedDirectoryEvents) -> None:
    handle = recorded.events.read_directory_begin("Site").handle
    assert recorded.events.read_directory_end(handle) is Result.SUCCESS
    assert recorded.events.read_directory_end(handle) is Result.GENERIC_ERROR
    assert recorded.events.read_directory_next(handle).status is Result.GENERIC_ERROR


@pytest.mark.requirement("DMPR-3.1.7.1.21-02", "DMPR-3.1.7.1.22-01")
@pytest.mark.parametrize(
    "orders, expected",
    [
        pytest.param([(2, True), (1, True)], ["a1", "a2", "b1", "b2"], id="name, then interval"),
        pytest.param([(1, True), (2, True)], ["a1", "b1", "a2", "b2"], id="interval, then name"),
        pytest.param([(1, False), (2, True)], ["b1", "a1", "b2", "a2"], id="interval, then name down"),
        pytest.param([(0, True), (0, False)], ["b2", "a1", "a2", "b1"], id="as created"),
        pytest.param([(0, True), (1, False)], ["b2", "a2", "a1", "b1"], id="interval down only"),
    ],
)
def test_sort_orders(
    recorded: RecordedDirectoryEvents, orders: list[tuple[int, bool]], expected: list[str]
) -> None:
    for number, name in enumerate(["b2", "a1", "a2", "b1"], 30):
        site = Site(guid(number), name=name, primary_site_controller=name[0])
        site.intra_site_replication_interval = int(name[1])
        recorded.directory.publish(site)
    attributes = ["PrimarySiteController", "IntraSiteReplicationInterval", "Name"]
    sorts = [*(SortOrder(*order) for order in orders), SortOrder()]
    assert names_read(recorded, "Site", None, attributes, sorts) == expected


@pytest.mark.requirement("DMPR-3.1.7.1.21-02")
def test_a_sort_order_for_each_attribute(recorded: RecordedDirectoryEvents) -> None:
    begin = recorded.events.read_directory_begin
    assert begin("Site", None, ["Name", "FullPath"], [SortOrder(1)]).status is Result.GENERIC_ERROR


@pytest.mark.requirement("DMPR-3.1.7.1.22-01")
def test_the_attributes_asked_for_at_the_beginning(recorded: RecordedDirectoryEvents) -> None:
    recorded.directory.publish(Site(guid(20), name="north", foreign_site=True))
    handle = recorded.events.read_directory_begin("Site", None, ["Name"]).handle
    site = recorded.events.read_directory_next(handle).object
    assert isinstance(site, Site)
    assert site.name == "north"
    assert site.foreign_site is False
