"""Parts of NDR, the transfer syntax of remote calls, for the structures of [MS-MQMQ] 2.2.

Structures with pointers travel only in remote calls: QUEUE_FORMAT, PROPVARIANT and their parts. They are
declared here as NDR (the 32-bit transfer syntax) lays them out on the wire: a unique pointer is a
referent id, 0 for null, and its pointee follows the structure; the pointees of an array follow the
array. All alignment counts from the outermost structure.
"""

from __future__ import annotations

from typing import Final

from msmqwire.schema import Header, Part, Raw, Ref, Sub, UInt, align, maybe, text, uint
from msmqwire.schema.complete import REFERENT


def ndr_align(to: int) -> Part:
    """Return the alignment of the next member, from the start of the outermost structure."""
    return align("Padding", to, of="*")


def referent(name: str, meaning: str = "", *, req: str = "") -> UInt:
    """Return the referent id of a unique pointer; 0 is a null pointer."""
    return uint(32, name, f"Pointer: {meaning}" if meaning else "Pointer.", req=req)


def pointee(pointer: str, target: Sub | Raw) -> Part:
    """Return the pointee of a pointer, present unless the pointer is null."""
    return maybe(pointer, target, mark=REFERENT)


NDR_STRING: Final = Header(
    "NdrString",
    "[MS-RPCE] 2.2.4",
    (
        ndr_align(4),
        uint(32, "MaximumCount", "Characters with the null.", unit="WCHAR"),
        uint(32, "Offset", "0.", must=frozenset({0})),
        uint(32, "ActualCount", "Characters with the null.", unit="WCHAR", same_as="MaximumCount"),
        text("String", Ref("MaximumCount", times=2), "The text.", strict=True),
    ),
    "A null-terminated wide string that a pointer points to.",
)
