"""The checks of any stub of a remote call, for the targets of interfaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fuzz.invariants import refusal_has_a_position
from fuzz.readers.inputs import payloads
from msmqwire.errors import InvalidName, MalformedPacket
from msmqwire.rpc.constants import PduType
from msmqwire.rpc.ndr import NDR20, NDR64, Stub, Syntax, build_stub, from_json, parse_stub, parsing, to_json
from msmqwire.rpc.ndr.compiled import stub_reader
from msmqwire.rpc.pdu import PduFramer, parse_pdu
from msmqwire.rpc.queue_format import name_of, queue_format_of

SYNTAXES = (NDR20, NDR64, NDR20.ordered(big_endian=True), NDR64.ordered(big_endian=True))


def captured_stubs(example: str) -> Iterator[bytes]:
    """Yield the stubs of an example capture that are in the clear."""
    for _, stream in payloads(example, "tcp"):
        for frame in PduFramer().feed(stream):
            if (
                frame.header["PTYPE"] in (PduType.REQUEST, PduType.RESPONSE)
                and not frame.header["auth_length"]
            ):
                yield parse_pdu(frame.data).record["stub_data"]


def stub_seeds(example: str, declarations: tuple[Stub, ...]) -> Iterator[bytes]:
    """Yield inputs of a target: the number of a declaration, that of a syntax, and a stub."""
    for stub in dict.fromkeys(captured_stubs(example)):
        for number, declaration in enumerate(declarations):
            for choice, syntax in enumerate(SYNTAXES[:2]):
                try:
                    value = parse_stub(declaration, stub, syntax)
                except MalformedPacket:
                    continue
                if not value.wire.rest:
                    yield bytes([number, choice]) + stub
    for number in range(len(declarations)):
        yield bytes([number, 1]) + bytes(200)


def comes_back(stub: Stub, syntax: Syntax, content: bytes) -> Any:
    """Check that a stub is the same to both of its readers, and builds to its bytes; return its value, None
    for one that is refused.
    """
    compiled = stub_reader(stub, syntax)
    if compiled is not None and (value := compiled(content)) is not None:
        expected = parsing.interpreted(stub, content, syntax)
        assert (value, value.wire) == (expected, expected.wire)
    try:
        value = parse_stub(stub, content, syntax)
    except MalformedPacket as refusal:
        refusal_has_a_position(refusal, content)
        return None
    assert build_stub(stub, value, syntax) == content
    again = from_json(stub, to_json(stub, value))
    plain = build_stub(stub, again, syntax)
    assert parse_stub(stub, plain, syntax) == value
    return value


def is_a_name_or_refused(queue: object) -> None:
    """Check that a QUEUE_FORMAT is the name that makes it, or is refused."""
    try:
        name = name_of(queue)
    except InvalidName as refusal:
        assert refusal.why
        return
    assert name is None or name_of(queue_format_of(name)) == name
