"""tools/near on a small project: which tests it finds for a file, in which order, and what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.paths import ROOT
from tools.near.__main__ import FOLDERS, choose
from tools.near.imports import Tree
from tools.near.reach import Reached, nearest, reach
from tools.near.records import MAP, Record, add, load

FILES = {
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--import-mode=importlib'\n",
    "msmqwire/__init__.py": "",
    "msmqwire/prices.py": """
        def price(count):
            return count * rate()

        def rate():
            return 10

        RATE = rate()
    """,
    "msmqwire/shop.py": """
        from msmqwire.prices import price

        def sell(count):
            return price(count)
    """,
    "msmqwire/signs.py": "OPEN = 'open'",
    "msmqwire/alone.py": "",
    "tools/print_prices.py": "",
    "tests/support/shops.py": "from msmqwire.shop import sell",
    "tests/unit/test_prices.py": """
        from msmqwire.prices import price

        def test_price():
            assert price(2) == 20
    """,
    "tests/unit/test_shop.py": """
        from tests.support.shops import sell

        def test_sell():
            assert sell(1) == 10
    """,
    "tests/unit/test_signs.py": """
        import msmqwire.prices, msmqwire.shop
        from msmqwire.signs import OPEN

        def test_open():
            assert OPEN == "open"
    """,
    "tests/unit/test_tools.py": """
        TOOL = "tools/print_prices.py"

        def test_tool():
            assert TOOL
    """,
    "tests/service/test_foreign.py": """
        import msmqwire.prices
        import no_such_library

        def test_it():
            assert no_such_library
    """,
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
    return tmp_path


def near(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = (
        "import sys; from pathlib import Path; from tools.near.__main__ import main; "
        "sys.exit(main(sys.argv[2:], Path(sys.argv[1])))"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "-c", program, str(project), *arguments],
        cwd=project, env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def reached(project: Path, file: str) -> list[tuple[str, str]]:
    tree = Tree(project, FOLDERS)
    return [(Path(each.test).stem, each.why) for each in reach(tree, load(project), file)]


def test_without_records_imports_tell(project: Path) -> None:
    assert reached(project, "msmqwire/prices.py") == [
        ("test_prices", "imports it"),
        ("test_signs", "imports it"),
        ("test_foreign", "imports it"),
    ]
    assert reached(project, "msmqwire/shop.py") == [
        ("test_signs", "imports it"),
        ("test_shop", "imports it through tests/support/shops.py"),
    ]


def test_imports_of_the_product_are_the_last_resort(project: Path) -> None:
    (project / "msmqwire/signs.py").write_text("import msmqwire.alone\n")
    assert reached(project, "msmqwire/alone.py") == [("test_signs", "imports it through msmqwire/signs.py")]


def test_a_program_is_found_by_its_name(project: Path) -> None:
    assert reached(project, "tools/print_prices.py") == [("test_tools", "names it")]


def test_a_run_is_recorded(project: Path) -> None:
    run = near(project, "msmqwire/shop.py")
    assert run.returncode == 0, run.stdout + run.stderr
    records = load(project)
    assert records["tests/unit/test_shop.py"].functions == {"msmqwire/prices.py": 2, "msmqwire/shop.py": 1}
    assert "tests/unit/test_signs.py" not in records, "code that runs at import is not a run"
    assert ("test_shop", "ran 2 functions of it, 3 in all") in reached(project, "msmqwire/prices.py")
    assert ("test_shop", "ran 1 function of it, 3 in all") in reached(project, "msmqwire/shop.py")


def test_workers_record_too(project: Path) -> None:
    run = near(project, "--map", "tests/unit")
    assert run.returncode == 0, run.stdout + run.stderr
    assert load(project).keys() == {"tests/unit/test_prices.py", "tests/unit/test_shop.py"}


def test_a_record_ends_with_a_change_of_its_test(project: Path) -> None:
    near(project, "--map", "tests/unit")
    test = project / "tests/unit/test_shop.py"
    test.write_text(test.read_text() + "\n")
    assert load(project).keys() == {"tests/unit/test_prices.py"}
    test.unlink()
    add(project, {})
    assert json.loads((project / MAP).read_text()).keys() == {"tests/unit/test_prices.py"}


def test_chosen_tests_make_no_record(project: Path) -> None:
    assert near(project, "msmqwire/shop.py", "-k", "sell").returncode == 0
    assert load(project) == {}


def test_it_says_what_runs_and_why(project: Path) -> None:
    run = near(project, "msmqwire.prices")
    assert run.returncode == 0, run.stdout + run.stderr
    lines = run.stdout.splitlines()
    assert lines[0] == "3 test files reach msmqwire/prices.py, 2 run now:"
    assert lines[1] == "  tests/unit/test_prices.py: imports it"
    assert lines[3].startswith("1 are left out: no_such_library not installed")
    assert "2 passed" in run.stdout


def test_a_failure_is_the_exit_status(project: Path) -> None:
    (project / "msmqwire/signs.py").write_text("OPEN = 'shut'\n")
    assert near(project, "msmqwire/signs.py").returncode == 1


def test_the_rest_is_counted_with_its_command(project: Path) -> None:
    run = near(project, "msmqwire/prices.py", "--budget", "0")
    assert "2 test files reach" not in run.stdout
    assert (
        "1 more test files reach msmqwire/prices.py: make near FILE=msmqwire/prices.py BUDGET=" in run.stdout
    )
    assert "The time was over before 1 tests of: tests/unit/test_prices.py" in run.stdout
    assert load(project) == {}, "a file that was not run whole has no record"


def test_a_file_that_no_test_reaches(project: Path) -> None:
    run = near(project, "msmqwire/alone.py")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith("No test reaches msmqwire/alone.py")


@pytest.mark.parametrize("asked", ["msmqwire/price.py", "shop/prices.py", "msmqwire.shop.prices", "prices"])
def test_a_file_that_does_not_exist(project: Path, asked: str) -> None:
    run = near(project, asked)
    assert (run.returncode, run.stdout) == (2, "")
    first, second, *_ = run.stderr.splitlines()
    assert first == f"There is no file {asked}."
    assert second == "  make near FILE=msmqwire/prices.py"


def test_no_file(project: Path) -> None:
    run = near(project)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("Say which file: make near FILE=")


def test_a_test_file_reaches_itself(project: Path) -> None:
    assert reached(project, "tests/unit/test_shop.py") == [("test_shop", "it is the file")]


def test_the_time_goes_to_what_is_most_specific() -> None:
    found = [
        Reached("a", 0.5, "", 4.0),
        Reached("b", 0.4, "", 100.0),
        Reached("c", 0.3, "", None),
        Reached("d", 0.2, "", 8.0),
    ]
    chosen, left = choose(found, 8.0, 2)
    assert [each.test for each in chosen] == ["a", "c"]
    assert [each.test for each in left] == ["b", "d"]
    assert choose(found[1:2], 1.0, 2) == (found[1:2], []), "one at least"


def test_the_cache_of_imports_follows_changes(project: Path) -> None:
    cache = project / "build/near/imports.json"
    assert Tree(project, FOLDERS, cache).uses("msmqwire/alone.py") == set()
    (project / "msmqwire/alone.py").write_text("from . import signs\n")
    for _ in range(2):
        assert Tree(project, FOLDERS, cache).uses("msmqwire/alone.py") == {"msmqwire/signs.py"}
    cache.write_text("{")
    assert Tree(project, FOLDERS, cache).uses("msmqwire/shop.py") == {"msmqwire/prices.py"}


def test_names_alike() -> None:
    names = ["msmqwire/qm/core.py", "msmqwire/packets.py", "tools/generate/make_examples.py"]
    assert nearest(names, "msmqwire/core.py")[0] == "msmqwire/qm/core.py"
    assert nearest(names, "zzz") == []


def test_a_record_ranks_by_its_share(project: Path) -> None:
    for test, functions in (
        ("test_shop", {"msmqwire/prices.py": 1}),
        ("test_prices", {"msmqwire/prices.py": 1, "x": 9}),
    ):
        path = project / f"tests/unit/{test}.py"
        stat = path.stat()
        add(project, {f"tests/unit/{test}.py": Record(1.0, [stat.st_mtime_ns, stat.st_size], functions)})
    names = [test for test, _ in reached(project, "msmqwire/prices.py")]
    assert names[0] == "test_shop"
    assert names.index("test_prices") > 0
