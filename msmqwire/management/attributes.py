"""Attributes of a call of queue management, by the names of columns.

An answer has the attributes of its call, where that is known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from msmqwire.management.constants import action_of
from msmqwire.management.management_packet import ManagementPacket, iter_values, plain_json


def attributes(_packet: ManagementPacket) -> Mapping[str, Callable[[ManagementPacket], Any]]:
    """Return the attributes of packets, by name, each with the function that finds it.

    The function returns None if a packet does not tell.
    """
    return _ATTRIBUTES


def _object(packet: ManagementPacket) -> str | None:
    asked = packet.asked
    return None if asked is None else asked.object


def _action(packet: ManagementPacket) -> str | None:
    """Return the action in capitals where it is one of the interface, else as it came."""
    asked = packet.asked
    if asked is None or not asked.action:
        return None
    return str(action_of(asked.action) or asked.action)


def _ids(packet: ManagementPacket) -> str | None:
    return ",".join(str(one.number) for one in packet.properties) or None


def _names(packet: ManagementPacket) -> str | None:
    return ",".join(one.short_name for one in packet.properties) or None


def _values(packet: ManagementPacket) -> str | None:
    values = {one.short_name: plain_json(one.value) for one in iter_values(packet)}
    return json.dumps(values, ensure_ascii=False) if values else None


def _user(packet: ManagementPacket) -> str | None:
    return None if packet.security is None else packet.security.user or None


_ATTRIBUTES: Final[Mapping[str, Callable[[ManagementPacket], Any]]] = MappingProxyType(
    {
        "managed_object": _object,
        "managed_queue": lambda packet: packet.queue or None,
        "management_action": _action,
        "property_ids": _ids,
        "property_names": _names,
        "property_values": _values,
        "management_status": lambda packet: packet.status,
        "management_user": _user,
    }
)
