"""Puts messages into queues of the peer by the binary protocol, so that there is something to read."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from fuzz.peer.binary import messages
from fuzz.peer.binary.session import PeerSession
from fuzz.peer.channel import Channel, wait_for
from fuzz.peer.failure import PeerFailure
from fuzz.peer.recording import Recording
from fuzz.peer.steps import Disguise
from fuzz.peer.target import Target


class Delivery:
    """A session of the binary protocol with the peer, opened when it is first needed.

    What the peer does wrong in it is no business of remote read: it only delivers nothing more then.
    """

    def __init__(self, target: Target, disguise: Disguise, recording: Recording) -> None:
        self._target, self._disguise, self._recording = target, disguise, recording
        self._session: PeerSession | None = None
        self._failed = False

    def deliver(self, data: bytes) -> bool:
        """Send a message, its bytes complete; return whether the peer has acknowledged and stored it."""
        if self._failed:
            return False
        self._failed = True
        with suppress(OSError, PeerFailure):
            session = self._opened()
            if session is not None:
                self._send(session, data)
                self._failed = not self._until(session, lambda: session.all_acknowledged)
        return not self._failed

    def close(self) -> None:
        """End the session."""
        if self._session is not None:
            self._session.channel.close()

    def _opened(self) -> PeerSession | None:
        if self._session is not None:
            return self._session
        source = self._disguise.address if self._target.loopback else None
        at = self._target.host, self._target.ports.binary
        channel = Channel.connect(at, source, self._recording, self._target.bound)
        self._session = session = PeerSession(channel, ours=True)
        self._send(session, self._disguise.dress(messages.establish().to_bytes()))
        if not self._until(session, lambda: session.requested):
            return None
        self._send(session, messages.parameters().to_bytes())
        return session if self._until(session, lambda: session.open) else None

    def _send(self, session: PeerSession, data: bytes) -> None:
        session.note_sent(data)
        session.channel.send(data, time.monotonic() + self._target.bound)

    def _until(self, session: PeerSession, done: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + self._target.bound
        while True:
            session.read(deadline)
            if done() or session.channel.closed:
                return done()
            if not wait_for([session.channel], [], deadline):
                return False
