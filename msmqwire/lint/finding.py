"""A finding of lint: one departure from the specifications, with its location."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["MUST", "SHOULD", "ATTACK"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A departure from the specifications.

    Attributes:
        id: the broken requirement (``MQMQ-2.2.19.2-26``), or ``ATTACK-<NAME>`` for the pattern of an
            attack; `msmqwire.lint.checks` describes each id.
        severity: the strength of the requirement, or ``ATTACK``. A statement of fact counts as MUST: a
            sender that departs from it is not understood. In SRMP, whose receivers accept most departures,
            it counts as SHOULD.
        path: the field, in the specification's names.
        offset: its first byte, counted from the start of the packet; that of the whole flag word for a bit.
        message: what is wrong, in one sentence.
    """

    id: str
    severity: Severity
    path: str
    offset: int
    message: str

    def to_json(self) -> dict[str, object]:
        """Return ``{"id", "severity", "path", "offset", "message"}``."""
        return {
            "id": self.id,
            "severity": self.severity,
            "path": self.path,
            "offset": self.offset,
            "message": self.message,
        }
