"""Writes `tests/support/README.md`: each peer, harness and helper of the tests, by its docstring.

python tools/pages/support_docs.py            writes it
python tools/pages/support_docs.py --check    fails if it is out of date
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.pages.generated_pages import row, write_or_check  # noqa: E402

SUPPORT: Final = ROOT / "tests" / "support"
TARGET: Final = SUPPORT / "README.md"
ROOMS: Final = {
    "": "Of all tests",
    "capture": "Captures: frames, files, and the results of readers",
    "peers": "Peers: the other end of a connection, written by hand",
    "broken_peers": "A peer with mistakes, and its correct self",
    "qm": "Queue managers: harnesses, servers, stores",
    "srmp": "SRMP",
    "rpc": "RPC and remote read",
    "pgm": "PGM",
    "netware": "The queue service of NetWare",
}
"""The folders, with their headings."""

HEAD: Final = """# What tests share

A line for each module, from its docstring; `make generated` writes this page. Before you write another peer,
harness or capture, look here. What a single test file needs stays in that file.
"""


def page() -> str:
    """Return the text of the index."""
    return "\n".join([HEAD, *_sections()])


def _sections() -> Iterator[str]:
    for room, heading in ROOMS.items():
        yield f"## {heading}\n"
        yield row(["module", "what it is"])
        yield row(["---", "---"])
        for path in sorted((SUPPORT / room).glob("*.py")):
            name = path.relative_to(SUPPORT).as_posix()
            yield row([f"[`{name}`]({name})", summary(path)])
        yield ""


def summary(path: Path) -> str:
    """Return the first paragraph of a module's docstring, in one line of Markdown."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if not docstring:
        raise SystemExit(f"{path} has no docstring")
    return " ".join(docstring.partition("\n\n")[0].replace("``", "`").replace("|", r"\|").split())


def main(arguments: list[str] | None = None) -> int:
    return write_or_check(page, TARGET, Path(__file__).name, arguments)


if __name__ == "__main__":
    sys.exit(main())
