"""The layers of msmqwire as users of scapy meet them: found, shown, built, answered, fuzzed, loaded."""

from __future__ import annotations

import importlib.util
import pickle
import socket
import sys
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from scapy.config import ExtsManager, conf
from scapy.fields import RawVal
from scapy.layers.dcerpc import DCE_RPC_INTERFACES, DceRpc5, DceRpc5Request, DceRpc5Response
from scapy.layers.http import HTTP
from scapy.layers.inet import IP, TCP, UDP
from scapy.main import load_layer
from scapy.packet import Packet as ScapyPacket
from scapy.packet import Padding, Raw, bind_layers, explore, fuzz, ls, split_layers
from scapy.sendrecv import sniff
from scapy.sessions import TCPSession
from scapy.supersocket import StreamSocket
from scapy.utils import rdpcap, wrpcap

import msmqwire
from msmqwire import InvalidValue
from msmqwire.management.interface import parse_request
from msmqwire.packets import parse
from msmqwire.plugins import scapy as layers
from msmqwire.plugins.scapy import (
    PGM,
    MSMQBaseHeader,
    MSMQConnectionParametersHeader,
    MSMQDebugHeader,
    MSMQDirectQueueFormatName,
    MSMQEstablishConnectionHeader,
    MSMQExtensionHeader,
    MSMQFinalAckBody,
    MSMQInternalHeader,
    MSMQMessagePropertiesHeader,
    MSMQMQFFormatNameElement,
    MSMQOrderAckBody,
    MSMQPing,
    MSMQSecurityData,
    MSMQSecurityHeader,
    MSMQSessionHeader,
    MSMQSRMPEnvelopeHeader,
    MSMQTransactionHeader,
    MSMQTxSequenceID,
    MSMQUserHeader,
    PGMData,
    PGMNak,
    PGMNla,
    PGMOptFragment,
    R_OpenQueue_Request,
    R_OpenQueue_Response,
    RemoteRead_QUEUE_FORMAT,
)
from msmqwire.plugins.scapy.binary import PACKETS_MAX
from msmqwire.plugins.scapy.remote_read import register
from msmqwire.plugins.scapy.stack import Stack
from msmqwire.remote_read.interface import INTERFACE
from msmqwire.rpc.ndr import NDR64
from tests.support import handmade as h
from tests.support.capture.scapy_layers import registered_alone
from tests.support.paths import EXAMPLES, ROOT
from tests.support.patience import limit

MESSAGE = (
    MSMQBaseHeader()
    / MSMQUserHeader(MessageID=7, DestinationQueue=MSMQDirectQueueFormatName(DirectFormatName="OS:a\\b"))
    / MSMQMessagePropertiesHeader(Label="order", MessageBody=b"10 pieces")
)
ESTABLISH = MSMQBaseHeader() / MSMQInternalHeader() / MSMQEstablishConnectionHeader(TimeStamp=9)
PARAMETERS = MSMQBaseHeader() / MSMQInternalHeader() / MSMQConnectionParametersHeader(WindowSize=8)
SESSION_ACK = MSMQBaseHeader() / MSMQInternalHeader() / MSMQSessionHeader(AckSequenceNumber=3)


@pytest.fixture(autouse=True)
def _no_error_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "debug_dissector", True)


# -- kinds ----------------------------------------------------------------------------------------------

KINDS = {
    "EstablishConnection": ESTABLISH,
    "ConnectionParameters": PARAMETERS,
    "SessionAck": SESSION_ACK,
    "UserMessage": MESSAGE,
    "OrderAck": MSMQBaseHeader()
    / MSMQUserHeader()
    / MSMQMessagePropertiesHeader(MessageBody=MSMQOrderAckBody(TxSequenceNumber=3)),
    "FinalAck": MSMQBaseHeader()
    / MSMQUserHeader()
    / MSMQMessagePropertiesHeader(MessageClass="MQMSG_CLASS_NACK_Q_DELETED", MessageBody=MSMQFinalAckBody()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_stack_of_headers_is_the_packet_that_it_looks_like(kind: str) -> None:
    data = bytes(KINDS[kind])
    assert parse(data).schema.name == kind
    segment = IP(bytes(IP() / TCP() / KINDS[kind]))
    assert (segment[TCP].dport, segment[MSMQBaseHeader].PacketSize) == (1801, len(data))
    assert f"/ MSMQ {kind}" in segment.summary()
    assert "TCP 127.0.0.1:ftp_data > 127.0.0.1:1801" in segment.summary()
    shown = segment.show(dump=True)
    assert shown == segment.show2(dump=True)
    assert f"PacketSize= {len(data)}" in shown
    assert bytes(pickle.loads(pickle.dumps(segment))) == bytes(segment)
    assert bytes(eval(KINDS[kind].command(), vars(layers))) == data
    assert KINDS[kind].json()


def test_all_headers_of_a_message() -> None:
    sequence = MSMQTxSequenceID(Ordinal=1)
    message = (
        MSMQBaseHeader(PR=None)
        / MSMQUserHeader()
        / MSMQTransactionHeader(TxSequenceID=sequence)
        / MSMQSecurityHeader(SecurityData=MSMQSecurityData(SecurityID=b"\1\2\3", SenderCert=b"c"))
        / MSMQMessagePropertiesHeader(Label="x")
        / MSMQDebugHeader()
        / MSMQSRMPEnvelopeHeader(Data="<x/>")
        / layers.MSMQCompoundMessageHeader(Data=b"POST")
        / layers.MSMQSoapHeader(Header="h", Body="b")
        / layers.MSMQMultiQueueFormatHeader(
            Destination=layers.MSMQMQFAddressHeader(
                FormatNameList=[MSMQMQFFormatNameElement(FormatName=layers.MSMQPublicQueueFormatName())]
            )
        )
        / Raw(b"behind")
        / MSMQSessionHeader(AckSequenceNumber=5)
    )
    read = MSMQBaseHeader(bytes(message))
    assert [type(layer) for layer in read.iterpayloads()] == [type(layer) for layer in message.iterpayloads()]
    assert (read.DH, read.SH, read.PR) == (1, 1, 0)
    user, security = read[MSMQUserHeader], read[MSMQSecurityHeader]
    assert (user.TH, user.SH, user.AH, user.HH, user.MQ, user.DM, user.DQ) == (1, 1, 1, 1, 1, 1, 0)
    assert (security.AI, security.SenderIdSize, security.SenderCertSize) == (1, 3, 1)
    assert security.SecurityData.SecurityIDPadding == b"\0"
    assert read.PacketSize == len(bytes(message)) - len(bytes(MSMQSessionHeader()))
    assert read.haslayer(MSMQTxSequenceID)
    assert read.getlayer("MSMQ TxSequenceID").Ordinal == 1
    assert read[layers.MSMQMultiQueueFormatHeader].Destination.ElementCount == 1
    assert bytes(read) == bytes(message)


def test_given_values_are_respected() -> None:
    message = MESSAGE.copy()
    message.PacketSize, message[MSMQUserHeader].DQ, message.VersionNumber = 17, 5, 0x11
    message[MSMQMessagePropertiesHeader].LabelLength = 99
    data = bytes(message)
    assert (data[0], data[8:12], len(data)) == (0x11, (17).to_bytes(4, "little"), len(bytes(MESSAGE)))
    assert (
        MSMQUserHeader(bytes(MSMQUserHeader(DQ=5, DestinationQueue=layers.MSMQPublicQueueFormatName()))).DQ
        == 5
    )
    with pytest.raises(InvalidValue, match=r"PacketSize.*not in 0\.\.4294967295"):
        bytes(MSMQBaseHeader(PacketSize=-1))


def test_raw_values_stand_in_the_place_of_a_field() -> None:
    message, plain = MESSAGE.copy(), bytes(MESSAGE)
    message.PacketSize, message.CorrelationID = RawVal(b"?"), RawVal(b"any")
    properties = plain.index(bytes(MESSAGE[MSMQMessagePropertiesHeader]))
    expected = plain[:8] + b"?" + plain[12 : properties + 4] + b"any" + plain[properties + 24 :]
    assert bytes(message) == expected
    user = MSMQUserHeader(DQ=7, DestinationQueue=RawVal(b"queue"), ConnectorType=RawVal(b"type"))
    assert bytes(user) == bytes(MSMQUserHeader(DQ=7)) + b"queuetype"
    assert bytes(MSMQTransactionHeader(TxSequenceNumber=RawVal(b"!"))) == bytes(12) + b"!" + bytes(4)


def test_what_is_computed_is_none_before() -> None:
    base, security, properties = MSMQBaseHeader(), MSMQSecurityHeader(), MSMQMessagePropertiesHeader()
    assert (base.PacketSize, base.IN, base.SH, base.PR) == (None,) * 4
    assert (security.AI, security.ST, security.SenderIdSize, security.SenderCertSize) == (None,) * 4
    assert (properties.LabelLength, properties.MessageSize, properties.Padding) == (None,) * 3
    assert (base.VersionNumber, security.EB, properties.ApplicationTag) == (0x10, 0, 0)


def test_another_protocol_inside_a_packet_is_counted() -> None:
    packet = MESSAGE / IP(src="127.0.0.1", dst="127.0.0.1")
    read = MSMQBaseHeader(bytes(packet))
    assert read.PacketSize == len(bytes(MESSAGE)) + 20
    assert read[Raw].load == bytes(IP(src="127.0.0.1", dst="127.0.0.1"))


@pytest.mark.parametrize(
    ("stack", "size"),
    [
        (MSMQBaseHeader(), 16),
        (MSMQBaseHeader() / b"abc", 19),
        (MSMQBaseHeader() / MSMQInternalHeader() / MSMQUserHeader(), 68),
        (MSMQBaseHeader() / MSMQSessionHeader() / MSMQInternalHeader(), 36),
        (MSMQBaseHeader() / MSMQUserHeader() / MSMQTransactionHeader() / MSMQSessionHeader(), 84),
    ],
)
def test_stacks_that_are_no_packet_are_built_all_the_same(stack: ScapyPacket, size: int) -> None:
    data = bytes(stack)
    assert int.from_bytes(data[8:12], "little") == size
    assert bytes(MSMQBaseHeader(data)) == data
    assert int(MSMQInternalHeader in stack) == MSMQBaseHeader(data).IN
    if MSMQTransactionHeader in stack:
        assert MSMQBaseHeader(data)[MSMQUserHeader].TH == 1


def test_a_layer_alone_has_its_own_bytes() -> None:
    security = MSMQSecurityHeader(bytes(MSMQSecurityHeader(SecurityData=MSMQSecurityData(Signature=b"abc"))))
    assert bytes(security.SecurityData)[:4] == b"abc\0"
    assert bytes(MESSAGE[MSMQMessagePropertiesHeader])[1] == len("order\0")
    nak = PGMNak(SourceNLA=PGMNla(Address="10.0.0.1"), OptionExtensions=[PGMOptFragment(Offset=3)])
    assert bytes(nak)[4:12] == bytes((0, 1, 0, 0, 10, 0, 0, 1))
    assert bytes(nak).endswith(bytes(PGMOptFragment(Offset=3)))


# -- where they are found -------------------------------------------------------------------------------

FOUND = [
    (TCP, 1801, bytes(MESSAGE), MSMQBaseHeader),
    (TCP, 1801, b"GET / HTTP/1.1\r\n\r\n", Raw),
    (TCP, 1801, bytes(MESSAGE)[:15], Raw),
    (TCP, 4711, bytes(MESSAGE), MSMQBaseHeader),
    (TCP, 4711, b"\x10\0\0\0LIOS" + bytes(100), Raw),
    (TCP, 4711, b"POST /msmq/private$/q HTTP/1.1\r\n\r\n", HTTP),
    (TCP, 4711, b"POST /other/q HTTP/1.1\r\n\r\n", Raw),
    (TCP, 4711, bytes(DceRpc5() / DceRpc5Request()), DceRpc5),
    (TCP, 4711, b"\5\0\x63" + bytes(DceRpc5() / DceRpc5Request())[3:], Raw),
    (UDP, 3527, bytes(MSMQPing()), MSMQPing),
    (UDP, 3527, bytes(MSMQPing(Signature=1)), Raw),
    (UDP, 3527, bytes(MSMQPing()) + b"x", Raw),
    (UDP, 4711, bytes(MSMQPing()), MSMQPing),
    (UDP, 4711, bytes(24), Raw),
]


@pytest.mark.parametrize(("below", "port", "data", "layer"), FOUND)
def test_found_by_port_and_signature(below: Any, port: int, data: bytes, layer: Any) -> None:
    for head in (below(dport=port, sport=9), below(dport=9, sport=port)):
        frame = bytes(head / Raw(data))
        assert type(below(frame).payload) is layer
        assert bytes(below(frame)) == frame


def test_what_another_layer_is_bound_to_stays_with_it() -> None:
    class _Bound(Raw):
        pass

    bind_layers(TCP, _Bound, dport=4711)
    try:
        assert type(TCP(bytes(TCP(dport=4711) / Raw(bytes(MESSAGE)))).payload) is _Bound
    finally:
        split_layers(TCP, _Bound, dport=4711)


def test_many_packets_in_one_segment() -> None:
    data = bytes(SESSION_ACK) * (PACKETS_MAX + 50)
    segment = TCP(bytes(TCP(dport=1801)) + data)
    packets = [layer for layer in segment.iterpayloads() if isinstance(layer, MSMQBaseHeader)]
    assert len(packets) == PACKETS_MAX
    assert segment.lastlayer().load == bytes(SESSION_ACK) * 50
    assert bytes(segment) == bytes(TCP(dport=1801)) + data
    assert TCP(bytes(TCP(dport=1801) / MESSAGE) + b"rest").lastlayer() == Padding(b"rest")


@pytest.mark.parametrize("port", [1801, 4711])
def test_a_stream_with_its_handshake_and_leading_bytes_is_read(port: int) -> None:
    stream = b"before" * (port == 1801) + bytes(MESSAGE) + bytes(SESSION_ACK)
    cuts = [0, 0, 20, 90, len(stream) - 5, len(stream)]  # the first segment is the SYN
    segments = [
        IP(bytes(IP() / TCP(sport=9, dport=port, flags="A", seq=5 + start) / stream[start:end]))
        for start, end in pairwise(cuts)
    ]
    found = sniff(offline=segments, session=TCPSession, quiet=True)
    read = [layer for frame in found for layer in frame.iterpayloads() if type(layer) is MSMQBaseHeader]
    assert [Stack(packet).build() for packet in read] == [bytes(MESSAGE), bytes(SESSION_ACK)]


def test_a_stream_that_ends_inside_a_packet() -> None:
    for end in (10, 100):
        segment = IP(bytes(IP() / TCP(sport=9, dport=1801, flags="FA", seq=5) / bytes(MESSAGE)[:end]))
        (found,) = sniff(offline=[segment], session=TCPSession, quiet=True)
        assert bytes(found[TCP].payload) == bytes(MESSAGE)[:end]


# -- requests and answers -------------------------------------------------------------------------------


def test_answers_of_a_ping() -> None:
    ping = IP(src="127.0.0.1", dst="127.0.0.2") / UDP(sport=50_000) / MSMQPing(Cookie=77)
    ways = {"src": "127.0.0.2", "dst": "127.0.0.1"}
    pong, other = (IP(**ways) / UDP(sport=3527, dport=50_000) / MSMQPing(Cookie=c, RF=1) for c in (77, 78))
    assert pong.answers(ping)
    assert pong.hashret() == ping.hashret() != other.hashret()
    assert not other.answers(ping)


@pytest.fixture
def peer() -> Iterator[StreamSocket]:
    """A stream to a peer that answers the handshake and acknowledges, other packets before and behind."""
    ours, theirs = socket.socketpair()

    def serve() -> None:
        connection = StreamSocket(theirs, MSMQBaseHeader)
        answer = {
            MSMQEstablishConnectionHeader: ESTABLISH,
            MSMQConnectionParametersHeader: PARAMETERS,
            MSMQMessagePropertiesHeader: SESSION_ACK,
        }[type(connection.recv().payload.payload)]
        noise = MSMQBaseHeader() / MSMQInternalHeader() / MSMQEstablishConnectionHeader(TimeStamp=1)
        theirs.sendall(bytes(noise) + bytes(answer) + bytes(noise))

    thread = Thread(target=serve, daemon=True)
    thread.start()
    yield StreamSocket(ours, MSMQBaseHeader)
    ours.close()
    thread.join(limit(5))
    theirs.close()
    assert not thread.is_alive()


WANTING_AN_ANSWER = [ESTABLISH, PARAMETERS, MESSAGE / MSMQSessionHeader(UserMsgSequenceNumber=3)]


@pytest.mark.parametrize("request_", WANTING_AN_ANSWER)
def test_sr1_over_a_stream(peer: StreamSocket, request_: ScapyPacket) -> None:
    answer = peer.sr1(request_, timeout=limit(5), verbose=False)
    assert answer is not None
    header = answer.payload.payload
    if isinstance(header, MSMQSessionHeader):
        assert header.AckSequenceNumber == 3
    else:
        assert type(header) is type(request_.payload.payload)
        assert isinstance(header, MSMQConnectionParametersHeader) or header.TimeStamp == 9


def test_not_an_answer() -> None:
    late = MESSAGE / MSMQSessionHeader(UserMsgSequenceNumber=4)
    assert not SESSION_ACK.answers(late)
    assert not SESSION_ACK.answers(ESTABLISH)
    assert not PARAMETERS.answers(ESTABLISH)
    assert not MESSAGE.answers(late)


# -- tools ----------------------------------------------------------------------------------------------

LAYERS = [getattr(layers, name) for name in layers.__all__]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.__name__)
def test_every_layer_is_shown_listed_and_fuzzed(layer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert getattr(sys.modules[layer.__module__], layer.__name__) is layer
    made = layer()
    assert f"[ {layer._name} ]" in made.show(dump=True)
    ls(layer)
    listed = capsys.readouterr().out
    assert [line.split()[0] for line in listed.splitlines()] == [field.name for field in layer.fields_desc]
    assert made.summary()
    assert made.copy() == made
    fuzzed = fuzz(made)
    if layer.__name__ not in ("MSMQSRMPEnvelope", "MSMQSRMPMultipart"):  # which have parts that they must
        bytes(made)
        bytes(fuzzed)


def test_structures_inside_a_header_are_fuzzed_unless_given() -> None:
    sequences = {bytes(fuzz(MSMQTransactionHeader()))[4:12] for _ in range(5)}
    assert len(sequences) == 5
    given = MSMQTransactionHeader(TxSequenceID=MSMQTxSequenceID(Ordinal=5))
    assert bytes(fuzz(given))[4:12] == (5).to_bytes(8, "little")
    message = MSMQBaseHeader(bytes(fuzz(MSMQBaseHeader() / MSMQUserHeader() / MSMQMessagePropertiesHeader())))
    assert message.PacketSize == len(bytes(message))


def test_explore_and_load_layer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "120")  # what is longer than the terminal is wide is cut
    explore("msmq")
    shown = capsys.readouterr().out
    assert all(f"|{layer._name}" in shown and layer.__name__ in shown for layer in LAYERS)
    names: dict[str, Any] = {}
    load_layer("msmq", globals_dict=names)
    assert names["MSMQPing"] is MSMQPing
    monkeypatch.setattr(conf.layers, "ldict", {"scapy.layers.msmq": LAYERS})  # not of other tests
    assert ("scapy.layers.msmq", layers.__doc__.splitlines()[0]) in conf.layers.layers()
    ls("MSMQUser")
    assert "MSMQUserHeader : MSMQ UserHeader" in capsys.readouterr().out


def test_captures_are_written_as_they_were(tmp_path: Path) -> None:
    packets = rdpcap(str(EXAMPLES / "session.pcap"))
    for packet in packets:
        packet.clear_cache()
    wrpcap(str(tmp_path / "again.pcap"), packets)
    again = rdpcap(str(tmp_path / "again.pcap"))
    assert [packet.original for packet in again] == [packet.original for packet in packets]


def test_the_extension_is_loaded_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = ROOT / "scapy_extension"
    declared = tomllib.loads((folder / "pyproject.toml").read_text())
    project, packages = declared["project"], declared["tool"]["setuptools"]["packages"]
    installed = tmp_path / "msmqwire_scapy-0.1.0.dist-info"
    installed.mkdir()
    lines = [f"Name: {project['name']}", f"Version: {project['version']}"]
    lines.append(f"License-Expression: {project['license']}")
    (installed / "METADATA").write_text("\n".join(lines) + "\n")
    (installed / "top_level.txt").write_text("\n".join(packages))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(folder)
    manager = ExtsManager()
    try:
        manager.load("msmqwire-scapy")
        assert [extension.name for extension in manager.exts] == ["MSMQ"]
        spec = manager.find_spec("scapy.layers.msmq", None)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not manager]
    assert module.MSMQPing is MSMQPing


# -- remote read ----------------------------------------------------------------------------------------


def test_calls_in_a_session_of_dce_rpc(monkeypatch: pytest.MonkeyPatch) -> None:
    registered_alone(monkeypatch)
    monkeypatch.setattr(conf, "dcerpc_session_enable", True)
    call = R_OpenQueue_Request(pQueueFormat=RemoteRead_QUEUE_FORMAT(m_pDirectID="OS:a\\b"), dwAccess=1)
    request = DceRpc5() / DceRpc5Request() / call
    assert request[DceRpc5Request].opnum == 2
    found = sniff(offline=str(EXAMPLES / "remote_read.pcap"), session=TCPSession, quiet=True)
    items = [item for item in msmqwire.dissect(EXAMPLES / "remote_read.pcap") if item.kind.startswith("R_")]
    calls = [item.kind for item in items if item.packet.value is not None]  # the others are sealed
    shown = [
        type(stub).__name__.replace("_Request", " request").replace("_Response", " response")
        for packet in found
        for below in (DceRpc5Request, DceRpc5Response)
        if below in packet and type(stub := packet[below].payload).__name__.startswith("R_")
    ]
    assert shown == calls
    answer = next(packet for packet in found if layers.R_StartReceive_Response in packet)
    message = answer[layers.R_StartReceive_Response].ppPacketSections[0].pSectionBuffer
    assert (message.Label, message[MSMQExtensionHeader].EA) == ("order 1", 1)


def test_calls_of_queue_management_in_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "dcerpc_session_enable", True)
    example = EXAMPLES / "management.pcap"
    found = sniff(offline=str(example), session=TCPSession, quiet=True)
    items = [item for item in msmqwire.dissect(example) if item.kind.startswith("R_")]
    calls = [item.packet for item in items if item.packet.value is not None]  # the others are sealed
    shown = [
        stub
        for packet in found
        for below in (DceRpc5Request, DceRpc5Response)
        if below in packet and type(stub := packet[below].payload).__name__.startswith("R_QMMgmt")
    ]
    assert [bytes(stub) for stub in shown] == [packet.stub for packet in calls]
    asked = layers.qmmgmt_MGMT_OBJECT(pQueueFormat=layers.qmmgmt_QUEUE_FORMAT(m_pDirectID="OS:a\\q"))
    call = layers.R_QMMgmtAction_Request(pObjectFormat=asked, lpwszAction="PAUSE")
    assert (DceRpc5Request() / call).opnum == 1
    built = parse_request(1, bytes(layers.R_QMMgmtAction_Request(bytes(call))), NDR64)
    assert (built.pObjectFormat.arm.arm, built.lpwszAction) == ("OS:a\\q", "PAUSE")


def test_an_interface_that_is_registered_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    other = object()
    monkeypatch.setitem(DCE_RPC_INTERFACES, (INTERFACE.uuid, 1), other)
    register()
    assert DCE_RPC_INTERFACES[INTERFACE.uuid, 1] is other
    assert (DceRpc5Request() / layers.R_PurgeQueue_Request()).opnum == 6


def test_an_empty_answer() -> None:
    handle = layers.RemoteRead_ContextHandle(attributes=5)
    answer = R_OpenQueue_Response(bytes(R_OpenQueue_Response(pphContext=handle)))
    assert answer.pphContext == handle


def test_pgm_over_ip() -> None:
    packet = IP(bytes(IP(src="127.0.0.1", dst="239.0.0.1") / PGM(SourcePort=1) / PGMData() / b"part"))
    assert (packet.proto, packet[PGM].Type, packet[PGM].TSDULength, packet[Raw].load) == (113, 4, 4, b"part")
    assert "PGM ODATA 1 > 0" in packet.summary()
    ip = IP(src="127.0.0.1", dst="239.0.0.1", proto=113)
    for size in (0, 3, 0xFFFF):  # a wrong length leaves the rest readable
        data = bytes(packet[PGM])[:14] + size.to_bytes(2, "big") + bytes(packet[PGM])[16:]
        read = IP(bytes(ip / Raw(data)))
        assert (read[PGM].TSDULength, read[Raw].load, bytes(read.payload)) == (size, b"part", data)
    assert type(IP(bytes(ip / Raw(bytes(packet[PGM])[:19]))).payload) is Raw


@pytest.mark.parametrize(
    ("body", "body_type", "told"),
    [
        (b"10 pieces", 0, " text 10 pieces"), ("wide".encode("utf-16-le"), 8, " activex wide"),
        ("\u202ered".encode(), 0, " text \\u202ered"), (b"<a>1</a>", 0, " xml "), (b"\0\xff", 0, ""),
        (b"x" * 100, 0, f" text {'x' * 39}…"), (b"", 0, ""),
    ],
)  # fmt: skip
def test_a_summary_has_the_format_and_the_text_of_a_body(body: bytes, body_type: int, told: str) -> None:
    data = h.user_message(properties=h.properties_header(label="label", body=body, body_type=body_type))
    summary = MSMQBaseHeader(data).summary()
    assert told in summary
    assert summary.endswith("'label'") == (not told)
    encrypted = h.user_message(
        security=h.security_header(flags=1 << 5), properties=h.properties_header(label="label", body=body)
    )
    assert MSMQBaseHeader(encrypted).summary().endswith("'label'")
