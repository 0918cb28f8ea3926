"""The pages of the console in a browser: what they show and change, by keyboard, without barriers."""

# ruff: noqa: F401, F811  # imported fixtures

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from msmqwire.names.printable import safe
from msmqwire.qm.runtime.console.options import ConsoleLimits
from msmqwire.qm.runtime.local import attach
from tests.support.browser import Opened, browser, open_page
from tests.support.peers.raw_peer import PEER, Message, Session, direct
from tests.support.qm.console_client import WithConsole, place, token_of, with_console
from tests.support.qm.console_pages import Open, expect_nothing_strange, go, logged_in
from tests.support.running import LEDGER, ORDERS, PATIENCE_S, listed, message, peeked, put, recoverable, until

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

EVIL = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>{{7*7}}\u202e"
TO = r"DIRECT=OS:nowhere.invalid\PRIVATE$\x"
PAGES = (
    "overview", "queues", "outgoing", "journals", "sessions", "transactions", "policies", "health", "log",
)  # fmt: skip
QUEUE_PAGE = r"#/queue?name=private%24%5Corders"


@pytest.fixture
def console(tmp_path: Path) -> Iterator[WithConsole]:
    with with_console(tmp_path / "data", write=True) as running:
        yield running


def fill(console: WithConsole) -> None:
    """Make queues and messages of all kinds, hostile ones among them."""
    with attach(console.data) as local:
        local.call("set", queue=ORDERS, label=EVIL[:124], journal=True)
        put(local, ORDERS, *(message(b"x", label=f"order {n}", delivery="recoverable") for n in range(60)))
        put(local, ORDERS, message(EVIL.encode(), label=EVIL, priority=7))
        put(local, LEDGER, message("ä".encode("utf-16-le"), body_type=8, delivery="transactional"))
        local.call("send", to=TO, messages=recoverable(b"1", label=EVIL))
        (taken,) = local.call("receive", queue=ORDERS)["messages"]
        local.call("end", done=[taken["receipt"]])
        put(local, ORDERS, message(EVIL.encode(), label=EVIL, priority=7))


def test_each_page_without_barriers_complaints_and_markup(console: WithConsole, open_page: Open) -> None:
    fill(console)
    opened = logged_in(console, open_page)
    page = opened.page
    page.wait_for_function("document.querySelectorAll('.plot canvas').length === 3")
    assert opened.serious_barriers() == []
    for name in PAGES[1:]:
        page.locator(f'nav a[href="#/{name}"]').click()
        page.locator(f'nav a[href="#/{name}"][aria-current="page"]').wait_for()
        page.locator("main tbody tr, main .empty:not([hidden])").first.wait_for()
        assert opened.serious_barriers() == [], name
    for where, heading in (
        (QUEUE_PAGE, ORDERS),
        (f"#/queue?{urlencode({'name': TO})}", TO),
    ):
        go(page, where, heading)
        page.locator("main tbody a").first.wait_for()
        assert opened.serious_barriers() == [], where
    go(page, QUEUE_PAGE, ORDERS)
    page.locator("main tbody a").first.click()
    page.locator("pre.dump").wait_for()
    assert page.locator("pre.body").inner_text() == EVIL
    assert page.locator("main dd").first.text_content() == EVIL
    assert opened.serious_barriers() == []
    assert page.locator("img").count() == 1, "that of the header"
    expect_nothing_strange(opened, console)


def test_what_was_refused_is_on_the_first_page(console: WithConsole, open_page: Open) -> None:
    opened = logged_in(console, open_page)
    page = opened.page
    page.get_by_text("No message has been refused, dropped or has expired.").wait_for()
    with Session.opened((console.server.address, console.server.port)) as peer:
        nosuch = direct(r"OS:alpha\private$\nosuch")
        peer.push(
            Message(b"1", queue=nosuch, label=EVIL), Message(b"2", queue=nosuch, label=EVIL, recoverable=True)
        )
        peer.until_acknowledged()
    row = page.locator("tr").filter(has_text="BAD_DST_Q")
    row.wait_for()
    page.wait_for_function("document.querySelectorAll('.plot canvas').length === 3")
    cells = row.locator("th, td").all_inner_texts()
    assert cells[:4] == [PEER, r"DIRECT=OS:alpha\private$\nosuch", "BAD_DST_Q", "2"]
    assert cells[5] == safe(EVIL)
    assert opened.serious_barriers() == []
    page.set_viewport_size({"width": 360, "height": 700})
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(overflow) == 0
    expect_nothing_strange(opened, console)


def test_dark_and_narrow_without_barriers(console: WithConsole, open_page: Open) -> None:
    fill(console)
    for settings in (
        {"color_scheme": "dark"},
        {"viewport": {"width": 360, "height": 700}, "color_scheme": "light"},
    ):
        opened = logged_in(console, open_page, **settings)
        for where, heading in (("#/queues", "Queues"), (QUEUE_PAGE, ORDERS), ("#/log", "Log")):
            go(opened.page, where, heading)
            opened.page.locator("main tbody tr").first.wait_for()
            assert opened.serious_barriers() == []
            overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert opened.page.evaluate(overflow) == 0, "nothing is cut or scrolls sideways but tables"
        expect_nothing_strange(opened, console)


def test_a_wrong_token_and_the_right_one_and_out_again(console: WithConsole, open_page: Open) -> None:
    opened = open_page(console.browser.origin)
    page = opened.page
    field = page.get_by_label("Token")
    assert opened.serious_barriers() == []
    field.fill("wrong")
    page.keyboard.press("Enter")
    page.get_by_role("alert").filter(has_text="that is neither the token in the file").wait_for()
    field.fill(token_of(console.data))
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1, name="Overview").wait_for()
    page.reload()
    page.get_by_role("heading", level=1, name="Overview").wait_for()
    assert "token" not in page.url
    assert page.evaluate("document.cookie") == "", "no script reads the cookie"
    page.get_by_role("button", name="Log out").click()
    page.get_by_label("Token").wait_for()
    assert page.locator("nav").is_hidden()
    refused = [problem for problem in opened.problems if "401" not in problem]
    assert refused == []


def test_queues_are_sorted_found_and_turned_over(console: WithConsole, open_page: Open) -> None:
    with attach(console.data) as local:
        for number in range(120):
            local.call("create", queue=rf"private$\q{number:03}")
        put(local, r"private$\q077", *recoverable(b"1", b"2"))
    opened = logged_in(console, open_page)
    page = opened.page
    go(page, "#/queues", "Queues")
    first = page.locator("main tbody tr").first
    first.filter(has_text=LEDGER).wait_for()
    assert page.locator("main tbody tr").count() == 50
    assert page.locator(".range").inner_text() == "1 to 50 of 122"
    page.get_by_role("button", name="Next").click()
    page.locator(".range").filter(has_text="51 to 100 of 122").wait_for()
    page.get_by_role("button", name="Messages").click()
    first.filter(has_text=r"private$\q077").wait_for()
    heading = page.get_by_role("columnheader", name="Messages")
    assert heading.get_attribute("aria-sort") == "descending"
    assert first.locator("td.number").first.inner_text() == "2"
    page.get_by_role("searchbox").fill("Q00")
    page.locator(".range").filter(has_text="10 queues").wait_for()
    expect_nothing_strange(opened, console)


def test_figures_change_by_themselves_and_the_focus_stays(console: WithConsole, open_page: Open) -> None:
    opened = logged_in(console, open_page)
    page = opened.page
    go(page, "#/queues", "Queues")
    link = page.get_by_role("link", name=ORDERS)

    def is_focused() -> bool:
        # At once: a link that is looked up first may be drawn anew before it is compared.
        return bool(page.evaluate("name => document.activeElement.textContent === name", ORDERS))

    def take_focus() -> bool:
        link.focus()  # in vain if the row is drawn anew at this moment
        return is_focused()

    until(take_focus, "the link has the focus")
    with attach(console.data) as local:
        put(local, ORDERS, *recoverable(b"1", b"2", b"3"))
    row = page.locator("main tbody tr").filter(has_text=ORDERS)
    row.locator("td.number").first.filter(has_text=re.compile("^3$")).wait_for()
    assert is_focused()
    go(page, "#/overview", "Overview")
    page.locator(".card").first.filter(has_text="3").wait_for()


def test_a_message_is_moved_and_deleted_by_keyboard_alone(console: WithConsole, open_page: Open) -> None:
    with attach(console.data) as local:
        put(
            local,
            ORDERS,
            *(message(body, label=body.decode(), delivery="recoverable") for body in (b"one", b"two")),
        )
    opened = logged_in(console, open_page)
    page = opened.page

    def press_until(text: str, key: str = "Tab") -> None:
        for _ in range(60):
            page.keyboard.press(key)
            if page.evaluate("document.activeElement.textContent").strip() == text:
                return
        pytest.fail(f"{text} is not reached by {key}")

    def enter(text: str) -> None:
        press_until(text)
        page.keyboard.press("Enter")

    assert page.evaluate("document.activeElement.textContent") == "Overview", "what had the focus is gone"
    page.reload()
    page.locator(".card").first.wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    enter("Queues")
    page.get_by_role("link", name=ORDERS).wait_for()
    assert page.evaluate("document.activeElement.tagName") == "H1", "what is new is read first"
    enter(ORDERS)
    page.get_by_role("link", name="one").wait_for()
    enter("one")
    page.locator("pre.dump").wait_for()
    enter("Move…")
    dialog = page.get_by_role("dialog")
    assert dialog.get_attribute("aria-labelledby") == "dialog-title"
    assert opened.serious_barriers() == []
    assert page.evaluate("document.activeElement.id") == "dialog-field-0"
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    assert page.evaluate("document.activeElement.textContent") == "Move…", "back where it was"
    page.keyboard.press("Enter")
    page.keyboard.type(rf"{ORDERS};poison")
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1, name=ORDERS, exact=True).wait_for()
    page.get_by_role("status").filter(has_text="Message moved").wait_for()
    assert (peeked(console.data, ORDERS), peeked(console.data, rf"{ORDERS};poison")) == ([b"two"], [b"one"])
    page.get_by_role("link", name="two").wait_for()
    enter("two")
    page.locator("pre.dump").wait_for()
    enter("Delete…")
    assert page.evaluate("document.activeElement.textContent") == "Cancel", "nothing dangerous is next"
    enter("Delete")
    page.get_by_text("The queue is empty.").wait_for()
    assert peeked(console.data, ORDERS) == []
    expect_nothing_strange(opened, console)


def test_a_queue_is_purged_only_after_a_question(console: WithConsole, open_page: Open) -> None:
    with attach(console.data) as local:
        put(local, ORDERS, *recoverable(b"1", b"2"))
    opened = logged_in(console, open_page)
    page = opened.page
    go(page, QUEUE_PAGE, ORDERS)
    page.get_by_role("button", name="Purge…").click()
    dialog = page.get_by_role("dialog")
    assert "2 messages of private$\\orders are deleted for good." in dialog.inner_text()
    dialog.get_by_role("button", name="Cancel").click()
    dialog.wait_for(state="detached")
    assert peeked(console.data, ORDERS) == [b"1", b"2"]
    page.get_by_role("button", name="Purge…").click()
    dialog.get_by_role("button", name="Delete all").click()
    page.get_by_text("The queue is empty.").wait_for()
    assert peeked(console.data, ORDERS) == []
    assert page.get_by_role("button", name="Purge…").is_disabled()
    expect_nothing_strange(opened, console)


def test_a_message_is_sent_elsewhere_and_a_refusal_is_reported(console: WithConsole, open_page: Open) -> None:
    with attach(console.data) as local:
        put(local, ORDERS, message(b"1", label="one"))
    opened = logged_in(console, open_page)
    page = opened.page
    go(page, QUEUE_PAGE, ORDERS)
    page.get_by_role("link", name="one").click()
    page.get_by_role("button", name="Send elsewhere…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Queue").fill(r"private$\none")
    dialog.get_by_role("button", name="Send").click()
    dialog.get_by_role("alert").filter(has_text="there is no such queue").wait_for()
    assert peeked(console.data, ORDERS) == [b"1"]
    dialog.get_by_label("Queue").fill(LEDGER)
    dialog.get_by_role("button", name="Send").click()
    dialog.wait_for(state="detached")
    page.get_by_text("The queue is empty.").wait_for()
    assert peeked(console.data, LEDGER) == [b"1"]
    assert [problem for problem in opened.problems if "404" not in problem] == []


def test_an_outgoing_queue_is_paused(console: WithConsole, open_page: Open) -> None:
    with attach(console.data) as local:
        local.call("send", to=TO, messages=recoverable(b"1"))
    page = logged_in(console, open_page).page
    go(page, "#/outgoing", "Outgoing queues")
    page.get_by_role("link", name=TO).click()
    page.get_by_role("button", name="Pause…").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Resume…").wait_for()
    assert listed(console.data)[TO]["state"] == "OnHold"
    assert page.locator(".chips").inner_text().split() == ["outgoing", "on", "hold"]


def test_read_only_pages_have_no_buttons_that_change(tmp_path: Path, open_page: Open) -> None:
    with with_console(tmp_path / "data") as console:
        with attach(console.data) as local:
            put(local, ORDERS, message(b"1", label="one"))
        opened = logged_in(console, open_page)
        page = opened.page
        assert page.locator("#mode").inner_text() == "Read-only"
        go(page, QUEUE_PAGE, ORDERS)
        page.get_by_role("link", name="one").wait_for()
        names = {"Purge…", "Pause…", "Move…", "Send elsewhere…", "Delete…"}
        assert not names & set(page.get_by_role("button").all_inner_texts())
        page.get_by_role("link", name="one").click()
        page.locator("pre.dump").wait_for()
        assert not names & set(page.get_by_role("button").all_inner_texts())
        expect_nothing_strange(opened, console)


def test_a_queue_of_many_messages_is_turned_over_forth_and_back(
    console: WithConsole, open_page: Open
) -> None:
    with attach(console.data) as local:
        for begin in range(0, 3000, 1000):
            put(local, ORDERS, *(message(b"x", label=f"m{begin + n}") for n in range(1000)))
    opened = logged_in(console, open_page)
    page = opened.page
    go(page, QUEUE_PAGE, ORDERS)
    rows = page.locator("main tbody tr")
    page.locator(".range").filter(has_text="1 to 50 of 3,000").wait_for()
    assert rows.count() == 50
    page.get_by_role("button", name="Next").click()
    page.get_by_role("link", name="m50", exact=True).wait_for()
    page.get_by_role("button", name="Next").click()
    page.get_by_role("link", name="m100", exact=True).wait_for()
    page.get_by_role("button", name="Previous").click()
    page.get_by_role("link", name="m50", exact=True).wait_for()
    page.get_by_role("button", name="First").click()
    page.get_by_role("link", name="m0", exact=True).wait_for()
    assert page.get_by_role("button", name="Previous").is_disabled()
    expect_nothing_strange(opened, console)


def test_pages_that_are_turned_over_before_they_are_there(tmp_path: Path, open_page: Open) -> None:
    limits = replace(ConsoleLimits(), sample_s=600.0)
    with with_console(tmp_path / "data", limits=limits) as console:
        with attach(console.data) as local:
            put(local, ORDERS, *(message(b"x", label=f"m{n}") for n in range(200)))
        page = logged_in(console, open_page).page
        go(page, QUEUE_PAGE, ORDERS)
        page.get_by_role("link", name="m49", exact=True).wait_for()
        next_page = page.get_by_role("button", name="Next")
        with slow(page, "**/api/v1/queues/*/messages?**"):
            next_page.click()
            next_page.click()
        page.get_by_role("link", name="m50", exact=True).wait_for()
        assert page.locator(".range").inner_text() == "51 to 100 of 200"
        with slow(page, "**/api/v1/queues/*/messages?**"):
            next_page.click()
            page.get_by_role("button", name="First").click()
        page.get_by_role("link", name="m0", exact=True).wait_for()
        assert page.locator(".range").inner_text() == "1 to 50 of 200"


def test_lines_of_another_level_that_come_late_are_not_shown(console: WithConsole, open_page: Open) -> None:
    page = logged_in(console, open_page).page
    with slow(page, "**/api/v1/log?*level=info*") as waiting:
        console.browser.post(place(r"private$\none", "purge"))
        go(page, "#/log", "Log")
        until(lambda: page.evaluate("1") and waiting, "a question after the log")
        page.get_by_label("Level and above").select_option("error")
    page.get_by_text("There are no lines of this level.").wait_for()
    assert page.locator("main tbody tr").count() == 0


@contextmanager
def slow(page: Page, url: str) -> Iterator[list[Route]]:
    """Let requests wait until the end of the block; yields those that do."""
    waiting: list[Route] = []
    over = False

    def take(route: Route) -> None:
        if over:
            route.continue_()
        else:
            waiting.append(route)

    page.route(url, take)
    yield waiting
    over = True
    for route in waiting:
        route.continue_()


@pytest.mark.parametrize("name", ["none", "constructor"])
def test_an_address_without_a_page_shows_the_overview(
    console: WithConsole, open_page: Open, name: str
) -> None:
    opened = logged_in(console, open_page)
    go(opened.page, "#/queues", "Queues")
    go(opened.page, f"#/{name}", "Overview")
    expect_nothing_strange(opened, console)


def test_the_log_comes_by_itself_and_by_level(console: WithConsole, open_page: Open) -> None:
    page = logged_in(console, open_page).page
    go(page, "#/log", "Log")
    console.browser.post(place(r"private$\none", "purge"))
    line = page.locator("main tbody tr").filter(has_text="API: purge refused")
    line.wait_for()
    assert r"queue: private$\none" in line.inner_text().replace("\n", " ")
    page.get_by_label("Level and above").select_option("error")
    page.get_by_text("There are no lines of this level.").wait_for()


def test_a_server_that_stops_is_reported(tmp_path: Path, open_page: Open) -> None:
    with with_console(tmp_path / "data") as console:
        page = logged_in(console, open_page).page
        page.get_by_text("Live", exact=True).wait_for()
    page.get_by_text("Not connected", exact=True).first.wait_for()
    page.get_by_role("status").filter(has_text="Not connected").wait_for(state="attached")
