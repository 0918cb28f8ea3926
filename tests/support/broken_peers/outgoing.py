"""The way of the peer's own messages: over the session that they are about, or to the host they name."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.support.broken_peers.handshake import State
from tests.support.broken_peers.wire import Name

if TYPE_CHECKING:
    from tests.support.broken_peers.manager import Manager
    from tests.support.broken_peers.session import Session

WAITING_MAX = 4 << 20
PLACES_MAX = 64
PLACE_BYTES_MAX = 1 << 16
RETRY_S = 5.0
RETRIES = 3


@dataclass(frozen=True)
class Outgoing:
    """A message to be sent; one that is not `lasting` ends with its session."""

    packet: bytes
    recoverable: bool
    lasting: bool


@dataclass
class _Place:
    messages: deque[Outgoing] = field(default_factory=deque)
    size: int = 0
    tries: int = 0


class Routes:
    """Finds the session for each message; a message without one waits until one is opened.

    Attributes:
        connect: called with the address of a host to connect to; it may do nothing.
    """

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._places: OrderedDict[bytes | str, _Place] = OrderedDict()
        self.connect: Callable[[str], None] = lambda _: None

    def send(self, to: Name, outgoing: Outgoing, session: Session) -> bool:
        """Send a message because of one that came over a session. Returns False if there is no room."""
        place = self._place(to)
        if place is None or place == self._manager.guid:
            return True  # Open Queue fails, or a queue here that does not exist: discarded
        candidates = [session, *reversed(self._manager.sessions)]
        for candidate in candidates:
            if candidate.state is State.OPEN and place in (candidate.remote_guid, candidate.address):
                if candidate.waiting_size > WAITING_MAX:
                    return False
                candidate.put(outgoing)
                return True
        if outgoing.lasting:
            self._wait(place, outgoing)
        return True

    def _place(self, to: Name) -> bytes | str | None:
        """The identifier or the address of the host of a queue; None if it can't be found."""
        if to.kind == "private":
            return to.guid if any(to.guid) else None
        if to.kind != "direct":
            return None
        protocol, _, rest = to.text.partition(":")
        host = rest.partition("\\")[0]
        if protocol.upper() == "OS" and host.lower() == "localhost":
            host = "127.0.0.1"
        try:
            return str(ipaddress.ip_address(host)) if protocol.upper() in ("OS", "TCP") else None
        except ValueError:
            return None

    def _wait(self, place: bytes | str, outgoing: Outgoing) -> None:
        """Keep a message until there is a session: a few for a place, and the latest places."""
        waiting = self._places.setdefault(place, _Place())
        self._places.move_to_end(place)
        if len(self._places) > PLACES_MAX:
            self._places.popitem(last=False)
        if waiting.size + len(outgoing.packet) <= PLACE_BYTES_MAX:
            waiting.messages.append(outgoing)
            waiting.size += len(outgoing.packet)
        if isinstance(place, str) and len(waiting.messages) == 1:
            self._try(place)

    def _try(self, place: str) -> None:
        """Connect to a host: only to one of this computer, and not forever."""
        waiting = self._places.get(place)
        if waiting is None or waiting.tries >= RETRIES or not ipaddress.ip_address(place).is_loopback:
            return
        waiting.tries += 1
        self.connect(place)
        self._manager.loop.call_later(RETRY_S, self._try, place)

    def opened(self, session: Session) -> None:
        """Send the messages that wait for the peer of a new session."""
        for place in (session.remote_guid, session.address):
            waiting = self._places.pop(place, None)
            for outgoing in waiting.messages if waiting else ():
                session.put(outgoing)

    def closed(self, session: Session) -> None:
        """Keep the undelivered messages of a session, for the next one with the same queue manager."""
        left = [outgoing for _, _, outgoing in session.unacknowledged] + list(session.waiting)
        session.unacknowledged.clear()
        session.waiting.clear()
        for outgoing in left:
            if outgoing.lasting and any(session.remote_guid):
                self._wait(session.remote_guid, outgoing)
