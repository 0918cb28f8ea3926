"""The queue manager with its modules compiled does what it does without, seed by seed and over sockets.

Compiling takes more than a minute: ``make compiled`` runs this, the usual run of the tests does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tools.compiled_copy import copy_compiled

pytestmark = pytest.mark.skipif("MSMQWIRE_COMPILE" not in os.environ, reason="make compiled")
SEEDS = """
import hashlib, io, sys
import msmqwire.qm.core
from msmqwire.qm.sim.plan import make_plan
from msmqwire.qm.sim.world import World

print(msmqwire.qm.core.__file__, file=sys.stderr)
for seed in range(60):
    capture = io.BytesIO()
    run = World(make_plan(seed, secured=0.0), capture=capture).run()
    digest = hashlib.sha256(capture.getvalue()).hexdigest()
    print(seed, run.violation, sorted(run.counts.items(), key=str), digest)
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled") / "copy"
    assert len(copy_compiled(folder)) > 80
    return folder


def told_by_seeds(folder: Path) -> tuple[str, str]:
    environment = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", SEEDS]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=True
    )
    return done.stdout, done.stderr


def test_runs_of_the_simulator_are_the_same_to_the_last_byte(compiled: Path) -> None:
    expected, pure = told_by_seeds(ROOT)
    told, library = told_by_seeds(compiled)
    assert pure.strip().endswith(".py")
    assert library.strip().endswith((".so", ".pyd"))
    assert told == expected
    assert len(told.splitlines()) == 60


@pytest.mark.parametrize(
    "tests", ["test_torture.py", "test_serve.py", "test_traffic.py", "test_queue_messages.py"]
)
def test_servers_and_clients_pass_their_tests(compiled: Path, tests: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/service/{tests}"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        command, cwd=compiled, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]
