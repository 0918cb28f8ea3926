"""State of an association in a capture: presentation contexts, security, open calls."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from msmqwire.analysis.dissection.rpc_interfaces import interface_named
from msmqwire.errors import MalformedPacket
from msmqwire.rpc.constants import AuthLevel, ContextResult, PduType, SyntaxId
from msmqwire.rpc.interface import Procedure
from msmqwire.rpc.ndr import SYNTAXES, Syntax
from msmqwire.rpc.ntlm_names import user_of
from msmqwire.rpc.pdu import Pdu
from msmqwire.rpc.pdus import syntax_of
from msmqwire.rpc.rpc_packet import CallSecurity, StubPart, packet_offset

CALLS_MAX: Final = 4096
"""Calls of a connection that wait for their answers; of more, the oldest are forgotten."""
CONTEXTS_MAX: Final = 64
"""Presentation contexts and security contexts of a connection that are known, each."""
QUEUE_MAX: Final = 1024
"""Characters of the name of a queue that is kept."""

_PROPOSALS_MAX: Final = 4
_ARGUMENTS_MAX: Final = 1024  # bytes of the stub of a call whose arguments are kept at the usual cost
_ARGUMENTS_LIMIT: Final = 8192  # bytes of one whose arguments are kept at all
# About the memory of each; a client needs no more contexts than the usual ones.
_CALL_COST: Final = 2048
_CONTEXT_COST: Final = 1024
_CONTEXTS_USUAL: Final = 8

_PROPOSING: Final = (PduType.BIND, PduType.ALTER_CONTEXT)
_ANSWERING: Final = (PduType.BIND_ACK, PduType.ALTER_CONTEXT_RESP)


class PresentationContext(NamedTuple):
    """The interface and the syntax of a context id.

    Attributes:
        interface: the name of the interface; empty for one that is not known.
        syntax: the transfer syntax; None for one that is not known.
    """

    interface: str
    syntax: Syntax | None


@dataclass(slots=True)
class Call:
    """A call without an answer so far.

    Attributes:
        number: among those of its connection, from 0.
        frame: the last frame of the request.
        interface: the name of the interface; empty if that is unknown.
        procedure: None for an unknown interface, or for an opnum that it has not.
        arguments: None if they can't be seen, or are unusually large.
        queue: the format name of the queue that it is about; empty if that is unknown.
        cost: about the bytes of memory that it takes.
    """

    number: int
    frame: int
    context_id: int
    interface: str = ""
    procedure: Procedure | None = None
    arguments: Any = None
    queue: str = ""
    cost: int = _CALL_COST


class Association:
    """State that both ends of a connection have agreed on, learnt from their PDUs.

    Attributes:
        began_group: whether the bind asked for a new association group.
        calls: the calls without an answer, by call id.
        agreed: for each context in the last PDU about contexts, the name of its interface, and the transfer
            syntaxes that it offers or accepts.
    """

    __slots__ = (
        "_calls_cost",
        "_contexts",
        "_numbers",
        "_proposals",
        "_security",
        "agreed",
        "began_group",
        "calls",
    )

    def __init__(self) -> None:
        self._contexts: OrderedDict[int, PresentationContext] = OrderedDict()
        # By call id: context ids, and the name of the interface of each.
        self._proposals: OrderedDict[int, list[tuple[int, str]]] = OrderedDict()
        self._security: OrderedDict[int, CallSecurity] = OrderedDict()
        self._numbers = self._calls_cost = 0
        self.began_group = False
        self.calls: OrderedDict[int, Call] = OrderedDict()
        self.agreed: tuple[tuple[str, tuple[SyntaxId, ...]], ...] = ()

    def learn(self, pdu: Pdu) -> None:
        """Take note of the agreements in a PDU."""
        record, kind = pdu.record, pdu.record.header.PTYPE
        if kind in _PROPOSING:
            self.began_group |= kind == PduType.BIND and not record.assoc_group_id
            elements = [
                (element.p_cont_id, interface_named(syntax_of(element.abstract_syntax)))
                for element in record.p_context_elem
            ]
            _put(self._proposals, record.header.call_id, elements, _PROPOSALS_MAX)
            self.agreed = tuple(
                (name, tuple(map(syntax_of, element.transfer_syntaxes)))
                for (_, name), element in zip(elements, record.p_context_elem, strict=True)
            )
        elif kind in _ANSWERING:
            proposed = self._proposals.pop(record.header.call_id, [])
            agreed: list[tuple[str, tuple[SyntaxId, ...]]] = []
            for (number, interface), result in zip(proposed, record.p_results, strict=False):
                syntax = syntax_of(result.transfer_syntax)
                if result.result == ContextResult.ACCEPTANCE:
                    context = PresentationContext(interface, SYNTAXES.get(syntax))
                    _put(self._contexts, number, context, CONTEXTS_MAX)
                    agreed.append((interface, (syntax,)))
            self.agreed = tuple(agreed)
        if pdu.sec_trailer is None:
            return
        number, trailer = pdu.sec_trailer["auth_context_id"], pdu.sec_trailer
        known = self._security.get(number)
        user = user_of(trailer["auth_value"]) if kind not in (PduType.REQUEST, PduType.RESPONSE) else ""
        if known is None or user:
            security = CallSecurity(trailer["auth_type"], trailer["auth_level"], user)
            _put(self._security, number, security, CONTEXTS_MAX)

    @property
    def held(self) -> int:
        """The approximate number of bytes of memory that calls take, and unusually many contexts."""
        contexts = len(self._contexts) + len(self._security)
        return self._calls_cost + _CONTEXT_COST * max(0, contexts - _CONTEXTS_USUAL)

    def discard(self) -> None:
        """Free that memory."""
        self.calls.clear()
        self._calls_cost = 0
        for table in (self._contexts, self._security):
            while len(table) > _CONTEXTS_USUAL // 2:
                table.popitem(last=False)

    def context(self, context_id: int) -> PresentationContext | None:
        """Return the presentation context of that id; None if it is unknown."""
        return self._contexts.get(context_id)

    def security(self, pdu: Pdu) -> CallSecurity | None:
        """Return the security context of a PDU; None without one.

        At the level CONNECT calls have no verifier: they are in the context that began last.
        """
        trailer = pdu.sec_trailer
        if trailer is None:
            last = next(reversed(self._security.values()), None)
            in_call = pdu.record.header.PTYPE in (PduType.REQUEST, PduType.RESPONSE)
            return last if in_call and last is not None and last.level <= AuthLevel.CALL else None
        known = self._security.get(trailer["auth_context_id"])
        return CallSecurity(trailer["auth_type"], trailer["auth_level"], known.user if known else "")

    def begin(self, call_id: int, frame: int, context_id: int) -> Call:
        """Let a call wait for its answer; one of the same id that waits is given up."""
        call = Call(self._numbers, frame, context_id)
        self._numbers += 1
        self.end(call_id)
        if len(self.calls) >= CALLS_MAX:
            self.end(next(iter(self.calls)))
        self.calls[call_id] = call
        self._calls_cost += call.cost
        return call

    def keep(self, call: Call, arguments: Any, size: int, queue: str) -> None:
        """Keep the arguments of a call, of a stub of this size, and the queue, unless they are too large."""
        call.queue = queue if len(queue) <= QUEUE_MAX else ""
        if size <= _ARGUMENTS_LIMIT:
            call.arguments = arguments
            self._calls_cost -= call.cost
            # Values are about as many times their bytes whatever their number.
            call.cost = _CALL_COST * -(-max(size, 1) // _ARGUMENTS_MAX)
            self._calls_cost += call.cost

    def end(self, call_id: int) -> Call | None:
        """Return the call with that id, which waits no more; None if there is none."""
        call = self.calls.pop(call_id, None)
        if call is not None:
            self._calls_cost -= call.cost
        return call


def _put(table: OrderedDict[Any, Any], key: Any, value: Any, most: int) -> None:
    table[key] = value
    table.move_to_end(key)
    if len(table) > most:
        table.popitem(last=False)


def in_packet(error: MalformedPacket, parts: tuple[StubPart, ...]) -> MalformedPacket:
    """Return an error in a stub as one in the packet with it."""
    offset = None if error.offset is None else packet_offset(parts, error.offset)
    return MalformedPacket(error.why, path=error.path, offset=offset, requirement=error.requirement)
