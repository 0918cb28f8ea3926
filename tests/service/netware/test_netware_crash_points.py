"""A queue service that is killed at any of its writes has, when it starts again, all that it had answered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.running import PATIENCE_S, environment

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
STEP = 31
"""Of some three hundred writes every thirty-first; the program itself may be run for all of them."""
IN_MEMORY = Path("/dev/shm")
"""A kill loses nothing that the system has, so that a file system in memory does as well as a disk."""


@pytest.mark.requirement("QMS-files-08", "QMS-flags-01", "QMS-flags-02", "QMS-jobfields-33")
def test_a_kill_at_any_write_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    place = IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=place) as folder:
        run = subprocess.run(
            [sys.executable, "-m", "tests.support.netware.netware_crash_points", folder, "5", str(STEP)],
            cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=3 * PATIENCE_S, check=False,
        )  # fmt: skip
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    assert report["wrong"] == {}, run.stderr
    assert report["status"] == 0
    assert int(report["writes"]) > 250
    assert report["kills"] >= int(report["writes"]) // STEP - 1
