"""Packets in Arrow arrays: every column equals that of reading value by value, whatever the bytes."""

from __future__ import annotations

from typing import Any, cast, get_args

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import given

from fuzz.whole_packets import packet_bytes
from msmqwire.analysis.dissection import Item
from msmqwire.cli.parse import AUTO, protocol_of
from msmqwire.errors import MalformedPacket
from msmqwire.packets import Protocol, parse
from msmqwire.tables import PACKET_COLUMNS, Column, arrow_schema, read_packets
from msmqwire.tables.arrow.rows import value_of
from spark_udfs import functions as f
from tests.support import handmade as h

PACKETS = [
    h.session_ack(),
    h.connection_parameters(),
    h.establish_connection(),
    h.order_ack(),
    h.final_ack(),
    h.user_message(
        session=h.session_header(), properties=h.properties_header(label="Straße 😀", body=b"x" * 90)
    ),
    h.user_message(soap=h.soap_header(), properties=h.properties_header(body=b"soap")),
    h.user_message(transaction=h.transaction_header()),
    h.remote_read_message(),
    h.ping(cookie=9),
    h.ping(cookie=int.from_bytes(b"LIOR", "little")),
]
good = st.one_of(
    st.sampled_from(PACKETS), packet_bytes(), packet_bytes("ping"), packet_bytes("remote_read"),
)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Packets with a few bytes changed, added or missing."""
    packet = bytearray(draw(good))
    for _ in range(draw(st.integers(0, 3))):
        packet[draw(st.integers(0, len(packet) - 1))] = draw(st.sampled_from([0, 1, 0x10, 0x7F, 0xFF]))
    if draw(st.booleans()):
        return bytes(packet[: draw(st.integers(0, len(packet)))])
    return bytes(packet) + draw(st.binary(max_size=3))


values = st.lists(st.one_of(good, good, damaged(), st.binary(max_size=40), st.none()), max_size=8)
protocols = st.sampled_from([*get_args(Protocol), None, None, "smtp"])
types = st.sampled_from([pa.binary(), pa.large_binary()])


@st.composite
def arrays(draw: st.DrawFn) -> Any:
    """Values in the middle of a larger array."""
    before, middle, after = draw(values), draw(values), draw(values)
    return pa.array([*before, *middle, *after], draw(types)).slice(len(before), len(middle))


def one_by_one(raw: Any, named: list[str | None], columns: tuple[Column, ...]) -> list[Any]:
    """The rows by the generic reader."""
    rows = [
        None if data is None else row_of(data, name or protocol_of(data, AUTO), columns)
        for data, name in zip(raw.to_pylist(), named, strict=True)
    ]
    return cast(list[Any], pa.array(rows, pa.struct(list(arrow_schema(columns)))).to_pylist())


def row_of(data: bytes, protocol: str, columns: tuple[Column, ...]) -> dict[str, Any]:
    packet, error = None, None
    try:
        if protocol not in get_args(Protocol):
            raise MalformedPacket(f"{protocol!r} is none of session, ping, remote_read")
        packet = parse(data, protocol=cast(Protocol, protocol))
    except MalformedPacket as exc:
        error = exc
    kind = packet.schema.name if packet is not None else "Malformed"
    item = Item("", 0, (), "tcp", None, "", 0, "", 0, packet, kind, len(data), (), error, data, "")
    return {column.name: value_of(column, item) for column in columns}


@given(arrays(), st.data())
def test_every_column_is_that_of_the_generic_reader(raw: Any, data: st.DataObject) -> None:
    named = data.draw(st.lists(protocols, min_size=len(raw), max_size=len(raw)))
    rows = f.parse_raw(raw, pa.array(named, pa.string()))
    rows.validate(full=True)
    assert rows.type == f.FUNCTIONS["msmq_parse"][1]
    assert rows.to_pylist() == one_by_one(raw, named, f.PARSE_COLUMNS)


@given(arrays())
def test_without_protocols_the_bytes_tell_as_on_the_command_line(raw: Any) -> None:
    expected = one_by_one(raw, [None] * len(raw), f.PARSE_COLUMNS)
    assert f.parse_raw(raw).to_pylist() == expected
    assert f.kind_of_raw(raw).to_pylist() == [row and row["kind"] for row in expected]


@given(arrays())
def test_pings(raw: Any) -> None:
    rows = f.ping_raw(raw)
    rows.validate(full=True)
    assert rows.to_pylist() == one_by_one(raw, ["ping"] * len(raw), f.PING_COLUMNS)


@given(arrays(), st.data())
def test_chunks_and_some_columns(raw: Any, data: st.DataObject) -> None:
    at = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=3)))
    chunks = [raw[i:j] for i, j in zip([0, *at], [*at, len(raw)], strict=True)]
    named = data.draw(st.lists(protocols, min_size=len(raw), max_size=len(raw)))
    columns = data.draw(st.lists(st.sampled_from(PACKET_COLUMNS), min_size=1, unique=True))
    rows = read_packets(
        pa.chunked_array(chunks, raw.type),
        columns=[column.name for column in columns],
        protocols=pa.array(named, pa.string()),
    )
    assert rows.to_pylist() == one_by_one(raw, named, tuple(columns))
