"""Items of captures to the data of a report, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Final

from msmqwire.analysis.dissection import Dissection, Item
from msmqwire.analysis.lint import SEVERITIES
from msmqwire.analysis.report.body_types import BodyTypes
from msmqwire.analysis.report.details import PIECE, Details
from msmqwire.analysis.report.facts import GROUPS, Facts, Group, facts_of
from msmqwire.analysis.report.limits import Limits
from msmqwire.analysis.report.packet_table import PacketTable
from msmqwire.analysis.report.repeats import Repeats
from msmqwire.analysis.report.requirements import Requirements, worst
from msmqwire.analysis.report.sessions import Sessions, is_by_initiator, span_with, split_time
from msmqwire.analysis.report.tallies import Tallies
from msmqwire.analysis.report.timeline import Timeline
from msmqwire.capture.attempts import CAUSES
from msmqwire.capture.not_read import to_json
from msmqwire.names.printable import cut, format_endpoint, safe
from msmqwire.schema import Record

NO_ROW: Final = -1


class Collector:
    """Collects the data of the page.

    Attributes:
        packets, bytes, findings: of all items, shown or not.
        kinds: packets, bytes and findings by kind.
        protocols: packets and bytes by protocol.
        severities: findings by severity.
        table, sessions, tallies, timeline, requirements, details, body_types: parts of the page.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.packets = self.bytes = self.findings = self.again = self.details_left_out = 0
        self.kinds: dict[str, list[int]] = {}
        self.protocols: dict[str, list[int]] = {}
        self.severities: Counter[str] = Counter()
        self.table = PacketTable(limits)
        self.sessions = Sessions(limits)
        self.tallies = Tallies(limits)
        self.timeline = Timeline(limits)
        self.requirements = Requirements(limits)
        self.details = Details(limits)
        self.body_types = BodyTypes(limits)
        self._start_ns: int | None = None
        self._end_ns: int | None = None
        self._repeats = Repeats(limits.identities)
        self._pending: dict[Hashable, tuple[int, str]] = {}

    @property
    def identities(self) -> int:
        """The number of messages remembered, to find those sent again."""
        return self._repeats.remembered

    def observed(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield items as they are, and take them in on the way."""
        for item in items:
            self.add(item)
            yield item

    def add(self, item: Item) -> None:
        """Take in one item."""
        facts = facts_of(item)
        ends = format_endpoint(item.src, item.src_port), format_endpoint(item.dst, item.dst_port)
        self._count(item, facts)
        number = self.sessions.of(item, ends)
        is_again = self._repeats.has(item, facts)
        self.again += is_again
        is_first_sender = True
        if number >= 0:
            session = self.sessions.sessions[number]
            session.add(item, facts, ends[0], is_again=is_again)
            is_first_sender = ends[0] == session.left
        self.tallies.add(item, facts, by_initiator=is_by_initiator(item, is_first_sender=is_first_sender))
        findings = tuple(item.findings)
        wanting = self.requirements.add(findings)
        if self.table.is_full and (self.details.is_full or not wanting):
            self._add_body(item, facts, NO_ROW, is_again=is_again)
            return
        row = self.table.add(
            item,
            facts,
            session=number,
            severity=worst(findings),
            ends=ends,
            is_again=is_again,
            answers=self._request_of(item, number),
        )
        self._add_body(item, facts, row, is_again=is_again)
        if row < self.limits.details or wanting:
            if self.details.add(row, item):
                for requirement in wanting:
                    requirement.examples.append(row)
            else:
                self.details_left_out += 1

    def _add_body(self, item: Item, facts: Facts, row: int, *, is_again: bool) -> None:
        """Count the type of a body for the page; for counts alone nothing is decoded."""
        is_message = facts.body_size is not None and facts.group in (Group.MESSAGE, Group.ANSWER)
        if is_message and not is_again and self.limits.packets:
            self.body_types.add(item, cut(facts.queue, self.limits.text), row)

    def _count(self, item: Item, facts: Facts) -> None:
        found = len(item.findings)
        self.packets += 1
        self.bytes += item.size
        self.findings += found
        self.severities.update(finding.severity for finding in item.findings)
        kind = self.kinds.setdefault(item.kind, [0, 0, 0])
        protocol = self.protocols.setdefault(facts.protocol, [0, 0, 0])
        for counts in (kind, protocol):
            counts[0] += 1
            counts[1] += item.size
            counts[2] += found
        if item.time_ns is not None:
            self.timeline.add(item.time_ns, facts.group, item.size, found)
        self._start_ns, self._end_ns = span_with(self._start_ns, self._end_ns, item.time_ns)

    def _request_of(self, item: Item, session: int) -> int:
        """Return the row of the request that an item answers, or note it as one; -1 if it answers none."""
        key: Hashable
        if item.kind == "Ping" and isinstance(item.packet, Record):
            key = ("ping", session, item.packet.Cookie)
        elif item.exchange is not None and session >= 0:
            key = (session, item.exchange)
        else:
            return NO_ROW
        request = self._pending.get(key)
        if request is not None and request[1] != item.src:
            del self._pending[key]
            return request[0]
        if len(self._pending) < self.limits.pending:
            self._pending[key] = self.table.count, item.src
        return NO_ROW

    def to_json(self, dissection: Dissection) -> dict[str, Any]:
        """Return all but the table of packets and the details, once a dissection has ended."""
        self.details.end_piece()
        errors = dissection.errors
        failed = dissection.attempts.failed()[0] if dissection.attempts is not None else []
        return {
            "captures": [safe(name) for name in dissection.files[: self.limits.problems]],
            "totals": {
                "captures": len(dissection.files),
                "frames": dissection.records,
                "packets": self.packets,
                "bytes": self.bytes,
                "findings": self.findings,
                "again": self.again,
                "sessions": len(self.sessions.sessions),
                **{severity: self.severities[severity] for severity in SEVERITIES},
            },
            "start": split_time(self._start_ns),
            "end": split_time(self._end_ns),
            "groups": list(GROUPS),
            "kinds": [[name, *counts] for name, counts in _busiest(self.kinds)],
            "protocols": [[name, *counts] for name, counts in _busiest(self.protocols)],
            "damage": [
                [safe(error.file), error.offset, cut(safe(error.why), self.limits.text)]
                for error in errors[: self.limits.problems]
            ],
            "damages": len(errors),
            "attempts": [one.to_json() for one in failed],
            "attempt_causes": CAUSES,
            "frames_not_read": to_json(dissection.frames_not_read),
            "counters": {name: count for name, count in dissection.counters().items() if count},
            **self.tallies.to_json(),
            "bodies": self.body_types.to_json(),
            "sessions": [session.to_json() for session in self.sessions.sessions],
            "timeline": self.timeline.to_json(),
            "requirements": self.requirements.to_json(),
            "details": {"rows": self.details.rows, "piece": PIECE},
        }


def _busiest(counts: dict[Any, list[int]]) -> list[tuple[Any, list[int]]]:
    return sorted(counts.items(), key=lambda one: (-one[1][0], one[0]))
