"""Objects put into each other, each at its first place, depth first; other places have references."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from operator import length_hint
from typing import Any, Final

from msmqwire.bodies import plain
from msmqwire.bodies.body import Plain
from msmqwire.bodies.limits import DICT_COST, Budget, LimitExceeded
from msmqwire.bodies.nrbf.reading import REFERENCE_COST
from msmqwire.bodies.nrbf.stream import Stream

_FEW: Final = 16
"""Members of an object that are passed over again, which takes less memory than to keep an iterator."""
_FRAME_COST: Final = 144 - REFERENCE_COST
"""Bytes of memory that an object of more members takes while it is open, less those of its reference."""
_MISSING: Final = object()
_PLACED: Final = ()
_int32: Final = struct.Struct("<i")


def assemble(stream: Stream, budget: Budget) -> Plain:
    """Return the value of a stream. The targets of its objects' references are put into them, and taken from
    the stream.
    """
    if stream.method is not None:
        holder, wrong = stream.method.whole(stream.root, stream.objects.get(stream.root))
        if wrong:
            stream.problem(wrong, "CallArray")
        _place(holder, stream, budget)
        if "signature" in holder and _count(holder["signature"]) != _count(holder["args"]):  # NRBF-2.2.3.2-06
            stream.problem("the signature has not as many items as there are arguments", "CallArray")
        return holder
    root = stream.root
    if root not in stream.objects:  # NRBF-2.6.1-05
        stream.problem(f"no object has the id {root}", "SerializationHeaderRecord.RootId", 1)
        if not stream.objects:
            return None
        root = next(iter(stream.objects))
    value: dict[str, Any] = {"": _int32.pack(root)}
    _place(value, stream, budget)
    found: Plain = value[""]
    return found


def _count(array: Any) -> int:
    """Return how many items an array has, one that is referred to as well."""
    items = array.get(plain.ITEMS) if isinstance(array, dict) else array
    return len(items) if isinstance(items, list) else 0


def _place(holder: dict[str, Any], stream: Stream, budget: Budget) -> None:
    """Put the referenced values of a container in place, with a stack of its own. A limit is a problem."""
    try:
        _place_within(holder, stream, budget)
    except LimitExceeded as exc:
        stream.problem(exc.why, "")
        _clear(holder)


def _place_within(holder: dict[str, Any], stream: Stream, budget: Budget) -> None:
    objects, leaves = stream.objects, stream.leaves
    unpack = _int32.unpack
    container: Any = holder
    rest: Any = iter(holder.items())
    containers: list[Any] = []
    # The progress in each: of an array the number of an item, of an object the name of a member, or of one of
    # many members the rest.
    rests: list[Any] = []
    wide = widest = 0
    key: Any = None
    while True:
        inner = None
        for key, value in rest:
            kind = value.__class__
            if kind is bytes:
                number = unpack(value)[0]
                found = objects.get(number, _MISSING)
                kind = found.__class__
                if kind is str:
                    budget.copied(len(found))
                    container[key] = found
                elif kind is dict or kind is list:
                    container[key] = found
                    objects[number] = _PLACED if kind is dict and plain.TYPE in found else (container, key)
                    if number not in leaves:
                        inner = found
                        break
                else:
                    container[key] = _reference(number, found, stream, budget)
            elif kind is list or (kind is dict and (plain.TYPE in value or plain.ITEMS in value)):
                # its id is that of another
                inner = value
                break
        if inner is None:
            if not containers:
                return
            container, rest = containers.pop(), rests.pop()
            kind = rest.__class__
            if kind is int:
                rest = _behind(container, rest)
            elif kind is str:
                rest = _after(container, rest)
            else:
                wide -= 1
            continue
        if container.__class__ is list:
            if key + 1 < len(container):
                containers.append(container)
                rests.append(key)
        elif length_hint(rest, 1):
            containers.append(container)
            if len(container) <= _FEW:
                rests.append(key)
            else:
                rests.append(rest)
                wide += 1
                if wide > widest:
                    widest = wide
                    budget.spend(_FRAME_COST)
        container = inner
        if inner.__class__ is dict:
            if plain.TYPE in inner:
                rest = iter(inner.items())
                continue
            container = inner[plain.ITEMS]
        rest = enumerate(container)


def _after(members: dict[str, Any], done: str) -> Iterator[tuple[str, Any]]:
    """Return the members after one."""
    rest = iter(members.items())
    for name, _ in rest:
        if name == done:
            break
    return rest


def _behind(array: list[Any], done: int) -> Iterator[tuple[int, Any]]:
    """Return the items after one, with their numbers."""
    items: Any = iter(array)
    items.__setstate__(done + 1)
    return enumerate(items, done + 1)


def _reference(number: int, found: Any, stream: Stream, budget: Budget) -> Plain:
    """Return a reference to an object that stands elsewhere, the same for all that refer to it."""
    if isinstance(found, tuple) and len(found) == 1:
        reference: Plain = found[0]
        return reference
    budget.spend(DICT_COST)
    reference = {plain.REF: number}
    if found is _MISSING:  # NRBF-2.5.3-03
        stream.problem(f"no object has the id {number}", "MemberReference.IdRef")
    elif found:  # an array, which has an id only where it is referred to
        container, key = found
        array = container[key]
        budget.spend(DICT_COST)
        if isinstance(array, list):
            container[key] = {plain.ID: number, plain.ITEMS: array}
        elif plain.BYTES in array:
            array[plain.ID] = number
        else:
            container[key] = {plain.ID: number, **array}
    stream.objects[number] = (reference,)
    return reference


def _clear(holder: dict[str, Any]) -> None:
    """Replace references that no limit leaves room for with null."""
    containers: list[Any] = [holder]
    while containers:
        container = containers.pop()
        for key, value in container.items() if isinstance(container, dict) else enumerate(container):
            if isinstance(value, bytes):
                container[key] = None
            elif isinstance(value, dict | list):
                containers.append(value)
