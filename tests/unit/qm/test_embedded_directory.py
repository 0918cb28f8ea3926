"""The directory in a file: what it stores, and which files it refuses."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from uuid import UUID

import pytest

from msmqwire.errors import (
    StoreDamaged,
    StoreError,
    StoreForeign,
    StoreInUse,
    StoreNewer,
    StoreRefused,
)
from msmqwire.names import DirectName, DistributionListName, PublicName
from msmqwire.qm.directory import files
from msmqwire.qm.directory.attributes import Filter
from msmqwire.qm.directory.embedded import EmbeddedDirectory
from msmqwire.qm.model.directory_objects import Enterprise, Site
from msmqwire.qm.model.elements import OutgoingQueue, Queue, QueueManager
from msmqwire.qm.model.enumerations import DirectoryOperationResult as Result
from msmqwire.qm.model.enumerations import QueuePrivacy, QueueType
from msmqwire.qm.model.message import NULL_GUID


def guid(number: int) -> UUID:
    return UUID(int=number)


def public(number: int, pathname: str, **attributes: object) -> Queue:
    queue = Queue(guid(number), pathname=pathname, **attributes)  # type: ignore[arg-type]
    queue.queue_type = QueueType.PUBLIC
    return queue


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A directory of one site and one list."""
    path = tmp_path / "directory"
    directory = EmbeddedDirectory(path)
    assert directory.create_directory_object(Site(guid(1), name="north")).status is Result.SUCCESS
    assert directory.set_distribution_list(guid(2), [PublicName(guid(3))]) is Result.SUCCESS
    directory.close()
    return path


def test_content_survives_reopening(file: Path) -> None:
    directory = EmbeddedDirectory(file)
    site = directory.read_directory("Site").object
    assert isinstance(site, Site)
    assert (site.identifier, site.name) == (guid(1), "north")
    assert directory.resolve_distribution_list(DistributionListName(guid(2))).names == (PublicName(guid(3)),)


def test_two_share_a_file(file: Path) -> None:
    first, second = EmbeddedDirectory(file), EmbeddedDirectory(file)
    first.create_directory_object(Site(guid(5), name="south"))
    assert second.read_directory("Site", [("Name", "EQUALS", "South")]).status is Result.SUCCESS
    assert second.create_directory_object(Site(guid(6), name="south")).status is Result.OBJECT_ALREADY_EXISTS


def test_a_closed_directory_is_not_connected(file: Path) -> None:
    directory = EmbeddedDirectory(file)
    directory.close()
    assert directory.read_directory("Site").status is Result.DIRECTORY_NOT_CONNECTED
    assert directory.set_distribution_list(guid(1), []) is Result.DIRECTORY_NOT_CONNECTED


# -- files that are refused -----------------------------------------------------------------------------


def other_database(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE mine (a)")


def newer(path: Path) -> None:
    EmbeddedDirectory(path).close()
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA user_version = {files.VERSION + 1}")


def without_a_table(path: Path) -> None:
    EmbeddedDirectory(path).close()
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE distribution_list")


def truncated(path: Path) -> None:
    EmbeddedDirectory(path).close()
    path.write_bytes(path.read_bytes()[:5000])


def overwritten(path: Path) -> None:
    EmbeddedDirectory(path).close()
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))


@pytest.mark.parametrize(
    "spoil, error",
    [
        (lambda path: path.write_bytes(b"something else, long enough to be a header" * 50), StoreForeign),
        (other_database, StoreForeign),
        (newer, StoreNewer),
        (without_a_table, StoreDamaged),
        (truncated, StoreDamaged),
        (overwritten, StoreDamaged),
        (Path.mkdir, StoreRefused),
    ],
    ids=["text", "other", "newer", "table", "truncated", "overwritten", "folder"],
)
def test_a_file_is_refused_and_left_unchanged(tmp_path: Path, spoil: object, error: type[StoreError]) -> None:
    path = tmp_path / "file"
    spoil(path)  # type: ignore[operator]
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(error) as caught:
        EmbeddedDirectory(path)
    assert type(caught.value) is error
    assert caught.value.file == str(path)
    assert before is None or path.read_bytes() == before


def test_a_file_that_is_locked(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect
    holder = connect(file, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **kwargs: connect(*args, **kwargs, timeout=0))
    with pytest.raises(StoreInUse):
        EmbeddedDirectory(file)


def test_an_empty_file_becomes_a_directory(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    assert EmbeddedDirectory(path).read_directory("Site").status is Result.OBJECT_NOT_FOUND


@pytest.mark.parametrize(
    "row", ["{", "[]", '{"Name": 5, "Color": 1}', '{"ForeignSite": null, "Security": "xyz"}']
)
def test_a_broken_row_is_an_error_of_its_read(file: Path, row: str) -> None:
    directory = EmbeddedDirectory(file)
    with sqlite3.connect(file) as database:
        database.execute("UPDATE object SET attributes = ?", (row,))
    assert directory.read_directory("Site").status is Result.GENERIC_ERROR
    assert directory.read_directory_begin("Site").status is Result.GENERIC_ERROR
    assert directory.write_directory(Site(guid(1), name="x")) is Result.GENERIC_ERROR
    assert directory.create_directory_object(Site(guid(9), name="y")).status is Result.SUCCESS


# -- objects ----------------------------------------------------------------------------------------------


def test_identifiers_are_kept_or_assigned() -> None:
    directory = EmbeddedDirectory(new_guid=lambda: guid(77))
    assert directory.create_directory_object(Site(guid(5), name="a")).identifier == guid(5)
    assert directory.create_directory_object(Site(NULL_GUID, name="b")).identifier == guid(77)
    assert directory.create_directory_object(Site(guid(5), name="c")).status is Result.OBJECT_ALREADY_EXISTS


def test_there_is_one_enterprise() -> None:
    directory = EmbeddedDirectory()
    assert directory.create_directory_object(Enterprise(guid(5))).status is Result.SUCCESS
    again = directory.create_directory_object(Enterprise(guid(6), name="other"))
    assert again.status is Result.OBJECT_ALREADY_EXISTS


@pytest.mark.parametrize("kind", [QueueType.PRIVATE, QueueType.SYSTEM, QueueType.CONNECTOR])
def test_only_public_queues_are_published(kind: QueueType) -> None:
    queue = public(1, "m\\q")
    queue.queue_type = kind
    assert EmbeddedDirectory().create_directory_object(queue).status is Result.GENERIC_ERROR


def test_outgoing_queues_are_not_published() -> None:
    queue = OutgoingQueue(guid(1), pathname="m\\q")
    queue.queue_type = QueueType.PUBLIC
    assert EmbeddedDirectory().create_directory_object(queue).status is Result.GENERIC_ERROR


@pytest.mark.parametrize("pathname", ["", "m", "m\\", "\\q"])
def test_a_queue_needs_a_path_name(pathname: str) -> None:
    assert EmbeddedDirectory().create_directory_object(public(1, pathname)).status is Result.GENERIC_ERROR


def test_the_name_is_among_the_attributes() -> None:
    created = EmbeddedDirectory().create_directory_object(public(1, "m\\q"), ["Label"])
    assert created.status is Result.GENERIC_ERROR


def test_a_queue_has_its_queue_manager() -> None:
    directory = EmbeddedDirectory()
    directory.create_directory_object(
        QueueManager(guid(1), computer_name="M", qualified_computer_name="m.example")
    )
    for number, pathname in ((2, "m\\a"), (3, "M.EXAMPLE\\b"), (4, "n\\c")):
        directory.create_directory_object(public(number, pathname))
    hosts = {}
    handle = directory.read_directory_begin("Queue", None, ["Label"]).handle
    while isinstance(queue := directory.read_directory_next(handle).object, Queue):
        hosts[queue.identifier.int] = queue.queue_manager and queue.queue_manager.identifier.int
        assert queue.queue_type is QueueType.PUBLIC
    assert hosts == {2: 1, 3: 1, 4: None}


def test_an_object_that_is_read_belongs_to_the_reader() -> None:
    directory = EmbeddedDirectory()
    directory.create_directory_object(QueueManager(guid(1), computer_name="m"))
    manager = directory.read_directory("QueueManager").object
    assert isinstance(manager, QueueManager)
    manager.site_identifier_list.append(guid(5))
    again = directory.read_directory("QueueManager").object
    assert isinstance(again, QueueManager)
    assert again.site_identifier_list == []


def test_objects_without_identifier_are_looked_up_by_name() -> None:
    directory = EmbeddedDirectory()
    directory.create_directory_object(public(1, "m\\q"))
    assert directory.write_directory(public(0, "M\\Q", label="new"), ["Label"]) is Result.SUCCESS
    queue = directory.read_directory("Queue").object
    assert isinstance(queue, Queue)
    assert (queue.identifier, queue.label, queue.pathname) == (guid(1), "new", "m\\q")
    assert directory.delete_directory_object(public(0, "M\\q")) is Result.SUCCESS
    assert directory.delete_directory_object(public(0, "M\\q")) is Result.OBJECT_NOT_FOUND


def test_times_are_set_by_the_directory() -> None:
    now = [1000]
    directory = EmbeddedDirectory(utc=lambda: now[0])
    directory.create_directory_object(public(1, "m\\q", create_time=5, modify_time=5))
    now[0] = 2000
    directory.write_directory(
        public(1, "m\\q", create_time=7, full_path="CN=x"), ["Label", "CreateTime", "FullPath"]
    )
    queue = directory.read_directory("Queue").object
    assert isinstance(queue, Queue)
    assert (queue.create_time, queue.modify_time) == (1000, 2000)
    assert queue.full_path.startswith("CN=q,")


@pytest.mark.parametrize("call", ["create_directory_object", "write_directory"])
def test_unknown_attributes_are_refused(call: str) -> None:
    directory = EmbeddedDirectory()
    result = getattr(directory, call)(Site(guid(1), name="n"), ["Name", "Color"])
    assert getattr(result, "status", result) is Result.GENERIC_ERROR
    assert directory.read_directory("Site", None, ["Color"]).status is Result.GENERIC_ERROR


# -- filters ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression, matches",
    [
        (("Pathname", "EQUALS", "M\\Orders"), True),
        (("Pathname", "EQUALS", 5), False),
        (("Label", "EQUALS", "LABEL"), True),
        (("Label", "NOT-EQUALS", "LABEL"), False),
        (("Label", "LESS-THAN", "m"), True),
        (("Quota", "LESS-THAN", "m"), False),
        (("Identifier", "GREATER-THAN", guid(4)), True),
        (("PrivacyLevel", "EQUALS", QueuePrivacy.BODY), True),
        (("PrivacyLevel", "GREATER-THAN", QueuePrivacy.NONE), False),
        (("MulticastAddress", "EQUALS", None), True),
        (("MulticastAddress", "LESS-THAN", "x"), False),
        (("Security", "EQUALS", b"sd"), True),
        (("BasePriority", "EQUALS", 0), False),  # it is not set
        (("BasePriority", "NOT-EQUALS", 0), True),
        (("BasePriority", "LESS-THAN", 9), False),
    ],
)
def test_comparisons(expression: Filter, matches: bool) -> None:
    directory = EmbeddedDirectory()
    queue = public(5, "m\\orders", label="label", privacy_level=QueuePrivacy.BODY, security=b"sd")
    attributes = ["Pathname", "Label", "Quota", "PrivacyLevel", "MulticastAddress", "Security"]
    assert directory.create_directory_object(queue, attributes).status is Result.SUCCESS
    assert (directory.read_directory("Queue", [expression]).status is Result.SUCCESS) is matches


def test_a_list_equals_each_of_its_members() -> None:
    directory = EmbeddedDirectory()
    sites = [guid(5), guid(6)]
    directory.create_directory_object(QueueManager(guid(1), computer_name="m", site_identifier_list=sites))
    for value, matches in ((guid(6), True), (guid(7), False), (sites, True), ([guid(6)], False)):
        status = directory.read_directory("QueueManager", [("SiteIdentifierList", "EQUALS", value)]).status
        assert (status is Result.SUCCESS) is matches


# -- distribution lists -----------------------------------------------------------------------------------


def test_nested_and_circular_lists() -> None:
    directory = EmbeddedDirectory()
    queues = [DirectName("OS", host, "q") for host in "abc"]
    first, second, third = (DistributionListName(guid(number)) for number in (1, 2, 3))
    directory.set_distribution_list(guid(1), [queues[0], second])
    directory.set_distribution_list(guid(2), [third, queues[1], first])
    assert directory.resolve_distribution_list(first) == (Result.OBJECT_NOT_FOUND, ())
    directory.set_distribution_list(guid(3), [queues[2], second])
    assert directory.resolve_distribution_list(first) == (Result.SUCCESS, tuple(queues))
    directory.set_distribution_list(guid(1), [])
    assert directory.resolve_distribution_list(first).status is Result.OBJECT_NOT_FOUND
