"""The tests that reach a file, the most specific first: by the records of earlier runs, else by imports."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tools.near.imports import Tree
from tools.near.records import Record

_STEP = 4
"""The factor by which a test is less specific for each import between it and the file."""
_TESTS = "tests/"
_QUICK = ("tests/unit/", "tests/conformance/")
_SLOW = 8
"""The factor by which a test in another folder is less preferred while it has no record."""


class Reached(NamedTuple):
    """A test file that reaches the file asked about."""

    test: str
    share: float
    """The share of the file in the work of the test: about 1 if there is no other."""
    why: str
    seconds: float | None
    """Its duration; None without a record."""


def reach(tree: Tree, records: Mapping[str, Record], file: str) -> list[Reached]:
    """Return the test files that reach a file.

    A recorded one counts if it ran a function of the file, or imports it itself; one without a record if it
    imports it, itself or through modules of the tests. If there is none, imports of the product count too.
    """
    if file in tree.tests():
        record = records.get(file)
        return [Reached(file, 1.0, "it is the file", record.seconds if record else None)]
    importers = tree.importers()
    near = _by_imports(tree, importers, file, through_product=False)
    recorded = {test: record for test, record in records.items() if file in record.functions}
    found = [
        Reached(test, record.functions[file] / record.total, _ran(record, file), record.seconds)
        for test, record in recorded.items()
    ]
    for each in near:
        if each.test not in recorded and (each.test not in records or each.why == "imports it"):
            record = records.get(each.test)
            found.append(each._replace(seconds=record.seconds if record else None))
    found = found or _by_imports(tree, importers, file, through_product=True) or _by_mention(tree, file)
    return sorted(found, key=lambda each: (-each.share, each.seconds or 0.0, each.test))


def nearest(names: list[str], asked: str) -> list[str]:
    """The files that may have been meant: of the same name, or spelled alike."""
    if "/" not in asked and not asked.endswith(".py"):
        asked = f"{asked.replace('.', '/')}.py"
    last = Path(asked).name
    same = [name for name in names if Path(name).name == last]
    spelled = difflib.get_close_matches(asked, names, n=5, cutoff=0.6)
    alike = difflib.get_close_matches(last, {Path(name).name for name in names}, n=3, cutoff=0.85)
    return list(dict.fromkeys([*same, *spelled, *(name for name in names if Path(name).name in alike)]))[:5]


def _ran(record: Record, file: str) -> str:
    count = record.functions[file]
    return f"ran {count} {'function' if count == 1 else 'functions'} of it, {record.total} in all"


def _by_imports(
    tree: Tree, importers: Mapping[str, set[str]], file: str, *, through_product: bool
) -> list[Reached]:
    """Tests that import a file, directly or by the fewest steps."""
    tests = set(tree.tests())
    ways: dict[str, list[str]] = {file: []}
    found, waiting = [], [file]
    while waiting:
        further = []
        for each in waiting:
            for importer in sorted(importers.get(each, ())):
                if importer in ways:
                    continue
                ways[importer] = [*ways[each], each] if each != file else []
                if importer in tests:
                    found.append(_imported(tree, importer, ways[importer]))
                elif through_product or importer.startswith(_TESTS):
                    further.append(importer)
        if found and through_product:
            break
        waiting = further
    return found


def _imported(tree: Tree, test: str, way: list[str]) -> Reached:
    used = sum(not name.startswith(_TESTS) for name in tree.uses(test))
    why = f"imports it through {way[-1]}" if way else "imports it"
    share = 1 / max(1, used) / _STEP ** len(way)
    return Reached(test, share if test.startswith(_QUICK) else share / _SLOW, why, None)


def _by_mention(tree: Tree, file: str) -> list[Reached]:
    """Tests that name a file, as tests do that run or read it."""
    found = []
    for name, why in ((file, "names it"), (Path(file).name, "names a file of this name")):
        for test in tree.tests():
            if name in (tree.root / test).read_text(encoding="utf-8"):
                found.append(Reached(test, 0.1, why, None))
        if found:
            break
    return found
