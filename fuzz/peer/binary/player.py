"""Performs the steps of a case of the binary protocol, and reports failures of the peer."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Callable
from typing import Final
from uuid import UUID

from fuzz.peer.binary import accepting, messages
from fuzz.peer.binary.book import NO_ACKNOWLEDGEMENT, Book
from fuzz.peer.binary.cases import opened
from fuzz.peer.binary.expecting import Expectation
from fuzz.peer.binary.live import dated, has_shift
from fuzz.peer.binary.session import FLAGS, MESSAGES, OUT_OF_ORDER, PeerSession
from fuzz.peer.channel import Channel, accepted, wait_for
from fuzz.peer.failure import PeerFailure
from fuzz.peer.recording import Recording
from fuzz.peer.steps import Disguise, Step
from fuzz.peer.target import MSMQ_PORT, Target
from msmqwire.names.printable import counted, in_seconds

FENCES_FROM: Final = 0x7000_0000
"""MessageIDs of the messages that only ask whether a session still works."""
_FENCES: Final = 1 << 16
_AFTERWARDS_S: Final = 0.3
_PACE_S: Final = 0.05
_PAUSE_S: Final = 0.003
_PROBE: Final = 1000
"""The connection on which a plain message is tried."""
_SILENT_S: Final = 0.5
_silent: set[Target] = set()
"""Peers that did not acknowledge a plain message at the last trial: they are waited for less."""


class BinaryPlayer:
    """One performance of a case.

    Actions: ``connect``; ``establish`` and ``agree``, which send and await the answer; ``send``; ``fence``,
    which sends recoverable messages until the peer has to acknowledge what was sent before; ``acknowledged``,
    which waits until all is acknowledged; ``hold`` and ``release``, between which nothing that comes on
    sessions of the peer is acknowledged; ``settle``, which waits until all acknowledgements have come that
    are asked for; ``shutdown``, ``close`` and ``reset``; ``wait``, for as many milliseconds as `connection`
    says.

    `Expectation` has the expectations of a ``send``; an ``establish`` may expect ``refused``, an ``agree``
    ``either``: the session is open then, or the peer has ended it.

    Args:
        target: the peer.
        disguise: the identity that performs.
        recording: records the traffic.
    """

    def __init__(self, target: Target, disguise: Disguise, recording: Recording) -> None:
        self._target, self._disguise, self._recording = target, disguise, recording
        self._sessions: dict[int, PeerSession] = {}
        self._accepted: list[PeerSession] = []
        self._listener = self._listen()
        self._book = Book(disguise.identity, disguise.address, self._listener is not None)
        self._numbers = itertools.count(FENCES_FROM + disguise.identity.int % _FENCES * 256)
        self._templates: dict[int, tuple[bytes, int]] = {}
        self._holding = False
        self._peer: UUID | None = None

    def _listen(self) -> socket.socket | None:
        """Listen where the peer looks for a queue manager of this address, if that is possible."""
        if not self._target.loopback:
            return None
        try:
            listener = socket.create_server((self._disguise.address, MSMQ_PORT), backlog=16)
        except OSError:
            return None
        listener.setblocking(False)
        return listener

    # -- steps -------------------------------------------------------------------------------------------

    def perform(self, step: Step) -> None:
        """Do one thing. Raises PeerFailure."""
        match step.action:
            case "connect":
                self._connect(step)
            case "wait":
                self._until(lambda: False, step.connection / 1000)
            case "hold" | "release":
                self._hold(step.action == "hold")
            case "settle":
                self._settle()
            case _:
                session = self._sessions.get(step.connection)
                if session is not None:  # otherwise it is the remainder of a shortened case
                    self._perform(session, step)

    def _perform(self, session: PeerSession, step: Step) -> None:
        match step.action:
            case "establish":
                self._send(session, step)
                self._await(session, step, lambda: session.requested, "MQQB-3.1.5.3.1-03")
                self._refusal(session, step)
            case "agree":
                session.may_close = session.may_close or step.expects == "either"
                self._send(session, step)
                self._await(session, step, lambda: session.open, "MQQB-3.1.5.4.1-02")
                self._own_window(step)
            case "send":
                expected = Expectation.of(step.expects)
                if expected.closed:
                    self._send_and_await_close(session, step)
                else:
                    self._send(session, step)
                if expected.either:
                    self._await_either(session, step)
            case "fence":
                self._fence(session)
            case "acknowledged":
                self._await_acknowledged(session, step)
            case "shutdown":
                session.channel.finish()
            case "close" | "reset":
                session.may_close = True
                session.channel.close(reset=step.action == "reset")
            case _:
                raise ValueError(f"{step.action} is not a step of the binary protocol")

    def _connect(self, step: Step) -> None:
        source = self._disguise.address if self._target.loopback else None
        at = self._target.host, self._target.ports.binary
        try:
            channel = Channel.connect(at, source, self._recording, self._target.bound)
        except TimeoutError:
            raise PeerFailure((), f"no connection within {in_seconds(self._target.bound)}", "hang") from None
        except OSError as exc:
            raise PeerFailure((), f"no connection: {exc.strerror or exc}", "gone") from None
        old = self._sessions.get(step.connection)
        if old is not None:
            old.channel.close()
        self._sessions[step.connection] = PeerSession(channel, ours=True)

    def _send(self, session: PeerSession, step: Step) -> None:
        expected = Expectation() if step.expects == "refused" else Expectation.of(step.expects)
        if not session.open or session.channel.closed:
            expected = Expectation()  # the remainder of a shortened case
        self._pace(session)
        data = dated(self._disguise.dress(step.data), self._peer)
        data, packets = session.outgoing(data, uncounted=expected.uncounted)
        for packet in packets:
            if packet.schema.name == "UserMessage":
                self._book.note(packet, expected, step.note, step.breaks)
        self._book.confused = self._book.confused or session.confused
        handshake = step.action in ("establish", "agree")
        if not (expected.open or handshake) or (session.uncounted and has_shift(step.data)):
            session.may_close = True
        session.channel.send(data, self._recording.deadline(self._target.bound), step.cuts)
        session.sent_at, session.note = time.monotonic(), step.note
        self._take()

    def _pace(self, session: PeerSession) -> None:
        """Let the peer read the earlier bytes: only the bytes of one step are to come in one segment."""
        if time.monotonic() - session.sent_at < _PACE_S:
            self._until(self._book.all_arrived, _PACE_S)
            time.sleep(max(0.0, session.sent_at + _PAUSE_S - time.monotonic()))

    def _refusal(self, session: PeerSession, step: Step) -> None:
        if session.refused and step.expects != "refused":
            text = f"the peer refuses the session after {step.note or 'EstablishConnection'}"
            raise PeerFailure(step.breaks or ("MQQB-3.1.5.3.1-08",), text, "refused")
        if step.expects == "refused":
            if not session.refused:
                text = f"CS is clear in the answer to {step.note or 'EstablishConnection'}"
                raise PeerFailure(step.breaks or ("MQQB-3.1.5.3.1-09",), text, "not refused")
            session.may_close = True

    def _send_and_await_close(self, session: PeerSession, step: Step) -> None:
        after = step.note or "this"
        try:
            self._send(session, step)
            closed = self._until(lambda: session.channel.closed)
        except PeerFailure as failure:
            if failure.what != OUT_OF_ORDER:
                raise
            text = f"the session stays open after {after}: {failure.text}"
            raise PeerFailure(step.breaks, text, "not closed") from None
        if not closed:
            raise PeerFailure(step.breaks, f"the session stays open after {after}", "not closed")

    def _await_either(self, session: PeerSession, step: Step) -> None:
        """See that the session has ended, or that a message after the step has any answer."""
        if not session.open or session.midway or session.channel.closed:
            return
        heard = session.heard
        number = self._send_plain(session, messages.PA if self._listener is not None else 0)
        self._book.ask(number)

        def answered() -> bool:
            return session.channel.closed or session.heard > heard or self._book.arrived(number)

        if not self._until(answered, messages.RECOVERABLE_ACK_TIMEOUT_MS / 1000 + self._target.bound):
            text = f"the session neither ends nor goes on after {step.note or 'this'}"
            raise PeerFailure(step.breaks, text, "stuck")

    def _hold(self, holding: bool) -> None:
        self._holding = holding
        for session in self._accepted:
            session.holding = holding
            if not holding and session.received != session.received_acknowledged:
                session.acknowledge(self._recording.deadline(self._target.bound))

    # -- receiving --------------------------------------------------------------------------------------

    def _take(self) -> None:
        """Read the received bytes of all connections, and accept new ones."""
        deadline = self._recording.deadline(self._target.bound)
        if self._listener is not None:
            channel = accepted(self._listener, self._recording, len(self._accepted))
            if channel is not None:
                session = PeerSession(channel, ours=False)
                session.holding = self._holding
                self._accepted.append(session)
        for session in self._all():
            if session.channel.closed:
                continue
            for packet in session.read(deadline):
                if packet.schema.name in MESSAGES:
                    self._book.receive(packet)
                elif not session.ours:
                    accepting.answer(session, packet, self._disguise.identity, deadline)
                self._same_peer(session)
            accepting.judge_window(session)

    def _same_peer(self, session: PeerSession) -> None:
        """See that the peer has one GUID on all sessions."""
        self._peer = self._peer or session.peer
        if session.peer is not None and session.peer != self._peer:
            text = f"the peer is {self._peer} on one session and {session.peer} on another"
            ids = "MQQB-3.1.5.3.1-05" if session.ours else "MQQB-2.2.3.1-02"
            raise PeerFailure((ids,), text, "echo")

    def _all(self) -> list[PeerSession]:
        return [*self._sessions.values(), *self._accepted]

    def _until(self, done: Callable[[], bool], seconds: float | None = None) -> bool:
        """Read until something is so, or for the bound of the target; return whether it is so."""
        deadline = self._recording.deadline(self._target.bound if seconds is None else seconds)
        listeners = [self._listener] if self._listener is not None else []
        while True:
            self._take()
            if done():
                return True
            open_channels = [session.channel for session in self._all() if not session.channel.closed]
            if not wait_for(open_channels, listeners, deadline):
                self._take()
                return done()

    def _await(self, session: PeerSession, step: Step, done: Callable[[], bool], requirement: str) -> None:
        try:
            if self._until(lambda: done() or session.channel.closed) and done():
                return
        except PeerFailure as failure:
            if failure.what != OUT_OF_ORDER or not step.breaks:
                raise
            text = f"while an answer is awaited on another connection, {failure.text}"
            raise PeerFailure((*step.breaks, *failure.requirements), text, OUT_OF_ORDER) from None
        if session.channel.closed and step.expects == "either":
            return
        how = (
            "closes the connection"
            if session.channel.closed
            else f"is silent for {in_seconds(self._target.bound)}"
        )
        kind = "EstablishConnection" if step.action == "establish" else "ConnectionParameters"
        ids = tuple(dict.fromkeys((*step.breaks, requirement)))
        raise PeerFailure(ids, f"the peer {how} instead of answering {kind}", "no answer")

    def _own_window(self, step: Step) -> None:
        """See that the WindowSize of the peer is not that of each request; it may be that of one."""
        agreed = {session.agreed for session in self._sessions.values() if session.agreed is not None}
        if len(agreed) > 1 and all(asked == got for asked, got in agreed):
            windows = " and ".join(str(got) for _, got in sorted(agreed))
            text = f"WindowSize of the ConnectionParameters responses is that of the requests, {windows}"
            raise PeerFailure(step.breaks or ("MQQB-3.1.5.4.1-02",), text, "echo")

    # -- whether a session goes on -----------------------------------------------------------------------

    def _fence(self, session: PeerSession) -> None:
        """Send recoverable messages until the peer must acknowledge the first of them: MQQB-3.1.5.8.7-01."""
        if not self._goes_on(session):
            return
        goal = 0, len(session.saved) + FLAGS
        while session.recoverable_sent < len(session.saved) + FLAGS + 1:
            self._send_plain(session, paced=False)
        # A peer that loses packets of one segment is reported here as well.
        self._await_goal(
            session, goal, ("MQQB-3.1.5.8.7-01", "MQMQ-2.2.19.1-19"), "recoverable messages at once"
        )

    def _await_acknowledged(self, session: PeerSession, step: Step) -> None:
        goal = session.sent, session.recoverable_sent
        self._await_goal(session, goal, step.breaks or ("MQQB-3.1.6.4-01",), step.note)

    def _await_goal(
        self, session: PeerSession, goal: tuple[int, int], requirements: tuple[str, ...], note: str
    ) -> None:
        if not session.open or session.confused:
            return
        seconds = messages.RECOVERABLE_ACK_TIMEOUT_MS / 1000 + self._target.bound
        self._until(lambda: session.has_acknowledged(*goal) or session.channel.closed, seconds)
        if session.has_acknowledged(*goal) or (session.may_close and session.channel.closed):
            return
        how = "closes the session" if session.channel.closed else "does not acknowledge"
        text = (
            f"the peer {how}{' after ' + note if note else ''}: {session.acknowledged} of"
            f" {counted(session.sent, 'message')},"
            f" {len(session.saved)} of {session.recoverable_sent} recoverable ones are acknowledged"
        )
        raise PeerFailure(requirements, text, "unacknowledged")

    def _send_plain(self, session: PeerSession, wants: int = 0, *, paced: bool = True) -> int:
        """Send a small recoverable message; return its MessageID."""
        if paced:
            self._pace(session)
        number = next(self._numbers)
        template, at = self._template(wants)
        data = dated(template, None)
        data = data[:at] + number.to_bytes(4, "little") + data[at + 4 :]
        session.count(recoverable=True)
        session.channel.send(data, self._recording.deadline(self._target.bound))
        session.sent_at = time.monotonic()
        return number

    def _template(self, wants: int) -> tuple[bytes, int]:
        """Return the bytes of a message, and where its MessageID is."""
        if wants not in self._templates:
            packet = messages.message(self._target, 0, recoverable=True, wants=wants)
            data = self._disguise.dress(packet.to_bytes())
            self._templates[wants] = data, messages.place(packet, "UserHeader.MessageID")
        return self._templates[wants]

    # -- the end -----------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Wait until all acknowledgements have come that are asked for. Raises PeerFailure."""
        seconds = messages.RECOVERABLE_ACK_TIMEOUT_MS / 1000 + self._patience
        self._until(lambda: self._book.missing() is None or self._broken() is not None, seconds)
        broken = self._broken() or self._book.missing()
        if broken is not None and broken.what == NO_ACKNOWLEDGEMENT and self._acknowledges_others():
            broken = self._book.missing(specific=True) or broken
        if broken is not None:
            raise broken

    @property
    def _patience(self) -> float:
        """Seconds for an acknowledgement that a peer may never send."""
        return min(self._target.bound, _SILENT_S) if self._target in _silent else self._target.bound

    def _acknowledges_others(self) -> bool:
        """Return whether the peer acknowledges the arrival of a plain message, in a session of its own."""
        for step in opened(_PROBE):
            self.perform(step)
        session = self._sessions[_PROBE]
        if not session.open:
            return False
        session.may_close = True
        number = self._send_plain(session, messages.PA)
        self._book.ask(number)
        arrived = self._until(lambda: self._book.arrived(number), self._patience)
        (_silent.discard if arrived else _silent.add)(self._target)
        return arrived

    def _broken(self) -> PeerFailure | None:
        """Return that the peer has closed a session which had to go on."""
        for session in self._sessions.values():
            if session.open and session.channel.closed and not session.may_close:
                text = f"the peer closes the session after {session.note or 'what is right'}"
                return PeerFailure((), text, "closed")
        return None

    @staticmethod
    def _goes_on(session: PeerSession) -> bool:
        """Return whether a session has to take one more message."""
        return session.open and not (session.may_close or session.midway or session.channel.closed)

    def finish(self) -> None:
        """See that sessions go on that have to, and that all acknowledgements come. Raises PeerFailure."""
        self._take()
        self._settle()
        asked: list[tuple[PeerSession, int, tuple[int, int]]] = []
        for session in self._sessions.values():
            if session.sent and self._goes_on(session):
                number = self._send_plain(session, messages.PA if self._listener is not None else 0)
                self._book.ask(number)
                asked.append((session, number, (session.sent, session.recoverable_sent)))
        for session, number, goal in asked:
            self._await_arrival(session, number, goal)

    def _await_arrival(self, session: PeerSession, number: int, goal: tuple[int, int]) -> None:
        """See that a message which asks for an acknowledgement of its arrival has any acknowledgement."""

        def answered() -> bool:
            return self._book.arrived(number) or session.has_acknowledged(*goal) or session.channel.closed

        self._until(answered, messages.RECOVERABLE_ACK_TIMEOUT_MS / 1000 + self._target.bound)
        if not self._book.arrived(number):
            self._await_goal(session, goal, (), "what was sent before")
            # An acknowledgement without a receiver would be sent again and again.
            self._until(lambda: self._book.arrived(number), _AFTERWARDS_S)

    def close(self) -> None:
        """End all connections."""
        for session in self._all():
            session.channel.close()
        if self._listener is not None:
            self._listener.close()
