"""A call or an answer of the qmmgmt interface in a capture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from msmqwire.constants import ManagementMachineProperty, ManagementQueueProperty, VarEnum, hresult_name
from msmqwire.constants.properties import PropId
from msmqwire.constants.variant import variant_name
from msmqwire.errors import InvalidName
from msmqwire.management.constants import ObjectType
from msmqwire.management.procedures import PROCEDURES
from msmqwire.management.reports import MachineReport, QueueReport, machine_report, queue_report
from msmqwire.management.variants import plain
from msmqwire.rpc.queue_format import name_of
from msmqwire.rpc.rpc_packet import RpcPacket, call_kinds

KINDS: Final = call_kinds(PROCEDURES.values())
"""The names of calls and answers."""
OBJECTS: Final = {
    int(ObjectType.MGMT_MACHINE): "machine",
    int(ObjectType.MGMT_QUEUE): "queue",
    int(ObjectType.MGMT_SESSION): "session",
}
"""The kinds of objects in words."""

_PROPERTIES: Final[dict[str, type[PropId]]] = {
    "machine": ManagementMachineProperty,
    "queue": ManagementQueueProperty,
}
_PREFIXES: Final = ("PROPID_MGMT_MSMQ_", "PROPID_MGMT_QUEUE_")
_VARIANTS: Final = VarEnum.VT_VARIANT | VarEnum.VT_VECTOR
_BOOLEANS: Final = {0: False, 0xFFFF: True}
_ACTION_KEPT: Final = 64  # characters of an action that are kept for its answer


class ManagementProperty(NamedTuple):
    """A property of a call or an answer.

    Attributes:
        number: its identifier.
        known: the property of the object; None for an identifier that it has not.
        value: the PROPVARIANT in an answer; None in a call.
    """

    number: int
    known: PropId | None
    value: Any = None

    @property
    def short_name(self) -> str:
        """Its name without what all names begin with; the number of an unknown one."""
        if self.known is None:
            return str(self.number)
        name = self.known.name
        return next((name.removeprefix(each) for each in _PREFIXES if name.startswith(each)), name)

    def to_json(self) -> dict[str, Any]:
        """Return ``{"id", "name"}``, and of an answer ``type`` and ``value``."""
        result = {"id": self.number, "name": None if self.known is None else self.known.name}
        if self.value is None:
            return result
        return {**result, "type": variant_name(self.value.vt), "value": plain_json(self.value)}


class AskedObject(NamedTuple):
    """The arguments of a call that its answer is read with.

    Attributes:
        object: ``machine``, ``queue`` or ``session``.
        ids: the property identifiers that are asked for.
        action: the action; empty for none, and for text that is not well-formed.
        has_queue: whether the call names a queue.
    """

    object: str
    ids: tuple[int, ...] = ()
    action: str = ""
    has_queue: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class ManagementPacket(RpcPacket):
    """A call or an answer, also a fault; `kind` is that of the PDU where the procedure is unknown.

    The `arguments` of an answer are an `AskedObject`.
    """

    @property
    def asked(self) -> AskedObject | None:
        """The object, and what is asked of it or done to it; None if that can't be seen."""
        if not self.is_request:
            asked: AskedObject | None = self.arguments
            return asked
        if self.value is None:
            return None
        action = getattr(self.value, "lpwszAction", "")
        return AskedObject(
            OBJECTS[self.value.pObjectFormat.type],
            getattr(self.value, "aProp", ()),
            action if isinstance(action, str) else "",
            self.queue_format is not None,
        )

    @property
    def asked_queue(self) -> str:
        """The format name of the queue in the arguments; empty if there is none, or none that is legal."""
        try:
            name = None if self.queue_format is None else name_of(self.queue_format)
        except InvalidName:
            return ""
        return "" if name is None else str(name)

    @property
    def queue_format(self) -> Any:
        """The QUEUE_FORMAT in the arguments of a call; None without one."""
        if not self.is_request or self.value is None:
            return None
        wanted = self.value.pObjectFormat
        return wanted.arm if wanted.type == ObjectType.MGMT_QUEUE else None

    @property
    def status(self) -> int | None:
        """The HRESULT of an answer; None for other packets."""
        return None if self.is_request else getattr(self.value, "status", None)

    @property
    def properties(self) -> tuple[ManagementProperty, ...]:
        """The properties that are asked for, and of an answer their values as far as the call is known."""
        asked, values = self.asked, () if self.is_request else getattr(self.value, "apVar", ())
        if asked is None:
            return ()
        known = _PROPERTIES.get(asked.object)
        padded = (*values, *[None] * (len(asked.ids) - len(values)))
        return tuple(
            ManagementProperty(number, _property(known, number), value)
            for number, value in zip(asked.ids, padded, strict=False)
        )

    @property
    def report(self) -> MachineReport | QueueReport | None:
        """The state of the object as an answer gives it; None for a failure and other packets."""
        asked = self.asked
        if asked is None or self.status != 0 or not asked.ids:
            return None
        values = {one.number: one.value for one in self.properties if one.known is not None and one.value}
        match asked.object:
            case "machine":
                return machine_report("", values)
            case "queue":
                return queue_report(self.queue, values)
        return None

    def management_json(self) -> dict[str, Any]:
        """Return the object, the action or the properties with names, and of an answer the result.

        `report` has the values as types of their own, without those that are not reported.
        """
        asked = self.asked
        result: dict[str, Any] = {} if asked is None else {"object": asked.object}
        if self.queue:
            result["queue"] = self.queue
        if asked is not None and asked.action:
            result["action"] = asked.action
        if self.properties:
            result["properties"] = [one.to_json() for one in self.properties]
        if self.status is not None:
            result["status"] = hresult_name(self.status)
        if self.report is not None:
            result["report"] = _reported(self.report.to_json())
        return result


def kept_arguments(packet: ManagementPacket) -> tuple[AskedObject | None, int]:
    """Return the arguments of a call that its answer is read with, and about the bytes of stub they took."""
    asked = packet.asked
    if asked is None:
        return None, 0
    action = asked.action[:_ACTION_KEPT]
    return asked._replace(action=action), 4 * len(asked.ids) + 2 * len(action)


def plain_json(variant: Any) -> Any:
    """Return the value of a PROPVARIANT as JSON-ready data: bytes as hex, GUIDs as text."""
    if variant.vt == _VARIANTS:
        return [plain_json(one) for one in variant.value.pElems or ()]
    if variant.vt == VarEnum.VT_BOOL:
        return _BOOLEANS.get(variant.value, variant.value)
    return _json(plain(variant))


def _json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_json(one) for one in value]
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, int | str) else str(value)


def _property(known: type[PropId] | None, number: int) -> PropId | None:
    if known is None:
        return None
    try:
        return known(number)  # type: ignore[call-arg]  # the lookup of a member by its value
    except ValueError:
        return None


def _reported(members: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a report that say something."""
    result: dict[str, Any] = {}
    for name, value in members.items():
        inner = _reported(value) if name == "eod" and value else value
        if inner not in (None, "", [], {}):
            result[name] = inner
    return result


def iter_values(packet: ManagementPacket) -> Iterator[ManagementProperty]:
    """Yield the properties of an answer that have a value."""
    for one in packet.properties:
        if one.value is not None and one.value.vt not in (VarEnum.VT_NULL, VarEnum.VT_EMPTY):
            yield one
