"""One connection with the peer: the PDUs of both sides, and the faults in received ones."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

from fuzz.peer.channel import Channel
from fuzz.peer.failure import PeerFailure
from msmqwire.analysis.dissection.dissector import Surroundings
from msmqwire.analysis.dissection.finder import ScanResult
from msmqwire.analysis.dissection.rpc_connection import Rpc, RpcConnection
from msmqwire.analysis.lint import BREACHES, lint_malformed_rpc, lint_rpc
from msmqwire.capture.events import Data, Flow
from msmqwire.names.printable import agreeing, counted
from msmqwire.remote_read.remote_read_packet import RemoteReadPacket
from msmqwire.remote_read.sections import ReadMessage
from msmqwire.rpc.constants import (
    FRAG_LENGTH_MAX,
    FRAGMENT_SIZE,
    FRAGMENT_SIZE_MIN,
    ContextResult,
    PduType,
    PfcFlags,
    status_name,
)
from msmqwire.rpc.pdu import PduFramer
from msmqwire.rpc.pdus import REQUEST, syntax_of
from msmqwire.rpc.rpc_packet import RpcPacket

TRANSPORT: Final = "MQRR-2.1-01"
"""The requirement for the interface over DCE/RPC by TCP: rules about PDUs fall under it."""

CALL_ID: Final = slice(12, 16)
"""The offset of the call id in a PDU."""
_ANSWERS: Final = frozenset(
    {
        PduType.RESPONSE,
        PduType.FAULT,
        PduType.BIND_ACK,
        PduType.BIND_NAK,
        PduType.ALTER_CONTEXT_RESP,
        PduType.SHUTDOWN,
    }
)


@dataclass(slots=True, eq=False)
class Call:
    """A call that was sent whole.

    Attributes:
        call_id: its id.
        opnum: the method.
        arguments: None if the stub is none of that method, or the method is unknown.
        context: the presentation context.
        at: the time it was sent, by the monotonic clock.
        note: a description, for people.
        breaks: the rules that it breaks on purpose.
        overlapped: whether another call was under way at the same time.
        cancelled: the requirement by which it ends now, as the peer has confirmed; empty for none.
        judged: whether its answer follows from the known state of the peer.
    """

    call_id: int
    opnum: int
    arguments: Any
    context: int
    at: float
    note: str = ""
    breaks: tuple[str, ...] = ()
    overlapped: bool = False
    cancelled: str = ""
    judged: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of the peer to a call.

    Attributes:
        call: the call.
        packet: the response or fault.
        at: the time it came, by the monotonic clock.
    """

    call: Call
    packet: RpcPacket
    at: float

    @property
    def message(self) -> ReadMessage | None:
        """The message in it."""
        return self.packet.message if isinstance(self.packet, RemoteReadPacket) else None

    @property
    def fault(self) -> bool:
        """Whether it is a fault."""
        return self.packet.ptype == PduType.FAULT

    @property
    def status(self) -> int:
        """The status of a fault, or the return value; 0 for a method without one."""
        if self.fault:
            return int(self.packet.pdu.record.status)
        return int(getattr(self.packet.value, "status", 0) or 0)

    @property
    def results(self) -> Any:
        """The results; None for a method that the interface lacks."""
        return self.packet.value

    def __str__(self) -> str:
        return f"a fault, {status_name(self.status)}" if self.fault else f"{self.status:#010x}"


class PeerAssociation:
    """A connection, and the association on it.

    Attributes:
        number: of the connection in the case.
        channel: the connection.
        bound: whether the peer has accepted RemoteRead.
        refused: whether it has refused the association.
        group: the association group, below 0 where the peer tells none; 0 before that.
        multiplexed: whether the peer takes several calls at a time.
        calls: the unanswered calls, by call id.
        answers: the answers that were not examined yet.
        results: the last bind_ack or alter_context_resp.
        confused: whether bytes were sent after which the beginnings of PDUs, or their calls, are unknown.
        forgiven: whether bytes were sent for which the peer may end the connection.
    """

    def __init__(self, number: int, channel: Channel) -> None:
        self.number, self.channel = number, channel
        self.bound = self.refused = self.multiplexed = False
        self.confused = self.forgiven = False
        self.group = 0
        self.calls: dict[int, Call] = {}
        self.answers: list[Answer] = []
        self.results: Any = None
        self._proposals: dict[int, Any] = {}
        around = Surroundings()
        self._reader = RpcConnection(around, Rpc(around), {})
        client, server = ("client", 0), ("server", number)
        self._flows = (Flow(0, *client, *server, False), Flow(0, *server, *client, False))
        self._framer = PduFramer()
        self._fragment_max = FRAGMENT_SIZE
        self._frames = 0

    # -- sending -----------------------------------------------------------------------------------------

    def note_sent(self, data: bytes, note: str, breaks: tuple[str, ...]) -> list[Call]:
        """Follow sent bytes; return the calls that they complete. The bytes need not be PDUs."""
        made: list[Call] = []
        self.forgiven = self.forgiven or bool(breaks)
        for result in self._read(0, data):
            if isinstance(result.packet, RpcPacket):
                made += self._sent(result.packet, note, breaks)
            elif result.error is not None and result.exchange is not None:  # a stub that can't be read
                made.append(_unreadable(result.data, note, breaks))
            else:
                self.confused = True
        for call in made:
            if call.call_id in self.calls:
                self.confused = True
            self.calls[call.call_id] = call
        if breaks:
            for call in self.calls.values():
                call.judged = False
        return made

    def _sent(self, packet: RpcPacket, note: str, breaks: tuple[str, ...]) -> list[Call]:
        record = packet.pdu.record
        match packet.ptype:
            case PduType.REQUEST:
                known = self.bound and isinstance(packet, RemoteReadPacket)
                opnum, arguments = (record.opnum, packet.value) if known else (-1, None)
                now = time.monotonic()
                return [Call(packet.call_id, opnum, arguments, record.p_cont_id, now, note, breaks)]
            case PduType.BIND | PduType.ALTER_CONTEXT:
                self._proposals[packet.call_id] = record
                if packet.ptype == PduType.BIND:
                    right = record.max_recv_frag >= FRAGMENT_SIZE_MIN
                    self._fragment_max = record.max_recv_frag if right else FRAG_LENGTH_MAX
                self.results = None
        return []

    # -- receiving --------------------------------------------------------------------------------------

    def read(self) -> None:
        """Take received bytes. Raises PeerFailure if they are not the answer of a correct peer."""
        for data in self.channel.pieces():
            self._check_frames(data)
            for result in self._read(1, data):
                self._take(result)

    def _check_frames(self, data: bytes) -> None:
        for frame in self._framer.feed(data):
            kind, length = frame.header["PTYPE"], len(frame.data)
            if kind not in _ANSWERS:
                raise _wrong(f"a PDU of the type {kind}, which no server sends")
            if length > self._fragment_max and kind in (PduType.RESPONSE, PduType.FAULT):
                raise _wrong(
                    f"a fragment of {counted(length, 'byte')}; {self._fragment_max} were negotiated at most"
                )
        if self._framer.error is not None:
            raise _wrong(f"bytes that are not a PDU: {self._framer.error}", "malformed answer")

    def _read(self, direction: int, data: bytes) -> list[ScanResult]:
        if not data:
            return []
        self._frames += 1
        now = time.monotonic_ns()
        return list(self._reader.data(Data(self._flows[direction], data, now, self._frames, now)))

    def _take(self, result: ScanResult) -> None:
        if result.error is not None:
            ids = dict.fromkeys(found.requirement for found in lint_malformed_rpc(result.data, result.error))
            if result.error.requirement:
                ids = {result.error.requirement: None}
            text = f"the peer sends what can't be read: {result.error}"
            raise PeerFailure(tuple(ids) or (TRANSPORT,), text, "malformed answer")
        if not isinstance(result.packet, RpcPacket):
            raise _wrong(
                f"{counted(result.size, 'byte')} that {agreeing(result.size, 'are')} not a PDU",
                "malformed answer",
            )
        packet = result.packet
        broken = [finding for finding in lint_rpc(packet) if finding.severity in BREACHES]
        if broken:
            ids = dict.fromkeys(finding.requirement for finding in broken)
            text = f"the peer sends a wrong {packet.kind}: {broken[0].path}: {broken[0].message}"
            raise PeerFailure(tuple(ids), text, "wrong answer")
        match packet.ptype:
            case PduType.RESPONSE | PduType.FAULT:
                self._answered(packet)
            case PduType.BIND_ACK | PduType.ALTER_CONTEXT_RESP:
                self._take_results(packet)
            case PduType.BIND_NAK:
                self.refused = True

    def _answered(self, packet: RpcPacket) -> None:
        call = self.calls.pop(packet.call_id, None)
        if call is not None:
            context = packet.pdu.record.p_cont_id
            if packet.ptype == PduType.RESPONSE and context != call.context and not self.confused:
                raise _wrong(f"a response in the context {context} to a call in the context {call.context}")
            self.answers.append(Answer(call, packet, time.monotonic()))
        elif packet.ptype == PduType.FAULT and (self.forgiven or packet.call_id in self._proposals):
            self.refused = True
        elif not self.confused and not self.forgiven:
            raise _wrong(f"a {packet.kind} to the call {packet.call_id}, which nobody waits for")

    def _take_results(self, packet: RpcPacket) -> None:
        record = packet.pdu.record
        asked = self._proposals.pop(packet.call_id, None)
        if asked is None:
            if self.confused or self.forgiven:
                return
            raise _wrong(f"a {packet.kind} with the call id {packet.call_id}, which no bind had")
        proposed, results = asked.p_context_elem, record.p_results
        if len(results) != len(proposed):
            raise _wrong(
                f"{counted(len(results), 'result')} for {counted(len(proposed), 'presentation context')}"
            )
        accepted = False
        for element, result in zip(proposed, results, strict=True):
            accepted |= result.result == ContextResult.ACCEPTANCE
            if result.result not in iter(ContextResult):
                raise _wrong(f"the result {result.result}, which no presentation context has")
            offered = [syntax_of(transfer) for transfer in element.transfer_syntaxes]
            if result.result == ContextResult.ACCEPTANCE and syntax_of(result.transfer_syntax) not in offered:
                syntax = syntax_of(result.transfer_syntax)
                raise _wrong(f"the transfer syntax {syntax}, which was not proposed", ids=("MQRR-2.2-01",))
        self.results = record
        if asked.header.PTYPE == PduType.BIND:
            self.group = record.assoc_group_id or -1 - self.number  # a peer without groups
            self.bound = accepted
            self.multiplexed = bool(int(packet.pdu.record.header.pfc_flags) & PfcFlags.CONC_MPX)


def _unreadable(data: bytes, note: str, breaks: tuple[str, ...]) -> Call:
    """Return the call of a request whose stub can't be read."""
    record = REQUEST.parse(PduFramer().feed(data)[0].data)  # the first of its fragments
    now = time.monotonic()
    return Call(record.header.call_id, record.opnum, None, record.p_cont_id, now, note, breaks)


def _wrong(what: str, kind: str = "wrong answer", ids: tuple[str, ...] = (TRANSPORT,)) -> PeerFailure:
    return PeerFailure(ids, f"the peer sends {what}", kind)
