"""Strategies for values of NDR types, by a walk over their declarations."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from msmqwire.rpc.handles import ContextHandle
from msmqwire.rpc.ndr import (
    ConformantArray,
    ConformantBytes,
    ConformantVaryingArray,
    Declaration,
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
)

SYNTAX_ENUM_MAX = 0x7FFF  # of either transfer syntax
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


def values(declaration: Declaration) -> st.SearchStrategy[Any]:
    """Well-formed values of a stub or structure: counts agree with their arrays."""
    return _members(declaration).map(lambda members: declaration.value(**members))


def _count(node: Type) -> str:
    """The name of the sibling that counts the elements of an array; empty for another type."""
    while isinstance(node, (Pointer, Reference)):
        node = node.target
    match node:
        case ConformantArray() | ConformantBytes():
            return node.size_is
        case ConformantVaryingArray():
            return node.length_is
    return ""


@st.composite
def _members(draw: st.DrawFn, declaration: Declaration) -> dict[str, Any]:
    switches = {
        m.type.switch_is: sorted(m.type.arms) for m in declaration.members if isinstance(m.type, Union)
    }
    members: dict[str, Any] = {}
    counts: dict[str, int] = {}
    for member in declaration.members:
        node = member.type
        if isinstance(node, Union):
            arm = node.arms[members[node.switch_is]]
            members[member.name] = None if arm is None else draw(_value(arm.type))
        elif member.name in switches:
            members[member.name] = int(draw(st.sampled_from(switches[member.name])))
        else:
            members[member.name] = content = draw(_value(node))
            if count := _count(node):
                counts[count] = len(content or ())
    return {**members, **counts}


def _value(node: Type) -> st.SearchStrategy[Any]:
    match node:
        case Integer(values=None):
            return st.integers(node.least, node.most)
        case Integer(values=allowed):
            return st.integers(allowed[0], allowed[-1])
        case Enum():
            return st.integers(0, SYNTAX_ENUM_MAX)
        case Guid():
            return st.uuids()
        case Handle():
            return st.builds(ContextHandle, st.integers(0, 0xFFFFFFFF), st.uuids())
        case FixedBytes():
            return st.binary(min_size=node.size, max_size=node.size)
        case ConformantBytes():
            return st.binary(max_size=9)
        case WideString():
            return TEXTS
        case ConformantArray():
            return st.lists(values(node.element), max_size=3).map(tuple)
        case ConformantVaryingArray():
            return st.lists(_value(node.element), max_size=min(3, node.most)).map(tuple)
        case Pointer():
            return st.none() | _value(node.target)
        case Reference():
            return _value(node.target)
        case Structure():
            return values(node)
    raise AssertionError(node)
