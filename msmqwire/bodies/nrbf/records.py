"""The enumerations of [MS-NRBF]."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final


class Record(IntEnum):
    """RecordTypeEnumeration, 2.1.2.1."""

    SERIALIZED_STREAM_HEADER = 0  # NRBF-2.6.1-02
    CLASS_WITH_ID = 1  # NRBF-2.3.2.5-01
    SYSTEM_CLASS_WITH_MEMBERS = 2  # NRBF-2.3.2.4-01
    CLASS_WITH_MEMBERS = 3  # NRBF-2.3.2.2-01
    SYSTEM_CLASS_WITH_MEMBERS_AND_TYPES = 4  # NRBF-2.3.2.3-01
    CLASS_WITH_MEMBERS_AND_TYPES = 5  # NRBF-2.3.2.1-01
    BINARY_OBJECT_STRING = 6  # NRBF-2.5.7-01
    BINARY_ARRAY = 7  # NRBF-2.4.3.1-01
    MEMBER_PRIMITIVE_TYPED = 8  # NRBF-2.5.1-01
    MEMBER_REFERENCE = 9  # NRBF-2.5.3-01
    OBJECT_NULL = 10  # NRBF-2.5.4-01
    MESSAGE_END = 11  # NRBF-2.6.3-01
    BINARY_LIBRARY = 12  # NRBF-2.6.2-01
    OBJECT_NULL_MULTIPLE_256 = 13  # NRBF-2.5.6-01
    OBJECT_NULL_MULTIPLE = 14  # NRBF-2.5.5-01
    ARRAY_SINGLE_PRIMITIVE = 15  # NRBF-2.4.3.3-01
    ARRAY_SINGLE_OBJECT = 16  # NRBF-2.4.3.2-01
    ARRAY_SINGLE_STRING = 17  # NRBF-2.4.3.4-01
    METHOD_CALL = 21  # NRBF-2.2.3.1-01
    METHOD_RETURN = 22  # NRBF-2.2.3.3-01


NAMES: Final[dict[int, str]] = {
    int(number): "".join(word.capitalize() for word in number.name.split("_")) for number in Record
} | {int(Record.METHOD_CALL): "BinaryMethodCall", int(Record.METHOD_RETURN): "BinaryMethodReturn"}
"""Records by their numbers, as the text names them."""


class Binary(IntEnum):  # NRBF-2.1.2.2-01
    """BinaryTypeEnumeration, 2.1.2.2: the type of a member or of the items of an array."""

    PRIMITIVE = 0
    STRING = 1
    OBJECT = 2
    SYSTEM_CLASS = 3
    CLASS = 4
    OBJECT_ARRAY = 5
    STRING_ARRAY = 6
    PRIMITIVE_ARRAY = 7


class Primitive(IntEnum):  # NRBF-2.1.2.3-01
    """PrimitiveTypeEnumeration, 2.1.2.3."""

    BOOLEAN = 1
    BYTE = 2
    CHAR = 3
    DECIMAL = 5
    DOUBLE = 6
    INT16 = 7
    INT32 = 8
    INT64 = 9
    SBYTE = 10
    SINGLE = 11
    TIME_SPAN = 12
    DATE_TIME = 13
    UINT16 = 14
    UINT32 = 15
    UINT64 = 16
    NULL = 17
    STRING = 18


class ArrayType(IntEnum):
    """BinaryArrayTypeEnumeration, 2.4.1.1; the last three have lower bounds."""

    SINGLE = 0
    JAGGED = 1
    RECTANGULAR = 2
    SINGLE_OFFSET = 3
    JAGGED_OFFSET = 4
    RECTANGULAR_OFFSET = 5


class Message(IntFlag):
    """MessageFlags, 2.2.1.1: where the parts of a method call or its return are."""

    NO_ARGS = 0x1
    ARGS_INLINE = 0x2
    ARGS_IS_ARRAY = 0x4
    ARGS_IN_ARRAY = 0x8
    NO_CONTEXT = 0x10
    CONTEXT_INLINE = 0x20
    CONTEXT_IN_ARRAY = 0x40
    METHOD_SIGNATURE_IN_ARRAY = 0x80
    PROPERTIES_IN_ARRAY = 0x100
    NO_RETURN_VALUE = 0x200
    RETURN_VALUE_VOID = 0x400
    RETURN_VALUE_INLINE = 0x800
    RETURN_VALUE_IN_ARRAY = 0x1000
    EXCEPTION_IN_ARRAY = 0x2000
    GENERIC_METHOD = 0x8000


ARGS = Message.NO_ARGS | Message.ARGS_INLINE | Message.ARGS_IS_ARRAY | Message.ARGS_IN_ARRAY
CONTEXT = Message.NO_CONTEXT | Message.CONTEXT_INLINE | Message.CONTEXT_IN_ARRAY
SIGNATURE = Message.METHOD_SIGNATURE_IN_ARRAY
RETURN = (
    Message.NO_RETURN_VALUE
    | Message.RETURN_VALUE_VOID
    | Message.RETURN_VALUE_INLINE
    | Message.RETURN_VALUE_IN_ARRAY
)
EXCEPTION = Message.EXCEPTION_IN_ARRAY
"""The categories of flags that 2.2.1.1 has rules for."""
