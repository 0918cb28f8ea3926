"""Hosts, routes and settings in definitions: the options that a folder keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from msmqwire.errors import InvalidValue
from msmqwire.qm.runtime.definitions.changes import CHANGE, CREATE, Plan, members
from msmqwire.qm.runtime.kept_options import (
    Host,
    KeptOptions,
    check_host,
    is_route,
    setting_json,
    setting_text,
)
from msmqwire.qm.runtime.named_values import named_values

_HOST: Final = ("name", "address", "port")
_SETTING: Final = ("name", "value")


def hosts(kept: KeptOptions, *, routes: bool) -> list[dict[str, Any]]:
    """Return the hosts, or the fixed routes, by name."""
    return [_item(name, kept.hosts[name]) for name in sorted(kept.hosts) if is_route(name) is routes]


def _item(name: str, host: Host) -> dict[str, Any]:
    address, port = host
    return {"name": name, "address": address} | ({} if port is None else {"port": port})


def settings(kept: KeptOptions) -> list[dict[str, Any]]:
    """Return the settings that are kept, by name."""
    known = named_values()
    return [
        {"name": name, "value": setting_json(known[name].parse(kept.settings[name]))}
        for name in sorted(kept.settings)
        if name in known
    ]


def check_hosts(plan: Plan, items: list[Any], path: str) -> None:
    """Check hosts. Raises InvalidValue."""
    _check_hosts(plan, items, path, "host")


def check_routes(plan: Plan, items: list[Any], path: str) -> None:
    """Check fixed routes. Raises InvalidValue."""
    _check_hosts(plan, items, path, "route")


def _check_hosts(plan: Plan, items: list[Any], path: str, kind: str) -> None:
    there: dict[str, Host] = {}
    for index, item in enumerate(items):
        at = f"{path}[{index}]"
        members(item, at, _HOST, ("name", "address"))
        name, host = check_host(item["name"], item["address"], item.get("port"), at)
        if is_route(name) is not (kind == "route"):
            other = "a route, to the GUID of a queue manager" if kind == "host" else "a host, with a name"
            raise InvalidValue(
                f"{name!r:.100} is {other}: it belongs in {'routes' if kind == 'host' else 'hosts'}",
                path=f"{at}.name",
            )
        if name in there:
            raise InvalidValue(f"{name!r:.100}: the {kind} is there twice", path=f"{at}.name")
        there[name] = host
        former = plan.options.hosts.get(name)
        if former != host:
            plan.add(CREATE if former is None else CHANGE, kind, name)
    plan.options = replace(plan.options, hosts={**plan.options.hosts, **there})


def check_settings(plan: Plan, items: list[Any], path: str) -> None:
    """Check settings. Raises InvalidValue."""
    there: dict[str, str] = {}
    for index, item in enumerate(items):
        at = f"{path}[{index}]"
        members(item, at, _SETTING, _SETTING)
        text = setting_text(item["name"], item["value"], at)
        name = item["name"]
        if name in there:
            raise InvalidValue(f"{name}: the setting is there twice", path=f"{at}.name")
        there[name] = text
        former = plan.options.settings.get(name)
        if former != text:
            plan.add(CREATE if former is None else CHANGE, "setting", name)
    plan.options = replace(plan.options, settings={**plan.options.settings, **there})
