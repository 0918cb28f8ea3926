"""The cells of packets: what a kind of packet can't have is found out once, and never looked for."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

import msmqwire
from msmqwire.analysis.dissection import Item
from msmqwire.ncp.attributes import attributes as ncp_attributes
from msmqwire.ncp.ncp_packet import NcpPacket
from msmqwire.remote_read.attributes import attributes as call_attributes
from msmqwire.srmp.attributes import attributes as srmp_attributes
from msmqwire.srmp.message import SrmpMessage
from msmqwire.tables import COLUMNS
from msmqwire.tables.arrow import rows
from msmqwire.tables.arrow.rows import PacketCells, value_of_packet
from msmqwire.tables.columns import BY_NAME
from tests.support import captures as c
from tests.support.capture import srmp_captures as s
from tests.support.paths import EXAMPLES

CAPTURES = [
    *sorted(EXAMPLES.glob("*.pcap*")),
    *(io.BytesIO(c.pcap_bytes(frames)) for frames in s.samples().values()),
]
ITEMS = [item for capture in CAPTURES for item in msmqwire.dissect(capture, lint=False) if item.packet]
CALLED = ["call", "ncp_connection", "ncp_sequence"]
ANSWERED = [*CALLED, "completion_code", "completion"]


def of_kind(kind: str) -> Item:
    return next(item for item in ITEMS if item.kind == kind)


def test_impossible_columns_are_examined_once_for_a_kind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cells = PacketCells(COLUMNS)
    expected = [dict(cells.of(item.packet)) for item in ITEMS]
    assert len({item.kind for item in ITEMS}) > 20
    monkeypatch.setattr(rows, "_getter", None)
    assert [dict(cells.of(item.packet)) for item in ITEMS] == expected


def test_cells_are_the_values_of_the_columns_asked_for() -> None:
    some = [
        BY_NAME[name] for name in ("frame", "label", "body", "call_status", "http_status", "queue_id", "kind")
    ]
    cells = PacketCells(some, body_limit=3)
    found = [dict(cells.of(item.packet)) for item in ITEMS]
    assert found == [
        {of.name: value for of in some if (value := value_of_packet(of, item.packet, 3)) is not None}
        for item in ITEMS
    ]
    assert {name for row in found for name in row} == {of.name for of in some} - {"frame", "kind"}
    assert max(len(row.get("body", b"")) for row in found) == 3
    assert dict(cells.of(None)) == {}


def test_a_response_of_http_can_have_its_status_alone() -> None:
    messages = [item.packet for item in ITEMS if isinstance(item.packet, SrmpMessage)]
    can_have = {frozenset(srmp_attributes(message)) for message in messages}
    assert frozenset({"http_status"}) in can_have
    (of_requests,) = can_have - {frozenset({"http_status"})}
    assert {"label", "body", "srmp_id"} < of_requests
    assert "http_status" not in of_requests


def test_an_ncp_packet_has_columns_of_its_data_or_request() -> None:
    request, reply = (of_kind(f"ReadQueueJobEntry {way}").packet for way in ("request", "reply"))
    assert isinstance(request, NcpPacket)
    assert isinstance(reply, NcpPacket)
    assert [*ncp_attributes(request)] == [*CALLED, "queue_id", "job_number"]
    assert {*ANSWERED, "queue_id", "job_number", "job_description"} < ncp_attributes(reply).keys()
    assert "object_name" not in ncp_attributes(reply)
    create = of_kind("CreateQueueJobAndFile request").packet
    assert isinstance(create, NcpPacket)
    assert "job_type" in ncp_attributes(create)
    assert "job_number" not in ncp_attributes(create)  # the server fills it


def test_a_call_can_have_what_is_among_its_parameters() -> None:
    opened, received = of_kind("R_OpenQueue request").packet, of_kind("R_StartReceive response").packet
    assert [*call_attributes(opened)] == ["read_queue", "destination"]
    assert [*call_attributes(received)] == [
        "read_queue", "queue_handle", "request_id", "receive_action", "call_status",
    ]  # fmt: skip
    assert call_attributes(received) is call_attributes(replace(received, queue=""))
    assert [*call_attributes(replace(opened, value=None))] == ["read_queue"]
