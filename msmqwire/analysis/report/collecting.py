"""Items of captures to the data of a report, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final

from msmqwire.analysis.dissection import Dissection, Item
from msmqwire.analysis.lint import SEVERITIES, Finding
from msmqwire.analysis.report.alike import Alike, alone
from msmqwire.analysis.report.body_types import BodyTypes
from msmqwire.analysis.report.details import PIECE, Details
from msmqwire.analysis.report.facts import GROUPS, Facts, Group, facts_of
from msmqwire.analysis.report.limits import Limits
from msmqwire.analysis.report.packet_table import PacketTable
from msmqwire.analysis.report.repeats import Repeats
from msmqwire.analysis.report.requirements import Requirement, Requirements, worst
from msmqwire.analysis.report.sessions import Sessions, is_by_initiator, span_with, split_time
from msmqwire.analysis.report.tallies import Tallies
from msmqwire.analysis.report.timeline import Timeline
from msmqwire.capture.attempts import CAUSES
from msmqwire.capture.not_read import to_json
from msmqwire.names.printable import cut, format_endpoint, safe
from msmqwire.schema import Record

if TYPE_CHECKING:
    from msmqwire.analysis.report.row_columns import QueueNames
    from msmqwire.analysis.report.row_groups import RowGroups
    from msmqwire.tables.session_rows import SessionRows

NO_ROW: Final = -1
FEW_ROWS: Final = 24
"""Fewer rows take less time one by one."""


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
        self._queue_names: QueueNames | None = None
        self._pending: dict[Hashable, tuple[int, str]] = {}

    @property
    def identities(self) -> int:
        """The number of messages remembered, to find those sent again."""
        return self._repeats.remembered

    def take(self, part: Item | SessionRows) -> None:
        """Take in a part of a dissection; see `Dissection.parts`."""
        if isinstance(part, Item):
            self.add(part)
        else:
            self.add_rows(part)

    def add(self, item: Item) -> None:
        """Take in one item."""
        facts = facts_of(item)
        is_again = self._repeats.has(item, facts)
        if item.time_ns is not None:
            self.timeline.add(item.time_ns, facts.group, item.size, len(item.findings))
        number, ends = self._count(alone(item, facts, is_again=is_again))
        by_initiator = self._note_handshake(item, number, ends[0])
        self.tallies.add(item, facts, by_initiator=by_initiator)
        wanting = self._add_findings(item.findings)
        self._show(item, facts, number, ends, wanting, is_again=is_again)

    def add_rows(self, rows: SessionRows) -> None:
        """Take in rows of sessions: the same as their items one by one, in less time."""
        room = max(0, self.limits.packets - self.table.count)
        for within in (rows.within[:room], rows.within[room:]):
            if len(within) >= FEW_ROWS:
                self._add_groups(rows._replace(within=within))
            else:
                for r in within:
                    self.add(rows.item(r))

    def _add_groups(self, of_scan: SessionRows) -> None:
        """Take in rows, which all find place in the table, or none of them."""
        # They need numpy.
        from msmqwire.analysis.report.row_bodies import add_bodies
        from msmqwire.analysis.report.row_columns import QueueNames
        from msmqwire.analysis.report.row_groups import RowGroups
        from msmqwire.analysis.report.row_table import table_rows

        if self._queue_names is None:
            self._queue_names = QueueNames()
        rows = RowGroups(of_scan, self._queue_names)
        again = rows.again(self._repeats.of)
        sessions = [self._count(alike) for alike in rows.alike(again)]
        for name, queue in rows.queues():
            self.tallies.add_queue(name, queue)
        for named in rows.managers():
            if isinstance(named, Item):
                number, ends = self._session_of(named)
                by_initiator = self._note_handshake(named, number, ends[0])
                assert isinstance(named.packet, Record)
                self.tallies.add_managers(named, named.packet, by_initiator=by_initiator)
            else:
                self.tallies.add_messages(*named)
        if rows.span is not None:
            for interval in rows.intervals(self.timeline.width_with(*rows.span)):
                self.timeline.add(*interval)
        first = NO_ROW if self.table.is_full else self.table.count
        if first != NO_ROW:
            self.table.extend(
                table_rows(rows, sessions, again, self.table.names, self.table.texts), len(rows)
            )
        examples = self._show_rows(rows, first, again)
        if self.limits.packets:  # for counts alone nothing is decoded
            add_bodies(self.body_types, rows, again, first, examples, self.limits.text)

    def _add_findings(self, findings: Sequence[Finding]) -> list[Requirement]:
        """Count the findings of an item; return the requirements that lack examples."""
        self.severities.update([finding.severity for finding in findings])
        return self.requirements.add(findings)

    def _show_rows(self, rows: RowGroups, first: int, again: Any) -> dict[int, int]:
        """Count the findings of rows, and show fields and bytes of those that are wanted.

        Returns:
            The rows of the table of those that are added to it as they are wanted: `first` is the row of the
            first of all, or `NO_ROW`.
        """
        added: dict[int, int] = {}
        detailed = max(0, self.limits.details - first) if first != NO_ROW else 0
        for r in sorted({*range(min(detailed, len(rows))), *rows.findings}):
            wanting = self._add_findings(rows.findings.get(r, ()))
            if first != NO_ROW and (wanting or r < detailed):
                self._add_details(first + r, rows.item(r), wanting)
            elif wanting and not self.details.is_full:
                item = rows.item(r)
                added[r] = self._add_row(
                    item, facts_of(item), *self._session_of(item), is_again=bool(again[r])
                )
                self._add_details(added[r], item, wanting)
        return added

    def _show(
        self,
        item: Item,
        facts: Facts,
        number: int,
        ends: tuple[str, str],
        wanting: list[Requirement],
        *,
        is_again: bool,
    ) -> None:
        """Add an item to the table and to the details, as far as they have room, and its body."""
        row = NO_ROW
        if not self.table.is_full or (wanting and not self.details.is_full):
            row = self._add_row(item, facts, number, ends, is_again=is_again)
            if row < self.limits.details or wanting:
                self._add_details(row, item, wanting)
        self._add_body(item, facts, row, is_again=is_again)

    def _add_row(
        self, item: Item, facts: Facts, number: int, ends: tuple[str, str], *, is_again: bool
    ) -> int:
        """Add an item of a session to the table; return its row."""
        return self.table.add(
            item,
            facts,
            session=number,
            severity=worst(item.findings),
            ends=ends,
            is_again=is_again,
            answers=self._request_of(item, number),
        )

    def _add_details(self, row: int, item: Item, wanting: list[Requirement]) -> None:
        """Add the fields and bytes of an item, which are an example of the requirements wanting one."""
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

    def _count(self, alike: Alike) -> tuple[int, tuple[str, str]]:
        """Count packets; return the number of their session and its ends, the sender first."""
        self.packets += alike.packets
        self.bytes += alike.bytes
        self.findings += alike.findings
        self.again += alike.again
        kind = self.kinds.setdefault(alike.kind, [0, 0, 0])
        protocol = self.protocols.setdefault(alike.protocol, [0, 0, 0])
        for counts in (kind, protocol):
            counts[0] += alike.packets
            counts[1] += alike.bytes
            counts[2] += alike.findings
        self._start_ns, self._end_ns = span_with(self._start_ns, self._end_ns, alike.start_ns, alike.end_ns)
        ends = ends_of(alike)
        number = self.sessions.of(alike, ends)
        if number >= 0:
            self.sessions.sessions[number].add(alike, ends[0])
        self.tallies.add_endpoints(alike)
        return number, ends

    def _session_of(self, item: Item) -> tuple[int, tuple[str, str]]:
        """Return the number of the session of an item that is counted, and its ends, the sender first."""
        ends = ends_of(item)
        return self.sessions.number_of(item, ends), ends

    def _note_handshake(self, item: Item, number: int, sender: str) -> bool:
        """Note the part of an item in the handshake of its session; return whether the opener sent it."""
        is_first_sender = True
        if number >= 0:
            session = self.sessions.sessions[number]
            is_first_sender = sender == session.left
            if item.kind == "EstablishConnection":
                session.note_handshake(item, to_left=not is_first_sender)
        return is_by_initiator(item, is_first_sender=is_first_sender)

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


def ends_of(alike: Alike | Item) -> tuple[str, str]:
    """Return the ends of packets, that of the sender first."""
    return format_endpoint(alike.src, alike.src_port), format_endpoint(alike.dst, alike.dst_port)


def _busiest(counts: dict[Any, list[int]]) -> list[tuple[Any, list[int]]]:
    return sorted(counts.items(), key=lambda one: (-one[1][0], one[0]))
