"""One port from which pings are sent: its requests, and the faults in their answers."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass, field
from itertools import count
from typing import Final
from uuid import UUID

from fuzz.peer.failure import PeerFailure
from fuzz.peer.ping.datagrams import NO_GUID, Manner, asked, cookie_of, manner
from fuzz.peer.recording import Ends, Recording
from msmqwire.analysis.lint.pings import COOKIE_ECHO, RC_ECHO
from msmqwire.errors import MalformedPacket
from msmqwire.names.printable import counted
from msmqwire.ping import PING, PING_SIZE
from msmqwire.schema import Record

ANSWERS: Final = "MQQB-2.1.2-02"
QM_GUID: Final = "MQQB-2.2.7-13"
NOTHING_ELSE: Final = "MQQB-3.1.5.1.1-07"
_READ_SIZE: Final = 1 << 16
_READS_MAX: Final = 4096
"""Datagrams that are read in one go: a peer may send without end."""


@dataclass(slots=True)
class Asked:
    """Requests with one cookie.

    Attributes:
        data: the bytes of the last one that has to be answered.
        ids: the requirements that a peer breaks by not answering.
        note: a description, for people.
        wanted: whether an answer has to come. One is enough: a cookie names one request (MQQB-3.1.1.3-18),
            so a peer may treat further ones as copies.
        sent: the number of requests sent, with those that were repeated: no more answers may come.
        answers: the number that have come.
        kinds: the values of RC in them.
    """

    data: bytes
    ids: tuple[str, ...]
    note: str
    wanted: bool = False
    sent: int = 0
    answers: int = 0
    kinds: set[bool] = field(default_factory=set)


@dataclass(slots=True)
class Ignored:
    """A datagram that must not be answered.

    Attributes:
        cookie: the Cookie that an answer would have; None if there is nothing like it.
        ids: the requirements that a peer breaks which answers.
        note: a description, for people.
    """

    cookie: int | None
    ids: tuple[str, ...]
    note: str


class Source:
    """A port of this side.

    Attributes:
        sock: its socket, which takes datagrams of the peer only.
        asked: requests by their cookie.
        guids: every QMGuid of a response.
        refused: whether the system of the peer has reported the port as closed.
        last: the last response.
    """

    def __init__(
        self, at: tuple[str, int], address: str | None, identity: UUID, recording: Recording
    ) -> None:
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        if address is not None:
            self.sock.bind((address, 0))
        self.sock.connect(at)
        self.sock.setblocking(False)
        self._recording, self._identity = recording, identity
        self._number = recording.connection(Ends(self.sock.getsockname()[:2], at, ours=True))
        self.asked: dict[int, Asked] = {}
        self._ignored: list[Ignored] = []
        self.guids: set[UUID] = set()
        self.refused = False
        self.last: Record | None = None

    # -- sending -----------------------------------------------------------------------------------------

    def send(self, data: bytes, ids: tuple[str, ...] = (), note: str = "") -> None:
        """Send a datagram.

        Args:
            data: its bytes.
            ids: the requirements that a peer breaks if it behaves otherwise.
            note: a description, for people.
        """
        what, packet = manner(data), asked(data)
        if packet is None:
            ids = ids or (NOTHING_ELSE,)
            self._ignored.append(
                Ignored(cookie_of(data), ids, note or "a datagram that is not a Ping Packet")
            )
        else:
            request = self.asked.setdefault(packet.Cookie, Asked(data, ids or (ANSWERS,), note or "a ping"))
            request.sent += 1
            request.kinds.add(bool(packet.Flags.RC))
            if what is Manner.ANSWERED:
                request.data, request.wanted = data, True
        self._send(data)

    def repeat(self) -> None:
        """Send unanswered requests once more: datagrams may be lost, and a peer may limit them by second.

        More and more of the unused bits are set, as a peer may overlook copies of a datagram.
        """
        for request in self.unanswered:
            flags = int.from_bytes(request.data[:2], "little") | request.sent << 2 & 0xFFFC
            request.sent += 1
            self._send(flags.to_bytes(2, "little") + request.data[2:])

    def _send(self, data: bytes) -> None:
        try:
            self.sock.send(data)
        except ConnectionRefusedError:
            self.refused = True
        except OSError:
            return  # there is no room for it at the moment: it counts as lost
        self._recording.note("datagram sent", self._number, data)

    @property
    def unanswered(self) -> list[Asked]:
        """The requests that have to be answered, and are not yet."""
        return [request for request in self.asked.values() if request.wanted and not request.answers]

    def unused_cookie(self) -> int:
        """Return a cookie that nothing has which was sent from here."""
        taken = {*self.asked, *(ignored.cookie for ignored in self._ignored)}
        first = self._identity.int & 0x3FFF_FFFF
        return next(cookie for cookie in count(first) if cookie not in taken)

    @property
    def is_uncertain(self) -> bool:
        """Whether an answer to the last datagram could not be distinguished from one to a later request."""
        return bool(self._ignored) and self._ignored[-1].cookie is None and not self.unanswered

    # -- receiving --------------------------------------------------------------------------------------

    def read(self) -> None:
        """Take received datagrams. Raises PeerFailure."""
        for _ in range(_READS_MAX):
            try:
                data = self.sock.recv(_READ_SIZE)
            except BlockingIOError:
                return
            except ConnectionRefusedError:
                self.refused = True
                continue
            except OSError:
                return
            self._recording.note("datagram received", self._number, data)
            self._judge(data)

    def _judge(self, data: bytes) -> None:
        try:
            packet = PING.parse(data)
        except MalformedPacket as error:
            ignored = next(iter(self._ignored), None)
            if ignored is not None and not self.asked:
                raise _answers(ignored) from None
            ids = ("MQQB-2.2.7-08" if len(data) == PING_SIZE else "MQQB-2.2.7-01",)
            raise PeerFailure(
                ids, f"the peer sends a datagram that is not a Ping Response: {error}", "malformed answer"
            ) from None
        request = self.asked.get(packet.Cookie)
        if request is None:
            self._stray(packet)
            text = f"a Ping Response has the Cookie {packet.Cookie:#x}, that of no request"
            raise PeerFailure((COOKIE_ECHO.id,), text, "wrong Cookie")
        if bool(packet.Flags.RC) not in request.kinds:
            text = f"RC is {packet.Flags.RC:d} in the Ping Response to a request that has the other value"
            raise PeerFailure((RC_ECHO.id,), text, "wrong RC")
        request.answers += 1
        if request.answers > request.sent:
            self._stray(packet)
            text = f"{counted(request.sent, 'request', 'are')} answered by {request.answers} Ping Responses"
            raise PeerFailure((ANSWERS,), text, "answered twice")
        self._judge_guid(packet.QMGuid)
        self.last = packet

    def _stray(self, packet: Record) -> None:
        """Raise PeerFailure if a response of an unknown cookie is that to a datagram to be ignored."""
        for ignored in self._ignored:
            if ignored.cookie == packet.Cookie or (ignored.cookie is None and not self.unanswered):
                raise _answers(ignored)

    def _judge_guid(self, guid: UUID) -> None:
        self.guids.add(guid)
        if guid == NO_GUID:
            raise PeerFailure((QM_GUID,), "QMGuid of a Ping Response is zero", "wrong QMGuid")
        if guid == self._identity:
            text = "QMGuid of a Ping Response is that of the request, not that of the peer"
            raise PeerFailure((QM_GUID,), text, "wrong QMGuid")
        if len(self.guids) > 1:
            text = f"QMGuid is not the same in all Ping Responses: {', '.join(map(str, sorted(self.guids)))}"
            raise PeerFailure((QM_GUID,), text, "wrong QMGuid")

    def close(self) -> None:
        """Give the port back."""
        self.sock.close()


def _answers(ignored: Ignored) -> PeerFailure:
    return PeerFailure(ignored.ids, f"the peer answers {ignored.note}", "answered what is wrong")


def settled(sources: list[Source], seconds: float) -> None:
    """Take the datagrams of a period. Raises PeerFailure."""
    deadline = time.monotonic() + seconds
    while (remaining := deadline - time.monotonic()) > 0:
        time.sleep(min(remaining, 0.005))
        for source in sources:
            source.read()
