"""Directory changes, going offline and coming back: [MS-MQDMPR] 3.1.2, 3.1.6, 3.1.7.1.18 to 19, 24 and 25."""

from __future__ import annotations

from typing import Any

import pytest

from msmqwire.qm.directory.attributes import update
from msmqwire.qm.model.directory_objects import DirectoryObject, Enterprise, RoutingLink, Site, User
from msmqwire.qm.model.elements import Queue, QueueManager
from msmqwire.qm.model.enumerations import DirectoryOperationResult as Result
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.rules.directory_events import ChangeOperation, DirectoryEvents
from tests.support.engine_harness import OWN_ID, PEER_ID
from tests.support.qm.directory_recorder import ONLINE, RecordedDirectoryEvents, guid, public_queue

# -- Create, Delete, Write ------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.18-01", "DMPR-3.1.7.1.18-03")
def test_a_public_queue_is_announced_before_its_registration(recorded: RecordedDirectoryEvents) -> None:
    """The change is reported before the directory is asked to create the object."""
    queue = public_queue()
    created = recorded.events.create_directory_object(queue)
    assert created == (Result.SUCCESS, queue.identifier)
    assert recorded.log == [(ChangeOperation.QUEUE_CREATION, queue), ("create_directory_object", queue, None)]


@pytest.mark.requirement("DMPR-3.1.7.1.18-01", "DMPR-3.1.7.1.19-01")
@pytest.mark.parametrize("obj", [QueueManager(PEER_ID, computer_name="there"), Site(guid(9), name="north")])
def test_nothing_else_is_announced(recorded: RecordedDirectoryEvents, obj: DirectoryObject) -> None:
    assert recorded.events.create_directory_object(obj).status is Result.SUCCESS
    assert recorded.events.delete_directory_object(obj) is Result.SUCCESS
    assert recorded.directory.operations() == ["create_directory_object", "delete_directory_object"]
    assert len(recorded.log) == 2


@pytest.mark.requirement("DMPR-3.1.7.1.18-01", "DMPR-3.1.7.1.19-01", "DMPR-3.1.7.1.24-03")
def test_a_private_queue_is_not_announced(recorded: RecordedDirectoryEvents) -> None:
    recorded.directory.status = Result.SUCCESS  # the embedded directory takes no private queue
    queue = Queue(guid(100), pathname="here\\private$\\orders")
    recorded.events.create_directory_object(queue)
    assert recorded.events.write_directory(queue) is Result.SUCCESS
    recorded.events.delete_directory_object(queue)
    assert recorded.log == [
        ("create_directory_object", queue, None),
        ("write_directory", queue, None),
        ("delete_directory_object", queue),
    ]


@pytest.mark.requirement("DMPR-3.1.7.1.18-03")
def test_all_attributes_are_stored_or_only_those_named(recorded: RecordedDirectoryEvents) -> None:
    recorded.events.create_directory_object(public_queue(100, "here\\all", label="a", quota=7))
    recorded.events.create_directory_object(
        public_queue(101, "here\\some", label="b", quota=7), ["Pathname", "Label"]
    )
    read = recorded.events.read_directory
    whole = read("Queue", [("Pathname", "EQUALS", "here\\all")], ["Label", "Quota"]).object
    assert isinstance(whole, Queue)
    assert (whole.label, whole.quota) == ("a", 7)
    part = read("Queue", [("Pathname", "EQUALS", "here\\some")], ["Label"]).object
    assert isinstance(part, Queue)
    assert part.label == "b"
    assert (
        read("Queue", [("Pathname", "EQUALS", "here\\some")], ["Quota"]).status is Result.ATTRIBUTE_NOT_FOUND
    )


@pytest.mark.requirement("DMPR-3.1.7.1.18-05")
@pytest.mark.parametrize("status", [Result.OBJECT_ALREADY_EXISTS, Result.GENERIC_ERROR])
def test_the_status_of_a_creation_is_passed_on(recorded: RecordedDirectoryEvents, status: Result) -> None:
    recorded.directory.status = status
    assert recorded.events.create_directory_object(public_queue()).status is status
    recorded.assert_online()


@pytest.mark.requirement("DMPR-3.1.7.1.18-05")
def test_the_identifier_of_what_was_created_is_passed_on(recorded: RecordedDirectoryEvents) -> None:
    status, identifier = recorded.events.create_directory_object(Site(NULL_GUID, name="north"))
    assert status is Result.SUCCESS
    assert identifier not in (None, NULL_GUID)
    site = recorded.events.read_directory("Site").object
    assert site is not None
    assert site.identifier == identifier


@pytest.mark.requirement("DMPR-3.1.7.1.19-01", "DMPR-3.1.7.1.19-03")
def test_the_deletion_of_a_public_queue_is_announced_first(recorded: RecordedDirectoryEvents) -> None:
    queue = public_queue()
    recorded.directory.publish(queue)
    assert recorded.events.delete_directory_object(queue) is Result.SUCCESS
    assert recorded.log == [(ChangeOperation.QUEUE_DELETION, queue), ("delete_directory_object", queue)]
    assert recorded.directory.directory.read_directory("Queue").status is Result.OBJECT_NOT_FOUND
    assert recorded.events.delete_directory_object(queue) is Result.OBJECT_NOT_FOUND
    recorded.assert_online()


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
def test_a_directory_that_is_away_makes_it_offline(recorded: RecordedDirectoryEvents, change: Any) -> None:
    recorded.directory.directory.connected = False
    assert change(recorded.events, public_queue()) is Result.DIRECTORY_NOT_CONNECTED
    recorded.assert_offline()
    assert ChangeOperation.QUEUE_UPDATE not in [entry[0] for entry in recorded.log]


@pytest.mark.parametrize("change", CHANGES.values())
def test_a_timer_that_runs_is_left_alone(recorded: RecordedDirectoryEvents, change: Any) -> None:
    expired: list[int] = []
    recorded.timers.start(*ONLINE, 10_000, lambda: expired.append(recorded.timers.now))
    recorded.timers.advance(1_000)
    recorded.directory.directory.connected = False
    assert change(recorded.events, public_queue()) is Result.DIRECTORY_NOT_CONNECTED
    recorded.timers.advance(10_000)
    assert expired == [10_000]


@pytest.mark.requirement("DMPR-3.1.7.1.24-01", "DMPR-3.1.7.1.24-03")
def test_a_write_is_announced_afterwards(recorded: RecordedDirectoryEvents) -> None:
    queue = public_queue(label="old", quota=1)
    recorded.directory.publish(queue)
    queue.label, queue.quota = "new", 2
    assert recorded.events.write_directory(queue, ["Label"]) is Result.SUCCESS
    assert recorded.log == [("write_directory", queue, ["Label"]), (ChangeOperation.QUEUE_UPDATE, queue)]
    published = recorded.directory.directory.read_directory("Queue").object
    assert isinstance(published, Queue)
    assert (published.label, published.quota) == ("new", 1)
    assert recorded.events.write_directory(queue) is Result.SUCCESS
    published = recorded.directory.directory.read_directory("Queue").object
    assert isinstance(published, Queue)
    assert published.quota == 2


@pytest.mark.requirement("DMPR-3.1.7.1.24-04")
def test_a_written_queue_manager_is_announced_and_a_site_is_not(recorded: RecordedDirectoryEvents) -> None:
    site = Site(guid(9), name="north")
    recorded.directory.publish(recorded.manager, site)
    assert recorded.events.write_directory(recorded.manager) is Result.SUCCESS
    assert recorded.events.write_directory(site) is Result.SUCCESS
    announced = [entry for entry in recorded.log if isinstance(entry[0], ChangeOperation)]
    assert announced == [(ChangeOperation.QUEUE_MANAGER_UPDATE, recorded.manager)]


@pytest.mark.requirement("DMPR-3.1.7.1.24-03", "DMPR-3.1.7.1.24-04")
def test_a_failed_write_is_not_announced(recorded: RecordedDirectoryEvents) -> None:
    assert recorded.events.write_directory(public_queue()) is Result.OBJECT_NOT_FOUND
    assert recorded.events.write_directory(recorded.manager) is Result.OBJECT_NOT_FOUND
    assert recorded.directory.operations() == ["write_directory"] * 2
    assert len(recorded.log) == 2


# -- Check Directory Online -----------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.25-01", "DMPR-3.1.7.1.25-04")
@pytest.mark.parametrize("connected", [False, True])  # there is no such object if it is
def test_the_probe_that_fails(recorded: RecordedDirectoryEvents, connected: bool) -> None:
    recorded.manager.directory_offline = True
    recorded.directory.directory.connected = connected
    recorded.events.check_directory_online()
    expected = [("Identifier", "EQUALS", OWN_ID)]
    assert recorded.log == [("read_directory", "QueueManager", expected, None)]
    recorded.assert_offline()


@pytest.mark.requirement("DMPR-3.1.2.5-01", "DMPR-3.1.7.1.25-04")
def test_it_is_tried_every_minute(recorded: RecordedDirectoryEvents) -> None:
    recorded.directory.directory.connected = False
    recorded.events.read_directory("Site")
    recorded.assert_offline()
    del recorded.log[:]
    recorded.timers.advance(59_999)
    assert recorded.log == []
    for minute in (1, 2, 3):
        recorded.timers.advance(minute * 60_000)
        assert recorded.directory.operations() == ["read_directory"] * minute
    recorded.directory.directory.connected = True
    recorded.directory.publish(recorded.manager)
    recorded.timers.advance(240_000)
    recorded.assert_online()


@pytest.mark.requirement("DMPR-3.1.7.1.25-02")
def test_back_online(recorded: RecordedDirectoryEvents) -> None:
    recorded.directory.publish(
        QueueManager(OWN_ID, computer_name="here", journal_quota=77, routing_server=True)
    )
    recorded.manager.directory_offline = True
    queues = recorded.manager.queues
    updated: list[DirectoryObject] = []
    recorded.events.updated = updated.append
    recorded.events.check_directory_online()
    recorded.assert_online()
    assert (recorded.manager.journal_quota, recorded.manager.routing_server) == (77, True)
    assert recorded.manager.queues is queues
    assert recorded.manager.directory_integrated
    assert updated == [recorded.manager]


@pytest.mark.requirement("DMPR-3.1.7.1.25-03")
def test_public_queues_follow_the_directory(recorded: RecordedDirectoryEvents) -> None:
    listed, lost = (
        recorded.add(public_queue(100, label="old")),
        recorded.add(public_queue(101, "here\\lost", label="old")),
    )
    private = recorded.add(Queue(guid(102), pathname="here\\private$\\p"))
    recorded.directory.publish(
        QueueManager(OWN_ID, computer_name="here"), public_queue(100, label="new", quota=5)
    )
    recorded.manager.directory_offline = True
    recorded.events.check_directory_online()
    assert (listed.label, listed.quota, listed.identifier) == ("new", 5, guid(100))
    assert listed.queue_manager is recorded.manager
    assert listed.number == 1
    assert lost.label == "old"
    asked = [entry[2] for entry in recorded.log if entry[1] == "Queue"]
    assert asked == [[("Identifier", "EQUALS", queue.identifier)] for queue in (listed, lost)]
    assert private.identifier == guid(102)


# -- sites ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.6.1-01")
def test_sites_follow_the_directory(recorded: RecordedDirectoryEvents) -> None:
    known, unknown = Site(guid(20), name="old"), Site(guid(21), name="old")
    recorded.manager.site_collection = [known, unknown]
    recorded.directory.publish(Site(guid(20), name="new", foreign_site=True))
    recorded.events.directory_sites_update()
    assert (known.name, known.foreign_site, unknown.name) == ("new", True, "old")
    assert recorded.log == [
        ("read_directory", "Site", [("Identifier", "EQUALS", guid(number))], None) for number in (20, 21)
    ]


def test_a_site_takes_over_its_gates(recorded: RecordedDirectoryEvents) -> None:
    site = Site(guid(20), name="north", site_gates=[QueueManager(guid(30))])
    recorded.manager.site_collection = [site]
    recorded.directory.publish(
        site, QueueManager(guid(31), computer_name="m", site_identifier_list=[guid(20)])
    )
    link = RoutingLink(guid(40), site1_identifier=guid(20), site2_identifier=guid(21))
    link.site_gate_identifier_list = [guid(31)]
    recorded.directory.publish(link)
    recorded.events.directory_sites_update()
    assert [gate.identifier for gate in site.site_gates] == [guid(31)]


def test_the_identifier_never_changes() -> None:
    site = Site(guid(20), name="old")
    update(site, Site(guid(21), name="new"))
    assert (site.identifier, site.name) == (guid(20), "new")


@pytest.mark.requirement("DMPR-3.1.6.2-01")
def test_site_gates_follow_the_directory(recorded: RecordedDirectoryEvents) -> None:
    known, unknown = (QueueManager(guid(n), computer_name="old") for n in (30, 31))
    recorded.manager.site_collection = [
        Site(guid(20), site_gates=[known]),
        Site(guid(21), site_gates=[unknown]),
    ]
    recorded.directory.publish(QueueManager(guid(30), computer_name="new", routing_server=True))
    recorded.events.directory_site_gates_update()
    assert (known.computer_name, known.routing_server, unknown.computer_name) == ("new", True, "old")
    assert recorded.log == [
        ("read_directory", "QueueManager", [("Identifier", "EQUALS", guid(number))], None)
        for number in (30, 31)
    ]


@pytest.mark.parametrize(
    "kind, period",
    [
        pytest.param("Site", 12 * 3600_000, marks=pytest.mark.requirement("DMPR-3.1.2.1-01")),
        pytest.param("QueueManager", 3600_000, marks=pytest.mark.requirement("DMPR-3.1.2.2-01")),
    ],
)
def test_the_timers_of_sites(recorded: RecordedDirectoryEvents, kind: str, period: int) -> None:
    recorded.manager.site_collection = [Site(guid(20), site_gates=[QueueManager(guid(30))])]
    recorded.events.start_timers()
    for count in (0, 1, 2):
        recorded.timers.advance((count + 1) * period - 1)
        assert [entry[1] for entry in recorded.log].count(kind) == count


@pytest.mark.requirement("DMPR-3.1.2.1-01", "DMPR-3.1.2.2-01")
def test_the_times_of_sites_are_settings(recorded: RecordedDirectoryEvents) -> None:
    settings = Settings(directory_sites_update_ms=5_000, directory_site_gates_update_ms=7_000)
    directory: Any = recorded.directory
    DirectoryEvents(recorded.manager, directory, recorded.timers, settings=settings).start_timers()
    assert recorded.timers.active(Timer.DIRECTORY_SITES_UPDATE, None)
    assert recorded.timers.active(Timer.DIRECTORY_SITE_GATES_UPDATE, None)
    assert recorded.timers.deadline == 5_000
    recorded.timers.advance(5_000)
    assert recorded.timers.deadline == 7_000


# -- workgroup ------------------------------------------------------------------------------------------


def test_a_workgroup_asks_nobody_and_is_never_offline() -> None:
    recorded = RecordedDirectoryEvents(workgroup=True)
    queue = recorded.add(public_queue())
    events, away = recorded.events, Result.DIRECTORY_NOT_CONNECTED
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
    recorded.assert_online()
    assert recorded.timers.deadline is None
    assert recorded.log == []
    assert not recorded.manager.directory_integrated


# -- results ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.1.17-01")
def test_the_names_of_results() -> None:
    names = "Success GenericError DirectoryNotConnected ObjectNotFound AttributeNotFound EndOfData"
    assert {result.value for result in Result} == {*names.split(), "ObjectAlreadyExists"}


@pytest.mark.requirement("DMPR-3.1.1.17-02")
def test_what_results_mean(recorded: RecordedDirectoryEvents) -> None:
    events, site = recorded.events, Site(guid(20), name="north")
    assert events.create_directory_object(site, ["Name"]).status is Result.SUCCESS
    assert events.create_directory_object(Site(guid(21), name="NORTH")).status is Result.OBJECT_ALREADY_EXISTS
    assert events.read_directory("Site", [("Name", "EQUALS", "x")]).status is Result.OBJECT_NOT_FOUND
    assert events.read_directory("Site", None, ["ForeignSite"]).status is Result.ATTRIBUTE_NOT_FOUND
    handle = events.read_directory_begin("User").handle
    assert events.read_directory_next(handle).status is Result.END_OF_DATA
    assert events.read_directory("Planet").status is Result.GENERIC_ERROR
    recorded.directory.directory.connected = False
    assert events.read_directory("Site").status is Result.DIRECTORY_NOT_CONNECTED


@pytest.mark.parametrize("each", [Enterprise(guid(1)), User(guid(2), security_identifier=b"s")])
def test_types_that_are_not_announced(recorded: RecordedDirectoryEvents, each: DirectoryObject) -> None:
    assert recorded.events.create_directory_object(each).status is Result.SUCCESS
    assert recorded.events.write_directory(each) is Result.SUCCESS
    assert len(recorded.log) == 2
