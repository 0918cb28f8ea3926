"""Writes the tables of `docs/api-http.md`, and `docs/openapi.json`, from the routes of the HTTP API.

python tools/pages/api_docs.py            writes them
python tools/pages/api_docs.py --check    fails if one of them is out of date
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from msmqwire.qm.runtime.api.all_routes import described_routes  # noqa: E402
from msmqwire.qm.runtime.api.document import document  # noqa: E402
from msmqwire.qm.runtime.api.routes import Route, RouteTable  # noqa: E402
from tools.pages.generated_pages import part_replaced, row, write_or_check  # noqa: E402

TARGET: Final = ROOT / "docs" / "api-http.md"
DOCUMENT: Final = ROOT / "docs" / "openapi.json"


def page() -> str:
    """The page, with the tables made anew."""
    return part_replaced(TARGET.read_text(encoding="utf-8"), "routes", tables(described_routes()))


def tables(table: RouteTable) -> str:
    """A table for each group of endpoints."""
    parts = []
    for tag in dict.fromkeys(route.tag for route in table.routes):
        lines = [f"### {tag[:1].upper()}{tag[1:]}", ""]
        lines += [row(["request", "right", "effect", "answer"]), row(["---"] * 4)]
        lines += [row(_cells(route)) for route in table.routes if route.tag == tag]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _cells(route: Route) -> list[str]:
    path = route.full_path if route.root else route.path
    query = ", ".join(f"`{one.name}`" for one in route.parameters)
    return [
        f"`{route.method} {path}`" + (f"<br>{query}" if query else ""),
        "none" if route.right is None else str(route.right),
        route.summary.replace("|", "\\|"),
        ", ".join(str(status) for status in route.answers),
    ]


def openapi() -> str:
    """The document, for people and generators of clients that have no server at hand."""
    return json.dumps(document(described_routes()), indent=1, ensure_ascii=False) + "\n"


def main(arguments: list[str] | None = None) -> int:
    found = write_or_check(page, TARGET, "api_docs.py", arguments)
    return write_or_check(openapi, DOCUMENT, "api_docs.py", arguments) or found


if __name__ == "__main__":
    sys.exit(main())
