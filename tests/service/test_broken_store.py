"""A store that fails while a server uses it: the server ends with an error, and no client waits for ever."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from msmqwire.errors import Unreachable
from msmqwire.qm.runtime.local import attach
from tests.support.running import ADDRESS, LEDGER, ORDERS, PATIENCE_S, environment, peeked, put, recoverable

SERVE = """
import sys
from pathlib import Path
from msmqwire.cli import main
from msmqwire.errors import StoreDamaged
from msmqwire.qm.store.sqlite import SqliteStore

commit, mark = SqliteStore.commit, Path(sys.argv.pop(1))

def breaking(self, changes):
    if mark.exists():
        raise StoreDamaged("database disk image is malformed", file="queues.msmq")
    commit(self, changes)

SqliteStore.commit = breaking
main()
"""


def test_a_server_whose_store_is_damaged_ends(tmp_path: Path) -> None:
    mark, data = tmp_path / "broken", tmp_path / "alpha"
    arguments = ["serve", "--data", data, "--name", "alpha", "--listen", f"{ADDRESS}:0", "--ping", "off"]
    server = subprocess.Popen(
        [sys.executable, "-c", SERVE, *map(str, (mark, *arguments, "--queue", ORDERS, "--queue", LEDGER))],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        assert server.stdout.readline().startswith("ready alpha ")
        with attach(data) as other, attach(data) as local:
            put(local, ORDERS, *recoverable(b"stored"))
            mark.touch()
            with pytest.raises(Unreachable):
                put(local, ORDERS, *recoverable(b"lost"))
            with pytest.raises(Unreachable):
                other.call("status")
        _, errors = server.communicate(timeout=PATIENCE_S)
    finally:
        server.kill()
        server.wait(PATIENCE_S)
    error = {"error": "queues.msmq: database disk image is malformed", "path": "", "offset": None}
    assert (server.returncode, json.loads(errors.splitlines()[-1])) == (65, error)
    assert peeked(data, ORDERS) == [b"stored"]
