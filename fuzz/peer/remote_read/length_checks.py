"""Each length and count of PDUs and stubs, as their declarations have them, at the number that there is room
for, one more and one less: [C706] 12.6 and 14.3, [MS-MQRR] 3.1.4.

A PDU that says that it is a byte longer has not come: it has to stay without an answer until that byte comes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from fuzz.boundaries import Boundary, boundaries, near
from fuzz.peer.remote_read import pdus
from fuzz.peer.remote_read.association import TRANSPORT
from fuzz.peer.remote_read.rpc_checks import BIND, CONNECT, STRICT, case, port_call
from fuzz.peer.steps import Case, Step
from fuzz.peer.target import Target
from msmqwire.errors import MalformedPacket
from msmqwire.remote_read.constants import Opnum
from msmqwire.remote_read.interface import INTERFACE, parse_request
from msmqwire.remote_read.procedures import PROCEDURES, XACTUOW
from msmqwire.rpc.constants import NDR20, PduType, SyntaxId
from msmqwire.rpc.ndr import SYNTAXES, ConformantBytes, Pointer, Reference, Stub
from msmqwire.rpc.ndr.building import count_offsets
from msmqwire.rpc.pdu import parse_pdu
from msmqwire.rpc.pdus import COMMON_HEADER_SIZE, SEC_TRAILER_SIZE
from msmqwire.schema import UInt
from msmqwire.schema.layout import layout

_CALL: Final = 2
_AFTER: Final = (Step("connect", 1), replace(BIND, connection=1), port_call(9, connection=1))


def length_checks(target: Target, source: random.Random) -> Iterator[Case]:
    """Return the cases; nothing in them is drawn."""
    alter = pdus.contexts([pdus.element(5, INTERFACE, NDR20)], kind=PduType.ALTER_CONTEXT, call=_CALL)
    for before, action, data in (
        ((CONNECT,), "bind", BIND.data),
        ((CONNECT, BIND), "call", alter),
        ((CONNECT, BIND), "call", pdus.get_server_port(_CALL)),
    ):
        yield from _pdu(before, action, data)
    for transfer in pdus.TRANSFERS:
        for opnum, arguments in calls_with_counts(target).items():
            yield from _stub(transfer, opnum, arguments)


# -- PDUs ------------------------------------------------------------------------------------------------


def _pdu(before: tuple[Step, ...], action: str, data: bytes) -> Iterator[Case]:
    record = parse_pdu(data).record
    kind, size = record.schema.name, len(data)
    room = {"frag_length": size, "auth_length": size - COMMON_HEADER_SIZE - SEC_TRAILER_SIZE}
    found = boundaries(record)
    for field in layout(record):
        # The lengths of the common header count what is not in the schema: the whole PDU, and its verifier.
        if isinstance(field.node, UInt) and field.node.name in room and field.path.count(".") == 2:
            found.append(Boundary(field, room[field.node.name]))
    for boundary in found:
        whole = boundary.field.node.name == "frag_length"
        for number in boundary.numbers:
            note = f"{kind} with {boundary.field.node.name} {number} instead of {boundary.field.value}"
            step = Step(action, data=boundary.put(data, number), breaks=(TRANSPORT,), note=note)
            if whole and number > size:
                text = "A PDU is not answered before its last byte has come."
                yield case((TRANSPORT,), text, *before, replace(step, action="incomplete"), *_AFTER)
            elif whole or boundary.goes_beyond(number):
                text = "A length or count that goes beyond its PDU is refused."
                yield case((TRANSPORT,), text, *before, replace(step, expects="refused"), *_AFTER)
            else:
                text = "After a wrong length or count within a PDU other callers are served."
                yield case((TRANSPORT,), text, *before, replace(step, expects="any"), *_AFTER)


# -- stubs -----------------------------------------------------------------------------------------------


def calls_with_counts(target: Target) -> Mapping[int, Mapping[str, Any]]:
    """Return arguments for each method whose request has a length or count, by its opnum."""
    form = pdus.format_of(target, target.queue)
    return {
        Opnum.R_OpenQueue: pdus.opening(form),
        Opnum.R_QMEnlistRemoteTransaction: {
            "pTransactionId": XACTUOW.value(rgb=bytes(range(16))),
            "cbPropagationToken": 32,
            "pbPropagationToken": bytes(range(32)),
            "pQueueFormat": form,
        },
        Opnum.R_OpenQueueForMove: pdus.opening(form),
    }


def _stub(transfer: SyntaxId, opnum: int, arguments: Mapping[str, Any]) -> Iterator[Case]:
    request, syntax = PROCEDURES[opnum].request, SYNTAXES[transfer]
    stub = pdus.stub_of(opnum, transfer, **arguments)
    tried: dict[str, bytes] = {}
    for offset in count_offsets(request, arguments, syntax):
        end = offset + syntax.word
        right, room = int.from_bytes(stub[offset:end], "little"), len(stub) - end
        for number in near(right, room, room // 2):
            note = f"{Opnum(opnum).name} with the count at {offset} {number} instead of {right}"
            tried[note] = stub[:offset] + number.to_bytes(syntax.word, "little") + stub[end:]
    for name, right in _lengths(request, arguments).items():
        for number in near(right, len(stub)):
            note = f"{Opnum(opnum).name} with {name} {number} instead of {right}"
            tried[note] = pdus.stub_of(opnum, transfer, **{**arguments, name: number})
    bind = BIND if transfer == NDR20 else Step("bind", data=pdus.bind(transfer), note="bind to NDR64")
    for note, data in tried.items():
        step = Step("call", data=pdus.request(_CALL, opnum, data), breaks=(STRICT,), note=note)
        if _readable(opnum, data, transfer):
            text = "After a wrong count that a stub has room for other callers are served."
            yield case((STRICT,), text, CONNECT, bind, replace(step, expects="any"), *_AFTER)
        else:
            text = "A count that the stub has no room for, or that disagrees with another, is refused."
            yield case((STRICT,), text, CONNECT, bind, replace(step, expects="refused"), *_AFTER)


def _lengths(request: Stub, arguments: Mapping[str, Any]) -> dict[str, int]:
    """Return the arguments that count the bytes of another one."""
    found: dict[str, int] = {}
    for member in request.members:
        node = member.type
        while isinstance(node, Reference | Pointer):
            node = node.target
        if isinstance(node, ConformantBytes):
            found[node.size_is] = len(arguments[member.name])
    return found


def _readable(opnum: int, stub: bytes, transfer: SyntaxId) -> bool:
    try:
        parse_request(opnum, stub, SYNTAXES[transfer])
    except MalformedPacket:
        return False
    return True
