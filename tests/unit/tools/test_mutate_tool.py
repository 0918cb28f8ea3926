"""tools/mutate/mutate.py on a product of its own: the kills of each row's tests in code about it."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.nightly import nightly
from tests.support.paths import ROOT
from tools.mutate import record
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
    # SHOP-2-01
    UNIT = "piece"

    def price(count: int) -> int:
        """The price of so many: SHOP-1.1-01 and -02."""
        if count > LIMIT:
            return count * RATES["many"]  # SHOP-1.1-04
        return count * RATES["few"]

    def count_down(number: int) -> None:
        """To zero: SHOP-3-01 and -02."""
        while number:
            number -= 1

    def half(number: int) -> int:
        return number // 2  # SHOP-3-04

    HALF = half(LIMIT)
'''
TESTS = """
    import pytest
    from shop.prices import HALF, LIMIT, RATES, count_down, price

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

    @requirement("SHOP-3-02")
    def test_of_other_code():
        assert LIMIT == 10

    @requirement("SHOP-3-04")
    def test_earned_when_a_module_is_imported():
        assert HALF == 5

    @requirement("SHOP-1.1-06")
    @requirement("SHOP-3-03")
    def test_without_a_citation():
        assert price(2) == 20
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
    return check(shop, "--rows", "10", "--seed", "3", "--json", str(shop.parent / "run.json"))


@pytest.fixture(scope="module")
def rows(shop, run):
    answer = json.loads((shop.parent / "run.json").read_text())
    return {row["id"]: row for row in answer["rows"]}


# -- the command ----------------------------------------------------------------------------------------


def section(run: subprocess.CompletedProcess[str], title: str) -> list[str]:
    """The rows that the answer lists under a title."""
    (text,) = (part for part in run.stdout.split("\n\n") if part.startswith(title))
    return re.findall(r"^  (SHOP-\S+):", text, re.MULTILINE)


@nightly
def test_the_kills_of_each_row_are_counted(run, rows):
    assert run.stderr == ""
    counted = {id_: (row["killed"], row["tried"]) for id_, row in rows.items()}
    assert counted == {
        "SHOP-1.1-01": (3, 3),
        "SHOP-1.1-02": (0, 3),  # its test asserts nothing
        "SHOP-1.1-03": (3, 3),
        "SHOP-1.1-04": (0, 1),  # a crash is no proof, and does not count
        "SHOP-1.1-06": (0, 0),
        "SHOP-2-01": (0, 0),
        "SHOP-3-01": (2, 3),
        "SHOP-3-02": (0, 0),
        "SHOP-3-03": (0, 0),
        "SHOP-3-04": (3, 3),  # its code runs once, when the module is imported
    }
    for id_, (killed, tried) in counted.items():
        line = rf"^ +\d+ s +\d+ {id_}: {killed}/{tried} \(\d+\.\d s\)$"
        assert bool(re.search(line, run.stdout, re.MULTILINE)) == bool(tried)


def test_weak_rows_are_listed_with_their_live_mutants(run, rows):
    title = "Rows whose tests leave more than one of five mutants alive"
    assert sorted(section(run, title)) == ["SHOP-1.1-02", "SHOP-1.1-04", "SHOP-3-01"]
    alive = [each for each in rows["SHOP-1.1-02"]["mutants"] if each["end"] == "alive"]
    assert [each["file"] for each in alive] == ["shop/prices.py"] * 3
    for each in alive:
        assert f"    shop/prices.py:{each['line']}: {each['change']}\n" in run.stdout


def test_rows_without_code_about_them_say_so(run, rows):
    assert sorted(section(run, "Rows without code about them")) == ["SHOP-1.1-06", "SHOP-3-02", "SHOP-3-03"]
    assert rows["SHOP-3-02"]["why_not"] == (
        "its tests run no code to change where it is cited: shop/prices.py:17"
    )
    assert (
        rows["SHOP-3-03"]["why_not"]
        == "no code cites it: needs a citation; nearby: shop/prices.py:17, shop/prices.py:23"
    )


def test_a_row_to_be_cited_is_shown_the_code_of_its_neighbours(shop):
    run = check(shop, "--row", "SHOP-1.1-06")
    nearby = "shop/prices.py:14, shop/prices.py:5, shop/prices.py:11"
    assert f"SHOP-1.1-06: no code cites it: needs a citation; nearby: {nearby} (" in run.stdout


@nightly
def test_the_share_is_of_the_judged_rows(run, rows):
    assert section(run, "Rows that can't be judged") == ["SHOP-2-01"]
    assert [id_ for id_, row in rows.items() if not row["judged"]] == ["SHOP-2-01"]
    assert run.stdout.splitlines()[-2:] == [
        "9 rows judged, 1 not; 16 mutants, 11 killed",
        "3 rows (33%) with at least four of five killed, 3 with fewer, 3 without code about them",
    ]
    assert run.returncode == 1


def test_the_seed_tells_the_story_of_a_row_again(shop, run):
    again = check(shop, "--row", "SHOP-1.1-02", "--seed", "3")
    story = [line for line in again.stdout.splitlines() if line.startswith("    shop/")]
    assert len(story) == 3
    assert "\n".join(story) in run.stdout


def test_the_tree_is_not_touched(shop, run):
    files = sorted(path.relative_to(shop).as_posix() for path in shop.rglob("*") if path.is_file())
    assert files == ["pytest.ini", "shop/__init__.py", "shop/prices.py", "tests/test_prices.py"]
    assert (shop / "shop/prices.py").read_text() == dedent(PRODUCT)


def test_good_rows_by_name_end_with_status_0(shop):
    run = check(shop, "--row", "SHOP-1.1-01", "SHOP-1.1-03")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines()[-2] == "2 rows judged, 0 not; 6 mutants, 6 killed"


def test_a_mutant_without_end_is_killed_in_time(shop):
    started = time.monotonic()
    run = check(shop, "--row", "SHOP-3-01", "--patience", "1")
    assert "SHOP-3-01: 2/3" in run.stdout
    assert time.monotonic() - started < 60


def test_a_row_without_a_test_is_refused(shop):
    run = check(shop, "--row", "SHOP-9-99")
    assert (run.returncode, run.stderr) == (2, "no test names SHOP-9-99\n")


# -- the record -----------------------------------------------------------------------------------------


@nightly
def test_pieces_of_a_sample_are_recorded_together(tmp_path, shop):
    root = shutil.copytree(shop, tmp_path / "project")
    (root / "docs/conformance").mkdir(parents=True)
    table = root / "docs/conformance/mutants.tsv"
    for skip in ("0", "5"):
        check(root, "--rows", "5", "--skip", skip, "--seed", "3", "--record")
    with table.open() as file:
        lines = list(csv.DictReader(file, delimiter="\t"))
    assert [line["id"] for line in lines] == [
        *("SHOP-1.1-01", "SHOP-1.1-02", "SHOP-1.1-03", "SHOP-1.1-04", "SHOP-1.1-06"),
        *("SHOP-3-01", "SHOP-3-02", "SHOP-3-03", "SHOP-3-04"),  # SHOP-2-01 is not judged
    ]
    assert {line["seed"] for line in lines} == {"3"}
    before = table.read_text()
    table.write_text(before.replace("SHOP-1.1-03\t3", "SHOP-1.1-03\t1"))
    check(root, "--row", "SHOP-1.1-03", "--seed", "3", "--record")
    assert table.read_text() == before


def measured(*counts: tuple[int, int]) -> list[record.Measured]:
    return [
        record.Measured(f"SHOP-1-{number:02}", *count, 3, f"2026-11-{number:02}")
        for number, count in enumerate(counts, 1)
    ]


def test_the_sentence_counts_what_is_recorded():
    text = record.sentence(measured((5, 5), (4, 5), (3, 4), (0, 0)))
    assert "Of 4 rows (last measured on 2026-11-04) 3 have code that was changed" in text
    assert "the tests of 2 (50 %; the aim is 90 %) notice at least four of five" in text
    assert text.endswith("Together they notice 12 of 14.")
    assert record.sentence([]).endswith("no measurement is recorded.")


@pytest.mark.parametrize(
    "line, reason",
    [
        ("SHOP-1-01\t1\t2\t3", "line 2: not a measured row"),
        ("SHOP-1-01\ta\t2\t3\t2026-11-01", "line 2: not a measured row"),
        ("SHOP-1-01\t3\t2\t3\t2026-11-01", "line 2: 3 killed of 2 tried"),
    ],
)
def test_a_wrong_record_is_refused(tmp_path, line, reason):
    table = tmp_path / "mutants.tsv"
    table.write_text("\t".join(record.COLUMNS) + f"\n{line}\n")
    with pytest.raises(record.RecordError, match=reason):
        record.read(table)
    table.write_text("id\tkilled\n")
    with pytest.raises(record.RecordError, match="must name the columns id, killed, tried, seed, date"):
        record.read(table)


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
        (
            "x = {f: A.b, g: A.c, h: B.d}",
            [
                *("f: ... -> nothing", "f: ... -> A.c", "g: ... -> nothing", "g: ... -> A.b"),
                "h: ... -> nothing",
            ],
        ),
        ("f(a, b=c)", ["f(a, b=c) -> nothing", "b=c -> nothing"]),
        ("a.b = c", ["a.b = c -> nothing"]),
        ("x = f(a.b, c)", ["a.b -> 0"]),
        ("x = (a, b.c, d())", ["b.c -> 0"]),
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
        "x = field(section='2.2.1', order_req='MQQB-4.1.1-01')",
        "x = 'MQQB-4.1.1-01'",
        "assert x == 1",
        "if TYPE_CHECKING:\n    x = 1",
        "import a",
        "return_nothing = None",
        "__slots__ = ('a', 'b')",
        "def __repr__(self):\n    return 'a' + str(1)",
        "raise E('word', f'{a}')",
        "x: T = cast('T', y)",
        "x = Literal['a', 'b']",
        "T = TypeVar('T', bound='B')",
    ],
)
def test_what_stays_as_it_is(tmp_path, text):
    whole = ("field(", "raise ")
    assert [change for change in changes(tmp_path, text) if not change.startswith(whole)] == []


def test_a_mutant_runs_with_its_change_only(shop):
    def prices(code):
        exec(code, names := {})
        return [names["price"](count) for count in (10, 11)]

    (mutant,) = (mutant for mutant in mutants(shop / "shop/prices.py") if mutant.text == "> -> >=")
    assert prices(mutant.code()) == [90, 99]
    assert prices(compile(dedent(PRODUCT), "prices.py", "exec")) == [100, 99]


TRIAL = """
import sys
from pathlib import Path
from tools.mutate.mutants import mutants
from tools.mutate.plugins import Project
from tools.mutate.runs import Trial
root = Path(sys.argv[1])
project = Project(root, ("shop",), written=tuple(sys.argv[2:]))
with Trial(project, "SHOP-1", ["tests/test_rate.py"], 60) as trial:
    print({trial.judge(mutant) for mutant in mutants(root / "shop/rates.py")})
"""


@pytest.mark.parametrize(("written", "end"), [((), "alive"), (("shop.made",), "killed")])
def test_what_is_made_of_a_module_is_hidden_from_a_mutant(tmp_path, written, end):
    for name, text in {
        "shop/__init__.py": "try:\n    from shop.made import RATE\n"
        "except ImportError:\n    from shop.rates import RATE\n",
        "shop/made.py": "RATE = 10\n",
        "shop/rates.py": "RATE = 10\n",
        "tests/test_rate.py": "import pytest, shop\n@pytest.mark.requirement('SHOP-1')\n"
        "def test_rate():\n    assert shop.RATE == 10\n",
        "pytest.ini": "[pytest]\npythonpath = .\nmarkers = requirement(id): what the test proves\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", TRIAL, str(tmp_path), *written]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert run.stdout == f"{{'{end}'}}\n"


# -- which mutants a row is asked about -----------------------------------------------------------------


def lines_about(shop: Path, row: str, test: str, covered: set[int]) -> set[int]:
    """The lines of the mutants that are chosen for a row."""
    covering = Row(row, [f"tests/test_prices.py::{test}"], {shop / "shop/prices.py": covered}, [], {})
    return {mutant.line for mutant in Chooser(shop, ["shop"]).mutants(covering, "seed")}


def test_code_that_cites_a_row_is_about_it_if_covered(shop):
    assert lines_about(shop, "SHOP-1.1-02", "test_unearned", {13}) == {13}
    assert lines_about(shop, "SHOP-1.1-02", "test_unearned", {13, 15}) == {13, 15}


def test_a_closer_citation_takes_a_line_away(shop):
    assert lines_about(shop, "SHOP-1.1-02", "test_unearned", {13, 14, 15}) == {13, 15}
    assert lines_about(shop, "SHOP-1.1-04", "test_crashes_are_not_enough", {13, 14, 15}) == {14}


def test_a_comment_cites_for_the_entry_that_it_stands_beside(shop):
    assert lines_about(shop, "SHOP-1.1-03", "test_earned_in_a_table", set()) == {5}


def test_a_comment_cites_for_the_statement_below(shop):
    module = Space(shop, ["shop"]).module("shop.prices")
    assert module.citations["SHOP-2-01"] == [(9, 9)]
    assert module.citations["SHOP-1.1-01"] == module.citations["SHOP-1.1-02"] == [(11, 15)]


def test_ids_in_a_tuple_of_an_argument_cite_for_the_call(tmp_path):
    path = tmp_path / "shop" / "fields.py"
    path.parent.mkdir()
    path.write_text('FIELD = Field(\n    "a",\n    2,\n    req=("SHOP-4-01", "SHOP-4-02"),\n)\n')
    module = Space(tmp_path, ["shop"]).module("shop.fields")
    assert module.citations == {"SHOP-4-01": [(1, 5)], "SHOP-4-02": [(1, 5)]}
