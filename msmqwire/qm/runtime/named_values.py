"""Settings and limits by name, ``window_size=32``: the values that the option ``--set`` can change."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Iterable
from dataclasses import fields, replace
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from msmqwire.errors import InvalidValue
from msmqwire.headers.base import PACKET_SIZE_MAX
from msmqwire.names.nearest import unknown_name
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.runtime.limits import Limits

_DWORD: Final = 0xFFFFFFFF
_COUNT_MAX: Final = 1 << 53
_DIGITS_MAX: Final = 16
_RANGES: Final = MappingProxyType(
    {
        "ack_wait_timeout_ms": (20_000, 120_000),
        "direct_ack_wait_factor": (1, 1_000),
        "window_size": (1, 0xFFFF),
        "unacknowledged_bytes_max": (1_024, _COUNT_MAX),
        "packet_size_max": (1_024, PACKET_SIZE_MAX),
        "acknowledge_at_window": (0.0, 1.0),
        "retry_statuses": (400, 499),
        "max_in_sessions": (0, _DWORD),
        "third_place_messages": (0, _COUNT_MAX),
        "third_place_bytes": (0, _COUNT_MAX),
        "third_place_messages_total": (0, _COUNT_MAX),
        "third_place_bytes_total": (0, _COUNT_MAX),
        "resolutions": (2, 10_000),
        "reserved_percent": (0, 90),
    }
)
"""The values whose limits differ from those of their unit."""
_MAY_BE_ZERO: Final = (
    "round_trip_delay_ms",
    "recoverable_ack_delay_ms",
    "ack_delay_ms",
    "order_ack_timeout_ms",
    "stream_receipt_delay_ms",
    "stream_receipt_delay_max_ms",
)
"""Delays; a repeating timer must take some time."""
_NOT_EMPTY: Final = ("resend_timer_table",)
_BOOLS: Final = MappingProxyType(
    {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
)
_BYTES: Final = ("memory", "memory_for_recoverable", "packet_size_max")
_INTEGER: Final = re.compile(rf"[0-9]{{1,{_DIGITS_MAX}}}")
_NUMBER: Final = re.compile(rf"[0-9]{{1,{_DIGITS_MAX}}}(\.[0-9]{{1,{_DIGITS_MAX}}})?")
_ENTRY: Final = re.compile(r"(?m)^    (\w+(?:, \w+)*): (.+(?:\n {8}.+)*)")


class NamedValue(NamedTuple):
    """One of the values.

    Attributes:
        name: the name of the field. kind: its type: bool, int, float, an Enum, or tuple for several integers.
        unit: ``milliseconds``, ``seconds``, ``bytes``, ``percent``, or empty for a number without a unit.
        least, most: the range of a number.
        meaning: from the documentation of the class.
        owner: Settings or Limits.
    """

    name: str
    kind: type
    unit: str
    least: float
    most: float
    meaning: str
    owner: type

    def parse(self, text: str) -> Any:
        """Return the value of a text. Raises InvalidValue."""
        if self.kind is bool:
            if text.lower() not in _BOOLS:
                raise self._wrong(text, "true or false")
            return _BOOLS[text.lower()]
        if issubclass(self.kind, Enum):
            members = {member.value: member for member in self.kind}
            if text not in members:
                raise unknown_name(text, members, "possible value", path=self.name)
            return members[text]
        if self.kind is tuple:
            if not text and self.name not in _NOT_EMPTY:
                return ()
            return tuple(self._number(part, int) for part in text.split(","))
        return self._number(text, self.kind)

    def _number(self, text: str, kind: type) -> float:
        pattern = _INTEGER if kind is int else _NUMBER
        if not pattern.fullmatch(text):
            raise self._wrong(text, "a whole number" if kind is int else "a number")
        number: float = kind(text)
        if not self.least <= number <= self.most:
            raise self._wrong(text, f"{self.least:,g} to {self.most:,.16g}")
        return number

    def _wrong(self, text: str, wanted: str) -> InvalidValue:
        unit = f", {self.unit}" if self.unit else ""
        return InvalidValue(f"{text!r:.80} is not {wanted}{unit}", path=self.name)


@cache
def named_values() -> MappingProxyType[str, NamedValue]:
    """Return all named values in order."""
    values = {value.name: value for owner in (Settings, Limits) for value in _values(owner)}
    return MappingProxyType(values)


def with_named_values(settings: Settings, limits: Limits, texts: Iterable[str]) -> tuple[Settings, Limits]:
    """Return settings and limits with the values of ``NAME=VALUE`` texts; the last one of a name counts.

    Raises InvalidValue with the name as its path, and similar names for an unknown one.
    """
    changed: dict[type, dict[str, Any]] = {Settings: {}, Limits: {}}
    known = named_values()
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals:
            raise InvalidValue(f"{text!r:.80} is not NAME=VALUE")
        if name not in known:
            raise unknown_name(name, known, "setting", see="docs/settings.md has all")
        changed[known[name].owner][name] = known[name].parse(value.strip())
    return replace(settings, **changed[Settings]), replace(limits, **changed[Limits])


def changed_values(values: Settings | Limits, defaults: Settings | Limits) -> frozenset[str]:
    """Return the names of the values that differ from defaults."""
    names = (field.name for field in fields(values))
    return frozenset(name for name in names if getattr(values, name) != getattr(defaults, name))


def _values(owner: type) -> Iterable[NamedValue]:
    meanings = _meanings(owner)
    types = typing.get_type_hints(owner)
    for field in fields(owner):
        hint = types[field.name]
        kind = typing.get_origin(hint) or hint
        unit = _unit(field.name, kind)
        least, most = _RANGES.get(field.name) or _range(field.name, unit, kind)
        yield NamedValue(field.name, kind, unit, least, most, meanings[field.name], owner)


def _unit(name: str, kind: type) -> str:
    if name.endswith("_ms"):
        return "milliseconds"
    if (name.endswith("_s") and not name.endswith("_per_s")) or name == "resend_timer_table":
        return "seconds"
    if name.endswith("_percent"):
        return "percent"
    return "bytes" if kind is int and ("bytes" in name or name in _BYTES) else ""


def _range(name: str, unit: str, kind: type) -> tuple[float, float]:
    if unit == "milliseconds":
        return (0 if name in _MAY_BE_ZERO else 1), _DWORD
    if unit == "seconds":
        return (0.001 if kind is float else 1), _DWORD // 1000
    if unit == "percent":
        return 0, 100
    return 1, _COUNT_MAX


def _meanings(owner: type) -> dict[str, str]:
    """Return the descriptions of the attributes in the docstring of a class."""
    documentation = inspect.getdoc(owner) or ""
    entries = _ENTRY.findall(documentation.partition("Attributes:\n")[2])
    return {name: " ".join(text.split()) for names, text in entries for name in names.split(", ")}
