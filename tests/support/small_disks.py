"""Programs that mount a small disk: run in a mount namespace of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT
from tests.support.running import PATIENCE_S, environment


def report_of(module: str, folder: Path) -> dict[str, Any]:
    """Run a module with a folder to mount a disk at; return what it prints. Skips where nobody may mount."""
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare")
    flags = "-m" if os.getuid() == 0 else "-rm"
    probe = subprocess.run(
        ["unshare", flags, "mount", "-t", "tmpfs", "none", folder], capture_output=True, check=False
    )
    if probe.returncode:
        pytest.skip("this machine lets nobody mount")
    run = subprocess.run(
        ["unshare", flags, sys.executable, "-m", module, folder],
        cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=3 * PATIENCE_S, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    report: dict[str, Any] = json.loads(run.stdout)
    return report
