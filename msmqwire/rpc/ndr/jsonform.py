"""Values of NDR types as JSON-ready data and back: the names of the IDL, GUIDs and bytes as text.

A context handle is ``{"attributes", "uuid"}``. An arm stands under its own name beside the members of the
structure with the union. Text that is not well-formed UTF-16 is ``{"utf16le": hex}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from msmqwire.errors import InvalidValue
from msmqwire.rpc.handles import ContextHandle
from msmqwire.rpc.ndr.types import (
    ConformantArray,
    ConformantBytes,
    ConformantVaryingArray,
    Declaration,
    FixedBytes,
    Guid,
    Handle,
    Pointer,
    Reference,
    Structure,
    Type,
    Union,
)


def to_json(declaration: Declaration, value: Any) -> dict[str, Any]:
    """Return the members of a value as JSON-ready data."""
    result: dict[str, Any] = {}
    for member in declaration.members:
        node, content = member.type, getattr(value, member.name)
        if isinstance(node, Union):
            arm = node.arms[getattr(value, node.switch_is)]
            if arm is not None:
                result[arm.name] = _to_json(arm.type, content)
        else:
            result[member.name] = _to_json(node, content)
    return result


def _to_json(node: Type, value: Any) -> Any:
    match node:
        case Pointer() | Reference():
            return None if value is None else _to_json(node.target, value)
        case Structure():
            return to_json(node, value)
        case ConformantArray() | ConformantVaryingArray():
            return [_to_json(node.element, item) for item in value]
        case Handle():
            return {"attributes": value.attributes, "uuid": str(value.uuid)}
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bytes):
        return value.hex() if isinstance(node, (FixedBytes, ConformantBytes)) else {"utf16le": value.hex()}
    return value


def from_json(declaration: Declaration, data: Any) -> dict[str, Any]:
    """Return the members in such an object, for building; members may be left out.

    Raises InvalidValue with the path of the part that is not such data.
    """
    return _members(declaration, data, declaration.name)


def _members(declaration: Declaration, data: Any, path: str) -> dict[str, Any]:
    if not isinstance(data, Mapping):
        raise InvalidValue("not an object", path=path)
    left, result = dict(data), {}
    for member in declaration.members:
        node, name, target = member.type, member.name, member.type
        if isinstance(node, Union):
            tag = data.get(node.switch_is)
            arm = node.arms.get(tag) if isinstance(tag, int) else None
            if arm is None:
                continue
            name, target = arm.name, arm.type
        if name in left:
            result[member.name] = _from_json(target, left.pop(name), f"{path}.{name}")
    for name in left:
        raise InvalidValue("there is no such member", path=f"{path}.{name}"[:200])
    return result


def _from_json(node: Type, data: Any, path: str) -> Any:
    match node:
        case Pointer() | Reference():
            return None if data is None else _from_json(node.target, data, path)
        case Structure():
            return _members(node, data, path)
        case ConformantArray() | ConformantVaryingArray() if isinstance(data, list):
            return tuple(_from_json(node.element, item, f"{path}[{at}]") for at, item in enumerate(data))
        case Handle() if isinstance(data, Mapping):
            return ContextHandle(data.get("attributes", 0), _guid(data.get("uuid"), f"{path}.uuid"))
        case Guid():
            return _guid(data, path)
        case FixedBytes() | ConformantBytes():
            return _bytes(data, path)
    return _bytes(data.get("utf16le"), path) if isinstance(data, Mapping) else data


def _guid(data: Any, path: str) -> UUID:
    try:
        return UUID(data)
    except (ValueError, TypeError, AttributeError):
        raise InvalidValue(f"{data!r:.100} is not a GUID", path=path) from None


def _bytes(data: Any, path: str) -> bytes:
    try:
        return bytes.fromhex(data)
    except (ValueError, TypeError):
        raise InvalidValue(f"{data!r:.100} is not hex", path=path) from None
