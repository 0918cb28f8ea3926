"""The groups of senders and callers in access checks: [MS-MQQB] 3.1.5.8.3."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.constants import MQQUEUEACCESSMASK
from msmqwire.headers.security_descriptor import ACCESS_ACE_BODY, ACL, SID, DescriptorParts, build_descriptor
from msmqwire.qm.model.access import LOCAL_SYSTEM, sid_bytes
from msmqwire.qm.model.directory_objects import User
from tests.support.qm.message_security import Sealed, user_certificates
from tests.support.qm.secured_harness import ALICE, OTHER_SID, TAKEN, recorder, secured, verdict

STAFF, GUESTS = sid_bytes("S-1-5-21-1-2-3-513"), sid_bytes("S-1-5-21-1-2-3-514")
WRITE = int(MQQUEUEACCESSMASK.MQSEC_WRITE_MESSAGE)
DENIED = "8004"


def descriptor(*entries: tuple[int, bytes]) -> bytes:
    """Entries as type (0 allows, 1 denies) and SID, in this order, for writing messages."""
    aces = [
        {"AceType": kind, "Body": ACCESS_ACE_BODY.build({"Mask": WRITE, "Sid": SID.parse(sid)})}
        for kind, sid in entries
    ]
    return build_descriptor(DescriptorParts(LOCAL_SYSTEM, None, None, ACL.build({"Aces": aces})))


def member(*groups: bytes) -> User:
    return User(UUID(int=7), security_identifier=ALICE, groups=list(groups), certificates=user_certificates())


@pytest.mark.requirement("MQQB-3.1.5.8.3-31")
@pytest.mark.parametrize(
    ("groups", "entries", "expected"),
    [
        ((), [(0, STAFF)], DENIED),
        ((STAFF,), [(0, STAFF)], TAKEN),
        ((GUESTS,), [(0, STAFF)], DENIED),
        ((STAFF, GUESTS), [(1, GUESTS), (0, STAFF)], DENIED),
        ((STAFF,), [(1, GUESTS), (0, STAFF)], TAKEN),
        ((), [(0, ALICE)], TAKEN),
    ],
)
def test_a_sender_has_the_rights_of_its_groups(groups, entries, expected):
    harness = secured(users=False, queue={"security": descriptor(*entries)})
    recorder(harness).publish(member(*groups))
    assert verdict(harness, Sealed(sid=ALICE)) == expected
    assert verdict(harness.restarted(), Sealed(sid=ALICE)) == expected  # the directory keeps them
    assert verdict(harness, Sealed(sid=OTHER_SID)) == DENIED


def test_what_the_directory_says_is_used_for_a_time():
    harness = secured(users=False, queue={"security": descriptor((0, STAFF))})
    assert verdict(harness, Sealed(sid=ALICE)) == DENIED
    recorder(harness).publish(member(STAFF))
    recorder(harness).log.clear()
    assert verdict(harness, Sealed(sid=ALICE)) == DENIED
    assert recorder(harness).log == []
    harness.advance(1_200_000)
    assert verdict(harness, Sealed(sid=ALICE)) == TAKEN
    recorder(harness).directory.delete_directory_object(member())
    assert verdict(harness, Sealed(sid=ALICE)) == TAKEN
    harness.core.protection.forget()
    assert verdict(harness, Sealed(sid=ALICE)) == DENIED


def test_senders_that_nobody_knows_do_not_fill_the_memory():
    harness = secured(users=False)
    peer = harness.accept_session()
    for number in range(1_100):
        harness.core.identities.groups_of(sid_bytes(f"S-1-5-21-9-9-9-{number + 1}"))
    assert len(harness.core.identities._groups) == 1_024
    assert verdict(harness, Sealed(sid=ALICE), peer) == TAKEN
