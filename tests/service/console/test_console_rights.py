"""What the console's pages offer to a token: by its right, and without --console-write."""

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
    buttons_of,
    dialog_of,
    expect_nothing_strange,
    go,
    go_to_queue,
    logged_in,
    overflow,
)
from tests.support.running import ORDERS, message, put

ADMINISTER = {"Change properties…", "Change rights…", "Delete queue…"}
WRITE = {"Send a message…", "Purge…", "Requeue all…"}


@pytest.fixture
def console(tmp_path: Path) -> Iterator[WithConsole]:
    with with_console(tmp_path / "data", write=True) as running:
        with attach(running.data) as local:
            put(local, ORDERS, message(b"1", label="one"))
        yield running


def token(console: WithConsole, name: str, right: str) -> str:
    """Return the secret of a new token."""
    answer = console.browser.ask("POST", "/api/v1/tokens", {"name": name, "right": right})
    assert answer.status == 201
    return str(answer.told["token"])


@pytest.mark.parametrize(
    ("right", "mode", "offered"),
    [
        ("read", "Read-only", set()),
        ("read-write", "Read-write", WRITE),
        ("administer", "Administer", WRITE | ADMINISTER),
    ],
)
def test_a_token_has_the_buttons_of_its_right(
    console: WithConsole, open_page: Open, right: str, mode: str, offered: set[str]
) -> None:
    opened = logged_in(console, open_page, token(console, "viewer", right))
    page = opened.page
    assert page.locator("#mode").inner_text() == mode
    go_to_queue(page, ORDERS)
    page.get_by_role("link", name="one").wait_for()
    assert buttons_of(page) & (WRITE | ADMINISTER) == offered
    if right != "administer":
        page.get_by_text(f"The token viewer has the right {right}.").wait_for()
    go(page, "#/queues", "Queues")
    assert ("Create queue…" in buttons_of(page)) is (right == "administer")
    go(page, "#/tokens", "Tokens")
    assert ("Create token…" in buttons_of(page)) is (right == "administer")
    expect_nothing_strange(opened, console, "403")


def test_read_only_pages_say_what_would_change_them(tmp_path: Path, open_page: Open) -> None:
    with with_console(tmp_path / "data") as console:
        opened = logged_in(console, open_page)
        page = opened.page
        go_to_queue(page, ORDERS)
        page.get_by_text("msmqwire serve with --console-write lets it change something.").wait_for()
        assert not buttons_of(page) & (WRITE | ADMINISTER)
        page.locator("#mode").click()
        page.get_by_role("heading", level=1, name="Health").wait_for()
        page.get_by_text("msmqwire serve with --console-write lets it change something.").wait_for()
        expect_nothing_strange(opened, console)


@pytest.mark.parametrize("size", WIDTHS, ids=["phone", "desk"])
def test_a_token_is_made_shown_once_and_revoked(
    console: WithConsole, open_page: Open, size: dict[str, int]
) -> None:
    opened = logged_in(console, open_page, viewport=size)
    page = opened.page
    go(page, "#/tokens", "Tokens")
    dialog = dialog_of(page, "Create token…")
    assert opened.serious_barriers() == []
    dialog.get_by_label("Name").fill("billing")
    dialog.get_by_label("Right").select_option("read-write")
    dialog.get_by_role("button", name="Create").click()
    page.get_by_role("heading", name="Token billing").wait_for()
    secret = page.get_by_label("Secret").input_value()
    assert len(secret) >= 43
    assert opened.serious_barriers() == []
    assert overflow(page) == 0
    answer(page.get_by_role("dialog"), "Close")
    row = page.locator("main tbody tr").filter(has_text="billing")
    row.filter(has_text="read-write").wait_for()
    assert secret not in page.content()
    other = logged_in(console, open_page, secret)
    answer(dialog_of(page, "Revoke billing"), "Revoke")
    page.get_by_text("There are no tokens").wait_for()
    other.page.get_by_label("Token").wait_for()
    expect_nothing_strange(opened, console)
