"""The elements of the data model, their relations and initial values: [MS-MQDMPR] 1.8, 2, 3.1.1."""

from __future__ import annotations

import csv
import re
from dataclasses import fields
from enum import Enum
from typing import Any
from uuid import UUID

import pytest

from msmqwire.constants import HResult, MessageClass
from msmqwire.constants.ntstatus import NtStatus
from msmqwire.headers import USER_HEADER
from msmqwire.qm.directory.attributes import TYPES, update
from msmqwire.qm.directory.embedded import EmbeddedDirectory
from msmqwire.qm.model import access, elements, enumerations
from msmqwire.qm.model.directory_objects import (
    ConnectedNetwork,
    DirectoryObject,
    Enterprise,
    RoutingLink,
    Site,
    User,
)
from msmqwire.qm.model.elements import (
    InternalCertificate,
    OutgoingQueue,
    OutgoingTransferInfo,
    Queue,
    QueueManager,
)
from msmqwire.qm.model.enumerations import MessageSeekAction, PositionState
from msmqwire.qm.model.message import NULL_GUID, Message
from msmqwire.qm.model.positions import PRIORITY_SHIFT, MessagePosition
from tests.support.engine_harness import OWN_ID, SEND, EngineHarness
from tests.support.paths import ROOT
from tests.support.qm.queue_contents import bodies, body_of

TABLES = ROOT / "docs" / "conformance"


# -- codes and common types -----------------------------------------------------------------------------


@pytest.mark.requirement("MQMQ-1.7-01")
@pytest.mark.requirement("DMPR-1.8-01")
def test_a_code_of_our_own_would_have_the_customer_bit() -> None:
    defined = set()
    for name in ("MQMQ.tsv", "DMPR.tsv"):
        with (TABLES / name).open(newline="") as table:
            for row in csv.reader(table, delimiter="\t"):
                defined |= {int(code, 16) for code in re.findall(r"0x[0-9A-Fa-f]{8}\b", " ".join(row))}
    assert all(code & 0x2000_0000 for code in {int(code) for code in HResult} - defined)
    assert {status.name: status.value for status in NtStatus} == {
        "STATUS_INVALID_HANDLE": 0xC0000008,
        "STATUS_INVALID_PARAMETER": 0xC000000D,
        "STATUS_ACCESS_DENIED": 0xC0000022,
        "STATUS_NOT_FOUND": 0xC0000225,
    }


@pytest.mark.requirement("DMPR-2-01")
def test_guids_have_16_bytes_and_sids_as_many_as_they_need() -> None:
    packed = USER_HEADER.build(USER_HEADER.make({"SourceQueueManager": OWN_ID, "DestinationQueue": None}))
    assert OWN_ID.bytes_le in packed
    assert len(OWN_ID.bytes_le) == 16
    assert access.sid_bytes("S-1-5-18") == b"\x01\x01\0\0\0\0\0\x05\x12\0\0\0"
    sizes = [len(access.sid_bytes(text)) for text in ("S-1-1-0", "S-1-5-32-544", "S-1-5-21-1-2-3-1001")]
    assert sizes == [12, 16, 28]


# -- DirectoryObject ------------------------------------------------------------------------------------


def kinds_of(base: type) -> set[type]:
    return {kind for sub in base.__subclasses__() for kind in {sub, *kinds_of(sub)}}


@pytest.mark.requirement("DMPR-3.1.1-06")
def test_the_objects_of_a_directory() -> None:
    # A dataclass with slots is created twice; the first class is never used.
    assert {kind.__name__ for kind in kinds_of(DirectoryObject)} == {
        kind.__name__
        for kind in (
            QueueManager,
            Queue,
            OutgoingQueue,
            Enterprise,
            Site,
            RoutingLink,
            ConnectedNetwork,
            User,
        )
    }
    assert set(TYPES) == {kind.__name__ for kind in kinds_of(DirectoryObject)} - {"OutgoingQueue"}
    for other in (Message, MessagePosition, *(vars(elements)[name] for name in OTHERS)):
        assert not issubclass(other, DirectoryObject)


OTHERS = (
    "Cursor", "Transaction", "TransactionalOperation", "OpenQueueDescriptor", "WaitingMessageReadOperation",
    "OutgoingTransferInfo", "IncomingTransactionalTransferInfo",
)  # fmt: skip


@pytest.mark.requirement("DMPR-3.1.1-05")
@pytest.mark.parametrize(
    "kind", [QueueManager, Queue, OutgoingQueue, Enterprise, Site, RoutingLink, ConnectedNetwork, User]
)
def test_the_identifier_of_an_object_never_changes(kind: type[DirectoryObject]) -> None:
    original, changed = kind(UUID(int=1)), kind(UUID(int=2))
    if kind is not OutgoingQueue:  # it is in no directory
        update(original, changed)
    assert original.identifier == UUID(int=1)


@pytest.mark.requirement("DMPR-3.1.1-05")
def test_every_queue_has_an_identifier_of_its_own_that_survives(harness: EngineHarness) -> None:
    for number in range(3):
        harness.queue(f"q{number}")
    harness.outgoing()
    harness.run()
    before = {number: queue.identifier for number, queue in harness.core.queue_manager.queues.items()}
    assert len(set(before.values())) == len(before)
    harness.restart()
    assert {n: queue.identifier for n, queue in harness.core.queue_manager.queues.items()} == before


# -- relations between elements -------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.1-07")
def test_there_is_one_local_queue_manager_for_all_parts(harness: EngineHarness) -> None:
    manager = harness.core.queue_manager
    assert harness.core.context.queue_manager is harness.core.binary.context.queue_manager is manager
    assert harness.queue().queue_manager is manager


@pytest.mark.requirement("DMPR-3.1.1.2-33/a")
@pytest.mark.requirement("DMPR-3.1.1-08/a", "DMPR-3.1.1.3-04")
def test_what_belongs_to_what(harness: EngineHarness, queue: Queue) -> None:
    manager, core = harness.core.queue_manager, harness.core
    transactions = [harness.begin() for _ in range(2)]
    assert list(manager.transactions.values()) == transactions
    harness.enqueue(queue, b"", transactions[0])
    harness.enqueue(queue, b"", transactions[0])
    assert len(transactions[0].operations) == len(queue.positions) == 2
    descriptors = [harness.open(queue) for _ in range(2)]
    assert list(queue.descriptors.values()) == descriptors
    for _ in range(2):
        core.queues.open_cursor(descriptors[0])
        core.messages.dequeue(descriptors[0])
    assert (len(descriptors[0].cursors), len(descriptors[0].waiting)) == (2, 2)
    assert (descriptors[1].cursors, descriptors[1].waiting) == ({}, {})
    first, second = harness.outgoing(), harness.outgoing("DIRECT=OS:elsewhere\\q")
    assert isinstance(first.transfer, OutgoingTransferInfo)
    assert first.transfer is not second.transfer
    assert {queue, first, second} <= set(manager.queues.values())


@pytest.mark.requirement("DMPR-3.1.1-09", "DMPR-3.1.1.11-05")
def test_a_message_is_at_one_position_and_one_operation_has_it(harness: EngineHarness, queue: Queue) -> None:
    later = harness.queue("orders;later")
    position = harness.enqueue(queue, b"1")
    message = position.message
    harness.core.messages.move(position, later)
    positions = [
        candidate
        for each_queue in harness.core.queue_manager.queues.values()
        for candidate in each_queue.positions
        if candidate.message is message
    ]
    assert positions == list(later.positions)
    opened = harness.open("DIRECT=OS:here\\private$\\orders;later")
    messages, (first, second) = harness.core.messages, (harness.begin(), harness.begin())
    assert body_of(messages.dequeue(opened, transaction=first)) == b"1"
    for action in (MessageSeekAction.SEEK_CURRENT, MessageSeekAction.SEEK_FIRST):
        read = messages.read_by_lookup_identifier(
            opened, message.lookup_identifier, action, peek=False, transaction=second
        )
        assert read.message is None
    assert messages.dequeue(opened, transaction=second, timeout=0).message is None
    assert (len(first.operations), len(second.operations)) == (1, 0)


@pytest.mark.requirement("DMPR-3.1.1-11")
def test_sites_links_gates_and_networks() -> None:
    directory = EmbeddedDirectory()
    north, south, link, gate, network = (UUID(int=number) for number in range(1, 6))
    manager = QueueManager(
        gate,
        computer_name="gate",
        site_identifier_list=[north, south],
        connected_network_identifier_list=[network],
    )
    for obj in (
        Site(north, "north"), Site(south, "south"), ConnectedNetwork(network, "net"), manager,
        RoutingLink(link, site1_identifier=north, site2_identifier=south, site_gate_identifier_list=[gate]),
    ):  # fmt: skip
        directory.create_directory_object(obj, None)
    stored_link = directory.read_directory("RoutingLink", None, None).object
    assert isinstance(stored_link, RoutingLink)
    assert stored_link.site1 is not None
    assert stored_link.site2 is not None
    assert [stored_link.site1.identifier, stored_link.site2.identifier] == [north, south]
    assert [manager.identifier for manager in stored_link.site_gates] == [gate]
    assert [manager.identifier for manager in stored_link.site1.site_gates] == [gate]
    member = stored_link.site_gates[0]
    assert member.site_identifier_list == [north, south]
    assert member.connected_network_identifier_list == [network]


# -- enumerations ---------------------------------------------------------------------------------------

ENUMERATIONS: list[tuple[str, type[Enum], str]] = [
    ("3.1.1.1-06", enumerations.OperatingSystemType, "Foreign, Win95, WinClient, WinServer, WinEnt, Other"),
    (
        "3.1.1.1-22", enumerations.DirectoryServerType,
        "Standalone, BackupSiteController, PrimarySiteController, PrimaryEnterpriseController",
    ),
    ("3.1.1.1-37", enumerations.QueueManagerState, "Stopped, Initializing, Ready, Stopping"),
    ("3.1.1.2-13", enumerations.QueuePrivacy, "None, Optional, Body"),
    ("3.1.1.2-20", enumerations.QueueScope, "Site, Enterprise"),
    ("3.1.1.2-24", enumerations.QueueType, "Private, Public, System, Connector"),
    (
        "3.1.1.3-05", enumerations.OutgoingQueueState,
        "Connected, Disconnected, Disconnecting, Inactive, Locked, NeedValidation, Waiting, OnHold",
    ),
    (
        "3.1.1.3-13", enumerations.ConnectionStatus,
        "InProcess, EstablishPacketReceived, Established, UnknownFailure, PingFailure, SocketCreateFailure, "
        "SocketBindFailure, SocketConnectFailure, TcpNotEnabled, SocketSendFailure, ConnectionNotReady, "
        "DnsFailure, CertificateValidationFailure, ConnectionLimitReached, ConnectionRefused, "
        "RoutingDataNotAvailable, LowResource",
    ),
    ("3.1.1.16-10", enumerations.RemoteReadState, "None, Opened, ReadyForRead"),
    (
        "3.1.1.17-03",
        enumerations.MessageSeekAction,
        "SeekFirst, SeekPrevious, SeekCurrent, SeekNext, SeekLast",
    ),
    (
        "3.1.1.17-04", enumerations.QueueAccessType,
        "ReceiveAccess, SendAccess, PeekAccess, MoveAccess, ReceiveAdminAccess, PeekAdminAccess",
    ),
    ("3.1.1.16-03", enumerations.QueueAccessType,
     "ReceiveAccess, SendAccess, PeekAccess, MoveAccess, ReceiveAdminAccess, PeekAdminAccess"),
    ("3.1.1.17-05", enumerations.QueueShareMode, "DenyNone, DenyReceive"),
]  # fmt: skip


@pytest.mark.parametrize(
    "kind, names",
    [
        pytest.param(kind, names, marks=pytest.mark.requirement(f"DMPR-{row}"), id=row)
        for row, kind, names in ENUMERATIONS
    ],
)
def test_an_enumeration_has_its_values_and_no_others(kind: type[Enum], names: str) -> None:
    assert [member.value for member in kind] == names.split(", ")


@pytest.mark.requirement("DMPR-3.1.1.11-01")
def test_the_states_of_a_position() -> None:
    names = [state.name for state in PositionState]
    assert names == ["AVAILABLE", "LOCKED", "DELETED", "PURGE_PENDING"]
    assert [*PositionState] == [0, 1, 2, 3]  # as stored


@pytest.mark.requirement("DMPR-3.1.1.13-01")
def test_the_types_of_operations() -> None:
    assert [kind.name for kind in enumerations.OperationType] == ["ENQUEUE", "DEQUEUE", "MOVE"]
    assert [*enumerations.OperationType] == [0, 1, 2]  # as stored


# -- a new queue manager --------------------------------------------------------------------------------

AT_FIRST: list[tuple[str, str, Any]] = [
    ("02", "queue_manager_version", ""),
    ("05", "operating_system_version", ""),
    ("10", "queue_manager_quota", 0x00100000),
    ("11", "journal_quota", 0xFFFFFFFF),
    ("12", "foreign_system", False),
    ("14", "site_identifier_list", []),
    ("15", "connected_network_identifier_list", []),
    ("16", "out_routing_server_identifier_list", []),
    ("17", "in_routing_server_identifier_list", []),
    ("18", "directory_server", False),
    ("19", "remote_access_server", False),
    ("20", "routing_server", False),
    ("21", "supporting_server", False),
    ("22", "directory_server_type", None),
    ("", "last_domain", None),
    ("23", "public_encryption_key_list", b""),
    ("24", "public_signing_key_list", b""),
    ("26", "clustered", False),
    ("29", "directory_server_list", []),
    ("31", "srmp_http_support", False),
    ("32", "srmp_pgm_support", False),
    ("36", "hardened_security", False),
    ("48", "initialization_retry_timer_duration", 120),
]


@pytest.mark.parametrize(
    "attribute, value",
    [
        pytest.param(*case, marks=[pytest.mark.requirement(f"DMPR-3.1.1.1-{row}")] * bool(row), id=case[0])
        for row, *case in AT_FIRST
    ],
)
def test_a_value_of_a_new_queue_manager(attribute: str, value: object) -> None:
    assert getattr(QueueManager(OWN_ID), attribute) == value
    assert getattr(EngineHarness(quota=None).core.queue_manager, attribute) == value


@pytest.mark.requirement("DMPR-3.1.1.1-01", "DMPR-3.1.1.1-07", "DMPR-3.1.1.1-08")
def test_names_and_time_of_a_new_queue_manager(harness: EngineHarness) -> None:
    manager = harness.core.queue_manager
    assert (manager.computer_name, manager.qualified_computer_name) == ("here", "here")
    assert manager.create_time == harness.utc
    assert manager.identifier == OWN_ID
    assert EngineHarness(identifier=NULL_GUID).core.queue_manager.identifier != NULL_GUID


# -- positions ------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "DMPR-3.1.1.2-29", "DMPR-3.1.1.2-30", "DMPR-3.1.1.2-31/a", "DMPR-3.1.1.2-32", "DMPR-3.1.1.11-07",
    "DMPR-3.1.1.11-08", "DMPR-3.1.1.11-09",
)  # fmt: skip
def test_the_list_of_positions(harness: EngineHarness, queue: Queue) -> None:
    positions = queue.positions
    assert positions.head is positions.end
    assert positions.tail is positions.start
    added = [harness.enqueue(queue, b"%d" % number) for number in range(3)]
    assert (positions.head, positions.tail) == (added[0], added[2])
    assert [position.next for position in added] == [added[1], added[2], positions.end]
    assert [position.previous for position in added] == [positions.start, added[0], added[1]]
    assert all(position.queue is queue for position in added)
    assert positions.start not in added
    assert positions.start not in list(positions)
    positions.pin(added[2])  # as a cursor does: the removed position stays linked, but is no longer an entry
    for left, tail in ((2, added[1]), (1, added[0]), (0, positions.start)):
        harness.core.messages.position_deleted(queue, positions.tail, MessageClass.MQMSG_CLASS_NACK_DELETED)
        assert (len(list(positions)), positions.tail) == (left, tail)
    assert positions.head is positions.end


@pytest.mark.requirement("DMPR-3.1.1.2-28")
def test_positions_stand_by_their_identifiers_whenever_they_come(queue: Queue) -> None:
    lower = 1 << PRIORITY_SHIFT
    identifiers = [3, lower + 4, 1, 2, lower + 1, 5, lower + 2]
    for number, identifier in enumerate(identifiers):
        queue.positions.insert(MessagePosition(queue, number, identifier, 0))
    assert [position.lookup_identifier for position in queue.positions] == sorted(identifiers)


@pytest.mark.requirement("DMPR-3.1.1.11-10")
def test_a_position_stays_as_long_as_something_refers_to_it(harness: EngineHarness, queue: Queue) -> None:
    harness.enqueue(queue, b"1")
    harness.enqueue(queue, b"2")
    opened, transaction = harness.open(queue), harness.begin()
    messages = harness.core.messages
    messages.dequeue(opened, transaction=transaction)
    assert bodies(queue) == [b"1", b"2"]  # a transaction refers to the first one
    cursor = harness.core.queues.open_cursor(opened)
    assert cursor is not None
    assert body_of(messages.peek(opened, cursor=cursor)) == b"2"
    deleted = cursor.position
    assert body_of(messages.dequeue(opened)) == b"2"
    assert deleted.next is queue.positions.end  # a cursor is on it
    assert deleted.previous is queue.positions.head
    harness.core.queues.close_cursor(cursor)
    assert queue.positions.head.next is queue.positions.end


# -- the rest -------------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.1.19-01")
def test_an_internal_certificate() -> None:
    assert [field.name for field in fields(InternalCertificate)] == ["certificate", "user"]


@pytest.mark.requirement("DMPR-3.1.1.2-05")
def test_the_type_of_a_queue_is_stored_and_not_interpreted(harness: EngineHarness) -> None:
    for number, kind in enumerate((NULL_GUID, UUID(int=(1 << 128) - 1), OWN_ID)):
        queue = harness.queue(f"q{number}", type=kind)
        assert queue.type == kind
        assert harness.core.messages.enqueue(queue, Message()) == 0
        assert harness.open(queue, SEND).queue is queue


@pytest.mark.requirement("DMPR-3.1.7.1-01")
def test_every_event_has_an_entrance(harness: EngineHarness) -> None:
    core = harness.core
    events = [
        (core.queues, "open_cursor close_cursor create delete open close set_defaults default_security"),
        (
            core.messages,
            "purge enqueue dequeue dequeue_begin dequeue_end read_by_lookup_identifier peek_next",
        ),
        (core.messages, "peek move enqueue_to_open_queue"),
        (core.messages.waiting_reads, "cancel"),
        (core.transactions, "create"),
        (
            core.directory,
            "create_directory_object delete_directory_object read_directory read_directory_begin",
        ),
        (core.directory, "read_directory_next read_directory_end write_directory check_directory_online"),
        (core.directory, "get_queue_path"),
        (core.dispatch, "add remove remove_queue"),
    ]
    missing = [
        name for part, names in events for name in names.split() if not callable(getattr(part, name, None))
    ]
    assert missing == []
