"""Cases of stubs that lie: [MS-MQRR] 3.1.4 has the strict checks of NDR, [MS-RPCE] 3.1.1.5.3."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from fuzz.peer.remote_read import pdus
from fuzz.peer.remote_read.rpc_checks import BIND, CONNECT, STRICT, case, port_call
from fuzz.peer.steps import Case, Step
from fuzz.peer.target import Target
from msmqwire.remote_read.constants import Opnum
from msmqwire.remote_read.procedures import XACTUOW
from msmqwire.rpc.constants import NDR20, NDR64, SyntaxId

_WORDS: Final = {NDR20: 4, NDR64: 8}
"""The bytes of a count."""


def ndr_checks(target: Target, source: random.Random) -> Iterator[Case]:
    """Return the cases, with values that are drawn anew."""
    for transfer in pdus.TRANSFERS:
        yield from _names(target, source, transfer)
        yield from _ends(target, source, transfer)
        yield from _handles(target, source, transfer)
    yield from _tokens(target, source)


def _bind(transfer: SyntaxId) -> Step:
    return BIND if transfer == NDR20 else Step("bind", data=pdus.bind(transfer), note="bind to NDR64")


def _refused(transfer: SyntaxId, opnum: int, stub: bytes, note: str, ids: tuple[str, ...]) -> Case:
    """Return the case that a stub is refused, and other callers are served on."""
    step = Step("call", data=pdus.request(2, opnum, stub), breaks=ids, expects="refused", note=note)
    after = (Step("connect", 1), Step("bind", 1, BIND.data, note="bind"), port_call(3, connection=1))
    return case(ids, f"{note.capitalize()} is refused.", CONNECT, _bind(transfer), step, *after)


def _names(target: Target, source: random.Random, transfer: SyntaxId) -> Iterator[Case]:
    form = pdus.format_of(target, target.queue)
    stub = pdus.stub_of(Opnum.R_OpenQueue, transfer, **pdus.opening(form))
    word = _WORDS[transfer]
    name = f"TCP:{target.host}\\{target.queue}\0".encode("utf-16-le")
    text = stub.index(name)
    length, union = len(name) // 2, 4 if transfer == NDR20 else 8
    counts, pointer = text - 3 * word, text - 4 * word
    more = source.randrange(1, 1 << 30)

    def put(offset: int, value: int, size: int = word) -> bytes:
        return stub[:offset] + value.to_bytes(size, "little") + stub[offset + size :]

    lies = [
        ("a name with an actual count above its maximum", put(counts + 2 * word, length + 1)),
        ("a name with an actual count past the stub", put(counts + 2 * word, 0x7FFFFFFF)),
        ("a name with a maximum and actual count past the stub", _twice(stub, counts, word, more + 1000)),
        ("a name with the actual count 0", put(counts + 2 * word, 0)),
        ("a name with an offset", put(counts + word, source.randrange(1, length))),
        ("a name with an offset past the stub", put(counts + word, 0x7FFFFFFF)),
        ("a name with a maximum below its actual count", put(counts, length - 1)),
        ("a name without its null", put(text + len(name) - 2, ord("x"), 2)),
        ("a union whose discriminant is not m_qft", put(union, 1, 1)),
        ("a union with an unknown discriminant", put(union, 0x55, 1)),
        ("an unknown m_qft", _form(stub, union, source.randrange(9, 256))),
        ("a null pointer for a name", stub[:pointer] + bytes(word) + stub[text + len(name) :]),
    ]
    for note, data in lies:
        yield _refused(transfer, Opnum.R_OpenQueue, data, note, (STRICT,))
    for kind, what in ((5, "connector"), (6, "distribution list"), (7, "multicast address"), (0, "nothing")):
        data = _form(stub, union, kind)
        ids = ("MQRR-3.1.4.2-24",)
        yield _refused(transfer, Opnum.R_OpenQueue, data, f"to open a {what}", ids)
    for protocol in ("HTTP://", "IPX:"):
        changed = name.decode("utf-16-le").replace("TCP:", protocol)
        ids = ("MQRR-2.2.3-02",)
        other = replace(form, arm=changed.rstrip("\0"))
        data = pdus.stub_of(Opnum.R_OpenQueue, transfer, **pdus.opening(other))
        yield _refused(transfer, Opnum.R_OpenQueue, data, f"to open a queue by {protocol}", ids)

    longer = replace(form, arm=f"TCP:{target.host}\\private$\\" + "x" * source.randrange(20_000, 60_000))
    data = pdus.stub_of(Opnum.R_OpenQueue, transfer, **pdus.opening(longer))
    yield _refused(
        transfer, Opnum.R_OpenQueue, data, "a name of many thousand characters", ("MQRR-3.1.4.2-25",)
    )


def _twice(stub: bytes, counts: int, word: int, value: int) -> bytes:
    """Return a stub with maximum and actual count changed alike."""
    count = value.to_bytes(word, "little")
    return stub[:counts] + count + stub[counts + word : counts + 2 * word] + count + stub[counts + 3 * word :]


def _form(stub: bytes, union: int, kind: int) -> bytes:
    """Return a stub with another m_qft, and the same discriminant."""
    return bytes([kind]) + stub[1:union] + bytes([kind]) + stub[union + 1 :]


def _ends(target: Target, source: random.Random, transfer: SyntaxId) -> Iterator[Case]:
    stubs = {
        Opnum.R_OpenQueue: pdus.stub_of(
            Opnum.R_OpenQueue, transfer, **pdus.opening(pdus.format_of(target, target.queue))
        ),
        Opnum.R_CreateCursor: source.randbytes(20),
        Opnum.R_StartReceive: bytes(4) + source.randbytes(52),
        Opnum.R_EndReceive: bytes(4) + source.randbytes(16) + b"\2\0\0\0\1\0\0\0",
    }
    for opnum, stub in stubs.items():
        for size in {0, source.randrange(1, len(stub) - 4), len(stub) - 4}:
            note = f"{opnum.name} with {size} of {len(stub)} bytes"
            yield _refused(transfer, opnum, stub[:size], note, (STRICT,))


def _handles(target: Target, source: random.Random, transfer: SyntaxId) -> Iterator[Case]:
    """Out of range: a value that the runtime refuses before the method runs."""
    opening = pdus.open_queue(2, target, transfer=transfer)
    for opnum, rule in (
        (Opnum.R_EndReceive, "MQRR-3.1.4.9-04"),
        (Opnum.R_EndTransactionalReceive, "MQRR-3.1.4.15-04"),
    ):
        good = pdus.end_receive(3, pdus.handle(2), 1, opnum=opnum, transfer=transfer)
        ack = source.choice([0, 3, 0xFFFFFFFF])
        data = good[:-8] + ack.to_bytes(4, "little") + good[-4:]
        step = Step(
            "call", data=data, breaks=(rule,), expects="refused", note=f"{opnum.name} with dwAck {ack}"
        )
        text = "Only 1 and 2 are values of dwAck."
        yield case((rule,), text, CONNECT, _bind(transfer), Step("persist", data=opening), step)


def _tokens(target: Target, source: random.Random) -> Iterator[Case]:
    arguments = {
        "pTransactionId": XACTUOW.value(rgb=source.randbytes(16)),
        "cbPropagationToken": 32,
        "pbPropagationToken": source.randbytes(32),
        "pQueueFormat": pdus.format_of(target, target.queue),
    }
    opnum = Opnum.R_QMEnlistRemoteTransaction
    stub = pdus.stub_of(opnum, **arguments)
    rule = ("MQRR-3.1.4.12-06",)
    for note, data in (
        ("a propagation token longer than 131072 bytes", _token(stub, 131073, 131073)),
        ("a propagation token with two sizes", _token(stub, 16, 32)),
        ("a propagation token past the stub", _token(stub, 100_000, 100_000)),
    ):
        yield _refused(NDR20, opnum, data, note, rule)
    text = "A propagation token that is none is refused."
    step = Step("call", data=pdus.request(2, opnum, stub), note="a propagation token that is none")
    yield case(("MQRR-3.1.4.12-11",), text, CONNECT, BIND, step)


def _token(stub: bytes, size: int, most: int) -> bytes:
    return stub[:16] + size.to_bytes(4, "little") + most.to_bytes(4, "little") + stub[24:]
