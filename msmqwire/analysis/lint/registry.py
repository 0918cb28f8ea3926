"""The register of checks, and the runner that applies them to a packet.

A check is a function of a packet that returns the problem, with the requirement it stands for, the field that
a finding names and the kinds of packet it applies to. The other modules of this package fill the register.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, TypeAlias

from msmqwire.analysis.lint.finding import Finding, Severity, requirement_of
from msmqwire.schema import Record
from msmqwire.schema.layout import Field, layout

_VIEWS: Final = ("OrderAckBody", "FinalAckBody")

Problem: TypeAlias = "str | tuple[str, str] | None"
"""The problem as text; with a path if only the check knows the field."""

MESSAGES: Final = frozenset({"UserMessage", "OrderAck", "FinalAck", "RemoteReadMessage"})
SENT: Final = MESSAGES - {"RemoteReadMessage"}
"""Messages as a sender puts them on the wire; a remote reader gets them as the server stores them."""
INTERNAL: Final = frozenset({"EstablishConnection", "ConnectionParameters", "SessionAck"})
SESSION: Final = MESSAGES | INTERNAL
USER: Final = frozenset({"UserMessage"})
ORDER_ACK: Final = frozenset({"OrderAck"})
FINAL_ACK: Final = frozenset({"FinalAck"})
REMOTE: Final = frozenset({"RemoteReadMessage"})
PING: Final = frozenset({"Ping"})
FLOW: Final = frozenset({"session"})
"""Checks of a whole session, in `msmqwire.analysis.lint.session`."""
RPC: Final = frozenset({"rpc"})
"""Calls and answers of remote read, in `remote_read_calls.py`, and bytes of RPC that are none."""
BYTES: Final = frozenset({"bytes"})
"""Checks of bytes that are not a packet, in `msmqwire.analysis.lint.attacks`."""


@dataclass(frozen=True, slots=True)
class Check:
    """One rule that lint knows.

    Attributes:
        id: that of the requirement, with a word such as ``-SIZE`` after it for a second rule about the same
            requirement, or ``PGM-<NAME>``, ``READING-<NAME>`` or ``ATTACK-<NAME>``.
        severity: see `Finding.severity`.
        title: the fault, without the value.
        path: the field that a finding names; empty if it differs between findings.
        kinds: the packets it applies to; ``session`` for the order of packets, ``bytes`` for malformed ones.
        judge: returns the problem of a packet; None if the check is made elsewhere in lint.
        measured: only a built packet can break it, not a parsed one.
        holds: accepts the value of the field at `path`, where the check is of that alone.
        mask: the bits of the flag word at `path` that are to be clear, where that is the check.
    """

    id: str
    severity: Severity
    title: str
    path: str
    kinds: frozenset[str]
    judge: Callable[[Any], Problem] | None = None
    measured: bool = False
    holds: Callable[[Any], bool] | None = None
    mask: int = 0

    def at(self, path: str, offset: int, message: str) -> Finding:
        """Return a finding of this check."""
        return Finding(self.id, self.severity, path, offset, message)

    @property
    def requirement(self) -> str:
        """The id of the requirement: see `Finding.requirement`."""
        return requirement_of(self.id)


REGISTER: Final[list[Check]] = []
"""All rules. One about several fields is there for each of them, with the same id, severity and title."""
_RULES: Final[dict[str, tuple[Severity, str]]] = {}


def add(check: Check) -> None:
    """Register a check. Raises ValueError if its id is that of another rule."""
    rule = check.severity, check.title
    if _RULES.setdefault(check.id, rule) != rule:
        raise ValueError(f"{check.id} is {_RULES[check.id][1]!r} and {check.title!r}")
    REGISTER.append(check)


def listed(
    id: str, title: str, path: str = "", kinds: frozenset[str] = FLOW, severity: Severity = "MUST"
) -> Check:
    """Register a check that is made elsewhere in lint."""
    check = Check(id, severity, title, path, kinds)
    add(check)
    return check


def rule(
    id: str,
    title: str,
    path: str,
    kinds: frozenset[str],
    severity: Severity = "MUST",
    *,
    measured: bool = False,
) -> Callable[[Callable[[Any], Problem]], Callable[[Any], Problem]]:
    """Register a function as a check. It runs only if the header that `path` begins with is present."""

    def register(judge: Callable[[Any], Problem]) -> Callable[[Any], Problem]:
        add(Check(id, severity, title, path, kinds, judge, measured))
        return judge

    return register


def value(
    id: str,
    title: str,
    path: str,
    kinds: frozenset[str],
    holds: Callable[[Any], bool],
    why: str,
    severity: Severity = "MUST",
) -> None:
    """Register a check of one field: `holds` accepts its value, `why` formats a rejected one."""
    get = attrgetter(path)

    def judge(packet: Any) -> Problem:
        number = get(packet)
        return None if holds(number) else why.format(number)

    add(Check(id, severity, title, path, kinds, judge, holds=holds))


def exactly(id: str, title: str, path: str, kinds: frozenset[str], number: int, form: str = "") -> None:
    """Register a check that a field has one value; `form` is the number format of the message."""
    why = f"{{:{form}}} is not {number:{form}}"
    value(id, title, path, kinds, lambda field: field == number, why)


def zero(id: str, title: str, path: str, kinds: frozenset[str], severity: Severity = "MUST") -> None:
    """Register a check that a field is 0."""
    value(id, title, path, kinds, lambda number: not number, "{:#x} is not 0", severity)


def unused(
    id: str, title: str, path: str, mask: int, kinds: frozenset[str], severity: Severity = "MUST"
) -> None:
    """Register a check that the bits of a mask are clear; the finding names the lowest that is set."""
    get = attrgetter(path)

    def judge(packet: Any) -> Problem:
        word = get(packet)
        wrong = int(word) & mask
        if not wrong:
            return None
        names = [part.name for part in word.schema.parts if part.mask & wrong]
        return f"{path}.{names[0]}", f"{', '.join(names)} set, mask {wrong:#x}"

    add(Check(id, severity, title, path, kinds, judge, mask=mask))


class FieldOffsets:
    """The offsets of the fields of a packet, computed only as far as requested."""

    def __init__(self, packet: Record) -> None:
        self._packet = packet
        self._fields = layout(packet)
        self._offsets: dict[str, int] = {}  # of fields
        self._size = 0

    def of(self, path: str) -> int:
        """Return the offset of a field, structure or flag word; of the nearest enclosing one if absent."""
        header, _, rest = path.partition(".")
        if header in _VIEWS and self._packet.get(header) is not None:
            body = self.of("MessagePropertiesHeader.MessageBody")
            inner = {field.path: field.offset for field in layout(self._packet[header])}
            return body + inner.get(f"{header}.{rest}", 0)
        names = path.split(".")
        for count in range(len(names), 0, -1):
            known = self._offsets.get(".".join(names[:count]))
            if known is not None:
                return known
        for name, offset in self._offsets.items():
            if name.startswith(path + "."):
                return offset
        for field in self._measured():
            if f"{path}.".startswith(f"{field.path}.") or field.path.startswith(f"{path}."):
                return field.offset
        return self.of(path.rpartition(".")[0]) if "." in path else 0

    def packet_size(self) -> int:
        """Return the size of the whole packet in bytes."""
        for _ in self._measured():
            pass
        return self._size

    def _measured(self) -> Iterator[Field]:
        """Yield the fields not computed yet."""
        for field in self._fields:
            self._offsets[field.path] = field.offset
            self._size = field.offset + field.size
            yield field


_Group: TypeAlias = "tuple[str, tuple[Check, ...]]"


def _groups(kind: str) -> tuple[_Group, ...]:
    """Return the checks of a kind of packet, grouped by header."""
    groups: dict[str, list[Check]] = {}
    for check in REGISTER:
        if kind in check.kinds and check.judge is not None:
            groups.setdefault(check.path.partition(".")[0], []).append(check)
    return tuple((header, tuple(checks)) for header, checks in groups.items())


class Runner:
    """Runs the checks of the register. Create it once the register is complete."""

    def __init__(self) -> None:
        self._by_kind: dict[str, tuple[_Group, ...]] = {}

    def run(
        self, packet: Record, kinds: Iterable[str], *, measured: bool
    ) -> Iterator[tuple[Check, str, str]]:
        """Yield each check that finds a problem, with path and message."""
        for kind in kinds:
            groups = self._by_kind.get(kind)
            if groups is None:
                groups = self._by_kind[kind] = _groups(kind)
            for header, checks in groups:
                if getattr(packet, header, None) is None:
                    continue
                for check in checks:
                    if check.measured and not measured:
                        continue
                    assert check.judge is not None
                    problem = check.judge(packet)
                    if problem is not None:
                        path, message = (check.path, problem) if isinstance(problem, str) else problem
                        yield check, path, message
