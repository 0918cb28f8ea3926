"""The chromium of the system, for pictures in the documentation."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from playwright.sync_api import Page

_SIZE: Final = {"width": 1280, "height": 860}


def has_browser() -> bool:
    """Tell whether there are chromium and Playwright."""
    return shutil.which("chromium") is not None and importlib.util.find_spec("playwright") is not None


@contextmanager
def open_page() -> Iterator[Page]:
    """Open an empty page of the size of the pictures."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield browser.new_page(viewport=_SIZE)
        browser.close()
