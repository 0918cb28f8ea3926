"""Passwords of bindery objects: who sets one, who logs in by it, and what the store has of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from msmqwire.ncp.constants import CompletionCode as Code
from msmqwire.ncp.constants import ObjectType
from msmqwire.netware.model.bindery import BINDERY_READ_BINDERY_WRITE, PASSWORD, Property
from msmqwire.netware.model.passwords import SALT_SIZE, HashNeeded, PasswordHash, PasswordHashing
from msmqwire.netware.store.rows import read_object, write_object
from tests.support.netware.queue_service import QueueServiceHarness

requirement = pytest.mark.requirement
SERVER = ObjectType.NWOT_PRINT_SERVER
HASHING, OTHER = PasswordHashing(bytes(SALT_SIZE)), PasswordHashing(b"s" * SALT_SIZE)


@requirement("QMS-createqs-04", "QMS-qservers-05")
def test_an_object_logs_in_by_its_password_alone(harness: QueueServiceHarness) -> None:
    service, caller = harness.service, harness.connect()
    server = harness.object("PS1", SERVER)
    with harness.refused(Code.FAILURE):
        service.login(caller, "PS1", SERVER, b"SECRET")
    service.logins.change_password(harness.supervisor, server, b"", b"SECRET", HASHING)
    for wrong in (b"", b"SECRE", b"SECRETS", b"SECRET\0", b"\0"):
        with harness.refused(Code.FAILURE):
            service.login(caller, "PS1", SERVER, wrong)
    assert caller.object_id is None
    harness.restart()
    service = harness.service
    for right in (b"SECRET", b"secret"):
        assert service.login(caller, "PS1", SERVER, right) == server == caller.object_id
    service.logins.change_password(harness.connect(1), server, b"", b"", HASHING)
    assert service.login(caller, "PS1", SERVER) == server
    with harness.refused(Code.NO_SUCH_OBJECT):
        service.login(caller, "PS1", ObjectType.NWOT_USER)


def test_the_store_has_a_salted_hash_that_nobody_reads(harness: QueueServiceHarness) -> None:
    service = harness.service
    users = [harness.object(name) for name in ("ALICE", "BOB")]
    for user, hashing in zip(users, (HASHING, OTHER), strict=True):
        service.logins.change_password(harness.supervisor, user, b"", b"SECRET", hashing)
        for reader in (harness.supervisor, harness.connect(user)):
            with harness.refused(Code.NO_PROPERTY_READ_RIGHTS):
                service.properties.read(reader, user, PASSWORD)
            with harness.refused(Code.NO_PROPERTY_WRITE_RIGHTS):
                service.properties.write(reader, user, PASSWORD, b"")
    rows = [write_object(service.objects[user]) for user in users]
    assert all(b"SECRET" not in row and b"SECRET".hex().encode() not in row for row in rows)
    kept = [service.objects[user].properties[PASSWORD].segments for user in users]
    assert kept[0] != kept[1], "the salts differ"
    assert [read_object(user, row) for user, row in zip(users, rows, strict=True)] == [
        service.objects[user] for user in users
    ]


def test_who_changes_a_password(harness: QueueServiceHarness) -> None:
    change = harness.service.logins.change_password
    own = harness.object("OWN")
    caller, other = harness.login("OWN"), harness.user()
    for another in (other, harness.connect()):
        with harness.refused(Code.NO_PROPERTY_WRITE_RIGHTS):
            change(another, own, b"", b"NEW", HASHING)
    with harness.refused(Code.FAILURE):
        change(caller, own, b"WRONG", b"NEW", HASHING)
    harness.perform()
    change(caller, own, b"", b"", HASHING)
    assert harness.service.take() == []
    change(caller, own, b"", b"NEW", HASHING)
    for wrong in (b"", b"OLD"):
        with harness.refused(Code.FAILURE):
            change(caller, own, wrong, b"MORE", HASHING)
    change(caller, own, b"NEW", b"MORE", OTHER)
    change(harness.supervisor, own, b"", b"LAST", HASHING)
    change(caller, own, b"LAST", b"", HASHING)
    assert PASSWORD not in harness.service.objects[own].properties


@pytest.mark.parametrize(
    "segments",
    [(), (b"",), (b"scrypt/1",), (b"scrypt/1" + bytes(47),), (b"scrypt/2" + bytes(48),), (bytes(128),) * 2],
)
def test_a_property_without_a_hash_lets_nobody_in(
    harness: QueueServiceHarness, segments: tuple[bytes, ...]
) -> None:
    user = harness.object("OLD")
    held = Property(PASSWORD, False, BINDERY_READ_BINDERY_WRITE, segments=segments)
    harness.perform()
    harness.store.objects[user] = harness.store.objects[user].with_property(held)
    harness.restart()
    service, caller = harness.service, harness.connect()
    for password in (b"", b"X", bytes(48)):
        with harness.refused(Code.FAILURE):
            service.login(caller, "OLD", ObjectType.NWOT_USER, password)
    service.logins.change_password(harness.connect(1), user, b"", b"NEW", HASHING)
    assert service.login(caller, "OLD", ObjectType.NWOT_USER, b"NEW") == user


def test_a_hash_that_is_missing_changes_nothing(harness: QueueServiceHarness) -> None:
    class Missing(PasswordHashing):
        def digest(self, password: bytes, salt: bytes) -> bytes:
            raise HashNeeded(password, salt)

    user, missing = harness.object("USER"), Missing(bytes(SALT_SIZE))
    harness.perform()
    with pytest.raises(HashNeeded) as caught:
        harness.service.logins.change_password(harness.supervisor, user, b"", b"new", missing)
    assert (caught.value.password, caught.value.salt) == (b"NEW", bytes(SALT_SIZE))
    assert harness.service.take() == []
    harness.service.logins.change_password(harness.supervisor, user, b"", b"new", HASHING)
    caller = harness.connect()
    harness.perform()
    with pytest.raises(HashNeeded):
        harness.service.login(caller, "USER", ObjectType.NWOT_USER, b"NEW", missing)
    assert caller.object_id is None
    with harness.refused(Code.FAILURE):  # no work for an empty password
        harness.service.login(caller, "USER", ObjectType.NWOT_USER, b"", missing)


def test_one_changed_byte_of_a_hash_fits_no_more() -> None:
    kept = PasswordHash.of(b"SECRET", HASHING)
    assert kept.fits(b"SECRET", HASHING)
    for changed in (
        replace(kept, salt=b"\1" + kept.salt[1:]),
        replace(kept, digest=kept.digest[:-1] + bytes((kept.digest[-1] ^ 1,))),
    ):
        assert not changed.fits(b"SECRET", HASHING)
