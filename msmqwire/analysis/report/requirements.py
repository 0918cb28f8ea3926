"""Findings by requirement: their number, and packets that show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from msmqwire.analysis.lint import SEVERITIES, Finding, checks
from msmqwire.analysis.report.limits import Limits
from msmqwire.names.printable import cut, safe


@dataclass(slots=True)
class Requirement:
    """Findings of one requirement with one severity.

    Attributes:
        message: that of the first finding.
        count: findings.
        packets: packets with any.
        examples: rows of packets whose fields and bytes are in the report.
    """

    message: str
    count: int = 0
    packets: int = 0
    examples: list[int] = field(default_factory=list)


class Requirements:
    """The findings of captures.

    Attributes:
        found: the findings by severity and id.
        left_out: findings of requirements beyond the limit.
    """

    def __init__(self, limits: Limits) -> None:
        self.found: dict[tuple[str, str], Requirement] = {}
        self.left_out = 0
        self._limits = limits

    def add(self, findings: Sequence[Finding]) -> list[Requirement]:
        """Count the findings of a packet; return the requirements that lack examples."""
        wanting = []
        seen = set()
        for finding in findings:
            key = (finding.severity, finding.id)
            one = self.found.get(key)
            if one is None:
                if len(self.found) == self._limits.requirements:
                    self.left_out += 1
                    continue
                one = self.found[key] = Requirement(cut(safe(finding.message), self._limits.text))
            one.count += 1
            if key not in seen:
                seen.add(key)
                one.packets += 1
                if len(one.examples) < self._limits.examples:
                    wanting.append(one)
        return wanting

    def to_json(self) -> list[dict[str, Any]]:
        """Return the requirements, the worst first, then the most frequent."""
        titles: dict[str, str] = {}
        for check in checks():
            titles.setdefault(check.id, check.title)
        ordered = sorted(
            self.found.items(), key=lambda one: (-SEVERITIES.index(one[0][0]), -one[1].count, one[0][1])
        )
        return [
            {
                "id": name,
                "severity": severity,
                "title": titles.get(name, ""),
                "message": one.message,
                "count": one.count,
                "packets": one.packets,
                "examples": one.examples,
            }
            for (severity, name), one in ordered
        ]


def worst(findings: Sequence[Finding]) -> int:
    """Return the place of the worst severity of some findings in `SEVERITIES`, from 1; 0 without any."""
    return max((SEVERITIES.index(finding.severity) + 1 for finding in findings), default=0)
