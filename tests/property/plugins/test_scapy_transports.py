"""Layers of scapy for PGM, SRMP and remote read: the same bytes from values, and the values from bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.config import conf
from scapy.layers.http import HTTP, HTTPRequest
from scapy.layers.inet import IP, TCP
from scapy.packet import Packet as ScapyPacket
from scapy.packet import Raw

from msmqwire.management.interface import MANAGEMENT
from msmqwire.pgm import Opaque, PgmPacket, build_pgm
from msmqwire.plugins.scapy import management, pgm, remote_read
from msmqwire.plugins.scapy.pgm import PGM
from msmqwire.plugins.scapy.srmp import ELEMENTS, MSMQSRMPEnvelope, MSMQSRMPMultipart, MSMQSRMPPart
from msmqwire.remote_read.procedures import PROCEDURES
from msmqwire.rpc.ndr import NDR20, NDR64, Stub, Syntax, build_stub, parse_stub
from msmqwire.srmp.elements import Group
from msmqwire.srmp.envelope import Envelope, build_envelope
from msmqwire.srmp.multipart import Multipart, envelope_part, payload_part
from msmqwire.srmp.schema import HEADER
from tests.support.pgm.pgm_strategies import packets
from tests.support.rpc.ndr_strategies import values
from tests.support.srmp.srmp_strategies import envelopes

FEWER = settings(max_examples=max(20, settings.default.max_examples // 2))


@pytest.fixture(autouse=True, scope="module")
def _no_error_is_hidden() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conf, "debug_dissector", True)
        yield


# -- PGM ---------------------------------------------------------------------------------------------------

LAYERS = {
    cls.value_class: cls
    for cls in vars(pgm).values()
    if isinstance(cls, type) and hasattr(cls, "value_class")
}


def pgm_layer(value: Any) -> ScapyPacket:
    """A value as a layer made by its constructor."""
    arguments = {field.name: getattr(value, field.name) for field in fields(value)}
    for name, content in arguments.items():
        if isinstance(content, tuple):
            arguments[name] = list(content)
        elif type(content) in LAYERS:
            arguments[name] = pgm_layer(content)
    return LAYERS[type(value)](**arguments)


def pgm_stack(packet: PgmPacket) -> ScapyPacket:
    """A packet as layers."""
    head = {name: getattr(packet, name) for name in ("Type", "SourcePort", "DestinationPort", "GSI")}
    base = PGM(**head, Options=packet.Options, Checksum=packet.Checksum, TSDULength=packet.TSDULength)
    if isinstance(packet.body, Opaque):
        return base / Raw(packet.body.content)
    body = pgm_layer(packet.body)
    body.OptionExtensions = [pgm_layer(option) for option in packet.options]
    return base / body / Raw(packet.data)


@given(packets())
def test_pgm(packet: PgmPacket) -> None:
    data = build_pgm(packet)
    dissected = IP(bytes(IP(src="127.0.0.1", dst="127.0.0.1") / PGM(data)))
    assert bytes(dissected[PGM]) == bytes(pgm_stack(packet)) == data
    assert (dissected[PGM].SourcePort, dissected[PGM].Type) == (packet.SourcePort, packet.Type)


# -- SRMP -------------------------------------------------------------------------------------------------


def element(group: Group, json: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the layer of an element."""
    children = {child.name: child for child in group.children}
    arguments: dict[str, Any] = {}
    for name, value in json.items():
        inner = children.get(name)
        if isinstance(inner, Group):
            make = ELEMENTS[f"MSMQSRMP_{inner.name}"]
            several = isinstance(value, list)
            made = [make(**element(inner, item)) for item in (value if several else [value])]
            arguments[name] = made if several else made[0]
        else:
            arguments[name] = value
    return arguments


def envelope_layer(envelope: Envelope) -> ScapyPacket:
    """An envelope as a layer made by constructors."""
    json = envelope.to_json()
    return MSMQSRMPEnvelope(**element(HEADER, json["Header"]), kept=json["kept"])


@FEWER
@given(envelopes())
def test_envelopes(envelope: Envelope) -> None:
    data = build_envelope(envelope)
    assert bytes(envelope_layer(envelope)) == data
    request = HTTP() / HTTPRequest() / MSMQSRMPEnvelope(data)
    dissected = TCP(bytes(TCP(dport=80) / request))
    found = dissected[MSMQSRMPEnvelope]
    assert bytes(found) == data
    assert found.envelope() == envelope
    del found.fields["kept"]
    assert found.envelope().header == envelope.header


@FEWER
@given(envelopes(), st.binary(max_size=20), st.uuids())
def test_multipart_entities(envelope: Envelope, body: bytes, queue_manager: Any) -> None:
    data = build_envelope(envelope)
    parts = (envelope_part(data), payload_part(body, "body@", queue_manager))
    entity = Multipart("MSMQ - SOAP boundary, 7", parts).to_bytes()
    head = f"Content-Type: application/octet-stream\r\nContent-Length: {len(body)}\r\n"
    layer = MSMQSRMPMultipart(
        Boundary="MSMQ - SOAP boundary, 7",
        Parts=[
            MSMQSRMPPart(Content=envelope_layer(envelope)),
            MSMQSRMPPart(HeaderFields=f"{head}Content-Id: body@{queue_manager}\r\n", Content=body),
        ],
    )
    assert bytes(layer) == entity
    dissected = TCP(bytes(TCP(dport=80) / HTTP() / HTTPRequest() / layer))
    assert bytes(dissected[MSMQSRMPMultipart]) == entity
    assert bytes(dissected[MSMQSRMPEnvelope]) == data
    assert dissected[MSMQSRMPMultipart].Parts[1].Content == body


# -- remote read and queue management ---------------------------------------------------------------------

RPC_LAYERS = {**remote_read.STUBS, **management.STUBS}
STUBS = [
    (f"{procedure.name}_{direction}", stub)
    for procedure in (*PROCEDURES.values(), *MANAGEMENT.procedures.values())
    for direction, stub in (("Request", procedure.request), ("Response", procedure.response))
    if f"{procedure.name}_{direction}" in RPC_LAYERS
]
stub_values = st.sampled_from(STUBS).flatmap(lambda pair: st.tuples(st.just(pair), values(pair[1])))
syntaxes = st.builds(Syntax.ordered, st.sampled_from([NDR20, NDR64]), big_endian=st.booleans())


def arguments(layer: ScapyPacket) -> dict[str, Any]:
    """The arguments that make a layer again."""
    return {field.name: _argument(layer.getfieldval(field.name)) for field in layer.fields_desc}


def _argument(value: Any) -> Any:
    if isinstance(value, list):
        return [_argument(item) for item in value]
    is_own = isinstance(value, ScapyPacket) and type(value).__name__.startswith(("RemoteRead_", "qmmgmt_"))
    return type(value)(**arguments(value)) if is_own else value


def same(members: Any, value: Any) -> bool:
    """Whether what a layer has is a value of the declaration."""
    if isinstance(members, dict):
        return all(same(member, getattr(value, name)) for name, member in members.items())
    if isinstance(members, tuple) and not hasattr(members, "_fields"):
        return len(members) == len(value) and all(map(same, members, value))
    return bool(members == value)


@given(stub_values, syntaxes)
def test_calls_of_rpc(pair: tuple[tuple[str, Stub], Any], syntax: Syntax) -> None:
    (name, stub), value = pair
    data = build_stub(stub, value, syntax)
    layer, way = RPC_LAYERS[name], {"ndr64": syntax.word == 8, "ndrendian": syntax.byte_order}
    dissected = layer(data, **way) if data else layer(**way)
    assert bytes(dissected) == data
    made = layer(**arguments(dissected), **way)
    assert made.wire is None
    assert bytes(made) == data
    assert same(dissected.members(), value)
    if data:  # a sender with other padding and referent ids, and bytes behind
        read = parse_stub(stub, data, syntax)
        paddings = tuple(b"\xaa" * len(padding) for padding in read.wire.paddings)
        wire = read.wire._replace(paddings=paddings, referents=(7,) * len(read.wire.referents), rest=b"rest")
        sent = build_stub(stub, replace(read, wire=wire), syntax)
        assert bytes(layer(sent, **way).copy()) == bytes(next(iter(layer(sent, **way)))) == sent
