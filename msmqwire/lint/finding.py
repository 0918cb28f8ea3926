"""What lint finds: one departure from the specifications, with its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["MUST", "SHOULD", "ATTACK"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A departure from the specifications, as contract section 2 has it.

    Attributes:
        id: the requirement that is broken (``MQMQ-2.2.19.2-26``), or ``ATTACK-<NAME>`` for a shape that
            attacks have; `msmqwire.lint.checks` tells what each id stands for.
        severity: the strength of the requirement, or ``ATTACK``. What the text states as a fact counts as
            MUST: who departs from it is not understood.
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
        """``{"id", "severity", "path", "offset", "message"}``."""
        return {
            "id": self.id,
            "severity": self.severity,
            "path": self.path,
            "offset": self.offset,
            "message": self.message,
        }
