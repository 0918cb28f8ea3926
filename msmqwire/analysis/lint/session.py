"""Checks of a connection: the order of its packets and their numbers.

[MS-MQQB] 3.1.1.1, 3.1.1.4 to 3.1.1.7 and 3.1.5.2 to 3.1.5.8; [MS-MQMQ] 2.2.20.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import Any, Final, Literal, NamedTuple, TypeAlias
from uuid import UUID

from msmqwire.analysis.lint.counters import Counters, Side
from msmqwire.analysis.lint.finding import Finding
from msmqwire.analysis.lint.registry import FieldOffsets, listed
from msmqwire.analysis.lint.sequences import Sequences
from msmqwire.schema import NULL_GUID, Record

CLAIMS_MAX: Final = 16
"""Queue managers of a connection whose addresses are noted; of more, the rest are not looked at."""

Direction: TypeAlias = Literal["c2s", "s2c"]
_MESSAGES = frozenset({"UserMessage", "OrderAck", "FinalAck"})
_PT = "InternalHeader.Flags.PT"
_CS = "InternalHeader.Flags.CS"
_EC = "EstablishConnectionHeader"
_CP = "ConnectionParametersHeader"

# A packet in a state in which it closes the session, by its kind.
OUT_OF_ORDER: Final = {
    "EstablishConnection": listed("MQQB-3.1.5.3-01", "EstablishConnection comes out of its place", _PT),
    "ConnectionParameters": listed("MQQB-3.1.5.4-01", "ConnectionParameters come out of their place", _PT),
    "SessionAck": listed("MQQB-3.1.5.5-01", "A SessionAck comes before the session is open", _PT),
    "OrderAck": listed(
        "MQQB-3.1.5.6-01", "An OrderAck comes before the session is open", "BaseHeader.Flags.IN"
    ),
    "FinalAck": listed(
        "MQQB-3.1.5.7-01", "A FinalAck comes before the session is open", "BaseHeader.Flags.IN"
    ),
    "UserMessage": listed(
        "MQQB-3.1.5.8-01", "A UserMessage comes before the session is open", "BaseHeader.Flags.IN"
    ),
}
REQUEST_CS: Final = listed("MQQB-3.1.5.2.3-02", "An EstablishConnection request has CS set", _CS)
CLIENT_GUID: Final = listed(
    "MQQB-3.1.5.3.1-04", "The EstablishConnection response has another ClientGuid", f"{_EC}.ClientGuid"
)
SERVER_GUID: Final = listed(
    "MQQB-2.2.3.1-05", "The EstablishConnection response has another ServerGuid", f"{_EC}.ServerGuid"
)
OWN_GUID: Final = listed(
    "MQQB-3.1.5.3.1-05", "The EstablishConnection response has no ServerGuid", f"{_EC}.ServerGuid"
)
FOREIGN_GUID: Final = listed("MQQB-2.2.1-08", "The acceptor has another GUID and does not refuse", _CS)
TIME_STAMP: Final = listed(
    "MQQB-3.1.5.3.1-06", "The EstablishConnection response has another TimeStamp", f"{_EC}.TimeStamp"
)
SE_ECHO: Final = listed(
    "MQQB-3.1.5.3.1-07", "The EstablishConnection response has another SE", f"{_EC}.OperatingSystem.SE"
)
PADDING: Final = listed(
    "MQQB-2.2.3.1-18", "Padding of the EstablishConnection response is not 0x5A", f"{_EC}.Padding"
)
REFUSED: Final = listed("MQQB-3.1.5.3.2-03", "A packet is sent on a refused connection", "BaseHeader")
CP_REQUEST_CS: Final = listed("MQQB-3.1.5.3.2-06", "A ConnectionParameters request has CS set", _CS)
CP_ECHO: Final = listed(
    "MQQB-3.1.5.4.1-02", "The ConnectionParameters response has other timeouts, or CS set"
)
ACK_WAIT: Final = listed("MQQB-3.1.6.3-02", "The session goes on though the peer is silent", "BaseHeader")


class State(Enum):
    """The progress of opening a session, seen from outside."""

    START = auto()
    EC_ASKED = auto()
    EC_ANSWERED = auto()
    CP_ASKED = auto()
    OPEN = auto()
    REFUSED = auto()
    UNKNOWN = auto()


# The packets that open a session, by state, kind and whether the initiator sends it.
_STEPS: Final = {
    (State.START, "EstablishConnection", True): State.EC_ASKED,
    (State.EC_ASKED, "EstablishConnection", False): State.EC_ANSWERED,
    (State.EC_ANSWERED, "ConnectionParameters", True): State.CP_ASKED,
    (State.CP_ASKED, "ConnectionParameters", False): State.OPEN,
}


class ShownQueueManagers:
    """The queue managers that the packets of a connection show to be at its ends.

    Only a queue manager's own messages tell: a router has raised the hop count of those that it passes on,
    MQQB-3.1.5.8.2-17.
    """

    def __init__(self) -> None:
        self._own: dict[bool, UUID] = {}  # of both sides
        self._claims: set[tuple[bool, UUID]] = set()

    def add(self, initiator: bool, guid: UUID, path: str) -> bool:
        """Add what a packet of one side shows; return whether it is new."""
        if path.startswith(_EC):
            self._own[initiator] = guid
        elif self._own.get(initiator, guid) != guid:
            return False
        if (initiator, guid) in self._claims or len(self._claims) >= CLAIMS_MAX:
            return False
        self._claims.add((initiator, guid))
        return True


def shown_by(packet: Record, *, initiator: bool) -> tuple[UUID, str] | None:
    """Return the queue manager that a packet shows to have sent it, and the field that says so."""
    kind = packet.schema.name
    if kind == "EstablishConnection":
        path = f"{_EC}.{'ClientGuid' if initiator else 'ServerGuid'}"
        guid = packet[_EC].ClientGuid if initiator else packet[_EC].ServerGuid
        return None if guid == NULL_GUID or packet.InternalHeader.Flags.CS else (guid, path)
    if kind == "UserMessage" and not packet.UserHeader.Flags.RC:
        guid = packet.UserHeader.SourceQueueManager
        return None if guid == NULL_GUID else (guid, "UserHeader.SourceQueueManager")
    return None


class Request(NamedTuple):
    """The fields of an EstablishConnection request that its response repeats."""

    client: UUID
    server: UUID
    time_stamp: int
    se: int


class Timeouts(NamedTuple):
    """The fields of a ConnectionParameters request that its response repeats, in milliseconds."""

    recoverable: int
    ack: int


class SessionProgress(NamedTuple):
    """How far a session has come, as another reader knows it.

    Attributes:
        state: that of `SessionLint`.
        is_whole: whether its opening packets are judged.
        is_first: whether no packet of it was seen.
        request, timeouts: those of the initiator, once they were seen.
        sides: the counts of the initiator and of the acceptor.
        ack_timeout_ns: the agreed AckTimeout; None if it is unknown.
        silent_since: since when the initiator, and the acceptor, waits for acknowledgements; None if it does
            not.
        silence_reported: whether a peer that is silent was reported.
    """

    state: State
    is_whole: bool
    is_first: bool
    request: Request | None
    timeouts: Timeouts | None
    sides: tuple[Side, Side]
    ack_timeout_ns: int | None
    silent_since: tuple[int | None, int | None]
    silence_reported: bool


class SessionLint:
    """Checks the packets of one connection, in the order in which they passed.

    Args:
        midstream: the connection was open before the first packet seen: its opening is not checked, and
            its numbers are learned from the first SessionHeader.
    """

    def __init__(self, midstream: bool = False) -> None:
        self._state = State.UNKNOWN if midstream else State.START
        self._is_whole = not midstream  # the opening packets are judged
        self._is_first = True  # the next packet is the first
        self._request: Request | None = None
        self._timeouts: Timeouts | None = None
        self._counters = Counters(known=not midstream)
        self._sequences = Sequences()
        self._ack_timeout_ns: int | None = None
        self._silent_since: dict[bool, int | None] = {True: None, False: None}
        self._silence_reported = False
        self._shown = ShownQueueManagers()

    @classmethod
    def resumed(cls, progress: SessionProgress) -> SessionLint:
        """Return a linter of a session that has come so far, but for its transactional sequences."""
        lint = cls()
        lint._state, lint._is_whole, lint._is_first = progress.state, progress.is_whole, progress.is_first
        lint._request, lint._timeouts = progress.request, progress.timeouts
        lint._counters = Counters.resumed(*progress.sides)
        lint._ack_timeout_ns, lint._silence_reported = progress.ack_timeout_ns, progress.silence_reported
        lint._silent_since = dict(zip((True, False), progress.silent_since, strict=True))
        return lint

    @property
    def state(self) -> State:
        """The state of the session."""
        return self._state

    def gap(self) -> None:
        """Note that bytes of the connection were missed: numbers are learned again."""
        if self._state is not State.OPEN:
            self._miss()
        self._counters.forget()
        self._sequences.gap()
        self._silent_since = {True: None, False: None}

    def _miss(self) -> None:
        """Note that a part of the opening was missed: its other parts are learned, unchecked."""
        self._state, self._is_whole = State.UNKNOWN, False

    def packet(
        self,
        direction: Direction | bool,
        packet: Record,
        data: bytes | None = None,
        time_ns: int | None = None,
        *,
        is_behind: bool = False,
        offsets: FieldOffsets | None = None,
    ) -> list[Finding]:
        """Return the findings of the next packet in the session; `lint_packet` checks it by itself.

        Args:
            direction: ``c2s`` or True for one from the initiator, ``s2c`` or False for one from the acceptor.
            packet: the packet.
            data: its bytes; not needed.
            time_ns: when it passed, in nanoseconds; without it timers are not checked.
            is_behind: this side has received something of the other one that was not captured, or not in
                order: its request is unknown.
            offsets: the offsets of its fields, if they are known.
        """
        if direction not in (True, False, "c2s", "s2c"):
            raise ValueError(f"{direction!r} is not c2s, s2c, True or False")
        initiator = direction is True or direction == "c2s"
        kind = packet.schema.name
        if kind not in OUT_OF_ORDER:
            raise ValueError(f"{kind} is not a packet of a session")
        offsets = offsets or FieldOffsets(packet)
        if is_behind and self._state is not State.OPEN:
            self._miss()
        findings = [*self._order(initiator, kind, packet, offsets)]
        if is_behind:
            self._counters.fall_behind(initiator)
        findings.extend(self._silence(initiator, offsets, time_ns))
        if kind in _MESSAGES:
            findings.extend(self._counters.message(initiator, packet, offsets))
            if packet.TransactionHeader is not None:
                findings.extend(self._sequences.message(initiator, packet, offsets))
            if kind != "UserMessage":
                findings.extend(self._sequences.acknowledged(initiator, packet, offsets))
        if packet.get("SessionHeader") is not None:
            findings.extend(self._counters.header(initiator, packet, offsets, is_behind=is_behind))
        if time_ns is not None:
            waits = self._counters.waiting(initiator)
            if waits and self._silent_since[initiator] is None:
                self._silent_since[initiator] = time_ns
            self._silent_since[not initiator] = time_ns if self._counters.waiting(not initiator) else None
        findings.sort(key=lambda finding: finding.offset)
        return findings

    def claim(self, initiator: bool, packet: Record) -> tuple[UUID, str] | None:
        """Return the queue manager that a packet shows to be where it comes from, and the field that says so.

        Once for each; None if it shows none: see `ShownQueueManagers`.
        """
        shown = shown_by(packet, initiator=initiator)
        return shown if shown is not None and self._shown.add(initiator, *shown) else None

    # -- opening -------------------------------------------------------------------------------

    def _order(self, initiator: bool, kind: str, packet: Record, offsets: FieldOffsets) -> Iterator[Finding]:
        is_first, self._is_first = self._is_first, False
        if not self._is_whole:
            # The first packet shows that nothing was missed before it.
            self._is_whole = is_first and initiator and kind == "EstablishConnection"
            self._learn(initiator, kind, packet)
            return
        if self._state is State.REFUSED:
            yield REFUSED.at(REFUSED.path, 0, f"{kind} on a connection that was refused")
            return
        step = _STEPS.get((self._state, kind, initiator))
        if step is None:
            opens = kind in ("EstablishConnection", "ConnectionParameters")
            if self._state is not State.OPEN or opens:
                check = OUT_OF_ORDER[kind]
                side = "initiator" if initiator else "acceptor"
                why = f"{kind} from the {side} while the session is in {self._state.name}"
                yield check.at(check.path, offsets.of(check.path), why)
            if self._state is not State.OPEN:
                self._learn(initiator, kind, packet)
            return
        if kind == "EstablishConnection":
            yield from self._established(initiator, packet, offsets)
        else:
            yield from self._agreed(initiator, packet, offsets)
        refused = bool(packet.InternalHeader.Flags.CS) and not initiator
        self._state = State.REFUSED if refused else step

    def _learn(self, initiator: bool, kind: str, packet: Record) -> None:
        """Take the state of the session from a packet, unchecked."""
        if kind in ("EstablishConnection", "ConnectionParameters"):
            if self._is_whole:
                self._counters.restart()
            else:
                self._counters.forget()
        if kind == "EstablishConnection":
            self._state = State.EC_ASKED if initiator else State.EC_ANSWERED
            self._request = _request(packet) if initiator else None
        elif kind == "ConnectionParameters":
            self._state = State.CP_ASKED if initiator else State.OPEN
            self._take(initiator, packet)
            self._timeouts = _timeouts(packet) if initiator else None
        else:
            self._state = State.OPEN

    def _established(self, initiator: bool, packet: Record, offsets: FieldOffsets) -> Iterator[Finding]:
        header, refused = packet[_EC], packet.InternalHeader.Flags.CS
        if initiator:  # MQQB-2.2.3.1-19
            self._request = _request(packet)  # MQQB-3.1.5.3.1-04, MQQB-3.1.5.3.1-06
            if refused:
                yield REQUEST_CS.at(_CS, offsets.of(_CS), "set in a request")
            return
        if any(byte != 0x5A for byte in header.Padding):
            path = f"{_EC}.Padding"
            yield PADDING.at(path, offsets.of(path), "a byte of it is not 0x5a")
        if self._request is not None:
            yield from self._echo(self._request, header, bool(refused), offsets)

    def _echo(self, asked: Request, answer: Any, refused: bool, offsets: FieldOffsets) -> Iterator[Finding]:
        echoed = ("ClientGuid", CLIENT_GUID, asked.client), ("TimeStamp", TIME_STAMP, asked.time_stamp)
        for name, check, value in echoed:
            if answer[name] != value:
                path = f"{_EC}.{name}"
                yield check.at(path, offsets.of(path), f"{answer[name]} in the response to {value}")
        if asked.se != answer.OperatingSystem.SE:
            path = f"{_EC}.OperatingSystem.SE"
            bit = int(answer.OperatingSystem.SE)
            yield SE_ECHO.at(path, offsets.of(path), f"{bit} in the response to {1 - bit}")
        path = f"{_EC}.ServerGuid"
        if asked.server == NULL_GUID:
            if answer.ServerGuid == NULL_GUID and not refused:
                yield OWN_GUID.at(path, offsets.of(path), "null in a response")
        elif answer.ServerGuid != asked.server and not refused:
            why = f"{answer.ServerGuid} in the response to {asked.server}"
            yield SERVER_GUID.at(path, offsets.of(path), why)
            yield FOREIGN_GUID.at(_CS, offsets.of(_CS), "clear, but the acceptor has another GUID")

    def _agreed(self, initiator: bool, packet: Record, offsets: FieldOffsets) -> Iterator[Finding]:
        header, refused = packet[_CP], packet.InternalHeader.Flags.CS
        self._take(initiator, packet)
        if initiator:
            self._timeouts = _timeouts(packet)
            if refused:
                yield CP_REQUEST_CS.at(_CS, offsets.of(_CS), "set in a request")
            return
        if refused:
            yield CP_ECHO.at(_CS, offsets.of(_CS), "set in a response")
        for name, asked in zip(("RecoverableAckTimeout", "AckTimeout"), self._timeouts or (), strict=False):
            if header[name] != asked:
                path = f"{_CP}.{name}"
                why = f"{header[name]} in the response to {asked}"
                yield CP_ECHO.at(path, offsets.of(path), why)

    def _take(self, initiator: bool, packet: Record) -> None:
        header = packet[_CP]
        self._counters.window(initiator, header.WindowSize)
        if initiator:
            self._ack_timeout_ns = header.AckTimeout * 1_000_000

    # -- timers --------------------------------------------------------------------------------

    def _silence(self, initiator: bool, offsets: FieldOffsets, time_ns: int | None) -> Iterator[Finding]:
        """Check for unacknowledged messages and a peer silent for twice the Session Ack Wait Timer."""
        since, limit = self._silent_since[initiator], self._ack_timeout_ns
        if time_ns is None or since is None or limit is None or self._silence_reported:
            return
        if time_ns - since > 2 * limit:
            self._silence_reported = True
            seconds = (time_ns - since) // 1_000_000_000
            why = f"sent after {seconds} s in which the peer was silent and messages unacknowledged"
            yield ACK_WAIT.at(ACK_WAIT.path, 0, why)


def _request(packet: Record) -> Request:
    header = packet[_EC]
    return Request(header.ClientGuid, header.ServerGuid, header.TimeStamp, header.OperatingSystem.SE)


def _timeouts(packet: Record) -> Timeouts:
    return Timeouts(packet[_CP].RecoverableAckTimeout, packet[_CP].AckTimeout)
