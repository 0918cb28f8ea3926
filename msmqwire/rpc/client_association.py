"""The client's end of an association, without I/O: [C706] 11 and 12.6, [MS-RPCE] 3.3.1.5 and 3.3.2."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final
from uuid import UUID

from msmqwire.errors import AuthenticationFailed, InvalidValue, MalformedPacket, MsmqError, RpcRefused
from msmqwire.names.printable import counted
from msmqwire.rpc.constants import (
    BIND_TIME_FEATURES,
    FRAGMENT_SIZE,
    FRAGMENT_SIZE_MIN,
    NDR20,
    NDR64,
    WHOLE,
    AuthLevel,
    AuthType,
    BindTimeFeatures,
    ContextResult,
    FaultStatus,
    PduType,
    PfcFlags,
    ProviderReason,
    RejectReason,
    SyntaxId,
    bind_time_features,
)
from msmqwire.rpc.events import Answered, Bound, ClientEvent, Closed, Faulted, ShutdownAsked
from msmqwire.rpc.fragments import Reassembly, stub_fragments, wrong_fragment
from msmqwire.rpc.pdu import (
    Frame,
    PduFramer,
    build_pdu,
    has_big_endian,
    make_pdu,
    parse_pdu,
    wrong_header,
)
from msmqwire.rpc.pdus import REQUEST, syntax_fields, syntax_of
from msmqwire.rpc.security import Security, SecurityContext, sec_trailer_of

STUB_MAX: Final = 0xC0_0000
"""The bytes of results accepted of a call by default: a whole message, twice over."""

_CALL_ID_LAST: Final = 0xFFFF_FFFF
_ORPHANS_MAX: Final = 256


class _State(Enum):
    NEW = auto()
    BINDING = auto()
    ALTERING = auto()
    BOUND = auto()
    CLOSED = auto()


@dataclass(slots=True)
class _Waiting:
    """A call without all its results.

    Attributes:
        stub: the arguments, until they are sent.
        begun: whether the first fragment of the results has come. big_endian: its byte order.
    """

    opnum: int
    stub: bytes
    object: UUID | None
    results: Reassembly = field(repr=False)
    begun: bool = False
    big_endian: bool = False


class ClientAssociation:
    """One connection to a server: calls and bytes in, events and bytes out.

    After each call, `data_to_send` has the bytes to send. `Closed` is the last event; the calls that are
    then outstanding have no answer.

    Attributes:
        transfer_syntax: that of the stubs, once bound.
        group: the association group, once bound.
        features: the bind-time features that the server has, too.
        multiplexed: whether the server takes several calls at a time; if not, later ones wait here.
    """

    def __init__(
        self,
        interface: SyntaxId,
        *,
        transfer_syntaxes: Sequence[SyntaxId] = (NDR64, NDR20),
        security: SecurityContext | None = None,
        auth_type: AuthType = AuthType.WINNT,
        level: AuthLevel = AuthLevel.NONE,
        group: int = 0,
        stub_max: int = STUB_MAX,
        held_max: int | None = None,
    ) -> None:
        """Prepare an association; `bind` begins it.

        Args:
            interface: the interface of the called methods.
            transfer_syntaxes: those offered; the first of them that the server accepts is used.
            security: the initiator's end of a security context; None for anonymous calls.
            auth_type: its provider.
            level: the protection of calls.
            group: the association group to join, 0 for a new one.
            stub_max: the bytes of results that a call may have.
            held_max: the bytes of unfinished results that all calls together may have; no limit by default.

        Raises InvalidValue for a level without a security context, or the other way round.
        """
        if (security is None) != (level <= AuthLevel.NONE):
            raise InvalidValue("a security context and a level above NONE go together", path="level")
        self._interface, self._offered = interface, tuple(transfer_syntaxes)
        self._security = None if security is None else Security(auth_type, level, 1, security)
        self._stub_max, self._held_max, self._held = stub_max, held_max, 0
        self._framer = PduFramer()
        self._out: list[bytes] = []
        self._calls: dict[int, _Waiting] = {}
        self._queue: deque[int] = deque()
        self._orphans: dict[int, None] = {}
        self._state = _State.NEW
        self._last_call = 1
        self._context_id = 0
        self._fragment_sent = FRAGMENT_SIZE
        self.transfer_syntax = self._offered[0]
        self.group = group
        self.features = BindTimeFeatures(0)
        self.multiplexed = False

    # -- outgoing PDUs -----------------------------------------------------------------------------

    @property
    def bound(self) -> bool:
        """Whether calls can be made."""
        return self._state is _State.BOUND

    @property
    def closed(self) -> bool:
        """Whether the association has ended."""
        return self._state is _State.CLOSED

    @property
    def outstanding(self) -> int:
        """The number of calls without an answer."""
        return len(self._calls)

    def data_to_send(self) -> bytes:
        """Return the bytes to send, and forget them."""
        data = b"".join(self._out)
        self._out.clear()
        return data

    def bind(self) -> None:
        """Begin the association. Raises AuthenticationFailed if the security context can't begin."""
        if self._state is not _State.NEW:
            raise InvalidValue("the association has begun", path="bind")
        token = None if self._security is None else self._security.context.step(b"")
        self._state = _State.BINDING
        self._send_contexts(PduType.BIND, token)

    def call(self, opnum: int, stub: bytes, *, object: UUID | None = None) -> int:
        """Call a method, and return the id of the call in events.

        Raises InvalidValue while not bound, AuthenticationFailed if the call can't be protected.
        """
        if not self.bound:
            raise InvalidValue("the association is not bound", path="call")
        if not 0 <= opnum <= 0xFFFF:
            raise InvalidValue(f"{opnum} is not in 0..65535", path="opnum")
        call = self._last_call % _CALL_ID_LAST + 1
        while call in self._calls or call in self._orphans:
            call = call % _CALL_ID_LAST + 1
        self._last_call = call
        self._calls[call] = _Waiting(opnum, stub, object, Reassembly(self._stub_max))
        self._queue.append(call)
        self._send_queued()
        return call

    def cancel(self, call: int) -> None:
        """Ask the server to end a call early; it still answers. Nothing if the call has ended."""
        if call in self._queue or call not in self._calls or self.closed:
            return
        self._send_short(PduType.CO_CANCEL, call)

    def orphan(self, call: int) -> None:
        """Abandon a call: it has no further event. Nothing if the call has ended.

        Raises InvalidValue if the server does not keep the connection then ([MS-RPCE] 3.3.1.5.10): whoever
        wants to abandon a call closes it.
        """
        if call not in self._calls or self.closed:
            return
        if call in self._queue:
            self._queue.remove(call)
        elif not self.features & BindTimeFeatures.KEEP_CONNECTION_ON_ORPHAN:
            raise InvalidValue("the server does not keep a connection with an orphaned call", path="orphan")
        else:
            self._send_short(PduType.ORPHANED, call)
            # Results may be under way.
            self._orphans[call] = None
            if len(self._orphans) > _ORPHANS_MAX:
                del self._orphans[next(iter(self._orphans))]
        self._held -= self._calls[call].results.held
        del self._calls[call]
        self._send_queued()

    def _send_short(self, kind: PduType, call: int) -> None:
        self._out.append(build_pdu(make_pdu(kind, {}, header={"call_id": call})))

    def _send_queued(self) -> None:
        while self._queue and (self.multiplexed or len(self._calls) == len(self._queue)):
            call = self._queue.popleft()
            waiting = self._calls[call]
            fields = {
                "PTYPE": PduType.REQUEST,
                "p_cont_id": self._context_id,
                "opnum": waiting.opnum,
                "object": waiting.object,
            }
            self._out += stub_fragments(
                REQUEST,
                fields,
                waiting.stub,
                call_id=call,
                flags=0 if waiting.object is None else int(PfcFlags.OBJECT_UUID),
                fragment_size=self._fragment_sent,
                security=self._security,
            )
            waiting.stub = b""

    def _send_contexts(self, kind: PduType, token: bytes | None) -> None:
        transfers = [*self._offered, bind_time_features(BIND_TIME_FEATURES)]
        elements = [
            {
                "p_cont_id": number,
                "abstract_syntax": syntax_fields(self._interface),
                "transfer_syntaxes": [syntax_fields(transfer)],
            }
            for number, transfer in enumerate(transfers)
        ]
        flags = WHOLE | PfcFlags.CONC_MPX
        if self._security is not None and self._security.protects:
            flags |= PfcFlags.SUPPORT_HEADER_SIGN
        pdu = make_pdu(
            kind,
            {"assoc_group_id": self.group, "p_context_elem": elements},
            header={"call_id": 1, "pfc_flags": flags},
            sec_trailer=self._verifier(token),
        )
        self._out.append(build_pdu(pdu))

    def _verifier(self, token: bytes | None) -> Mapping[str, Any] | None:
        return None if token is None or self._security is None else self._security.verifier(token)

    # -- incoming PDUs -----------------------------------------------------------------------------

    def received(self, data: bytes) -> list[ClientEvent]:
        """Return the events of the next bytes of the server."""
        events: list[ClientEvent] = []
        if self.closed:
            return events
        for frame in self._framer.feed(data):
            try:
                events += self._on_frame(frame)
            except MalformedPacket as exc:
                events.append(self._close(exc.detached()))
            except (AuthenticationFailed, RpcRefused) as exc:
                events.append(self._close(exc))
            if self.closed:
                return events
        if self._framer.error is not None:
            events.append(self._close(self._framer.error))
        return events

    def _close(self, error: MsmqError) -> Closed:
        self._state = _State.CLOSED
        self._calls.clear()
        self._queue.clear()
        return Closed(error)

    def _on_frame(self, frame: Frame) -> list[ClientEvent]:
        kind = frame.header["PTYPE"]
        match self._state, kind:
            case (_State.BINDING, PduType.BIND_ACK) | (_State.ALTERING, PduType.ALTER_CONTEXT_RESP):
                return self._on_results(frame)
            case (_State.BINDING, PduType.BIND_NAK):
                reason = parse_pdu(frame.data).record["provider_reject_reason"]
                raise RpcRefused(f"the server refuses the association: {_name(RejectReason, reason)}")
            case (_State.BINDING | _State.ALTERING, PduType.FAULT):
                status = parse_pdu(frame.data).record["status"]
                raise RpcRefused(f"the server refuses the association: {_name(FaultStatus, status)}")
            case (_State.BOUND, PduType.RESPONSE):
                return self._on_response(frame)
            case (_State.BOUND, PduType.FAULT):
                return self._on_fault(frame)
            case (_State.BOUND, PduType.SHUTDOWN):
                return [ShutdownAsked()]
        raise wrong_header("PTYPE", "does not come now")

    def _on_results(self, frame: Frame) -> list[ClientEvent]:
        answer: Any = parse_pdu(frame.data).record
        if len(answer.p_results) != len(self._offered) + 1:
            proposed = counted(len(self._offered) + 1, "context", "were")
            why = f"{counted(len(answer.p_results), 'result')}, {proposed} proposed"
            raise MalformedPacket(why, path=f"{answer.schema.name}.n_results")
        if self._state is _State.BINDING:
            self._take_results(frame, answer)
        security = self._security
        if security is not None and not self._continue_handshake(security, frame):
            return []
        self._state = _State.BOUND
        return [Bound(self.group, {self._interface: self.transfer_syntax})]

    def _take_results(self, frame: Frame, answer: Any) -> None:
        *contexts, features = answer.p_results
        accepted = next(
            (number for number, result in enumerate(contexts) if result.result == ContextResult.ACCEPTANCE),
            None,
        )
        if accepted is None:  # MQRR-1.7-02
            reason = _name(ProviderReason, contexts[0].reason)
            raise RpcRefused(f"the server does not serve {self._interface}: {reason}")
        if syntax_of(contexts[accepted].transfer_syntax) != self._offered[accepted]:
            raise MalformedPacket("not the transfer syntax that was proposed", path="bind_ack.p_results")
        if answer.max_recv_frag < FRAGMENT_SIZE_MIN:
            why = f"{answer.max_recv_frag} is less than {FRAGMENT_SIZE_MIN}"
            raise MalformedPacket(why, path="bind_ack.max_recv_frag")
        self._context_id, self.transfer_syntax = accepted, self._offered[accepted]
        self._fragment_sent = min(FRAGMENT_SIZE, answer.max_recv_frag)
        self.group = answer.assoc_group_id
        self.multiplexed = bool(frame.header["pfc_flags"] & PfcFlags.CONC_MPX)
        if features.result == ContextResult.NEGOTIATE_ACK:
            self.features = BindTimeFeatures(features.reason & BIND_TIME_FEATURES)
        if self._security is not None:
            self._security.sign_head = bool(
                self._security.protects and frame.header["pfc_flags"] & PfcFlags.SUPPORT_HEADER_SIGN
            )

    def _continue_handshake(self, security: Security, frame: Frame) -> bool:
        """Take the server's token, and return whether the security context is complete."""
        trailer: Any = sec_trailer_of(frame)
        if trailer is None:
            if not security.context.complete:
                raise AuthenticationFailed("the server ends the handshake too early")
            return True
        if security.context.complete:
            raise AuthenticationFailed("a token after the end of the handshake")
        said = trailer.auth_type, trailer.auth_level, trailer.auth_context_id
        if said != (security.auth_type, security.level, security.context_id):
            raise AuthenticationFailed("the server answers for another security context")
        token = security.context.step(trailer.auth_value)
        if not token:
            if not security.context.complete:
                raise AuthenticationFailed("the handshake does not go on")
            return True
        if security.auth_type == AuthType.WINNT:  # known to have three legs: [MS-RPCE] 3.3.1.5.2.1
            pdu = make_pdu(PduType.AUTH3, {}, header={"call_id": 1}, sec_trailer=security.verifier(token))
            self._out.append(build_pdu(pdu))
            return True
        self._state = _State.ALTERING
        self._send_contexts(PduType.ALTER_CONTEXT, token)
        return False

    def _opened(self, frame: Frame) -> bytes:
        trailer = sec_trailer_of(frame)
        if trailer is None or self._security is None:
            return frame.data
        return self._security.opened(frame, trailer)

    def _on_response(self, frame: Frame) -> list[ClientEvent]:
        security, call = self._security, frame.header["call_id"]
        if security is not None and security.protects and not frame.header["auth_length"]:
            raise AuthenticationFailed("a response without a verifier")
        response: Any = parse_pdu(self._opened(frame)).record
        waiting = self._waiting(call)
        if waiting is None:
            return []
        if response.p_cont_id != self._context_id:
            why = f"{response.p_cont_id}, the call was in {self._context_id}"
            raise MalformedPacket(why, path="response.p_cont_id", offset=20)
        flags = frame.header["pfc_flags"]
        if bool(flags & PfcFlags.FIRST_FRAG) == waiting.begun:
            raise wrong_fragment("the first fragment is missing, or comes twice")
        big_endian = has_big_endian(response.header)
        if waiting.begun and waiting.big_endian != big_endian:
            raise wrong_header("packed_drep", "not that of the first fragment")
        waiting.begun, waiting.big_endian = True, big_endian
        waiting.results.add(response.stub_data)
        self._held += len(response.stub_data)
        if waiting.results.overflow or (self._held_max is not None and self._held > self._held_max):
            most = self._stub_max if waiting.results.overflow else self._held_max
            raise MalformedPacket(
                f"more than {counted(most or 0, 'byte')} of results", path="response.stub_data"
            )
        if not flags & PfcFlags.LAST_FRAG:
            return []
        self._end(call)
        return [Answered(call, self.transfer_syntax, waiting.results.stub, big_endian)]

    def _on_fault(self, frame: Frame) -> list[ClientEvent]:
        # Servers send faults without a verifier, and must: they may be about the verifier of the request.
        fault: Any = parse_pdu(self._opened(frame)).record
        call = frame.header["call_id"]
        if self._waiting(call) is None:
            return []
        self._end(call)
        return [Faulted(call, fault.status, not frame.header["pfc_flags"] & PfcFlags.DID_NOT_EXECUTE)]

    def _waiting(self, call: int) -> _Waiting | None:
        """Return the call that a PDU is for; None for an orphaned one. Raises MalformedPacket."""
        if call in self._orphans:
            return None
        waiting = self._calls.get(call)
        if waiting is None or call in self._queue:
            raise wrong_header("call_id", f"no call {call}")
        return waiting

    def _end(self, call: int) -> None:
        self._held -= self._calls[call].results.held
        del self._calls[call]
        self._send_queued()


def _name(names: Any, number: int) -> str:
    try:
        return str(names(number).name)
    except ValueError:
        return f"{number:#x}"
