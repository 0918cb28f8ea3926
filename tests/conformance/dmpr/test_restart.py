"""What survives a restart, and what must not: [MS-MQDMPR] 3.1.1."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from msmqwire.names import parse_format_name
from msmqwire.qm.directory.embedded import EmbeddedDirectory
from msmqwire.qm.model import access
from msmqwire.qm.model.elements import OutgoingQueue, Queue, QueueManager
from msmqwire.qm.model.enumerations import (
    DirectoryServerType,
    OperatingSystemType,
    OutgoingQueueState,
    PositionState,
    QueueManagerState,
    QueuePrivacy,
    QueueType,
)
from tests.support.queue_manager_desk import HERE, RECOVERABLE, SEND, Desk, bodies, states, taken

DESCRIPTOR = access.default_security(access.sid_bytes("S-1-5-21-1-2-3-1001"))
ONE, TWO = UUID(int=0x51), UUID(int=0x52)

DIRECTORY_ATTRIBUTES: list[tuple[str, str, Any]] = [
    ("02", "queue_manager_version", "Windows 9.9 (Build 1, x86) - MSMQ 5.0 (Build 2)"),
    ("05", "operating_system_version", "6.1"),
    ("06", "operating_system_type", OperatingSystemType.WIN_SERVER),
    ("07", "qualified_computer_name", "here.example.com"),
    ("08", "create_time", 1_600_000_000),
    ("09", "modify_time", 1_600_000_001),
    ("10", "queue_manager_quota", 12_345_678),
    ("11", "journal_quota", 4_321),
    ("12", "foreign_system", True),
    ("13", "full_path", "CN=msmq,CN=here"),
    ("14", "site_identifier_list", [ONE, TWO]),
    ("15", "connected_network_identifier_list", [TWO]),
    ("16", "out_routing_server_identifier_list", [ONE]),
    ("17", "in_routing_server_identifier_list", [TWO, ONE]),
    ("18", "directory_server", True),
    ("19", "remote_access_server", True),
    ("20", "routing_server", True),
    ("21", "supporting_server", True),
    ("22", "directory_server_type", DirectoryServerType.PRIMARY_SITE_CONTROLLER),
    ("23", "public_encryption_key_list", b"\x00\x01keys"),
    ("24", "public_signing_key_list", b"\xff\x01keys"),
    ("25", "security", DESCRIPTOR),
    ("26", "clustered", True),
]
PERSISTENT_ATTRIBUTES: list[tuple[str, str, Any]] = [
    ("28", "last_domain", TWO),
    ("29", "directory_server_list", ["DC1", "DC2"]),
    ("31", "srmp_http_support", True),
    ("32", "srmp_pgm_support", True),
    ("36", "hardened_security", True),
    ("48", "initialization_retry_timer_duration", 240),
]


def parameters(cases: list[tuple[str, str, Any]], *also: str) -> list[Any]:
    return [
        pytest.param(name, value, marks=pytest.mark.requirement(f"DMPR-3.1.1.1-{row}", *also), id=name)
        for row, name, value in cases
        if row not in ("23", "24")
    ] + [pytest.param(name, value, id=name) for row, name, value in cases if row in ("23", "24")]


@pytest.fixture
def desk() -> Desk:
    return Desk(quota=None)


# -- the queue manager ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "attribute, value",
    parameters(DIRECTORY_ATTRIBUTES + PERSISTENT_ATTRIBUTES, "DMPR-3.1.1-02", "DMPR-3.1.1-12"),
)
@pytest.mark.parametrize("orderly", [True, False])
def test_an_attribute_of_the_queue_manager_survives(
    desk: Desk, attribute: str, value: object, orderly: bool
) -> None:
    setattr(desk.core.queue_manager, attribute, value)
    if orderly:
        desk.stop()
    else:
        desk.core.changed()
        desk.step()
    desk.restart()
    assert getattr(desk.core.queue_manager, attribute) == value


@pytest.mark.parametrize(
    "attribute, value",
    # FullPath and the times are the directory's to set
    parameters([case for case in DIRECTORY_ATTRIBUTES if case[0] not in ("08", "09", "13")], "DMPR-3.1.1-03"),
)
def test_an_attribute_of_the_queue_manager_is_published(attribute: str, value: object) -> None:
    directory = EmbeddedDirectory()
    manager = QueueManager(HERE, computer_name="here")
    setattr(manager, attribute, value)
    directory.create_directory_object(manager, None)
    desk = Desk(directory=directory, quota=None)
    assert getattr(desk.core.queue_manager, attribute) == value
    found = desk.core.directory.read_directory("QueueManager", [("Identifier", "EQUALS", HERE)]).found
    assert found is not None
    assert getattr(found, attribute) == value


@pytest.mark.requirement("DMPR-3.1.1.1-08", "DMPR-3.1.1.1-09", "DMPR-3.1.1.1-13")
def test_the_directory_says_where_the_queue_manager_is_and_since_when() -> None:
    directory = EmbeddedDirectory()
    directory.create_directory_object(QueueManager(HERE, computer_name="here"), None)
    there = directory.read_directory("QueueManager", None, None).found
    assert isinstance(there, QueueManager)
    desk = Desk(directory=directory)
    manager = desk.core.queue_manager
    assert manager.full_path == there.full_path
    assert (manager.create_time, manager.modify_time) == (there.create_time, there.modify_time)


@pytest.mark.requirement("DMPR-3.1.1.1-30", "DMPR-3.1.1-12")
def test_the_mode_stays_over_a_restart() -> None:
    for directory in (None, EmbeddedDirectory()):
        desk = Desk(directory=directory)
        for _ in range(2):
            assert desk.core.queue_manager.directory_integrated is (directory is not None)
            desk.restart()


@pytest.mark.requirement(
    "DMPR-3.1.1-04", "DMPR-3.1.1-13", "DMPR-3.1.1.1-34", "DMPR-3.1.1.1-35", "DMPR-3.1.1.1-37"
)
def test_what_is_volatile_begins_anew(desk: Desk) -> None:
    queue = desk.queue()
    manager, core = desk.core.queue_manager, desk.core
    core.queues.begin_flow_control()
    core.queues.take_offline()
    manager.directory_offline, manager.machine_domain_id = True, ONE
    opened = desk.open(queue)
    core.queues.open_cursor(opened)
    core.messages.dequeue(opened)
    core.changed()
    desk.stop()
    assert manager.state is QueueManagerState.STOPPED
    desk.restart()
    manager, queue = desk.core.queue_manager, desk.find()
    assert manager.throttled is False
    assert manager.connection_active is True
    assert manager.directory_offline is False
    assert manager.machine_domain_id != ONE
    assert manager.state is QueueManagerState.READY
    assert all(not one.descriptors for one in manager.queues.values())
    assert queue.active is False
    assert desk.advance(10**9) == []


@pytest.mark.requirement("DMPR-3.1.1.1-33")
def test_without_a_directory_it_is_never_away(desk: Desk) -> None:
    manager = desk.core.queue_manager
    assert manager.directory_integrated is False
    desk.core.queues.create(desk.wanted("orders"))
    desk.core.directory.check_directory_online()
    assert manager.directory_offline is False


# -- queues ---------------------------------------------------------------------------------------------

QUEUE_ATTRIBUTES: list[tuple[str, str, Any]] = [
    ("02", "label", "Orders € 7"),
    ("03", "create_time", 1_600_000_000),
    ("05", "type", ONE),
    ("07", "qualified_pathname", "here.example\\private$\\orders"),
    ("09", "journaling", True),
    ("10", "quota", 77),
    ("11", "journal_quota", 78),
    ("12", "authentication", True),
    ("13", "privacy_level", QueuePrivacy.BODY),
    ("14", "transactional", True),
    ("15", "multicast_address", "234.1.1.1:8001"),
    ("16", "security", DESCRIPTOR),
    ("17", "base_priority", -5),
    ("18", "full_path", "CN=orders"),
    ("19", "directory_path", "LDAP://CN=orders"),
]


def queue_parameters(*left_out: str) -> list[Any]:
    return [
        pytest.param(
            name, value, marks=pytest.mark.requirement(f"DMPR-3.1.1.2-{row}", "DMPR-3.1.1.2-01"), id=name
        )
        for row, name, value in QUEUE_ATTRIBUTES
        if row not in left_out
    ]


@pytest.mark.requirement("DMPR-3.1.1-12", "DMPR-3.1.1-02")
@pytest.mark.parametrize("attribute, value", queue_parameters())
def test_an_attribute_of_a_private_queue_survives(desk: Desk, attribute: str, value: object) -> None:
    queue = desk.queue()
    setattr(queue, attribute, value)
    desk.core.queues.changed(queue)
    desk.step()
    desk.restart()
    assert getattr(desk.find(), attribute) == value


@pytest.mark.requirement("DMPR-3.1.1-03", "DMPR-3.1.1-12")
@pytest.mark.parametrize("attribute, value", queue_parameters("03", "07", "18", "19"))
def test_an_attribute_of_a_public_queue_is_published_and_survives(attribute: str, value: object) -> None:
    desk = Desk(directory=EmbeddedDirectory())
    identifier = desk.queue("orders", **{attribute: value}).identifier
    found = desk.core.directory.read_directory("Queue", [("Identifier", "EQUALS", identifier)]).found
    assert found is not None
    assert getattr(found, attribute) == value
    desk.restart()
    assert getattr(desk.find("orders"), attribute) == value
    assert desk.find("orders").identifier == identifier


@pytest.mark.requirement("DMPR-3.1.1.2-24", "DMPR-3.1.1.2-08", "DMPR-3.1.1.2-06", "DMPR-3.1.1-12")
def test_types_names_and_numbers_of_queues_survive() -> None:
    desk = Desk(directory=EmbeddedDirectory())
    desk.queue()
    desk.queue("orders")
    desk.queue("private$\\orders;later")

    def seen() -> dict[int, tuple[object, ...]]:
        return {
            number: (queue.queue_type, queue.pathname, queue.private_queue_number)
            for number, queue in desk.core.queue_manager.queues.items()
        }

    before = seen()
    assert {kind for kind, *_ in before.values()} == {QueueType.PRIVATE, QueueType.PUBLIC, QueueType.SYSTEM}
    desk.restart()
    assert seen() == before


@pytest.mark.requirement("DMPR-3.1.1.1-41", "DMPR-3.1.1.2-25", "DMPR-3.1.1.2-26", "DMPR-3.1.1.2-23")
def test_journals_and_subqueues_belong_to_their_queue_after_a_restart(desk: Desk) -> None:
    desk.queue(journaling=True)
    desk.queue("private$\\orders;Later")
    before = set(desk.core.queue_manager.queues)
    desk.restart()
    queue = desk.find()
    assert set(desk.core.queue_manager.queues) == before
    assert all(
        one.queue_manager is desk.core.queue_manager for one in desk.core.queue_manager.queues.values()
    )
    assert queue.journal is not None
    assert queue.journal.owner_queue is queue
    (later,) = queue.subqueues.values()
    assert later.owner_queue is queue
    assert (later.journal, later.pathname) == (None, "here\\private$\\orders;Later")
    desk.put(queue, b"1")
    assert taken(desk.core.messages.dequeue(desk.open(queue))) == b"1"
    assert bodies(queue.journal) == [b"1"]


@pytest.mark.requirement("DMPR-3.1.1.3-01", "DMPR-3.1.1.3-03", "DMPR-3.1.1-12")
@pytest.mark.parametrize(
    "name",
    [
        "DIRECT=OS:there\\private$\\orders",
        "DIRECT=TCP:10.1.2.3\\q",
        f"PRIVATE={ONE}\\5",
        "DIRECT=HTTP://there/msmq/q",
        "MULTICAST=234.1.1.1:8001",
    ],
)
def test_an_outgoing_queue_survives(desk: Desk, name: str) -> None:
    number = desk.outgoing(name).number
    desk.step()
    desk.restart()
    queue = desk.core.queue_manager.queues[number]
    assert isinstance(queue, OutgoingQueue)
    assert queue.destination == parse_format_name(name)
    assert queue.multicast is name.startswith("MULTICAST")
    assert desk.open(name, SEND).queue is queue


@pytest.mark.requirement("DMPR-3.1.1-04", "DMPR-3.1.1.3-02")
@pytest.mark.parametrize("state", [OutgoingQueueState.CONNECTED, OutgoingQueueState.WAITING])
def test_a_connection_does_not_survive(desk: Desk, state: OutgoingQueueState) -> None:
    queue = desk.outgoing()
    queue.state, queue.next_hops = state, ["IP=10.0.0.9"]
    desk.core.queues.changed(queue)
    desk.step()
    desk.restart()
    again = desk.outgoing()
    assert again.state is OutgoingQueueState.INACTIVE
    assert again.next_hops == []
    assert len(again.connection_history) == 0


# -- messages -------------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.1-12", "DMPR-3.1.1-13", "DMPR-3.1.1.11-06", "DMPR-3.1.1.12-17")
def test_recoverable_messages_survive_in_their_places(desk: Desk) -> None:
    queue = desk.queue()
    for number, priority in enumerate((3, 5, 3, 7)):
        desk.put(queue, b"r%d" % number, priority=priority, delivery_guarantee=RECOVERABLE)
        desk.put(queue, b"e%d" % number, priority=priority)
    total = sum(position.size for position in queue.positions if position.recoverable)
    places = [one.lookup_identifier for one in queue.positions if one.recoverable]
    desk.step()
    desk.restart()
    queue = desk.find()
    assert bodies(queue) == [b"r3", b"r1", b"r0", b"r2"]
    assert states(queue) == [PositionState.AVAILABLE] * 4
    assert [one.lookup_identifier for one in queue.positions] == places
    assert queue.total_bytes == desk.core.queue_manager.total_bytes == total


def test_messages_keep_on_surviving(desk: Desk) -> None:
    desk.queue()
    for number in range(4):
        desk.put(desk.find(), b"%d" % number, delivery_guarantee=RECOVERABLE)
        desk.step()
        desk.restart()
    assert bodies(desk.find()) == [b"0", b"1", b"2", b"3"]
    opened = desk.open(desk.find())
    assert taken(desk.core.messages.dequeue(opened)) == b"0"
    desk.step()
    desk.restart()
    assert bodies(desk.find()) == [b"1", b"2", b"3"]


def test_what_was_not_committed_is_not_there(desk: Desk) -> None:
    queue = desk.queue()
    desk.put(queue, b"1", delivery_guarantee=RECOVERABLE)
    desk.restart()
    assert bodies(desk.find()) == []


@pytest.mark.requirement("DMPR-3.1.1.1-49", "DMPR-3.1.7.1.9-05")
def test_numbers_go_on_when_only_express_messages_came(desk: Desk) -> None:
    queue = desk.queue()
    last = [desk.put(queue).lookup_identifier for _ in range(5_000)][-1]
    desk.step()
    desk.restart()
    desk.restart()
    assert desk.put(desk.find()).lookup_identifier > last


@pytest.mark.requirement("DMPR-3.1.1.1-49")
def test_the_count_survives_exactly_when_it_stops_in_order(desk: Desk) -> None:
    queue = desk.queue()
    for _ in range(10):
        desk.put(queue)
    last = desk.core.queue_manager.sequential_id
    for _ in range(3):
        desk.stop()
        desk.restart()
        assert desk.core.queue_manager.sequential_id == last


def test_queue_numbers_are_never_used_again(desk: Desk) -> None:
    queue = desk.queue()
    assert isinstance(queue, Queue)
    before = set(desk.core.queue_manager.queues)
    desk.restart()
    assert desk.queue("private$\\new").number not in before
