"""A server as a process of its own whose store fails once a mark is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from msmqwire.errors import StoreError
from tests.support.running import ADDRESS, environment

_PROGRAM = """
import sys
from pathlib import Path
from msmqwire import errors
from msmqwire.cli import main
from msmqwire.service.store.sqlite import SqliteStore

commit, mark, kind, reason = SqliteStore.commit, Path(sys.argv.pop(1)), sys.argv.pop(1), sys.argv.pop(1)

def failing(self, changes):
    if mark.exists():
        raise getattr(errors, kind)(reason, file="queues.msmq")
    commit(self, changes)

SqliteStore.commit = failing
main()
"""


def start(
    mark: Path, error: type[StoreError], reason: str, data: Path, *queues: str
) -> subprocess.Popen[str]:
    """Start a server whose commits fail with an error while the file `mark` is there."""
    arguments = ["serve", "--data", data, "--name", "alpha", "--listen", f"{ADDRESS}:0", "--ping", "off"]
    for queue in queues:
        arguments += ["--queue", queue]
    server = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, mark, error.__name__, reason, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), text=True,
    )  # fmt: skip
    assert server.stdout is not None
    if not mark.exists():
        assert server.stdout.readline().startswith("ready alpha ")
    return server
