"""The server's end of an association, without I/O: [C706] 11 and 12.6, [MS-RPCE] 3.3.1.5 and 3.3.3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msmqwire.errors import AuthenticationFailed, MalformedPacket, MsmqError, RpcRefused
from msmqwire.names.printable import counted
from msmqwire.rpc.constants import (
    FRAGMENT_SIZE,
    FRAGMENT_SIZE_MIN,
    NDR20,
    NDR64,
    WHOLE,
    AuthLevel,
    FaultStatus,
    PduType,
    PfcFlags,
    RejectReason,
    SyntaxId,
)
from msmqwire.rpc.events import Bound, Called, Cancelled, Closed, Denied, Orphaned, ServerEvent
from msmqwire.rpc.fragments import Reassembly, fault_pdu, stub_fragments, wrong_fragment
from msmqwire.rpc.groups import AssociationGroups
from msmqwire.rpc.limits import CALLS_MAX, STUB_MAX
from msmqwire.rpc.pdu import (
    PTYPE_OFFSET,
    Frame,
    PduFramer,
    build_pdu,
    has_big_endian,
    make_pdu,
    parse_pdu,
    wrong_header,
)
from msmqwire.rpc.pdus import RESPONSE
from msmqwire.rpc.presentation import NO_SYNTAXES, PresentationContexts
from msmqwire.rpc.security import Security
from msmqwire.rpc.server_security import Acceptor, SecurityContexts
from msmqwire.rpc.verification_trailer import check_commands, split_trailer
from msmqwire.schema import Record


@dataclass(slots=True)
class _Call:
    """A call that is to be answered."""

    context_id: int
    security: Security | None


@dataclass(slots=True)
class _Incoming:
    """A request of which fragments are missing."""

    call_id: int
    first: Record
    security: Security | None
    stub: Reassembly
    refusal: int | None


class ServerAssociation:
    """One connection of a client: bytes in, events and bytes out.

    After each call, `data_to_send` has the bytes to send. Calls are distinguished by their call_id, which no
    two outstanding ones share. A protocol error or a wrong signature ends it: `Closed` is the last event.

    Attributes:
        closed: whether it has ended.
        group: the association group; 0 before a bind.
    """

    def __init__(
        self,
        interfaces: Mapping[SyntaxId, int],
        *,
        groups: AssociationGroups,
        origin: str = "",
        port: int = 0,
        security: Acceptor | None = None,
        minimum_level: AuthLevel = AuthLevel.NONE,
        transfer_syntaxes: Sequence[SyntaxId] = (NDR64, NDR20),
        of_interfaces: Mapping[SyntaxId, Sequence[SyntaxId]] = NO_SYNTAXES,
        stub_max: int = STUB_MAX,
        calls_max: int = CALLS_MAX,
    ) -> None:
        """Wait for a bind.

        Args:
            interfaces: the number of methods of each interface.
            groups: those of the server.
            origin: the client's address: clients of other addresses can't join its group.
            port: the port of the server, sent to the client as the secondary address.
            security: gives the acceptor's end of a new security context, or None for a provider (the first
                argument) that the server does not have.
            minimum_level: calls below it are answered with access denied.
            transfer_syntaxes: the supported ones, the preferred one first.
            of_interfaces: of these, the ones of interfaces that do not support all.
            stub_max: the bytes of arguments that a call may have.
            calls_max: the calls that may be outstanding.
        """
        self._interfaces, self._groups, self._origin, self._port = interfaces, groups, origin, port
        self._security_contexts, self._minimum_level = SecurityContexts(security), minimum_level
        self._contexts = PresentationContexts(interfaces, transfer_syntaxes, of_interfaces)
        self._stub_max, self._calls_max = stub_max, calls_max
        self._framer = PduFramer()
        self._out: list[bytes] = []
        self._calls: dict[int, _Call] = {}
        self._incoming: _Incoming | None = None
        self._fragment_sent = self._fragment_received = FRAGMENT_SIZE
        self.group = 0
        self.closed = False

    # -- outgoing PDUs -----------------------------------------------------------------------------

    def data_to_send(self) -> bytes:
        """Return the bytes to send, and forget them."""
        data = b"".join(self._out)
        self._out.clear()
        return data

    @property
    def outstanding(self) -> int:
        """The number of calls to answer."""
        return len(self._calls)

    @property
    def incomplete(self) -> int | None:
        """The bytes held of a request or another PDU that has begun and not ended; None if none has."""
        if self._incoming is None:
            return self._framer.buffered or None
        return self._framer.buffered + self._incoming.stub.held

    def answer(self, call: int, stub: bytes) -> None:
        """Send the results of a call; nothing if it is no longer there.

        Raises AuthenticationFailed if the security provider can't protect them.
        """
        known = self._calls.pop(call, None)
        if known is None or self.closed:
            return
        self._out += stub_fragments(
            RESPONSE,
            {"PTYPE": PduType.RESPONSE, "p_cont_id": known.context_id, "cancel_count": 0, "reserved": 0},
            stub,
            call_id=call,
            fragment_size=self._fragment_sent,
            security=known.security,
        )

    def fault(self, call: int, status: int, *, executed: bool = True) -> None:
        """Answer a call with a fault; nothing if it is no longer there. `status` is never 0."""
        known = self._calls.pop(call, None)
        if known is not None and not self.closed:
            self._send_fault(call, known.context_id, status, executed=executed)

    def shutdown(self) -> None:
        """Ask the client to close the connection once nothing is outstanding: [C706] 12.6.4.11."""
        if not self.closed:
            self._send(PduType.SHUTDOWN, {}, call_id=0)

    def connection_lost(self) -> bool:
        """Forget everything: the connection is gone. Return whether the association group ended with it."""
        self.closed = True
        self._calls.clear()
        self._incoming = None
        group, self.group = self.group, 0
        return bool(group) and self._groups.leave(group)

    def _send(
        self,
        kind: PduType,
        fields: Mapping[str, Any],
        *,
        call_id: int,
        flags: int = 0,
        sec_trailer: Mapping[str, Any] | None = None,
    ) -> None:
        header = {"call_id": call_id, "pfc_flags": WHOLE | flags}
        self._out.append(build_pdu(make_pdu(kind, fields, header=header, sec_trailer=sec_trailer)))

    def _send_fault(self, call_id: int, context_id: int, status: int, *, executed: bool) -> None:
        # Without a verifier at any level: clients take the status from where it stands in a plain fault.
        self._out.append(fault_pdu(call_id, context_id, status, executed=executed))

    # -- incoming PDUs -----------------------------------------------------------------------------

    def received(self, data: bytes) -> list[ServerEvent]:
        """Return the events of the next bytes of the client."""
        events: list[ServerEvent] = []
        if self.closed:
            return events
        for frame in self._framer.feed(data):
            try:
                events += self._on_frame(frame)
            except MalformedPacket as exc:
                self._refuse(frame.header["PTYPE"], frame.header["call_id"])
                events.append(self._close(exc.detached()))
            except AuthenticationFailed as exc:
                self._send_fault(frame.header["call_id"], 0, FaultStatus.ACCESS_DENIED, executed=False)
                events.append(self._close(exc))
            if self.closed:
                return events
        if self._framer.error is not None:
            head = self._framer.bad_header
            # The call_id is written in the byte order of the refused data representation.
            order = "big" if head[4] & 0xF0 == 0 else "little"
            self._refuse(head[PTYPE_OFFSET], int.from_bytes(head[12:16], order))  # type: ignore[arg-type]
            events.append(self._close(self._framer.error))
        return events

    def _refuse(self, kind: int, call_id: int) -> None:
        if kind == PduType.BIND and not self.group:
            self._send_nak(call_id, RejectReason.PROTOCOL_VERSION_NOT_SUPPORTED)
        else:
            self._send_fault(call_id, 0, FaultStatus.NCA_S_PROTO_ERROR, executed=False)

    def _send_nak(self, call_id: int, reason: RejectReason) -> None:
        self._send(PduType.BIND_NAK, {"provider_reject_reason": reason, "p_protocols": [{}]}, call_id=call_id)

    def _close(self, error: MsmqError) -> Closed:
        self.closed = True
        self._incoming = None
        return Closed(error)

    def _on_frame(self, frame: Frame) -> list[ServerEvent]:
        kind = frame.header["PTYPE"]
        if kind == PduType.BIND:
            return self._on_bind(frame)
        if not self.group:
            raise wrong_header("PTYPE", "no bind came before")
        match kind:
            case PduType.REQUEST:
                return self._on_request(frame)
            case PduType.ALTER_CONTEXT:
                return self._on_alter_context(frame)
            case PduType.AUTH3:
                self._security_contexts.take_last_token(frame)
                return []
            case PduType.CO_CANCEL:
                self._security_contexts.opened(frame)
                call_id = frame.header["call_id"]
                return [Cancelled(call_id)] if call_id in self._calls else []
            case PduType.ORPHANED:
                self._security_contexts.opened(frame)
                return self._on_orphaned(frame.header["call_id"])
            case _:
                raise wrong_header("PTYPE", "a client does not send it")

    # -- binding -----------------------------------------------------------------------------------

    def _on_bind(self, frame: Frame) -> list[ServerEvent]:
        call_id = frame.header["call_id"]
        if self.group:
            raise wrong_header("PTYPE", "a second bind")
        bind: Any = parse_pdu(frame.data).record
        if frame.header["pfc_flags"] & WHOLE != WHOLE:
            raise wrong_fragment("a bind in fragments")
        for name in ("max_xmit_frag", "max_recv_frag"):
            if bind[name] < FRAGMENT_SIZE_MIN:
                raise MalformedPacket(f"{bind[name]} is less than {FRAGMENT_SIZE_MIN}", path=f"bind.{name}")
        results = self._contexts.negotiate(bind.p_context_elem)
        try:
            flags, verifier = self._security_contexts.take_token(frame)
        except AuthenticationFailed as exc:
            return self._refuse_bind(call_id, RejectReason.INVALID_CHECKSUM, exc)
        except RpcRefused as exc:
            return self._refuse_bind(call_id, RejectReason.AUTHENTICATION_TYPE_NOT_RECOGNIZED, exc)
        group = self._groups.join(bind.assoc_group_id, self._origin)
        if group is None:
            why = RpcRefused(f"association group {bind.assoc_group_id} is not there")
            return self._refuse_bind(call_id, RejectReason.REASON_NOT_SPECIFIED, why)
        self.group = group
        self._fragment_sent = min(FRAGMENT_SIZE, bind.max_recv_frag)
        self._fragment_received = min(FRAGMENT_SIZE, bind.max_xmit_frag)
        flags |= frame.header["pfc_flags"] & PfcFlags.CONC_MPX
        self._send_results(PduType.BIND_ACK, call_id, results, flags, verifier)
        return [Bound(self.group, dict(self._contexts.accepted))]

    def _refuse_bind(self, call_id: int, reason: RejectReason, why: MsmqError) -> list[ServerEvent]:
        self._send_nak(call_id, reason)
        return [self._close(why)]

    def _on_alter_context(self, frame: Frame) -> list[ServerEvent]:
        if self._incoming is not None:
            raise wrong_fragment("a request is not yet whole")
        alter: Any = parse_pdu(frame.data).record
        results = self._contexts.negotiate(alter.p_context_elem)
        try:
            flags, verifier = self._security_contexts.take_token(frame)
        except RpcRefused as exc:
            raise AuthenticationFailed(exc.why) from None
        self._send_results(PduType.ALTER_CONTEXT_RESP, frame.header["call_id"], results, flags, verifier)
        return [Bound(self.group, dict(self._contexts.accepted))]

    def _send_results(
        self,
        kind: PduType,
        call_id: int,
        results: list[dict[str, Any]],
        flags: int,
        sec_trailer: Mapping[str, Any] | None,
    ) -> None:
        port_spec = f"{self._port}\0".encode() if kind == PduType.BIND_ACK else b""
        fields = {
            "max_xmit_frag": self._fragment_sent,
            "max_recv_frag": self._fragment_received,
            "assoc_group_id": self.group,
            "port_spec": port_spec,
            "p_results": results,
        }
        self._send(kind, fields, call_id=call_id, flags=flags, sec_trailer=sec_trailer)

    # -- requests ----------------------------------------------------------------------------------

    def _on_request(self, frame: Frame) -> list[ServerEvent]:
        call_id, flags = frame.header["call_id"], frame.header["pfc_flags"]
        if len(frame.data) > self._fragment_received:
            why = f"{counted(len(frame.data), 'byte')}, {self._fragment_received} were negotiated"
            raise wrong_header("frag_length", why)
        security = self._security_contexts.of_request(frame)
        request: Any = parse_pdu(self._security_contexts.opened(frame)).record
        if flags & PfcFlags.FIRST_FRAG:
            if self._incoming is not None:
                raise wrong_fragment("a first fragment before the last one of another call")
            if call_id in self._calls:
                raise wrong_header("call_id", f"call {call_id} is outstanding")
            refusal, stub = self._refusal(request, security), Reassembly(self._stub_max)
            incoming = self._incoming = _Incoming(call_id, request, security, stub, refusal)
        else:
            incoming = self._continued(call_id, request, security)
        incoming.stub.add(request.stub_data if incoming.refusal is None else b"")
        if not flags & PfcFlags.LAST_FRAG:
            return []
        self._incoming = None
        return self._dispatch(incoming)

    def _continued(self, call_id: int, request: Any, security: Security | None) -> _Incoming:
        """Return the request that a further fragment belongs to. Raises MalformedPacket."""
        incoming = self._incoming
        if incoming is None or incoming.call_id != call_id or incoming.security is not security:
            raise wrong_fragment("no first fragment came before, or it was another call's")
        first: Any = incoming.first
        if (first["opnum"], first["p_cont_id"]) != (request.opnum, request.p_cont_id):
            raise wrong_fragment("method or context are not those of the first fragment")
        if has_big_endian(first.header) != has_big_endian(request.header):
            raise wrong_header("packed_drep", "not that of the first fragment")
        return incoming

    def _refusal(self, request: Any, security: Security | None) -> int | None:
        """Return the status with which a call is refused; None if it can be made."""
        context = self._contexts.get(request.p_cont_id)
        if context is None:
            return FaultStatus.NCA_S_UNK_IF
        if request.opnum >= self._interfaces[context.interface]:  # MQRR-1.7-01
            return FaultStatus.NCA_S_OP_RNG_ERROR
        # MQRR-2.1-05, MQRR-5.1-01
        if (AuthLevel.NONE if security is None else security.level) < self._minimum_level:
            return FaultStatus.ACCESS_DENIED
        if len(self._calls) >= self._calls_max:
            return FaultStatus.NCA_S_SERVER_TOO_BUSY
        return None

    def _dispatch(self, incoming: _Incoming) -> list[ServerEvent]:
        first: Any = incoming.first
        security, call_id = incoming.security, incoming.call_id
        status = incoming.refusal
        if status is None and incoming.stub.overflow:
            status = FaultStatus.NCA_S_FAULT_REMOTE_NO_MEMORY
        context = self._contexts.get(first.p_cont_id)
        if status is not None or context is None:
            status = FaultStatus.NCA_S_UNK_IF if status is None else status
            self._send_fault(call_id, first.p_cont_id, status, executed=False)
            return [Denied(call_id, status)]
        stub = incoming.stub.stub
        if security is not None and security.protects:
            stub, commands = split_trailer(stub)
            check_commands(
                commands,
                interface=context.proposed,
                transfer_syntax=context.transfer_syntax,
                call_id=call_id,
                context_id=first.p_cont_id,
                opnum=first.opnum,
                drep=first.header.packed_drep,
                header_signing=self._security_contexts.header_signing,
            )
        self._calls[call_id] = _Call(first.p_cont_id, security)
        identity = "" if security is None else security.context.identity  # MQRR-1.5-01
        return [
            Called(
                call_id,
                context.interface,
                first.opnum,
                context.transfer_syntax,
                stub,
                first.object,
                AuthLevel.NONE if security is None else security.level,
                identity,
                has_big_endian(first.header),
            )
        ]

    def _on_orphaned(self, call_id: int) -> list[ServerEvent]:
        if self._incoming is not None and self._incoming.call_id == call_id:
            self._incoming = None
            return []
        return [Orphaned(call_id)] if self._calls.pop(call_id, None) else []
