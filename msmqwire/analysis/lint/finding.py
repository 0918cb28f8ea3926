"""A finding of lint: one thing that is wrong or strange in a packet, with its location."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Severity: TypeAlias = Literal["NOTE", "SHOULD", "MUST", "ATTACK"]

SEVERITIES: Final[tuple[Severity, ...]] = ("NOTE", "SHOULD", "MUST", "ATTACK")
"""The severities, from the least to the worst."""
BREACHES: Final[frozenset[Severity]] = frozenset({"MUST", "ATTACK"})
"""The severities that speak against a sender: ``lint --check`` ends with status 65 for these alone."""

_REQUIREMENT: Final = re.compile(r"[A-Z]+-[\w.]+-\d+(?=-[A-Z]|$)")


def requirement_of(id: str) -> str:
    """Return the id of the requirement that a rule is about, without the word that a second rule has."""
    found = _REQUIREMENT.match(id)
    return id if found is None else found[0]


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault or an oddity in a packet.

    Attributes:
        id: the broken requirement, with a word such as ``-SIZE`` after it for a second rule about the same
            one, ``PGM-<NAME>`` for one of RFC 3208, ``READING-<NAME>`` for how a sender of NCP writes its
            numbers, or ``ATTACK-<NAME>`` for the pattern of an attack;
            `msmqwire.analysis.lint.checks` describes each id.
        severity: the strength of the requirement, or ``ATTACK``. A statement of fact counts as MUST: a sender
            that departs from it is not understood. In SRMP, whose receivers accept most departures, it counts
            as SHOULD. ``NOTE`` is not a fault of a program: ordinary senders do it, or receivers don't care.
        path: the field, in the specification's names.
        offset: its first byte, counted from the start of the packet; that of the whole flag word for a bit.
        message: the fault, in one sentence.
    """

    id: str
    severity: Severity
    path: str
    offset: int
    message: str

    @property
    def requirement(self) -> str:
        """The id of the requirement, in the tables of the specifications; that of an attack is its own."""
        return requirement_of(self.id)

    def to_json(self) -> dict[str, object]:
        """Return ``{"id", "severity", "path", "offset", "message"}``."""
        return {
            "id": self.id,
            "severity": self.severity,
            "path": self.path,
            "offset": self.offset,
            "message": self.message,
        }
