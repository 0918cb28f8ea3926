"""Messages in the console's pages: found, chosen, put back into their queues, downloaded."""

# ruff: noqa: F401, F811  # imported fixtures

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmqwire.qm.runtime.local import attach
from tests.support.browser import browser, open_page
from tests.support.qm.console_client import WithConsole, with_console
from tests.support.qm.console_pages import (
    WIDTHS,
    Open,
    answer,
    dialog_of,
    expect_nothing_strange,
    go_to_queue,
    logged_in,
    overflow,
)
from tests.support.running import ORDERS, message, peeked, put, until

POISON = rf"{ORDERS};poison"


@pytest.fixture
def console(tmp_path: Path) -> Iterator[WithConsole]:
    with with_console(tmp_path / "data", write=True) as running:
        yield running


def poisoned(console: WithConsole, count: int) -> None:
    """Put messages into the subqueue for poison."""
    with attach(console.data) as local:
        put(
            local,
            ORDERS,
            *(message(f"{n}".encode(), label=f"no {n}", delivery="recoverable") for n in range(count)),
        )
        local.call("move", queue=ORDERS, to=POISON, count=count)


def bodies_of(console: WithConsole, queue: str) -> list[bytes]:
    return sorted(peeked(console.data, queue), key=int)


@pytest.mark.parametrize("size", WIDTHS, ids=["phone", "desk"])
def test_chosen_messages_go_back(console: WithConsole, open_page: Open, size: dict[str, int]) -> None:
    poisoned(console, 4)
    opened = logged_in(console, open_page, viewport=size)
    page = opened.page
    go_to_queue(page, POISON)
    assert page.get_by_role("button", name="Requeue chosen…").is_disabled()
    page.get_by_label("Choose no 1").check()
    page.get_by_label("Choose no 3").check()
    assert opened.serious_barriers() == []
    assert overflow(page) == 0
    answer(dialog_of(page, "Requeue 2 messages…"), "Requeue")
    page.get_by_role("status").filter(has_text="2 messages requeued.").wait_for()
    assert bodies_of(console, ORDERS) == [b"1", b"3"]
    assert bodies_of(console, POISON) == [b"0", b"2"]
    page.get_by_role("button", name="Requeue chosen…").wait_for()
    page.get_by_role("button", name="Dismiss").click()
    assert page.locator(".outcome").count() == 0
    expect_nothing_strange(opened, console)


def test_all_messages_go_back_and_each_is_counted(console: WithConsole, open_page: Open) -> None:
    """More than a page of the API has; one of them is held by a program, which is not shown."""
    poisoned(console, 230)
    opened = logged_in(console, open_page)
    page = opened.page
    with attach(console.data) as local:
        local.call("receive", queue=POISON)
        go_to_queue(page, POISON)
        answer(dialog_of(page, "Requeue all…"), "Requeue")
        page.get_by_role("status").filter(has_text="229 messages requeued.").wait_for()
        assert len(peeked(console.data, ORDERS)) == 229
    until(lambda: len(peeked(console.data, POISON)) == 1, "the message that was held")
    expect_nothing_strange(opened, console)


def test_messages_that_are_refused_stay_and_say_why(console: WithConsole, open_page: Open) -> None:
    poisoned(console, 3)
    opened = logged_in(console, open_page)
    page = opened.page
    go_to_queue(page, POISON)
    dialog = dialog_of(page, "Requeue all…")
    dialog.get_by_label("To another queue instead").fill(r"private$\none")
    answer(dialog, "Requeue")
    page.get_by_role("status").filter(has_text="0 messages requeued, 3 refused and left here.").wait_for()
    page.get_by_role("listitem").filter(has_text="3 times: ").wait_for()
    assert bodies_of(console, POISON) == [b"0", b"1", b"2"]
    expect_nothing_strange(opened, console, "404")


def test_one_message_goes_back(console: WithConsole, open_page: Open) -> None:
    poisoned(console, 2)
    opened = logged_in(console, open_page)
    page = opened.page
    go_to_queue(page, POISON)
    page.get_by_role("link", name="no 1").click()
    page.locator("pre.dump").wait_for()
    answer(dialog_of(page, "Requeue…"), "Requeue")
    page.get_by_role("heading", level=1, name=POISON, exact=True).wait_for()
    assert (peeked(console.data, ORDERS), peeked(console.data, POISON)) == ([b"1"], [b"0"])
    expect_nothing_strange(opened, console)


def test_messages_are_found_far_behind(console: WithConsole, open_page: Open) -> None:
    """The server searches piece by piece, and the page goes on by itself."""
    with attach(console.data) as local:
        for begin in range(0, 9000, 1000):
            put(local, ORDERS, *(message(b"plain", label=f"m{begin + n}") for n in range(1000)))
        put(local, ORDERS, message("Der ÄRGER".encode("utf-16-le"), label="last", body_type=8))
    opened = logged_in(console, open_page)
    page = opened.page
    go_to_queue(page, ORDERS)
    with page.expect_response(lambda response: "find=" in response.url) as first:
        page.get_by_label("Find in messages").fill("ärger")
    assert first.value.json()["items"] == []
    assert first.value.json()["next"] is not None, "the work for one request is bounded"
    page.get_by_role("link", name="last").wait_for()
    page.get_by_role("status").filter(has_text="1 found").wait_for()
    assert page.locator("main tbody tr").count() == 1
    page.get_by_label("Find in messages").fill("no such text")
    page.get_by_text("No message has this in its label, identifier, correlation or body.").wait_for()
    page.get_by_label("Find in messages").fill("")
    page.get_by_role("link", name="m0", exact=True).wait_for()
    expect_nothing_strange(opened, console)


def test_a_search_that_finds_much_waits_to_be_continued(console: WithConsole, open_page: Open) -> None:
    with attach(console.data) as local:
        put(local, ORDERS, *(message(b"plain", label=f"m{n}") for n in range(120)))
    page = logged_in(console, open_page).page
    go_to_queue(page, ORDERS)
    page.get_by_label("Find in messages").fill("plain")
    page.get_by_role("status").filter(has_text="50 found").wait_for()
    page.get_by_role("button", name="Search on").click()
    page.get_by_role("status").filter(has_text="100 found").wait_for()
    page.get_by_role("button", name="Search on").click()
    page.get_by_role("status").filter(has_text="120 found").wait_for()
    page.get_by_role("button", name="Search on").wait_for(state="hidden")
    assert page.locator("main tbody tr").count() == 120


def test_messages_are_downloaded_as_lines(console: WithConsole, open_page: Open) -> None:
    with attach(console.data) as local:
        put(local, ORDERS, *(message(f"{n}".encode(), label=f"m{n}") for n in range(60)))
    page = logged_in(console, open_page).page
    go_to_queue(page, ORDERS)
    page.get_by_role("link", name="m49", exact=True).wait_for()
    page.get_by_role("button", name="Next").click()
    page.get_by_role("link", name="m50", exact=True).wait_for()

    def labels(link: str) -> list[str]:
        with page.expect_download() as begun:
            page.get_by_role("link", name=link, exact=True).click()
        assert begun.value.suggested_filename == "messages.jsonl"
        return [json.loads(line)["label"] for line in Path(begun.value.path()).read_text().splitlines()]

    assert labels("Export this page") == [f"m{n}" for n in range(50, 60)]
    assert labels("Export all") == [f"m{n}" for n in range(60)]
