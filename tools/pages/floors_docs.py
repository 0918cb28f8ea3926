"""Writes the tables of floors in `CONTRIBUTING.md` from `tests/unit/test_floors.py`, which enforces them.

python tools/pages/floors_docs.py            writes the tables
python tools/pages/floors_docs.py --check    fails if they are out of date
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.unit import test_floors as floors  # noqa: E402
from tools.pages.generated_pages import part_replaced, row, write_or_check  # noqa: E402

TARGET: Final = ROOT / "CONTRIBUTING.md"
PART: Final = "floors"


def page() -> str:
    """Return the text of CONTRIBUTING.md with the tables of now."""
    return part_replaced(TARGET.read_text(encoding="utf-8"), PART, tables())


def tables() -> str:
    """Return the tables in Markdown."""
    return "\n".join(
        [
            *_table(("floor", "parts", "arrows on it"), _floors()),
            "",
            "Inside the large parts there are rooms, with arrows of their own in the same test:",
            "",
            *_table(("room", "contents", "may import of its part"), _rooms()),
            "",
            "`msmqwire/service` and `spark_udfs` have floors of their own, from the top down:",
            "",
            *_table(("", "floor", "modules and folders"), _inner_floors()),
        ]
    )


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    head = tuple(head)
    yield row(head)
    yield row(["---"] * len(head))
    yield from map(row, rows)


def _floors() -> Iterator[tuple[str, str, str]]:
    for number, parts in reversed(list(enumerate(floors.FLOORS))):
        used = {
            part: {imported for importer, imported in floors.SIDEWAYS if importer == part}
            for part in sorted(parts)
        }
        arrows = [f"`{importer}` → {_names(imported)}" for importer, imported in used.items() if imported]
        yield str(number), _names(parts), "; ".join(arrows)


def _rooms() -> Iterator[tuple[str, str, str]]:
    for part, rooms in floors.ROOMS.items():
        yield from _rooms_of(part, rooms)


def _rooms_of(part: str, rooms: Mapping[str, Set[str]]) -> Iterator[tuple[str, str, str]]:
    for room, used in rooms.items():
        yield f"`{part}/{room}`", _first_line(ROOT / "msmqwire" / part / room), _names(used) or "nothing else"


def _inner_floors() -> Iterator[tuple[str, str, str]]:
    for part, parts in (("msmqwire/service", floors.SERVICE_FLOORS), ("spark_udfs", floors.SPARK_FLOORS)):
        for number, rooms in reversed(list(enumerate(parts))):
            yield f"`{part}`", str(number), _names(rooms)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _first_line(path: Path) -> str:
    """Return the first line of the docstring of a module or a package."""
    module = path.with_suffix(".py")  # an older checkout may have left a folder of this name
    source = module if module.exists() else path / "__init__.py"
    text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    line = text.partition("\n")[0].replace("``", "`").removesuffix(".")
    return line.replace("|", r"\|")


def main(arguments: list[str] | None = None, target: Path = TARGET) -> int:
    return write_or_check(page, target, "floors_docs.py", arguments)


if __name__ == "__main__":
    sys.exit(main())
