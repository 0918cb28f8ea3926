"""Packets, items and messages as people see them: `repr`, tables of rich, HTML for notebooks."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from rich.console import Console

import msmqwire
from msmqwire.analysis.lint import Finding
from msmqwire.names.printable import cut
from msmqwire.schema.display import PlacedField, to_html, to_rich, view_of
from msmqwire.schema.display.view import FIELDS_MAX, FOUND_MAX, ROW_SIZE, ROWS_MAX, TEXT_MAX
from tests.support.capture.srmp_captures import samples
from tests.support.captures import pcap_bytes
from tests.support.paths import EXAMPLES

EVIL = "\x1b]0;x\x07\u202e</td><script>alert(1)</script><img src=x onerror=alert(2)>'\"&[red]"
ALLOWED = {"div", "style", "strong", "table", "thead", "tbody", "tr", "th", "td"}


class Markup(HTMLParser):
    """The elements, attributes and text of HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: set[str] = set()
        self.cells: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1] != "style":
            self.cells.append(data)


def all_items() -> Iterator[msmqwire.Item]:
    for path in sorted(EXAMPLES.glob("*.pcap*")):
        yield from msmqwire.dissect(path)
    for frames in samples().values():
        yield from msmqwire.dissect(io.BytesIO(pcap_bytes(frames)))


def evil_packet() -> Any:
    return msmqwire.from_json(
        {
            "packet": "UserMessage",
            "fields": {
                "UserHeader": {"DestinationQueue": {"DirectFormatName": f"OS:{EVIL}"}},
                "MessagePropertiesHeader": {"Label": EVIL, "MessageBody": "00" * 100_000},
            },
        }
    )


def in_rich(shown: Any, width: int = 160) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(shown)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_every_repr_is_one_line_without_bytes() -> None:
    kinds = set()
    for item in all_items():
        kinds.add(type(item.packet).__name__)
        for text in (repr(item), repr(item.packet)):
            assert text.isprintable()
            assert len(text) < 700
            assert not re.search(r"\bb['\"]", text)
            assert "\\x" not in text
    assert kinds >= {"UserMessage", "SrmpMessage", "RpcPacket", "NcpPacket", "PgmPacket", "Ping", "NoneType"}


def test_reprs_say_what_it_is() -> None:
    items = list(msmqwire.dissect(EXAMPLES / "session.pcap"))
    assert repr(items[6]) == (
        "<Item 2026-03-01T12:00:00.002619000Z UserMessage 10.0.0.1:49759 > 10.0.0.2:1801, 2,224 bytes, "
        'DIRECT=OS:a04bm02\\q "mqsender label" 2,000 bytes, 1 finding>'
    )
    assert repr(items[6].packet) == (
        "UserMessage(BaseHeader(...), UserHeader(DirectFormatName='OS:a04bm02\\\\q', ...), "
        "SecurityHeader(...), MessagePropertiesHeader(Label='mqsender label', ...))"
    )
    assert repr(items[4].packet.InternalHeader) == (  # type: ignore[union-attr]
        "InternalHeader(Reserved=0, Flags=<InternalHeader.Flags 0x3 PT=3>)"
    )


def test_a_notebook_shows_bytes_fields_and_findings_of_items() -> None:
    item = list(msmqwire.dissect(EXAMPLES / "session.pcap"))[6]
    markup = Markup(item._repr_html_())
    assert set(markup.elements) <= ALLOWED
    assert markup.attributes <= {"class", "scope"}
    row = markup.cells.index("UserHeader.MessageID")
    assert markup.cells[row - 2 : row + 2] == ["56", "ee 08 00 00", "UserHeader.MessageID", "2286 (0x8ee)"]
    assert "MQMQ-2.2.19.2-26" in markup.cells
    assert item._repr_html_().count('<tr class="found">') == 1
    shown = in_rich(item)
    assert "ee 08 00 00" in shown
    assert "MQMQ-2.2.19.2-26" in shown


def test_every_item_and_packet_can_be_shown() -> None:
    for item in all_items():
        markup = Markup(item._repr_html_())
        assert set(markup.elements) <= ALLOWED
        assert item.kind in in_rich(item)
        if hasattr(item.packet, "_repr_html_"):
            Markup(item.packet._repr_html_())


def test_no_character_of_a_peer_is_markup_or_acts_on_a_terminal() -> None:
    packet = evil_packet()
    text = packet._repr_html_()
    markup = Markup(text)
    assert set(markup.elements) <= ALLOWED
    assert any("</td><script>alert(1)</script>" in cell for cell in markup.cells)
    for shown in (text, in_rich(packet)):
        assert all(char.isprintable() or char == "\n" for char in shown)
    assert "[red]" in in_rich(packet)


def test_an_omitted_field_is_shown_as_building_computes_it() -> None:
    packet = evil_packet()
    del packet.BaseHeader.PacketSize
    markup = Markup(packet._repr_html_())
    row = markup.cells.index("BaseHeader.PacketSize")
    assert markup.cells[row + 1] == f"{len(packet.to_bytes())} ({len(packet.to_bytes()):#x}) bytes"


def test_what_can_not_be_built_is_shown_without_bytes() -> None:
    packet = evil_packet()
    packet.UserHeader.MessageID = 1 << 40
    markup = Markup(packet._repr_html_())
    assert "UserHeader.MessageID" in markup.cells
    assert any(cell.startswith("No bytes: ") and "UserHeader.MessageID" in cell for cell in markup.cells)


def test_a_huge_packet_is_cut_and_says_so() -> None:
    packet = evil_packet()
    packet.MessagePropertiesHeader.Label = "short"
    packet.UserHeader.DestinationQueue.DirectFormatName = "OS:a\\b"
    text = packet.recomputed()._repr_html_()
    assert len(text) < 20_000
    left = 100_000 - ROWS_MAX * ROW_SIZE
    assert f"{left:,} bytes of MessagePropertiesHeader.MessageBody are not shown." in text


def test_many_fields_and_findings_are_cut() -> None:
    fields = (PlacedField(f"Field{number}", number, 1, "x" * 9_000) for number in range(10**9))
    findings = [Finding("MQMQ-1", "MUST", "Field1", 1, EVIL) for _ in range(FOUND_MAX + 7)]
    view = view_of("title", fields=fields, data=bytes(10), findings=findings)
    assert len(view.fields) == len(view.rows) == FIELDS_MAX
    assert len(view.findings) == FOUND_MAX
    assert view.left_out == (
        f"Only the first {FIELDS_MAX} fields are shown, of bytes 0 to {FIELDS_MAX - 1}.",
        "7 more findings are not shown.",
    )
    assert {len(field.text) for field in view.fields} == {TEXT_MAX}
    long = [PlacedField("First", 0, 100, ""), PlacedField("Second", 100, 100, "")]
    assert view_of("", fields=long, data=bytes(200)).left_out == (
        f"Of 2 fields only the first {ROWS_MAX * ROW_SIZE} bytes are shown.",
    )
    assert "7 more findings" in to_html(view)
    assert "7 more findings" in in_rich(to_rich(view))


def test_received_messages(tmp_path: Path) -> None:
    with msmqwire.attach(tmp_path / "qm", create=True) as manager:
        queue = manager.create_queue(r"private$\orders")
        queue.send(f"body {EVIL}", label=f"label {EVIL}", recoverable=True)
        message = queue.receive(timeout=5)
    label = cut(message.label, 80)
    assert repr(message) == f"<ReceivedMessage {label!r}, {len(message.body)} bytes, {message.identifier}>"
    markup = Markup(message._repr_html_())
    assert set(markup.elements) <= ALLOWED
    row = markup.cells.index("body")
    assert markup.cells[row + 1].startswith("body \\x1b]0;x\\x07\\u202e</td><script>")
    assert markup.cells[markup.cells.index("recoverable") + 1] == "yes"
    assert "correlation" not in markup.cells
    assert message.identifier in in_rich(message)
