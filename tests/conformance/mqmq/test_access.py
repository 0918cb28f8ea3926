"""The access check of [MS-DTYP] 2.5.3.2 and the access rights of [MS-MQMQ] 2.2.23 to 2.2.27."""

from __future__ import annotations

from enum import IntFlag
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire import InvalidValue, MalformedPacket
from msmqwire.constants import (
    ACCESS_MASK,
    MQCNACCESSMASK,
    MQENTACCESSMASK,
    MQQMACCESSMASK,
    MQQUEUEACCESSMASK,
    MQSITEACCESSMASK,
)
from msmqwire.headers import ACCESS_ACE_BODY, ACE, ACL, SID
from msmqwire.headers.security_descriptor import (
    DescriptorParts,
    access_entry,
    build_descriptor,
    descriptor_parts,
    sid_bytes,
)
from msmqwire.names import parse_format_name
from msmqwire.qm.model import access
from msmqwire.qm.model.access import (
    ANONYMOUS,
    EVERYONE,
    OWNER_RIGHTS,
    QUEUE_RIGHTS,
    RIGHTS,
    RIGHTS_OF,
    Operation,
    Token,
    access_allowed,
    granted_access,
    may,
    may_open,
    set_security,
)
from msmqwire.qm.model.directory_objects import ConnectedNetwork, Enterprise, Site
from msmqwire.qm.model.elements import OutgoingQueue, Queue, QueueManager
from msmqwire.qm.model.enumerations import QueueAccessType
from tests.support.codec_checks import proving

requirement = pytest.mark.requirement
ALLOW, DENY, AUDIT, ALLOW_OBJECT, ALLOW_IF, DENY_IF = 0, 1, 2, 5, 9, 10
RECEIVE, PEEK, SEND, MOVE, RECEIVE_ADMIN, PEEK_ADMIN = (
    QueueAccessType(f"{name}Access")
    for name in ("Receive", "Peek", "Send", "Move", "ReceiveAdmin", "PeekAdmin")
)
ID = UUID(int=1)
ALICE, BOB = sid_bytes("S-1-5-21-1-2-3-1001"), sid_bytes("S-1-5-21-1-2-3-1002")
CLERKS = sid_bytes("S-1-5-21-1-2-3-2001")
READ_CONTROL, WRITE_DAC, WRITE_OWNER = 0x20000, 0x40000, 0x80000
SYSTEM_SECURITY, MAXIMUM, EXECUTE = 0x01000000, 0x02000000, 0x20000000

Entry = tuple[int, int, bytes]


def dacl(*entries: Entry, inherit_only: bool = False) -> bytes:
    return ACL.build(
        {
            "Aces": [
                {
                    "AceType": kind,
                    "AceFlags": 0x0A if inherit_only else 0,
                    "Body": ACCESS_ACE_BODY.build({"Mask": mask, "Sid": SID.parse(sid)}),
                }
                for kind, mask, sid in entries
            ]
        }
    )


def guarded(*entries: Entry, owner: bytes | None = None, inherit_only: bool = False) -> bytes:
    return build_descriptor(DescriptorParts(owner, dacl=dacl(*entries, inherit_only=inherit_only)))


def masks(descriptor: bytes) -> list[int]:
    dacl = descriptor_parts(descriptor).dacl
    assert dacl is not None
    return [entry[0] for ace in ACL.parse(dacl).Aces if (entry := access_entry(ace))]


# --- the algorithm ---


def test_tokens() -> None:
    assert Token.of(ALICE, [CLERKS]).sids == {ALICE, CLERKS, EVERYONE}
    assert Token.of(EVERYONE).sids == {EVERYONE}
    assert Token.of(ANONYMOUS).sids == {ANONYMOUS}
    with pytest.raises(MalformedPacket):
        Token.of(ALICE[:-1])


@pytest.mark.parametrize(
    ("entries", "mask", "granted"),
    [
        ([], 1, False),
        ([(ALLOW, 1, ALICE)], 1, True),
        ([(ALLOW, 1, BOB)], 1, False),
        ([(ALLOW, 1, CLERKS)], 1, True),
        ([(ALLOW, 1, EVERYONE)], 1, True),
        ([(ALLOW, 1, ALICE)], 3, False),
        ([(ALLOW, 1, ALICE), (ALLOW, 2, CLERKS)], 3, True),
        ([(DENY, 1, ALICE), (ALLOW, 3, EVERYONE)], 1, False),
        ([(DENY, 1, ALICE), (ALLOW, 3, EVERYONE)], 2, True),
        ([(DENY, 1, BOB), (ALLOW, 3, EVERYONE)], 1, True),
        ([(ALLOW, 3, EVERYONE), (DENY, 1, ALICE)], 3, True),
        ([(ALLOW, 1, EVERYONE), (DENY, 2, ALICE), (ALLOW, 2, ALICE)], 3, False),
        ([(DENY, 0, ALICE), (ALLOW, 1, ALICE)], 1, True),
        ([(AUDIT, 1, ALICE)], 1, False),
        ([(ALLOW_IF, 1, ALICE)], 1, False),
        ([(DENY_IF, 1, ALICE), (ALLOW, 1, ALICE)], 1, False),
    ],
)
def test_entries_are_judged_in_their_order(entries: list[Entry], mask: int, granted: bool) -> None:
    assert access_allowed(guarded(*entries), Token.of(ALICE, [CLERKS]), mask) is granted


def test_entries_for_children_do_not_hold() -> None:
    token = Token.of(ALICE)
    assert not access_allowed(guarded((ALLOW, 1, ALICE), inherit_only=True), token, 1)
    only_children = ACL.parse(dacl((DENY, 1, ALICE), inherit_only=True)).Aces
    here = ACL.parse(dacl((ALLOW, 1, ALICE))).Aces
    mixed = DescriptorParts(dacl=ACL.build({"Aces": [*only_children, *here]}))
    assert access_allowed(build_descriptor(mixed), token, 1)


def test_entries_for_a_part_of_the_object_have_no_effect() -> None:
    body = (1).to_bytes(4, "little") + bytes(4) + ALICE
    parts = DescriptorParts(dacl=ACL.build({"Aces": [{"AceType": ALLOW_OBJECT, "Body": body}]}))
    assert not access_allowed(build_descriptor(parts), Token.of(ALICE), 1)


def test_no_dacl_lets_all_in_and_an_empty_one_nobody() -> None:
    for token in (Token.of(ALICE), Token.of(ANONYMOUS)):
        assert access_allowed(build_descriptor(DescriptorParts()), token, 0x000F003F)
        assert granted_access(build_descriptor(DescriptorParts()), token, MAXIMUM) == 0x000F003F
        assert not access_allowed(guarded(), token, 1)
        assert not access_allowed(guarded(), token, MAXIMUM)
        assert access_allowed(guarded(), token, 0)


def test_the_owner_may_read_and_change_the_descriptor() -> None:
    mine = guarded((DENY, READ_CONTROL | WRITE_DAC, ALICE), (ALLOW, 1, ALICE), owner=ALICE)
    assert granted_access(mine, Token.of(ALICE), READ_CONTROL | WRITE_DAC | 1) == READ_CONTROL | WRITE_DAC | 1
    assert granted_access(mine, Token.of(ALICE), WRITE_OWNER) is None
    assert granted_access(mine, Token.of(BOB, [ALICE]), WRITE_DAC) == WRITE_DAC
    assert granted_access(mine, Token.of(BOB), READ_CONTROL) is None
    assert granted_access(guarded(owner=ALICE), Token.of(ALICE), MAXIMUM) == READ_CONTROL | WRITE_DAC


def test_owner_rights_stand_for_what_the_owner_may() -> None:
    mine = guarded((ALLOW, READ_CONTROL | 1, OWNER_RIGHTS), owner=ALICE)
    assert access_allowed(mine, Token.of(ALICE), READ_CONTROL | 1)
    assert not access_allowed(mine, Token.of(ALICE), WRITE_DAC)
    assert not access_allowed(mine, Token.of(BOB), 1)
    assert granted_access(mine, Token.of(ALICE), MAXIMUM) == READ_CONTROL | 1
    for_children = guarded((ALLOW, 1, OWNER_RIGHTS), owner=ALICE, inherit_only=True)
    assert access_allowed(for_children, Token.of(ALICE), WRITE_DAC)


@pytest.mark.parametrize("name", ["OWNER_RIGHTS", "PRINCIPAL_SELF", "CREATOR_OWNER", "CREATOR_GROUP"])
def test_nobody_is_a_placeholder(name: str) -> None:
    """Not even if the packet claims such a sender."""
    sid = getattr(access, name)
    descriptor = guarded((ALLOW, 1, sid), owner=BOB)
    assert not access_allowed(descriptor, Token.of(sid), 1)
    assert not access_allowed(descriptor, Token.of(ALICE, [sid]), 1)


def test_the_anonymous_user_owns_nothing() -> None:
    nobodys = guarded((ALLOW, 4, ANONYMOUS), owner=ANONYMOUS)
    assert not access_allowed(nobodys, Token.of(ANONYMOUS), WRITE_DAC)
    assert access_allowed(nobodys, Token.of(ANONYMOUS), 4)
    assert not access_allowed(guarded((ALLOW, 4, EVERYONE)), Token.of(ANONYMOUS), 4)


def test_maximum_allowed_gathers_all_rights() -> None:
    token = Token.of(ALICE, [CLERKS])
    descriptor = guarded((ALLOW, 0x7, EVERYONE), (DENY, 0x2, CLERKS), (ALLOW, 0x30, ALICE), (ALLOW, 8, BOB))
    assert granted_access(descriptor, token, MAXIMUM) == 0x35
    assert granted_access(descriptor, token, MAXIMUM | 0x10) == 0x35
    assert granted_access(descriptor, token, MAXIMUM | 0x02) is None
    assert granted_access(guarded((ALLOW, 1, BOB)), token, MAXIMUM) is None


def test_audit_lists_need_a_privilege_that_nobody_has() -> None:
    for descriptor in (
        build_descriptor(DescriptorParts()),
        guarded((ALLOW, SYSTEM_SECURITY, ALICE), owner=ALICE),
    ):
        assert not access_allowed(descriptor, Token.of(ALICE), SYSTEM_SECURITY)
        assert not access_allowed(descriptor, Token.of(ALICE), SYSTEM_SECURITY | MAXIMUM)


def test_a_malformed_descriptor_lets_nobody_in() -> None:
    whole = guarded((ALLOW, 1, ALICE), owner=ALICE)
    assert access_allowed(whole, Token.of(ALICE), 1)
    for cut in range(len(whole)):
        assert not access_allowed(whole[:cut], Token.of(ALICE), 1)
        with pytest.raises(MalformedPacket):
            granted_access(whole[:cut], Token.of(ALICE), 1)


@requirement("MQMQ-2.2.24-13", "MQMQ-2.2.24-14", "MQMQ-2.2.24-15")
def test_generic_rights_are_translated_in_what_is_asked_for() -> None:
    token, kind = Token.of(ALICE), QUEUE_RIGHTS
    for generic, meant in ((0x80000000, 0x0002002B), (0x40000000, 0x00020024), (0x10000000, 0x000F003F)):
        assert kind.mapped(generic) == meant
        assert granted_access(guarded((ALLOW, meant, ALICE)), token, generic) == meant
        lacking = meant & (meant - 1)
        assert granted_access(guarded((ALLOW, lacking, ALICE)), token, generic) is None
        assert granted_access(guarded((ALLOW, generic, ALICE)), token, generic) is None
    assert kind.mapped(EXECUTE | 1) == EXECUTE | 1
    assert not access_allowed(guarded((ALLOW, 0x000F003F, ALICE)), token, EXECUTE)


ENTRIES = st.lists(
    st.tuples(st.sampled_from([ALLOW, DENY]), st.integers(0, 0xFF), st.sampled_from([ALICE, BOB, EVERYONE])),
    max_size=6,
)


@given(ENTRIES, st.integers(0, 0xFF))
def test_each_right_is_decided_by_the_first_entry_that_names_it(entries: list[Entry], mask: int) -> None:
    descriptor, token = guarded(*entries), Token.of(ALICE)
    entries_for_alice = [(kind, rights) for kind, rights, sid in entries if sid != BOB]
    firsts = [
        next((kind for kind, rights in entries_for_alice if rights & bit), DENY)
        for bit in (1 << shift for shift in range(8))
        if mask & bit
    ]
    assert access_allowed(descriptor, token, mask) is all(kind == ALLOW for kind in firsts)
    granted = granted_access(descriptor, token, MAXIMUM) or 0
    assert granted == 0 or access_allowed(descriptor, token, granted)


# --- the objects and their rights ---

OBJECTS = [
    pytest.param(QueueManager, MQQMACCESSMASK, marks=requirement("DMPR-3.1.1.1-25"), id="queue manager"),
    pytest.param(Queue, MQQUEUEACCESSMASK, marks=requirement("DMPR-3.1.1.2-16"), id="queue"),
    pytest.param(Enterprise, MQENTACCESSMASK, marks=requirement("DMPR-3.1.1.6-06"), id="enterprise"),
    pytest.param(Site, MQSITEACCESSMASK, marks=requirement("DMPR-3.1.1.7-08"), id="site"),
    pytest.param(ConnectedNetwork, MQCNACCESSMASK, marks=requirement("DMPR-3.1.1.9-02"), id="network"),
]


@requirement("MQMQ-2.2.23-18")
@pytest.mark.parametrize(("kind", "rights"), OBJECTS)
def test_entries_have_the_rights_of_their_object_and_no_other(kind: Any, rights: type[IntFlag]) -> None:
    element, meant = kind(ID), RIGHTS_OF[kind]
    generic = {name.rpartition("GENERIC_")[2]: mask for name, mask in rights.__members__.items()}
    assert (meant.read, meant.write, meant.all) == (generic["READ"], generic.get("WRITE", 0), generic["ALL"])
    named = sorted({int(value) for value in rights.__members__.values()})
    set_security(element, guarded(*((ALLOW, mask, ALICE) for mask in named), (DENY, named[0], BOB)))
    assert masks(element.security) == [*named, named[0]]
    for mask in named:
        assert access_allowed(element.security, Token.of(ALICE), mask, meant)
        assert not access_allowed(element.security, Token.of(BOB), mask | named[0], meant)
    before = element.security
    every = 0
    for mask in named:
        every |= mask
    for bit in (1 << shift for shift in range(28) if shift != 25):
        if bit & every:
            continue
        with pytest.raises(InvalidValue) as caught:
            set_security(element, guarded((ALLOW, named[0], ALICE), (DENY, bit, BOB)))
        assert caught.value.path == "SECURITY_DESCRIPTOR.Dacl.Aces[1].Body.Mask"
    assert element.security == before


@requirement("MQMQ-2.2.23-18")
@pytest.mark.parametrize(
    ("rights", "prefix", "noun"),
    [
        (MQQMACCESSMASK, "MQSEC", "MACHINE"),
        (MQQUEUEACCESSMASK, "MQSEC", "QUEUE"),
        (MQSITEACCESSMASK, "MQSEC", "SITE"),
        (MQENTACCESSMASK, "MQSEC", "ENTERPRISE"),
        (MQCNACCESSMASK, "MQSEC", "CN"),
    ],
)
def test_the_high_rights_are_the_standard_ones(rights: Any, prefix: str, noun: str) -> None:
    assert rights[f"{prefix}_DELETE_{noun}"] == ACCESS_MASK.DELETE == 0x00010000
    assert rights[f"{prefix}_GET_{noun}_PERMISSIONS"] == ACCESS_MASK.READ_CONTROL == READ_CONTROL
    assert rights[f"{prefix}_CHANGE_{noun}_PERMISSIONS"] == ACCESS_MASK.WRITE_DAC == WRITE_DAC
    assert rights[f"{prefix}_TAKE_{noun}_OWNERSHIP"] == ACCESS_MASK.WRITE_OWNER == WRITE_OWNER
    standard = 0x000F0000
    specific = [int(value) for value in rights if not value & standard]
    assert all(value <= 0xFFFF for value in specific)


@pytest.mark.parametrize(
    ("kind", "generic", "meant"),
    [
        proving(QueueManager, 0x80000000, 0x000200E3, ids="MQMQ-2.2.23-14"),
        proving(QueueManager, 0x40000000, 0x00020024, ids="MQMQ-2.2.23-15"),
        proving(QueueManager, 0x10000000, 0x000F00F7, ids="MQMQ-2.2.23-16"),
        proving(Queue, 0x80000000, 0x0002002B, ids="MQMQ-2.2.24-13"),
        proving(OutgoingQueue, 0x10000000, 0x000F003F, ids="MQMQ-2.2.24-15"),
        proving(Site, 0x80000000, 0x00020020, ids="MQMQ-2.2.25-10"),
        proving(Site, 0x40000000, 0x00020024, ids="MQMQ-2.2.25-11"),
        proving(Site, 0x10000000, 0x000F0037, ids="MQMQ-2.2.25-12"),
        proving(Enterprise, 0x80000000, 0x00020021, ids="MQMQ-2.2.26-10"),
        proving(Enterprise, 0x40000000, 0x00020027, ids="MQMQ-2.2.26-11"),
        proving(Enterprise, 0x10000000, 0x000F0037, ids="MQMQ-2.2.26-12"),
        proving(ConnectedNetwork, 0x80000000, 0x00020020, ids="MQMQ-2.2.27-08"),
        proving(ConnectedNetwork, 0x10000000, 0x000F0031, ids="MQMQ-2.2.27-09"),
    ],
)
def test_generic_rights_are_translated_in_entries(kind: Any, generic: int, meant: int) -> None:
    element = kind(ID)
    set_security(element, guarded((ALLOW, generic | MAXIMUM, ALICE), (DENY, generic, BOB), owner=BOB))
    assert masks(element.security) == [meant, meant]
    assert descriptor_parts(element.security).owner == BOB


def test_generic_rights_that_mean_nothing_are_refused() -> None:
    for element, generic in ((Queue(ID), EXECUTE), (ConnectedNetwork(ID), 0x40000000)):
        with pytest.raises(InvalidValue):
            set_security(element, guarded((ALLOW, generic, ALICE)))


def test_object_entries_are_preserved() -> None:
    object_entry = ACE.make(AceType=ALLOW_OBJECT, Body=b"\xff" * 8)
    stored = ACL.make(AclRevision=4, Aces=[object_entry], Unused=b"room").to_bytes()
    queue, sacl = Queue(ID), dacl((AUDIT, SYSTEM_SECURITY, EVERYONE))
    set_security(queue, build_descriptor(DescriptorParts(ALICE, CLERKS, sacl, stored, 0x1000)))
    assert descriptor_parts(queue.security) == DescriptorParts(ALICE, CLERKS, sacl, stored, 0x1000)
    set_security(queue, build_descriptor(DescriptorParts(ALICE)))
    assert descriptor_parts(queue.security) == DescriptorParts(ALICE)


# --- what an operation needs ---

ACCESSES = list(QueueAccessType)


def openable(queue: Queue, guard: Queue | QueueManager, mask: int) -> set[QueueAccessType]:
    set_security(guard, guarded((ALLOW, mask, ALICE)))
    return {kind for kind in ACCESSES if may_open(queue, Token.of(ALICE), kind)}


@requirement("MQMQ-2.2.24-01", "MQMQ-2.2.24-02", "MQMQ-2.2.24-03", "MQMQ-2.2.24-11")
def test_what_opening_a_queue_needs() -> None:
    queue = Queue(ID)
    peeks = {PEEK, MOVE, PEEK_ADMIN}
    assert openable(queue, queue, 1) == set()
    assert openable(queue, queue, 2) == peeks
    assert openable(queue, queue, 3) == peeks | {RECEIVE, RECEIVE_ADMIN}
    assert openable(queue, queue, 4) == {SEND}
    assert openable(queue, queue, 0x000F003F & ~7) == set()
    assert RIGHTS.keys() == set(QueueAccessType)
    assert all(may_open(queue, None, kind) for kind in ACCESSES)
    assert not any(may_open(queue, Token.of(BOB), kind) for kind in ACCESSES)


@requirement("MQMQ-2.2.24-04", "MQMQ-2.2.24-12")
def test_what_opening_a_journal_needs() -> None:
    queue = Queue(ID)
    queue.journal = journal = Queue(UUID(int=2), owner_queue=queue)
    assert openable(journal, queue, 2) == {PEEK}
    assert openable(journal, queue, 8) == set()
    assert openable(journal, queue, 0x0A) == {RECEIVE, PEEK}
    assert openable(journal, queue, 0x000F003F & ~8) == {PEEK}
    assert openable(queue, queue, 0x0A) == {PEEK, MOVE, PEEK_ADMIN}


def test_a_subqueue_is_guarded_by_its_queue() -> None:
    queue = Queue(ID)
    subqueue = queue.subqueues["later"] = Queue(UUID(int=2), owner_queue=queue)
    assert openable(subqueue, queue, 3) == {PEEK, MOVE, PEEK_ADMIN, RECEIVE, RECEIVE_ADMIN}
    assert openable(subqueue, queue, 4) == {SEND}


@requirement(
    "MQMQ-2.2.23-01",
    "MQMQ-2.2.23-02",
    "MQMQ-2.2.23-06",
    "MQMQ-2.2.23-07",
    "MQMQ-2.2.23-12",
    "MQMQ-2.2.23-13",
)
def test_what_opening_a_system_queue_needs() -> None:
    manager = QueueManager(ID)
    queues = [Queue(UUID(int=n), queue_manager=manager) for n in (2, 3, 4)]
    manager.system_deadletter_queue, manager.system_transactional_deadletter_queue = queues[:2]
    manager.system_journal_queue = queues[2]
    for queue in queues:
        set_security(queue, guarded((ALLOW, 0x000F003F, ALICE)))  # without permission
        delete, peek = (0x40, 0x80) if queue is queues[2] else (0x01, 0x02)
        assert openable(queue, manager, delete) == set()
        assert openable(queue, manager, peek) == {PEEK}
        assert openable(queue, manager, delete | peek) == {RECEIVE, PEEK}
        assert openable(queue, manager, 0x000F00F7 & ~(delete | peek)) == set()


def test_outgoing_queues() -> None:
    """Sending is checked where the queue is; the rest is for the owner and those granted access."""
    queue = OutgoingQueue(ID, destination=parse_format_name("DIRECT=TCP:10.0.0.1\\q"))
    token = Token.of(ALICE)
    assert {kind for kind in ACCESSES if may_open(queue, token, kind)} == {SEND}
    assert openable(queue, queue, 3) == {SEND, PEEK, MOVE, PEEK_ADMIN, RECEIVE, RECEIVE_ADMIN}


@requirement(
    "MQMQ-2.2.24-05",
    "MQMQ-2.2.24-06",
    "MQMQ-2.2.24-07",
    "MQMQ-2.2.24-08",
    "MQMQ-2.2.24-09",
    "MQMQ-2.2.24-10",
)
@pytest.mark.parametrize(
    ("operation", "mask"),
    [
        (Operation.SET_PROPERTIES, 0x10),
        (Operation.GET_PROPERTIES, 0x20),
        (Operation.DELETE, 0x10000),
        (Operation.GET_PERMISSIONS, 0x20000),
        (Operation.CHANGE_PERMISSIONS, 0x40000),
        (Operation.TAKE_OWNERSHIP, 0x80000),
        (Operation.PURGE, 0x03),
    ],
)
def test_what_operations_on_a_queue_need(operation: Operation, mask: int) -> None:
    assert_needs(Queue(ID), operation, mask, 0x000F003F)


@requirement(
    "MQMQ-2.2.23-03",
    "MQMQ-2.2.23-04",
    "MQMQ-2.2.23-05",
    "MQMQ-2.2.23-08",
    "MQMQ-2.2.23-09",
    "MQMQ-2.2.23-10",
    "MQMQ-2.2.23-11",
)
@pytest.mark.parametrize(
    ("operation", "mask"),
    [
        (Operation.CREATE_QUEUE, 0x04),
        (Operation.SET_PROPERTIES, 0x10),
        (Operation.GET_PROPERTIES, 0x20),
        (Operation.DELETE, 0x10000),
        (Operation.GET_PERMISSIONS, 0x20000),
        (Operation.CHANGE_PERMISSIONS, 0x40000),
        (Operation.TAKE_OWNERSHIP, 0x80000),
    ],
)
def test_what_operations_on_a_queue_manager_need(operation: Operation, mask: int) -> None:
    assert_needs(QueueManager(ID), operation, mask, 0x000F00F7)


def assert_needs(element: Queue | QueueManager, operation: Operation, mask: int, every: int) -> None:
    token = Token.of(ALICE)
    set_security(element, guarded((ALLOW, mask, ALICE)))
    assert may(element, token, operation)
    assert not may(element, Token.of(BOB), operation)
    assert may(element, None, operation)
    for bit in (1 << shift for shift in range(20) if mask & 1 << shift):
        set_security(element, guarded((ALLOW, every & ~bit, ALICE)))
        assert not may(element, token, operation)


def test_operations_that_an_object_does_not_have() -> None:
    queue, manager = Queue(ID), QueueManager(ID)
    set_security(queue, guarded((ALLOW, 0x000F003F, ALICE)))
    set_security(manager, guarded((ALLOW, 0x000F00F7, ALICE)))
    assert not may(queue, Token.of(ALICE), Operation.CREATE_QUEUE)
    assert not may(manager, Token.of(ALICE), Operation.PURGE)
