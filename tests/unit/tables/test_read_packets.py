"""Packets in Arrow arrays of every form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from msmqwire.tables import PACKET_COLUMNS, packet_array, read_packets
from msmqwire.tables.arrow import batch
from tests.support import handmade as h

MESSAGE = h.user_message(properties=h.properties_header(label="label", body=b"body"))
SOAP = h.user_message(soap=h.soap_header(), properties=h.properties_header(body=b"soap"))
SMALL = ["kind", "size", "label", "body", "error_offset"]


def rows(raw: Any, **options: Any) -> list[Any]:
    array = read_packets(raw, columns=SMALL, **options)
    array.validate(full=True)
    return [row and tuple(row.values()) for row in array.to_pylist()]


MESSAGE_ROW = ("UserMessage", len(MESSAGE), "label", b"body", None)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.null(), pa.binary(24)])
def test_empty_and_null(kind: Any) -> None:
    assert rows(pa.array([], kind)) == []
    assert rows(pa.array([None, None], kind)) == [None, None]
    assert rows(pa.chunked_array([], kind)) == []
    assert read_packets(pa.array([], kind)).type == read_packets(pa.array([MESSAGE])).type


def test_values_of_no_bytes() -> None:
    malformed = ("Malformed", 0, None, None, 0)
    assert rows(pa.array([b"", b""])) == [malformed] * 2
    assert rows(pa.array([b"", MESSAGE, b"", None])) == [malformed, MESSAGE_ROW, malformed, None]


def test_values_of_one_size() -> None:
    assert rows(pa.array([MESSAGE, None], pa.binary(len(MESSAGE)))) == [MESSAGE_ROW, None]


def test_more_values_than_are_judged_together() -> None:
    raw = pa.array([MESSAGE, None, SOAP, h.ping(), MESSAGE[:30], h.remote_read_message()] * 4000)
    protocols = pa.array([None, None, None, "ping", None, "remote_read"] * 4000)
    expected = rows(raw[:6], protocols=protocols[:6])
    assert [row and row[0] for row in expected] == [
        "UserMessage", None, "UserMessage", "Ping", "Malformed", "RemoteReadMessage",
    ]  # fmt: skip
    assert rows(raw, protocols=protocols) == expected * 4000
    assert rows(raw[5:-7], protocols=protocols[5:-7]) == (expected * 4000)[5:-7]


def test_more_bytes_than_one_array_is_made_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (packet_array, batch):
        monkeypatch.setattr(module, "BATCH_BYTES_MAX", 4 * len(MESSAGE))
    raw = pa.array([None, MESSAGE, b"", MESSAGE] * 50)
    assert read_packets(raw, columns=SMALL).num_chunks > 1
    assert rows(raw) == rows(raw[:4]) * 50


def test_values_beyond_2_gib() -> None:
    far = (1 << 31) + 5
    data = np.zeros(far + 2 * len(MESSAGE), np.uint8)  # pages that are never written take no memory
    data[far:] = np.frombuffer(2 * MESSAGE, np.uint8)
    offsets = np.array([far, far + len(MESSAGE), far + 2 * len(MESSAGE)])
    raw = pa.Array.from_buffers(
        pa.large_binary(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )  # fmt: skip
    assert rows(raw) == [MESSAGE_ROW, MESSAGE_ROW]


def test_bytes_are_not_copied() -> None:
    buffer = pa.py_buffer(bytearray(MESSAGE))
    memory = packet_array._memory(buffer)
    assert memory.ctypes.data == buffer.address
    assert memory.tobytes() == MESSAGE


def test_wrong_columns_and_protocols_are_refused() -> None:
    raw = pa.array([MESSAGE])
    for names in (["src"], ["raw"], ["nothing"], []):
        with pytest.raises(ValueError, match="column"):
            read_packets(raw, columns=names)
    with pytest.raises(ValueError, match=r"2 protocols for 1 value$"):
        read_packets(raw, protocols=pa.array(["ping", "ping"]))
    assert read_packets(raw).type.names == [column.name for column in PACKET_COLUMNS]


def test_large_packets_are_given_in_several_arrays() -> None:
    large = h.user_message(properties=h.properties_header(body=bytes(3 << 20)))
    array = read_packets(pa.array([large, None] * 30), columns=["kind", "body"])
    assert array.num_chunks > 1
    assert array.to_pylist() == [{"kind": "UserMessage", "body": bytes(3 << 20)}, None] * 30
