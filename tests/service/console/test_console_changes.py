"""What the console's pages change beside messages: queues are made, changed and deleted."""

# ruff: noqa: F401, F811  # imported fixtures

from __future__ import annotations

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
    go,
    go_to_queue,
    logged_in,
    overflow,
)
from tests.support.running import LEDGER, ORDERS, listed, message, peeked, put, recoverable, until

EVIL = "<img src=x onerror=alert(1)>\"'><b>"
NAME = r"private$\<b>&'x'"


@pytest.fixture
def console(tmp_path: Path) -> Iterator[WithConsole]:
    with with_console(tmp_path / "data", write=True) as running:
        yield running


@pytest.mark.parametrize("size", WIDTHS, ids=["phone", "desk"])
def test_a_queue_is_created_and_shown(console: WithConsole, open_page: Open, size: dict[str, int]) -> None:
    opened = logged_in(console, open_page, viewport=size)
    page = opened.page
    go(page, "#/queues", "Queues")
    dialog = dialog_of(page, "Create queue…")
    assert opened.serious_barriers() == []
    assert overflow(page) == 0
    dialog.get_by_label("Name").fill(NAME)
    dialog.get_by_label("Label").fill(EVIL)
    dialog.get_by_label("Transactional").check()
    dialog.get_by_label("Quota in KiB").fill("77")
    answer(dialog, "Create")
    page.get_by_role("heading", level=1, name=NAME, exact=True).wait_for()
    page.get_by_text("The queue is empty.").wait_for()
    made = listed(console.data)[NAME]
    assert (made["label"], made["transactional"], made["journal"], made["quota"]) == (EVIL, True, False, 77)
    assert page.locator("main img").count() == 0
    expect_nothing_strange(opened, console)


def test_a_queue_that_can_t_be_made_says_why(console: WithConsole, open_page: Open) -> None:
    opened = logged_in(console, open_page)
    page = opened.page
    go(page, "#/queues", "Queues")
    dialog = dialog_of(page, "Create queue…")
    dialog.get_by_label("Name").fill(ORDERS)
    dialog.get_by_role("button", name="Create").click()
    dialog.get_by_role("alert").filter(has_text="MQ_ERROR_QUEUE_EXISTS").wait_for()
    dialog.get_by_label("Name").fill(r"private$\new")
    dialog.get_by_label("Quota in KiB").fill("many")
    dialog.get_by_role("button", name="Create").click()
    dialog.get_by_role("alert").filter(has_text="not a whole number").wait_for()
    assert dialog.get_by_label("Quota in KiB").get_attribute("aria-invalid") == "true"
    assert page.evaluate("document.activeElement.id") == dialog.get_by_label("Quota in KiB").get_attribute(
        "id"
    )
    assert set(listed(console.data)) >= {ORDERS, LEDGER}
    assert r"private$\new" not in listed(console.data)
    expect_nothing_strange(opened, console, "409")


def test_a_queue_with_messages_is_deleted_by_its_name(console: WithConsole, open_page: Open) -> None:
    with attach(console.data) as local:
        put(local, ORDERS, *recoverable(b"1", b"2"))
    opened = logged_in(console, open_page)
    page = opened.page
    go_to_queue(page, ORDERS)
    dialog = dialog_of(page, "Delete queue…")
    assert "deleted for good with 2 messages" in dialog.inner_text()
    dialog.get_by_label("Type the name of the queue to confirm").fill(r"private$\order")
    dialog.get_by_role("button", name="Delete the queue").click()
    dialog.get_by_role("alert").filter(has_text="That is not the name of the queue.").wait_for()
    assert ORDERS in listed(console.data)
    dialog.get_by_label("Type the name of the queue to confirm").fill(ORDERS)
    answer(dialog, "Delete the queue")
    page.get_by_role("heading", level=1, name="Queues", exact=True).wait_for()
    assert ORDERS not in listed(console.data)
    expect_nothing_strange(opened, console, "404")


def test_an_empty_queue_is_deleted_without_its_name(console: WithConsole, open_page: Open) -> None:
    opened = logged_in(console, open_page)
    go_to_queue(opened.page, LEDGER)
    dialog = dialog_of(opened.page, "Delete queue…")
    assert dialog.get_by_role("textbox").count() == 0
    answer(dialog, "Delete the queue")
    until(lambda: LEDGER not in listed(console.data), "the queue is deleted")


@pytest.mark.parametrize("size", WIDTHS, ids=["phone", "desk"])
def test_only_what_was_changed_is_sent(console: WithConsole, open_page: Open, size: dict[str, int]) -> None:
    with attach(console.data) as local:
        local.call("set", queue=ORDERS, label="before", quota=5, journal=True)
    opened = logged_in(console, open_page, viewport=size)
    page = opened.page
    go_to_queue(page, ORDERS)
    with page.expect_request(lambda request: request.method == "PATCH") as sent:
        dialog = dialog_of(page, "Change properties…")
        assert opened.serious_barriers() == []
        assert overflow(page) == 0
        assert dialog.get_by_label("Label").input_value() == "before"
        assert dialog.get_by_label("Quota in KiB", exact=True).input_value() == "5"
        dialog.get_by_label("Label").fill(EVIL)
        dialog.get_by_label("Quota in KiB", exact=True).fill("")
        dialog.get_by_label("Encryption").select_option("body")
        answer(dialog, "Change")
    assert sent.value.post_data_json == {"label": EVIL, "quota": None, "privacy": "body"}
    page.locator("dd").filter(has_text=EVIL).wait_for()
    with attach(console.data) as local:
        shown = local.call("show", queue=ORDERS)
    assert (shown["label"], shown["quota"], shown["privacy"], shown["journal"]) == (EVIL, None, "body", True)
    expect_nothing_strange(opened, console)


def test_rights_of_a_user_are_changed_and_forgotten(console: WithConsole, open_page: Open) -> None:
    opened = logged_in(console, open_page)
    page = opened.page
    go_to_queue(page, ORDERS)
    dialog = dialog_of(page, "Change rights…")
    dialog.get_by_label("User or group", exact=True).fill(r"HOME\anne")
    dialog.get_by_role("button", name="Change").click()
    dialog.get_by_role("alert").filter(has_text="Choose a right, or none.").wait_for()
    dialog.get_by_label("receive", exact=True).check()
    dialog.get_by_label("send", exact=True).check()
    answer(dialog, "Change")
    page.locator("dd").filter(has_text="anne: receive, send").wait_for()

    def allowed() -> dict[str, list[str]]:
        with attach(console.data) as local:
            return dict(local.call("show", queue=ORDERS)["allow"])

    assert allowed()[r"HOME\anne"] == ["receive", "send"]
    dialog = dialog_of(page, "Change rights…")
    dialog.get_by_label("User or group", exact=True).fill(r"HOME\anne")
    dialog.get_by_label("none: forget all of this user or group").check()
    answer(dialog, "Change")
    until(lambda: r"HOME\anne" not in allowed(), "the rights are forgotten")
    expect_nothing_strange(opened, console)


@pytest.mark.parametrize("size", WIDTHS, ids=["phone", "desk"])
def test_a_message_is_sent_to_a_queue(console: WithConsole, open_page: Open, size: dict[str, int]) -> None:
    opened = logged_in(console, open_page, viewport=size)
    page = opened.page
    go_to_queue(page, ORDERS)
    dialog = dialog_of(page, "Send a message…")
    assert opened.serious_barriers() == []
    assert overflow(page) == 0
    assert dialog.get_by_label("To", exact=True).input_value() == ORDERS
    dialog.get_by_label("Label").fill(EVIL)
    dialog.get_by_label("Body, as text").fill("ä\n😀")
    dialog.get_by_label("Priority").select_option("6")
    dialog.get_by_label("Delivery").select_option("express")
    answer(dialog, "Send")
    page.get_by_role("link", name=EVIL).wait_for()
    with attach(console.data) as local:
        (sent,) = local.call("peek", queue=ORDERS, count=2)["messages"]
    assert peeked(console.data, ORDERS) == ["ä\n😀".encode("utf-16-le")]
    assert (sent["label"], sent["priority"], sent["delivery"], sent["body_type"]) == (EVIL, 6, "express", 8)
    expect_nothing_strange(opened, console)


def test_a_message_to_a_transactional_queue(console: WithConsole, open_page: Open) -> None:
    opened = logged_in(console, open_page)
    page = opened.page
    go_to_queue(page, LEDGER)
    dialog = dialog_of(page, "Send a message…")
    assert dialog.get_by_label("Delivery").locator("option").evaluate_all(
        "all => all.map(one => one.value)"
    ) == ["transactional"]
    dialog.get_by_label("Body type").select_option("utf-8")
    dialog.get_by_label("Body, as text").fill("ä")
    answer(dialog, "Send")
    until(lambda: peeked(console.data, LEDGER) == ["ä".encode()], "the message is there")
    expect_nothing_strange(opened, console)


def test_a_message_to_a_name_that_is_none(console: WithConsole, open_page: Open) -> None:
    opened = logged_in(console, open_page)
    page = opened.page
    go(page, "#/queues", "Queues")
    dialog = dialog_of(page, "Send a message…")
    dialog.get_by_label("To", exact=True).fill("DIRECT=nothing")
    dialog.get_by_role("button", name="Send").click()
    dialog.get_by_role("alert").filter(has_text="DIRECT").wait_for()
    dialog.get_by_label("To", exact=True).fill(r"DIRECT=OS:nowhere.invalid\private$\x")
    answer(dialog, "Send")
    until(
        lambda: r"DIRECT=OS:nowhere.invalid\private$\x".lower() in map(str.lower, listed(console.data)),
        "sent",
    )
    expect_nothing_strange(opened, console, "400")
