"""The events on the directory: [MS-MQDMPR] 3.1.2, 3.1.6.1, 3.1.6.2, 3.1.7.1.18 to 26 and 3.1.7.3.8."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from msmqwire.constants import HResult
from msmqwire.names import (
    ConnectorName,
    DirectName,
    DistributionListName,
    MulticastName,
    MultipleElementName,
    PrivateName,
    PublicName,
    parse_format_name,
)
from msmqwire.qm.directory import Created, Found, Opened, Resolved, SortOrder
from msmqwire.qm.directory.attributes import Operator
from msmqwire.qm.directory.embedded import EmbeddedDirectory
from msmqwire.qm.manager.directory import ChangeOperation, DirectoryEvents
from msmqwire.qm.model.directory import DirectoryObject, Enterprise, RoutingLink, Site, User
from msmqwire.qm.model.elements import Queue, QueueManager
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.timers import Timer, Timers
from msmqwire.qm.model.values import DirectoryOperationResult as Result
from msmqwire.qm.model.values import QueueType

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
                "create_directory_object": Created,
                "read_directory": Found,
                "read_directory_begin": Opened,
                "read_directory_next": Found,
                "resolve_distribution_list": Resolved,
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


@pytest.fixture
def desk() -> Desk:
    return Desk()


def assert_offline(desk: Desk) -> None:
    assert desk.manager.directory_offline
    assert desk.timers.active(*ONLINE)


def assert_online(desk: Desk) -> None:
    assert not desk.manager.directory_offline
    assert not desk.timers.active(*ONLINE)


# -- Create, Delete, Write ------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.18-01", "DMPR-3.1.7.1.18-03")
def test_a_public_queue_is_announced_before_the_directory_is_asked(desk: Desk) -> None:
    queue = public()
    created = desk.events.create_directory_object(queue)
    assert created == (Result.SUCCESS, queue.identifier)
    assert desk.log == [(ChangeOperation.QUEUE_CREATION, queue), ("create_directory_object", queue, None)]


@pytest.mark.requirement("DMPR-3.1.7.1.18-01", "DMPR-3.1.7.1.19-01")
@pytest.mark.parametrize("made", [QueueManager(THERE, computer_name="there"), Site(guid(9), name="north")])
def test_nothing_else_is_announced(desk: Desk, made: DirectoryObject) -> None:
    assert desk.events.create_directory_object(made).status is Result.SUCCESS
    assert desk.events.delete_directory_object(made) is Result.SUCCESS
    assert desk.asked == ["create_directory_object", "delete_directory_object"]
    assert len(desk.log) == 2


@pytest.mark.requirement("DMPR-3.1.7.1.18-03")
def test_all_attributes_are_stored_or_only_those_named(desk: Desk) -> None:
    desk.events.create_directory_object(public(100, "here\\all", label="a", quota=7))
    desk.events.create_directory_object(public(101, "here\\some", label="b", quota=7), ["Pathname", "Label"])
    read = desk.events.read_directory
    whole = read("Queue", [("Pathname", "EQUALS", "here\\all")], ["Label", "Quota"]).found
    assert isinstance(whole, Queue)
    assert (whole.label, whole.quota) == ("a", 7)
    part = read("Queue", [("Pathname", "EQUALS", "here\\some")], ["Label"]).found
    assert isinstance(part, Queue)
    assert part.label == "b"
    assert (
        read("Queue", [("Pathname", "EQUALS", "here\\some")], ["Quota"]).status is Result.ATTRIBUTE_NOT_FOUND
    )


@pytest.mark.requirement("DMPR-3.1.7.1.18-05")
@pytest.mark.parametrize("status", [Result.OBJECT_ALREADY_EXISTS, Result.GENERIC_ERROR])
def test_the_status_of_a_creation_is_passed_on(desk: Desk, status: Result) -> None:
    desk.directory.status = status
    assert desk.events.create_directory_object(public()).status is status
    assert_online(desk)


@pytest.mark.requirement("DMPR-3.1.7.1.18-05")
def test_the_identifier_of_what_was_created_is_passed_on(desk: Desk) -> None:
    status, identifier = desk.events.create_directory_object(Site(NULL_GUID, name="north"))
    assert status is Result.SUCCESS
    assert identifier not in (None, NULL_GUID)
    found = desk.events.read_directory("Site").found
    assert found is not None
    assert found.identifier == identifier


@pytest.mark.requirement("DMPR-3.1.7.1.19-01", "DMPR-3.1.7.1.19-03")
def test_the_deletion_of_a_public_queue_is_announced_first(desk: Desk) -> None:
    queue = public()
    desk.store(queue)
    assert desk.events.delete_directory_object(queue) is Result.SUCCESS
    assert desk.log == [(ChangeOperation.QUEUE_DELETION, queue), ("delete_directory_object", queue)]
    assert desk.directory.behind.read_directory("Queue").status is Result.OBJECT_NOT_FOUND
    assert desk.events.delete_directory_object(queue) is Result.OBJECT_NOT_FOUND
    assert_online(desk)


CHANGES = {
    "create": pytest.param(
        lambda events, queue: events.create_directory_object(queue).status,
        id="create",
        marks=pytest.mark.requirement("DMPR-3.1.7.1.18-04"),
    ),
    "delete": pytest.param(
        lambda events, queue: events.delete_directory_object(queue),
        id="delete",
        marks=pytest.mark.requirement("DMPR-3.1.7.1.19-04"),
    ),
    "write": pytest.param(
        lambda events, queue: events.write_directory(queue),
        id="write",
        marks=pytest.mark.requirement("DMPR-3.1.7.1.24-02"),
    ),
    "read": pytest.param(
        lambda events, _: events.read_directory("Queue").status,
        id="read",
        marks=pytest.mark.requirement("DMPR-3.1.7.1.20-08"),
    ),
}


@pytest.mark.parametrize("change", CHANGES.values())
def test_a_directory_that_is_away_makes_it_offline(desk: Desk, change: Any) -> None:
    desk.directory.behind.connected = False
    assert change(desk.events, public()) is Result.DIRECTORY_NOT_CONNECTED
    assert_offline(desk)
    assert ChangeOperation.QUEUE_UPDATE not in [entry[0] for entry in desk.log]


@pytest.mark.parametrize("change", CHANGES.values())
def test_a_timer_that_runs_is_left_alone(desk: Desk, change: Any) -> None:
    expired: list[int] = []
    desk.timers.start(*ONLINE, 10_000, lambda: expired.append(desk.timers.now))
    desk.timers.advance(1_000)
    desk.directory.behind.connected = False
    assert change(desk.events, public()) is Result.DIRECTORY_NOT_CONNECTED
    desk.timers.advance(10_000)
    assert expired == [10_000]


@pytest.mark.requirement("DMPR-3.1.7.1.24-01", "DMPR-3.1.7.1.24-03")
def test_a_write_is_announced_afterwards(desk: Desk) -> None:
    queue = public(label="old", quota=1)
    desk.store(queue)
    queue.label, queue.quota = "new", 2
    assert desk.events.write_directory(queue, ["Label"]) is Result.SUCCESS
    assert desk.log == [("write_directory", queue, ["Label"]), (ChangeOperation.QUEUE_UPDATE, queue)]
    found = desk.directory.behind.read_directory("Queue").found
    assert isinstance(found, Queue)
    assert (found.label, found.quota) == ("new", 1)
    assert desk.events.write_directory(queue) is Result.SUCCESS
    found = desk.directory.behind.read_directory("Queue").found
    assert isinstance(found, Queue)
    assert found.quota == 2


@pytest.mark.requirement("DMPR-3.1.7.1.24-04")
def test_a_written_queue_manager_is_announced_and_a_site_is_not(desk: Desk) -> None:
    site = Site(guid(9), name="north")
    desk.store(desk.manager, site)
    assert desk.events.write_directory(desk.manager) is Result.SUCCESS
    assert desk.events.write_directory(site) is Result.SUCCESS
    told = [entry for entry in desk.log if isinstance(entry[0], ChangeOperation)]
    assert told == [(ChangeOperation.QUEUE_MANAGER_UPDATE, desk.manager)]


@pytest.mark.requirement("DMPR-3.1.7.1.24-03", "DMPR-3.1.7.1.24-04")
def test_a_failed_write_is_not_announced(desk: Desk) -> None:
    assert desk.events.write_directory(public()) is Result.OBJECT_NOT_FOUND
    assert desk.events.write_directory(desk.manager) is Result.OBJECT_NOT_FOUND
    assert desk.asked == ["write_directory"] * 2
    assert len(desk.log) == 2


# -- Read -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.20-01", "DMPR-3.1.7.1.20-07")
def test_the_first_object_that_satisfies_all_expressions_is_read(desk: Desk) -> None:
    sites = [Site(guid(n), name=f"s{n}", inter_site_replication_interval=n % 2) for n in (20, 21, 22, 23)]
    desk.store(*sites)
    read = desk.events.read_directory
    odd = ("InterSiteReplicationInterval", "EQUALS", 1)
    first, second = read("Site").found, read("Site", [odd]).found
    both = read("Site", [odd, ("Name", "GREATER-THAN", "s21")]).found
    assert [each and each.identifier for each in (first, second, both)] == [guid(20), guid(21), guid(23)]
    assert read("Site", [odd, ("Name", "EQUALS", "s20")]).status is Result.OBJECT_NOT_FOUND
    assert desk.asked == ["read_directory"] * 4


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
def test_the_six_operators(desk: Desk, operator: str, costs: list[int]) -> None:
    for cost in (3, 5, 8):
        link = RoutingLink(
            guid(cost), actual_cost=cost, site1_identifier=guid(70), site2_identifier=guid(70 + cost)
        )
        desk.store(link)
    status, handle = desk.events.read_directory_begin("RoutingLink", [("ActualCost", operator, 5)])
    assert status is Result.SUCCESS
    found = []
    while isinstance(link := desk.events.read_directory_next(handle).found, RoutingLink):
        found.append(link.actual_cost)
    assert found == costs
    assert len(Operator) == 6


@pytest.mark.requirement("DMPR-3.1.7.1.20-02")
@pytest.mark.parametrize("bad", [("ActualCost", "LIKE", 5), ("Cost", "EQUALS", 5)])
def test_other_operators_and_attributes_are_refused(desk: Desk, bad: tuple[str, str, object]) -> None:
    assert desk.events.read_directory("RoutingLink", [bad]).status is Result.GENERIC_ERROR
    assert desk.events.read_directory_begin("RoutingLink", [bad]).status is Result.GENERIC_ERROR


@pytest.mark.requirement("DMPR-3.1.7.1.20-03")
def test_only_the_attributes_asked_for_are_read(desk: Desk) -> None:
    desk.store(public(label="a", quota=7))
    whole = desk.events.read_directory("Queue").found
    assert isinstance(whole, Queue)
    assert (whole.label, whole.quota, whole.pathname) == ("a", 7, "here\\orders")
    part = desk.events.read_directory("Queue", None, ["Label"]).found
    assert isinstance(part, Queue)
    assert part.label == "a"
    assert (part.quota, part.pathname) == (Queue(NULL_GUID).quota, "")


@pytest.mark.requirement("DMPR-3.1.7.1.20-04")
def test_offline_queues_are_those_of_this_computer(desk: Desk) -> None:
    desk.add(public(100, "here\\orders"))
    second = desk.add(public(101, "here\\bills", label="b"))
    desk.store(public(102, "there\\orders"))
    desk.manager.directory_offline = True
    assert desk.events.read_directory("Queue", [("Label", "EQUALS", "b")]) == (Result.SUCCESS, second)
    assert desk.events.read_directory("Queue", [("Identifier", "EQUALS", guid(102))]) == (
        Result.OBJECT_NOT_FOUND,
        None,
    )
    assert desk.log == []


@pytest.mark.requirement("DMPR-3.1.7.1.20-05", "DMPR-3.1.7.1.20-06")
def test_offline_only_the_queue_manager_here_is_known(desk: Desk) -> None:
    desk.store(QueueManager(THERE, computer_name="there"), Site(guid(9), name="north"))
    desk.manager.directory_offline = True
    read = desk.events.read_directory
    assert read("QueueManager", [("ComputerName", "EQUALS", "HERE")]) == (Result.SUCCESS, desk.manager)
    assert read("QueueManager", [("Identifier", "EQUALS", THERE)]) == (Result.DIRECTORY_NOT_CONNECTED, None)
    for kind in ("Site", "User", "Enterprise", "RoutingLink"):
        assert read(kind) == (Result.DIRECTORY_NOT_CONNECTED, None)
    assert desk.log == []


@pytest.mark.requirement("DMPR-3.1.7.1.20-04", "DMPR-3.1.7.1.20-05", "DMPR-3.1.7.1.20-06")
def test_a_forced_read_asks_the_directory_all_the_same(desk: Desk) -> None:
    desk.store(QueueManager(THERE, computer_name="there"))
    desk.manager.directory_offline = True
    found = desk.events.read_directory("QueueManager", [("Identifier", "EQUALS", THERE)], force=True).found
    assert found is not None
    assert found.identifier == THERE
    assert desk.asked == ["read_directory"]


@pytest.mark.requirement("DMPR-3.1.7.1.20-08")
def test_a_forced_read_does_not_make_it_offline(desk: Desk) -> None:
    desk.directory.behind.connected = False
    found = desk.events.read_directory("Site", force=True)
    assert found == (Result.DIRECTORY_NOT_CONNECTED, None)
    assert_online(desk)


@pytest.mark.requirement("DMPR-3.1.7.1.20-07")
@pytest.mark.parametrize(
    "status", [Result.OBJECT_NOT_FOUND, Result.ATTRIBUTE_NOT_FOUND, Result.GENERIC_ERROR]
)
def test_the_status_of_a_read_is_passed_on(desk: Desk, status: Result) -> None:
    desk.directory.status = status
    assert desk.events.read_directory("Site") == (status, None)
    assert desk.log == [("read_directory", "Site", None, None)]
    assert_online(desk)


def names_read(desk: Desk, *query: Any) -> list[str]:
    status, handle = desk.events.read_directory_begin(*query)
    assert status is Result.SUCCESS
    names = []
    while isinstance(site := desk.events.read_directory_next(handle).found, Site):
        names.append(site.name)
    assert desk.events.read_directory_next(handle).status is Result.END_OF_DATA
    assert desk.events.read_directory_end(handle) is Result.SUCCESS
    return names


@pytest.mark.requirement("DMPR-3.1.7.1.21-01", "DMPR-3.1.7.1.22-01", "DMPR-3.1.7.1.23-01")
def test_reading_one_after_another(desk: Desk) -> None:
    desk.store(*(Site(guid(n), name=f"s{n}", foreign_site=n > 21) for n in (20, 21, 22, 23)))
    assert names_read(desk, "Site") == ["s20", "s21", "s22", "s23"]
    foreign = [("ForeignSite", "EQUALS", True), ("Name", "NOT-EQUALS", "s22")]
    assert names_read(desk, "Site", foreign) == ["s23"]
    assert names_read(desk, "Site", [("Name", "EQUALS", "nowhere")]) == []
    assert set(desk.asked) == {"read_directory_begin", "read_directory_next", "read_directory_end"}


@pytest.mark.requirement("DMPR-3.1.7.1.23-01")
def test_the_end_of_a_read(desk: Desk) -> None:
    handle = desk.events.read_directory_begin("Site").handle
    assert desk.events.read_directory_end(handle) is Result.SUCCESS
    assert desk.events.read_directory_end(handle) is Result.GENERIC_ERROR
    assert desk.events.read_directory_next(handle).status is Result.GENERIC_ERROR


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
def test_sort_orders(desk: Desk, orders: list[tuple[int, bool]], expected: list[str]) -> None:
    for number, name in enumerate(["b2", "a1", "a2", "b1"], 30):
        site = Site(guid(number), name=name, primary_site_controller=name[0])
        site.intra_site_replication_interval = int(name[1])
        desk.store(site)
    attributes = ["PrimarySiteController", "IntraSiteReplicationInterval", "Name"]
    sorts = [*(SortOrder(*order) for order in orders), SortOrder()]
    assert names_read(desk, "Site", None, attributes, sorts) == expected


@pytest.mark.requirement("DMPR-3.1.7.1.21-02")
def test_a_sort_order_for_each_attribute(desk: Desk) -> None:
    begin = desk.events.read_directory_begin
    assert begin("Site", None, ["Name", "FullPath"], [SortOrder(1)]).status is Result.GENERIC_ERROR


@pytest.mark.requirement("DMPR-3.1.7.1.22-01")
def test_the_attributes_asked_for_at_the_beginning(desk: Desk) -> None:
    desk.store(Site(guid(20), name="north", foreign_site=True))
    handle = desk.events.read_directory_begin("Site", None, ["Name"]).handle
    site = desk.events.read_directory_next(handle).found
    assert isinstance(site, Site)
    assert site.name == "north"
    assert site.foreign_site is False


# -- Check Directory Online -----------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.25-01", "DMPR-3.1.7.1.25-04")
def test_the_probe_that_fails(desk: Desk) -> None:
    desk.manager.directory_offline = True
    desk.directory.behind.connected = False
    desk.events.check_directory_online()
    expected = [("Identifier", "EQUALS", HERE)]
    assert desk.log == [("read_directory", "QueueManager", expected, None)]
    assert_offline(desk)


@pytest.mark.requirement("DMPR-3.1.2.5-01", "DMPR-3.1.7.1.25-04")
def test_it_is_tried_every_minute(desk: Desk) -> None:
    desk.directory.behind.connected = False
    desk.events.read_directory("Site")
    del desk.log[:]
    desk.timers.advance(59_999)
    assert desk.log == []
    for minute in (1, 2, 3):
        desk.timers.advance(minute * 60_000)
        assert desk.asked == ["read_directory"] * minute
    desk.directory.behind.connected = True
    desk.store(desk.manager)
    desk.timers.advance(240_000)
    assert_online(desk)


@pytest.mark.requirement("DMPR-3.1.7.1.25-02")
def test_back_online(desk: Desk) -> None:
    desk.store(QueueManager(HERE, computer_name="here", journal_quota=77, routing_server=True))
    desk.manager.directory_offline = True
    queues = desk.manager.queues
    updated: list[DirectoryObject] = []
    desk.events.updated = updated.append
    desk.events.check_directory_online()
    assert_online(desk)
    assert (desk.manager.journal_quota, desk.manager.routing_server) == (77, True)
    assert desk.manager.queues is queues
    assert desk.manager.directory_integrated
    assert updated == [desk.manager]


@pytest.mark.requirement("DMPR-3.1.7.1.25-03")
def test_public_queues_follow_the_directory(desk: Desk) -> None:
    kept, lost = desk.add(public(100, label="old")), desk.add(public(101, "here\\lost", label="old"))
    private = desk.add(Queue(guid(102), pathname="here\\private$\\p"))
    desk.store(QueueManager(HERE, computer_name="here"), public(100, label="new", quota=5))
    desk.manager.directory_offline = True
    desk.events.check_directory_online()
    assert (kept.label, kept.quota, kept.identifier) == ("new", 5, guid(100))
    assert kept.queue_manager is desk.manager
    assert kept.number == 1
    assert lost.label == "old"
    asked = [entry[2] for entry in desk.log if entry[1] == "Queue"]
    assert asked == [[("Identifier", "EQUALS", each.identifier)] for each in (kept, lost)]
    assert private.identifier == guid(102)


# -- sites ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.6.1-01")
def test_sites_follow_the_directory(desk: Desk) -> None:
    known, unknown = Site(guid(20), name="old"), Site(guid(21), name="old")
    desk.manager.site_collection = [known, unknown]
    desk.store(Site(guid(20), name="new", foreign_site=True))
    desk.events.directory_sites_update()
    assert (known.name, known.foreign_site, unknown.name) == ("new", True, "old")
    assert [entry[:3] for entry in desk.log] == [
        ("read_directory", "Site", [("Identifier", "EQUALS", guid(number))]) for number in (20, 21)
    ]


@pytest.mark.requirement("DMPR-3.1.6.2-01")
def test_site_gates_follow_the_directory(desk: Desk) -> None:
    known, unknown = (QueueManager(guid(n), computer_name="old") for n in (30, 31))
    desk.manager.site_collection = [Site(guid(20), site_gates=[known]), Site(guid(21), site_gates=[unknown])]
    desk.store(QueueManager(guid(30), computer_name="new", routing_server=True))
    desk.events.directory_site_gates_update()
    assert (known.computer_name, known.routing_server, unknown.computer_name) == ("new", True, "old")
    assert [entry[:3] for entry in desk.log] == [
        ("read_directory", "QueueManager", [("Identifier", "EQUALS", guid(number))]) for number in (30, 31)
    ]


@pytest.mark.parametrize(
    "kind, period",
    [
        pytest.param("Site", 12 * 3600_000, marks=pytest.mark.requirement("DMPR-3.1.2.1-01")),
        pytest.param("QueueManager", 3600_000, marks=pytest.mark.requirement("DMPR-3.1.2.2-01")),
    ],
)
def test_the_timers_of_sites(desk: Desk, kind: str, period: int) -> None:
    desk.manager.site_collection = [Site(guid(20), site_gates=[QueueManager(guid(30))])]
    desk.events.start_timers()
    for count in (0, 1, 2):
        desk.timers.advance((count + 1) * period - 1)
        assert [entry[1] for entry in desk.log].count(kind) == count


# -- Get Queue Path ---------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.26-01")
@pytest.mark.parametrize(
    "name, path, machine",
    [
        ("DIRECT=OS:there\\private$\\orders", "there\\private$\\orders", "there"),
        ("Direct=tcp:10.0.0.5\\Orders;sub", "10.0.0.5\\Orders;sub", "10.0.0.5"),
        ("DIRECT=OS:there\\SYSTEM$;JOURNAL", "there\\SYSTEM$;JOURNAL", "there"),
        ("DIRECT=HTTP://there:8080/msmq/private$/orders", "there/private$/orders", "there"),
        ("DIRECT=HTTPS://there/MSMQ\\orders", "there\\orders", "there"),
    ],
)
def test_the_path_of_a_direct_name(desk: Desk, name: str, path: str, machine: str) -> None:
    assert desk.events.get_queue_path(parse_format_name(name)) == (0, path, machine)
    assert desk.log == []


@pytest.mark.requirement("DMPR-3.1.7.1.26-02")
def test_the_path_of_a_public_name(desk: Desk) -> None:
    desk.store(QueueManager(THERE, computer_name="THERE"), public(100, "there\\orders"))
    assert desk.events.get_queue_path(PublicName(guid(100))) == (0, "there\\orders", "THERE")
    assert desk.log == [("read_directory", "Queue", [("Identifier", "EQUALS", guid(100))], None)]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(PublicName(guid(100)), marks=pytest.mark.requirement("DMPR-3.1.7.1.26-03")),
        pytest.param(PrivateName(THERE, 15), marks=pytest.mark.requirement("DMPR-3.1.7.1.26-05")),
    ],
)
def test_a_name_that_nobody_knows(desk: Desk, name: PublicName | PrivateName) -> None:
    assert desk.events.get_queue_path(name) == (HResult.MQ_ERROR_ILLEGAL_FORMATNAME, "", "")


@pytest.mark.requirement("DMPR-3.1.7.1.26-04")
def test_the_path_of_a_private_name(desk: Desk) -> None:
    desk.store(QueueManager(THERE, computer_name="there"), desk.manager)
    for kind in (QueueType.SYSTEM, QueueType.PRIVATE):
        queue = Queue(guid(100), pathname=f"here\\{kind.value}", private_queue_number=15)
        queue.queue_type = kind
        desk.add(queue)
    path = desk.events.get_queue_path
    assert path(PrivateName(HERE, 15)) == (0, "here\\Private", "here")
    assert path(PrivateName(HERE, 16)) == (0, "", "here")
    assert path(PrivateName(THERE, 15)) == (0, "", "there")
    assert all(entry[1] == "QueueManager" for entry in desk.log)


@pytest.mark.requirement("DMPR-3.1.7.1.26-06")
@pytest.mark.parametrize(
    "name", [MulticastName("234.1.1.1", 8001), ConnectorName(guid(5)), DistributionListName(LISTED)]
)
def test_other_names_have_no_path(desk: Desk, name: MulticastName | ConnectorName) -> None:
    assert desk.events.get_queue_path(name) == (0, "", "")


# -- Expand Format Name -----------------------------------------------------------------------------------

A, B, C = (DirectName("OS", host, "q") for host in ("a", "b", "c"))


@pytest.mark.requirement("DMPR-3.1.7.3.8-01")
@pytest.mark.parametrize("name", [A, PublicName(guid(1)), MulticastName("234.1.1.1", 8001)])
def test_a_single_name_stays_as_it_is(desk: Desk, name: DirectName) -> None:
    assert desk.events.expand_format_name(name) is name
    assert desk.log == []


@pytest.mark.requirement("DMPR-3.1.7.3.8-02", "DMPR-3.1.7.3.8-06")
def test_distribution_lists_are_resolved(desk: Desk) -> None:
    inner = DistributionListName(guid(0xD2))
    desk.directory.behind.set_distribution_list(LISTED, [B, inner])
    desk.directory.behind.set_distribution_list(inner.guid, [A, PublicName(guid(7))])
    name = MultipleElementName((C, DistributionListName(LISTED)))
    expanded = desk.events.expand_format_name(name)
    assert str(expanded) == f"{A},{B},{C},PUBLIC={guid(7)}"


@pytest.mark.requirement("DMPR-3.1.7.3.8-02")
def test_lists_that_a_directory_gives_are_resolved_once(desk: Desk) -> None:
    lists = [DistributionListName(guid(number)) for number in (0xD1, 0xD2)]
    contents = {lists[0].guid: (lists[1], A), lists[1].guid: (B, lists[0], lists[1])}

    class Circular:
        asked: list[UUID] = []  # noqa: RUF012

        def resolve_distribution_list(self, name: DistributionListName) -> Resolved:
            self.asked.append(name.guid)
            return Resolved(Result.SUCCESS, contents[name.guid])

    circular = Circular()
    events = DirectoryEvents(desk.manager, circular, desk.timers)  # type: ignore[arg-type]
    assert events.expand_format_name(lists[0]) == MultipleElementName((A, B))
    assert circular.asked == [each.guid for each in lists]


@pytest.mark.requirement("DMPR-3.1.7.3.8-03")
@pytest.mark.parametrize("status", [each for each in Result if each is not Result.SUCCESS])
def test_a_list_that_is_not_resolved_fails_the_expansion(desk: Desk, status: Result) -> None:
    desk.directory.status = status
    assert desk.events.expand_format_name(MultipleElementName((A, DistributionListName(LISTED)))) is None


@pytest.mark.requirement("DMPR-3.1.7.3.8-03")
def test_an_unknown_list_and_a_workgroup_fail_the_expansion(desk: Desk) -> None:
    assert desk.events.expand_format_name(DistributionListName(LISTED)) is None
    assert Desk(workgroup=True).events.expand_format_name(DistributionListName(LISTED)) is None


@pytest.mark.requirement("DMPR-3.1.7.3.8-04", "DMPR-3.1.7.3.8-06")
def test_names_are_sorted_and_kept_once(desk: Desk) -> None:
    name = parse_format_name("DIRECT=OS:c\\q,DIRECT=OS:B\\q,DIRECT=OS:a\\Q,DIRECT=os:b\\Q,DIRECT=OS:A\\q")
    expanded = desk.events.expand_format_name(name)
    assert str(expanded) == "DIRECT=OS:a\\Q,DIRECT=OS:B\\q,DIRECT=OS:c\\q"


@pytest.mark.requirement("DMPR-3.1.7.3.8-05")
def test_one_name_that_is_left_stands_alone(desk: Desk) -> None:
    desk.directory.behind.set_distribution_list(LISTED, [A])
    assert desk.events.expand_format_name(DistributionListName(LISTED)) == A
    assert desk.events.expand_format_name(parse_format_name("DIRECT=OS:a\\q,DIRECT=OS:A\\Q")) == A


# -- workgroup ------------------------------------------------------------------------------------------


def test_a_workgroup_asks_nobody_and_is_never_offline() -> None:
    desk = Desk(workgroup=True)
    queue = desk.add(public())
    events, away = desk.events, Result.DIRECTORY_NOT_CONNECTED
    assert events.create_directory_object(queue) == (away, None)
    assert events.delete_directory_object(queue) is away
    assert events.write_directory(queue) is away
    assert events.read_directory_begin("Site") == (away, 0)
    assert events.read_directory_next(1) == (away, None)
    assert events.read_directory_end(1) is away
    assert events.read_directory("Site") == (away, None)
    assert events.read_directory("Queue") == (Result.SUCCESS, queue)
    events.check_directory_online()
    events.start_timers()
    assert_online(desk)
    assert desk.timers.deadline is None
    assert desk.log == []
    assert not desk.manager.directory_integrated


# -- results ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.1.17-01")
def test_the_names_of_results() -> None:
    names = "Success GenericError DirectoryNotConnected ObjectNotFound AttributeNotFound EndOfData"
    assert {result.value for result in Result} == {*names.split(), "ObjectAlreadyExists"}


@pytest.mark.requirement("DMPR-3.1.1.17-02")
def test_what_results_mean(desk: Desk) -> None:
    events, site = desk.events, Site(guid(20), name="north")
    assert events.create_directory_object(site, ["Name"]).status is Result.SUCCESS
    assert events.create_directory_object(Site(guid(21), name="NORTH")).status is Result.OBJECT_ALREADY_EXISTS
    assert events.read_directory("Site", [("Name", "EQUALS", "x")]).status is Result.OBJECT_NOT_FOUND
    assert events.read_directory("Site", None, ["ForeignSite"]).status is Result.ATTRIBUTE_NOT_FOUND
    handle = events.read_directory_begin("User").handle
    assert events.read_directory_next(handle).status is Result.END_OF_DATA
    assert events.read_directory("Planet").status is Result.GENERIC_ERROR
    desk.directory.behind.connected = False
    assert events.read_directory("Site").status is Result.DIRECTORY_NOT_CONNECTED


@pytest.mark.parametrize("each", [Enterprise(guid(1)), User(guid(2), security_identifier=b"s")])
def test_types_that_are_not_announced(desk: Desk, each: DirectoryObject) -> None:
    assert desk.events.create_directory_object(each).status is Result.SUCCESS
    assert desk.events.write_directory(each) is Result.SUCCESS
    assert len(desk.log) == 2
