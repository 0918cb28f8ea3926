"""Captures as Arrow tables: one row per item, with the columns of contract section 3."""

from __future__ import annotations

import gc
import io
import uuid
import warnings
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pytest
from pyarrow import compute, csv, ipc, parquet

import msmqwire
from msmqwire.cli.captures.dissect import command
from msmqwire.headers import SECURITY_HEADER
from msmqwire.headers.queue_names import response_queue
from msmqwire.schema import SCHEMAS, Flags, Header, Maybe, Sub
from msmqwire.tables import COLUMNS, CaptureWarning, arrow_schema
from msmqwire.tables.arrow import batch, variable_width
from msmqwire.tables.arrow.values import sender_id
from msmqwire.tables.columns import USUAL
from msmqwire.tables.scanning.flow_events import FlowTable
from msmqwire.tables.scanning.fragment_table import FragmentTable
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture_files import pcap_bytes
from tests.support.paths import EXAMPLES

SESSION, HOSTILE = EXAMPLES / "session.pcap", EXAMPLES / "hostile.pcapng"


def rows(table: pa.Table) -> list[dict[str, Any]]:
    if "time" in table.column_names:
        table = table.set_column(0, "time", compute.cast(table.column("time"), pa.int64()))
    return table.to_pylist()  # type: ignore[no-any-return]


def test_rows_are_the_items_of_a_dissection() -> None:
    items = list(msmqwire.dissect(HOSTILE, lint=False))
    table = rows(msmqwire.read_capture(HOSTILE, columns=[c.name for c in COLUMNS if c.group == "where"]))
    assert len(table) == len(items) > 40
    for row, item in zip(table, items, strict=True):
        assert (row["time"], row["kind"], row["size"], row["stream"]) == (
            item.time_ns,
            item.kind,
            item.size,
            item.stream,
        )
        assert (row["src"], row["src_port"], row["dst"], row["dst_port"]) == (
            item.src,
            item.src_port,
            item.dst,
            item.dst_port,
        )
        assert (row["raw"] or b"") == item.raw
        error = (item.error.why, item.error.path, item.error.offset) if item.error else None
        assert (row["error"], row["error_path"], row["error_offset"]) == (
            error or (item.reason or None, None, None)
        )


def test_the_captured_message() -> None:
    [row] = rows(msmqwire.read_capture(SESSION, where=[("kind", "==", "UserMessage")]))
    assert {k: v for k, v in row.items() if v is not None and k not in ("time", "file", "body")} == {
        "frame": 15,
        "transport": "tcp",
        "stream": 0,
        "src": "10.0.0.1",
        "src_port": 49759,
        "dst": "10.0.0.2",
        "dst_port": 1801,
        "kind": "UserMessage",
        "size": 2224,
        "priority": 3,
        "internal": False,
        "session_header": False,
        "debug_header": False,
        "trace": False,
        "time_to_reach_queue": 345600,
        "source_qm": "557358d1-9150-9595-4997-b6e611ea26c6",
        "destination_qm": "00000000-0000-0000-0000-000000000000",
        "time_to_be_received": 0xFFFFFFFF,
        "sent_time": row["sent_time"],
        "message_id": 2286,
        "hop_count": 0,
        "recoverable": False,
        "journal_negative": False,
        "journal_positive": False,
        "destination": "DIRECT=OS:a04bm02\\q",
        "sender_id_type": 1,
        "sender_id": "S-1-5-21-3181267629-1039849782-3663111779-1000",
        "encrypted": False,
        "signed": False,
        "signature_status": "none",
        "decrypted": False,
        "ack_flags": 15,
        "label": "mqsender label",
        "message_class": 0,
        "class_name": "NORMAL",
        "correlation_id": bytes(20),
        "body_type": 8,
        "app_tag": 0,
        "body_size": 2000,
        "privacy_level": 0,
        "hash_algorithm": 0x8004,
        "encryption_algorithm": 0x6801,
        "extension": b"",
    }
    assert row["body"] == "a".encode("utf-16-le") * 1000
    assert row["sent_time"].timestamp() == 0x524F494C  # as the frame is printed


@pytest.mark.parametrize(
    "kind, expected",
    [
        ("Ping", {"ping_cookie": 4, "ping_refused": False}),
        ("SessionAck", {"ack_sequence": 1, "window_size": 64, "refused": False, "internal": True}),
        (
            "ConnectionParameters",
            {"recoverable_ack_timeout_ms": 1496, "ack_timeout_ms": 120_000, "window_size": 64},
        ),
        ("EstablishConnection", {"timestamp_ms": 501140046, "os_flags": 0x310, "refused": False}),
    ],
)
def test_other_kinds(kind: str, expected: dict[str, Any]) -> None:
    table = rows(msmqwire.read_capture(SESSION, where=[("kind", "==", kind)], columns=[*expected, "label"]))
    assert all(row == {**expected, "label": None} for row in table)
    assert table


def test_conditions_on_times_endpoints_and_fields() -> None:
    def frames(*where: tuple[str, str, Any]) -> list[int]:
        return msmqwire.read_capture(SESSION, columns=["frame"], where=where)["frame"].to_pylist()  # type: ignore[no-any-return]

    assert frames(("time", ">=", "2026-03-01T12:00:00.002")) == [12, 15, 17]
    times = msmqwire.read_capture(SESSION, columns=["time"], where=[("frame", "in", [12, 17])])["time"]
    first, last = times.cast(pa.timestamp("us", times.type.tz)).to_pylist()
    assert frames(("time", "in", [first, last.isoformat()])) == [12, 17]
    assert frames(("src", "==", "10.0.0.2"), ("transport", "==", "tcp")) == [8, 12, 17]
    assert frames(("label", "==", "mqsender label")) == [15]
    assert frames(("window_size", "in", [64]), ("src_port", "!=", 1801)) == [10]
    assert frames(("window_size", ">", 0), ("window_size", "<", 65), ("src_port", "!=", 1801)) == [10]
    with pytest.raises(ValueError, match="'lable' is not a column; did you mean label"):
        frames(("lable", "==", "x"))
    with pytest.raises(ValueError, match="not an operator of a condition: there are =="):
        frames(("label", "~", "x"))


def test_each_form_of_response_queue_at_each_admin_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Compiled code alone reads all of them, also where no queue can be named."""
    source, target, other = (str(uuid.UUID(int=number)) for number in (0xA1, 0xB2, 0xC3))
    admins = {
        0: (b"", None, None),
        2: (h.private_id(6), f"PRIVATE={source}\\00000006", source),
        3: (h.private_id(6), f"PRIVATE={target}\\00000006", target),
        5: (h.guid(other), f"PUBLIC={other}", None),
        6: (h.private_name(h.guid(other), 6), f"PRIVATE={other}\\00000006", other),
        7: (h.direct_name("OS:far\\q"), "DIRECT=OS:far\\q", None),
    }
    conversation, expected = c.TcpConversation().handshake(), []
    for admin, (field, name, host) in admins.items():
        at_admin = None if host is None else f"PRIVATE={host}\\00000007"
        for response, data, shown in (
            (0, b"", None),
            (1, b"", name),
            (2, h.private_id(7), f"PRIVATE={source}\\00000007"),
            (3, h.private_id(7), f"PRIVATE={target}\\00000007"),
            (4, h.private_id(7), at_admin),
            (5, h.guid(other), f"PUBLIC={other}"),
            (6, h.private_name(h.guid(other), 7), f"PRIVATE={other}\\00000007"),
            (7, h.direct_name("OS:far\\answers"), "DIRECT=OS:far\\answers"),
        ):
            user = h.user_header(
                source=h.guid(source), address=h.guid(target), admin=(admin, field), response=(response, data)
            )
            conversation.send(h.user_message(user=user))
            expected.append((name, shown))
    monkeypatch.setattr(variable_width, "value_of_packet", None)
    table = msmqwire.read_capture(io.BytesIO(pcap_bytes(conversation.frames)))
    assert len(expected) == 48
    assert table["kind"].to_pylist() == ["UserMessage"] * 48
    columns = table["admin_queue"].to_pylist(), table["response_queue"].to_pylist()
    assert list(zip(*columns, strict=True)) == expected
    items = msmqwire.dissect(io.BytesIO(pcap_bytes(conversation.frames)), lint=False)
    assert [response_queue(item.packet.UserHeader) for item in items] == [shown for _, shown in expected]


def test_a_reader_gives_batches_and_a_broken_file_warns(tmp_path: Path) -> None:
    broken = tmp_path / "broken.pcap"
    broken.write_bytes(SESSION.read_bytes()[:4000])
    reader = msmqwire.read_capture(broken, batch_rows=2, columns=["kind"])
    with pytest.warns(CaptureWarning, match="broken.pcap"):
        sizes = [batch.num_rows for batch in reader]
    assert sizes == [2, 2, 2, 1]  # the truncated message is a row too
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert msmqwire.read_capture(io.BytesIO(SESSION.read_bytes()), columns=["kind"]).num_rows == 8


def test_bodies_are_cut_at_the_limit() -> None:
    table = msmqwire.read_capture(SESSION, body_limit=4, columns=["body", "body_size"])
    assert [v for v in table["body"].to_pylist() if v is not None] == [b"a\0a\0"]
    assert 2000 in table["body_size"].to_pylist()


def test_every_column_shows_a_field_that_exists() -> None:
    for column in COLUMNS:
        for path in column.paths:
            header, *rest = path.split(".")
            schema: Header = SCHEMAS["Ping"] if column.group == "ping" else SCHEMAS[header]
            for name in [header, *rest] if column.group == "ping" else rest:
                part = schema.part(name)
                if isinstance(part, Flags):
                    bits = rest[-1]
                    assert bits == name or bits in {p.name for p in part.parts}, path
                    break
                inner = part.node if isinstance(part, Maybe) else part
                schema = inner.header if isinstance(inner, Sub) else schema


@pytest.mark.parametrize(
    "flags, data, shown",
    [
        (1, "0101000000000005 12000000", "S-1-5-18"),
        (2, "d158735550919595 4997b6e611ea26c6", "557358d1-9150-9595-4997-b6e611ea26c6"),
        (1, "0102", "0102"),
        (3, "00", "00"),
    ],
)
def test_sender_identifiers(flags: int, data: str, shown: str) -> None:
    header = SECURITY_HEADER.make(
        {"Flags": {"ST": flags}, "SecurityData": {"SecurityID": bytes.fromhex(data)}}
    )
    assert sender_id(header) == shown


def test_files_for_other_programs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def run(**options: Any) -> None:
        with pytest.raises(click.exceptions.Exit) as caught:
            command([str(SESSION)], **options)
        assert caught.value.exit_code == 0

    run(parquet=str(tmp_path / "out"), body_limit=2)
    table = parquet.read_table(tmp_path / "out" / "packets.parquet")
    assert table.schema.names == [c.name for c in USUAL]
    run(arrow=str(tmp_path / "out.arrow"), columns="kind,body", workers=2)
    assert ipc.open_file(tmp_path / "out.arrow").read_all()["kind"].to_pylist() == table["kind"].to_pylist()
    capfd.readouterr()
    run(as_csv=True, columns="kind,label,correlation_id")
    printed = csv.read_csv(io.BytesIO(capfd.readouterr().out.encode()))
    assert printed["kind"].to_pylist() == table["kind"].to_pylist()
    assert printed.column("label")[6].as_py() == "mqsender label"


def test_the_arrow_schema_says_what_columns_mean() -> None:
    schema = arrow_schema()
    assert all(schema.field(c.name).metadata[b"comment"].decode() == c.meaning for c in COLUMNS)
    assert len(set(schema.names)) == len(schema.names)


@pytest.mark.parametrize("size", [65_535, 65_536, 66_000, 3 << 20])
def test_bodies_of_any_size(size: int, tmp_path: Path) -> None:
    body = bytes(range(256)) * (size // 256 + 1)
    talk = c.TcpConversation().handshake()
    for count in (size, 5, size):
        talk.send(h.user_message(properties=h.properties_header(body=body[:count])))
    file = tmp_path / "large.pcap"
    file.write_bytes(c.pcap_bytes(talk.close().frames))
    table = msmqwire.read_capture(file, columns=["body_size", "body"])
    assert table["body_size"].to_pylist() == [size, 5, size]
    assert table["body"].to_pylist() == [body[:size], body[:5], body[:size]]


@pytest.mark.parametrize("where", [(), [("src", "!=", "10.0.0.0")], [("src", "==", "10.0.0.199")]])
def test_more_addresses_than_are_remembered(where: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "ADDRESSES_MAX", 64)
    ping = bytes.fromhex("00004855") + bytes(20)
    frames = []
    for number in range(200):
        packet = bytearray(c.udp_packet(ping, src_port=3527))
        packet[12:20] = bytes([10, 0, 0, number, 11, 0, 0, number])
        frames.append(c.Frame(c.START_NS + number, c.ethernet(bytes(packet))))
    table = msmqwire.read_capture(io.BytesIO(c.pcap_bytes(frames)), columns=["src", "dst"], where=where)
    expected = [(f"10.0.0.{number}", f"11.0.0.{number}") for number in range(200)]
    if where:
        expected = expected[1:] if where[0][1] == "!=" else expected[199:]
    assert [(row["src"], row["dst"]) for row in table.to_pylist()] == expected


def test_a_gap_that_is_open_when_the_next_file_begins(tmp_path: Path) -> None:
    earlier = c.TcpConversation().handshake()  # the first frame of a capture goes to the generic reader
    talk = c.TcpConversation(client=("10.0.0.7", 50_001), start_ns=earlier.time_ns).handshake()
    for tag in range(3):
        talk.send(h.session_ack(h.session_header(window=tag + 1)), acknowledged=False)
    opening, packets = talk.frames[:3], talk.frames[3:]
    first, second = tmp_path / "1.pcap", tmp_path / "2.pcap"
    first.write_bytes(c.pcap_bytes([*earlier.frames, *opening, packets[1]]))  # the next file fills the gap
    second.write_bytes(c.pcap_bytes([packets[0], packets[2]]))
    columns = ["file", "frame", "stream", "window_size"]
    table = msmqwire.read_capture([first, second], columns=columns).to_pylist()
    items = list(msmqwire.dissect([first, second], lint=False))
    assert [row["window_size"] for row in table] == [1, 2, 3]
    assert [(row["file"], row["frame"], row["stream"]) for row in table] == [
        (item.file, item.frames[-1], item.stream) for item in items
    ]


@pytest.mark.parametrize("name", ["session.pcap", "hostile.pcapng"])
def test_the_memory_of_a_capture_is_free_after_the_last_batch(name: str) -> None:
    gc.collect()
    gc.disable()
    try:
        assert msmqwire.read_capture(EXAMPLES / name).num_rows
        large = (batch.BatchMaker, FlowTable, FragmentTable)
        assert [thing for thing in gc.get_objects() if isinstance(thing, large)] == []
    finally:
        gc.enable()


def test_a_packet_completed_by_the_next_file_is_in_its_own_rows(tmp_path: Path) -> None:
    """The bytes before it in the stream are in the next file, which once had its row, without a frame."""
    talk = c.TcpConversation().handshake().send(h.session_ack()).send(h.session_ack())
    syn, syn_ack, ack, data, data_ack, later, later_ack = talk.frames
    for name, frames in (("1", [syn, syn_ack, data_ack, later, later_ack]), ("2", [ack, data])):
        (tmp_path / f"{name}.pcap").write_bytes(pcap_bytes(frames))
    files = [str(tmp_path / "1.pcap"), str(tmp_path / "2.pcap")]
    table = msmqwire.read_capture(files, columns=["file", "frame", "kind"])
    found = [(item.file, item.frames[-1], item.kind) for item in msmqwire.dissect(files)]
    assert [tuple(row.values()) for row in table.to_pylist()] == found
    assert found == [(files[1], 2, "SessionAck"), (files[0], 4, "SessionAck")]
