"""One call or answer of queue management against [MS-MQMR] 3.1.4.

An answer is judged with its call, where that was captured.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msmqwire.analysis.lint.finding import Finding
from msmqwire.analysis.lint.management_stubs import OPNUM, PADDING, STRICT
from msmqwire.analysis.lint.registry import Check
from msmqwire.analysis.lint.rpc import Problem, found, gaps, judged, rpc_rule
from msmqwire.constants import (
    CONNECTION_STATUS,
    ManagementMachineProperty,
    ManagementQueueLocation,
    ManagementQueueProperty,
    ManagementQueueState,
    ManagementQueueType,
    VarEnum,
    hresult_name,
)
from msmqwire.constants.properties import PropId
from msmqwire.constants.variant import variant_name
from msmqwire.errors import InvalidName
from msmqwire.management.constants import MACHINE_ACTIONS, QUEUE_ACTIONS, Opnum, action_of
from msmqwire.management.management_packet import (
    AskedObject,
    ManagementPacket,
    ManagementProperty,
    iter_values,
)
from msmqwire.management.reports import QueueReport, machine_report, queue_report
from msmqwire.management.variants import plain
from msmqwire.names.printable import counted
from msmqwire.rpc.constants import PduType
from msmqwire.rpc.queue_format import name_of

QUEUE: Final = rpc_rule("MQMR-2.2.1.2-08", "The object names no queue", "pObjectFormat", "SHOULD")
SUFFIX: Final = rpc_rule("MQMR-2.2.1.5-03", "The name is not legal for its type", "pObjectFormat")
RESERVED: Final = rpc_rule("MQMR-2.2.1.5-04", "m_reserved is not 0", "pObjectFormat", "SHOULD")
IDS: Final = rpc_rule("MQMR-3.1.4.1-05", "An identifier is not one of the object's", "aProp")
INPUT: Final = rpc_rule("MQMR-3.1.4.1-06", "A value is not VT_NULL before the call", "apVar")
ACTION: Final = rpc_rule("MQMR-3.1.4.2-03", "The action is none of the six", "lpwszAction")
KIND: Final = rpc_rule("MQMR-3.1.4.2-13", "The action is not for such an object", "lpwszAction")
LENGTH: Final = rpc_rule("MQMR-3.1.4.1-02", "The answer has not as many values as were asked for", "apVar")
FAILED: Final = rpc_rule("MQMR-3.1.4.1-09", "A failed call sets values", "apVar")
NO_QUEUE: Final = rpc_rule("MQMR-2.2.1.2-06", "A call without a queue succeeds", "status")
ILLEGAL: Final = rpc_rule(
    "MQMR-3.2.4-06", "A value is of a property that the object has not", "apVar", "NOTE"
)
STATUSES: Final = rpc_rule("MQMR-2.2.3.2-26", "A state of a connection is not known", "apVar")
EXCEPTION: Final = rpc_rule("MQMR-3.1.4-05", "A method fails by a fault", "status")
_SESSION: Final[dict[int, Check]] = {
    Opnum.R_QMMgmtGetInfo: rpc_rule("MQMR-3.1.4.1-14", "A call about a session succeeds", "status"),
    Opnum.R_QMMgmtAction: rpc_rule("MQMR-3.1.4.2-08", "An action on a session succeeds", "status"),
}
_SUCCESS: Final[dict[int, Check]] = {
    Opnum.R_QMMgmtGetInfo: rpc_rule("MQMR-3.1.4.1-08", "The status is neither MQ_OK nor a failure", "status"),
    Opnum.R_QMMgmtAction: rpc_rule("MQMR-3.1.4.2-06", "The status is neither MQ_OK nor a failure", "status"),
}
_UNKNOWN_ACTION: Final = rpc_rule("MQMR-3.1.4.2-09", "An action that is none of the six succeeds", "status")

_FAILURE: Final = 0x80000000
_MSMQ: Final = range(0xC00E0000, 0xC00F0000)
"""HRESULTs of MSMQ."""
_NULL: Final = (VarEnum.VT_NULL, VarEnum.VT_EMPTY)
_HISTORY: Final = ManagementQueueProperty.PROPID_MGMT_QUEUE_CONNECTION_HISTORY
_ROWS_OF_QUEUE: Final = {26: 27, 27: 28}
"""The numbers of requirements about properties of queues, where they are not those of the properties."""


def _rules_of_values(section: str, properties: type[PropId], rows: dict[int, int]) -> dict[int, Check]:
    """Return the rule that a value breaks that is none of its property."""
    return {
        int(each): rpc_rule(
            f"MQMR-2.2.3.{section}-{rows.get(int(each), int(each)):02}",
            f"The value is none of {each.name}",
            "apVar",
        )
        for each in properties
    }


_VALUES: Final = {
    "machine": _rules_of_values("1", ManagementMachineProperty, {}),
    "queue": _rules_of_values("2", ManagementQueueProperty, _ROWS_OF_QUEUE),
}
_Q = ManagementQueueProperty
_WORDS: Final[dict[int, frozenset[str]]] = {
    _Q.PROPID_MGMT_QUEUE_TYPE: frozenset(ManagementQueueType),
    _Q.PROPID_MGMT_QUEUE_LOCATION: frozenset(ManagementQueueLocation),
    _Q.PROPID_MGMT_QUEUE_STATE: frozenset({*ManagementQueueState, "LOCKED"}),
}
"""The texts that values of queues have: MQMR-2.2.3.2-11 for LOCKED."""


def lint_management(packet: ManagementPacket) -> list[Finding]:
    """Return the departures of a call or an answer from the specification."""
    return judged(packet, _problems(packet))


def _problems(packet: ManagementPacket) -> Iterator[Problem]:
    procedure, value = packet.procedure, packet.value
    if packet.is_request and procedure is None:
        yield found(OPNUM, f"there is no procedure {packet.opnum}")
    if packet.ptype == PduType.FAULT:
        status = packet.pdu.record.status
        if status in _MSMQ:
            yield found(EXCEPTION, hresult_name(status))
    if value is None or procedure is None:
        return
    yield from gaps(value, STRICT, PADDING)
    if packet.is_request:
        yield from _object(packet)
        yield from _properties(packet)
        yield from _action(packet)
    elif packet.asked is not None:
        yield from _answer(packet, packet.asked, int(procedure.opnum))


# -- calls ---------------------------------------------------------------------------------------------------


def _object(packet: ManagementPacket) -> Iterator[Problem]:
    form = packet.queue_format
    if form is None:
        if packet.asked is not None and packet.asked.object == "queue":
            yield found(QUEUE, "pQueueFormat is a null pointer")
        return
    if form.m_reserved:
        yield RESERVED, "pObjectFormat", f"{form.m_reserved:#06x} is not 0"
    try:
        if name_of(form) is None:
            yield found(QUEUE, "the name is of the type UNKNOWN")
    except InvalidName as exc:
        yield found(SUFFIX, str(exc))


def _properties(packet: ManagementPacket) -> Iterator[Problem]:
    if packet.asked is None or not packet.asked.ids:
        return
    unknown = [one.number for one in packet.properties if one.known is None]
    if unknown and packet.asked.object != "session":
        yield found(
            IDS, f"{_some(unknown)} {'is' if len(unknown) == 1 else 'are'} none of a {packet.asked.object}"
        )
    given = [number for number, each in enumerate(packet.value.apVar) if each.vt != VarEnum.VT_NULL]
    if given:
        first = variant_name(packet.value.apVar[given[0]].vt)
        yield found(INPUT, f"element {given[0]} is {first}; {counted(len(given), 'such value')}")


def _some(numbers: list[int]) -> str:
    """Return numbers as text, the first of many."""
    return ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")


def _action(packet: ManagementPacket) -> Iterator[Problem]:
    text = getattr(packet.value, "lpwszAction", None)
    if text is None or packet.asked is None:
        return
    action = action_of(text)
    if action is None:
        yield found(ACTION, f"{text!r:.100}")
    elif not _fits(packet.asked):
        yield found(KIND, f"{action} on a {packet.asked.object}")


def _fits(asked: AskedObject) -> bool:
    """Whether an action is for the kind of object."""
    actions = {"machine": MACHINE_ACTIONS, "queue": QUEUE_ACTIONS}.get(asked.object, frozenset())
    return action_of(asked.action) in actions


# -- answers -------------------------------------------------------------------------------------------------


def _answer(packet: ManagementPacket, asked: AskedObject, opnum: int) -> Iterator[Problem]:
    status = packet.value.status
    if status and not status & _FAILURE:
        yield found(_SUCCESS[opnum], f"{status:#010x}")
    if not status:
        if asked.object == "session":
            yield found(_SESSION[opnum], "MQ_OK")
        elif asked.object == "queue" and not asked.has_queue:
            yield found(NO_QUEUE, "MQ_OK")
        elif opnum == Opnum.R_QMMgmtAction and action_of(asked.action) is None:
            yield found(_UNKNOWN_ACTION, f"MQ_OK for {asked.action!r:.100}")
        elif opnum == Opnum.R_QMMgmtAction and not _fits(asked):
            yield KIND, "status", f"MQ_OK for {action_of(asked.action)} on a {asked.object}"
    if opnum == Opnum.R_QMMgmtGetInfo:
        values = packet.value.apVar
        if len(values) != len(asked.ids):
            yield found(LENGTH, f"{counted(len(values), 'value')} for {counted(len(asked.ids), 'property')}")
        if status:
            given = [one for one in values if one.vt not in _NULL]
            if given:
                yield found(FAILED, f"{counted(len(given), 'value')}, with {hresult_name(status)}")
            return
        for one in iter_values(packet):
            yield from _value(asked.object, one)


def _value(kind: str, one: ManagementProperty) -> Iterator[Problem]:
    """Judge a value by its property."""
    if one.known is None:
        if kind in _VALUES:
            yield found(ILLEGAL, f"{variant_name(one.value.vt)} for {one.number}")
        return
    check, values = _VALUES[kind][one.number], {one.number: one.value}
    report = machine_report("", values) if kind == "machine" else queue_report("", values)
    for why in report.unavailable.values():
        yield found(check, f"{one.short_name}: {why}")
    if kind != "queue" or report.unavailable:
        return
    words = _WORDS.get(one.number)
    if words is not None and (text := str(plain(one.value))).upper() not in words:
        yield found(check, f"{one.short_name}: {text!r:.100} is no word for it")
    if one.known == _HISTORY and isinstance(report, QueueReport):
        unknown = [
            event.status for event in report.connection_history if event.status not in CONNECTION_STATUS
        ]
        if unknown:
            yield found(STATUSES, f"{unknown[0]:#010x}; {counted(len(unknown), 'such state')}")
