"""Alignment and least sizes of types in a transfer syntax: [C706] 14.2, [MS-RPCE] 2.2.5."""

from __future__ import annotations

from functools import cache

from msmqwire.rpc.ndr.types import (
    ConformantArray,
    ConformantBytes,
    ConformantVaryingArray,
    Enum,
    FixedBytes,
    Guid,
    Handle,
    Integer,
    Pointer,
    Reference,
    Structure,
    Type,
    Union,
    WideString,
    hoisted,
)
from msmqwire.rpc.ndr.wire import Syntax

GUID_SIZE = 16  # MQRR-2.2.2-01
HANDLE_SIZE = 20


@cache
def alignment(node: Type, syntax: Syntax) -> int:
    """Return the multiple on which a value of the type begins, inside a structure or on its own."""
    match node:
        case Integer():
            return node.size
        case Enum():
            return syntax.enum
        case FixedBytes():
            return 1
        case Guid() | Handle():
            return 4  # MQRR-2.2.2-01
        case Pointer() | ConformantBytes() | WideString():
            return syntax.word
        case ConformantArray() | ConformantVaryingArray():
            return max(syntax.word, alignment(node.element, syntax))
        case Reference():
            return alignment(node.target, syntax)
        case Structure():
            inside = node.members[:-1] if hoisted(node) else node.members
            return max((alignment(member.type, syntax) for member in inside), default=1)
        case Union():
            arms = [alignment(arm.type, syntax) for arm in node.arms.values() if arm is not None]
            return max([alignment(node.discriminant, syntax), *arms])


@cache
def least_size(node: Type, syntax: Syntax) -> int:
    """Return the fewest bytes that a value takes where it is declared, padding and pointees aside."""
    match node:
        case Integer() | FixedBytes():
            return node.size
        case Enum():
            return syntax.enum
        case Guid():
            return GUID_SIZE
        case Handle():
            return HANDLE_SIZE
        case Pointer() | ConformantBytes() | ConformantArray():
            return syntax.word
        case WideString() | ConformantVaryingArray():
            return 3 * syntax.word
        case Reference():
            return least_size(node.target, syntax)
        case Structure():
            return sum(least_size(member.type, syntax) for member in node.members)
        case Union():
            return least_size(node.discriminant, syntax)
