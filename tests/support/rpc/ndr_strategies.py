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


def _counts(declaration: Declaration) -> dict[str, st.SearchStrategy[int]]:
    """By the name of each count the lengths that its arrays may have: its range, up to three."""
    names = {_count(member.type) for member in declaration.members} - {""}
    types = {member.name: member.type for member in declaration.members if member.name in names}
    allowed = {name: getattr(node, "values", None) or range(4) for name, node in types.items()}
    return {name: st.integers(values[0], values[0] + 2) for name, values in allowed.items()}


@st.composite
def _members(draw: st.DrawFn, declaration: Declaration) -> dict[str, Any]:
    switches = {
        m.type.switch_is: sorted(m.type.arms) for m in declaration.members if isinstance(m.type, Union)
    }
    members: dict[str, Any] = {}
    counts = {name: draw(lengths) for name, lengths in _counts(declaration).items()}
    for member in declaration.members:
        node = member.type
        if isinstance(node, Union):
            arm = node.arms[members[node.switch_is]]
            members[member.name] = None if arm is None else draw(_value(arm.type))
        elif member.name in switches:
            members[member.name] = int(draw(st.sampled_from(switches[member.name])))
        else:
            members[member.name] = draw(_value(node, counts.get(_count(node))))
    return {**members, **counts}


def _value(node: Type, length: int | None = None) -> st.SearchStrategy[Any]:
    """Values of a type; those of an array with a count have this length."""
    least, most = (0, 3) if length is None else (length, length)
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
            return st.binary(min_size=least, max_size=most)
        case WideString():
            return TEXTS
        case ConformantArray():
            return st.lists(_value(node.element), min_size=least, max_size=most).map(tuple)
        case ConformantVaryingArray():
            most = min(most, node.most)
            return st.lists(_value(node.element), min_size=min(least, most), max_size=most).map(tuple)
        case Pointer():
            pointee = _value(node.target, length)
            return pointee if length else st.none() | pointee
        case Reference():
            return _value(node.target, length)
        case Structure():
            return values(node)
    raise AssertionError(node)
