"""Cases about DCE/RPC itself: associations, PDUs, fragments: [C706] 12, [MS-RPCE] 2.2.2 and 3.3.1.5.

[MS-MQRR] leaves all of this to RPC: 2.1 and 2.2 have the requirements that name it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Final
from uuid import UUID

from fuzz.peer.remote_read import pdus
from fuzz.peer.remote_read.association import TRANSPORT
from fuzz.peer.steps import Case, Step
from fuzz.peer.target import Target
from msmqwire.remote_read.constants import Opnum
from msmqwire.remote_read.interface import INTERFACE
from msmqwire.rpc.constants import NDR20, NDR64, PduType, PfcFlags, ProviderReason, SyntaxId
from msmqwire.rpc.pdu import FRAG_LENGTH_OFFSET, PTYPE_OFFSET

NAME: Final = "remote-read"
CONNECT: Final = Step("connect")
BIND: Final = Step("bind", data=pdus.bind(), note="bind")
SYNTAX: Final = "MQRR-2.2-01"
VERSION: Final = "MQRR-1.9-01"
STRICT: Final = "MQRR-3.1.4-01"
PORT: Final = "MQRR-3.1.4.1-02"

_ABSTRACT: Final = ProviderReason.ABSTRACT_SYNTAX_NOT_SUPPORTED
_TRANSFER: Final = ProviderReason.PROPOSED_TRANSFER_SYNTAXES_NOT_SUPPORTED
_PFC: Final = 3
_DREP: Final = 4
_AUTH_LENGTH: Final = 10
_ALLOC_HINT: Final = 16
_CONTEXT_ID: Final = 20


def case(ids: tuple[str, ...], text: str, *steps: Step) -> Case:
    """Return a case of remote read."""
    return Case(NAME, steps, ids, text)


def port_call(call: int, note: str = "R_GetServerPort", connection: int = 0) -> Step:
    """Return a call that every peer answers."""
    return Step("call", connection, pdus.get_server_port(call), note=note)


def patched(data: bytes, offset: int, value: int, size: int = 2) -> bytes:
    """Return bytes with an integer in them changed."""
    return data[:offset] + value.to_bytes(size, "little") + data[offset + size :]


def rpc_checks(target: Target, source: random.Random) -> Iterator[Case]:
    """Return the cases, with values that are drawn anew."""
    yield from _binds(source)
    yield from _wrong_binds(source)
    yield from _calls(source)
    yield from _fragments(target, source)
    yield from _wrong_pdus(source)


# -- associations ----------------------------------------------------------------------------------------


def _binds(source: random.Random) -> Iterator[Case]:
    for transfer in pdus.TRANSFERS:
        text = "NDR and NDR64 are both accepted, also alone."
        step = Step(
            "bind", data=pdus.contexts([pdus.element(0, INTERFACE, transfer)]), note=f"bind to {transfer}"
        )
        yield case((SYNTAX,), text, CONNECT, step, port_call(2))
    several = [pdus.element(0, INTERFACE, NDR20), pdus.element(1, INTERFACE, NDR64)]
    text = "Several presentation contexts have as many results, in their order."
    yield case((SYNTAX,), text, CONNECT, Step("bind", data=pdus.contexts(several), note="two contexts"))
    many = [pdus.element(number, INTERFACE, NDR20) for number in source.sample(range(1 << 16), 6)]
    yield case((SYNTAX,), text, CONNECT, Step("bind", data=pdus.contexts(many), note="6 contexts"))
    unknown = SyntaxId(UUID(int=source.getrandbits(128)), 1)
    other = [pdus.element(0, unknown, NDR20), pdus.element(1, INTERFACE, NDR20)]
    call = pdus.request(2, Opnum.R_GetServerPort, b"", context=1)
    yield case(
        (SYNTAX,),
        text,
        CONNECT,
        Step("bind", data=pdus.contexts(other), note="an unknown interface and RemoteRead"),
        Step("call", data=call, note="a call in the second context"),
    )
    cuts = tuple(sorted(source.sample(range(1, len(BIND.data)), 3)))
    both = Step(
        "call", data=pdus.get_server_port(3) + pdus.get_server_port(4), cuts=(source.randrange(25, 48),)
    )
    yield case(
        (TRANSPORT,),
        "PDUs may be cut into segments anywhere.",
        CONNECT,
        replace(BIND, cuts=cuts),
        replace(port_call(2, "R_GetServerPort a byte at a time"), cuts=tuple(range(1, 24))),
        replace(both, note="two calls, the second one cut"),
    )
    yield case(
        (TRANSPORT,),
        "Two connections can be of one association group.",
        CONNECT,
        BIND,
        Step("connect", 1),
        Step(
            "bind",
            1,
            pdus.bind(assoc_group_id=pdus.group(0)),
            note="a bind to the group of another connection",
        ),
        port_call(2, connection=1),
    )
    alter = pdus.contexts([pdus.element(5, INTERFACE, NDR20)], kind=PduType.ALTER_CONTEXT, call=2)
    yield case(
        (TRANSPORT,),
        "An alter_context is answered, and the association goes on.",
        CONNECT,
        BIND,
        Step("send", data=alter, note="alter_context"),
        port_call(3),
    )


def _wrong_binds(source: random.Random) -> Iterator[Case]:
    interfaces = [
        ("another interface", SyntaxId(UUID(int=source.getrandbits(128)), 1)),
        ("version 2.0 of RemoteRead", INTERFACE._replace(major=2)),
        ("version 0.0 of RemoteRead", INTERFACE._replace(major=0)),
        ("version 1.1 of RemoteRead", INTERFACE._replace(minor=source.randrange(1, 1 << 16))),
    ]
    for note, interface in interfaces:
        data = pdus.contexts([pdus.element(0, interface, NDR20)])
        step = Step(
            "bind", data=data, breaks=(VERSION,), expects=f"rejected {_ABSTRACT:d}", note=f"a bind to {note}"
        )
        yield case((VERSION,), "Only RemoteRead 1.0 is accepted as this interface.", CONNECT, step)
    for note, transfer in (
        ("an unknown transfer syntax", SyntaxId(UUID(int=source.getrandbits(128)), 2)),
        ("version 9.0 of NDR", NDR20._replace(major=9)),
    ):
        data = pdus.contexts([pdus.element(0, INTERFACE, transfer)])
        step = Step(
            "bind", data=data, breaks=(SYNTAX,), expects=f"rejected {_TRANSFER:d}", note=f"a bind to {note}"
        )
        yield case((SYNTAX,), "A transfer syntax that is not known is rejected.", CONNECT, step)
    wrong = [
        ("a bind of RPC version 4", patched(BIND.data, 0, 4, 1)),
        (
            "a bind with one fragment of it cut off",
            patched(BIND.data, FRAG_LENGTH_OFFSET, len(BIND.data) - 20),
        ),
        ("a bind that tells of 200 contexts", patched(BIND.data, 24, 200, 1)),
        ("a bind with an auth_length past its end", patched(BIND.data, _AUTH_LENGTH, 0xFFF0)),
    ]
    for note, data in wrong:
        step = Step("bind", data=data, breaks=(TRANSPORT,), expects="refused", note=note)
        if "cut off" in note:
            step = replace(step, data=data[: len(BIND.data) - 20])
        yield case((TRANSPORT,), f"{note.capitalize()} is refused.", CONNECT, step)
    tokens = source.randbytes(24)
    trailer = {"auth_type": source.randrange(1, 256), "auth_level": source.randrange(8), "auth_value": tokens}
    lenient = [
        ("a bind without contexts", pdus.contexts([])),
        ("a bind with fragments of 8 bytes", pdus.bind(max_recv_frag=8, max_xmit_frag=8)),
        (
            "a bind with a token that is none",
            pdus.contexts([pdus.element(0, INTERFACE, NDR20)], sec_trailer=trailer),
        ),
        ("a bind to a group that is not there", pdus.bind(assoc_group_id=source.randrange(1, 1 << 32))),
    ]
    for note, data in lenient:
        step = Step("bind", data=data, breaks=(TRANSPORT,), expects="any", note=note)
        after = (Step("connect", 1), replace(BIND, connection=1), port_call(4, connection=1))
        yield case((TRANSPORT,), f"After {note} other callers are served.", CONNECT, step, *after)
    early = Step(
        "call",
        data=pdus.get_server_port(2),
        breaks=(TRANSPORT,),
        expects="refused",
        note="a call before a bind",
    )
    yield case((TRANSPORT,), "A call before a bind is refused.", CONNECT, early)
    half = Step(
        "send", data=BIND.data[: source.randrange(1, len(BIND.data))], breaks=(TRANSPORT,), note="half a bind"
    )
    yield case(
        (TRANSPORT,), "Half a bind harms nobody.", CONNECT, half, Step("close"), CONNECT, BIND, port_call(2)
    )


# -- calls -----------------------------------------------------------------------------------------------


def _calls(source: random.Random) -> Iterator[Case]:
    text = "R_GetServerPort returns the port."
    ids = [source.randrange(2, 1 << 32) for _ in range(3)]
    yield case((PORT,), text, CONNECT, BIND, *(port_call(call) for call in ids))
    two = Step(
        "call", data=pdus.get_server_port(2) + pdus.get_server_port(3), note="two calls in one segment"
    )
    yield case((TRANSPORT,), "Both calls of one segment are answered.", CONNECT, BIND, two, port_call(4))
    many = b"".join(pdus.get_server_port(call) for call in range(2, 22))
    yield case(
        (TRANSPORT,),
        "All calls of one segment are answered.",
        CONNECT,
        BIND,
        Step("call", data=many, note="20 calls in one segment"),
    )
    unknown = source.choice([16, 17, 255, 256, source.randrange(16, 1 << 16), 0xFFFF])
    yield case(
        ("MQRR-3.1.4-03",),
        "A method that does not exist has the fault nca_s_op_rng_error.",
        CONNECT,
        BIND,
        Step("call", data=pdus.request(2, unknown, b""), note=f"opnum {unknown}"),
        Step("call", data=pdus.request(3, unknown, bytes(64)), note=f"opnum {unknown} with a stub"),
        port_call(4),
    )
    for note, hint, expects in (("0", 0, ""), ("1", 1, ""), ("of 4 GiB", 0xFFFFFFFF, "answered")):
        data = patched(pdus.get_server_port(2), _ALLOC_HINT, hint, 4)
        breaks = (TRANSPORT,) if expects else ()
        step = Step("call", data=data, breaks=breaks, expects=expects, note=f"an alloc_hint {note}")
        yield case((TRANSPORT,), "alloc_hint is a hint alone.", CONNECT, BIND, step)
    context = Step(
        "call",
        data=patched(pdus.get_server_port(2), _CONTEXT_ID, source.randrange(2, 1 << 16)),
        breaks=(TRANSPORT,),
        expects="refused",
        note="a call in a context that was not proposed",
    )
    yield case((TRANSPORT,), "A call in an unknown context is refused.", CONNECT, BIND, context)
    yield case(
        (TRANSPORT,),
        "A cancel of a call that is not there is ignored.",
        CONNECT,
        BIND,
        Step("send", data=pdus.short(PduType.CO_CANCEL, source.randrange(2, 1 << 32)), note="co_cancel"),
        port_call(3, "a call after a co_cancel"),
    )


def _fragments(target: Target, source: random.Random) -> Iterator[Case]:
    size = 24 + 8 * source.randrange(1, 6)
    whole = pdus.open_queue(2, target)
    cut = pdus.call_of(2, Opnum.R_OpenQueue, size=size, **pdus.opening(pdus.format_of(target, target.queue)))
    text = "A request in fragments is put together."
    yield case(
        (TRANSPORT,),
        text,
        CONNECT,
        BIND,
        Step("persist", data=cut, note="R_OpenQueue in fragments"),
        Step("call", data=pdus.of_handle(3, Opnum.R_CreateCursor, pdus.handle(2)), note="R_CreateCursor"),
    )
    first = cut[:size]
    for note, wrong in (
        ("a first fragment, then another call", first + pdus.get_server_port(3)),
        ("a request without its first fragment", cut[size:]),
        ("a request that is not a first fragment", patched(whole, _PFC, int(PfcFlags.LAST_FRAG), 1)),
    ):
        step = Step("call", data=wrong, breaks=(TRANSPORT,), expects="any", note=note)
        after = (Step("connect", 1), replace(BIND, connection=1), port_call(4, connection=1))
        yield case((TRANSPORT,), f"After {note} other callers are served.", CONNECT, BIND, step, *after)
    yield case(
        (TRANSPORT,),
        "A call whose last fragment does not come is forgotten with its connection.",
        CONNECT,
        BIND,
        Step("send", data=first, breaks=(TRANSPORT,), note="a first fragment alone"),
        Step("close"),
        CONNECT,
        BIND,
        port_call(2),
    )


def _wrong_pdus(source: random.Random) -> Iterator[Case]:
    call = pdus.get_server_port(2)
    kinds = [kind for kind in range(256) if kind not in {int(kind) for kind in PduType}]
    kind = source.choice(kinds)
    wrong = [
        ("a frag_length below the header", patched(call, FRAG_LENGTH_OFFSET, source.randrange(16))),
        ("a frag_length that ends in the header of the request", patched(call, FRAG_LENGTH_OFFSET, 20)[:20]),
        ("an auth_length past the end", patched(call, _AUTH_LENGTH, source.randrange(9, 1 << 16))),
    ]
    for note, data in wrong:
        step = Step("call", data=data, breaks=(TRANSPORT,), expects="refused", note=f"a PDU with {note}")
        yield case((TRANSPORT,), f"A PDU with {note} is refused.", CONNECT, BIND, step)
    lenient = [
        ("a data representation that is big-endian", patched(call, _DREP, 0, 1)),
        ("PFC_MAYBE", patched(call, _PFC, 0x43, 1)),
        ("reserved flags", patched(call, _PFC, 0x0B, 1)),
        ("an object UUID", _with_object(call, source)),
        ("a second bind", BIND.data),
        ("an orphan of no call", pdus.short(PduType.ORPHANED, source.randrange(1 << 32))),
        ("a frag_length past its end", patched(call, FRAG_LENGTH_OFFSET, source.randrange(25, 5840))),
        ("a PDU of the RPC version 4", patched(call, 0, 4, 1)),
        (f"a PDU of the type {kind}", patched(call, PTYPE_OFFSET, kind, 1)),
        ("a PDU with the type of an answer", patched(call, PTYPE_OFFSET, PduType.RESPONSE, 1)),
        ("a verifier nobody agreed on", _with_verifier(call, source)),
        ("half a PDU", call[: source.randrange(1, len(call))]),
        ("two calls of one id", call + call),
        ("nothing but bytes", source.randbytes(source.randrange(1, 300))),
        ("a PDU of 65535 bytes", patched(call, FRAG_LENGTH_OFFSET, 0xFFFF) + bytes(0xFFFF - len(call))),
    ]
    for note, data in lenient:
        step = Step("call", data=data, breaks=(TRANSPORT,), expects="any", note=note)
        after = (Step("connect", 1), replace(BIND, connection=1), port_call(4, connection=1))
        yield case((TRANSPORT,), f"After {note} other callers are served.", CONNECT, BIND, step, *after)


def _with_verifier(call: bytes, source: random.Random) -> bytes:
    data = call + bytes([10, 6, 0, 0]) + source.randbytes(4) + source.randbytes(16)
    return patched(patched(data, FRAG_LENGTH_OFFSET, len(data)), _AUTH_LENGTH, 16)


def _with_object(call: bytes, source: random.Random) -> bytes:
    data = call[:24] + source.randbytes(16) + call[24:]
    flags = patched(data, _PFC, 0x83, 1)
    return patched(flags, FRAG_LENGTH_OFFSET, len(data))
