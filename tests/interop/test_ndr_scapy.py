"""PROPVARIANT and QUEUE_FORMAT against scapy's NDR: what either builds the other reads, value by value.

The declarations below are made from the IDL of [MS-MQMQ] 2.2.7 to 2.2.16 with the fields of
scapy.layers.dcerpc, 32-bit transfer syntax, and share nothing with msmqwire. Two things are done differently
from scapy, and why is said at `member` and `Elements`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("scapy")

from scapy.config import conf
from scapy.fields import PacketListField, StrFixedLenField, UUIDField
from scapy.layers.dcerpc import (
    NDRByteField,
    NDRConfFieldListField,
    NDRConformantArray,
    NDRConfPacketListField,
    NDRConfStrLenField,
    NDRConfVarStrNullFieldUtf16,
    NDRFullEmbPointerField,
    NDRIntField,
    NDRLongField,
    NDRPacket,
    NDRPacketField,
    NDRPointer,
    NDRShortField,
    NDRSignedByteField,
    NDRSignedIntField,
    NDRSignedLongField,
    NDRSignedShortField,
    NDRUnion,
    NDRUnionField,
    NDRVaryingArray,
)

from msmqwire.headers import PROPVARIANT, QUEUE_FORMAT
from msmqwire.headers.propvariant import VARIANT_DEPTH_MAX

REFERENT = 0x20000


@pytest.fixture(autouse=True, scope="module")
def ndr32() -> Iterator[None]:
    """scapy's packets are NDR64 unless told otherwise; its own helpers can't be told one by one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conf, "ndr64", False)
        yield


# -- the structures in scapy's fields ----------------------------------------------------------------


def structure(name: str, align: int, *fields: Any, **more: Any) -> type[NDRPacket]:
    """A class of packets, as scapy wants it, that is aligned to so many bytes."""
    space = {"ALIGNMENT": (align, align), "fields_desc": list(fields), **more}
    return type(NDRPacket)(name, (NDRPacket,), space)


def member(name: str, *fields: Any) -> type[NDRPacket]:
    """A member of the union of PROPVARIANT: one structure for each.

    scapy aligns the discriminant of a union for its largest member, but a member for itself, so that cVal
    would stand at 10. C706 14.3.8 says nothing of a gap between the two; Windows aligns all members, the
    empty one too, for the largest (MQMQ-2.2.13.1-27). So each is a structure that is aligned to 8.
    """
    return structure(name, 8, *fields)


def guid(name: str) -> Any:
    return UUIDField(name, None, uuid_fmt=UUIDField.FORMAT_LE)


GuidPacket = structure("GUID", 4, guid("Value"))


class _InPlace(PacketListField):
    def addfield(self, pkt: Any, s: bytes, val: Any) -> bytes:
        for item in val:
            s = self.fld.addfield(pkt, s, item)
        return s


class Elements(NDRConfPacketListField, _InPlace):
    """An array of structures.

    scapy builds each element by itself and so counts its alignment from the element; C706 14.2.2 counts all
    alignment from the start of the octet stream. (What it reads, it aligns from there.)
    """


def text(name: str) -> Any:
    """[string] wchar_t*."""
    return NDRFullEmbPointerField(NDRConfVarStrNullFieldUtf16(name, ""))


def counted(count: str, array: Any) -> type[NDRPacket]:
    """A count, and a pointer to an array of that many elements."""
    return member("Counted", NDRIntField(count, 0), NDRFullEmbPointerField(array))


def elements(pkt: Any) -> int:
    return int(pkt.cElems)


def numbers(field: Any) -> type[NDRPacket]:
    return counted("cElems", NDRConfFieldListField("pElems", [], field, size_is=elements))


def structures(of: type[NDRPacket]) -> type[NDRPacket]:
    return counted("cElems", Elements("pElems", [], of, size_is=elements))


def union_of(arms: dict[int, type[NDRPacket]], by: str, align: int, fmt: str) -> Any:
    """[switch_is(by)] union."""
    return NDRUnionField(
        [
            (
                NDRPacketField("_varUnion", None, arm),
                (lambda pkt, tag=tag: getattr(pkt, by) == tag, lambda _, val, tag=tag: val.tag == tag),
            )
            for tag, arm in arms.items()
        ],
        StrFixedLenField("_varUnion", b"", length=0),
        align=(align, align),
        switch_fmt=(fmt, fmt),
    )


def propvariant(levels: int) -> type[NDRPacket]:
    """A PROPVARIANT that may hold so many levels of vectors of PROPVARIANTs."""
    arms = {
        0: member("Empty"),
        1: member("Null"),
        16: member("I1", NDRSignedByteField("cVal", 0)),
        17: member("UI1", NDRByteField("bVal", 0)),
        2: member("I2", NDRSignedShortField("iVal", 0)),
        18: member("UI2", NDRShortField("uiVal", 0)),
        3: member("I4", NDRSignedIntField("lVal", 0)),
        19: member("UI4", NDRIntField("ulVal", 0)),
        20: member("I8", NDRSignedLongField("hVal", 0)),
        21: member("UI8", NDRLongField("uhVal", 0)),
        11: member("Bool", NDRSignedShortField("boolVal", 0)),
        72: member("Clsid", NDRFullEmbPointerField(NDRPacketField("puuid", None, GuidPacket))),
        65: counted("cbSize", NDRConfStrLenField("pBlobData", b"", size_is=lambda pkt: pkt.cbSize)),
        31: member("Lpwstr", text("pwszVal")),
        0x1011: counted("cElems", NDRConfStrLenField("pElems", b"", size_is=elements)),
        0x1012: numbers(NDRShortField("", 0)),
        0x1003: numbers(NDRSignedIntField("", 0)),
        0x1013: numbers(NDRIntField("", 0)),
        0x1015: numbers(NDRLongField("", 0)),
        0x1048: structures(GuidPacket),
        0x101F: numbers(text("")),
    }
    if levels:
        arms[0x100C] = structures(propvariant(levels - 1))

    return structure(
        "PROPVARIANT",
        8,
        NDRShortField("vt", 0),
        NDRByteField("wReserved1", 0),
        NDRByteField("wReserved2", 0),
        NDRIntField("wReserved3", 0),
        union_of(arms, "vt", 8, "H"),
        arms=arms,
    )


ObjectId = structure("OBJECTID", 4, guid("Lineage"), NDRIntField("Uniquifier", 0))
DlId = structure("DL_ID", 4, guid("m_DlGuid"), text("m_pwzDomain"))
MulticastId = structure("MULTICAST_ID", 4, NDRIntField("m_address", 0), NDRIntField("m_port", 0))
NamePointer = structure("Name", 4, text("Name"))
KINDS: dict[int, type[NDRPacket]] = {
    1: GuidPacket,
    2: ObjectId,
    3: NamePointer,
    4: GuidPacket,
    5: GuidPacket,
    6: DlId,
    7: MulticastId,
    8: NamePointer,
}


QueueFormat = structure(
    "QUEUE_FORMAT",
    4,
    NDRByteField("m_qft", 0),
    NDRByteField("m_SuffixAndFlags", 0),
    NDRShortField("m_reserved", 0),
    union_of(KINDS, "m_qft", 4, "B"),
)
PROP_VARIANT = propvariant(VARIANT_DEPTH_MAX)

# -- values: (vt, reserved, what), where what is None for a null pointer -----------------------------

Value = tuple[int, tuple[int, int, int], Any]
SCALARS = {
    16: ("cVal", -0x80, 0x7F),
    17: ("bVal", 0, 0xFF),
    2: ("iVal", -0x8000, 0x7FFF),
    18: ("uiVal", 0, 0xFFFF),
    3: ("lVal", -(1 << 31), (1 << 31) - 1),
    19: ("ulVal", 0, (1 << 32) - 1),
    20: ("hVal", -(1 << 63), (1 << 63) - 1),
    21: ("uhVal", 0, (1 << 64) - 1),
    11: ("boolVal", -0x8000, 0x7FFF),
}
NUMBERS = {0x1012: 18, 0x1003: 3, 0x1013: 19, 0x1015: 21}

strings = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
reserved = st.tuples(st.integers(0, 0xFF), st.integers(0, 0xFF), st.integers(0, 0xFFFFFFFF))


def variants(levels: int) -> st.SearchStrategy[Value]:
    def lists(of: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.none() | st.lists(of, max_size=4)

    what: dict[int, st.SearchStrategy[Any]] = {
        0: st.none(),
        1: st.none(),
        72: st.none() | st.uuids(),
        65: st.none() | st.binary(max_size=9),
        31: st.none() | strings,
        0x1011: st.none() | st.binary(max_size=9),
        0x1048: lists(st.uuids()),
        0x101F: lists(st.none() | strings),
    }
    what |= {vt: st.integers(low, high) for vt, (_, low, high) in SCALARS.items()}
    what |= {vt: lists(what[of]) for vt, of in NUMBERS.items() if vt != 0x1015}
    # C706 leaves open whether a gap stands before 64-bit elements that are not there; scapy has none.
    what[0x1015] = st.none() | st.lists(what[21], min_size=1, max_size=4)
    if levels:
        what[0x100C] = lists(variants(levels - 1))
    nested = [0x100C] * 8 if levels else []  # so that the limit is reached
    return st.sampled_from([*sorted(what), *nested]).flatmap(
        lambda vt: st.tuples(st.just(vt), reserved, what[vt])
    )


# -- values to and from msmqwire ---------------------------------------------------------------------


def pointee(vt: int, what: Any) -> Any:
    """What a pointer points to, as `build` takes it."""
    if vt == 31:
        return {"String": what}
    if vt == 72:
        return {"Value": what}
    if vt == 0x101F:
        strings = [None if one is None else {"String": one} for one in what]
        return {"Elements": [{"pwszVal": 0} if one is None else {} for one in what], "Strings": strings}
    if vt == 0x100C:
        return {
            "Elements": [ours(one, inline=True) for one in what],
            "Pointees": [None if vt in SCALARS or one is None else pointee(vt, one) for vt, _, one in what],
        }
    if vt in (65, 0x1011):
        return {"Elements": what}
    return {"Elements": [{"QuadPart" if vt == 0x1015 else "Value": one} for one in what]}


def ours(value: Value, *, inline: bool = False) -> dict[str, Any]:
    vt, (first, second, third), what = value
    made: dict[str, Any] = {"vt": vt, "wReserved1": first, "wReserved2": second, "wReserved3": third}
    if vt in SCALARS:
        made["_varUnion"] = {SCALARS[vt][0]: what}
    elif vt > 1:
        held = {31: "String", 72: "Guid"}.get(vt, "Elements")
        made["_varUnion"] = {} if inline or what is None else {held: pointee(vt, what)}
    return made


def pointed(vt: int, found: Any) -> Any:
    if found is None:
        return None
    if vt == 31:
        assert (found.MaximumCount, found.Offset) == (found.ActualCount, 0)
        return found.String
    if vt == 72:
        return found.Value
    assert found.MaximumCount == len(found.Elements)
    if vt == 0x101F:
        assert [bool(one.pwszVal) for one in found.Elements] == [one is not None for one in found.Strings]
        return [pointed(31, one) for one in found.Strings]
    if vt == 0x100C:
        return [from_ours(one, found.Pointees[i]) for i, one in enumerate(found.Elements)]
    if vt in (65, 0x1011):
        return found.Elements
    return [one.QuadPart if vt == 0x1015 else one.Value for one in found.Elements]


def from_ours(record: Any, deferred: Any = None) -> Value:
    vt, union = record.vt, record._varUnion
    assert record.vt_ == vt
    what: Any = None
    if vt in SCALARS:
        what = union[SCALARS[vt][0]]
    elif vt > 1:
        held = union.get({31: "String", 72: "Guid"}.get(vt, "Elements"))
        what = pointed(vt, deferred if held is None else held)
        count = union.get("cElems", union.get("cbSize"))
        assert count is None or count == len(what or ())
    return vt, (record.wReserved1, record.wReserved2, record.wReserved3), what


# -- values to and from scapy ------------------------------------------------------------------------


def their_text(what: str | None) -> Any:
    """A pointer to a string, with its counts: those that scapy fills in count octets of UTF-8."""
    if what is None:
        return None
    count = len(what.encode("utf-16-le")) // 2 + 1
    varying = NDRVaryingArray(actual_count=count, value=what.encode())
    return NDRPointer(referent_id=REFERENT, value=NDRConformantArray(max_count=count, value=[varying]))


def theirs(value: Value, cls: type[NDRPacket] = PROP_VARIANT) -> NDRPacket:
    vt, (first, second, third), what = value
    arm = cls.arms[vt]
    names = [field.name for field in arm.fields_desc]
    if vt in (0, 1):
        given: dict[str, Any] = {}
    elif vt in SCALARS:
        given = {names[0]: what}
    elif vt == 31:
        given = {names[0]: their_text(what)}
    elif vt == 72:
        given = {names[0]: None if what is None else GuidPacket(Value=what)}
    else:
        held = what
        if vt == 0x1048 and what is not None:
            held = [GuidPacket(Value=one) for one in what]
        if vt == 0x101F and what is not None:
            held = [their_text(one) for one in what]
        if vt == 0x100C and what is not None:
            inner = arm.fields_desc[1].fld.fld.fld.fld.cls
            held = [theirs(one, inner) for one in what]
        given = {names[0]: len(what or ()), names[1]: held}
    return cls(
        vt=vt,
        wReserved1=first,
        wReserved2=second,
        wReserved3=third,
        _varUnion=NDRUnion(tag=vt, value=arm(**given)),
    )


def dereferenced(pointer: Any) -> Any:
    """What scapy's pointer points to."""
    assert pointer is None or pointer.referent_id == REFERENT
    return None if pointer is None else pointer.value


def their_string(pointer: Any) -> str | None:
    conformant = dereferenced(pointer)
    if conformant is None:
        return None
    varying = conformant.value[0] if isinstance(conformant.value, list) else conformant.value
    found = varying.value.decode()  # scapy keeps text as UTF-8
    count = len(found.encode("utf-16-le")) // 2 + 1
    assert (conformant.max_count, varying.offset, varying.actual_count) == (count, 0, count)
    return str(found)


def from_theirs(packet: Any) -> Value:
    vt, union = packet.vt, packet._varUnion
    assert union.tag == vt
    names = [field.name for field in union.value.fields_desc]
    held = [getattr(union.value, name) for name in names]
    what: Any = None
    if vt == 31:
        what = their_string(held[0])
    elif vt == 72:
        guid = dereferenced(held[0])
        what = None if guid is None else guid.Value
    elif vt in SCALARS:
        what = held[0]
    elif vt > 1 and (array := dereferenced(held[1])) is not None:
        assert array.max_count == held[0] == len(array.value)
        what = array.value
        if vt == 0x1048:
            what = [one.Value for one in what]
        elif vt == 0x101F:
            what = [their_string(one) for one in what]
        elif vt == 0x100C:
            what = [from_theirs(one) for one in what]
    return vt, (packet.wReserved1, packet.wReserved2, packet.wReserved3), what


# -- the tests -----------------------------------------------------------------------------------------


def check(value: Value) -> None:
    data = PROPVARIANT.build(ours(value))
    assert from_theirs(PROP_VARIANT(data)) == value
    assert bytes(theirs(value)) == data
    assert from_ours(PROPVARIANT.parse(data)) == value


@given(variants(VARIANT_DEPTH_MAX))
def test_propvariant(value: Value) -> None:
    check(value)


NONE = (0, 0, 0)


@pytest.mark.parametrize(
    "value",
    [
        (0, NONE, None),
        (16, (1, 2, 0x04030201), -1),
        (31, NONE, "hello"),
        (31, NONE, ""),
        (72, NONE, UUID(int=5)),
        (65, NONE, b"abc"),
        (0x1015, NONE, [1, 2]),
        (0x101F, NONE, ["a", None, "bcd", ""]),
        (0x100C, NONE, [(16, NONE, 1), (31, NONE, "a"), (0, NONE, None)]),
        (0x100C, NONE, [(0x1011, NONE, b"1234"), (0x1015, NONE, [5])]),
        (0x100C, NONE, [(0x100C, NONE, [(31, NONE, "a"), (2, NONE, 1)]), (31, NONE, "b"), (65, NONE, b"c")]),
    ],
    ids=str,
)
def test_propvariants_by_hand(value: Value) -> None:
    check(value)


@given(
    st.sampled_from(sorted(KINDS)),
    st.integers(0, 0xFF),
    st.integers(0, 0xFFFF),
    st.uuids(),
    st.integers(0, 0xFFFFFFFF),
    st.integers(0, 0xFFFFFFFF),
    st.none() | strings,
)
def test_queue_format(
    kind: int, suffix: int, padding: int, uuid: UUID, first: int, second: int, name: str | None
) -> None:
    """Every member, in both directions; a null pointer where there is no name."""
    pointed_to = {} if name is None else {"String": name}
    member_name = {1: "m_gPublicID", 4: "m_gMachineID", 5: "m_GConnectorID"}.get(kind, "")
    mine: dict[str, Any]
    if member_name:
        mine, arm = {member_name: uuid}, {"Value": uuid}
    elif kind == 2:
        arm = {"Lineage": uuid, "Uniquifier": first}
        mine = {"m_oPrivateID": arm}
    elif kind == 6:
        arm = {"m_DlGuid": uuid, "m_pwzDomain": their_text(name)}
        mine = {"m_DlID": {"m_DlGuid": uuid} | ({"Domain": pointed_to} if pointed_to else {})}
    elif kind == 7:
        arm = {"m_address": first, "m_port": second}
        mine = {"m_MulticastID": arm}
    else:
        arm = {"Name": their_text(name)}
        mine = {"Name": pointed_to} if pointed_to else {}
    head = {"m_qft": kind, "m_SuffixAndFlags": suffix, "m_reserved": padding}
    data = QUEUE_FORMAT.build({**head, "_varUnion": mine})
    packet = QueueFormat(data)
    assert (packet.m_qft, packet.m_SuffixAndFlags, packet.m_reserved) == (kind, suffix, padding)
    assert packet._varUnion.tag == kind
    for field, value in arm.items():
        found = getattr(packet._varUnion.value, field)
        if field in ("Name", "m_pwzDomain"):
            assert their_string(found) == name
        else:
            assert found == value
    built = bytes(QueueFormat(**head, _varUnion=NDRUnion(tag=kind, value=KINDS[kind](**arm))))
    assert built == data
    assert QUEUE_FORMAT.build(QUEUE_FORMAT.parse(built)) == data


def test_queue_format_without_a_member() -> None:
    """scapy ends behind the discriminant; with the padding of the union it leaves the three bytes over."""
    data = QUEUE_FORMAT.build({})
    packet = QueueFormat(data)
    assert (packet.m_qft, packet._varUnion.tag) == (0, 0)
    assert data.startswith(bytes(QueueFormat(_varUnion=NDRUnion(tag=0, value=b""))))
