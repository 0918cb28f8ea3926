"""What the codes that users of MSMQ meet mean, what usually causes them, and what to do: one catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple

from msmqwire.constants.explanations.argument_results import ARGUMENT_RESULTS
from msmqwire.constants.explanations.connections import (
    CONNECTION_STATUS_NAMES,
    CONNECTION_STATUSES,
    QUEUE_STATES,
)
from msmqwire.constants.explanations.directory_results import DIRECTORY_RESULTS
from msmqwire.constants.explanations.explanation import CodeKind, Explanation, Texts
from msmqwire.constants.explanations.message_classes import MESSAGE_CLASSES
from msmqwire.constants.explanations.queue_results import QUEUE_RESULTS
from msmqwire.constants.explanations.security_results import SECURITY_RESULTS
from msmqwire.constants.explanations.system_codes import NTSTATUSES, RPC_STATUSES, WIN32_CODES
from msmqwire.constants.hresult import MQ_OK, hresult_name
from msmqwire.constants.message_class import MessageClass
from msmqwire.constants.property_values import CONNECTION_STATUS

__all__ = [
    "CONNECTION_STATUSES",
    "MESSAGE_CLASSES",
    "QUEUE_STATES",
    "CodeKind",
    "Explanation",
    "ResultParts",
    "Texts",
    "catalogue",
    "explained",
    "known_names",
    "named",
    "result_parts",
    "result_texts",
]

_OK: Final = Texts("the call succeeded", "Everything went well.", "No action is needed.")
_RESULTS: Final[Mapping[int, Texts]] = {
    MQ_OK: _OK, **QUEUE_RESULTS, **ARGUMENT_RESULTS, **SECURITY_RESULTS, **DIRECTORY_RESULTS,
}  # fmt: skip
_FROM_WIN32: Final = 0x8007_0000
_FACILITIES: Final[Mapping[int, str]] = {
    0x000: "general",
    0x001: "RPC",
    0x002: "dispatch",
    0x003: "storage",
    0x004: "interface",
    0x007: "Win32",
    0x008: "Windows",
    0x009: "SSPI, security",
    0x00A: "control",
    0x00B: "certificates",
    0x00D: "media server",
    0x00E: "MSMQ",
    0x019: "HTTP",
}
_PREFIXES: Final = (
    "MQ_ERROR_", "MQ_INFORMATION_", "MQ_", "MQMSG_CLASS_NACK_", "MQMSG_CLASS_", "STATUS_", "ERROR_",
)  # fmt: skip
"""Beginnings of names that may be left out, a longer one before a shorter one."""


class ResultParts(NamedTuple):
    """The parts of an HRESULT: [MS-ERREF] 2.1.

    Attributes:
        is_failure: bit 31, the severity.
        is_customer: bit 29: another vendor has defined it.
        facility: 11 bits, the area that it is of.
        facility_name: its name; empty for an unknown one.
        code: the lower 16 bits.
    """

    is_failure: bool
    is_customer: bool
    facility: int
    facility_name: str
    code: int


def result_parts(number: int) -> ResultParts:
    """Return the parts of an HRESULT of 32 bits."""
    facility = number >> 16 & 0x7FF
    return ResultParts(
        bool(number & 0x8000_0000),
        bool(number & 0x2000_0000),
        facility,
        _FACILITIES.get(facility, ""),
        number & 0xFFFF,
    )


def result_texts(number: int) -> Texts | None:
    """Return the words for what a call or a connection returned; None for a code that is not known.

    This is a result of MSMQ, an NTSTATUS, a status of remote calls, or an error of Windows, by itself or in
    an HRESULT.
    """
    known = _RESULTS.get(number) or NTSTATUSES.get(number)
    if known is not None:
        return known
    system = RPC_STATUSES.get(number) or WIN32_CODES.get(_win32(number))
    return None if system is None else system.texts


def explained(number: int) -> tuple[Explanation, ...]:
    """Return all meanings of a number of 32 bits, unsigned: several where it has them in several places."""
    found = [one for one in catalogue() if one.number == number]
    if number & 0xFFFF_0000 == _FROM_WIN32 and (system := WIN32_CODES.get(number & 0xFFFF)) is not None:
        found.append(Explanation(CodeKind.WIN32, system.name, number, system.texts))
    return tuple(found)


def named(name: str) -> tuple[Explanation, ...]:
    """Return the entries with a name, with or without its first part (``MQ_ERROR_``).

    Case, spaces and underscores do not matter; the words of a connection status are names, too.
    """
    return _by_name().get(_letters(name), ())


def known_names() -> tuple[str, ...]:
    """Return the names of all entries, each once."""
    return tuple(dict.fromkeys(one.name for one in catalogue()))


@cache
def catalogue() -> tuple[Explanation, ...]:
    """Return all entries: results by number, then those of the system, classes, statuses and states."""
    return tuple(_entries())


def _entries() -> Iterator[Explanation]:
    for number, texts in sorted(_RESULTS.items()):
        yield Explanation(CodeKind.RESULT, hresult_name(number), int(number), texts)
    for number, texts in NTSTATUSES.items():
        yield Explanation(CodeKind.NTSTATUS, hresult_name(number), int(number), texts)
    for number, system in WIN32_CODES.items():
        yield Explanation(CodeKind.WIN32, system.name, number, system.texts)
    for number, system in RPC_STATUSES.items():
        yield Explanation(CodeKind.RPC, system.name, number, system.texts)
    for number, texts in MESSAGE_CLASSES.items():
        yield Explanation(CodeKind.MESSAGE_CLASS, MessageClass(number).name, int(number), texts)
    for number, texts in CONNECTION_STATUSES.items():
        yield Explanation(CodeKind.CONNECTION_STATUS, CONNECTION_STATUS_NAMES[number], number, texts)
    for name, texts in QUEUE_STATES.items():
        yield Explanation(CodeKind.QUEUE_STATE, name, None, texts)


@cache
def _by_name() -> Mapping[str, tuple[Explanation, ...]]:
    found: dict[str, tuple[Explanation, ...]] = {}
    for one in catalogue():
        names = {one.name, *(one.name.removeprefix(prefix) for prefix in _PREFIXES)}
        if one.kind is CodeKind.CONNECTION_STATUS and one.number is not None:
            names.add(CONNECTION_STATUS[one.number])
        for name in {_letters(name) for name in names}:
            found[name] = (*found.get(name, ()), one)
    return found


def _letters(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum())


def _win32(number: int) -> int:
    return number & 0xFFFF if number & 0xFFFF_0000 == _FROM_WIN32 else number
