"""Performs the steps of a case of the binary protocol, and tells what the peer does wrong."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from fuzz.peer.binary import messages
from fuzz.peer.binary.session import PeerSession
from fuzz.peer.channel import Channel, wait_for
from fuzz.peer.failure import PeerFailure
from fuzz.peer.recording import Recording
from fuzz.peer.steps import Disguise, Step
from fuzz.peer.target import MSMQ_PORT, Target
from msmqwire.packets import CONNECTION_PARAMETERS, ESTABLISH_CONNECTION
from msmqwire.schema import Record

FENCES_FROM: Final = 0x7000_0000
"""MessageIDs of the messages that only ask whether a session still works."""
SETTLE_S: Final = 0.05
"""How long an answer that must not come is waited for, once the peer has shown that it is done."""


class BinaryPlayer:
    """One performance of a case.

    Actions: ``connect``; ``establish`` and ``agree``, which send and await the answer; ``send``; ``fence``,
    which sends a recoverable message and waits until everything is acknowledged; ``shutdown``, ``close`` and
    ``reset``; ``wait``, for as many milliseconds as `connection` says.

    Expectations of a send: ``closed``, the peer ends the connection; ``open``, it goes on and acknowledges;
    ``class 0x8000``, an acknowledgement of this class comes; ``no class``, none comes.

    Args:
        target: the peer.
        disguise: who performs.
        recording: takes what passes.
    """

    def __init__(self, target: Target, disguise: Disguise, recording: Recording) -> None:
        self._target, self._disguise, self._recording = target, disguise, recording
        self._sessions: dict[int, PeerSession] = {}
        self._accepted: list[PeerSession] = []
        self._listener = self._listen()
        self._numbers = itertools.count(FENCES_FROM)

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
        if step.action == "connect":
            self._connect(step)
            return
        if step.action == "wait":
            self._until(lambda: False, step.connection / 1000)
            return
        session = self._sessions.get(step.connection)
        if session is None:
            return  # what is left of a case that was made shorter
        match step.action:
            case "establish":
                self._send(session, step)
                self._await(session, lambda: session.requested, "MQQB-3.1.5.3.1-01", "EstablishConnection")
            case "agree":
                self._send(session, step)
                self._await(session, lambda: session.open, "MQQB-3.1.5.4.1-01", "ConnectionParameters")
            case "send":
                self._send(session, step)
                self._expect(session, step)
            case "fence":
                self.fence(session, step.breaks)
            case "shutdown":
                session.channel.finish()
            case "close" | "reset":
                session.channel.close(reset=step.action == "reset")
            case _:
                raise ValueError(f"{step.action} is no step of the binary protocol")

    def _connect(self, step: Step) -> None:
        source = self._disguise.address if self._target.loopback else None
        at = self._target.host, self._target.ports.binary
        try:
            channel = Channel.connect(at, source, self._recording, self._target.bound)
        except TimeoutError:
            raise PeerFailure((), f"no connection within {self._target.bound:g} s", "hang") from None
        except OSError as exc:
            raise PeerFailure((), f"no connection: {exc.strerror or exc}", "gone") from None
        self._sessions[step.connection] = PeerSession(channel, ours=True)

    def _send(self, session: PeerSession, step: Step) -> None:
        data = self._disguise.dress(step.data)
        session.note_sent(data)
        session.channel.send(data, time.monotonic() + self._target.bound, step.cuts)
        self._take()

    def _expect(self, session: PeerSession, step: Step) -> None:
        match step.expects:
            case "closed":
                if not self._until(lambda: session.channel.closed):
                    text = f"the session stays open after {step.note or 'this'}"
                    raise PeerFailure(step.breaks, text, "not closed")
            case "open":
                self.fence(session, step.breaks, step.note)

    # -- what comes --------------------------------------------------------------------------------------

    def _take(self) -> None:
        """Read what has come on all connections, and accept new ones."""
        deadline = time.monotonic() + self._target.bound
        if self._listener is not None:
            with suppress(BlockingIOError):
                sock, _ = self._listener.accept()
                self._accepted.append(PeerSession(Channel(sock, self._recording, ours=False), ours=False))
        for session in self._all():
            packets = session.read(deadline)
            if not session.ours:
                for packet in packets:
                    self._answer(session, packet, deadline)

    def _all(self) -> list[PeerSession]:
        return [*self._sessions.values(), *self._accepted]

    def _answer(self, session: PeerSession, packet: Record, deadline: float) -> None:
        """Answer what opens a session that the peer wants."""
        header = packet.get("EstablishConnectionHeader")
        if header is not None:
            answer = ESTABLISH_CONNECTION.make(
                {
                    "EstablishConnectionHeader": {
                        **header,
                        "ServerGuid": self._disguise.identity,
                        "OperatingSystem": {"SE": int(header.OperatingSystem.SE)},
                        "Padding": messages.PADDING,
                    }
                }
            )
        elif (asked := packet.get("ConnectionParametersHeader")) is not None:
            header = {**asked, "WindowSize": messages.WINDOW}
            answer = CONNECTION_PARAMETERS.make({"ConnectionParametersHeader": header})
        else:
            return
        data = answer.to_bytes()
        session.note_sent(data)
        session.channel.send(data, deadline)

    def _until(self, done: Callable[[], bool], seconds: float | None = None) -> bool:
        """Read until something is so, or for the bound of the target; return whether it is so."""
        deadline = time.monotonic() + (self._target.bound if seconds is None else seconds)
        listeners = [self._listener] if self._listener is not None else []
        while True:
            self._take()
            if done():
                return True
            open_channels = [session.channel for session in self._all() if not session.channel.closed]
            if not wait_for(open_channels, listeners, deadline):
                return done()

    def _await(self, session: PeerSession, done: Callable[[], bool], requirement: str, kind: str) -> None:
        if self._until(lambda: done() or session.channel.closed) and done():
            return
        how = "closes the connection" if session.channel.closed else f"is silent for {self._target.bound:g} s"
        raise PeerFailure((requirement,), f"the peer {how} instead of answering {kind}", "no answer")

    # -- the end -----------------------------------------------------------------------------------------

    def fence(self, session: PeerSession, requirements: tuple[str, ...] = (), note: str = "") -> None:
        """Send a recoverable message, and wait until all messages of the session are acknowledged."""
        if session.channel.closed:
            after = f" after {note}" if note else ""
            raise PeerFailure(requirements, f"the peer has closed the session{after}", "closed")
        packet = messages.message(self._target, next(self._numbers), recoverable=True)
        self._send(session, Step("send", data=packet.to_bytes()))
        seconds = messages.RECOVERABLE_ACK_TIMEOUT_MS / 1000 + self._target.bound
        self._until(lambda: session.all_acknowledged or session.channel.closed, seconds)
        if session.all_acknowledged:
            return
        how = "closes the session" if session.channel.closed else "does not acknowledge"
        text = (
            f"the peer {how}{' after ' + note if note else ''}: {session.acknowledged} of {session.sent} "
            f"messages, {len(session.saved)} of {session.recoverable_sent} recoverable ones are acknowledged"
        )
        raise PeerFailure(requirements or ("MQQB-3.1.6.4-01",), text, "unacknowledged")

    def finish(self) -> None:
        """See that what was sent on sessions that are still open is acknowledged. Raises PeerFailure."""
        self._take()
        for session in list(self._sessions.values()):
            if session.open and not session.confused and not session.channel.closed and session.sent:
                self.fence(session)

    def close(self) -> None:
        """End all connections."""
        for session in self._all():
            session.channel.close()
        if self._listener is not None:
            self._listener.close()
