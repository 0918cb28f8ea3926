"""PROPVARIANT and the counted arrays, property values in remote calls: [MS-MQMQ] 2.2.12 to 2.2.17."""

from __future__ import annotations

from functools import cache
from typing import Final

from msmqwire.headers.ndr import NDR_STRING, ndr_align, pointee, referent
from msmqwire.schema import Each, Header, Part, Ref, align, choice, guid, raw, repeat, sub, uint

VT_VECTOR: Final = 0x1000
VARIANT_DEPTH_MAX: Final = 3
"""The nesting limit of vectors of variants; the properties of [MS-MQMQ] 2.3.12.25 need two levels."""

_NDR: Final = "[MS-RPCE] 2.2.4"

ULARGE_INTEGER: Final = Header(
    "ULARGE_INTEGER",
    "[MS-MQMQ] 2.2.17",
    (uint(64, "QuadPart", "The number.", req="MQMQ-2.2.17-01"),),
    "An unsigned 64-bit integer.",
    size=8,
)

BLOB_DATA: Final = "BLOB"


def _element(name: str, part: Part) -> Header:
    return Header(f"{name} element", "[MS-MQMQ] 2.2.16", (part,), f"An element of a {name}.")


_VALUES: Final[dict[str, Part]] = {  # the elements of the counted arrays
    "CAUI": uint(16, "Value"),  # MQMQ-2.2.16.2-01
    "CAL": uint(32, "Value", signed=True),  # MQMQ-2.2.16.3-01
    "CAUL": uint(32, "Value"),  # MQMQ-2.2.16.4-01
    "CACLSID": guid("Value"),  # MQMQ-2.2.16.6-01
}
_ELEMENTS: Final = {
    "CAUH": ULARGE_INTEGER,  # MQMQ-2.2.16.5-01
    **{name: _element(name, part) for name, part in _VALUES.items()},
}
_GUID_POINTEE: Final = Header(
    "GUID pointee", _NDR, (ndr_align(4), guid("Value", "The GUID.")), "A GUID that a pointer points to."
)
_STRING_POINTER: Final = _element("CALPWSTR", referent("pwszVal", "a string."))


@cache
def _array(name: str, count: str, depth: int) -> Header:
    """Return the pointee of a counted array.

    `count` is the field that counts the elements: cElems, or MaximumCount if cElems belongs to an element
    of an enclosing array.
    """
    maximum = uint(32, "MaximumCount", meaning="Elements.", same_as="" if count == "MaximumCount" else count)
    parts: tuple[Part, ...] = (ndr_align(4), maximum)
    if name in ("CAUB", BLOB_DATA):
        parts += (raw("Elements", Ref(count), "The bytes."),)  # MQMQ-2.2.16.1-01
    elif name == "CALPWSTR":
        parts += (
            repeat("Elements", count, _STRING_POINTER, "Pointers to the strings."),  # MQMQ-2.2.16.7-01
            Each("Strings", "Elements", "", {0: ("pwszVal", NDR_STRING, "")}, meaning="The strings."),
        )
    elif name == "CAPROPVARIANT":
        parts += (
            repeat(
                "Elements",
                count,
                _variant(depth + 1, inline=True),  # MQMQ-2.2.16.8-01
                "The values, without the data that they point to.",
            ),
            Each(
                "Pointees",
                "Elements",
                "vt",
                _pointees(depth + 1),
                meaning="The data that the values point to.",
            ),
        )
    else:
        item = _ELEMENTS[name]
        if item is ULARGE_INTEGER:  # MQMQ-2.2.16.5-01
            gap = Header(
                f"{name} alignment",
                _NDR,
                (ndr_align(8),),
                "Bytes up to the alignment of the elements.",
                variant=f"{count}{depth}",
            )
            parts += (sub(gap, "Alignment"),)
        parts += (repeat("Elements", count, item, "The elements."),)
    return Header(f"{name} array", _NDR, parts, f"The elements of a {name}.", variant=f" {count} {depth}")


def _counted(name: str, section: str, req: str) -> Header:
    """Return a counted array by itself: a count, a pointer and the elements."""
    return Header(
        name,
        section,
        (
            uint(32, "cElems", meaning="Elements.", req=req),  # MQMQ-2.2.16-01
            referent("pElems", "the elements."),  # MQMQ-2.2.16-01
            pointee("pElems", sub(_array(name, "cElems", 0), "Elements")),  # MQMQ-2.2.16-01
        ),
        "A counted array.",
    )


_SCALARS: Final = {  # vt: member, bits, signed, requirement
    16: ("cVal", 8, True, "MQMQ-2.2.13.1-06"),
    17: ("bVal", 8, False, "MQMQ-2.2.13.1-07"),
    2: ("iVal", 16, True, "MQMQ-2.2.13.1-08"),
    18: ("uiVal", 16, False, "MQMQ-2.2.13.1-09"),
    3: ("lVal", 32, True, "MQMQ-2.2.13.1-10"),
    19: ("ulVal", 32, False, "MQMQ-2.2.13.1-11"),
    20: ("hVal", 64, True, "MQMQ-2.2.13.1-12"),
    21: ("uhVal", 64, False, "MQMQ-2.2.13.1-13"),
    11: ("boolVal", 16, True, "MQMQ-2.2.13.1-14"),  # MQMQ-2.2.14-03
}
_VECTORS: Final = {  # vt without VT_VECTOR: member, counted array, requirement
    17: ("caub", "CAUB", "MQMQ-2.2.13.1-18"),
    18: ("caui", "CAUI", "MQMQ-2.2.13.1-19"),
    3: ("cal", "CAL", "MQMQ-2.2.13.1-20"),
    19: ("caul", "CAUL", "MQMQ-2.2.13.1-21"),
    21: ("cauh", "CAUH", "MQMQ-2.2.13.1-22"),
    72: ("cauuid", "CACLSID", "MQMQ-2.2.13.1-23"),
    31: ("calpwstr", "CALPWSTR", "MQMQ-2.2.13.1-24"),
    12: ("capropvar", "CAPROPVARIANT", "MQMQ-2.2.13.1-25"),
}


def _arms(depth: int, inline: bool) -> dict[int, Header | None]:
    """Return the members of the union; `inline` omits their pointees."""
    where = f" {depth}{' inline' if inline else ''}"
    arms: dict[int, Header | None] = {0: None, 1: None}  # MQMQ-2.2.13.1-05, MQMQ-2.2.13.1-26

    def arm(vt: int, name: str, parts: tuple[Part, ...], target: Part) -> None:
        held = parts if inline else (*parts, target)
        arms[vt] = Header(f"PROPVARIANT {name}", "[MS-MQMQ] 2.2.13.1", held, variant=where)

    for vt, (member, bits, signed, req) in _SCALARS.items():
        value = uint(bits, member, "The value.", signed=signed, req=req)
        arms[vt] = Header(f"PROPVARIANT {member}", "[MS-MQMQ] 2.2.13.1", (value,), variant=where)
    string, uuid = sub(NDR_STRING, "String"), sub(_GUID_POINTEE, "Guid")
    arm(
        31, "pwszVal", (referent("pwszVal", "a string.", req="MQMQ-2.2.13.1-17"),), pointee("pwszVal", string)
    )
    arm(72, "puuid", (referent("puuid", "a GUID.", req="MQMQ-2.2.13.1-15"),), pointee("puuid", uuid))
    counts = {65: ("blob", BLOB_DATA, "cbSize", "pBlobData", "MQMQ-2.2.13.1-16")}
    # MQMQ-2.2.13.1-26
    counts |= {VT_VECTOR | vt: (m, n, "cElems", "pElems", req) for vt, (m, n, req) in _VECTORS.items()}
    for vt, (member, name, count, pointer, req) in counts.items():
        if name == "CAPROPVARIANT" and depth >= VARIANT_DEPTH_MAX:
            continue
        parts = (uint(32, count, meaning="Elements.", req=req), referent(pointer, "the elements."))
        if inline:
            arm(vt, member, parts, parts[0])
        else:
            arm(vt, member, parts, pointee(pointer, sub(_array(name, count, depth), "Elements")))
    return arms  # no other: MQMQ-2.2.13.1-26


@cache
def _pointees(depth: int) -> dict[int, tuple[str, Header, str]]:
    """Return the pointees of values in an array, by vt: pointer, structure, counting field."""
    pointees = {
        31: ("_varUnion.pwszVal", NDR_STRING, ""),
        72: ("_varUnion.puuid", _GUID_POINTEE, ""),
        65: ("_varUnion.pBlobData", _array(BLOB_DATA, "MaximumCount", depth), "_varUnion.cbSize"),
    }
    for vt, (_, name, _req) in _VECTORS.items():
        if name != "CAPROPVARIANT" or depth < VARIANT_DEPTH_MAX:
            array = _array(name, "MaximumCount", depth)
            pointees[VT_VECTOR | vt] = ("_varUnion.pElems", array, "_varUnion.cElems")
    return pointees


@cache
def _variant(depth: int, *, inline: bool) -> Header:
    return Header(
        "PROPVARIANT",
        "[MS-MQMQ] 2.2.13.1",
        (
            ndr_align(8),
            uint(16, "vt", "Type of the value, VT_*.", req=("MQMQ-2.2.13.1-01", "MQMQ-2.2.12.1-01")),
            uint(8, "wReserved1", "0; ignored.", req="MQMQ-2.2.13.1-02"),
            uint(8, "wReserved2", "0; ignored.", req="MQMQ-2.2.13.1-02"),
            uint(32, "wReserved3", "0; ignored.", req="MQMQ-2.2.13.1-03"),
            uint(16, "vt_", "Discriminant of the union: vt again.", same_as="vt", req="MQMQ-2.2.13.1-27"),
            align("UnionPadding", 8, of="*", req="MQMQ-2.2.13.1-27"),  # before an empty member too
            choice("_varUnion", "vt", _arms(depth, inline), "The value, by vt.", req="MQMQ-2.2.13.1-04"),
        ),
        "A property value.",
        variant=f" {depth}" if inline else "",
    )


BLOB: Final = Header(
    "BLOB",
    "[MS-MQMQ] 2.2.15",
    (
        uint(32, "cbSize", meaning="Bytes.", unit="bytes", req="MQMQ-2.2.15-01"),
        referent("pBlobData", "the bytes."),
        pointee("pBlobData", sub(_array(BLOB_DATA, "cbSize", 0), "Elements")),
    ),
    "Counted bytes.",
)
PROPVARIANT: Final = _variant(0, inline=False)  # MQMQ-2.2.13.2-01
CAUB: Final = _counted("CAUB", "[MS-MQMQ] 2.2.16.1", "MQMQ-2.2.16.1-01")
CAUI: Final = _counted("CAUI", "[MS-MQMQ] 2.2.16.2", "MQMQ-2.2.16.2-01")
CAL: Final = _counted("CAL", "[MS-MQMQ] 2.2.16.3", "MQMQ-2.2.16.3-01")
CAUL: Final = _counted("CAUL", "[MS-MQMQ] 2.2.16.4", "MQMQ-2.2.16.4-01")
CAUH: Final = _counted("CAUH", "[MS-MQMQ] 2.2.16.5", "MQMQ-2.2.16.5-01")
CACLSID: Final = _counted("CACLSID", "[MS-MQMQ] 2.2.16.6", "MQMQ-2.2.16.6-01")
CALPWSTR: Final = _counted("CALPWSTR", "[MS-MQMQ] 2.2.16.7", "MQMQ-2.2.16.7-01")
CAPROPVARIANT: Final = _counted("CAPROPVARIANT", "[MS-MQMQ] 2.2.16.8", "MQMQ-2.2.16.8-01")
