"""One connection with the peer, and the HTTP messages on it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from fuzz.peer.channel import Channel
from fuzz.peer.failure import PeerFailure
from msmqwire.errors import MalformedPacket
from msmqwire.srmp.envelope import Envelope
from msmqwire.srmp.http_framer import HttpFramer
from msmqwire.srmp.http_message import HttpMessage, RequestLine, StatusLine

HTTP: Final = "SRMP-2.1.1-01"
OK: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
REQUEST_TIMEOUT: Final = 408


@dataclass(slots=True)
class Waiting:
    """A request that has no response yet.

    Attributes:
        data: its bytes.
        envelope: the envelope of its message; None without a readable one. expects: the expected response,
            the first word of that of the step, and the status.
        ids: the requirements that a peer breaks by acting otherwise.
        note: a description of the request, for people.
        status: the status of the response; None before it.
    """

    data: bytes
    envelope: Envelope | None
    expects: str
    ids: tuple[str, ...]
    note: str
    status: int | None = None


class Outgoing:
    """A connection of this side, for requests.

    Attributes:
        channel: the connection.
        waiting: requests without a response, in order.
        confused: whether bytes were sent that are not a request: the number of answers is then unknown.
        answered: the number of responses that have come.
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._framer = HttpFramer()
        self.waiting: deque[Waiting] = deque()
        self.confused = False
        self.answered = 0

    def read(self) -> None:
        """Take the responses that have come. Raises PeerFailure."""
        for data in self.channel.pieces():
            try:
                messages = self._framer.feed(data)
            except MalformedPacket:
                return  # reported already
            for message in messages:
                self._take(message)
            if self._framer.error is not None:
                raise _malformed(self._framer.error)
        if self.channel.closed:
            try:
                for message in self._framer.close():
                    self._take(message)
            except MalformedPacket as error:
                if not self.channel.reset:
                    raise _malformed(error) from None

    def _take(self, message: HttpMessage) -> None:
        if not isinstance(message.start, StatusLine):
            raise PeerFailure(
                (HTTP,), "the peer sends a request where a response has to be", "malformed answer"
            )
        if message.start.status < 200:
            return
        self.answered += 1
        if self.waiting:
            self.waiting.popleft().status = message.start.status
        elif not self.confused and message.start.status != REQUEST_TIMEOUT:
            text = f"the peer sends a response {message.start.status} to nothing"
            raise PeerFailure((HTTP,), text, "response to nothing")


class Incoming:
    """A connection of the peer, for receipts; each request is answered with 200.

    Attributes:
        channel: the connection.
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._framer = HttpFramer()
        self._begun = bytearray()

    def read(self, deadline: float) -> list[HttpMessage]:
        """Return the requests that have come, after answering them. Raises PeerFailure."""
        taken: list[HttpMessage] = []
        for data in self.channel.pieces():
            try:
                messages = self._framer.feed(data)
            except MalformedPacket:
                return taken
            if self._framer.error is not None:
                raise _malformed(self._framer.error)
            for message in messages:
                if isinstance(message.start, RequestLine):
                    taken.append(message)
                    self.channel.send(OK, deadline)
            self._continue(data, bool(messages), deadline)
        return taken

    def _continue(self, data: bytes, whole: bool, deadline: float) -> None:
        """Tell the peer to go on that asks whether to."""
        if whole:
            self._begun.clear()
            return
        self._begun += data[:4096]
        head, blank, _ = bytes(self._begun[:16384]).partition(b"\r\n\r\n")
        if blank and b"100-continue" in head.lower():
            self._begun[:] = b"\0" * 16384
            self.channel.send(_CONTINUE, deadline)


def _malformed(error: MalformedPacket) -> PeerFailure:
    return PeerFailure((HTTP,), f"the peer sends bytes that are not HTTP: {error}", "malformed answer")
