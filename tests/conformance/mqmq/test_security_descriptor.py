"""SID, ACE, ACL and SECURITY_DESCRIPTOR: [MS-DTYP] 2.4.2 and 2.4.4 to 2.4.6, against handmade bytes."""

from __future__ import annotations

from struct import pack

import pytest

import msmqwire
from msmqwire import InvalidValue, MalformedPacket
from msmqwire.headers.security_descriptor import (
    ACCESS_ACE_BODY,
    ACE,
    ACL,
    DESCRIPTOR_SIZE_MAX,
    SECURITY_DESCRIPTOR,
    SID,
    DescriptorParts,
    access_entry,
    build_descriptor,
    descriptor_parts,
    sid_bytes,
    sid_text,
)
from tests.support.codec_checks import assert_refused, assert_same
from tests.support.paths import VECTORS

ADMINISTRATORS = bytes.fromhex("01 02 00 00 00 00 00 05 20 00 00 00 20 02 00 00")
EVERYONE = bytes.fromhex("01 01 00 00 00 00 00 01 00 00 00 00")
USER = "S-1-5-21-3181267629-1039849782-3663111779-1000"


def ace(mask: int, sid: bytes, kind: int = 0, flags: int = 0, more: bytes = b"") -> bytes:
    return pack("<BBHL", kind, flags, 8 + len(sid) + len(more), mask) + sid + more


def acl(*aces: bytes, revision: int = 2, unused: bytes = b"") -> bytes:
    body = b"".join(aces)
    return pack("<BBHHH", revision, 0, 8 + len(body) + len(unused), len(aces), 0) + body + unused


def descriptor(control: int, owner: int, group: int, sacl: int, dacl: int, data: bytes) -> bytes:
    return pack("<BBHLLLL", 1, 0, control, owner, group, sacl, dacl) + data


# --- SID ---


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("S-1-1-0", EVERYONE),
        ("S-1-5-7", bytes.fromhex("01 01 00 00 00 00 00 05 07 00 00 00")),
        ("S-1-5-32-544", ADMINISTRATORS),
        ("S-1-3", bytes.fromhex("01 00 00 00 00 00 00 03")),
        ("S-1-4294967295-4294967295", bytes.fromhex("01 01 00 00 FF FF FF FF FF FF FF FF")),
        ("S-1-0x000100000000-1", bytes.fromhex("01 01 00 01 00 00 00 00 01 00 00 00")),
        ("S-1-0x123456789ABC-7", bytes.fromhex("01 01 12 34 56 78 9A BC 07 00 00 00")),
        ("S-1-5" + "-9" * 15, bytes.fromhex("01 0F 00 00 00 00 00 05" + "09 00 00 00" * 15)),
    ],
)
def test_sids_as_text(text: str, data: bytes) -> None:
    assert sid_text(data) == text
    assert sid_bytes(text) == data
    assert sid_bytes(text.lower()) == data
    assert_same(SID, data)


def test_the_sid_of_the_captured_user_message() -> None:
    data = bytes.fromhex((VECTORS / "MS-MQQB-4.1.7-UserMessage.hex").read_text())
    sid = msmqwire.parse(data).SecurityHeader.SecurityData.SecurityID
    assert sid_text(sid) == USER
    assert sid_bytes(USER) == sid


@pytest.mark.parametrize(
    "text",
    [
        "",
        "S-1",
        "S-1-",
        "S-2-5-7",
        "S-1-5-",
        "S-1-05-7",
        "S-1-5-07",
        "S-1-5-4294967296",
        "S-1-4294967296-1",
        "S-1-5-99999999999",
        "S-1-0x1-1",
        "S-1-0x1234567890ABC-1",
        "S-1-5--7",
        "S-1-5-+7",
        "S-1-5-\u0667",
        " S-1-5-7",
        "S-1-5-7\n",
        "S-1-5" + "-9" * 16,
    ],
)
def test_not_a_sid(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        sid_bytes(text)
    assert caught.value.path == "SID"


@pytest.mark.parametrize(
    ("data", "path", "offset"),
    [
        (b"", "SID.Revision", 0),
        (b"\x02" + EVERYONE[1:], "SID.Revision", 0),
        (b"\x01\x10" + EVERYONE[2:] + bytes(60), "SID.SubAuthorityCount", 1),
        (EVERYONE[:-1], "SID.SubAuthorityCount", 1),
        (EVERYONE + b"\0", "SID", 12),
    ],
)
def test_malformed_sids(data: bytes, path: str, offset: int) -> None:
    with pytest.raises(MalformedPacket) as caught:
        sid_text(data)
    assert (caught.value.path, caught.value.offset) == (path, offset)


# --- ACE and ACL ---


def test_an_access_ace() -> None:
    data = ace(0x000F003F, ADMINISTRATORS, kind=1, flags=0x1B, more=b"more")
    record = assert_same(ACE, data)
    assert (record.AceType, int(record.AceFlags), record.AceSize) == (1, 0x1B, len(data))
    assert record.AceFlags.bits() == {"OI": 1, "CI": 1, "NP": 0, "IO": 1, "ID": 1, "X5": 0, "SA": 0, "FA": 0}
    body = assert_same(ACCESS_ACE_BODY, record.Body)
    assert (body.Mask, body.Sid.to_bytes(), body.ApplicationData) == (0x000F003F, ADMINISTRATORS, b"more")
    assert access_entry(record) == (0x000F003F, ADMINISTRATORS)
    built = ACCESS_ACE_BODY.build({"Mask": 7, "Sid": SID.parse(EVERYONE)})
    assert ACE.build({"AceType": 0, "Body": built}) == ace(7, EVERYONE)


@pytest.mark.parametrize("kind", [3, 4, 5, 6, 7, 8, 0x0B, 0x0C, 0x0E, 0x0F, 0x10, 0x14, 0xFF])
def test_other_types_are_kept(kind: int) -> None:
    data = pack("<BBH", kind, 0xFF, 12) + b"anything"
    assert access_entry(assert_same(ACE, data)) is None
    whole = acl(data, ace(1, EVERYONE), revision=4)
    assert_same(ACL, whole)
    assert descriptor_parts(descriptor(0x8004, 0, 0, 0, 20, whole)).dacl == whole


def test_an_acl() -> None:
    entries = [ace(1, EVERYONE, kind=1), ace(2, ADMINISTRATORS)]
    data = acl(*entries, unused=b"room")
    record = assert_same(ACL, data)
    assert (record.AclRevision, record.AclSize, record.AceCount) == (2, len(data), 2)
    assert [entry.to_bytes() for entry in record.Aces] == entries
    assert record.Unused == b"room"
    assert ACL.build({"Aces": record.Aces}) == acl(*entries)


@pytest.mark.parametrize(
    ("data", "path", "offset"),
    [
        (acl(ace(1, EVERYONE))[:-1], "ACL.AclSize", 2),
        (pack("<BBHHH", 2, 0, 7, 0, 0), "ACL.AclSize", 2),
        (pack("<BBHHH", 2, 0, 8, 1, 0), "ACL.AceCount", 4),
        (pack("<BBHHHBBH", 2, 0, 12, 1, 0, 0, 0, 3), "ACL.Aces[0].AceSize", 10),
        (pack("<BBHHHBBH", 2, 0, 12, 1, 0, 0, 0, 8), "ACL.Aces[0].AceSize", 10),
    ],
)
def test_malformed_acls(data: bytes, path: str, offset: int) -> None:
    assert_refused(ACL, data, path, offset)


# --- SECURITY_DESCRIPTOR ---

DACL = acl(ace(4, EVERYONE))
SACL = acl(ace(1, EVERYONE, kind=2, flags=0xC0))
ALL = DescriptorParts(ADMINISTRATORS, EVERYONE, SACL, DACL, 0x1003)


def test_parts_stand_one_behind_the_other() -> None:
    data = descriptor(0x9017, 20, 36, 48, 76, ADMINISTRATORS + EVERYONE + SACL + DACL)
    assert build_descriptor(ALL) == data
    assert descriptor_parts(data) == ALL
    record = assert_same(SECURITY_DESCRIPTOR, data)
    set_bits = {name for name, value in record.Control.bits().items() if value}
    assert set_bits == {"SR", "PD", "SP", "DP", "GD", "OD"}


def test_parts_may_stand_in_any_order_overlap_and_leave_room() -> None:
    data = descriptor(0x8014, 68, 68, 24, 24, b"room" + DACL + b"hole" * 4 + EVERYONE + b"end")
    assert descriptor_parts(data) == DescriptorParts(EVERYONE, EVERYONE, DACL, DACL)
    assert_same(SECURITY_DESCRIPTOR, data)


@pytest.mark.parametrize("control", [0x8000, 0x8004])
def test_no_dacl_and_a_null_one(control: int) -> None:
    assert descriptor_parts(descriptor(control, 0, 0, 0, 0, b"")) == DescriptorParts()


def test_an_empty_dacl_is_one() -> None:
    data = descriptor(0x8004, 0, 0, 0, 20, acl())
    assert descriptor_parts(data).dacl == acl()
    assert build_descriptor(DescriptorParts(dacl=acl())) == data


GOOD = descriptor(0x8014, 20, 36, 48, 76, ADMINISTRATORS + EVERYONE + SACL + DACL)


def poked(offset: int, data: bytes) -> bytes:
    return GOOD[:offset] + data + GOOD[offset + len(data) :]


@pytest.mark.parametrize(
    ("data", "path", "offset"),
    [
        (b"", "Revision", 0),
        (GOOD[:19], "OffsetDacl", 19),
        (poked(0, b"\x02"), "Revision", 0),
        (poked(3, b"\x00"), "Control", 2),
        (poked(4, pack("<L", 19)), "OffsetOwner", 4),
        (poked(8, pack("<L", 105)), "OffsetGroup", 8),
        (poked(12, pack("<L", 0xFFFFFFFF)), "OffsetSacl", 12),
        (poked(16, pack("<L", 104)), "Dacl.AclRevision", 104),
        (poked(4, pack("<L", 96)), "OwnerSid.Revision", 96),
        (poked(2, b"\x10"), "OffsetDacl", 16),
        (poked(2, b"\x04"), "OffsetSacl", 12),
        (poked(20, b"\x03"), "OwnerSid.Revision", 20),
        (poked(37, b"\x10"), "GroupSid.SubAuthorityCount", 37),
        (poked(49, b"\x00" + pack("<H", 57)), "Sacl.AclSize", 50),
        (poked(78, b"\x1d"), "Dacl.AclSize", 78),
        (poked(86, b"\x16"), "Dacl.Aces[0].AceSize", 86),
        (poked(93, b"\x02"), "Dacl.Aces[0].Body.Sid.SubAuthorityCount", 93),
        (poked(64, b"\x09"), "Sacl.Aces[0].Body.Sid.Revision", 64),
    ],
)
def test_malformed_descriptors(data: bytes, path: str, offset: int) -> None:
    with pytest.raises(MalformedPacket) as caught:
        descriptor_parts(data)
    assert (caught.value.path, caught.value.offset) == (f"SECURITY_DESCRIPTOR.{path}", offset)


def test_entries_take_a_multiple_of_4_bytes() -> None:
    data = descriptor(0x8004, 0, 0, 0, 20, acl(ace(1, EVERYONE), ace(1, EVERYONE, more=b"odd")))
    with pytest.raises(MalformedPacket) as caught:
        descriptor_parts(data)
    assert (caught.value.path, caught.value.offset) == ("SECURITY_DESCRIPTOR.Dacl.Aces[1].AceSize", 50)


def test_more_than_a_descriptor_can_use_is_refused() -> None:
    room = bytes(DESCRIPTOR_SIZE_MAX - len(GOOD))
    assert descriptor_parts(GOOD + room) == descriptor_parts(GOOD)
    with pytest.raises(MalformedPacket) as caught:
        descriptor_parts(GOOD + room + b"\0")
    assert (caught.value.path, caught.value.offset) == ("SECURITY_DESCRIPTOR", DESCRIPTOR_SIZE_MAX)


def test_a_list_that_its_size_can_not_tell_is_refused() -> None:
    most = 0xFFFF - 8 - 4  # without the heads of list and entry
    assert len(ACL.build({"Aces": [{"Body": bytes(most)}]})) == 0xFFFF
    for entries in ([bytes(most + 1)], [bytes(40_000)] * 2):
        with pytest.raises(InvalidValue) as caught:
            ACL.build({"Aces": [{"Body": body} for body in entries]})
        assert caught.value.path == "ACL.AclSize"
