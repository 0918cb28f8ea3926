"""Sessions of remote read in captures, and what tshark makes of them: the same PDUs, calls and fragments."""

from __future__ import annotations

import io
from collections import Counter

import pytest

from msmqwire.analysis.dissection import dissect
from msmqwire.rpc.constants import AuthLevel, AuthType, PduType
from msmqwire.rpc.pdu import PduFramer, parse_pdu
from tests.support import captures as c
from tests.support.capture import rpc_captures as r
from tests.support.capture.tshark import tshark

FIELDS = ("tcp.srcport", "dcerpc.pkt_type", "dcerpc.cn_call_id", "dcerpc.cn_frag_len", "dcerpc.cn_flags",
          "dcerpc.cn_auth_len")  # fmt: skip
TALKS = {
    **{
        name: r.session(syntax, client_port=50_000 + i) for i, (name, syntax) in enumerate(r.SYNTAXES.items())
    },
    "small segments": r.session(mss=200, client_port=50_010),
    "big-endian": r.session(big_endian=True, client_port=50_013),
    "integrity": r.session(level=AuthLevel.PKT_INTEGRITY, client_port=50_011),
    "privacy": r.session(level=AuthLevel.PKT_PRIVACY, auth_type=AuthType.GSS_NEGOTIATE, client_port=50_012),
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """By conversation the PDUs that tshark finds, as Counter of their fields, and the opnums of requests."""
    path = tmp_path_factory.mktemp("rpc") / "a.pcap"
    frames = c.merged(*(talk.close().frames for talk in TALKS.values()))
    path.write_bytes(c.pcap_bytes(frames))
    names = ["tcp.stream", "_ws.malformed", "dcerpc.opnum", *FIELDS]
    arguments = [argument for name in names for argument in ("-e", name)]
    options = ("-o", "tcp.desegment_tcp_streams:TRUE", "-d", "tcp.port==2103,dcerpc", "-Y", "dcerpc")
    lines = tshark(path, *options, "-T", "fields", *arguments).splitlines()
    rows = [dict(zip(names, line.split("\t"), strict=True)) for line in lines]
    return path, rows


@pytest.mark.parametrize("name", TALKS)
def test_the_same_pdus_calls_and_fragments(seen, name):
    path, rows = seen
    items = [item for item in dissect(io.BytesIO(path.read_bytes())) if _is_of(item, TALKS[name])]
    assert not [item for item in items if item.kind in ("Malformed", "Skipped")]
    client = TALKS[name].frames[0].segment.src[1]
    ours, opnums = Counter(), []
    for item in items:
        for frame in PduFramer().feed(item.raw):
            head = frame.header
            numbers = head.PTYPE, head.call_id, head.frag_length, int(head.pfc_flags), head.auth_length
            ours[(item.src_port, *numbers)] += 1
            if head.PTYPE == PduType.REQUEST:
                opnums.append(parse_pdu(frame.data).record.opnum)
    stream = str(items[0].stream)
    mine = [row for row in rows if row["tcp.stream"] == stream]
    theirs = Counter(pdu for row in mine for pdu in _pdus(row))
    assert theirs == ours
    assert not any(row["_ws.malformed"] for row in mine)
    of_requests = [row for row in mine if row["tcp.srcport"] == str(client) and row["dcerpc.opnum"]]
    assert [int(number) for row in of_requests for number in row["dcerpc.opnum"].split(",")] == opnums


def _pdus(row: dict[str, str]) -> list[tuple[int, ...]]:
    """The PDUs of a row of tshark: port, type, call, length, flags and length of the verifier of each."""
    port, *columns = (row[name].split(",") for name in FIELDS)
    return [(int(port[0]), *(int(text, 0) for text in pdu)) for pdu in zip(*columns, strict=True)]


def _is_of(item, talk: r.Talk) -> bool:
    return talk.frames[0].segment.src[1] in (item.src_port, item.dst_port)
