"""Options that a folder keeps for later starts: hosts, routes and settings. Those of ``serve`` come first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import ip_address
from typing import Any, Final
from uuid import UUID

from msmqwire.errors import InvalidValue
from msmqwire.names.nearest import unknown_name
from msmqwire.qm.model.tables import Table
from msmqwire.qm.runtime.named_values import named_values
from msmqwire.service.restoring import restoring
from msmqwire.service.store import Store

ROW: Final = b"KeptOptions"
_NAME_MAX: Final = 255
Host = tuple[str, int | None]
"""The address of a computer, and its TCP port; None for the usual one."""


@dataclass(frozen=True)
class KeptOptions:
    """The options that a folder keeps.

    Attributes:
        hosts: by name or GUID in lower case, where a computer is reached: a GUID is a fixed route.
        settings: by name, the texts of settings and limits.
    """

    hosts: Mapping[str, Host] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)

    def row(self) -> bytes:
        """Return the row of the store."""
        return json.dumps(
            {"hosts": dict(self.hosts), "settings": dict(self.settings)}, sort_keys=True
        ).encode()

    @classmethod
    def read(cls, store: Store) -> KeptOptions:
        """Return what a store keeps. Raises StoreDamaged."""
        row = store.row(Table.META, ROW)
        if row is None:
            return cls()
        with restoring(store):
            content = json.loads(row)
            hosts = {name: (str(address), port) for name, (address, port) in content["hosts"].items()}
            return cls(hosts, dict(content["settings"]))


def is_route(name: str) -> bool:
    """Whether a name of a host is the GUID of a queue manager, to which a fixed route leads."""
    try:
        UUID(name)
    except ValueError:
        return False
    return True


def check_host(name: object, address: object, port: object, path: str) -> tuple[str, Host]:
    """Return the name of a host in lower case, and where it is reached. Raises InvalidValue."""
    for value, member in ((name, "name"), (address, "address")):
        if (
            not isinstance(value, str)
            or not 0 < len(value) <= _NAME_MAX
            or not all(char.isascii() and (char.isalnum() or char in "-_.:") for char in value)
        ):
            raise InvalidValue("not a name or address of a computer", path=f"{path}.{member}")
    assert isinstance(name, str)
    assert isinstance(address, str)
    if ":" in address:
        try:
            ip_address(address)
        except ValueError:
            raise InvalidValue("not a name or address of a computer", path=f"{path}.address") from None
    if port is not None and (isinstance(port, bool) or not isinstance(port, int) or not 0 < port <= 0xFFFF):
        raise InvalidValue("not a port, 1 to 65535", path=f"{path}.port")
    return name.lower(), (address, port)


def setting_text(name: object, value: object, path: str) -> str:
    """Return the text of a setting given as JSON, checked. Raises InvalidValue."""
    known = named_values()
    if not isinstance(name, str) or name not in known:
        see = "docs/settings.md has all"
        unknown = unknown_name(str(name)[:_NAME_MAX], known, "setting", see=see)
        raise InvalidValue(unknown.why, path=f"{path}.name")
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, list) and all(isinstance(one, int) and not isinstance(one, bool) for one in value):
        text = ",".join(str(one) for one in value[:1000])
    elif isinstance(value, (int, float)):
        text = repr(value) if abs(value) < 1 << 64 else "too large"
    elif isinstance(value, str):
        text = value
    else:
        raise InvalidValue(
            "neither a number, a text, true, false nor a list of numbers", path=f"{path}.value"
        )
    try:
        known[name].parse(text)
    except InvalidValue as exc:
        raise InvalidValue(exc.why, path=f"{path}.value") from None
    return text


def setting_json(value: Any) -> Any:
    """Return the value of a setting as JSON has it."""
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value
