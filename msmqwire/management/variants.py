"""PROPVARIANT, the value of a property in a remote call: [MS-MQMQ] 2.2.13, [MS-MQMR] 2.2.3.

`msmqwire.headers` has the same structure as a schema of its own, for one that stands by itself in NDR.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msmqwire.constants import VarEnum
from msmqwire.rpc.ndr import (
    ConformantArray,
    ConformantBytes,
    Guid,
    Integer,
    Member,
    Pointer,
    Structure,
    Type,
    Union,
    WideString,
)

DEPTH_MAX: Final = 4
"""How deep vectors of variants may nest below a property; those of [MS-MQMR] need two levels."""

_V: Final = VarEnum
_VECTOR: Final = int(VarEnum.VT_VECTOR)
_VARIANTS: Final = _VECTOR | VarEnum.VT_VARIANT
_COUNT: Final = Integer(32)
_STRING: Final = Pointer(WideString())
_TOO_DEEP: Final = f"vectors of variants are nested more than {DEPTH_MAX} deep"


def _vector(name: str, element: Type, meaning: str) -> Structure:
    """Return a counted array: MQMR-2.2.3-06."""
    array = ConformantBytes("cElems") if isinstance(element, Integer) and element.size == 1 else None
    return Structure(
        name,
        "[MS-MQMQ] 2.2.14",
        (
            Member("cElems", _COUNT, "The number of elements."),
            Member("pElems", Pointer(array or ConformantArray(element, "cElems")), meaning, default=None),
        ),
        meaning,
    )


BLOB: Final = Structure(
    "BLOB",
    "[MS-MQMQ] 2.2.14",
    (
        Member("cbSize", _COUNT, "The number of bytes."),
        Member("pBlobData", Pointer(ConformantBytes("cbSize")), "The bytes.", default=None),
    ),
    "Bytes.",
)


def _arms() -> dict[int, Member | None]:
    """Return the arms of the union but that of nested variants: MQMR-2.2.3-04."""
    scalars: dict[int, tuple[str, Type]] = {
        _V.VT_I1: ("cVal", Integer(8, signed=True)),
        _V.VT_UI1: ("bVal", Integer(8)),
        _V.VT_I2: ("iVal", Integer(16, signed=True)),
        _V.VT_UI2: ("uiVal", Integer(16)),
        _V.VT_BOOL: ("boolVal", Integer(16)),
        _V.VT_I4: ("lVal", Integer(32, signed=True)),
        _V.VT_UI4: ("ulVal", Integer(32)),
        _V.VT_I8: ("hVal", Integer(64, signed=True)),
        _V.VT_UI8: ("uhVal", Integer(64)),
        _V.VT_CLSID: ("puuid", Pointer(Guid())),
        _V.VT_LPWSTR: ("pwszVal", _STRING),
        _V.VT_BLOB: ("blob", BLOB),
        _VECTOR | _V.VT_UI1: ("caub", _vector("CAUB", Integer(8), "The bytes.")),
        _VECTOR | _V.VT_UI2: ("caui", _vector("CAUI", Integer(16), "The numbers.")),
        _VECTOR | _V.VT_I4: ("cal", _vector("CAL", Integer(32, signed=True), "The numbers.")),
        _VECTOR | _V.VT_UI4: ("caul", _vector("CAUL", Integer(32), "The numbers.")),
        _VECTOR | _V.VT_UI8: ("cauh", _vector("CAUH", Integer(64), "The numbers.")),
        _VECTOR | _V.VT_CLSID: ("cauuid", _vector("CACLSID", Guid(), "The GUIDs.")),
        _VECTOR | _V.VT_LPWSTR: ("calpwstr", _vector("CALPWSTR", _STRING, "The texts.")),
    }
    arms: dict[int, Member | None] = {int(_V.VT_EMPTY): None, int(_V.VT_NULL): None}
    for vt, (name, node) in scalars.items():
        default = None if isinstance(node, Pointer) else 0
        arms[int(vt)] = Member(name, node, f"The value of {VarEnum(vt & 0xFFF).name}.", default)
    return arms


def _members(arms: dict[int, Member | None]) -> tuple[Member, ...]:
    refused = {} if _VARIANTS in arms else {_VARIANTS: _TOO_DEEP}
    return (
        Member("vt", Integer(16), "The type of the value, a VARENUM.", req=("MQMR-2.2.3-01",)),
        Member("wReserved1", Integer(8), "Not used.", default=0, req=("MQMR-2.2.3-01",)),
        Member("wReserved2", Integer(8), "Not used.", default=0, req=("MQMR-2.2.3-01",)),
        Member("wReserved3", Integer(32), "Not used.", default=0, req=("MQMR-2.2.3-01",)),
        Member(
            "value",
            Union(  # MQMR-2.2.3-02, MQMR-2.2.3-03
                Integer(16),
                "vt",
                arms,
                refused,
                unequal="MQMR-2.2.3-05",
                unknown="MQMR-2.2.3-04",
                forbidden="MQMR-2.2.3-09",
            ),
            "The value, by vt.",
            default=None,
            req=("MQMR-2.2.3-04",),
        ),
    )


def _propvariant() -> tuple[Structure, dict[int, Member | None]]:
    """Return the structure with its nested ones, and the arms of its union: MQMR-2.2.3-09."""
    scalars = _arms()
    innermost = Structure("PROPVARIANT", "[MS-MQMQ] 2.2.13", _members(scalars), "The value of a property.")
    vector = _vector("CAPROPVARIANT", innermost, "The values.")
    structure, arms = innermost, scalars
    for _ in range(DEPTH_MAX):
        # The values are of the same class on each level.
        same = vector.with_members(_vector("CAPROPVARIANT", structure, "The values.").members)
        nested = Member("capropvar", same, "Nested values.")
        arms = {**scalars, _VARIANTS: nested}
        structure = innermost.with_members(_members(arms))
    return structure, arms


PROPVARIANT, ARMS = _propvariant()
"""The structure, and the arms of its union by vt: None for types without a value."""
NULL: Final = PROPVARIANT.value(vt=int(VarEnum.VT_NULL))
"""The value before a call, and of a property that does not apply: MQMR-3.1.4.1-06, MQMR-3.1.4.1-47."""


def variant(vt: int, value: Any = None) -> Any:
    """Return a PROPVARIANT.

    Args:
        vt: its type, a VARENUM, with VT_VECTOR for several values.
        value: an int, text, `bytes`, UUID, a sequence of them for a vector (of PROPVARIANTs for one of
            variants), or None for no value.

    Raises KeyError for a type that the structure has not.
    """
    arm = ARMS[vt]
    if arm is None:
        return PROPVARIANT.value(vt=vt)
    match arm.type:
        case Structure(name="BLOB"):
            value = BLOB.value(cbSize=len(value), pBlobData=bytes(value))
        case Structure() as vector:
            elements = bytes(value) if vt == _VECTOR | _V.VT_UI1 else tuple(value)
            value = vector.value(cElems=len(elements), pElems=elements)
    return PROPVARIANT.value(vt=vt, value=value)


def plain(value: Any) -> Any:
    """Return the value of a PROPVARIANT as `variant` takes it; None for VT_NULL, VT_EMPTY and null pointers.

    A vector is a tuple; the nested PROPVARIANTs of one are plain values themselves. Text that is not
    well-formed UTF-16 is `bytes`.
    """
    arm = ARMS.get(value.vt)
    if arm is None:
        return None
    match arm.type:
        case Structure(name="BLOB"):
            return value.value.pBlobData or b""
        case Structure():
            elements: Sequence[Any] = value.value.pElems or ()
            if value.vt == _VARIANTS:
                return tuple(plain(element) for element in elements)
            return bytes(elements) if value.vt == _VECTOR | _V.VT_UI1 else tuple(elements)
    return value.value
