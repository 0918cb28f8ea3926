"""Permissions on an object: SID, ACE, ACL and SECURITY_DESCRIPTOR, [MS-DTYP] 2.4.2 and 2.4.4 to 2.4.6.

A self-relative descriptor is 20 bytes and then four parts in any order, found by their offsets, which may
overlap or leave bytes between them. Its schema keeps all that as it came; `descriptor_parts` follows the
offsets, `build_descriptor` lays parts out anew. The body of an ACE stays bytes, so that every type is kept;
`access_entry` reads that of the types made of a mask and a SID.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.names.printable import counted
from msmqwire.schema import REST, Header, Record, bit, flags, raw, repeat, sub, uint

SUB_AUTHORITIES_MAX: Final = 15
ACE_HEADER_SIZE: Final = 4
FIXED_SIZE: Final = 20
DESCRIPTOR_SIZE_MAX: Final = FIXED_SIZE + 2 * (8 + 4 * SUB_AUTHORITIES_MAX) + 2 * 0xFFFF
"""Two SIDs and two ACLs of the greatest size: more bytes can't all be of use."""

SUB_AUTHORITY: Final = Header(
    "SubAuthority",
    "[MS-DTYP] 2.4.2.2",
    (uint(32, "Value", "The number."),),
    "One number of a SID.",
    size=4,
)

SID: Final = Header(
    "SID",
    "[MS-DTYP] 2.4.2.2",
    (
        uint(8, "Revision", "1.", default=1, must=frozenset({1})),  # DMPR-2-01
        uint(8, "SubAuthorityCount", "Numbers in SubAuthority.", must=range(SUB_AUTHORITIES_MAX + 1)),
        # DMPR-2-01
        raw("IdentifierAuthority", 6, "Who gave the SID, most significant byte first; 5 is Windows."),
        repeat("SubAuthority", "SubAuthorityCount", SUB_AUTHORITY, "The issuers, then the principal."),
    ),
    "A user, group or computer.",
)

ACE: Final = Header(
    "ACE",
    "[MS-DTYP] 2.4.4.1",
    (
        uint(8, "AceType", "0 allows, 1 denies; 2 to 0x13 are other types."),
        flags(
            8,
            "AceFlags",
            bit("OI", 0, "OBJECT_INHERIT_ACE: children that hold nothing inherit it."),
            bit("CI", 1, "CONTAINER_INHERIT_ACE: children that are containers inherit it."),
            bit("NP", 2, "NO_PROPAGATE_INHERIT_ACE: grandchildren do not inherit it."),
            bit("IO", 3, "INHERIT_ONLY_ACE: it does not hold for the object itself."),
            bit("ID", 4, "INHERITED_ACE: it was inherited."),
            bit("X5", 5, "Not used."),
            bit("SA", 6, "SUCCESSFUL_ACCESS_ACE_FLAG: successful access is audited."),
            bit("FA", 7, "FAILED_ACCESS_ACE_FLAG: failed access is audited."),
        ),
        uint(16, "AceSize", "Bytes of this entry, a multiple of 4.", unit="bytes", size_of="header"),
        raw("Body", REST, "By AceType: an ACCESS_ACE_BODY for 0, 1 and some more."),
    ),
    "An access control entry. Its flags have the short names of [MS-DTYP] 2.5.1.1.",
)

ACCESS_ACE_BODY: Final = Header(
    "ACCESS_ACE_BODY",
    "[MS-DTYP] 2.4.4.2",
    (
        uint(32, "Mask", "Rights, an ACCESS_MASK."),
        sub(SID, "Sid", meaning="Whose rights they are."),
        raw("ApplicationData", REST, "The condition of a callback type; else ignored."),
    ),
    "The fields of the types without object GUIDs after the header: 2.4.4.2, .4, .6, .7, .10, .12, .13.",
)

ACL: Final = Header(
    "ACL",
    "[MS-DTYP] 2.4.5",
    (
        uint(8, "AclRevision", "2, or 4 with types that have object GUIDs.", default=2),
        uint(8, "Sbz1", "0."),
        uint(16, "AclSize", "Bytes of the whole list.", unit="bytes", size_of="header"),
        uint(16, "AceCount", "Entries that follow."),
        uint(16, "Sbz2", "0."),
        repeat("Aces", "AceCount", ACE, "The entries, in the order they are judged."),
        raw("Unused", REST, "Room after the entries."),
    ),
    "An access control list.",
)

SECURITY_DESCRIPTOR: Final = Header(
    "SECURITY_DESCRIPTOR",
    "[MS-DTYP] 2.4.6",
    (
        uint(8, "Revision", "1.", default=1, must=frozenset({1})),
        uint(8, "Sbz1", "Control bits of the resource manager if RM is set."),
        flags(
            16,
            "Control",
            bit("OD", 0, "The owner was defaulted."),
            bit("GD", 1, "The group was defaulted."),
            bit("DP", 2, "The DACL is present."),
            bit("DD", 3, "The DACL was defaulted."),
            bit("SP", 4, "The SACL is present."),
            bit("SD", 5, "The SACL was defaulted."),
            bit("DT", 6, "The DACL is from a trusted source."),
            bit("SS", 7, "A server ACL is wanted."),
            bit("DC", 8, "The DACL is to be inherited."),
            bit("SC", 9, "The SACL is to be inherited."),
            bit("DI", 10, "The DACL was inherited."),
            bit("SI", 11, "The SACL was inherited."),
            bit("PD", 12, "The DACL does not inherit."),
            bit("PS", 13, "The SACL does not inherit."),
            bit("RM", 14, "Sbz1 holds control bits."),
            bit("SR", 15, "The descriptor is self-relative.", default=1),
        ),
        uint(32, "OffsetOwner", "Where the SID of the owner starts; 0 for none.", unit="bytes"),
        uint(32, "OffsetGroup", "Where the SID of the group starts; 0 for none.", unit="bytes"),
        uint(32, "OffsetSacl", "Where the system ACL starts; 0 for none.", unit="bytes"),
        uint(32, "OffsetDacl", "Where the discretionary ACL starts; 0 for none.", unit="bytes"),
        raw("Data", REST, "The targets of the offsets, in any order."),
    ),
    "Owner and access rights of an object, self-relative.",
)

TRUSTEE_TYPES: Final = frozenset({0x00, 0x01, 0x02, 0x09, 0x0A, 0x0D, 0x11, 0x12, 0x13})
"""The types of ACE whose body is an ACCESS_ACE_BODY."""

_TEXT: Final = re.compile(
    r"S-1-(0|[1-9][0-9]{0,9}|0x[0-9A-F]{12})((?:-(?:0|[1-9][0-9]{0,9})){0,15})", re.I | re.A
)


def sid_text(sid: bytes) -> str:
    """A SID as text, ``S-1-5-7``: [MS-DTYP] 2.4.2.1. Raises MalformedPacket."""
    record = SID.parse(sid)
    authority = int.from_bytes(record.IdentifierAuthority, "big")
    shown = str(authority) if authority < 1 << 32 else f"0x{authority:012X}"
    return "-".join(["S-1", shown, *(str(number.Value) for number in record.SubAuthority)])


def sid_bytes(text: str) -> bytes:
    """Return the SID of a text: [MS-DTYP] 2.4.2.1. Raises InvalidValue."""
    if not (match := _TEXT.fullmatch(text)):
        raise InvalidValue(f"{text[:200]!r} is not a SID, as S-1-5-21-1-2-3-1001", path="SID")
    hexadecimal = match[1].lower().startswith("0x")
    authority = int(match[1], 16 if hexadecimal else 10)
    numbers = [int(number) for number in match[2].split("-")[1:]]
    if max(*numbers, 0 if hexadecimal else authority, 0) >= 1 << 32:
        raise InvalidValue(f"{text!r} has a number of more than 32 bits", path="SID")
    return SID.build(
        {
            "IdentifierAuthority": authority.to_bytes(6, "big"),
            "SubAuthority": [{"Value": number} for number in numbers],
        }
    )


@dataclass(frozen=True, slots=True)
class DescriptorParts:
    """The parts of a self-relative SECURITY_DESCRIPTOR, each None if absent.

    Attributes:
        owner, group: SIDs.
        sacl, dacl: ACLs. A `dacl` of None restricts nothing, one without entries denies everything.
        control: the bits of SECURITY_DESCRIPTOR.Control except SR, DP and SP, which follow from the rest.
    """

    owner: bytes | None = None
    group: bytes | None = None
    sacl: bytes | None = None
    dacl: bytes | None = None
    control: int = 0


_DERIVED_BITS: Final = 0x8014  # SR, SP and DP


def descriptor_parts(data: bytes) -> DescriptorParts:
    """Return the parts of a self-relative descriptor, each checked to its end: [MS-DTYP] 2.4.6.

    Raises MalformedPacket with the path and the offset in `data`.
    """
    if len(data) > DESCRIPTOR_SIZE_MAX:
        why = f"{counted(len(data), 'byte', 'are')} more than {DESCRIPTOR_SIZE_MAX:,}"
        raise MalformedPacket(why, path="SECURITY_DESCRIPTOR", offset=DESCRIPTOR_SIZE_MAX)
    record = SECURITY_DESCRIPTOR.parse(data)
    control = record.Control
    if not control.SR:
        raise MalformedPacket("SR is 0: not self-relative", path="SECURITY_DESCRIPTOR.Control", offset=2)
    offsets = (
        ("OffsetOwner", True),
        ("OffsetGroup", True),
        ("OffsetSacl", control.SP),
        ("OffsetDacl", control.DP),
    )
    parts: list[bytes | None] = []
    for number, (name, present) in enumerate(offsets):
        start, path = record[name], f"SECURITY_DESCRIPTOR.{name}"
        if start and not present:
            raise MalformedPacket("is not 0 for an absent list", path=path, offset=4 + 4 * number)
        if start and not FIXED_SIZE <= start <= len(data):
            why = f"{start} is not in {FIXED_SIZE}..{len(data)}"
            raise MalformedPacket(why, path=path, offset=4 + 4 * number)
        parts.append(_part(data, start, name.removeprefix("Offset")) if start else None)
    owner, group, sacl, dacl = parts
    return DescriptorParts(owner, group, sacl, dacl, int(control) & ~_DERIVED_BITS)


def _part(data: bytes, start: int, name: str) -> bytes:
    schema, shown = (SID, f"{name}Sid") if name in ("Owner", "Group") else (ACL, name)
    with _relocated(f"SECURITY_DESCRIPTOR.{shown}", start, schema.name):
        record, end = schema.read(data, start)
        offset = 8
        for number, ace in enumerate(record.Aces if schema is ACL else ()):
            with _relocated(f"ACL.Aces[{number}]", offset, "ACE"):
                access_entry(ace)
            offset += ace.AceSize
    return data[start:end]


def access_entry(ace: Record) -> tuple[int, bytes] | None:
    """Return mask and SID of an ACE; None for types that are reserved or have object GUIDs.

    Raises MalformedPacket with the offset in the ACE.
    """
    if ace.AceSize % 4:
        raise MalformedPacket(f"{ace.AceSize} is not a multiple of 4", path="ACE.AceSize", offset=2)
    if ace.AceType not in TRUSTEE_TYPES:
        return None
    with _relocated("ACE.Body", ACE_HEADER_SIZE, "ACCESS_ACE_BODY"):
        body = ACCESS_ACE_BODY.parse(ace.Body)
    return body.Mask, body.Sid.to_bytes()


@contextmanager
def _relocated(path: str, start: int, inner: str) -> Iterator[None]:
    """Raise an error of a part as one of the whole: `path` in place of `inner`, offsets from `start`."""
    try:
        yield
    except MalformedPacket as exc:
        offset = None if exc.offset is None else exc.offset + start
        raise MalformedPacket(exc.why, path=path + exc.path.removeprefix(inner), offset=offset) from exc


def build_descriptor(parts: DescriptorParts) -> bytes:
    """Return the self-relative form of these parts, in the order of the specification: [MS-DTYP] 2.4.6.

    Raises InvalidValue.
    """
    contents = (parts.owner, parts.group, parts.sacl, parts.dacl)
    offsets, offset = [], FIXED_SIZE
    for content in contents:
        offsets.append(0 if content is None else offset)
        offset += len(content or b"")
    present = 0x8000 | (parts.sacl is not None) << 4 | (parts.dacl is not None) << 2
    return SECURITY_DESCRIPTOR.build(
        {
            "Control": parts.control & ~_DERIVED_BITS | present,
            **dict(zip(("OffsetOwner", "OffsetGroup", "OffsetSacl", "OffsetDacl"), offsets, strict=True)),
            "Data": b"".join(content for content in contents if content is not None),
        }
    )
