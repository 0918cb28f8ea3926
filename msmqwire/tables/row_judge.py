"""Findings of rows: the compiled scan says which may have any, lint says which.

A row without a bit is not looked at. For a packet that breaks a rule of its session, a linter is made of the
session as it was before, which has the words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from struct import Struct
from typing import Any, Final, NamedTuple
from uuid import UUID

import numpy as np

from msmqwire.analysis.dissection.dissector import unless_cut
from msmqwire.analysis.lint import Finding, SessionLint, lint_malformed, lint_packet
from msmqwire.analysis.lint.counters import Side
from msmqwire.analysis.lint.queue_managers import TWO_ADDRESSES, Place, QueueManagers, two_addresses
from msmqwire.analysis.lint.registry import FieldOffsets
from msmqwire.analysis.lint.sequences import (
    FINAL_ACK_SENT,
    ORDER_ACK_SENT,
    Fault,
    Sequences,
    TransactionalMessage,
)
from msmqwire.analysis.lint.session import (
    Request,
    SessionProgress,
    ShownQueueManagers,
    State,
    Timeouts,
    shown_by,
)
from msmqwire.capture.record import time_or_none
from msmqwire.packets import parse
from msmqwire.schema import Record
from msmqwire.tables import row_headers
from msmqwire.tables.arrow.refusals import error_of_row
from msmqwire.tables.compiled import judging
from msmqwire.tables.compiled import session_judge as entry
from msmqwire.tables.compiled.generated import FIELD_SLOTS
from msmqwire.tables.compiled.judging import (
    OF_BYTES,
    OF_PACKET,
    OF_QUEUE_MANAGER,
    OF_SEQUENCE,
    OF_SESSION,
    VERDICT,
)
from msmqwire.tables.compiled.packet import LAYOUTS, ORDER, USER
from msmqwire.tables.compiled.scan_arrays import RowBlock
from msmqwire.tables.compiled.state import (
    ORIGIN_BEHIND,
    ORIGIN_CUT,
    ORIGIN_NUMBER,
    R_KIND,
    R_LENGTH,
    R_ORIGIN,
    R_START,
    R_STREAM,
    R_TIME,
)
from msmqwire.tables.row_headers import queues_of, structures_at

_SESSIONS: Final = 1 << 10
"""Connections for which there is room at first."""
_BEFORE: Final = 1 << 9
"""Sessions that are kept before their rows are looked at."""
_WORDS: Final = (1, 2, 4)
"""The sizes of flag words."""
_GUID: Final = Struct("<4I")
_ACKNOWLEDGED: Final = Struct("<III")  # the Ordinal and TimeStamp of a TxSequenceID, a TxSequenceNumber
_MESSAGE: Final = FIELD_SLOTS["UserMessage"]
_USER_AT: Final = _MESSAGE["UserHeader.SourceQueueManager"][1]
_TRANSACTION: Final = np.dtype([(name, "<u4") for name in ("Ordinal", "TimeStamp", "Number", "Previous")])
_TRANSACTION_SLOT, _TRANSACTION_AT = _MESSAGE["TransactionHeader.TxSequenceID.Ordinal"][:2]
_BODY_SLOT: Final = _MESSAGE["MessagePropertiesHeader.MessageBody"][0]


class Sender(NamedTuple):
    """Where the packet of a row was seen.

    Attributes:
        address: the address of its sender.
        file, frame: the file of its last frame, and the number of that.
    """

    address: str
    file: str
    frame: int


@dataclass(slots=True)
class _Connection:
    """What the compiled judge does not know of a connection.

    Attributes:
        stream: its number.
        shown: the queue managers at its ends.
        sequences: its transactional sequences.
        breaks: the breaks of the session that the sequences know of.
    """

    stream: int
    shown: ShownQueueManagers = field(default_factory=ShownQueueManagers)
    sequences: Sequences = field(default_factory=Sequences)
    breaks: int = 0

    def sequences_after(self, breaks: int) -> Sequences:
        """Return the sequences, after so many breaks of the session."""
        if breaks != self.breaks:
            self.breaks = breaks
            self.sequences.gap()
        return self.sequences


class RowJudge:
    """Judges the rows of a capture, block by block.

    Args:
        tcp_ports: for each port whether its TCP connections are MSMQ.

    Attributes:
        looked_at: the packets of sessions that were given to lint.
        in_vain: those of them without a finding.
    """

    def __init__(self, tcp_ports: Any) -> None:
        self._tcp_ports = tcp_ports
        self._sessions = no_sessions(_SESSIONS)
        self._numbers = 0  # all numbers of connections so far are below it
        self._before = np.zeros((_BEFORE, entry.SESSION), np.int64)
        self._verdicts = np.zeros((0, VERDICT), np.int64)
        # By number: an ended connection is kept until its number recurs, and the scan bounds the numbers.
        self._connections: dict[int, _Connection] = {}
        self._queue_managers = QueueManagers()
        self.looked_at = self.in_vain = 0

    def restart(self) -> None:
        """Forget all connections: others follow, with the same numbers."""
        self._sessions[: self._numbers, entry.STREAM] = -1
        self._numbers = 0
        self._connections.clear()
        self._queue_managers = QueueManagers()

    def suspects(self, block: RowBlock) -> Iterator[tuple[int, Suspect]]:
        """Yield the rows that may have findings, in their order; each is to be judged before the next."""
        count = len(block.rows)
        if count > len(self._verdicts):
            self._verdicts = np.zeros((count, VERDICT), np.int64)
        number = int(block.rows[:, R_ORIGIN].max(initial=-1)) >> ORIGIN_NUMBER + 1
        self._numbers = max(self._numbers, number + 1)
        if number >= len(self._sessions):
            more = no_sessions(max(number + 1, 2 * len(self._sessions)) - len(self._sessions))
            self._sessions = np.concatenate([self._sessions, more])
        first = 0
        while first < count:
            last = judging.judge_rows(
                block, self._sessions, self._tcp_ports, self._verdicts, self._before, first
            )
            chosen = first + np.flatnonzero(self._verdicts[first:last, judging.V_BITS])
            yield from self._suspects(block, chosen)
            first = last

    def _suspects(self, block: RowBlock, chosen: Any) -> Iterator[tuple[int, Suspect]]:
        """Yield the chosen rows but transactional messages that only continue their sequence."""
        bits = self._verdicts[chosen, judging.V_BITS]
        is_transactional = (bits & OF_SEQUENCE != 0) & (block.field_offsets[chosen, _TRANSACTION_SLOT] >= 0)
        is_only_so = is_transactional & (bits == OF_SEQUENCE) & (block.rows[chosen, R_KIND] == USER)
        messages = transactional_messages(block, chosen[is_transactional])
        others = suspects_at(block, self._verdicts, chosen[~is_only_so])
        rows = chosen[is_only_so]
        columns = (
            rows.tolist(), block.rows[rows, R_ORIGIN].tolist(), block.rows[rows, R_STREAM].tolist(),
            self._verdicts[rows, judging.V_BREAKS].tolist(),
            (self._verdicts[rows, judging.V_IS_FROM_INITIATOR] != 0).tolist(),
        )  # fmt: skip
        only_so = zip(*columns, strict=True)
        for has_message, goes_on in zip(is_transactional.tolist(), is_only_so.tolist(), strict=True):
            message = next(messages) if has_message else None
            if message is None or not goes_on:
                r, suspect = next(others)
                suspect.message = message
                yield r, suspect
                continue
            r, origin, stream, breaks, is_from_initiator = next(only_so)
            sequences = self._connection(origin, stream).sequences_after(breaks)
            if faults := sequences.take(is_from_initiator, message):
                ((r, suspect),) = suspects_at(block, self._verdicts, np.array([r]))
                suspect.faults = faults
                yield r, suspect

    def findings(self, suspect: Suspect, sender: Callable[[], Sender]) -> list[Finding]:
        """Return the findings of a row; `sender` returns where it was seen."""
        bits = suspect.bits
        if bits & OF_BYTES:
            error = error_of_row(suspect.offsets.tolist())
            return unless_cut(lint_malformed(suspect.raw, error), cut=bool(suspect.origin & ORIGIN_CUT))
        findings = lint_packet(suspect.packet, suspect.raw, suspect.of_fields) if bits & OF_PACKET else []
        connection = self._connection(suspect.origin, suspect.stream)
        if bits & OF_QUEUE_MANAGER:
            findings += self._two_addresses(connection, suspect, sender)
        of_session = self._sequence(connection, suspect) if bits & OF_SEQUENCE else []
        if bits & OF_SESSION:
            progress = _progress(self._before[suspect.session].tolist())
            of_session += SessionLint.resumed(progress).packet(
                suspect.is_from_initiator, suspect.packet, suspect.raw, time_or_none(suspect.time_ns),
                is_behind=bool(suspect.origin & ORIGIN_BEHIND), offsets=suspect.of_fields,
            )  # fmt: skip
        findings += sorted(of_session, key=attrgetter("offset"))
        if bits & (OF_PACKET | OF_SESSION):
            self.looked_at += 1
            self.in_vain += not findings
        return findings

    def _connection(self, origin: int, stream: int) -> _Connection:
        number = origin >> ORIGIN_NUMBER + 1
        connection = self._connections.get(number)
        if connection is None or connection.stream != stream:
            connection = self._connections[number] = _Connection(stream)
        return connection

    def _two_addresses(
        self, connection: _Connection, suspect: Suspect, sender: Callable[[], Sender]
    ) -> Iterator[Finding]:
        """Yield that a queue manager was seen at another address, too: `MsmqConnection._lint_address`."""
        if suspect.kind == USER:  # in no other packet does lint look at it
            source = suspect.source
            shown = (UUID(bytes_le=source), "UserHeader.SourceQueueManager") if any(source) else None
        else:
            shown = shown_by(suspect.packet, initiator=suspect.is_from_initiator)
        if shown is None or not connection.shown.add(suspect.is_from_initiator, *shown):
            return
        guid, path = shown
        here = Place(*sender())
        there = self._queue_managers.add(guid, here)
        if there is not None:
            offset = suspect.of_fields.of(path)
            yield TWO_ADDRESSES.at(path, offset, two_addresses(guid, here, there))

    def _sequence(self, connection: _Connection, suspect: Suspect) -> list[Finding]:
        """Return the findings about the transactional sequence of a packet."""
        sequences, faults = connection.sequences_after(suspect.breaks), suspect.faults
        if suspect.message is not None:
            faults += sequences.take(suspect.is_from_initiator, suspect.message)
        if suspect.kind != USER:
            ident, number = suspect.acknowledged()
            if (last := sequences.not_sent(suspect.is_from_initiator, ident, number)) is not None:
                check = ORDER_ACK_SENT if suspect.kind == ORDER else FINAL_ACK_SENT
                faults.append((check, check.path, f"{number} was not sent, {last} was the last"))
        return [check.at(path, suspect.of_fields.of(path), why) for check, path, why in faults]


class ScannedOffsets(FieldOffsets):
    """The offsets of the fields of a packet that the scan has read: most of them it knows."""

    def __init__(self, suspect: Suspect) -> None:
        self._suspect, self._places = suspect, FIELD_SLOTS[LAYOUTS[suspect.kind]]
        self._others: FieldOffsets | None = None

    def of(self, path: str) -> int:
        place = self._places.get(path)
        if place is None:
            place = self._places.get(path.rpartition(".")[0])
            if place is not None and place[2] not in _WORDS:  # the path is not of a bit in it
                place = None
        if place is not None and (start := int(self._suspect.offsets[place[0]])) >= 0:
            return start + place[1]
        return self._by_walking.of(path)

    def packet_size(self) -> int:
        return self._by_walking.packet_size()

    @property
    def _by_walking(self) -> FieldOffsets:
        if self._others is None:
            self._others = FieldOffsets(self._suspect.packet)
        return self._others


def suspects_at(block: RowBlock, verdicts: Any, chosen: Any) -> Iterator[tuple[int, Suspect]]:
    """Yield the chosen rows of a block, with their verdicts."""
    # Column by column: a list for each row would keep the garbage collector busy.
    columns = [verdicts[chosen, at].tolist() for at in range(VERDICT)]
    columns += [block.rows[chosen, at].tolist() for at in _OF_SUSPECT]
    for r, values in zip(chosen.tolist(), zip(*columns, strict=True), strict=True):
        yield r, Suspect(block.memory, block.field_offsets[r], values)


_OF_SUSPECT: Final = (R_KIND, R_ORIGIN, R_STREAM, R_TIME, R_START, R_LENGTH)


class Suspect:
    """A row that may have findings: its values, and its packet when it is asked for.

    Args:
        memory: the bytes to which rows refer.
        offsets: where the fields of its packet stand.
        values: its verdict, and those at `_OF_SUSPECT`.

    Attributes:
        message: the transactional message in it that is to be followed; None if there is none.
        faults: the faults of its sequence that are known already.
    """

    __slots__ = (
        "_of_fields", "_packet", "bits", "breaks", "faults", "is_from_initiator", "kind", "message",
        "offsets", "origin", "raw", "session", "stream", "time_ns",
    )  # fmt: skip

    def __init__(self, memory: Any, offsets: Any, values: tuple[int, ...]) -> None:
        (
            self.bits, is_from_initiator, self.breaks, self.session,
            self.kind, self.origin, self.stream, self.time_ns, start, length,
        ) = values  # fmt: skip
        self.is_from_initiator, self.offsets = bool(is_from_initiator), offsets
        self.raw: bytes = memory[start : start + length].tobytes()
        self.message: TransactionalMessage | None = None
        self.faults: list[Fault] = []
        self._packet: Record | None = None
        self._of_fields: FieldOffsets | None = None

    @property
    def packet(self) -> Record:
        """The packet, which is well-formed."""
        if self._packet is None:
            self._packet = parse(self.raw)
        return self._packet

    @property
    def of_fields(self) -> FieldOffsets:
        """The offsets of the fields of the packet."""
        if self._of_fields is None:
            self._of_fields = ScannedOffsets(self)
        return self._of_fields

    @property
    def was_parsed(self) -> bool:
        """Whether somebody has asked for the packet."""
        return self._packet is not None

    @property
    def source(self) -> bytes:
        """The SourceQueueManager of a message."""
        return self.raw[_USER_AT : _USER_AT + 16]

    def acknowledged(self) -> tuple[int, int]:
        """Return sequence and number that an OrderAck or FinalAck acknowledges."""
        ordinal, time_stamp, number = _ACKNOWLEDGED.unpack_from(self.raw, int(self.offsets[_BODY_SLOT]))
        return time_stamp << 32 | ordinal, number


def transactional_messages(block: RowBlock, chosen: Any) -> Iterator[TransactionalMessage]:
    """Return the transactional messages in some rows."""
    starts, memory = block.rows[chosen, R_START], block.memory
    headers = structures_at(memory, starts, row_headers.USER)
    kinds, queues, sizes = queues_of(headers, starts)
    offsets = block.field_offsets[chosen, _TRANSACTION_SLOT]
    numbers = structures_at(memory, starts + offsets + _TRANSACTION_AT, _TRANSACTION)
    view = memoryview(memory)  # its pieces cost less than those of an array
    destinations = [
        (kind, bytes(view[start:end])) if end > start else None
        for kind, start, end in zip(kinds.tolist(), queues.tolist(), (queues + sizes).tolist(), strict=True)
    ]
    sequences = numbers["TimeStamp"].astype(np.uint64) << np.uint64(32) | numbers["Ordinal"]
    cells = zip(
        headers["SourceQueueManager"].tolist(), destinations, headers["MessageID"].tolist(),
        sequences.tolist(), numbers["Number"].tolist(), numbers["Previous"].tolist(), strict=True,
    )  # fmt: skip
    return map(TransactionalMessage._make, cells)


def no_sessions(count: int) -> Any:
    """Return room for a number of sessions, none of which has begun."""
    sessions = np.zeros((count, entry.SESSION), np.int64)
    sessions[:, entry.STREAM] = -1
    return sessions


def _progress(session: list[int]) -> SessionProgress:
    """Return a session of the compiled judge as lint knows it."""
    request = timeouts = None
    if session[entry.HAS_REQUEST]:
        client, server = (
            UUID(bytes_le=_GUID.pack(*session[at : at + 4])) for at in (entry.CLIENT_GUID, entry.SERVER_GUID)
        )
        request = Request(client, server, session[entry.TIME_STAMP], int(session[entry.SE] != 0))
    if session[entry.HAS_PARAMETERS]:
        timeouts = Timeouts(session[entry.RECOVERABLE_TIMEOUT], session[entry.ASKED_TIMEOUT])
    timeout = _known(session[entry.ACK_TIMEOUT])
    initiator, acceptor = (_side(session[entry.SIDES + side * entry.SIDE :]) for side in range(2))
    return SessionProgress(
        State(session[entry.STATE]), bool(session[entry.IS_WHOLE]), bool(session[entry.IS_FIRST]),
        request, timeouts, (initiator, acceptor), None if timeout is None else timeout * 1_000_000,
        (_known(session[entry.SILENT_SINCE]), _known(session[entry.SILENT_SINCE + 1])),
        bool(session[entry.SILENCE_REPORTED]),
    )  # fmt: skip


def _side(values: list[int]) -> Side:
    return Side(
        _known(values[entry.SENT]), _known(values[entry.RECOVERABLE]), _known(values[entry.ACKED]),
        bool(values[entry.WHOLE]), values[entry.DRIFT], values[entry.RECOVERABLE_DRIFT],
        values[entry.SURPLUS], values[entry.WINDOW], bool(values[entry.FULL]),
    )  # fmt: skip


def _known(number: int) -> int | None:
    return None if number == entry.NONE else number
