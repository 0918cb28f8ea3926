"""Message security in any capture: every reader gives the same rows, and no packet disturbs the next one."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import msmqwire
from msmqwire.analysis.dissection.message_security import Examiner, SignatureStatus
from msmqwire.capture import IpDecoder, open_records
from msmqwire.schema.layout import layout
from msmqwire.tables import arrow_schema, read_packets, record_batches
from msmqwire.tables.arrow.rows import batches
from msmqwire.tables.columns import UNJUDGED
from msmqwire.tables.scanning import row_buffer
from spark_udfs.reassembly.packets import packet_batches
from tests.support.capture.protected_captures import ALICE, QM_KEY, capture_of, packets, secured
from tests.support.message_keys import elliptic_certificate, with_signature

SEGMENT = {
    **dict.fromkeys(("flow", "file_index", "offset", "time_ns", "src_port", "dst_port"), pa.int64()),
    **dict.fromkeys(("missing", "seq", "ack", "flags"), pa.int64()),
    **dict.fromkeys(("file", "transport", "src", "dst"), pa.string()),
    "payload": pa.binary(),
}
MESSAGES = [
    *packets().values(),
    *(
        secured(packets()[label], SenderCert=certificate)
        for label in ("signed by alice", "MSMQ 3.0 for two queues", "signed, AES-128")
        for certificate in (b"", elliptic_certificate())
    ),
    *(
        secured(packets()[label], Signature=b"\1" * size)
        for label in ("signed by alice", "signed, AES-128")
        for size in (1, 3, 130, 256)
    ),
    with_signature(packets()["MSMQ 3.0 for two queues"], b"\1" * 7, 0x8004, multiple=True),
    with_signature(packets()["signed by alice"], b"\1" * 255, 0x8005),
]
WHOLE = [packet.to_bytes() for packet in MESSAGES]
PLACES = [
    [
        (field.offset, field.size)
        for field in layout(packet)
        if field.size and field.path.startswith(("Security", "MessageProperties", "MultiQueue"))
    ]
    for packet in MESSAGES
]
NAMES = ["signature_status", "decrypted", "body", "body_size", "label", "kind", "error"]
SIGNED = packets()["signed by alice"].to_bytes()


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A message, signed or encrypted or neither, with some bits of its security or its body flipped."""
    number = draw(st.integers(0, len(WHOLE) - 1))
    data = bytearray(WHOLE[number])
    for _ in range(draw(st.sampled_from([0, 1, 1, 3]))):
        offset, size = draw(st.sampled_from(PLACES[number]))
        data[offset + draw(st.integers(0, size - 1))] ^= 1 << draw(st.integers(0, 7))
    return bytes(data)


def rows_of(table: Any) -> list[dict[str, Any]]:
    return table.select(NAMES).to_pylist()  # type: ignore[no-any-return]


def shuffled(data: Any, files: dict[str, list[bytes]]) -> list[dict[str, Any]]:
    """The rows of `spark_udfs.packets`, without Spark."""
    decoder = IpDecoder()
    rows = [
        {"flow": 1, "file_index": 0, "offset": segment.frames[-1], **segment._asdict()}
        for record in open_records(data)
        for segment in decoder.feed(record)
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=pa.schema(SEGMENT))
    return rows_of(pa.Table.from_batches(packet_batches([batch], columns=NAMES, **files)))


@given(
    st.lists(damaged(), min_size=1, max_size=6),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1460, 300]),
    st.sampled_from([{"CHUNK": row_buffer.CHUNK}, {"CHUNK": 900, "ARENA": 300, "ROWS": 2}]),
)
@settings(max_examples=max(12, settings.default.max_examples // 5))
def test_every_reader_gives_the_same_rows(
    data: list[bytes], keys: bool, certificates: bool, mss: int, sizes: dict[str, int]
) -> None:
    files = {
        "keys": [QM_KEY.read_bytes()] if keys else [],
        "certificates": [ALICE.read_bytes()] if certificates else [],
    }
    items = list(msmqwire.dissect(capture_of(*data, mss=mss), lint=False, **files))
    expected = pa.Table.from_batches(batches(items, UNJUDGED, batch_rows=4), arrow_schema(UNJUDGED))
    with mock.patch.multiple(row_buffer, **sizes):
        dissection = msmqwire.dissect(capture_of(*data, mss=mss), lint=False, **files)
        actual = pa.Table.from_batches(record_batches(dissection, columns=NAMES, batch_rows=3))
    assert rows_of(actual) == rows_of(expected)
    assert shuffled(capture_of(*data, mss=mss), files) == rows_of(expected)
    whole = [item.raw for item in items if item.raw]
    structs = read_packets(pa.array(whole), columns=NAMES, examiner=Examiner.from_files(**files))
    found = pa.Table.from_batches([pa.RecordBatch.from_struct_array(part) for part in structs.chunks])
    assert rows_of(found) == [row for row, item in zip(rows_of(expected), items, strict=True) if item.raw]


@given(damaged())
def test_no_packet_disturbs_the_next_one(data: bytes) -> None:
    items = list(msmqwire.dissect(capture_of(data, SIGNED), keys=QM_KEY, certificates=ALICE))
    assert items[-1].raw == SIGNED
    assert items[-1].signature_status is SignatureStatus.VALID
