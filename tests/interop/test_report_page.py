"""The report in a browser: what it shows, its filters, hostile text that stays text, long captures."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import msmqwire
from msmqwire.analysis.dissection import Item, dissect
from msmqwire.analysis.fate import fates
from msmqwire.analysis.report import Limits, write_report
from msmqwire.capture.attempts import CAUSES
from tests.support.browser import Opened, browser, open_page
from tests.support.captures import TcpConversation, pcap_bytes
from tests.support.nightly import nightly
from tests.support.paths import EXAMPLES, ROOT
from tests.support.patience import limit

__all__ = ["browser", "open_page"]

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
HOSTILE_BODY = "</script><script>alert(3)</script><svg onload=alert(4)>]]>-->"
PARTS = ("overview", "sessions", "messages", "findings", "packets")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """A function that returns the address of the report of an example."""
    folder = tmp_path_factory.mktemp("reports")

    def address(name: str) -> str:
        path = folder / f"{name}.html"
        if not path.exists():
            write_report(dissect(EXAMPLES / name), path, version=msmqwire.__version__)
        return path.as_uri()

    return address


def ready(opened: Opened) -> Any:
    """The page, once it is put together."""
    opened.page.wait_for_selector("html[data-ready]", timeout=limit(120) * 1000)
    return opened.page


def go(page: Any, part: str) -> None:
    page.click(f"#tab-{part}")
    page.wait_for_selector(f"#{part}:not([hidden])")


def shown(page: Any) -> int:
    """How many packets pass the filters, once that was worked out anew."""
    page.wait_for_timeout(limit(0.4) * 1000)  # what is typed is applied a little later
    return int(re.match(r"[\d,]+", page.inner_text("#packets .filter-count"))[0].replace(",", ""))  # type: ignore[index]


def close_drawer(page: Any) -> None:
    page.keyboard.press("Escape")
    page.wait_for_selector("#drawer", state="hidden")


def number(text: str) -> int:
    return int(text.replace(",", ""))


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.pcap*")))
def test_the_numbers_on_the_page_are_those_of_dissect(
    name: str, reports: Callable[[str], str], open_page: Callable[..., Opened]
) -> None:
    items = [item.to_json() for item in dissect(EXAMPLES / name)]
    opened = open_page(reports(name))
    page = ready(opened)
    assert number(page.inner_text("#total-packets")) == len(items)
    assert number(page.inner_text("#total-findings")) == sum(len(item["findings"]) for item in items)
    tables = page.locator("#overview table", has_text="Kinds of packets")
    if tables.locator("xpath=following-sibling::button").count():
        page.click("#overview .table-holder:has-text('Kinds of packets') > button")
    rows = page.locator("#overview table:has(caption:text-is('Kinds of packets')) tbody tr").all_inner_texts()
    kinds = {row.split("\t")[0]: number(row.split("\t")[1]) for row in rows}
    assert kinds == Counter(item["packet"] for item in items)
    for part in PARTS:
        go(page, part)
    assert shown(page) == len(items)
    found = Counter(finding["id"] for item in items for finding in item["findings"])
    listed: Counter[str] = Counter()
    for line in page.locator("#findings .requirement").all():
        listed[line.locator("b").text_content()] += number(line.locator(".number").text_content())
    assert listed == found
    opened.expect_quiet()


def test_filters_select_what_dissect_does(
    reports: Callable[[str], str], open_page: Callable[..., Opened]
) -> None:
    items = list(dissect(EXAMPLES / "hostile.pcapng"))
    opened = open_page(reports("hostile.pcapng"))
    page = ready(opened)
    go(page, "packets")

    def count(test: Callable[[Item], bool]) -> int:
        return sum(map(test, items))

    def label(item: Item) -> str:
        properties = getattr(item.packet, "MessagePropertiesHeader", None)
        return str(properties.Label) if properties is not None else ""

    middle = items[20].time_ns
    severities = [{finding.severity for finding in item.findings} for item in items]
    for name, value, expected in (
        ("kind", "UserMessage", count(lambda item: item.kind == "UserMessage")),
        ("label", "TRANSACTION", count(lambda item: "transaction" in label(item))),
        ("queue", "orders", count(lambda item: getattr(item.packet, "UserHeader", None) is not None) - 1),
        ("endpoint", ":50001", count(lambda item: 50001 in (item.src_port, item.dst_port))),
        ("endpoint", "10.0.0.66", count(lambda item: "10.0.0.66" in (item.src, item.dst))),
        ("severity", "4", sum("ATTACK" in found for found in severities)),
        ("severity", "1", sum(bool(found) for found in severities)),
        ("session", "4", count(lambda item: item.stream == 1)),
        ("from", f"{middle // 10**9}.{middle % 10**9:09d}", count(lambda item: item.time_ns >= middle)),
        ("to", items[20].time.rstrip("Z"), count(lambda item: item.time_ns < middle)),
        ("search", "resumed", 1),
        ("search", "no such thing", 0),
    ):
        page.evaluate("panels.packets.preset({})")
        control = page.locator(f"#filter-{name}")
        if control.evaluate("node => node.tagName") == "SELECT":
            control.select_option(value)
        else:
            control.fill(value)
        assert (name, value, shown(page)) == (name, value, expected)
    page.fill("#filter-search", "")
    page.fill("#filter-from", "not a time")
    assert shown(page) == len(items)
    assert page.get_attribute("#filter-from", "aria-invalid") == "true"
    page.click("#packets button[type=reset]")
    assert shown(page) == len(items)
    opened.expect_quiet()


def test_fields_and_bytes_mark_each_other(
    reports: Callable[[str], str], open_page: Callable[..., Opened]
) -> None:
    opened = open_page(reports("hostile.pcapng"))
    page = ready(opened)
    go(page, "findings")
    page.click(".requirement:has-text('MQMQ-2.2.19.3-43')")
    page.wait_for_selector("#findings .hex .marked")
    assert page.locator("#findings .hex-bytes .marked").all_text_contents() == (
        ["6c", "00", "61", "00", "62", "00", "65", "00", "ff", "ff", "ff", "ff"]
    )
    assert page.locator("#findings tr.marked th").text_content() == "Label"
    assert "must" in page.locator("#findings tr.marked").get_attribute("class").split()
    page.hover("#findings tr.field:has-text('Signature')")
    assert page.locator("#findings .hex-bytes .marked").all_text_contents() == ["4c", "49", "4f", "52"]
    page.hover("#findings .hex-bytes [data-at='12']")
    assert page.locator("#findings tr.marked th").text_content() == "TimeToReachQueue"
    page.focus("#findings tr.field[tabindex='0']")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.locator("#findings tr.marked th").text_content() == "Flags"
    opened.expect_quiet()


def test_the_page_goes_by_keyboard_alone(
    reports: Callable[[str], str], open_page: Callable[..., Opened]
) -> None:
    opened = open_page(reports("hostile.pcapng"))
    page = ready(opened)
    page.focus("#tab-overview")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#packets").is_visible()
    page.focus("#packets tbody tr[tabindex='0']")
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.dataset.place") == "45"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_selector("#drawer .packet-view")
    assert page.locator("#drawer h2").inner_text().endswith("Packet 45")
    close_drawer(page)
    assert page.evaluate("document.activeElement.closest('#packets') !== null")
    go(page, "sessions")
    page.focus(".ladder")
    page.keyboard.press("ArrowDown")
    assert page.inner_text(".ladder-status").startswith("Packet 15: EstablishConnection to 10.0.0.2:1801.")
    opened.expect_quiet()


def test_a_ladder_shows_directions_gaps_and_what_is_sent_again(
    reports: Callable[[str], str], open_page: Callable[..., Opened]
) -> None:
    opened = open_page(reports("hostile.pcapng"))
    page = ready(opened)
    go(page, "sessions")
    page.click("#sessions tr[data-place='6']")
    items = [item for item in dissect(EXAMPLES / "hostile.pcapng") if item.stream == 4]
    arrows = "count => document.querySelectorAll('.ladder-svg g.arrow').length === count"
    page.wait_for_function(arrows, arg=len(items))  # instead of those of the session that was shown before
    assert page.locator(".ladder-svg g.gap .zigzag").count() == sum(item.kind == "Skipped" for item in items)
    assert page.locator(".ladder-svg g.again").count() == 1
    goes_right = "one => one.x1.baseVal.value < one.x2.baseVal.value"
    shafts = "[...document.querySelectorAll('.ladder-svg .shaft')]"
    ends = page.evaluate(f"{shafts}.map({goes_right})")
    assert ends == [item.dst_port == 1801 for item in items if item.kind != "Skipped"]
    height = page.locator(".ladder-tall").evaluate("node => node.offsetHeight")
    page.click(".ladder-tools [aria-label='Larger']")
    assert page.locator(".ladder-tall").evaluate("node => node.offsetHeight") > height
    page.click(".ladder-svg g.again .arrow-words")
    page.wait_for_selector("#drawer .packet-view")
    assert "sent again" in page.inner_text("#drawer")
    opened.expect_quiet()


def test_the_life_of_a_message_is_reported(
    reports: Callable[[str], str], open_page: Callable[..., Opened]
) -> None:
    opened = open_page(reports("remote_read.pcap"))
    page = ready(opened)
    go(page, "messages")
    (fate, *_) = fates(EXAMPLES / "remote_read.pcap")
    page.click("#messages tr[data-place='0']")
    page.wait_for_selector("#drawer .life")
    assert page.locator("#drawer .events b").all_text_contents() == [
        event.what.value for event in fate.events
    ]
    assert fate.explanation in page.inner_text("#drawer .life")
    page.wait_for_selector("#drawer .body-preview pre")
    opened.expect_quiet()


@pytest.fixture(scope="module")
def hostile_report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report of messages whose labels, queues, bodies and file name would like to be markup."""
    folder = tmp_path_factory.mktemp("hostile")
    talk = TcpConversation(("10.0.0.1", 50_000), ("10.0.0.2", 1801)).handshake()
    for kind in ("EstablishConnection", "ConnectionParameters"):
        packet = msmqwire.build({"packet": kind})
        talk.send(packet).send(packet, by_client=False)
    for body in (HOSTILE_BODY.encode("utf-16-le"), HOSTILE_BODY.encode(), f"<a>{HOSTILE}</a>".encode()):
        talk.send(
            msmqwire.build(
                {
                    "packet": "UserMessage",
                    "fields": {
                        "UserHeader": {
                            "MessageID": 7,
                            "DestinationQueue": {"DirectFormatName": f"OS:{HOSTILE}\\{HOSTILE_BODY}"},
                        },
                        "MessagePropertiesHeader": {"Label": HOSTILE + "\u202e", "MessageBody": body.hex()},
                    },
                }
            )
        )
    talk.send(HOSTILE.encode() * 4)
    name = folder / "<b onmouseover=alert(5)>x.pcap"
    name.write_bytes(pcap_bytes(talk.close().frames))
    path = folder / "report.html"
    write_report(dissect(name), path, title=HOSTILE, version=msmqwire.__version__)
    return path.as_uri()


def test_hostile_text_never_becomes_markup(hostile_report: str, open_page: Callable[..., Opened]) -> None:
    opened = open_page(hostile_report)
    page = ready(opened)
    elements = (
        "document.querySelectorAll('img, svg[onload], b[onmouseover], main script, aside script').length"
    )
    for part in PARTS:
        go(page, part)
        assert page.evaluate(elements) == 0
    assert page.locator("#packets td", has_text=HOSTILE).count() >= 3
    assert "\\u202e" in page.inner_text("#packets")
    for place in range(4, 8):
        page.click(f"#packets tr[data-place='{place}']")
        page.wait_for_selector("#drawer .packet-view")
        assert page.evaluate(elements) == 0
        if place < 7:
            assert "onerror" in page.inner_text("#drawer")
            assert "alert" in page.inner_text("#drawer .body-preview pre")
        close_drawer(page)
    go(page, "overview")
    page.click(f"#overview button:has-text('{HOSTILE[:20]}')")
    assert shown(page) >= 3
    assert page.inner_text("h1") == HOSTILE == page.title()
    opened.expect_quiet()


def test_the_policy_stops_what_should_have_slipped_in(
    hostile_report: str, open_page: Callable[..., Opened]
) -> None:
    opened = open_page(hostile_report)
    page = ready(opened)
    blocked: list[tuple[str, str]] = []
    page.on("requestfailed", lambda request: blocked.append((request.url, request.failure)))
    markup = '<img src="https://example.com/x" onerror="alert(1)">'
    with page.expect_event("requestfailed"):
        page.evaluate("markup => document.body.insertAdjacentHTML('beforeend', markup)", markup)
    page.wait_for_timeout(300)  # in which a dialog would open
    assert opened.dialogs == []
    assert blocked == [("https://example.com/x", "csp")]
    assert any("Content Security Policy" in problem for problem in opened.problems)


@pytest.mark.parametrize("scheme", ["dark", pytest.param("light", marks=nightly)])
def test_no_serious_barriers(
    scheme: str, reports: Callable[[str], str], open_page: Callable[..., Opened]
) -> None:
    opened = open_page(reports("hostile.pcapng"), color_scheme=scheme)
    page = ready(opened)
    for part in PARTS:
        go(page, part)
        if part == "findings":
            page.wait_for_selector("#findings .packet-view")
        assert (part, opened.serious_barriers()) == (part, [])
    page.click("#packets tr[data-place='8']")
    page.wait_for_selector("#drawer .body-preview")
    assert opened.serious_barriers() == []


def test_the_theme_follows_the_system_and_the_switch(
    reports: Callable[[str], str], open_page: Callable[..., Opened]
) -> None:
    opened = open_page(reports("session.pcap"), color_scheme="dark")
    page = ready(opened)
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(18, 22, 28)"
    assert page.get_attribute("#theme", "aria-pressed") == "true"
    page.click("#theme")
    assert page.evaluate(ground) == "rgb(246, 247, 249)"
    opened.expect_quiet()


def test_a_narrow_screen_is_not_wider_than_itself(
    reports: Callable[[str], str], open_page: Callable[..., Opened]
) -> None:
    opened = open_page(reports("hostile.pcapng"), viewport={"width": 360, "height": 740})
    page = ready(opened)
    for part in PARTS:
        go(page, part)
        assert (part, page.evaluate("document.documentElement.scrollWidth")) == (part, 360)


def test_all_parts_are_printed(reports: Callable[[str], str], open_page: Callable[..., Opened]) -> None:
    opened = open_page(reports("hostile.pcapng"), viewport={"width": 1030, "height": 700})
    page = ready(opened)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    for part in PARTS:
        assert page.locator(f"#{part}").is_visible()
    assert page.locator("#packets tr[data-place]").count() == 46
    assert page.evaluate("document.documentElement.scrollWidth") <= 1030
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert [page.locator(f"#{part}").is_visible() for part in PARTS] == [True] + [False] * 4
    opened.expect_quiet()


class Repeated:
    """A dissection whose items come again and again, a millisecond apart."""

    def __init__(self, capture: Path, count: int) -> None:
        self._dissection = dissect(capture)
        self._items = list(self._dissection)
        self._count = count

    def __iter__(self) -> Iterator[Item]:
        start = self._items[0].time_ns
        for number in range(self._count):
            item = self._items[number % len(self._items)]
            yield replace(item, time_ns=start + number * 1_000_000, frames=(number + 1,))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dissection, name)


@nightly
def test_a_hundred_thousand_packets_are_a_few_rows_of_the_page(
    tmp_path: Path, open_page: Callable[..., Opened]
) -> None:
    count = 100_000
    path = tmp_path / "report.html"
    source: Any = Repeated(EXAMPLES / "session.pcap", count)
    written = write_report(source, path, limits=Limits(details=100))
    assert written.packets == count
    opened = open_page(path.as_uri())
    page = ready(opened)
    go(page, "packets")
    assert shown(page) == count
    rows = page.locator("#packets tr[data-place]")
    most = page.evaluate("document.querySelector('#packets .scroller').clientHeight") // 30 + 30
    for place in (0, 50_000, count - 1):
        page.evaluate(f"panels.packets.table.scrollTo({place})")
        page.wait_for_selector(f"#packets tr[data-place='{place}']")
        assert 10 < rows.count() <= most
        assert page.evaluate("document.querySelectorAll('*').length") < 12_000
    page.select_option("#filter-kind", "SessionAck")
    assert shown(page) == count // 8
    assert rows.count() <= most
    go(page, "sessions")
    arrows = page.locator(".ladder-svg g.arrow")
    assert 5 < arrows.count() <= 60
    page.click(".ladder-tools button:text-is('Last')")
    page.wait_for_selector(".ladder-svg g.current")
    assert 5 < arrows.count() <= 60
    page.click("#tab-packets")
    page.click("#packets tr[data-place='18']")
    page.wait_for_selector("#drawer .notice")
    assert "not in the report" in page.inner_text("#drawer")
    opened.expect_quiet()


def test_a_report_of_nothing_says_so(tmp_path: Path, open_page: Callable[..., Opened]) -> None:
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(pcap_bytes([]))
    path = tmp_path / "report.html"
    write_report(dissect(empty), path)
    opened = open_page(path.as_uri())
    page = ready(opened)
    for part, words in (
        ("overview", "There are no packets of MSMQ"),
        ("sessions", "There are no sessions."),
        ("messages", "There are no messages in these captures."),
        ("findings", "Nothing was found that departs from the specifications."),
        ("packets", "No packet passes these filters."),
    ):
        go(page, part)
        assert words in page.inner_text(f"#{part}")
    assert json.loads(page.evaluate("JSON.stringify(report.totals)"))["packets"] == 0
    opened.expect_quiet()


def test_packets_without_a_time(tmp_path: Path, open_page: Callable[..., Opened]) -> None:
    """They are packets as all are, and no part of the page counts from a time that is not there."""
    late = sorted((ROOT / "tests/vectors/cases/01_time_beyond_64_bits").glob("*.pcapng"))
    path = tmp_path / "report.html"
    write_report(dissect(late), path)
    opened = open_page(path.as_uri())
    page = ready(opened)
    assert page.inner_text("#subtitle") == "2 packets in 2 captures"
    for part in PARTS:
        go(page, part)
        text = page.inner_text(f"#{part}")
        assert not re.search(r"NaN|undefined|[+Δ] ?\?", text), text
    go(page, "sessions")
    assert "TCP connection 0, no time: 1 malformed packet, 1 gap." in page.inner_text("#sessions")
    opened.expect_quiet()


def test_failed_connection_attempts_are_shown_with_their_cause(
    open_page: Callable[..., Opened], tmp_path: Path
) -> None:
    path = tmp_path / "attempts.html"
    case = ROOT / "tests/vectors/cases/14_refused_connections"
    write_report(dissect(sorted(case.glob("*.pcap"))), path, version="1")
    page = ready(open_page(path.as_uri()))
    cells = page.locator("#overview .attempts tbody td").all_inner_texts()
    assert cells[:7] == ["10.0.0.1", "10.0.0.2", "1801", "6", "3", "3", "0"]
    assert cells[7] == f"{CAUSES['refused']}; {CAUSES['unanswered']}"
    holder = page.locator("#overview .attempts .table-holder")
    assert holder.evaluate("holder => holder.scrollWidth <= holder.clientWidth")
