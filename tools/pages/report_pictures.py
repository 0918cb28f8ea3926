"""Pictures of a report, for the documentation, in the chromium of the system.

    python tools/pages/report_pictures.py FOLDER

Writes an example report and pictures of it for the documentation into the folder. README's picture,
docs/assets/report.png, is the one of a finding.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from msmqwire import __version__  # noqa: E402
from msmqwire.analysis.dissection import dissect  # noqa: E402
from msmqwire.analysis.report import write_report  # noqa: E402
from tools.pages.browser import has_browser, open_page  # noqa: E402

EXAMPLE: Final = "example.html"


def example_report() -> bytes:
    """Return the report of an example."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / EXAMPLE
        capture = ROOT / "examples" / "hostile.pcapng"
        write_report(dissect(capture), path, title=capture.name, version=__version__)
        return path.read_bytes()


def pictures(report: bytes) -> dict[str, bytes]:
    """Return pictures of a report by name; none without chromium and Playwright."""
    if not has_browser():
        return {}
    with tempfile.TemporaryDirectory() as folder, open_page() as page:
        path = Path(folder) / EXAMPLE
        path.write_bytes(report)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        made = {"overview.png": page.screenshot()}
        made["ladder.png"] = _ladder(page)
        made["finding.png"] = _finding(page)
        return made


def _ladder(page: Any) -> bytes:
    page.click("#tab-sessions")
    page.click("#sessions tr[data-place='6']")
    picture: bytes = page.locator(".ladder-holder").screenshot()
    return picture


def _finding(page: Any) -> bytes:
    page.click("#tab-findings")
    page.click(".requirement:has-text('MQMQ-2.2.19.3-43')")
    page.wait_for_selector("#findings .hex .marked")
    picture: bytes = page.screenshot()
    return picture


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    report = example_report()
    for name, content in {EXAMPLE: report, **pictures(report)}.items():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    main()
