"""Items, packets and messages one below the other: `msmqwire.table`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import msmqwire
from msmqwire.names.printable import cut
from msmqwire.schema.display.view import TEXT_MAX
from tests.support.paths import EXAMPLES
from tests.unit.analysis.test_display import ALLOWED, EVIL, Markup, all_items, evil_packet, in_rich

SESSION = EXAMPLES / "session.pcap"


def test_a_row_for_each_item() -> None:
    items = list(msmqwire.dissect(SESSION))
    table = msmqwire.table(items)
    assert table.columns == ("index", "time", "frame", "from", "to", "kind", "bytes", "findings", "about")
    assert len(table.rows) == len(items) == 8
    assert table.rows[6] == (
        "6", "2026-03-01T12:00:00.002619000Z", "15", "10.0.0.1:49759", "10.0.0.2:1801", "UserMessage",
        "2,224", "1", r'DIRECT=OS:a04bm02\q "mqsender label" 2,000 bytes',
    )  # fmt: skip
    assert table.marked == {number for number, item in enumerate(items) if item.findings} == {3, 6}
    assert (repr(table), table.remark) == ("<Table of 8 items>", "")
    assert msmqwire.table(msmqwire.dissect(SESSION)) == table


def test_a_row_for_each_packet() -> None:
    packets: list[Any] = [item.packet for item in msmqwire.dissect(SESSION)]
    table = msmqwire.table([*packets[5:7], packets[6].UserHeader])
    assert table.columns == ("index", "kind", "bytes", "about")
    assert [row[:3] for row in table.rows] == [
        ("0", "ConnectionParameters", "32"), ("1", "UserMessage", "2,224"), ("2", "UserHeader", "76"),
    ]  # fmt: skip
    assert table.rows[1][3] == r'DIRECT=OS:a04bm02\q "mqsender label" 2,000 bytes'
    assert table.rows[2][3] == cut(repr(packets[6].UserHeader), TEXT_MAX)


def test_packets_of_all_protocols_have_rows() -> None:
    packets = [item.packet for item in all_items() if item.packet is not None]
    rows = msmqwire.table(packets, limit=10_000).rows
    assert len(rows) == len(packets)
    assert {row[1] for row in rows} >= {
        "UserMessage",
        "SrmpMessage",
        "PgmPacket",
        "Ping",
        "R_OpenQueue request",
    }
    assert all(row[1] for row in rows)


def test_a_packet_by_hand_is_shown_as_building_completes_it() -> None:
    packet = evil_packet()
    packet.MessagePropertiesHeader.Label = "by hand"
    packet = packet.recomputed()
    del packet.MessagePropertiesHeader.MessageSize
    (row,) = msmqwire.table([packet]).rows
    assert row[2] == f"{len(packet.to_bytes()):,}"
    assert '"by hand" 100,000 bytes' in row[3]
    packet.UserHeader.MessageID = 1 << 40
    (row,) = msmqwire.table([packet]).rows
    assert row[2] == ""
    assert row[3].startswith("No bytes: ")
    assert "MessageID" in row[3]


def test_a_row_for_each_received_message(tmp_path: Path) -> None:
    with msmqwire.attach(tmp_path / "qm", create=True) as manager:
        queue = manager.create_queue(r"private$\orders")
        queue.send(f"body {EVIL}", label=f"label {EVIL}", recoverable=True)
        queue.send(b"\x00\xff", label="bytes", recoverable=True)
        messages = [queue.receive(timeout=5) for _ in range(2)]
    table = msmqwire.table(messages)
    assert table.columns == ("index", "sent", "class", "label", "bytes", "body", "identifier")
    assert [row[4] for row in table.rows] == [f"{len(message.body):,}" for message in messages]
    assert table.rows[0][5].startswith("body \\x1b]0;x\\x07\\u202e</td><script>")
    assert table.rows[1][5] == ""
    assert [row[6] for row in table.rows] == [message.identifier for message in messages]
    assert table.title == "2 messages"


def test_no_more_rows_than_the_limit_and_the_others_are_counted() -> None:
    items = msmqwire.dissect(SESSION)
    table = msmqwire.table(items, limit=5)
    assert next(items, None) is None
    assert ([row[0] for row in table.rows], table.left_out, table.title) == (list("01234"), 3, "8 items")
    for shown in (table._repr_html_(), in_rich(table)):
        assert "3 more items not shown; a larger limit shows more." in shown
    none = msmqwire.table(msmqwire.dissect(SESSION), limit=0)
    assert (none.rows, none.marked, none.left_out) == ((), frozenset(), 8)
    assert "<table>" not in none._repr_html_()
    assert in_rich(msmqwire.table([])).strip() == "0 rows"


def test_not_a_table() -> None:
    items = list(msmqwire.dissect(SESSION))
    with pytest.raises(ValueError, match="a limit is not negative"):
        msmqwire.table(items, limit=-1)
    with pytest.raises(TypeError, match="a table has items, packets or messages, not str"):
        msmqwire.table("session.pcap")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a table has items or packets, not both: number 1 is one"):
        msmqwire.table([items[0], items[0].packet])  # type: ignore[arg-type]


def test_rows_with_findings_are_marked() -> None:
    table = msmqwire.table(msmqwire.dissect(SESSION))
    text = table._repr_html_()
    markup = Markup(text)
    assert set(markup.elements) <= ALLOWED
    assert markup.attributes <= {"class"}
    assert text.count('<tr class="found">') == 2
    row = markup.cells.index("UserMessage")
    assert markup.cells[row - 2 : row + 3] == ["10.0.0.1:49759", "10.0.0.2:1801", "UserMessage", "2,224", "1"]
    assert "DIRECT=OS:a04bm02\\q" in in_rich(table)


def test_no_character_of_a_peer_is_markup_or_acts_on_a_terminal() -> None:
    table = msmqwire.table([evil_packet()])
    text = table._repr_html_()
    assert set(Markup(text).elements) <= ALLOWED
    for shown in (text, in_rich(table)):
        assert all(char.isprintable() or char == "\n" for char in shown)
    assert "[red]" in in_rich(table, 400)
    assert len(msmqwire.table(all_items(), limit=10_000)._repr_html_()) < 2_000_000
