"""Cells that are copied from pages, as into a spreadsheet: what a sender has written is no formula there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from msmqwire.analysis.dissection import dissect
from msmqwire.analysis.report import write_report
from msmqwire.tables.spreadsheet import escaped
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.browser import Opened, browser, open_page
from tests.support.patience import limit

__all__ = ["browser", "open_page"]

LABELS = ['=HYPERLINK("http://10.0.0.9","order")', "+1", "-1+2", "@SUM(A1)", "'quoted", " =1", "order 7"]
COPY = """([selector, text]) => {
  const selection = getSelection();
  selection.removeAllRanges();
  const range = document.createRange();
  const found = [...document.querySelectorAll(selector)].find((node) => node.textContent.includes(text));
  range.selectNodeContents(found);
  selection.addRange(range);
  const data = new DataTransfer();
  const event = new ClipboardEvent("copy", { clipboardData: data, bubbles: true, cancelable: true });
  document.body.dispatchEvent(event);
  return event.defaultPrevented ? data.getData("text/plain") : null;
}"""


def test_rows_of_a_report(tmp_path: Path, open_page: Callable[..., Opened]) -> None:
    talk = c.TcpConversation(start_ns=c.START_NS).handshake()
    for number, label in enumerate(LABELS, 1):
        user, properties = h.user_header(message_id=number), h.properties_header(label=label, body=b"x")
        talk = talk.send(h.user_message(user=user, properties=properties))
    (tmp_path / "a.pcap").write_bytes(c.pcap_bytes(talk.close().frames))
    write_report(dissect(tmp_path / "a.pcap"), tmp_path / "a.html")
    opened = open_page((tmp_path / "a.html").as_uri())
    page: Any = opened.page
    page.wait_for_selector("html[data-ready]", timeout=limit(120) * 1000)
    page.click("#tab-messages")
    page.wait_for_selector("#messages tr[data-place]")
    copied = page.evaluate(COPY, ["#messages tbody", "HYPERLINK"])
    cells = [cell for row in copied.split("\n") for cell in row.split("\t")]
    assert {escaped(label) for label in LABELS} <= set(cells)
    assert not [cell for cell in cells if cell != escaped(cell.removeprefix("'"))]
    assert page.evaluate(COPY, ["#messages td", "HYPERLINK"]) is None, "one cell as it is"
    assert page.evaluate(COPY, ["h1", ""]) is None
    assert opened.problems == []
