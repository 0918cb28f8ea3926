"""QUEUE_FORMAT, DL_ID and MULTICAST_ID as bytes of a remote call: [MS-MQMQ] 2.2.6 to 2.2.11, in NDR.

The bytes are laid out by hand from the IDL and chapter 14 of C706: the union of QUEUE_FORMAT repeats m_qft
as one byte at 4, its member begins at 8, and pointees follow the whole structure.
"""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest

from msmqwire import InvalidValue, MalformedPacket
from msmqwire.headers import DL_ID, MULTICAST_ID, QUEUE_FORMAT
from msmqwire.headers.queue_format import name_of, queue_format_of
from msmqwire.names import parse_format_name
from tests.support import handmade
from tests.support.codec_checks import (
    assert_bits,
    assert_field,
    assert_refused,
    assert_same,
    differences,
    nested,
    proving,
    requirement,
)

ID = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")
GUID = bytes.fromhex("04030201 0605 0807 090a 0b0c0d0e0f10")  # [MS-DTYP] 2.3.4.2
REFERENT = bytes.fromhex("00000200")
DIRECT = "OS:h\\q"
DIRECT_BYTES = bytes.fromhex(
    "07000000 00000000 07000000"  # maximum count, offset, actual count: 6 characters and the null
    "4f00 5300 3a00 6800 5c00 7100 0000"
)
SUBQUEUE = "OS:h\\q;s"
SUBQUEUE_BYTES = bytes.fromhex("09000000 00000000 09000000 4f00 5300 3a00 6800 5c00 7100 3b00 7300 0000")
DOMAIN_BYTES = bytes.fromhex("04000000 00000000 04000000 6100 2e00 6200 0000")  # a.b


def head(kind: int, suffix: int = 0, reserved: int = 0, discriminant: int | None = None) -> bytes:
    """Up to the discriminant: m_qft, m_SuffixAndFlags, m_reserved and m_qft again."""
    return struct.pack("<BBHB", kind, suffix, reserved, kind if discriminant is None else discriminant)


def queue_format(kind: int, member: bytes, **fields: int) -> bytes:
    return head(kind, **fields) + bytes(3) + member


def without_padding(value: Any) -> Any:
    """Nested dicts without the padding fields."""
    if isinstance(value, dict):
        return {name: without_padding(part) for name, part in value.items() if name != "Padding"}
    return [without_padding(part) for part in value] if isinstance(value, list) else value


def test_string_bytes() -> None:
    """The literals above are correct: 16-bit characters with a null."""
    assert struct.pack("<LLL", 7, 0, 7) + handmade.wide(DIRECT) == DIRECT_BYTES
    assert struct.pack("<LLL", 9, 0, 9) + handmade.wide(SUBQUEUE) == SUBQUEUE_BYTES
    assert struct.pack("<LLL", 4, 0, 4) + handmade.wide("a.b") == DOMAIN_BYTES
    assert handmade.guid(str(ID)) == GUID


MEMBERS = [
    proving(1, "m_gPublicID", GUID, {"m_gPublicID": ID}, ids=("MQMQ-2.2.6-02", "MQMQ-2.2.7-13")),
    proving(
        2,
        "m_oPrivateID",
        GUID + bytes.fromhex("0a000000"),
        {"m_oPrivateID": {"Lineage": ID, "Uniquifier": 10}},
        ids=("MQMQ-2.2.6-03", "MQMQ-2.2.7-14"),
    ),
    proving(
        3,
        "m_pDirectID",
        REFERENT + DIRECT_BYTES,
        {
            "m_pDirectID": 0x20000,
            "Name": {"MaximumCount": 7, "Offset": 0, "ActualCount": 7, "String": DIRECT},
        },
        ids=("MQMQ-2.2.6-04", "MQMQ-2.2.7-15"),
    ),
    proving(4, "m_gMachineID", GUID, {"m_gMachineID": ID}, ids=("MQMQ-2.2.6-05", "MQMQ-2.2.7-16")),
    proving(5, "m_GConnectorID", GUID, {"m_GConnectorID": ID}, ids=("MQMQ-2.2.6-06", "MQMQ-2.2.7-17")),
    proving(
        6,
        "m_DlID",
        GUID + REFERENT + DOMAIN_BYTES,
        {
            "m_DlID": {
                "m_DlGuid": ID,
                "m_pwzDomain": 0x20000,
                "Domain": {"MaximumCount": 4, "Offset": 0, "ActualCount": 4, "String": "a.b"},
            }
        },
        ids=("MQMQ-2.2.6-07", "MQMQ-2.2.7-18"),
    ),
    proving(
        7,
        "m_MulticastID",
        bytes.fromhex("e0000001 09070000"),
        {"m_MulticastID": {"m_address": 0x010000E0, "m_port": 1801}},
        ids=("MQMQ-2.2.6-08", "MQMQ-2.2.7-19"),
    ),
    proving(
        8,
        "m_pDirectSubqueueID",
        REFERENT + SUBQUEUE_BYTES,
        {
            "m_pDirectSubqueueID": 0x20000,
            "Name": {"MaximumCount": 9, "Offset": 0, "ActualCount": 9, "String": SUBQUEUE},
        },
        ids=("MQMQ-2.2.6-09", "MQMQ-2.2.7-20"),
    ),
]


@pytest.mark.parametrize("kind, name, member, value", MEMBERS)
@requirement("MQMQ-2.2.7-01", "MQMQ-5-02")
def test_members(kind: int, name: str, member: bytes, value: dict[str, Any]) -> None:
    """Each kind's member begins at 8, after three bytes of padding; the value builds the same bytes."""
    data = queue_format(kind, member)
    record = assert_same(QUEUE_FORMAT, data)
    assert (record.m_qft, record.m_qft_, record.m_reserved) == (kind, kind, 0)
    assert without_padding(nested(record._varUnion)) == value
    assert next(iter(value)) == name
    assert QUEUE_FORMAT.build({"_varUnion": value}) == data
    assert QUEUE_FORMAT.build({"m_qft": kind, "_varUnion": value}) == data


@pytest.mark.parametrize(
    "kind, size", [(1, 24), (2, 28), (3, 12), (4, 24), (5, 24), (6, 28), (7, 16), (8, 12)]
)
def test_sizes(kind: int, size: int) -> None:
    """The sizes without pointees; each truncation is refused where the bytes end."""
    data = queue_format(kind, bytes(size - 8))
    record = assert_same(QUEUE_FORMAT, data)
    assert record.get("Name") is None
    for cut in range(size):
        with pytest.raises(MalformedPacket) as caught:
            QUEUE_FORMAT.parse(data[:cut])
        assert caught.value.offset == cut
    assert_refused(QUEUE_FORMAT, data + b"\0", "QUEUE_FORMAT", size)


@pytest.mark.requirement("MQMQ-5-02")
@requirement("MQMQ-2.2.6-01", "MQMQ-2.2.7-12")
def test_the_unknown_kind_has_no_member() -> None:
    """Only the discriminant, and at most its padding, follows the three fields."""
    data = QUEUE_FORMAT.build({})
    assert data.rstrip(b"\0") == b""
    assert len(data) in (5, 8)  # the specifications leave open whether a union without a member is padded
    record = assert_same(QUEUE_FORMAT, data)
    assert (record.m_qft, record.m_qft_) == (0, 0)
    assert without_padding(nested(record._varUnion)) in (None, {})
    assert name_of(record) is None
    assert queue_format_of(None).to_bytes() == data


@pytest.mark.requirement("MQMQ-5-03")
@requirement("MQMQ-2.2.7-01")
@pytest.mark.parametrize("kind", range(9, 256))
def test_kinds_without_a_member_are_refused(kind: int) -> None:
    assert_refused(QUEUE_FORMAT, queue_format(kind, bytes(20)), "QUEUE_FORMAT.m_qft", 0)


@pytest.mark.requirement("MQMQ-5-03")
@requirement("MQMQ-2.2.7-01")
@pytest.mark.parametrize("kind", range(9))
def test_the_discriminant_is_m_qft(kind: int) -> None:
    """The union must match m_qft: any other discriminant is refused at its own path."""
    for other in {*range(10), 0x80 | kind, 0xFF} - {kind}:
        data = queue_format(kind, GUID + bytes(4), discriminant=other)
        assert_refused(QUEUE_FORMAT, data, "QUEUE_FORMAT.m_qft_", 4)


@requirement("MQMQ-2.2.7-02")
@pytest.mark.parametrize(
    "name, mask, value",
    [
        *(proving("SuffixType", 0x0F, n, name=f"SuffixType-{n}") for n in (1, 2, 3, 4, 5, 15)),
        proving("Flags", 0xF0, 8, ids="MQMQ-2.2.7-03", name="Flags-system"),
        proving("Flags", 0xF0, 0, name="Flags-all"),
        proving("Flags", 0xF0, 1, name="Flags-1"),
    ],
)
def test_suffix_and_flags(name: str, mask: int, value: int) -> None:
    assert_bits(QUEUE_FORMAT, queue_format(1, GUID), f"m_SuffixAndFlags.{name}", 1, 1, mask, value)


@requirement("MQMQ-2.2.7-03")
@pytest.mark.parametrize("byte, flags", [(0x00, 0), (0x01, 0), (0x80, 8), (0x81, 8)])
def test_the_system_flag(byte: int, flags: int) -> None:
    """0x80 for a system queue, 0x00 for others, whatever the suffix."""
    record = assert_same(QUEUE_FORMAT, queue_format(1, GUID, suffix=byte))
    assert record.m_SuffixAndFlags.Flags == flags
    assert int(record.m_SuffixAndFlags) & 0xF0 == flags << 4


@requirement("MQMQ-2.2.7-03")
def test_what_names_make_of_the_flags() -> None:
    name = "PUBLIC=01020304-0506-0708-090a-0b0c0d0e0f10"
    assert queue_format_of(parse_format_name(name)).to_bytes() == queue_format(1, GUID)
    journal = queue_format_of(parse_format_name(f"{name};JOURNAL")).to_bytes()
    assert journal == queue_format(1, GUID, suffix=0x81)


@requirement("MQMQ-2.2.7-10")
def test_the_reserved_member_is_sent_as_0() -> None:
    for kind, value in ((1, {"m_gPublicID": ID}), (7, {"m_MulticastID": {}}), (0, None)):
        assert QUEUE_FORMAT.build({"m_qft": kind, "_varUnion": value})[2:4] == b"\0\0"
    for name in (f"PUBLIC={ID}", f"PRIVATE={ID}\\0000000a", "DIRECT=OS:h\\q", "DL=" + str(ID)):
        assert queue_format_of(parse_format_name(name)).to_bytes()[2:4] == b"\0\0"


@requirement("MQMQ-2.2.7-11")
@pytest.mark.parametrize("reserved", [1, 0x1234, 0xFFFF])
def test_the_reserved_member_changes_nothing(reserved: int) -> None:
    """It is preserved, and nothing else in the value or the name depends on it."""
    base = queue_format(3, REFERENT + DIRECT_BYTES)
    assert_field(QUEUE_FORMAT, base, "m_reserved", 2, reserved.to_bytes(2, "little"), reserved)
    before, after = (
        QUEUE_FORMAT.parse(base[:2] + two + base[4:]) for two in (b"\0\0", reserved.to_bytes(2, "little"))
    )
    assert name_of(before) == name_of(after)


@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("m_oPrivateID.Lineage", 8, GUID, ID, ids="MQMQ-2.2.8-01"),
        proving("m_oPrivateID.Uniquifier", 24, b"\x04\x03\x02\x01", 0x01020304, ids="MQMQ-2.2.8-02"),
    ],
)
@requirement("MQMQ-2.2.7-14")
def test_the_object_id_of_a_private_queue(path: str, offset: int, data: bytes, value: Any) -> None:
    assert_field(QUEUE_FORMAT, queue_format(2, bytes(20)), f"_varUnion.{path}", offset, data, value)


@requirement("MQMQ-2.2.9-01", "MQMQ-2.2.9-02")
def test_distribution_list() -> None:
    """The GUID, the pointer at 16 and then the domain."""
    assert_field(DL_ID, bytes(20), "m_DlGuid", 0, GUID, ID)
    data = GUID + REFERENT + DOMAIN_BYTES
    record = assert_same(DL_ID, data)
    assert (record.m_DlGuid, record.m_pwzDomain, record.Domain.String) == (ID, 0x20000, "a.b")
    assert DL_ID.build({"m_DlGuid": ID, "Domain": {"String": "a.b"}}) == data
    assert DL_ID.build({"m_DlGuid": ID}) == GUID + bytes(4)
    assert_refused(DL_ID, data[:20], "DL_ID.Domain.MaximumCount", 20)


@requirement("MQMQ-2.2.9-02")
def test_a_list_without_a_domain() -> None:
    """A null pointer: nothing follows, and the name has no domain either."""
    record = assert_same(DL_ID, GUID + bytes(4))
    assert (record.m_pwzDomain, record.Domain) == (0, None)
    data = queue_format(6, GUID + bytes(4))
    assert str(name_of(QUEUE_FORMAT.parse(data))) == f"DL={ID}"
    assert queue_format_of(parse_format_name(f"DL={ID}")).to_bytes() == data
    with_domain = queue_format(6, GUID + REFERENT + DOMAIN_BYTES)
    assert str(name_of(QUEUE_FORMAT.parse(with_domain))) == f"DL={ID}@a.b"
    assert queue_format_of(parse_format_name(f"DL={ID}@a.b")).to_bytes() == with_domain


@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("m_address", 0, b"\xe0\0\0\x01", 0x010000E0, ids="MQMQ-2.2.10-01"),
        proving("m_port", 4, b"\x04\x03\x02\x01", 0x01020304, ids="MQMQ-2.2.10-02"),
        proving("m_port", 4, b"\x09\x07\0\0", 1801, ids="MQMQ-2.2.10-02", name="m_port-1801"),
    ],
)
def test_multicast(path: str, offset: int, data: bytes, value: int) -> None:
    assert_field(MULTICAST_ID, bytes(8), path, offset, data, value)
    assert_refused(MULTICAST_ID, bytes(7), "MULTICAST_ID.m_port", 7)
    assert_refused(MULTICAST_ID, bytes(9), "MULTICAST_ID", 8)


@requirement("MQMQ-2.2.10-01")
def test_multicast_address_octets_are_in_network_order() -> None:
    """The specification leaves it open; 224.0.0.1 is E0 00 00 01 here."""
    data = queue_format(7, bytes.fromhex("e0000001 09070000"))
    assert str(name_of(QUEUE_FORMAT.parse(data))) == "MULTICAST=224.0.0.1:1801"
    assert queue_format_of(parse_format_name("MULTICAST=224.0.0.1:1801")).to_bytes() == data


# -- pointers and strings ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [3, 8])
def test_null_pointers(kind: int) -> None:
    """Referent id 0: nothing follows."""
    record = assert_same(QUEUE_FORMAT, queue_format(kind, bytes(4)))
    assert record._varUnion.Name is None
    assert_refused(QUEUE_FORMAT, queue_format(kind, bytes(4)) + DIRECT_BYTES, "QUEUE_FORMAT", 12)


@pytest.mark.parametrize("referent", [1, 4, 0x20004, 0xFFFFFFFF])
def test_any_referent_id_points_to_something(referent: int) -> None:
    record = assert_same(QUEUE_FORMAT, queue_format(3, struct.pack("<L", referent) + DIRECT_BYTES))
    assert (record._varUnion.m_pDirectID, record._varUnion.Name.String) == (referent, DIRECT)


@requirement("MQMQ-2.2.7-15")
def test_the_direct_name_is_without_its_prefix() -> None:
    data = queue_format(3, REFERENT + DIRECT_BYTES)
    assert queue_format_of(parse_format_name(f"DIRECT={DIRECT}")).to_bytes() == data
    assert str(name_of(QUEUE_FORMAT.parse(data))) == f"DIRECT={DIRECT}"


@pytest.mark.parametrize("count", [8, 0x1000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_string_counts_past_the_end_are_refused_at_the_count(count: int) -> None:
    data = queue_format(3, REFERENT + struct.pack("<LLL", count, 0, count) + handmade.wide(DIRECT))
    assert_refused(QUEUE_FORMAT, data, "QUEUE_FORMAT._varUnion.Name.MaximumCount", 12)


def test_an_actual_count_above_the_maximum_is_refused() -> None:
    data = queue_format(3, REFERENT + struct.pack("<LLL", 7, 0, 8) + handmade.wide(DIRECT) + b"\0\0")
    assert_refused(QUEUE_FORMAT, data, "QUEUE_FORMAT._varUnion.Name.ActualCount", 20)


@pytest.mark.parametrize("cut", range(26))
def test_a_cut_string_is_refused(cut: int) -> None:
    """Refused at the end if a count is missing, at the count if characters are."""
    data = queue_format(3, REFERENT + DIRECT_BYTES)[: 12 + cut]
    missing = ("MaximumCount", "Offset", "ActualCount")
    path, offset = (missing[cut // 4], 12 + cut) if cut < 12 else ("MaximumCount", 12)
    assert_refused(QUEUE_FORMAT, data, f"QUEUE_FORMAT._varUnion.Name.{path}", offset)


# -- values that can't be built ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value, path",
    [
        ({"m_qft": 256}, "QUEUE_FORMAT.m_qft"),
        ({"m_reserved": 0x10000}, "QUEUE_FORMAT.m_reserved"),
        ({"m_SuffixAndFlags": {"SuffixType": 16}}, "QUEUE_FORMAT.m_SuffixAndFlags.SuffixType"),
        ({"_varUnion": {"m_gPublicID": "no GUID"}}, "QUEUE_FORMAT._varUnion.m_gPublicID"),
        ({"_varUnion": {"m_pQueue": 1}}, "QUEUE_FORMAT._varUnion"),
        (
            {"_varUnion": {"m_oPrivateID": {"Uniquifier": -1}}},
            "QUEUE_FORMAT._varUnion.m_oPrivateID.Uniquifier",
        ),
    ],
)
def test_values_that_do_not_fit(value: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        QUEUE_FORMAT.build(value)
    assert caught.value.path == path


def test_one_change_is_one_difference() -> None:
    before = QUEUE_FORMAT.parse(queue_format(3, REFERENT + DIRECT_BYTES))
    after = QUEUE_FORMAT.parse(queue_format(3, b"\4\0\2\0" + DIRECT_BYTES))
    assert differences(before, after) == {"_varUnion.m_pDirectID"}
