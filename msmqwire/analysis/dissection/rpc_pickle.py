"""Pickles of calls of DCE/RPC: declarations in code are pickled by their names.

They are the procedures of interfaces, and the classes of their values, which are made when they are first
needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from msmqwire.analysis.dissection.rpc_interfaces import interfaces
from msmqwire.rpc.interface import Procedure
from msmqwire.rpc.ndr.types import Declaration

_Name = tuple[str, int, str]


def reduce(obj: Any) -> Any:
    """Return how an object is pickled; NotImplemented for any other than these."""
    if isinstance(obj, Procedure) and (place := _places().get(obj)) is not None:
        return _procedure, place
    if isinstance(obj, type) and (name := _names().get(obj)) is not None:
        return _value_class, (name,)
    return NotImplemented


def _procedure(interface: str, opnum: int) -> Procedure:
    return interfaces()[interface].interface.procedures[opnum]


def _value_class(name: _Name) -> Any:
    return _declarations()[name].value


@cache
def _places() -> dict[Procedure, tuple[str, int]]:
    """The interfaces of procedures, and their numbers."""
    return {
        procedure: (name, int(opnum))
        for name, each in interfaces().items()
        for opnum, procedure in each.interface.procedures.items()
    }


@cache
def _names() -> dict[type, _Name]:
    """The names of the classes of values."""
    return {declaration.value: name for name, declaration in _declarations().items()}


@cache
def _declarations() -> dict[_Name, Declaration]:
    """Everything declared for the procedures, by the procedure and its place there."""
    found: dict[_Name, Declaration] = {}
    for procedure, (interface, opnum) in _places().items():
        for place in ("request", "response"):
            for path, declaration in _within(getattr(procedure, place), place):
                found[interface, opnum, path] = declaration
    return found


def _within(node: Any, path: str) -> Iterator[tuple[str, Declaration]]:
    """Yield a declaration and those inside it, with their paths; nodes that are not declarations likewise."""
    if isinstance(node, Declaration):
        yield path, node
        for member in node.members:
            yield from _within(member.type, f"{path}.{member.name}")
        return
    for inner in ("target", "element"):
        if hasattr(node, inner):
            yield from _within(getattr(node, inner), path)
    for number, arm in getattr(node, "arms", {}).items():
        if arm is not None:
            yield from _within(arm.type, f"{path}.{number}")
