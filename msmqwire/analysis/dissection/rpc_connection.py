"""A TCP connection that carries DCE/RPC: its PDUs, and the calls of known interfaces in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from msmqwire.analysis.dissection.dissector import Dissector, Opening, Surroundings
from msmqwire.analysis.dissection.finder import ScanResult
from msmqwire.analysis.dissection.followed_conversation import FollowedConversation
from msmqwire.analysis.dissection.followed_direction import UNKNOWN, FollowedDirection, Ignored
from msmqwire.analysis.dissection.rpc_calls import Association, Call, in_packet
from msmqwire.analysis.dissection.rpc_finder import RpcFinder, RpcRange, begins_bind, begins_pdu
from msmqwire.analysis.dissection.rpc_interfaces import CapturedInterface, interfaces
from msmqwire.analysis.lint import Finding
from msmqwire.analysis.lint.rpc import lint_malformed_rpc, lint_rpc
from msmqwire.capture import Flow
from msmqwire.capture.events import Endpoint
from msmqwire.errors import MalformedPacket
from msmqwire.rpc.constants import RPC_PORTS, PduType
from msmqwire.rpc.fragments import wrong_fragment
from msmqwire.rpc.interface import Procedure
from msmqwire.rpc.ndr import Syntax
from msmqwire.rpc.pdu import Pdu, wrong_header
from msmqwire.rpc.pdus import SEC_TRAILER_SIZE
from msmqwire.rpc.rpc_packet import RpcPacket, StubPart, call_kind, is_sent, read_stub

STUB_MAX: Final = 8 << 20
"""Bytes of the longest stub that is put together: twice the largest message, and more."""
FRAGMENTED_MAX: Final = 64
"""Stubs of a direction that may be incomplete at a time; of more, the oldest is given up."""

_FRAGMENT_COST: Final = 1024  # bytes, about, that a fragment takes besides its own and its stub's
_NO_BEGINNING: Final = "fragments of which the first is not in the capture"
_WITH_STUB: Final = (PduType.REQUEST, PduType.RESPONSE, PduType.FAULT)
_OF_CONTEXTS: Final = (
    PduType.BIND,
    PduType.BIND_ACK,
    PduType.ALTER_CONTEXT,
    PduType.ALTER_CONTEXT_RESP,
)


@dataclass(slots=True)
class _Fragments:
    """A stub that has not ended."""

    first: RpcRange
    ranges: list[RpcRange] = field(default_factory=list)
    size: int = 0

    def add(self, found: RpcRange) -> None:
        self.ranges.append(found)
        self.size += found.size

    @property
    def cost(self) -> int:
        return 2 * self.size + _FRAGMENT_COST * len(self.ranges)


@dataclass(slots=True)
class _Direction(FollowedDirection[RpcFinder]):
    """One direction, with the stubs of which fragments are missing."""

    lossy: bool = False  # whether PDUs are missing
    fragments: dict[tuple[int, int], _Fragments] = field(default_factory=dict)  # by type and call id
    fragments_cost: int = 0

    @property
    def held(self) -> int:
        return self.finder.held + self.fragments_cost


class Rpc(Dissector):
    """DCE/RPC: streams that begin with a bind to an interface that is read.

    On the ports of MSMQ and its RPC any PDU will do.

    Attributes:
        interfaces: the interfaces by name, with what is known of their servers.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        super().__init__(surroundings)
        self.interfaces = {name: interface() for name, interface in interfaces().items()}

    def recognises(self, opening: Opening) -> bool | None:
        flow = opening.flow
        is_port = flow.src_port in RPC_PORTS or flow.dst_port in RPC_PORTS or self._around.on_msmq_port(flow)
        return begins_pdu(opening.data) if is_port else begins_bind(opening.data)

    def follow(self, flow: Flow, first: Flow, ignored: dict[Endpoint, Ignored]) -> RpcConnection:
        return RpcConnection(self._around, self, ignored)


class RpcConnection(FollowedConversation[_Direction]):
    """Both directions of a connection that carries DCE/RPC."""

    __slots__ = ("_association", "_shared", "_whole")

    def __init__(self, surroundings: Surroundings, shared: Rpc, ignored: dict[Endpoint, Ignored]) -> None:
        super().__init__(surroundings, ignored)
        self._shared = shared
        self._association = Association()
        self._whole = True  # so far all was captured, and in the clear

    def _count_held(self) -> int:
        """Count incomplete PDUs and stubs, and open calls."""
        return self._association.held + super()._count_held() if self._directions else 0

    def _new_direction(self, flow: Flow, ignored: Ignored) -> _Direction:
        size, frame, time_ns = ignored
        direction = _Direction(flow, RpcFinder(midstream=flow.midstream), size, UNKNOWN, frame, time_ns)
        if flow.midstream or size:
            self._lose(direction)
        return direction

    def _lose(self, direction: _Direction) -> None:
        direction.lossy, self._whole = True, False

    def _rest(self, direction: _Direction, *, cut: bool) -> Iterator[ScanResult]:
        while direction.fragments:
            yield self._give_up(direction, "the last fragment is missing", cut=cut or direction.lossy)

    def _let_go(self) -> None:
        self._association.discard()
        self._whole = False

    def _discard(self, direction: _Direction) -> Iterator[ScanResult]:
        yield from super()._discard(direction)
        self._lose(direction)
        while direction.fragments:
            yield self._give_up(direction, "let go, as too much is held", cut=True)

    def _lint(self, flow: Flow, result: ScanResult, packet: RpcPacket) -> list[Finding]:
        """Judge a call or an answer, the latter by the calls before it."""
        if packet.encrypted:
            self._whole = False
        client, server = flow.sender, flow.receiver
        if packet.ptype != PduType.REQUEST:
            client, server = server, client
        whole = self._whole and not self._around.is_behind(flow)
        new_group = self._association.began_group
        findings = lint_rpc(packet)
        for interface in self._shared.interfaces.values():
            if interface.packet is type(packet):
                findings += interface.lint(packet, client, server, whole=whole, new_group=new_group)
        if packet.ptype in _OF_CONTEXTS:
            for name, syntaxes in self._association.agreed:
                if name:
                    findings += self._shared.interfaces[name].lint_context(packet, syntaxes)
        return findings

    def _lint_malformed(self, data: bytes, error: MalformedPacket) -> list[Finding]:
        return lint_malformed_rpc(data, error)

    # -- ranges to results --------------------------------------------------------------------------

    def _results(self, direction: _Direction, ranges: Iterable[RpcRange]) -> Iterator[ScanResult]:
        for found in ranges:
            if found.message is not None:
                results = self._pdu(direction, found, found.message)
            elif found.error is not None:
                results = [_malformed([found], found.error, cut=found.cut)]
            else:
                self._lose(direction)
                yield from direction.skip(found, found.reason)
                continue
            yield from direction.report_skipped()
            yield from results

    def _pdu(self, direction: _Direction, found: RpcRange, pdu: Pdu) -> list[ScanResult]:
        header, flags = pdu.record.header, pdu.record.header.pfc_flags
        if header.PTYPE not in _WITH_STUB:
            self._association.learn(pdu)
            packet = RpcPacket(pdu, pdu.record.schema.name, security=self._association.security(pdu))
            return [_whole([found], packet)]
        key = (header.PTYPE, header.call_id)
        results = []
        if flags.PFC_FIRST_FRAG and key in direction.fragments:
            results.append(self._give_up(direction, "another first fragment follows", key))
        if flags.PFC_FIRST_FRAG and flags.PFC_LAST_FRAG:
            return [*results, self._stub(direction, [found])]
        if flags.PFC_FIRST_FRAG:
            direction.fragments[key] = _Fragments(found)
        elif key not in direction.fragments:
            error = wrong_fragment(_NO_BEGINNING if direction.lossy else "the first fragment is missing")
            return [*results, _malformed([found], error, cut=direction.lossy)]
        fragments = direction.fragments[key]
        direction.fragments_cost -= fragments.cost
        fragments.add(found)
        direction.fragments_cost += fragments.cost
        if flags.PFC_LAST_FRAG:
            self._take(direction, key)
            results.append(self._stub(direction, fragments.ranges))
        elif fragments.size > STUB_MAX:
            results.append(self._give_up(direction, f"more than {STUB_MAX} bytes in fragments", key))
        elif len(direction.fragments) > FRAGMENTED_MAX:
            results.append(self._give_up(direction, f"more than {FRAGMENTED_MAX} stubs at a time"))
        return results

    def _take(self, direction: _Direction, key: tuple[int, int]) -> _Fragments:
        fragments = direction.fragments.pop(key)
        direction.fragments_cost -= fragments.cost
        return fragments

    def _give_up(
        self, direction: _Direction, why: str, key: tuple[int, int] | None = None, *, cut: bool = False
    ) -> ScanResult:
        """Return a stub without its end, by default the oldest, as malformed."""
        key = next(iter(direction.fragments)) if key is None else key
        fragments = self._take(direction, key)
        return _malformed(fragments.ranges, wrong_fragment(why), cut=cut)

    def _stub(self, direction: _Direction, ranges: list[RpcRange]) -> ScanResult:
        """Return the result of a request, response or fault that is whole."""
        first = ranges[0].message
        assert first is not None
        if any(found.message and found.message.big_endian != first.big_endian for found in ranges):
            why = "the fragments are not all in the byte order of the first"
            return _malformed(ranges, wrong_header("packed_drep", why))
        self._association.learn(first)
        if first.record.header.PTYPE == PduType.REQUEST:
            return self._request(direction, ranges, first)
        return self._answer(direction, ranges, first)

    def _packet(
        self, interface: CapturedInterface | None, ranges: list[RpcRange], first: Pdu, **known: Any
    ) -> RpcPacket:
        """Return the packet of a request, response or fault."""
        stub, parts = _joined(ranges)
        kind = known.pop("kind", first.record.schema.name)
        cls = RpcPacket if interface is None else interface.packet
        security = self._association.security(first)
        return cls(first, kind, len(ranges), stub, parts, security=security, **known)

    def _request(self, direction: _Direction, ranges: list[RpcRange], first: Pdu) -> ScanResult:
        record, association = first.record, self._association
        context = association.context(record.p_cont_id)
        call = association.begin(
            record.header.call_id, max(f for r in ranges for f in r.frames), record.p_cont_id
        )
        if context is None or not context.interface:  # without its bind a call may be one of any interface
            return _whole(ranges, self._packet(None, ranges, first), call)
        call.interface = context.interface
        interface = self._shared.interfaces[context.interface]
        call.procedure = interface.interface.procedures.get(record.opnum)
        known: dict[str, Any] = {}
        if call.procedure is not None:
            known["procedure"] = call.procedure
            if is_sent(call.procedure):
                known["kind"] = call_kind(call.procedure, PduType.REQUEST)
        if context.syntax is not None:
            known["syntax"] = context.syntax.ordered(big_endian=first.big_endian)
        packet = self._packet(interface, ranges, first, **known)
        if packet.procedure is None or packet.syntax is None or packet.encrypted:
            return _whole(ranges, packet, call)
        try:
            read = self._read(interface, packet, packet.procedure, packet.syntax)
        except MalformedPacket as exc:
            return _malformed(ranges, in_packet(exc, packet.parts), call)
        packet = replace(packet, **read)
        queue = interface.queue(packet, direction.flow.receiver)
        association.keep(call, *interface.kept(packet), queue)
        return _whole(ranges, replace(packet, queue=queue) if queue else packet, call)

    def _read(
        self, interface: CapturedInterface, packet: RpcPacket, procedure: Procedure, syntax: Syntax
    ) -> dict[str, Any]:
        """Return what a stub tells, as attributes of the packet. Raises MalformedPacket."""
        may_have_trailer = packet.is_request and packet.security is not None
        stub = read_stub(procedure, packet.ptype, packet.stub, syntax, may_have_trailer=may_have_trailer)
        return {"value": stub.value, "places": stub.places, **interface.read(stub)}

    def _answer(self, direction: _Direction, ranges: list[RpcRange], first: Pdu) -> ScanResult:
        """Return the result of a response or fault."""
        call = self._association.end(first.record.header.call_id)
        if call is None or not call.interface:
            return _whole(ranges, self._packet(None, ranges, first), call, is_answer=True)
        interface = self._shared.interfaces[call.interface]
        known: dict[str, Any] = {
            "procedure": call.procedure, "arguments": call.arguments, "queue": call.queue,
        }  # fmt: skip
        is_response = first.record.header.PTYPE == PduType.RESPONSE
        if is_response and call.procedure is not None and is_sent(call.procedure):
            known["kind"] = call_kind(call.procedure, PduType.RESPONSE)
        context = self._association.context(call.context_id)
        if context is not None and context.syntax is not None:
            known["syntax"] = context.syntax.ordered(big_endian=first.big_endian)
        packet = self._packet(interface, ranges, first, **known)
        if not is_response or packet.procedure is None or packet.syntax is None or packet.encrypted:
            return _whole(ranges, packet, call, is_answer=True)
        try:
            read = self._read(interface, packet, packet.procedure, packet.syntax)
        except MalformedPacket as exc:
            return _malformed(ranges, in_packet(exc, packet.parts), call)
        packet = replace(packet, **read)
        interface.answered(call, packet.value, direction.flow.sender)
        return _whole(ranges, packet, call, is_answer=True)


def _joined(ranges: list[RpcRange]) -> tuple[bytes, tuple[StubPart, ...]]:
    """Return the stub of fragments, and where each stands in the stub and among the bytes of all PDUs."""
    pieces, parts = list[bytes](), list[StubPart]()
    stub_at = packet_at = 0
    for found in ranges:
        pdu = found.message
        assert pdu is not None
        piece = pdu.record.stub_data
        body_end = found.size
        if pdu.sec_trailer is not None:
            body_end -= pdu.record.header.auth_length + SEC_TRAILER_SIZE + len(pdu.auth_padding)
        parts.append(StubPart(stub_at, packet_at + body_end - len(piece)))
        pieces.append(piece)
        stub_at, packet_at = stub_at + len(piece), packet_at + found.size
    return b"".join(pieces), tuple(parts)


def _frames(ranges: list[RpcRange]) -> tuple[tuple[int, ...], int]:
    last = max(ranges, key=lambda found: found.frames[-1])
    return tuple(sorted({frame for found in ranges for frame in found.frames})), last.time_ns


def _data(ranges: list[RpcRange]) -> bytes:
    return ranges[0].data if len(ranges) == 1 else b"".join(found.data for found in ranges)


def _whole(
    ranges: list[RpcRange], packet: RpcPacket, call: Call | None = None, *, is_answer: bool = False
) -> ScanResult:
    data, (frames, time_ns) = _data(ranges), _frames(ranges)
    return ScanResult(
        data, len(data), packet, None, "", frames, time_ns,
        exchange=None if call is None else call.number,
        request_frame=call.frame if call is not None and is_answer else None,
    )  # fmt: skip


def _malformed(
    ranges: list[RpcRange], error: MalformedPacket, call: Call | None = None, *, cut: bool = False
) -> ScanResult:
    data, (frames, time_ns) = _data(ranges), _frames(ranges)
    exchange = None if call is None else call.number
    return ScanResult(data, len(data), None, error.detached(), "", frames, time_ns, cut, exchange=exchange)
