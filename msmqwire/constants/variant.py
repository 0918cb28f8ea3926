"""Types of property values and of message bodies: [MS-MQMQ] 2.2.12 and 2.2.14.

The specification lists the types of properties. Applications use more in MessagePropertiesHeader.BodyType;
those are the members of section [MS-OAUT] 2.2.7.
"""

from __future__ import annotations

import re
from enum import IntEnum

VARIANT_TRUE = 0xFFFF  # MQMQ-2.2.14-01
VARIANT_FALSE = 0x0000  # MQMQ-2.2.14-02


class VarEnum(IntEnum):
    """VARENUM: the kind of value, a 16-bit number. VT_VECTOR and VT_ARRAY are added to another kind."""

    VT_EMPTY = 0  # MQMQ-2.2.12-01
    VT_NULL = 1  # MQMQ-2.2.12-02
    VT_I2 = 2  # MQMQ-2.2.12-03
    VT_I4 = 3  # MQMQ-2.2.12-04
    VT_BOOL = 11  # MQMQ-2.2.12-05
    VT_VARIANT = 12  # only with VT_VECTOR
    VT_I1 = 16  # MQMQ-2.2.12-07
    VT_UI1 = 17  # MQMQ-2.2.12-08
    VT_UI2 = 18  # MQMQ-2.2.12-09
    VT_UI4 = 19  # MQMQ-2.2.12-10
    VT_I8 = 20  # MQMQ-2.2.12-11
    VT_UI8 = 21  # MQMQ-2.2.12-12
    VT_LPWSTR = 31  # MQMQ-2.2.12-13
    VT_BLOB = 65  # MQMQ-2.2.12-14
    VT_CLSID = 72  # MQMQ-2.2.12-15
    VT_VECTOR = 0x1000  # MQMQ-2.2.12-16
    # [MS-OAUT] 2.2.7 and the property set constants of the platform, as they occur as body types.
    VT_R4 = 4
    VT_R8 = 5
    VT_CY = 6
    VT_DATE = 7
    VT_BSTR = 8  # MQMQ-2.2.12-17
    VT_DISPATCH = 9
    VT_ERROR = 10
    VT_UNKNOWN = 13
    VT_DECIMAL = 14
    VT_INT = 22
    VT_UINT = 23
    VT_LPSTR = 30
    VT_FILETIME = 64
    VT_STREAM = 66
    VT_STORAGE = 67
    VT_STREAMED_OBJECT = 68
    VT_STORED_OBJECT = 69
    VT_BLOB_OBJECT = 70
    VT_CF = 71
    VT_ARRAY = 0x2000


_NAMES = {member.value: member.name for member in VarEnum}
_NUMBER = re.compile("0|[1-9][0-9]{0,9}|0X[0-9A-F]{1,8}")
_MODIFIERS = (VarEnum.VT_VECTOR, VarEnum.VT_ARRAY)


def variant_name(value: int) -> str:
    """Return the name of a type, for instance ``VT_UI1 | VT_VECTOR``, or ``0x0300`` if it has none."""
    parts = [modifier.name for modifier in _MODIFIERS if value & modifier]
    base = _NAMES.get(value & ~(VarEnum.VT_VECTOR | VarEnum.VT_ARRAY))
    return " | ".join([base, *parts]) if base else f"0x{value:04X}"


def variant_of(text: str) -> int:
    """Return the type that a text names: ``8``, ``0x300``, ``VT_BSTR``, ``VT_UI1|VT_VECTOR``; any case.

    Raises ValueError.
    """
    value = 0
    for part in text.upper().replace("+", "|").split("|"):
        name = part.strip()
        member = VarEnum.__members__.get(name) or VarEnum.__members__.get(f"VT_{name}")
        if member is None and not _NUMBER.fullmatch(name):
            raise ValueError(f"{text!r:.80} is not a type of a body")
        value |= int(name, 0) if member is None else member
    return value
