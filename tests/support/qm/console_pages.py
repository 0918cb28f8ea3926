"""The console's pages in a browser: logging in, going to a page, and what no page may do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from tests.support.browser import Opened
from tests.support.qm.console_client import WithConsole, token_of
from tests.support.running import PATIENCE_S

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

PHONE: Final = {"width": 390, "height": 844}
DESK: Final = {"width": 1280, "height": 800}
WIDTHS: Final = (PHONE, DESK)
"""The sizes of windows that pages are tried in."""
_OVERFLOW: Final = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

Open = Callable[..., Opened]


def logged_in(console: WithConsole, open_page: Open, token: str = "", **settings: Any) -> Opened:
    """Return a page that is logged in, by the console's own token by default, and shows the overview."""
    opened = open_page(console.browser.origin, **settings)
    page = opened.page
    page.set_default_timeout(PATIENCE_S * 1000)
    page.get_by_label("Token").fill(token or token_of(console.data))
    page.keyboard.press("Enter")
    page.locator(".card").first.wait_for()
    return opened


def go(page: Page, place: str, heading: str) -> None:
    """Go to a page of the console by its address."""
    page.evaluate("place => { location.hash = place; }", place)
    page.get_by_role("heading", level=1, name=heading, exact=True).wait_for()


def go_to_queue(page: Page, name: str) -> None:
    """Go to the page of a queue."""
    go(page, f"#/queue?{urlencode({'name': name})}", name)
    page.locator("main dd").first.wait_for()


def dialog_of(page: Page, button: str) -> Locator:
    """Press a button, and return the dialog that it opens."""
    page.get_by_role("button", name=button, exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    return dialog


def answer(dialog: Locator, action: str) -> None:
    """Press the button of a dialog, which is done then."""
    dialog.get_by_role("button", name=action, exact=True).click()
    dialog.wait_for(state="detached")


def buttons_of(page: Page) -> set[str]:
    """Return the texts of the buttons of a page."""
    return set(page.get_by_role("button").all_inner_texts())


def overflow(page: Page) -> int:
    """Return by how much a page is wider than its window, in pixels: only tables may scroll sideways."""
    return int(page.evaluate(_OVERFLOW))


def expect_nothing_strange(opened: Opened, console: WithConsole, *expected: str) -> None:
    """Fail if the page complained, opened a dialog of the browser or asked for anything elsewhere.

    Complaints about answers of an expected status are left out.
    """
    assert [one for one in opened.problems if not any(status in one for status in expected)] == []
    assert opened.dialogs == []
    assert {url for url in opened.requests if not url.startswith(console.browser.origin)} == set()
