"""Packets of NCP in a capture: tshark sees one in each frame that completes one, and the same header."""

from __future__ import annotations

from msmqwire.analysis.dissection import dissect
from tests.support.capture.tshark import tshark
from tests.support.paths import EXAMPLES

EXAMPLE = EXAMPLES / "netware.pcap"


def test_tshark_counts_and_pairs_the_same_packets():
    names = ("frame.number", "ncp.type", "ncp.seq", "ncp.completion_code")
    chosen = [argument for name in names for argument in ("-e", name)]
    shown = tshark(EXAMPLE, "-o", "tcp.desegment_tcp_streams:TRUE", "-Y", "ncp", "-T", "fields", *chosen)
    seen = [line.split("\t") for line in shown.splitlines()]
    found = list(dissect(EXAMPLE))
    assert [int(row[0]) for row in seen] == [item.frames[-1] for item in found]
    for row, item in zip(seen, found, strict=True):
        header = item.packet.packet.header
        is_reply = item.kind.endswith("reply")
        assert int(row[1], 0) == (header.ReplyType if is_reply else header.RequestType)
        assert int(row[2]) == header.SequenceNumber
        if is_reply:
            assert int(row[3], 0) == header.CompletionCode
