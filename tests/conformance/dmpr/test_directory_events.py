"""Changes of the directory, being away and back: [MS-MQDMPR] 3.1.2, 3.1.6, 3.1.7.1.18 to 19, 24 and 25."""

from __future__ import annotations

from typing import Any

import pytest

from msmqwire.qm.directory.attributes import update
from msmqwire.qm.model.directory_objects import DirectoryObject, Enterprise, RoutingLink, Site, User
from msmqwire.qm.model.elements import Queue, QueueManager
from msmqwire.qm.model.enumerations import DirectoryOperationResult as Result
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.rules.directory_events import ChangeOperation
from tests.support.directory_desk import (
    HERE,
    ONLINE,
    THERE,
    Desk,
    assert_offline,
    assert_online,
    guid,
    public,
)


@pytest.fixture
def desk() -> Desk:
    return Desk()


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


def test_a_site_takes_over_its_gates(desk: Desk) -> None:
    site = Site(guid(20), name="north", site_gates=[QueueManager(guid(30))])
    desk.manager.site_collection = [site]
    desk.store(site, QueueManager(guid(31), computer_name="m", site_identifier_list=[guid(20)]))
    link = RoutingLink(guid(40), site1_identifier=guid(20), site2_identifier=guid(21))
    link.site_gate_identifier_list = [guid(31)]
    desk.store(link)
    desk.events.directory_sites_update()
    assert [gate.identifier for gate in site.site_gates] == [guid(31)]


def test_the_identifier_never_changes() -> None:
    site = Site(guid(20), name="old")
    update(site, Site(guid(21), name="new"))
    assert (site.identifier, site.name) == (guid(20), "new")


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
