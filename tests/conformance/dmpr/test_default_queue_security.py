"""Create Default Queue Security Descriptor: [MS-MQDMPR] 3.1.7.1.3.1. The expected bytes are handmade."""

from __future__ import annotations

from itertools import product
from struct import pack, unpack_from

import pytest

from msmqwire import InvalidValue, MalformedPacket
from msmqwire.headers.security_descriptor import DescriptorParts, build_descriptor, descriptor_parts
from msmqwire.qm.model.access import Token, access_allowed, default_security
from msmqwire.qm.model.settings import Settings

requirement = pytest.mark.requirement
EVERYONE = bytes.fromhex("01 01 00 00 00 00 00 01 00 00 00 00")
ANONYMOUS = bytes.fromhex("01 01 00 00 00 00 00 05 07 00 00 00")
NULL = bytes.fromhex("01 01 00 00 00 00 00 00 00 00 00 00")
SYSTEM = bytes.fromhex("01 01 00 00 00 00 00 05 12 00 00 00")
DOMAIN = bytes.fromhex("01 05 00 00 00 00 00 05 15 00 00 00 01 00 00 00 02 00 00 00 03 00 00 00")
MACHINE = bytes.fromhex("01 05 00 00 00 00 00 05 15 00 00 00 07 00 00 00 08 00 00 00 09 00 00 00")
ALICE, BOB, COMPUTER = DOMAIN + pack("<L", 1001), DOMAIN + pack("<L", 1002), DOMAIN + pack("<L", 1103)
GUEST, LOCAL, LOCAL_GUEST = DOMAIN + pack("<L", 501), MACHINE + pack("<L", 1001), MACHINE + pack("<L", 501)
LOOK, WRITE, ALL = 0x00020020, 0x00000004, 0x000F003F


def of_the_domain(sid: bytes) -> bool:
    return sid.startswith(DOMAIN)


def ace(mask: int, sid: bytes, kind: int = 0) -> bytes:
    return pack("<BBHL", kind, 0, 8 + len(sid), mask) + sid


def acl(*aces: bytes) -> bytes:
    return pack("<BBHHH", 2, 0, 8 + sum(map(len, aces)), len(aces), 0) + b"".join(aces)


def in_a_domain(
    user: bytes, supplied: bytes = b"", *, machine: bytes | None = COMPUTER, srmp: bool = False
) -> bytes:
    return default_security(
        user,
        supplied,
        is_domain_user=of_the_domain,
        local_owner=False,
        machine_sid=machine,
        anonymous_may_send=srmp,
    )


def parts_of(owner: bytes | None = None, dacl: bytes | None = None, sacl: bytes | None = None) -> bytes:
    return build_descriptor(DescriptorParts(owner, None, sacl, dacl))


def owner_and_dacl(descriptor: bytes) -> tuple[bytes | None, bytes | None]:
    parts = descriptor_parts(descriptor)
    return parts.owner, parts.dacl


@requirement("DMPR-3.1.7.1.3.1-03", "DMPR-3.1.7.1.3.1-07", "DMPR-3.1.7.1.3.1-08", "DMPR-3.1.7.1.3.1-11")
def test_the_whole_of_it_byte_by_byte() -> None:
    """Self-relative: SR, DP, default DACL and group; owner at 20, no group or SACL, DACL at 48."""
    dacl = acl(ace(LOOK, EVERYONE), ace(LOOK, COMPUTER), ace(ALL, ALICE))
    assert in_a_domain(ALICE) == pack("<BBHLLLL", 1, 0, 0x800E, 20, 0, 0, 48) + ALICE + dacl


@requirement("DMPR-3.1.7.1.3.1-02", "DMPR-3.1.7.1.3.1-03")
def test_the_owner_is_the_one_supplied_else_the_user() -> None:
    assert owner_and_dacl(in_a_domain(BOB, parts_of(ALICE))) == owner_and_dacl(in_a_domain(ALICE))
    assert in_a_domain(BOB, parts_of()) == in_a_domain(BOB) != in_a_domain(ALICE)
    assert owner_and_dacl(in_a_domain(BOB, parts_of(dacl=acl()))) == (BOB, acl())


@requirement("DMPR-3.1.7.1.3.1-02", "DMPR-3.1.7.1.3.1-05")
@pytest.mark.parametrize("owner", [ALICE, GUEST, LOCAL])
def test_lists_that_are_supplied_are_taken_over(owner: bytes) -> None:
    dacl, sacl = acl(ace(LOOK, BOB), ace(WRITE, EVERYONE, kind=1)), acl(ace(3, EVERYONE, kind=2))
    for supplied_dacl, supplied_sacl, srmp in product((None, acl(), dacl), (None, sacl), (False, True)):
        result = descriptor_parts(in_a_domain(BOB, parts_of(owner, supplied_dacl, supplied_sacl), srmp=srmp))
        default = descriptor_parts(in_a_domain(owner, srmp=srmp)).dacl
        assert result.sacl == supplied_sacl
        assert result.dacl == (default if supplied_dacl is None else supplied_dacl)
        assert bool(result.control & 0x0008) is (supplied_dacl is None)


@requirement("DMPR-3.1.7.1.3.1-05")
def test_a_null_dacl_is_not_populated() -> None:
    null = pack("<BBHLLLL", 1, 0, 0x8004, 0, 0, 0, 0)
    assert in_a_domain(ALICE, null) == in_a_domain(ALICE)


@requirement("DMPR-3.1.7.1.3.1-04", "DMPR-3.1.7.1.3.1-06")
@pytest.mark.parametrize("owner", [LOCAL, LOCAL_GUEST, SYSTEM, EVERYONE, NULL, ANONYMOUS])
def test_who_is_no_domain_user_is_anonymous_and_all_may_do_all(owner: bytes) -> None:
    expected = ANONYMOUS, acl(ace(ALL, EVERYONE), ace(LOOK, COMPUTER))
    assert owner_and_dacl(in_a_domain(owner)) == expected
    assert owner_and_dacl(in_a_domain(ALICE, parts_of(owner))) == expected
    dacl = acl(ace(ALL, owner))
    assert owner_and_dacl(in_a_domain(owner, parts_of(dacl=dacl))) == (ANONYMOUS, dacl)


@requirement("DMPR-3.1.7.1.3.1-06")
def test_a_domain_guest_stays_owner_and_everyone_gets_all_rights() -> None:
    assert owner_and_dacl(in_a_domain(GUEST)) == (GUEST, acl(ace(ALL, EVERYONE), ace(LOOK, COMPUTER)))
    longer = GUEST[:1] + b"\x06" + GUEST[2:-4] + pack("<LL", 4, 501)  # not a domain RID
    assert owner_and_dacl(in_a_domain(longer))[0] == ANONYMOUS
    local = default_security(longer, machine_sid=COMPUTER)
    assert owner_and_dacl(local) == (longer, acl(ace(LOOK, EVERYONE), ace(LOOK, COMPUTER), ace(ALL, longer)))


@requirement("DMPR-3.1.7.1.3.1-08", "DMPR-3.1.7.1.3.1-09", "DMPR-3.1.7.1.3.1-10")
@pytest.mark.parametrize("srmp", [False, True])
@pytest.mark.parametrize("machine", [None, COMPUTER])
@pytest.mark.parametrize(("owner", "world_rights", "owner_rights"), [(ALICE, LOOK, ALL), (GUEST, ALL, 0)])
def test_the_entries_and_their_order(
    owner: bytes, world_rights: int, owner_rights: int, machine: bytes | None, srmp: bool
) -> None:
    expected = [ace(world_rights | WRITE if srmp else world_rights, EVERYONE)]
    expected += [ace(WRITE, ANONYMOUS)] if srmp else []
    expected += [ace(LOOK, machine)] if machine else []
    expected += [ace(owner_rights, owner)] if owner_rights else []
    descriptor = in_a_domain(owner, machine=machine, srmp=srmp)
    assert owner_and_dacl(descriptor) == (owner, acl(*expected))


@requirement("DMPR-3.1.7.1.3.1-11")
@pytest.mark.parametrize("user", [ALICE, GUEST, LOCAL])
def test_it_is_self_relative(user: bytes) -> None:
    """Even if the supplied descriptor has its parts in another order."""
    dacl = acl(ace(LOOK, BOB))
    supplied = pack("<BBHLLLL", 1, 0, 0x8004, 24 + len(dacl), 0, 0, 24) + b"room" + dacl + user
    descriptor = in_a_domain(BOB, supplied)
    _, _, control, owner, group, sacl, start = unpack_from("<BBHLLLL", descriptor)
    assert (control, group, sacl) == (0x8006, 0, 0)
    assert descriptor[start:] == dacl
    assert descriptor[owner:start] == (user if of_the_domain(user) else ANONYMOUS)


# --- machines that know no domain ---


@pytest.mark.parametrize("owner", [LOCAL, SYSTEM, ALICE])
def test_a_local_owner_may_do_everything_and_others_look(owner: bytes) -> None:
    descriptor = default_security(owner, local_owner=Settings().local_owner)
    assert owner_and_dacl(descriptor) == (owner, acl(ace(LOOK, EVERYONE), ace(ALL, owner)))
    other = Token.of(BOB)
    assert access_allowed(descriptor, Token.of(owner), ALL)
    assert access_allowed(descriptor, other, LOOK)
    assert not any(access_allowed(descriptor, other, 1 << bit) for bit in range(20) if not LOOK & 1 << bit)
    assert not any(access_allowed(descriptor, Token.of(ANONYMOUS), 1 << bit) for bit in range(20))


def test_anonymous_senders_may_send_by_http() -> None:
    descriptor = default_security(LOCAL, anonymous_may_send=True)
    for other in (BOB, EVERYONE, ANONYMOUS):
        assert access_allowed(descriptor, Token.of(other), WRITE)
        assert not access_allowed(descriptor, Token.of(other), 1)


@pytest.mark.parametrize("owner", [EVERYONE, ANONYMOUS, NULL])
def test_nobody_is_no_local_owner(owner: bytes) -> None:
    assert owner_and_dacl(default_security(owner)) == (ANONYMOUS, acl(ace(ALL, EVERYONE)))


def test_a_local_guest_is_a_guest() -> None:
    assert owner_and_dacl(default_security(LOCAL_GUEST)) == (LOCAL_GUEST, acl(ace(ALL, EVERYONE)))


def test_the_setting_takes_the_text_by_the_letter() -> None:
    assert owner_and_dacl(default_security(LOCAL, local_owner=False)) == (ANONYMOUS, acl(ace(ALL, EVERYONE)))


@requirement("DMPR-3.1.7.1.3.1-03")
def test_what_the_queue_manager_makes_is_its_own() -> None:
    assert default_security(None) == default_security(SYSTEM)
    assert owner_and_dacl(default_security(None))[0] == SYSTEM


# --- what is supplied may be wrong ---


def test_generic_rights_become_those_of_queues() -> None:
    descriptor = in_a_domain(ALICE, parts_of(dacl=acl(ace(0x10000000, BOB), ace(0x80000000, ALICE, kind=1))))
    assert descriptor_parts(descriptor).dacl == acl(ace(ALL, BOB), ace(0x0002002B, ALICE, kind=1))


@requirement("DMPR-3.1.1.2-16")
def test_rights_that_queues_do_not_have_are_refused() -> None:
    with pytest.raises(InvalidValue):
        in_a_domain(ALICE, parts_of(dacl=acl(ace(0x40, BOB))))


def test_malformed_descriptors_are_refused() -> None:
    whole = parts_of(ALICE, acl(ace(LOOK, BOB)))
    for cut in range(1, len(whole)):
        with pytest.raises(MalformedPacket):
            in_a_domain(ALICE, whole[:cut])
    with pytest.raises(MalformedPacket):
        in_a_domain(ALICE[:-1])
