"""Performs the steps of a case of SRMP, and reports failures of the peer."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Final

from fuzz.peer.channel import Channel, accepted, wait_for
from fuzz.peer.failure import PeerFailure
from fuzz.peer.recording import Recording
from fuzz.peer.srmp.connection import HTTP, REQUEST_TIMEOUT, Incoming, Outgoing, Waiting
from fuzz.peer.srmp.expected import Expected
from fuzz.peer.srmp.messages import dressed
from fuzz.peer.steps import Disguise, Step
from fuzz.peer.target import Target
from msmqwire.errors import MalformedPacket
from msmqwire.names.printable import in_seconds
from msmqwire.srmp.http_framer import HttpFramer
from msmqwire.srmp.http_message import HttpMessage, RequestLine
from msmqwire.srmp.message import from_http

SUCCESS: Final = 200
BUSY: Final = frozenset({REQUEST_TIMEOUT, 429, 503})
"""Status codes with which a peer asks for the same request later."""
RETRY_S: Final = 0.1
"""Seconds after which a request that the peer could not take is sent again; doubled each time."""
RETRIES: Final = 4
COALESCING_S: Final = 0.5
"""The time that a stream receipt waits for a further message: [MC-MQSRM] 3.1.1.3.2."""
SETTLE_S: Final = 0.02
"""The time to wait for a receipt that must not come, once all expected ones have come."""
INCOMPLETE_S: Final = 0.2
"""The time in which a peer would answer a request whose last byte is missing."""
CONNECTIONS_MAX: Final = 64
_SENDING: Final = frozenset({"request", "queue", "half", "bytes", "incomplete"})
_ANY: Final = ("refused", "answered", "")
"""Expectations that let a peer take a request, or end the connection."""


class SrmpPlayer:
    """One performance of a case.

    Actions: ``request``, which sends a request, or several, and awaits the responses; ``queue``, which does
    not wait; ``await``; ``half``, which sends a request up to its first cut, and ``rest``, which sends what
    is left and awaits the response; ``bytes``, which nobody has to answer; ``incomplete``, whose data lack
    their last byte, so that nothing may succeed; ``receipts``, which waits until
    all have come; ``shutdown``, ``close`` and ``reset``; ``wait``, for as many milliseconds as `connection`
    says.

    Expectations of a request: ``accepted``, the status is 200 and the receipts come that the message asks
    for, but a message of a stream is accepted only when it follows; ``status N``; ``refused``, the status
    says so or the connection ends; ``answered`` or none, the same with any status. The words after it name
    the requirements that the peer breaks if it does otherwise.

    Args:
        target: the peer.
        disguise: the identity that performs.
        recording: records the traffic.
    """

    def __init__(self, target: Target, disguise: Disguise, recording: Recording) -> None:
        self._target, self._disguise, self._recording = target, disguise, recording
        self._outgoing: dict[int, Outgoing] = {}
        self._incoming: list[Incoming] = []
        self._rests: dict[int, tuple[bytes, list[Waiting]]] = {}
        self._open: list[tuple[int, Waiting]] = []
        self._expected = Expected(disguise.identity)
        self._listener = self._listen()

    def _listen(self) -> socket.socket | None:
        """Listen for receipts, if that is possible."""
        try:
            listener = socket.create_server((self._disguise.address, 0), backlog=16)
        except OSError:
            return None
        listener.setblocking(False)
        return listener

    @property
    def _bound(self) -> float:
        return self._target.bound

    # -- steps -------------------------------------------------------------------------------------------

    def perform(self, step: Step) -> None:
        """Do one thing. Raises PeerFailure."""
        number = step.connection % CONNECTIONS_MAX
        if step.action in _SENDING and not step.data:
            return
        match step.action:
            case "request" | "queue":
                data = self._dress(step.data)
                outgoing = self._connected(number)
                self._wait_for(number, self._requests(data, step))
                outgoing.channel.send(data, self._recording.deadline(self._bound), step.cuts)
                self._take()
                if step.action == "request":
                    self._await()
            case "await":
                self._await()
            case "half":
                self._half(number, step)
            case "rest":
                self._rest(number)
            case "bytes":
                outgoing = self._connected(number)
                outgoing.confused = True
                data = self._dress(step.data)
                self._expected.uncertain.append(data)
                outgoing.channel.send(data, self._recording.deadline(self._bound), step.cuts)
                self._take()
            case "incomplete":
                self._incomplete(number, step)
            case "receipts":
                self._receipts()
            case "shutdown" | "close" | "reset":
                self._end(number, step.action)
            case "wait":
                self._until(lambda: False, step.connection / 1000)
            case _:
                raise ValueError(f"{step.action} is not a step of SRMP")

    def _dress(self, data: bytes) -> bytes:
        port = self._listener.getsockname()[1] if self._listener is not None else 1
        who = self._disguise
        return dressed(who.dress(data), port, who.identity, loopback=self._target.loopback)

    def _connected(self, number: int, *, fresh: bool = False) -> Outgoing:
        """Return an open connection without an incomplete request. Raises PeerFailure."""
        if self._rests.pop(number, None) is not None:
            self._end(number, "close")
        outgoing = self._outgoing.get(number)
        if outgoing is not None:
            outgoing.read()
            if not outgoing.channel.closed and not fresh:
                return outgoing
            outgoing.channel.close()
        source = self._disguise.address if self._target.loopback else None
        at = self._target.host, self._target.ports.srmp
        try:
            channel = Channel.connect(at, source, self._recording, self._bound)
        except TimeoutError:
            raise PeerFailure((), f"no connection within {in_seconds(self._bound)}", "hang") from None
        except OSError as exc:
            raise PeerFailure((), f"no connection: {exc.strerror or exc}", "gone") from None
        self._outgoing[number] = Outgoing(channel)
        return self._outgoing[number]

    def _half(self, number: int, step: Step) -> None:
        data, cut = self._dress(step.data), step.cuts[0] if step.cuts else len(step.data) // 2
        outgoing = self._connected(number)
        requests = self._requests(data, step)
        self._rests[number] = data[cut:], requests
        outgoing.confused = True  # a peer may have waited long enough
        outgoing.channel.send(data[:cut], self._recording.deadline(self._bound))
        self._take()

    def _rest(self, number: int) -> None:
        rest, requests = self._rests.pop(number, (b"", []))
        outgoing = self._outgoing.get(number)
        if outgoing is None or not rest:
            return
        if not outgoing.channel.closed and not outgoing.answered:
            outgoing.confused = False
            self._wait_for(number, requests)
            outgoing.channel.send(rest, self._recording.deadline(self._bound))
            self._await()

    def _incomplete(self, number: int, step: Step) -> None:
        """Send a request that lacks its last byte, and see that it is not taken."""
        data = self._dress(step.data)
        outgoing = self._connected(number, fresh=True)
        waiting = Waiting(data, None, "refused", step.breaks, step.note)
        outgoing.waiting.append(waiting)
        self._expected.uncertain.append(data)  # the response says more than a receipt would
        outgoing.channel.send(data, self._recording.deadline(self._bound))
        self._until(lambda: waiting.status is not None or outgoing.channel.closed, INCOMPLETE_S)
        if waiting.status is not None and waiting.status < 300:
            text = f"the peer answers {step.note} with {waiting.status} before its last byte has come"
            raise PeerFailure(step.breaks, text, "early")
        self._expected.uncertain.remove(data)
        self._expected.refused.append((data, step.breaks, step.note))
        self._end(number, "close")

    def _end(self, number: int, how: str) -> None:
        outgoing = self._outgoing.get(number)
        if outgoing is None:
            return
        if how == "shutdown":
            outgoing.channel.finish()
            return
        self._rests.pop(number, None)
        self._open = [(at, waiting) for at, waiting in self._open if at != number]
        outgoing.channel.close(reset=how == "reset")
        del self._outgoing[number]

    # -- requests ----------------------------------------------------------------------------------------

    def _requests(self, data: bytes, step: Step) -> list[Waiting]:
        """Return the requests in these bytes; unreadable bytes count as one."""
        expects, _, ids = step.expects.partition(" ")
        words = ids.split()
        if expects == "status":
            expects, words = f"status {words[0]}", words[1:]
        broken = step.breaks or tuple(words)
        if expects in _ANY:
            self._expected.uncertain.append(data)
        elif expects != "accepted" and not expects.endswith(" 200"):
            self._expected.refused.append((data, broken, step.note))
        framer = HttpFramer()
        messages = framer.feed(data)
        if framer.error is not None or framer.buffered or not messages:
            return [Waiting(data, None, expects, broken, step.note)]
        return [self._request(message, expects, broken, step.note) for message in messages]

    def _request(self, http: HttpMessage, expects: str, ids: tuple[str, ...], note: str) -> Waiting:
        try:
            message = from_http(http)
        except MalformedPacket:
            return Waiting(http.to_bytes(), None, expects, ids, note)
        envelope = message.envelope
        if envelope is None or not isinstance(http.start, RequestLine):
            return Waiting(http.to_bytes(), None, expects, ids, note)
        if (
            envelope.stream is not None
            and expects == "accepted"
            and not self._expected.in_stream(envelope, ids)
        ):
            expects = "answered"
        if expects in ("accepted", "status 200", *_ANY):
            self._expected.sent(envelope, ids)
        return Waiting(http.to_bytes(), envelope, expects, ids, note)

    def _wait_for(self, number: int, requests: list[Waiting]) -> None:
        self._outgoing[number].waiting.extend(requests)
        self._open.extend((number, request) for request in requests)

    def _await(self) -> None:
        """Wait until all requests are answered that are to be, and judge how. Raises PeerFailure."""
        deadline = self._recording.deadline(self._bound)
        while self._open:
            number, waiting = self._open[0]
            outgoing = self._outgoing[number]
            self._until(
                lambda w=waiting, o=outgoing: w.status is not None or o.channel.closed,  # type: ignore[misc]
                deadline - time.monotonic(),
            )
            if waiting.status is None and not outgoing.channel.closed:
                text = (
                    f"the peer does not answer {waiting.note or 'a request'} within {in_seconds(self._bound)}"
                )
                raise PeerFailure(waiting.ids or (HTTP,), text, "no answer")
            self._open.pop(0)
            self._judge(number, waiting)

    def _judge(self, number: int, waiting: Waiting) -> None:
        pause = RETRY_S
        if waiting.status is None and waiting.expects in _ANY:
            return
        for _ in range(RETRIES):
            if waiting.status is not None and not self._is_busy(waiting):
                break
            if waiting.status is not None:
                self._until(lambda: False, pause)
                pause *= 2
            self._again(number, waiting)
        if waiting.status is None:
            text = f"the peer ends the connection instead of answering {waiting.note or 'a request'}"
            raise PeerFailure(waiting.ids or (HTTP,), text, "closed")
        self._judge_status(waiting, waiting.status)

    def _is_busy(self, waiting: Waiting) -> bool:
        status = waiting.status or 0
        return status in BUSY or (waiting.expects == "accepted" and status >= 500)

    def _again(self, number: int, waiting: Waiting) -> None:
        """Send a request once more, on a new connection: [MC-MQSRM] 3.1.7.2.5."""
        if self._open:  # other requests wait on this connection
            number = next(at for at in range(CONNECTIONS_MAX, 1 << 16) if at not in self._outgoing)
        outgoing = self._connected(number, fresh=True)
        waiting.status = None
        outgoing.waiting.append(waiting)
        outgoing.channel.send(waiting.data, self._recording.deadline(self._bound))
        self._until(lambda: waiting.status is not None or outgoing.channel.closed)
        if waiting.status is None and not outgoing.channel.closed:
            text = f"the peer does not answer {waiting.note or 'a request'} within {in_seconds(self._bound)}"
            raise PeerFailure(waiting.ids or (HTTP,), text, "no answer")

    def _judge_status(self, waiting: Waiting, status: int) -> None:
        note, ids = waiting.note or "a request", waiting.ids
        if waiting.expects == "accepted":
            if status != SUCCESS:
                text = f"the peer answers {note} with {status}, not with 200"
                raise PeerFailure(ids or ("SRMP-3.1.1.1.2.2-04",), text, "status")
            if waiting.envelope is not None:
                self._expected.taken(waiting.envelope)
        elif waiting.expects.startswith("status "):
            wanted = waiting.expects.split()[1]
            if str(status) != wanted:
                text = f"the peer answers {note} with {status}, not with {wanted}"
                raise PeerFailure(ids or ("SRMP-3.1.5.1.2-01",), text, "status")
        elif waiting.expects == "refused" and status < 300:
            raise PeerFailure(ids or (HTTP,), f"the peer answers {note} with {status}", "status")

    # -- receiving --------------------------------------------------------------------------------------

    def _take(self) -> None:
        """Read the received bytes of all connections, and accept new ones."""
        deadline = self._recording.deadline(self._bound)
        if self._listener is not None:
            channel = accepted(self._listener, self._recording, len(self._incoming))
            if channel is not None:
                self._incoming.append(Incoming(channel))
        for outgoing in list(self._outgoing.values()):
            outgoing.read()
        for incoming in self._incoming:
            for message in incoming.read(deadline):
                self._expected.received(message)

    @property
    def _channels(self) -> list[Channel]:
        outgoing = [item.channel for item in self._outgoing.values()]
        return [*outgoing, *(item.channel for item in self._incoming)]

    def _until(self, done: Callable[[], bool], seconds: float | None = None) -> bool:
        """Read until something is so, or for the bound of the target; return whether it is so."""
        deadline = self._recording.deadline(self._bound if seconds is None else seconds)
        listeners = [self._listener] if self._listener is not None else []
        while True:
            self._take()
            if done():
                return True
            if not wait_for([item for item in self._channels if not item.closed], listeners, deadline):
                return done()

    # -- the end -----------------------------------------------------------------------------------------

    def _receipts(self) -> None:
        """Wait until all receipts have come. Raises PeerFailure."""
        if self._listener is None:
            return
        seconds = self._bound
        if any(stream.acknowledged < stream.number for stream in self._expected.streams.values()):
            seconds += COALESCING_S
        self._until(lambda: self._expected.missing is None, seconds)
        missing = self._expected.missing
        if missing is not None:
            raise missing

    def finish(self) -> None:
        """See that every request is answered, and that the expected receipts come and no more. Raises
        PeerFailure.
        """
        self._take()
        self._await()
        self._receipts()
        if self._expected.deliveries or self._expected.streams:
            self._until(lambda: False, SETTLE_S if self._expected.repeated else SETTLE_S / 4)

    def close(self) -> None:
        """End all connections."""
        for channel in self._channels:
            channel.close()
        if self._listener is not None:
            self._listener.close()
