"""Performs the steps of a case of remote read, and reports failures of the peer."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Final

from fuzz.peer.channel import Channel, wait_for
from fuzz.peer.failure import PeerFailure
from fuzz.peer.recording import Recording
from fuzz.peer.remote_read.answers import Judge
from fuzz.peer.remote_read.association import CALL_ID, TRANSPORT, Answer, Call, PeerAssociation
from fuzz.peer.remote_read.delivery import Delivery
from fuzz.peer.remote_read.pdus import Known
from fuzz.peer.remote_read.queue_model import PeerQueue, PeerState, QueuedMessage, Where
from fuzz.peer.remote_read.reads import Reading
from fuzz.peer.steps import Disguise, Step
from fuzz.peer.target import Target
from msmqwire.constants import HResult
from msmqwire.errors import MalformedPacket
from msmqwire.names.printable import in_seconds
from msmqwire.packets import parse
from msmqwire.remote_read.constants import Opnum
from msmqwire.rpc.constants import ContextResult, ProviderReason
from msmqwire.rpc.pdu import Frame, PduFramer

SETTLE_S: Final = 0.05
"""The time to wait for an answer that need not come."""
INCOMPLETE_S: Final = 0.2
"""The time in which a peer would answer a PDU whose last byte is missing."""
TURN_S: Final = 60.0
"""The time that a case waits for earlier cases to release the queues of the peer."""
DRAIN_S: Final = 20.0
"""The time spent on receiving messages that another program has left."""
_PAUSE_S: Final = 0.02
_NO_REASON: Final = (ProviderReason.REASON_NOT_SPECIFIED, ProviderReason.LOCAL_LIMIT_EXCEEDED)
_JUDGED: Final = ("", "message", "waits")
_READS: Final = (Opnum.R_StartReceive, Opnum.R_StartTransactionalReceive)
_OPENS: Final = (Opnum.R_OpenQueue, Opnum.R_OpenQueueForMove)

_turns: defaultdict[tuple[str, int], threading.Lock] = defaultdict(threading.Lock)
"""The owner of the queues of a peer: one case at a time, or none could know their contents."""


class RemoteReadPlayer:
    """One performance of a case.

    Actions: ``connect``; ``bind``, which sends and awaits the answer; ``call``, which sends one or more calls
    and awaits the answers of all that are under way; ``persist``, which repeats a call until it succeeds, as
    long as the bound allows; ``send``, which awaits nothing; ``incomplete``, whose data lack their last
    byte, so that nothing may succeed; ``answers``, which awaits what is under way; ``drain``, whose data are
    a receive and its end, which are repeated until nothing more is received; ``deliver``, which sends a
    message by the binary protocol, or nothing if the peer does not take it; ``shutdown``, ``close`` and
    ``reset``; ``wait``, for as many milliseconds as `connection` says.

    Expectations: of a bind ``bound`` (by default), or ``rejected`` and the reason; of other calls nothing for
    the answer that follows from the state of the peer; ``message``, the same for a read that is made only if
    there is a message to be found; ``waits``, the same for one that is made only if the peer takes other
    calls too; ``waiting``, for a call that is repeated as long as another one is under way; ``answered``,
    some answer comes; ``refused``, the call does not succeed, or the connection ends; ``any``, any
    well-formed answer may come, or none.

    Args:
        target: the peer.
        disguise: the identity that performs.
        recording: takes what passes.
    """

    def __init__(self, target: Target, disguise: Disguise, recording: Recording) -> None:
        self._target, self._disguise, self._recording = target, disguise, recording
        self._associations: dict[int, PeerAssociation] = {}
        self._ended: dict[int, PeerAssociation] = {}
        self._known, self._state = Known(), PeerState()
        self._reading = Reading(self._state, self._known, disguise.identity, loopback=target.loopback)
        self._judge = Judge(target, self._state, self._known, self._reading)
        self._delivery = Delivery(target, disguise, recording)
        self._turn: threading.Lock | None = None

    @property
    def note(self) -> str:
        """A remark to report about the peer though it is not a failure; empty for none."""
        return "remote-read: the peer refuses anonymous callers" if self._state.denied else ""

    # -- steps -------------------------------------------------------------------------------------------

    def perform(self, step: Step) -> None:
        """Do one thing. Raises PeerFailure."""
        if step.action == "connect":
            self._connect(step)
            return
        if step.action == "wait":
            self._until(lambda: False, step.connection / 1000)
            return
        if step.action == "deliver":
            self._deliver(step)
            return
        association = self._associations.get(step.connection)
        if association is None:
            self._check_ended(step)
            return  # the remainder of a shortened case
        match step.action:
            case "bind":
                self._bind(association, step)
            case "call":
                self._call(association, step)
            case "persist":
                self._persist(association, step)
            case "drain":
                self._drain(association, step)
            case "send":
                self._send(association, step)
            case "incomplete":
                self._incomplete(association, step)
            case "answers":
                self._await(association, step)
            case "shutdown":
                association.channel.finish()
            case "close" | "reset":
                association.channel.close(reset=step.action == "reset")
                self._end(association)
            case _:
                raise ValueError(f"{step.action} is not a step of remote read")

    def _check_ended(self, step: Step) -> None:
        """See that it was right of the peer to end the connection of a step."""
        ended = self._ended.get(step.connection)
        if ended is not None and step.action in ("call", "persist") and ended.bound and not ended.forgiven:
            text = f"the peer has closed the connection{f' before {step.note}' if step.note else ''}"
            raise PeerFailure((TRANSPORT,), text, "closed")

    def _connect(self, step: Step) -> None:
        old = self._associations.pop(step.connection, None)
        if old is not None:
            old.channel.close()
            self._end(old)
        source = self._disguise.address if self._target.loopback else None
        at = self._target.host, self._target.ports.remote_read
        try:
            channel = Channel.connect(at, source, self._recording, self._target.bound)
        except TimeoutError:
            raise PeerFailure((), f"no connection within {in_seconds(self._target.bound)}", "hang") from None
        except OSError as exc:
            raise PeerFailure((), f"no connection: {exc.strerror or exc}", "gone") from None
        self._ended.pop(step.connection, None)
        self._associations[step.connection] = PeerAssociation(step.connection, channel)

    def _deliver(self, step: Step) -> None:
        data = self._disguise.dress(step.data)
        try:
            packet = parse(data)
        except MalformedPacket:
            return
        name = str(packet.UserHeader.DestinationQueue.DirectFormatName).partition("\\")[2].lower()
        message = QueuedMessage(packet.UserHeader.MessageID, packet)
        if any(other.number == message.number for other in self._state.messages()):
            return
        self._take_turn()
        if not self._delivery.open():
            return
        queue = self._state.queues.setdefault(name, PeerQueue())
        queue.messages.append(message)
        if self._delivery.deliver(data):
            message.acknowledged = time.monotonic()
            if message.where is Where.UNSURE:
                message.where = Where.AVAILABLE
        self._take()

    # -- associations ------------------------------------------------------------------------------------

    def _bind(self, association: PeerAssociation, step: Step) -> None:
        data = self._dressed(step)
        if data is None or association.bound:
            return
        wanted = step.expects or "bound"
        if association.forgiven:  # something wrong was sent before it
            wanted = "any"
        self._write(association, step, data)
        self._until(lambda: _decided(association), SETTLE_S if wanted == "any" else None)
        results = association.results
        if wanted == "any":
            return
        if wanted == "refused":
            if not _decided(association) or association.bound:
                how = "accepts" if association.bound else "does nothing about"
                raise PeerFailure(step.breaks, f"the peer {how} {step.note}", "ignored")
            return
        if results is None and not association.refused:
            raise self._no_answer(association, step, "a bind", (TRANSPORT,))
        if wanted.startswith("rejected"):
            if results is not None:
                self._check_rejection(step, int(wanted.split()[1]), results.p_results[0])
            return
        if not association.bound:
            text = f"the peer refuses {step.note or 'the bind'}"
            raise PeerFailure(step.breaks, text, "refused")
        self._known.group(association.number, max(association.group, 0))

    def _check_rejection(self, step: Step, reason: int, result: object) -> None:
        found, given = getattr(result, "result", 0), getattr(result, "reason", 0)
        if found in (ContextResult.ACCEPTANCE, ContextResult.NEGOTIATE_ACK):
            raise PeerFailure(step.breaks, f"the peer accepts {step.note}", "accepted")
        if found == ContextResult.PROVIDER_REJECTION and given not in (reason, *_NO_REASON):
            text = f"the peer rejects {step.note} for the reason {given}, not {reason}"
            raise PeerFailure(step.breaks, text, "reason")

    def _end(self, association: PeerAssociation) -> None:
        """A connection has gone; with the last one of its group the handles go."""
        self._associations.pop(association.number, None)
        left = [other.group for other in self._associations.values() if not other.channel.closed]
        if association.group and association.group not in left:
            self._state.end_group(association.group)

    # -- calls -------------------------------------------------------------------------------------------

    def _dressed(self, step: Step) -> bytes | None:
        return self._known.dress(self._disguise.dress(step.data))

    def _write(self, association: PeerAssociation, step: Step, data: bytes) -> list[Call]:
        calls = association.note_sent(data, step.note, step.breaks)
        association.refused = False
        under_way = [call for other in self._associations.values() for call in other.calls.values()]
        for call in under_way:
            call.overlapped = call.overlapped or len(under_way) > 1
        for call in calls:
            call.judged = step.expects in _JUDGED
            if call.arguments is not None:
                self._reading.may_end(call)
            if call.opnum in _READS and call.arguments is not None and call.judged:
                opened = self._state.find(call.arguments.phContext, association.group)
                if opened is not None:
                    self._reading.begun(call, opened)
        association.channel.send(data, self._recording.deadline(self._target.bound), step.cuts)
        return calls

    def _ready(self, association: PeerAssociation, step: Step) -> bytes | None:
        """Return the bytes of a step; None if it has lost its sense."""
        data = self._dressed(step)
        if data is None or not (association.bound or step.breaks):
            return None
        if step.expects == "message" and not self._state.has_messages:
            return None
        if step.expects == "waits" and not association.multiplexed:
            return None
        at_once = len(association.calls) + len({frame.header.call_id for frame in PduFramer().feed(data)})
        if at_once > 1 and not association.multiplexed and not step.breaks:
            return None  # a second call at a time, which the peer does not take
        if association.bound:
            self._take_turn()
        return data

    def _send(self, association: PeerAssociation, step: Step) -> None:
        data = self._ready(association, step)
        if data is not None:
            self._write(association, step, data)
            self._take()

    def _incomplete(self, association: PeerAssociation, step: Step) -> None:
        """Send a PDU that lacks its last byte, and see that the peer waits for that, or refuses."""
        data = self._dressed(step)
        if data is None:
            return
        before = association.channel.received
        self._write(association, step, data)
        self._until(lambda: _decided(association) or association.channel.received > before, INCOMPLETE_S)
        if association.channel.received > before and not association.refused:
            text = f"the peer answers {step.note} before its last byte has come"
            raise PeerFailure(step.breaks, text, "early")

    def _call(self, association: PeerAssociation, step: Step) -> list[Answer]:
        """Send, and await the answers to these calls."""
        data = self._ready(association, step)
        if data is None:
            return []
        calls = self._write(association, step, data)
        if step.expects == "any":
            self._until(lambda: not self._under_way(association, calls), SETTLE_S)
            return []
        if step.expects == "refused":
            self._refused(association, step, calls)
            return []
        return self._answered(association, step, calls)

    def _under_way(self, association: PeerAssociation, calls: list[Call]) -> bool:
        return not association.channel.closed and any(
            association.calls.get(call.call_id) is call for call in calls
        )

    def _answered(self, association: PeerAssociation, step: Step, calls: list[Call]) -> list[Answer]:
        seconds = self._target.bound + max((_timeout_s(call) for call in calls), default=0.0)
        taken: list[Answer] = []
        self._until(lambda: not self._under_way(association, calls), seconds, taken)
        missing = [call for call in calls if association.calls.get(call.call_id) is call]
        if missing and not association.confused and not self._patient(association, step, missing):
            raise self._no_answer(association, step, _name(missing[0]), (_answer_rule(missing[0]),))
        return [answer for answer in taken if answer.call in calls]

    def _patient(self, association: PeerAssociation, step: Step, missing: list[Call]) -> bool:
        """Whether the answers may be missing: the peer may end a connection, or asks another server."""
        if association.channel.closed and association.forgiven:
            return True
        return all(call.opnum == Opnum.R_QMEnlistRemoteTransaction for call in missing)

    def _refused(self, association: PeerAssociation, step: Step, calls: list[Call]) -> None:
        """Wait until the peer refuses the bytes in one of the possible ways."""
        taken: list[Answer] = []
        before = association.results

        def done() -> bool:
            return _decided(association, before) or any(answer.call in calls for answer in taken)

        self._until(done, None, taken)
        for answer in taken:
            succeeded = not answer.fault and not answer.status
            if answer.call in calls and succeeded and not self._state.denied:
                text = f"the peer carries out {step.note or _name(answer.call)}"
                raise PeerFailure(step.breaks, text, "accepted")
        if not done():
            text = f"after {step.note} the peer does nothing within {in_seconds(self._target.bound)}"
            raise PeerFailure(step.breaks, text, "ignored")
        if association.results is not before and association.results is not None:
            raise PeerFailure(step.breaks, f"the peer accepts {step.note}", "accepted")

    def _persist(self, association: PeerAssociation, step: Step) -> None:
        """Repeat a call until it succeeds."""
        deadline = self._recording.deadline(self._target.bound)
        data = self._dressed(step)
        attempt = 0
        if step.expects == "message" and not self._state.has_messages:
            return
        while data is not None and not association.channel.closed:
            if step.expects == "waiting" and not association.calls:
                return
            again = b"".join(_with_call_id(frame, attempt << 16) for frame in PduFramer().feed(data))
            late = time.monotonic() >= deadline
            answers = self._call(
                association, Step("call", step.connection, again, step.cuts, step.breaks, "", step.note)
            )
            if not answers or not answers[0].status or self._judge.may_fail(answers[0], association.group):
                return
            if late:
                shared = answers[0].status == HResult.MQ_ERROR_SHARING_VIOLATION
                ids = ("MQRR-3.1.6.1-03",) if shared else step.breaks
                failed = step.note or _name(answers[0].call)
                text = f"{failed} fails for {in_seconds(self._target.bound)}: {answers[0]}"
                raise PeerFailure(ids, text, "status")
            attempt += 1
            self._until(lambda: False, _PAUSE_S)

    def _drain(self, association: PeerAssociation, step: Step) -> None:
        """Receive and acknowledge messages until there are no more."""
        frames = PduFramer().feed(self._dressed(step) or b"")
        deadline = self._recording.deadline(DRAIN_S)
        attempt = 0
        while len(frames) == 2 and not association.channel.closed and time.monotonic() < deadline:
            for frame in frames:
                again = _with_call_id(frame, attempt << 16)
                answers = self._call(association, Step("call", step.connection, again, note=step.note))
                if not answers or answers[0].status:
                    return
            attempt += 1

    def _await(self, association: PeerAssociation, step: Step) -> None:
        self._answered(association, step, list(association.calls.values()))

    # -- receiving --------------------------------------------------------------------------------------

    def _take(self, taken: list[Answer] | None = None) -> None:
        """Read the received bytes of all connections, and check them."""
        for association in [*self._associations.values()]:
            association.read()
            answers, association.answers = association.answers, []
            for answer in answers:
                if taken is not None:
                    taken.append(answer)
                self._judge_answer(association, answer)
            if association.channel.closed:
                self._ended[association.number] = association
                self._end(association)

    def _judge_answer(self, association: PeerAssociation, answer: Answer) -> None:
        call = answer.call
        if association.confused or not call.judged:
            return
        if call.opnum in _OPENS and answer.status == HResult.MQ_ERROR_SHARING_VIOLATION:
            return  # a client that has just gone may have it open: a case that needs the queue persists
        self._judge.judge(answer, association.group)

    def _until(
        self, done: Callable[[], bool], seconds: float | None = None, taken: list[Answer] | None = None
    ) -> bool:
        """Read until something is so, or for the bound of the target; return whether it is so."""
        deadline = self._recording.deadline(self._target.bound if seconds is None else seconds)
        while True:
            self._take(taken)
            if done():
                return True
            channels = [association.channel for association in self._associations.values()]
            if not channels:
                return done()
            if not wait_for(channels, [], deadline):
                return done()

    def _no_answer(
        self, association: PeerAssociation, step: Step, what: str, ids: tuple[str, ...]
    ) -> PeerFailure:
        closed = association.channel.closed
        how = "closes the connection" if closed else f"is silent for {in_seconds(self._target.bound)}"
        after = f" after {step.note}" if step.note else ""
        return PeerFailure(
            step.breaks or ids, f"the peer {how} instead of answering {what}{after}", "no answer"
        )

    # -- the turn, and the end ---------------------------------------------------------------------------

    def _take_turn(self) -> None:
        """Wait until no other case works on the queues of this peer."""
        if self._turn is None:
            turn = _turns[self._target.host, self._target.ports.remote_read]
            if turn.acquire(timeout=max(0.0, self._recording.deadline(TURN_S) - time.monotonic())):
                self._turn = turn

    def finish(self) -> None:
        """Take received bytes. Raises PeerFailure."""
        self._take()

    def close(self) -> None:
        """End all connections."""
        for association in self._associations.values():
            association.channel.close()
        self._delivery.close()
        if self._turn is not None:
            self._turn.release()
            self._turn = None


def _decided(association: PeerAssociation, before: object = None) -> bool:
    """Whether the peer has answered a bind, or refused something, or ended the connection."""
    answered = association.results is not None and association.results is not before
    return answered or association.refused or association.channel.closed


def _with_call_id(frame: Frame, more: int) -> bytes:
    """Return a PDU with a greater call id."""
    call_id = (int(frame.header["call_id"]) + more) % (1 << 32)
    return frame.data[: CALL_ID.start] + call_id.to_bytes(4, "little") + frame.data[CALL_ID.stop :]


def _timeout_s(call: Call) -> float:
    """Return how long a read may still wait: s."""
    waits = call.opnum in _READS and not call.cancelled
    return float(getattr(call.arguments, "ulTimeout", 0)) / 1000 if waits else 0.0


def _answer_rule(call: Call) -> str:
    """Return the requirement that has an answer to a call come."""
    return call.cancelled or ("MQRR-3.1.2.1-03" if _timeout_s(call) else TRANSPORT)


def _name(call: Call) -> str:
    return Opnum(call.opnum).name if call.opnum in {*Opnum} else f"the call of opnum {call.opnum}"
