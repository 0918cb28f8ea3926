"""Performs the steps of a case of pings, and reports failures of the peer."""

from __future__ import annotations

import select
import time
from typing import Final

from fuzz.peer.binary import messages
from fuzz.peer.channel import Channel, wait_for
from fuzz.peer.failure import PeerFailure
from fuzz.peer.ping.datagrams import request
from fuzz.peer.ping.source import ANSWERS, QM_GUID, Source, settled
from fuzz.peer.recording import Recording
from fuzz.peer.steps import Disguise, Step
from fuzz.peer.target import Target
from msmqwire.errors import MalformedPacket
from msmqwire.framing import Framer
from msmqwire.names.printable import in_seconds
from msmqwire.packets import ESTABLISH_CONNECTION
from msmqwire.schema import Record

REFUSES: Final = "MQQB-2.2.7-06"
REPEAT_S: Final = (0.05, 0.1, 0.2, 0.4, 0.8)
"""The intervals after which an unanswered request is sent again; later every second."""
REFUSED_S: Final = 0.2
"""The time for which a port is tried although the system of the peer reports that it is closed."""
SETTLE_S: Final = 0.01
"""The time to wait for answers that must not come, once the peer has answered later datagrams."""
READINESS_TRIES: Final = 3
SOURCES_MAX: Final = 64


class PingPlayer:
    """One performance of a case.

    Actions: ``send``, a datagram from the port that `connection` numbers; ``await``, until all that has to be
    answered is; ``session``, which opens a session of the binary protocol and compares what the peer says
    there with its Ping Responses; ``wait``, for as many milliseconds as `connection` says.

    Whether a datagram is answered is seen in its bytes; `breaks` or, for right requests, ``answer ID`` in
    `expects` name the requirements that the peer breaks if it does otherwise.

    Args:
        target: the peer.
        disguise: the identity that performs.
        recording: records the traffic.
    """

    def __init__(self, target: Target, disguise: Disguise, recording: Recording) -> None:
        self._target, self._disguise, self._recording = target, disguise, recording
        self._sources: dict[int, Source] = {}

    # -- steps -------------------------------------------------------------------------------------------

    def perform(self, step: Step) -> None:
        """Do one thing. Raises PeerFailure."""
        match step.action:
            case "send":
                expected = tuple(step.expects.split()[1:])
                data = self._disguise.dress(step.data)
                source = self._source(step.connection)
                source.send(data, step.breaks or expected, step.note)
                self._take()
                if source.is_uncertain:
                    settled([source], SETTLE_S)
            case "await":
                self._await()
            case "session":
                self._compare_session()
            case "wait":
                settled(self._all, step.connection / 1000)
            case _:
                raise ValueError(f"{step.action} is not a step of pings")

    def _source(self, number: int) -> Source:
        number %= SOURCES_MAX
        if number not in self._sources:
            at = self._target.host, self._target.ports.ping
            address = self._disguise.address if self._target.loopback else None
            try:
                self._sources[number] = Source(at, address, self._disguise.identity, self._recording)
            except OSError as exc:
                raise PeerFailure((), f"no socket: {exc.strerror or exc}", "gone") from None
        return self._sources[number]

    @property
    def _all(self) -> list[Source]:
        return list(self._sources.values())

    # -- receiving --------------------------------------------------------------------------------------

    def _take(self) -> None:
        for source in self._all:
            source.read()
        guids = set().union(*(source.guids for source in self._all))
        if len(guids) > 1:
            text = "QMGuid is not the same in the Ping Responses to two ports"
            raise PeerFailure((QM_GUID,), text, "wrong QMGuid")

    def _await(self) -> None:
        """Wait until all requests are answered, and send them again meanwhile. Raises PeerFailure."""
        began = time.monotonic()
        deadline, pauses = self._recording.deadline(self._target.bound), iter(REPEAT_S)
        again = began + next(pauses)
        while True:
            self._take()
            waiting = [source for source in self._all if source.unanswered]
            if not waiting:
                return
            now = time.monotonic()
            if now >= deadline or (now >= began + REFUSED_S and all(source.refused for source in waiting)):
                raise self._unanswered(waiting)
            if now >= again:
                again = now + next(pauses, 1.0)
                for source in waiting:
                    source.repeat()
            select.select([source.sock for source in waiting], [], [], max(0.0, min(again, deadline) - now))

    def _unanswered(self, waiting: list[Source]) -> PeerFailure:
        missing = [asked for source in waiting for asked in source.unanswered]
        if all(source.refused for source in waiting):
            return PeerFailure(missing[0].ids, "nobody listens at the ping port", "gone")
        text = (
            f"the peer does not answer {missing[0].note} within {in_seconds(self._target.bound)}, "
            f"though it was sent {missing[0].sent} times"
        )
        return PeerFailure(missing[0].ids, text, "no answer")

    # -- readiness ---------------------------------------------------------------------------------------

    def _compare_session(self) -> None:
        """Check that QMGuid and RF of a response agree with a session."""
        pong: Record | None = None
        for attempt in range(READINESS_TRIES):  # a ready port may not be ready any more
            time.sleep(0.05 * attempt)
            source = self._source(0)
            source.send(request(source.unused_cookie(), QMGuid=self._disguise.identity))
            self._await()
            pong, answer = source.last, self._establish()
            if pong is None or answer is None:
                return
            server, refused = (
                answer.EstablishConnectionHeader.ServerGuid,
                bool(answer.InternalHeader.Flags.CS),
            )
            if server.int and server != pong.QMGuid:
                text = f"QMGuid of a Ping Response is {pong.QMGuid}, ServerGuid of the same peer {server}"
                raise PeerFailure((QM_GUID,), text, "wrong QMGuid")
            if bool(pong.Flags.RF) == refused:
                return
        said, done = ("set", "accepted") if pong and pong.Flags.RF else ("clear", "refused")
        text = f"RF of Ping Responses is {said}, and a session is {done} each time"
        raise PeerFailure((REFUSES,), text, "wrong RF")

    def _establish(self) -> Record | None:
        """Return the answer to EstablishConnection; None if the peer speaks no binary protocol there."""
        source = self._disguise.address if self._target.loopback else None
        at = self._target.host, self._target.ports.binary
        try:
            channel = Channel.connect(at, source, self._recording, self._target.bound)
        except OSError:
            return None
        framer, deadline = Framer(), self._recording.deadline(self._target.bound)
        fields = {"EstablishConnectionHeader": {"OperatingSystem": {"SE": 0}}}
        packets: list[bytes] = []
        try:
            channel.send(self._disguise.dress(messages.establish(fields).to_bytes()), deadline)
            while not (packets or channel.closed) and wait_for([channel], [], deadline):
                packets = framer.feed(channel.read())
            return ESTABLISH_CONNECTION.parse(packets[0]) if packets else None
        except MalformedPacket:
            return None  # that is not reported here
        finally:
            channel.close()

    # -- the end -----------------------------------------------------------------------------------------

    def finish(self) -> None:
        """See that all is answered that has to be, nothing twice and nothing else. Raises PeerFailure."""
        self._await()
        for source in self._all:
            source.send(request(source.unused_cookie(), QMGuid=self._disguise.identity), (ANSWERS,))
        self._await()
        settled(self._all, SETTLE_S)

    def close(self) -> None:
        """Give all ports back."""
        for source in self._all:
            source.close()
