"""Modules can still be imported by their former names, with a warning that says the present ones."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from msmqwire.moved import MOVED, present_name
from tests.support.installed import library
from tests.support.paths import ROOT

FORMER = sorted(f"msmqwire.{name}" for name in MOVED)


@pytest.mark.parametrize("former", FORMER)
def test_a_former_name_gives_the_same_module_and_a_warning(former: str) -> None:
    if former == "msmqwire.layers":
        library("scapy")
    present = present_name(former)
    assert present is not None
    sys.modules.pop(former, None)
    with pytest.warns(DeprecationWarning, match=f"^{former} is {present} now$"):
        module = import_module(former)
    assert module is import_module(present)
    assert module.__name__ == module.__spec__.name == present


def test_modules_below_are_not_loaded_twice() -> None:
    library("scapy")
    program = (
        "import msmqwire.tables.columns, sys\n"
        "from msmqwire.columnar.columns import COLUMNS\n"
        "from msmqwire import columnar, layers, lint\n"
        "import msmqwire.dissection.tracker\n"
        "assert COLUMNS is msmqwire.tables.columns.COLUMNS\n"
        "assert columnar is msmqwire.tables\n"
        "assert msmqwire.dissection.tracker is sys.modules['msmqwire.analysis.dissection.tracker']\n"
        "import msmqwire.lint.registry\n"
        "assert callable(msmqwire.lint)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "<string>:2: DeprecationWarning: msmqwire.columnar is msmqwire.tables now" in done.stderr


@pytest.mark.parametrize(
    "name", ["msmqwire.nothing", "msmqwire.columnary", "msmqwire.tables.nothing", "lake"]
)
def test_a_name_that_nothing_ever_had_is_an_error(name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=name.rpartition(".")[2]):
        import_module(name)


def test_present_names_warn_of_nothing() -> None:
    program = "import msmqwire; msmqwire.dissect, msmqwire.table, msmqwire.read_capture; msmqwire.lint"
    command = [sys.executable, "-W", "error::DeprecationWarning:__main__", "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
