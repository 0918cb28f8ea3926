"""PROPVARIANT and QUEUE_FORMAT against scapy's NDR: each reads what the other builds, value by value.

The declarations below are made from the IDL of [MS-MQMQ] 2.2.7 to 2.2.16 with the fields of
scapy.layers.dcerpc, 32-bit transfer syntax, and share nothing with msmqwire. Two things differ from
scapy, for the reasons given at `member` and `Elements`.
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
    """scapy's packets are NDR64 by default, and its helpers can't be switched individually."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conf, "ndr64", False)
        yield


# -- the structures in scapy's fields ----------------------------------------------------------------


def structure(name: str, align: int, *fields: Any, **more: Any) -> type[NDRPacket]:
    """A scapy packet class with this alignment."""
    space = {"ALIGNMENT": (align, align), "fields_desc": list(fields), **more}
    return type(NDRPacket)(name, (NDRPacket,), space)


def member(name: str, *fields: Any) -> type[NDRPacket]:
    """A member of the union of PROPVARIANT, as a structure of its own.

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
    """A count and a pointer to an array of that many elements."""
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
    """A PROPVARIANT that may nest vectors of PROPVARIANTs to this many levels."""
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

# -- values: (vt, reserved, content), where content is None for a null pointer -----------------------

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

    contents: dict[int, st.SearchStrategy[Any]] = {
        0: st.none(),
        1: st.none(),
        72: st.none() | st.uuids(),
        65: st.none() | st.binary(max_size=9),
        31: st.none() | strings,
        0x1011: st.none() | st.binary(max_size=9),
        0x1048: lists(st.uuids()),
        0x101F: lists(st.none() | strings),
    }
    contents |= {vt: st.integers(low, high) for vt, (_, low, high) in SCALARS.items()}
    contents |= {vt: lists(contents[of]) for vt, of in NUMBERS.items() if vt != 0x1015}
    # C706 leaves open whether padding precedes an empty array of 64-bit elements; scapy has none.
    contents[0x1015] = st.none() | st.lists(contents[21], min_size=1, max_size=4)
    if levels:
        contents[0x100C] = lists(variants(levels - 1))
    nested = [0x100C] * 8 if levels else []  # so that the limit is reached
    return st.sampled_from([*sorted(contents), *nested]).flatmap(
        lambda vt: st.tuples(st.just(vt), reserved, contents[vt])
    )


# -- values to and from msmqwire ---------------------------------------------------------------------


def pointee(vt: int, content: Any) -> Any:
    """What a pointer points to, as `build` takes it."""
    if vt == 31:
        return {"String": content}
    if vt == 72:
        return {"Value": content}
    if vt == 0x101F:
        strings = [None if text is None else {"String": text} for text in content]
        return {"Elements": [{"pwszVal": 0} if text is None else {} for text in content], "Strings": strings}
    if vt == 0x100C:
        return {
            "Elements": [ours(element, inline=True) for element in content],
            "Pointees": [
                None if vt in SCALARS or inner is None else pointee(vt, inner) for vt, _, inner in content
            ],
        }
    if vt in (65, 0x1011):
        return {"Elements": content}
    return {"Elements": [{"QuadPart" if vt == 0x1015 else "Value": element} for element in content]}


def ours(value: Value, *, inline: bool = False) -> dict[str, Any]:
    vt, (first, second, third), content = value
    fields: dict[str, Any] = {"vt": vt, "wReserved1": first, "wReserved2": second, "wReserved3": third}
    if vt in SCALARS:
        fields["_varUnion"] = {SCALARS[vt][0]: content}
    elif vt > 1:
        name = {31: "String", 72: "Guid"}.get(vt, "Elements")
        fields["_varUnion"] = {} if inline or content is None else {name: pointee(vt, content)}
    return fields


def dereferenced_value(vt: int, record: Any) -> Any:
    if record is None:
        return None
    if vt == 31:
        assert (record.MaximumCount, record.Offset) == (record.ActualCount, 0)
        return record.String
    if vt == 72:
        return record.Value
    assert record.MaximumCount == len(record.Elements)
    if vt == 0x101F:
        assert [bool(item.pwszVal) for item in record.Elements] == [
            text is not None for text in record.Strings
        ]
        return [dereferenced_value(31, text) for text in record.Strings]
    if vt == 0x100C:
        return [from_ours(element, record.Pointees[i]) for i, element in enumerate(record.Elements)]
    if vt in (65, 0x1011):
        return record.Elements
    return [element.QuadPart if vt == 0x1015 else element.Value for element in record.Elements]


def from_ours(record: Any, deferred: Any = None) -> Value:
    vt, union = record.vt, record._varUnion
    assert record.vt_ == vt
    content: Any = None
    if vt in SCALARS:
        content = union[SCALARS[vt][0]]
    elif vt > 1:
        pointee_record = union.get({31: "String", 72: "Guid"}.get(vt, "Elements"))
        content = dereferenced_value(vt, deferred if pointee_record is None else pointee_record)
        count = union.get("cElems", union.get("cbSize"))
        assert count is None or count == len(content or ())
    return vt, (record.wReserved1, record.wReserved2, record.wReserved3), content


# -- values to and from scapy ------------------------------------------------------------------------


def their_text(text: str | None) -> Any:
    """A pointer to a string, with its counts: those that scapy fills in count octets of UTF-8."""
    if text is None:
        return None
    count = len(text.encode("utf-16-le")) // 2 + 1
    varying = NDRVaryingArray(actual_count=count, value=text.encode())
    return NDRPointer(referent_id=REFERENT, value=NDRConformantArray(max_count=count, value=[varying]))


def theirs(value: Value, cls: type[NDRPacket] = PROP_VARIANT) -> NDRPacket:
    vt, (first, second, third), content = value
    arm = cls.arms[vt]
    names = [field.name for field in arm.fields_desc]
    if vt in (0, 1):
        values: dict[str, Any] = {}
    elif vt in SCALARS:
        values = {names[0]: content}
    elif vt == 31:
        values = {names[0]: their_text(content)}
    elif vt == 72:
        values = {names[0]: None if content is None else GuidPacket(Value=content)}
    else:
        items = content
        if vt == 0x1048 and content is not None:
            items = [GuidPacket(Value=guid) for guid in content]
        if vt == 0x101F and content is not None:
            items = [their_text(text) for text in content]
        if vt == 0x100C and content is not None:
            inner = arm.fields_desc[1].fld.fld.fld.fld.cls
            items = [theirs(element, inner) for element in content]
        values = {names[0]: len(content or ()), names[1]: items}
    return cls(
        vt=vt,
        wReserved1=first,
        wReserved2=second,
        wReserved3=third,
        _varUnion=NDRUnion(tag=vt, value=arm(**values)),
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
    text = varying.value.decode()  # scapy keeps text as UTF-8
    count = len(text.encode("utf-16-le")) // 2 + 1
    assert (conformant.max_count, varying.offset, varying.actual_count) == (count, 0, count)
    return str(text)


def from_theirs(packet: Any) -> Value:
    vt, union = packet.vt, packet._varUnion
    assert union.tag == vt
    names = [field.name for field in union.value.fields_desc]
    values = [getattr(union.value, name) for name in names]
    content: Any = None
    if vt == 31:
        content = their_string(values[0])
    elif vt == 72:
        guid = dereferenced(values[0])
        content = None if guid is None else guid.Value
    elif vt in SCALARS:
        content = values[0]
    elif vt > 1 and (array := dereferenced(values[1])) is not None:
        assert array.max_count == values[0] == len(array.value)
        content = array.value
        if vt == 0x1048:
            content = [guid.Value for guid in content]
        elif vt == 0x101F:
            content = [their_string(pointer) for pointer in content]
        elif vt == 0x100C:
            content = [from_theirs(element) for element in content]
    return vt, (packet.wReserved1, packet.wReserved2, packet.wReserved3), content


# -- tests -------------------------------------------------------------------------------------------


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
    ids=lambda value: str(value)[:60],
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
    member: dict[str, Any]
    if member_name:
        member, arm = {member_name: uuid}, {"Value": uuid}
    elif kind == 2:
        arm = {"Lineage": uuid, "Uniquifier": first}
        member = {"m_oPrivateID": arm}
    elif kind == 6:
        arm = {"m_DlGuid": uuid, "m_pwzDomain": their_text(name)}
        member = {"m_DlID": {"m_DlGuid": uuid} | ({"Domain": pointed_to} if pointed_to else {})}
    elif kind == 7:
        arm = {"m_address": first, "m_port": second}
        member = {"m_MulticastID": arm}
    else:
        arm = {"Name": their_text(name)}
        member = {"Name": pointed_to} if pointed_to else {}
    head = {"m_qft": kind, "m_SuffixAndFlags": suffix, "m_reserved": padding}
    data = QUEUE_FORMAT.build({**head, "_varUnion": member})
    packet = QueueFormat(data)
    assert (packet.m_qft, packet.m_SuffixAndFlags, packet.m_reserved) == (kind, suffix, padding)
    assert packet._varUnion.tag == kind
    for field, value in arm.items():
        actual = getattr(packet._varUnion.value, field)
        if field in ("Name", "m_pwzDomain"):
            assert their_string(actual) == name
        else:
            assert actual == value
    built = bytes(QueueFormat(**head, _varUnion=NDRUnion(tag=kind, value=KINDS[kind](**arm))))
    assert built == data
    assert QUEUE_FORMAT.build(QUEUE_FORMAT.parse(built)) == data


def test_queue_format_without_a_member() -> None:
    """scapy stops after the discriminant and leaves the three bytes of the union's padding."""
    data = QUEUE_FORMAT.build({})
    packet = QueueFormat(data)
    assert (packet.m_qft, packet._varUnion.tag) == (0, 0)
    assert data.startswith(bytes(QueueFormat(_varUnion=NDRUnion(tag=0, value=b""))))
