"""Policies and health in the console's pages."""

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
from tests.support.running import ORDERS, until


@pytest.fixture
def console(tmp_path: Path) -> Iterator[WithConsole]:
    with with_console(tmp_path / "data", write=True) as running:
        yield running


def quota(console: WithConsole) -> int | None:
    with attach(console.data) as local:
        found: int | None = local.call("show", queue=ORDERS)["quota"]
        return found


@pytest.mark.parametrize("size", WIDTHS, ids=["phone", "desk"])
def test_a_policy_is_made_holds_and_is_deleted(
    console: WithConsole, open_page: Open, size: dict[str, int]
) -> None:
    opened = logged_in(console, open_page, viewport=size)
    page = opened.page
    go(page, "#/policies", "Policies")
    page.get_by_text("There are no policies").wait_for()
    dialog = dialog_of(page, "Create policy…")
    assert opened.serious_barriers() == []
    dialog.get_by_label("Name").fill("orders")
    dialog.get_by_label("Pattern").fill(r"private$\o*")
    dialog.get_by_label("Order").fill("7")
    dialog.get_by_label("Quota in KiB").fill("77")
    dialog.get_by_label("At that limit a message goes to").select_option("dead-letters")
    answer(dialog, "Create")
    row = page.locator("main tbody tr")
    row.filter(has_text="orders").wait_for()
    assert "quota 77 KiB, poison to dead letters" in row.inner_text()
    assert overflow(page) == 0
    assert quota(console) == 77
    go_to_queue(page, ORDERS)
    page.locator("dd").filter(has_text="77 KiB (policy orders)").wait_for()
    go(page, "#/policies", "Policies")
    answer(dialog_of(page, "Delete orders"), "Delete")
    page.get_by_text("There are no policies").wait_for()
    assert quota(console) is None
    expect_nothing_strange(opened, console)


def test_what_was_set_on_a_queue_is_forgotten_for_its_policy(console: WithConsole, open_page: Open) -> None:
    told = {"name": "orders", "pattern": "*", "order": 0, "quota": 77}
    assert console.browser.ask("POST", "/api/v1/policies", told).status == 201
    with attach(console.data) as local:
        local.call("set", queue=ORDERS, quota=5)
    opened = logged_in(console, open_page)
    page = opened.page
    go_to_queue(page, ORDERS)
    dialog = dialog_of(page, "Change properties…")
    dialog.get_by_label("Quota in KiB", exact=True).fill("default")
    answer(dialog, "Change")
    until(lambda: quota(console) == 77, "the quota is that of the policy")
    page.locator("dd").filter(has_text="77 KiB (policy orders)").wait_for()
    assert "from the policy orders" in dialog_of(page, "Change properties…").inner_text()
    expect_nothing_strange(opened, console)


def test_the_checks_are_shown(console: WithConsole, open_page: Open) -> None:
    opened = logged_in(console, open_page)
    page = opened.page
    go(page, "#/health", "Health")
    page.locator(".chips").filter(has_text="ready").wait_for()
    rows = page.locator("main tbody tr th").all_inner_texts()
    assert {"store", "disk", "listeners", "oldest unsynced change", "drain"} <= set(rows)
    assert console.browser.post("drain").status == 200
    page.locator(".chips").filter(has_text="not ready").wait_for()
    page.locator("main tbody tr").filter(has_text="drain").filter(has_text="not good").wait_for()
    expect_nothing_strange(opened, console, "503")
