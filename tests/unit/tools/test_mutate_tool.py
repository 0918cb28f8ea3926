"""tools/mutate/mutate.py on a product of its own: which marks it calls earned."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.paths import ROOT
from tools.mutate.mutants import mutants
from tools.mutate.names import Space
from tools.mutate.targets import Chooser, Row

PRODUCT = '''
    """Prices."""
    LIMIT = 10
    RATES = {
        "few": 10,  # SHOP-1.1-03
        "many": 9,
    }
    # SHOP-1.1-05
    UNIT = "piece"

    def price(count: int) -> int:
        """The price of so many: SHOP-1.1-01 and -02."""
        if count > LIMIT:
            return count * RATES["many"]
        return count * RATES["few"]

    def count_down(number: int) -> None:
        while number:
            number -= 1
'''
TESTS = """
    import pytest
    from shop.prices import LIMIT, RATES, count_down, price

    def requirement(row):
        return pytest.mark.requirement(row)

    @requirement("SHOP-1.1-01")
    def test_earned_in_a_function():
        assert (price(10), price(11)) == (100, 99)

    @requirement("SHOP-1.1-02")
    def test_unearned():
        price(3)

    @pytest.mark.parametrize("name, rate", [pytest.param("few", 10, marks=requirement("SHOP-1.1-03"))])
    def test_earned_in_a_table(name, rate):
        assert RATES[name] == rate

    @requirement("SHOP-1.1-04")
    def test_crashes_are_not_enough():
        price(12) + 0

    @requirement("SHOP-2-01")
    def test_skipped():
        pytest.skip("not here")

    @requirement("SHOP-3-01")
    def test_ends():
        count_down(3)
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    root = tmp_path_factory.mktemp("project")
    for name, text in {
        "shop/__init__.py": "",
        "shop/prices.py": PRODUCT,
        "tests/test_prices.py": TESTS,
        "pytest.ini": "[pytest]\npythonpath = .\nmarkers = requirement(id): what the test proves\n",
    }.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(dedent(text))
    return root


def check(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        str(ROOT / "tools" / "mutate" / "mutate.py"),
        "--root",
        str(root),
        "--package",
        "shop",
    ]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [*command, *arguments, "--mutants", "3"], env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def run(shop):
    return check(shop, "--rows", "9", "--seed", "3")


# -- the command ----------------------------------------------------------------------------------------


def section(run: subprocess.CompletedProcess[str], title: str) -> list[str]:
    """The rows that the answer lists under a title."""
    (text,) = (part for part in run.stdout.split("\n\n") if part.startswith(title))
    return re.findall(r"^  (SHOP-\S+):", text, re.MULTILINE)


def test_rows_whose_tests_kill_nothing_are_printed(run):
    assert run.stderr == ""
    assert run.returncode == 1
    assert section(run, "Rows whose tests kill no mutant") == ["SHOP-1.1-02", "SHOP-1.1-04"]
    assert section(run, "Rows that can't be judged") == ["SHOP-2-01"]
    assert run.stdout.splitlines()[-2:][0].startswith("6 rows, ")
    assert run.stdout.splitlines()[-1].startswith("2 rows without a killed mutant, ")


def test_the_seed_tells_the_story_of_a_row_again(shop, run):
    again = check(shop, "--row", "SHOP-1.1-02", "--seed", "3")
    story = [line for line in again.stdout.splitlines() if line.startswith("    shop/")]
    assert len(story) > 3
    assert "\n".join(story) in run.stdout


def test_the_tree_is_not_touched(shop, run):
    files = sorted(path.relative_to(shop).as_posix() for path in shop.rglob("*") if path.is_file())
    assert files == ["pytest.ini", "shop/__init__.py", "shop/prices.py", "tests/test_prices.py"]
    assert (shop / "shop/prices.py").read_text() == dedent(PRODUCT)


def test_rows_by_name_and_a_mutant_without_end(shop):
    run = check(shop, "--row", "SHOP-3-01", "SHOP-1.1-03", "--patience", "1")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines()[-2].startswith("2 rows, ")


def test_a_row_without_a_test_is_refused(shop):
    run = check(shop, "--row", "SHOP-9-99")
    assert (run.returncode, run.stderr) == (2, "no test names SHOP-9-99\n")


# -- mutants --------------------------------------------------------------------------------------------


def changes(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "module.py"
    path.write_text(dedent(text))
    return [mutant.text for mutant in mutants(path)]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a < b", ["< -> <="]),
        ("x = a is not b", ["is not -> is"]),
        ("x = a and not b", ["and -> or", "not b -> b"]),
        ("x = a + 1", ["+ -> -", "1 -> 2"]),
        ("x = -n", ["-n -> n"]),
        ("x = True", ["True -> False"]),
        ("x = b'ab'", ["b'ab' -> b'ac'"]),
        ("x = 'ab'", ["'ab' -> 'abx'"]),
        ("x = [f, g]", ["f -> nothing", "g -> nothing"]),
        ("x = {f: g, **h}", ["f: ... -> nothing", "h: ... -> nothing"]),
        ("f(a, b=c)", ["f(a, b=c) -> nothing", "b=c -> nothing"]),
        ("a.b = c", ["a.b = c -> nothing"]),
        ("a.b, a[c] = d", ["a.b, a[c] = d -> nothing"]),
        ("a, b.c = d", []),
        ("if a:\n    raise E(1)", ["a -> not ...", "raise E(1) -> nothing"]),
        ("if a == b:\n    pass", ["== -> !="]),
        ("def f():\n    return a", ["return a -> return None"]),
    ],
)
def test_the_changes_of(tmp_path, text, expected):
    assert changes(tmp_path, text) == expected


@pytest.mark.parametrize(
    "text",
    [
        '"""A docstring."""',
        "x: Literal[1]",
        "def f(a: 'b') -> 'c': ...",
        "x = 'a sentence for people'",
        "x = f'{a}b'",
        "x = field(req='MQQB-4.1.1-01')",
        "x = 'MQQB-4.1.1-01'",
        "assert x == 1",
        "if TYPE_CHECKING:\n    x = 1",
        "import a",
        "return_nothing = None",
    ],
)
def test_what_stays_as_it_is(tmp_path, text):
    assert [change for change in changes(tmp_path, text) if not change.startswith("field(")] == []


def test_a_mutant_runs_with_its_change_only(shop):
    def prices(code):
        exec(code, names := {})
        return [names["price"](count) for count in (10, 11)]

    (mutant,) = (mutant for mutant in mutants(shop / "shop/prices.py") if mutant.text == "> -> >=")
    assert prices(mutant.code()) == [90, 99]
    assert prices(compile(dedent(PRODUCT), "prices.py", "exec")) == [100, 99]


# -- which mutants a row is asked about -----------------------------------------------------------------


def targets(shop: Path, row: str, test: str, lines: set[int]):
    path = shop / "shop/prices.py"
    chosen = Chooser(shop, ["shop"]).targets(
        Row(row, [f"tests/test_prices.py::{test}"], {path: lines}, []), "seed"
    )
    return [[(m.line, m.text) for m in some] for some in (chosen.about, chosen.elsewhere)]


def test_code_that_cites_a_row_comes_first_if_it_is_covered(shop):
    about, elsewhere = targets(shop, "SHOP-1.1-02", "test_unearned", {13, 15})
    assert {line for line, _ in about} == {13, 15}  # not 14, which the test does not run
    assert {line for line, _ in elsewhere} == {3, 5, 6}  # the limit and the table that they refer to


def test_a_comment_cites_for_the_entry_that_it_stands_beside(shop):
    about, elsewhere = targets(shop, "SHOP-1.1-03", "test_earned_in_a_table", set())
    assert {line for line, _ in about} == {5}
    assert {line for line, _ in elsewhere} == {6}


def test_a_comment_cites_for_the_statement_below(shop):
    module = Space(shop, ["shop"]).module("shop.prices")
    assert module.citations["SHOP-1.1-05"] == [(9, 9)]
    assert module.citations["SHOP-1.1-01"] == module.citations["SHOP-1.1-02"] == [(11, 15)]
