"""The rows of the embedded directory: attributes as JSON, typed by the defaults of the elements."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final
from uuid import UUID

from msmqwire.names import parse_path_name
from msmqwire.qm.directory.attributes import ATTRIBUTES, TYPES
from msmqwire.qm.model.directory_objects import DirectoryObject, RoutingLink
from msmqwire.qm.model.enumerations import DirectoryServerType
from msmqwire.qm.model.message import NULL_GUID

_OPTIONAL: Final[Mapping[str, Callable[[Any], Any]]] = {
    "directory_server_type": DirectoryServerType,
    "multicast_address": str,
}
"""Readers of the attributes that may be None."""
_BYTES_LISTS: Final = {"certificate_digest_list", "groups"}
"""The attributes that are lists of bytes; other lists are of GUIDs."""


def _reader(attribute: str, default: object) -> Callable[[Any], Any]:
    """Return the function that reads the values of an attribute, which has the type of its default."""
    if default is None:
        read_value = _OPTIONAL[attribute]
        return lambda value: None if value is None else read_value(value)
    if isinstance(default, list):  # DMPR-3.1.1.1-14 to -17, DMPR-3.1.1.8-04
        # DMPR-3.1.1.1-14 to -17, DMPR-3.1.1.8-04
        read_member = bytes.fromhex if attribute in _BYTES_LISTS else UUID
        return lambda value: [read_member(member) for member in value]
    return bytes.fromhex if isinstance(default, bytes) else type(default)


def _readers(kind: str) -> dict[str, Callable[[Any], Any]]:
    defaults = TYPES[kind](NULL_GUID)
    return {
        name: _reader(attribute, getattr(defaults, attribute)) for name, attribute in ATTRIBUTES[kind].items()
    }


_ATTRIBUTE_READERS: Final = {kind: _readers(kind) for kind in ATTRIBUTES}


def _to_json(value: object) -> object:
    match value:
        case list():
            return [_to_json(member) for member in value]
        case Enum():
            return value.value
        case bytes():
            return value.hex()
        case UUID():
            return str(value)
    return value


def write(attributes: Mapping[str, object]) -> str:
    """Return the row of an object with these attributes."""
    return json.dumps({name: _to_json(value) for name, value in attributes.items()})


def read(object_type: str, row: str) -> dict[str, object]:
    """Return the attributes of a row.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: it is not a row of such an object.
    """
    readers = _ATTRIBUTE_READERS[object_type]
    return {name: readers[name](value) for name, value in json.loads(row).items()}


NAMED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "QueueManager": ("ComputerName",),
    "Queue": ("Pathname",),
    "Enterprise": (),
    "Site": ("Name",),  # DMPR-3.1.1.7-01
    "RoutingLink": ("Site1Identifier", "Site2Identifier"),  # DMPR-3.1.1.8-03
    "ConnectedNetwork": ("Name",),
    "User": ("SecurityIdentifier",),
}
"""The attributes that name an object uniquely within its type: [MS-MQDSSM] 2.2.1. There is one Enterprise."""


def name_of(object_type: str, attributes: Mapping[str, object]) -> str | None:
    """Return the name of an object, unique within its type; None if it has none."""
    named_by = [attributes.get(name) for name in NAMED_BY[object_type]]
    if not all(named_by) or NULL_GUID in named_by:
        return None
    name = "".join(str(_to_json(value)) for value in named_by)
    # DMPR-3.1.1.7-01
    return name.replace("-", "") if object_type == RoutingLink.__name__ else name.casefold()


def full_path(object_type: str, attributes: Mapping[str, object]) -> str:
    """Return the distinguished name of an object, without a root: [MS-MQDSSM] 2.2.1.

    Raises:
        InvalidName: it is a queue whose path name is invalid.
    """
    services = "CN=MsmqServices,CN=Services,CN=Configuration"
    match object_type:
        case "QueueManager":
            return f"CN=msmq,CN={_escape(attributes['ComputerName'])},CN=Computers"
        case "Queue":
            path = parse_path_name(str(attributes["Pathname"]))
            return f"CN={_escape(path.queue)},CN=msmq,CN={_escape(path.computer)},CN=Computers"
        case "Site":
            return f"CN={_escape(attributes['Name'])},CN=Sites,CN=Configuration"  # DMPR-3.1.1.7-04
        case "RoutingLink":
            return f"CN={name_of(object_type, attributes)},{services}"  # DMPR-3.1.1.8-01
    return ""


def _escape(value: object) -> str:
    """Escape a value for a distinguished name, as in RFC 4514."""
    return "".join(f"\\{character}" if character in '\\",+;<>=#' else character for character in str(value))


def element(object_type: str, attributes: Mapping[str, object]) -> DirectoryObject:
    """Return an element with these attributes."""
    names = ATTRIBUTES[object_type]
    return TYPES[object_type](**{names[name]: value for name, value in attributes.items()})  # type: ignore[arg-type]
