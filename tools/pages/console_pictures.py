"""Pictures of the console of a queue manager with some queues, for the documentation.

python tools/pages/console_pictures.py FOLDER
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import msmqwire  # noqa: E402
from tools.pages.browser import has_browser, open_page  # noqa: E402

_PATIENCE_S: Final = 30
_QUEUES: Final = {"x": 0, "y": 0, "width": 1280, "height": 460}
_LETTERS: Final = {r"private$\orders": 12, r"private$\invoices": 40, r"private$\returns": 3}


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """A queue manager with messages; yields the address of its console."""
    command = [
        sys.executable, "-m", "msmqwire", "serve", "--data", str(folder), "--name", "alpha",
        "--listen", "127.0.0.1:0", "--ping", "off", "--console", "127.0.0.1:0", "--console-write",
        "--log", "error",
    ]  # fmt: skip
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            ready = dict(word.split("=", 1) for word in server.stdout.readline().split() if "=" in word)
            with msmqwire.attach(folder) as manager:
                for name, count in _LETTERS.items():
                    queue = manager.create_queue(name, label=name.rpartition("\\")[2].capitalize())
                    for number in range(1, count + 1):
                        queue.send(f"{name} {number}", label=f"number {number}", recoverable=True)
            yield f"http://{ready['console']}"
        finally:
            server.terminate()


def pictures() -> dict[str, bytes]:
    """Return pictures of the console by name; none without chromium and Playwright."""
    if not has_browser():
        return {}
    with (
        tempfile.TemporaryDirectory() as name,
        _served(Path(name) / "qm") as address,
        open_page() as page,
    ):
        page.set_default_timeout(_PATIENCE_S * 1000)
        page.goto(address)
        page.get_by_label("Token").fill((Path(name) / "qm" / "console-token").read_text().strip())
        page.keyboard.press("Enter")
        page.locator('nav a[href="#/queues"]').click()
        page.get_by_role("link", name=r"private$\returns").wait_for()
        made = {"queues.png": page.screenshot(clip=_QUEUES)}
        page.get_by_role("link", name=r"private$\orders").click()
        page.get_by_role("link", name="number 1", exact=True).wait_for()
        page.wait_for_function("document.querySelectorAll('.plot canvas').length === 2")
        made["queue.png"] = page.screenshot(full_page=True)
        return made


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in pictures().items():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    main()
