"""scapy's reading of captures, with its own reassembly, against `msmqwire.dissect`."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("scapy")

from scapy.sendrecv import sniff
from scapy.sessions import TCPSession
from scapy.utils import rdpcap

import msmqwire
from msmqwire.ncp.packets import NcpReply, NcpRequest
from msmqwire.ncp.queue_calls import EMPTY
from msmqwire.plugins.scapy import MSMQBaseHeader, MSMQPing, NcpReplyHeader, NcpRequestHeader
from msmqwire.plugins.scapy.structure import Structure, partial
from msmqwire.schema import Record, plain
from tests.support.paths import EXAMPLES
from tools.generate import netware_example


def headers(packet: Any) -> list[Any]:
    """The headers of one packet in scapy as plain values."""
    found = []
    for layer in packet.iterpayloads():
        if found and isinstance(layer, MSMQBaseHeader):
            break
        if isinstance(layer, Structure):
            found.append(plain(layer.schema.make(partial(layer))))
    return found


def parts(packet: Record) -> list[Any]:
    """The same of `dissect`."""
    if packet.schema is MSMQPing.schema:
        return [plain(packet)]
    return [plain(value) for value in dict(packet).values() if isinstance(value, Record)]


@pytest.mark.parametrize("name", ["session.pcap", "protected.pcap"])
def test_both_read_the_same(name: str) -> None:
    frames = sniff(offline=str(EXAMPLES / name), session=TCPSession, quiet=True)
    read = [
        headers(layer)
        for frame in frames
        for layer in frame.iterpayloads()
        if isinstance(layer, MSMQBaseHeader | MSMQPing)
    ]
    dissected = [parts(item.packet) for item in msmqwire.dissect(EXAMPLES / name) if item.packet is not None]
    assert len(read) > 5
    assert read == dissected


def test_requests_and_replies_of_netware() -> None:
    found = sniff(offline=str(EXAMPLES / "netware.pcap"), session=TCPSession, quiet=True)
    read = [headers(layer) for layer in found if NcpRequestHeader in layer or NcpReplyHeader in layer]
    calls = [layer[NcpReplyHeader].call for layer in found if NcpReplyHeader in layer]
    pairs = [pair for talk in netware_example.talks() for pair in talk.pairs]
    assert [structures[1:] for structures in read] == [spoken(packet) for pair in pairs for packet in pair]
    assert calls == [reply.call for _, reply in pairs]
    assert len(pairs) == 38


def spoken(packet: NcpRequest | NcpReply) -> list[Any]:
    """The structures of a packet as plain values, without its preamble, and without empty data of a reply."""
    subfunction = packet.subfunction if isinstance(packet, NcpRequest) else None
    data = None if isinstance(packet, NcpReply) and packet.data == EMPTY.make() else packet.data
    return [plain(record) for record in (packet.header, subfunction, data) if record is not None]


@pytest.mark.parametrize("name", ["hostile.pcapng", "remote_read.pcap", "management.pcap", "netware.pcap"])
def test_nothing_of_a_capture_is_lost(name: str, caplog: pytest.LogCaptureFixture) -> None:
    frames = rdpcap(str(EXAMPLES / name))
    assert [bytes(frame) for frame in frames] == [frame.original for frame in frames]
    assert all(frame.summary() and frame.show(dump=True) for frame in frames)
    assert len(sniff(offline=str(EXAMPLES / name), session=TCPSession, quiet=True)) > 10
    assert "failed" not in caplog.text
