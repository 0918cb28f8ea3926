"""Calls on the bindery: objects, properties, sets, passwords, and the levels of security that guard them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from msmqwire.ncp.constants import SUPERVISOR_ID, CompletionCode, ObjectType
from msmqwire.netware.model import names
from msmqwire.netware.model.bindery import (
    GROUP_MEMBERS,
    GROUPS_IM_IN,
    PASSWORD,
    Q_USERS,
    SECURITY_EQUALS,
)
from msmqwire.netware.model.passwords import PasswordHashing
from msmqwire.netware.model.settings import Settings
from tests.support.netware.queue_service import QueueServiceHarness, frozen

requirement = pytest.mark.requirement
Code = CompletionCode
USER = ObjectType.NWOT_USER
LEVELS = {"any": 0, "logged": 1, "object": 2, "supervisor": 3, "bindery": 4}
"""The levels by who has them; nobody has that of the bindery."""


@requirement("QMS-createqs-01", "QMS-supervisor-01", "QMS-createqs-03", "QMS-createqs-09", "QMS-qservers-06")
def test_objects_are_made_and_deleted_by_supervisors(harness: QueueServiceHarness) -> None:
    bindery, user = harness.service.bindery, harness.user()
    for caller in (user, harness.connect()):
        with harness.refused(Code.NO_OBJECT_CREATE_RIGHTS):
            bindery.create_object(caller, "PS9", ObjectType.NWOT_PRINT_SERVER)
    for no_type in (0, ObjectType.NWOT_WILD):
        with harness.refused(Code.WILD_CARD_NOT_ALLOWED):
            bindery.create_object(harness.supervisor, "PS9", no_type)
    new = bindery.create_object(harness.supervisor, "ps9", ObjectType.NWOT_PRINT_SERVER)
    assert bindery.get_id(user, "Ps9", ObjectType.NWOT_PRINT_SERVER) == new
    assert bindery.get_name(user, new.id).name == "PS9"
    with harness.refused(Code.NO_OBJECT_DELETE_RIGHTS):
        bindery.delete_object(user, new.id)
    bindery.delete_object(harness.supervisor, new.id)
    for call in (bindery.get_name, bindery.delete_object):
        with harness.refused(Code.NO_SUCH_OBJECT):
            call(harness.supervisor, new.id)
    with harness.refused(Code.NO_OBJECT_DELETE_RIGHTS):
        bindery.delete_object(harness.supervisor, SUPERVISOR_ID)


@pytest.mark.parametrize(
    "name, code",
    [
        ("", Code.INVALID_NAME), ("A" * 48, Code.INVALID_NAME), ("A B", Code.INVALID_NAME),
        ("A/B", Code.INVALID_NAME), ("A:B", Code.INVALID_NAME), ("\x7f", Code.INVALID_NAME),
        ("Ä", Code.INVALID_NAME), ("A\0", Code.INVALID_NAME), ("A*", Code.WILD_CARD_NOT_ALLOWED),
        ("?", Code.WILD_CARD_NOT_ALLOWED), ("alice", Code.OBJECT_ALREADY_EXISTS),
    ],
)  # fmt: skip
def test_names_that_no_object_gets(harness: QueueServiceHarness, name: str, code: Code) -> None:
    harness.object("ALICE")
    with harness.refused(code):
        harness.object(name)
    harness.object("A" * 47)


@requirement("QMS-bindery-03", "QMS-qdir-03")
@pytest.mark.parametrize("security", LEVELS.values(), ids=LEVELS)
@pytest.mark.parametrize("caller, level", list(LEVELS.items())[:4], ids=list(LEVELS)[:4])
def test_levels_of_security(harness: QueueServiceHarness, security: int, caller: str, level: int) -> None:
    """Each level on an object and on a property, read and written by each caller."""
    properties, bindery = harness.service.properties, harness.service.bindery
    target = bindery.create_object(harness.supervisor, "TARGET", USER, security=0x33)
    harness.object("OTHER")
    callers = {
        "any": harness.connect(),
        "logged": harness.login("OTHER"),
        "object": harness.login("TARGET"),
        "supervisor": harness.supervisor,
    }
    actor, allowed = callers[caller], level >= security
    properties.create(harness.supervisor, target.id, "ITEM", is_set=False, security=0x33)
    properties.write(harness.supervisor, target.id, "ITEM", b"value")
    objects = harness.service.objects
    value = objects[target.id].properties["ITEM"]
    for byte, code, call in (
        (security | 0x30, Code.NO_PROPERTY_READ_RIGHTS, lambda: properties.read(actor, target.id, "ITEM")),
        (
            security << 4,
            Code.NO_PROPERTY_WRITE_RIGHTS,
            lambda: properties.write(actor, target.id, "ITEM", b"value"),
        ),
    ):
        objects.replace(target.with_property(replace(value, security=byte)))
        if allowed:
            call()
        else:
            with harness.refused(code):
                call()
    objects.replace(replace(target, security=security | 0x30))
    if allowed:
        assert bindery.get_id(actor, "TARGET", USER).id == target.id
        assert bindery.scan(actor, "TAR*").id == target.id
    else:
        for find in (
            lambda: bindery.get_id(actor, "TARGET", USER),
            lambda: bindery.get_name(actor, target.id),
            lambda: bindery.scan(actor, "TAR*"),
        ):
            with harness.refused(Code.NO_SUCH_OBJECT):
                find()
        with harness.refused(Code.NO_OBJECT_READ_RIGHTS):
            properties.scan(actor, target.id)
    objects.replace(replace(target, security=security << 4))
    if allowed:
        properties.create(actor, target.id, "NEW", is_set=True, security=0x00)
    else:
        with harness.refused(Code.NO_PROPERTY_CREATE_RIGHTS):
            properties.create(actor, target.id, "NEW", is_set=True, security=0x00)


@pytest.mark.parametrize("security", [0x03, 0x30, 0x40, 0x04, 0x100, -1, 0xFF])
def test_nobody_gives_a_security_above_its_own(harness: QueueServiceHarness, security: int) -> None:
    own = harness.service.bindery.create_object(harness.supervisor, "OWN", USER, security=0x21)
    caller = harness.login("OWN")
    create = harness.service.properties.create
    with harness.refused(Code.INVALID_BINDERY_SECURITY):
        create(caller, own.id, "NOTE", is_set=False, security=security)
    create(caller, own.id, "NOTE", is_set=False, security=0x22)
    if security not in (0x03, 0x30):
        with harness.refused(Code.INVALID_BINDERY_SECURITY):
            harness.service.bindery.create_object(harness.supervisor, "NEW", USER, security=security)


@pytest.mark.parametrize("name", [SECURITY_EQUALS, GROUPS_IM_IN, GROUP_MEMBERS, PASSWORD])
def test_nobody_makes_itself_the_equal_of_a_supervisor(harness: QueueServiceHarness, name: str) -> None:
    """Not even where the security of its object, or of the property, would allow it."""
    properties = harness.service.properties
    own = harness.service.bindery.create_object(harness.supervisor, "OWN", USER, security=0x00)
    caller = harness.login("OWN")
    with harness.refused(Code.NO_PROPERTY_CREATE_RIGHTS):
        properties.create(caller, own.id, name, is_set=True, security=0x00)
    properties.create(harness.supervisor, own.id, name, is_set=True, security=0x00)
    other = harness.object("OTHER")
    for member in (SUPERVISOR_ID, other):
        with harness.refused(Code.NO_PROPERTY_WRITE_RIGHTS):
            properties.add_member(caller, own.id, name, member)
    properties.add_member(harness.supervisor, own.id, name, other)
    with harness.refused(Code.NO_PROPERTY_WRITE_RIGHTS):
        properties.delete_member(caller, own.id, name, other)
    with harness.refused(Code.NO_PROPERTY_DELETE_RIGHTS):
        properties.delete(caller, own.id, name)
    for call in (properties.join_group, properties.make_equivalent):
        with harness.refused(Code.NO_PROPERTY_WRITE_RIGHTS):
            call(caller, own.id, SUPERVISOR_ID)


@requirement("QMS-createqs-05", "QMS-createqs-06", "QMS-createqs-08")
def test_items_and_sets_of_a_queue_server(harness: QueueServiceHarness) -> None:
    properties, supervisor = harness.service.properties, harness.supervisor
    server = harness.object("PS1", ObjectType.NWOT_PRINT_SERVER)
    properties.create(supervisor, server, "ps_users", is_set=True, security=0x31)
    properties.create(supervisor, server, "ACCOUNT_BALANCE", is_set=False, security=0x33)
    properties.add_member(supervisor, server, "PS_USERS", SUPERVISOR_ID)
    properties.write(supervisor, server, "ACCOUNT_BALANCE", b"\0\0\x10\0")
    properties.check_member(supervisor, server, "PS_USERS", SUPERVISOR_ID)
    user = harness.user()
    assert [found.name for found in properties.scan(supervisor, server)] == ["ACCOUNT_BALANCE", "PS_USERS"]
    assert [found.name for found in properties.scan(user, server, "*")] == ["PS_USERS"]
    value = properties.read(supervisor, server, "ACCOUNT_BALANCE")
    assert (value.data, value.more, int(value.flags)) == (b"\0\0\x10".ljust(128, b"\0"), False, 0)
    assert int(properties.read(user, server, "PS_USERS").flags) == 0x02
    for name, code in (("PS_USERS", Code.NO_SUCH_MEMBER), ("ACCOUNT_BALANCE", Code.NOT_SET_PROPERTY)):
        with harness.refused(code):
            properties.check_member(supervisor, server, name, server)
        with harness.refused(code):
            properties.delete_member(supervisor, server, name, server)
    with harness.refused(Code.MEMBER_ALREADY_EXISTS):
        properties.add_member(supervisor, server, "PS_USERS", SUPERVISOR_ID)
    with harness.refused(Code.PROPERTY_ALREADY_EXISTS):
        properties.create(supervisor, server, "PS_USERS", is_set=True, security=0x31)
    with harness.refused(Code.NO_SUCH_PROPERTY):
        properties.read(supervisor, server, "PS_OPERATORS")
    with harness.refused(Code.FAILURE):
        properties.write(supervisor, server, "PS_USERS", b"")
    no_names = ("", Code.INVALID_NAME), ("P" * 16, Code.INVALID_NAME), ("*", Code.WILD_CARD_NOT_ALLOWED)
    for name, code in no_names:
        with harness.refused(code):
            properties.create(supervisor, server, name, is_set=True, security=0)
    properties.delete(supervisor, server, "PS_USERS")
    with harness.refused(Code.NO_SUCH_PROPERTY):
        properties.check_member(supervisor, server, "PS_USERS", SUPERVISOR_ID)


def test_segments_of_an_item(harness: QueueServiceHarness) -> None:
    properties, supervisor = harness.service.properties, harness.supervisor
    user = harness.object("ALICE")
    properties.create(supervisor, user, "NOTE", is_set=False, security=0x33)
    with harness.refused(Code.NO_SUCH_SEGMENT):
        properties.read(supervisor, user, "NOTE")
    for segment in (1, 2, 3):
        properties.write(supervisor, user, "NOTE", bytes([segment]) * 128, segment=segment)
    properties.write(supervisor, user, "NOTE", b"new", segment=1, more=True)
    values = [properties.read(supervisor, user, "NOTE", segment) for segment in (1, 2, 3)]
    assert [value.data[:1] for value in values] == [b"n", b"\x02", b"\x03"]
    assert [value.more for value in values] == [True, True, False]
    properties.write(supervisor, user, "NOTE", b"end", segment=2)
    assert not properties.read(supervisor, user, "NOTE", 2).more
    for segment in (0, 4, 255):
        with harness.refused(Code.NO_SUCH_SEGMENT):
            properties.write(supervisor, user, "NOTE", b"", segment=segment)
        with harness.refused(Code.NO_SUCH_SEGMENT):
            properties.read(supervisor, user, "NOTE", segment)
    with harness.refused(Code.BAD_LENGTH):
        properties.write(supervisor, user, "NOTE", bytes(129))


@requirement("QMS-createq-07")
def test_segments_of_a_set(harness: QueueServiceHarness) -> None:
    users = [harness.object(f"USER{number}") for number in range(33)]
    for user in reversed(users):
        harness.admit(Q_USERS, user)
    read, anonymous = harness.service.properties.read, harness.connect()
    first = read(anonymous, harness.queue_id, Q_USERS)
    assert (first.members, first.more) == (tuple(users[:32]), True)
    last = read(anonymous, harness.queue_id, Q_USERS, 2)
    assert (last.members, last.more) == (tuple(users[32:]), False)
    with harness.refused(Code.NO_SUCH_SEGMENT):
        read(anonymous, harness.queue_id, Q_USERS, 3)


@requirement("QMS-createqs-09", "QMS-qservers-03")
def test_a_deleted_object_is_in_no_set_any_more(harness: QueueServiceHarness) -> None:
    properties, supervisor = harness.service.properties, harness.supervisor
    gone, group, user = harness.object("GONE"), harness.object("STAFF", 2), harness.object("USER")
    harness.admit(Q_USERS, gone)
    properties.join_group(supervisor, gone, group)
    properties.make_equivalent(supervisor, user, gone)
    harness.service.bindery.delete_object(supervisor, gone)
    objects = harness.service.objects
    assert objects[harness.queue_id].members(Q_USERS) == frozenset()
    assert objects[group].members(GROUP_MEMBERS) == frozenset()
    assert objects[user].members(SECURITY_EQUALS) == frozenset()
    assert not any(gone in held.members for found in objects for held in found.properties.values())


def test_joining_a_group_shows_in_both(harness: QueueServiceHarness) -> None:
    properties, supervisor = harness.service.properties, harness.supervisor
    group, user = harness.object("STAFF", 2), harness.object("USER")
    properties.join_group(supervisor, user, group)
    objects = harness.service.objects
    assert objects[group].members(GROUP_MEMBERS) == {user}
    assert objects[user].members(GROUPS_IM_IN) == objects[user].members(SECURITY_EQUALS) == {group}
    with harness.refused(Code.MEMBER_ALREADY_EXISTS):
        properties.join_group(supervisor, user, group)
    with harness.refused(Code.MEMBER_ALREADY_EXISTS):
        properties.make_equivalent(supervisor, user, group)
    for no_group in (user, SUPERVISOR_ID):
        with harness.refused(Code.NO_SUCH_OBJECT):
            properties.join_group(supervisor, user, no_group)


@requirement("QMS-qobject-08")
def test_scanning_gives_each_object_once(harness: QueueServiceHarness) -> None:
    ids = [harness.object(f"U{number}") for number in range(5)]
    harness.service.bindery.delete_object(harness.supervisor, ids.pop(2))
    found, after = [], 0
    for _ in ids:
        after = harness.service.bindery.scan(harness.supervisor, "u*", after=after).id
        found.append(after)
    assert found == ids
    with harness.refused(Code.NO_SUCH_OBJECT):
        harness.service.bindery.scan(harness.supervisor, "u*", after=after)


@pytest.mark.parametrize(
    "pattern, name, fits",
    [
        ("*", "", True), ("*", "A", True), ("", "A", False), ("A", "A", True), ("A", "AB", False),
        ("?", "A", True), ("??", "A", False), ("A*", "AB", True), ("*B", "AB", True), ("*A*", "BAB", True),
        ("A*C*E", "ABCDE", True), ("A*C*E", "ABCDEF", False), ("*AB", "AAAB", True), ("a*", "AB", True),
        ("**?", "AB", True), ("A?C", "ABC", True), ("A?C", "AC", False), ("*A*A*A*B", "A" * 47, False),
    ],
)  # fmt: skip
def test_wildcards(pattern: str, name: str, fits: bool) -> None:
    assert names.matches(name, pattern) is fits


def test_the_bindery_is_limited() -> None:
    harness = QueueServiceHarness(Settings(objects_max=4, properties_max=5, members_max=1, segments_max=1))
    properties, supervisor = harness.service.properties, harness.supervisor
    user, group = harness.object("USER"), harness.object("STAFF", 2)
    full = Code.SERVER_OUT_OF_MEMORY
    with harness.refused(full):
        harness.object("MORE")
    with harness.refused(full):
        harness.queue("MORE")
    harness.admit(Q_USERS, user)
    with harness.refused(full):
        harness.admit(Q_USERS, group)
    for name in "ABCDE":
        properties.create(supervisor, user, name, is_set=False, security=0)
    with harness.refused(full):
        properties.create(supervisor, user, "F", is_set=False, security=0)
    with harness.refused(full):
        properties.make_equivalent(supervisor, user, group)
    with harness.refused(full):
        properties.join_group(supervisor, user, group)
    with harness.refused(full):
        harness.service.logins.change_password(supervisor, user, b"", b"new", PasswordHashing())
    properties.write(supervisor, user, "A", b"")
    with harness.refused(full):
        properties.write(supervisor, user, "A", b"", segment=2)
    harness.check()


def test_sets_that_are_no_more_leave_nothing(harness: QueueServiceHarness) -> None:
    properties, supervisor = harness.service.properties, harness.supervisor
    users = [harness.object(name) for name in ("ANNE", "BERT")]
    harness.perform()
    before = frozen(harness.service)
    for end in ("member", "property"):
        for user in users:
            properties.create(supervisor, user, end.upper(), is_set=True, security=0x33)
            for member in users:
                properties.add_member(supervisor, user, end.upper(), member)
        for user in users:
            for member in users if end == "member" else ():
                properties.delete_member(supervisor, user, end.upper(), member)
            properties.delete(supervisor, user, end.upper())
        harness.perform()
        assert frozen(harness.service) == before
