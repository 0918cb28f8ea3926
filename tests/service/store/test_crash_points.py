"""A queue manager that is killed at any of its writes has, when it starts again, all that it had answered.

The CI kills it at each fifth write, `make nightly` at each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.nightly import nightly
from tests.support.paths import ROOT
from tests.support.running import PATIENCE_S, environment

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
PARTS = 5


@pytest.mark.parametrize("first", [1, *(pytest.param(first, marks=nightly) for first in range(2, PARTS + 1))])
def test_a_kill_at_any_write_loses_nothing_that_was_answered(tmp_path: Path, first: int) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.qm.crash_points", tmp_path, str(first), str(PARTS)],
        cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=3 * PATIENCE_S, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    assert report["wrong"] == {}, run.stderr
    assert report["status"] == 0
    assert int(report["writes"]) > 100
    assert report["kills"] >= int(report["writes"]) // PARTS - 1
