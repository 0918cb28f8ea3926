"""Puts messages into queues of the peer by the binary protocol, so that there is something to read."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from fuzz.peer.binary import messages
from fuzz.peer.binary.session import PeerSession
from fuzz.peer.channel import Channel, wait_for
from fuzz.peer.failure import PeerFailure
from fuzz.peer.recording import Recording
from fuzz.peer.steps import Disguise
from fuzz.peer.target import Target

RETRY_S: Final = 10.0
"""The time for which a peer that does not speak the binary protocol is not asked again."""

_absent: dict[tuple[str, int], float] = {}
"""The time of that result, by the monotonic clock."""


class Delivery:
    """A session of the binary protocol with the peer, opened when it is first needed.

    Faults of the peer in it do not concern remote read: it only stops delivering then.
    """

    def __init__(self, target: Target, disguise: Disguise, recording: Recording) -> None:
        self._target, self._disguise, self._recording = target, disguise, recording
        self._session: PeerSession | None = None
        self._failed = False

    def open(self) -> bool:
        """Open the session if it is not yet open; return whether messages can be sent on it."""
        at = self._target.host, self._target.ports.binary
        if self._session is None and not self._failed:
            self._failed = True
            if time.monotonic() >= _absent.get(at, 0.0) + RETRY_S:
                with suppress(OSError, PeerFailure):
                    self._failed = not self._opened(at)
                if self._failed:
                    _absent[at] = time.monotonic()
        return not self._failed

    def deliver(self, data: bytes) -> bool:
        """Send a message, its bytes complete; return whether the peer has acknowledged and stored it."""
        session = self._session
        if self._failed or session is None:
            return False
        self._failed = True
        with suppress(PeerFailure):
            self._send(session, data)
            self._failed = not self._until(session, lambda: session.all_acknowledged)
        return not self._failed

    def close(self) -> None:
        """End the session."""
        if self._session is not None:
            self._session.channel.close()

    def _opened(self, at: tuple[str, int]) -> bool:
        source = self._disguise.address if self._target.loopback else None
        channel = Channel.connect(at, source, self._recording, self._target.bound)
        self._session = session = PeerSession(channel, ours=True)
        self._send(session, self._disguise.dress(messages.establish().to_bytes()))
        if not self._until(session, lambda: session.requested):
            return False
        self._send(session, messages.parameters().to_bytes())
        return self._until(session, lambda: session.open)

    def _send(self, session: PeerSession, data: bytes) -> None:
        data, _ = session.outgoing(data)
        session.channel.send(data, self._recording.deadline(self._target.bound))

    def _until(self, session: PeerSession, done: Callable[[], bool]) -> bool:
        deadline = self._recording.deadline(self._target.bound)
        while True:
            session.read(deadline)
            if done() or session.channel.closed:
                return done()
            if not wait_for([session.channel], [], deadline):
                return False
