"""Layers of scapy made as its users make them, by constructors and ``/``, from values of the schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from scapy.layers.dcerpc import DCE_RPC_INTERFACES
from scapy.packet import NoPayload, Raw
from scapy.packet import Packet as ScapyPacket

from msmqwire.plugins.scapy.remote_read import register
from msmqwire.plugins.scapy.structure import LAYERS
from msmqwire.remote_read.interface import INTERFACE
from msmqwire.schema import Choice, Close, Flags, Header, Maybe, Packet, Part, Record, Text, View
from msmqwire.schema import Raw as RawPart
from msmqwire.schema.nodes import inner_headers
from msmqwire.schema.record import FlagsValue


def layer_of(schema: Header, value: Any, layer: type[ScapyPacket] | None = None) -> ScapyPacket:
    """Return a structure, complete or partial, as a layer made by its constructor, its own or another."""
    return (layer or LAYERS[schema.key])(**_arguments(schema, value))


def packet_of(schema: Packet, value: Any) -> ScapyPacket:
    """Return a packet, complete or partial, as its layers."""
    stack: ScapyPacket | None = None
    views = {part.of: part for part in schema.parts if isinstance(part, View)}
    for part in schema.parts:
        given = None if isinstance(part, Close | View) else _get(value, part.name)
        if isinstance(part, RawPart):
            added = Raw(given) if given else None
        elif isinstance(part, Close | View) or (isinstance(part, Maybe) and given is None):
            added = None
        else:
            header = inner_headers(part)[0]
            added = layer_of(header, {} if given is None else given)
            for path, view in views.items():
                shown = _get(value, view.name)
                if path.startswith(f"{part.name}.") and shown is not None:
                    added.MessageBody = layer_of(view.header, shown)
        if added is not None:
            stack = added if stack is None else stack / added
    assert stack is not None
    return stack


def _get(value: Any, name: str) -> Any:
    return value.get(name)


def _arguments(schema: Header, value: Any) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for part in schema.parts:
        given = None if isinstance(part, Close | View) else _get(value, part.name)
        if isinstance(part, Flags):
            if isinstance(given, int) and not isinstance(given, FlagsValue):
                given = {bits.name: (given & bits.mask) >> bits.shift for bits in part.parts}
            arguments.update(given.bits() if isinstance(given, FlagsValue) else given or {})
        elif given is not None or (isinstance(part, Text) and part.name in set(value.keys())):
            arguments[part.name] = _argument(part, given, arguments)
    return arguments


def _argument(part: Part, given: Any, before: dict[str, Any]) -> Any:
    if isinstance(given, list | tuple):
        return [NoPayload() if item is None else _inner(part, item, before) for item in given]
    return _inner(part, given, before) if isinstance(given, Record | Mapping) else given


def _inner(part: Part, given: Any, before: dict[str, Any]) -> ScapyPacket:
    if isinstance(given, Record):
        return layer_of(given.schema, given)
    arms = inner_headers(part)
    if isinstance(part, Choice):
        chosen = part.arms.get(before.get(part.by.rpartition(".")[2]))
        arms = [arm for arm in (chosen, *arms) if arm is not None and set(given) <= set(arm.fields)]
    return layer_of(arms[0], given)


def registered_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let calls of remote read be ours, whichever test has loaded the layers of scapy-rpc before."""
    monkeypatch.delitem(DCE_RPC_INTERFACES, (INTERFACE.uuid, INTERFACE.major), raising=False)
    register()
