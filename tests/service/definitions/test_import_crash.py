"""An import that is killed at each step has changed nothing, or the next command finishes it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from msmqwire.qm.runtime.key_ring import KeyFile
from tests.support.nightly import nightly
from tests.support.running import ORDERS, called, environment

KILLED = """
import os, signal, sys
from msmqwire.qm.runtime.definitions import importing, key_definitions
from msmqwire.qm.runtime import key_ring, user_certificates
from msmqwire.cli import main

def kill(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def after(module, name):
    original = getattr(module, name)
    def run(*arguments, **named):
        found = original(*arguments, **named)
        kill()
        return found
    setattr(module, name, run)

match sys.argv.pop(1):
    case "before the commit":
        after(importing, "apply")
    case "after the commit":
        key_definitions.apply_secrets = kill
    case "after the keys":
        after(key_ring, "write_secret")
    case "after the directory":
        after(key_definitions, "register_certificate")
    case "before the note goes":
        importing.finished = kill
main()
"""
SID = "S-1-5-21-1-2-3-1001"


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Definitions of a folder with queue, setting, certificate and keys."""
    data = tmp_path_factory.mktemp("wanted") / "data"
    assert called("queue", "create", ORDERS, "--data", data).status == 0
    assert called("cert", "create", "--data", data, "--sid", SID, "--bits", "1024").status == 0
    assert called("key", "create", "--data", data, "--bits", "1024").status == 0
    assert called("settings", "set", "ping=yes", "--data", data).status == 0
    return exported(data)


def exported(data: Path) -> dict[str, Any]:
    definitions: dict[str, Any] = json.loads(called("definitions", "export", data, "--with-secrets").out)
    return definitions


@pytest.mark.parametrize(
    ("step", "done"),
    [
        ("before the commit", False),
        ("after the commit", True),
        pytest.param("after the keys", True, marks=nightly),
        ("after the directory", True),
        pytest.param("before the note goes", True, marks=nightly),
    ],
)
def test_killed_at_each_step(tmp_path: Path, wanted: dict[str, Any], step: str, done: bool) -> None:
    data, file = tmp_path / "data", tmp_path / "wanted.json"
    assert called("queue", "create", "private$\\first", "--data", data).status == 0
    before = exported(data)
    file.write_text(json.dumps(wanted))
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, step, "definitions", "import", str(data), str(file)],
        env=environment(), capture_output=True, check=False,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL, killed
    after = exported(data)
    if done:
        queues = [*before["queues"], {**wanted["queues"][0], "private_number": 6}]
        assert after == {**wanted, "queues": queues}
        assert KeyFile(data).read().keys
    else:
        assert after == before
    again = called("definitions", "import", data, file)
    assert (again.status, bool(again.out)) == (0, not done)
    assert exported(data)["certificates"] == wanted["certificates"]
