"""Pages in Debian's chromium, and their events: requests, messages of the console, dialogs.

Test modules import the fixtures that they use: ``from tests.support.browser import browser, open_page``. A
test that wants them is skipped without chromium and Playwright, except in CI.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.support.installed import library
from tests.support.patience import limit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SERIOUS: Final = ("serious", "critical")
"""Impacts of findings of axe that no page may have."""


@dataclass
class Opened:
    """A page, and what was recorded since it was opened.

    Attributes:
        page: the page, for Playwright.
        requests: addresses that it asked for, its own first.
        problems: errors and warnings of its console, violations of its policy among them; uncaught errors.
        dialogs: texts of alerts and the like, each closed at once.
    """

    page: Page
    requests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def expect_quiet(self) -> None:
        """Fail if the page complained, opened a dialog, or asked for anything but itself."""
        assert self.problems == []
        assert self.dialogs == []
        own = self.requests[0].partition("#")[0]
        unexpected = [
            url for url in self.requests if url.partition("#")[0] != own and not url.startswith("blob:")
        ]
        assert unexpected == []

    def serious_barriers(self) -> list[str]:
        """Return the serious findings of axe on the page as it is now: rule, help and places."""
        from axe_playwright_python.sync_playwright import Axe

        violations: list[dict[str, Any]] = Axe().run(self.page).response["violations"]
        return [
            f"{one['id']}: {one['help']}: {[node['target'] for node in one['nodes'][:5]]}"
            for one in violations
            if one["impact"] in SERIOUS
        ]


@pytest.fixture(scope="module")  # Playwright keeps an event loop running, which other tests could not start
def browser() -> Iterator[Browser]:
    """A chromium without a window."""
    path = shutil.which("chromium")
    if path is None and os.environ.get("CI") != "true":
        pytest.skip("chromium is not installed")
    assert path is not None, "chromium is not installed"
    playwright = library("playwright.sync_api")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Opened]]:
    """A function that opens an address in a new context, with further arguments for it."""
    contexts = []

    def opened(address: str, **settings: Any) -> Opened:
        context = browser.new_context(**settings)
        contexts.append(context)
        result = Opened(context.new_page())
        result.page.set_default_timeout(limit(30) * 1000)  # ms: other tests run beside
        page = result.page
        page.on("request", lambda request: result.requests.append(request.url))
        page.on("pageerror", lambda error: result.problems.append(f"uncaught: {error}"))
        page.on(
            "console",
            lambda message: (
                result.problems.append(f"{message.type}: {message.text}")
                if message.type in ("error", "warning")
                else None
            ),
        )

        def close(dialog: Any) -> None:
            result.dialogs.append(dialog.message)
            dialog.dismiss()

        page.on("dialog", close)
        page.goto(address)
        return result

    yield opened
    for context in contexts:
        context.close()
