"""The session of commands in ``docs/netware-client.md``, in its order."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from msmqwire.ncp.constants import ObjectType
from tests.support.netware.netware_running import in_memory
from tests.support.netware.netware_station import MemoryServer
from tests.support.paths import ROOT
from tests.support.running import called

PAGE = (ROOT / "docs/netware-client.md").read_text(encoding="utf-8")
(SESSION,) = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
STEPS = re.findall(r"^\$ msmqwire (.*)\n((?:\{.*\n)*)", SESSION, re.MULTILINE)


def test_the_session_goes_as_it_is_shown(tmp_path: Path) -> None:
    server = MemoryServer()
    user, printer = server.add("ALICE"), server.add("PS1", ObjectType.NWOT_PRINT_SERVER)
    for _ in range(2):
        server.add(f"OTHER{_}")
    queue = server.queue("LASER")
    server.admit(queue, "Q_USERS", user)
    server.admit(queue, "Q_SERVERS", printer)
    letter = tmp_path / "letter.ps"
    letter.write_bytes(bytes(1024))
    assert len(STEPS) == SESSION.count("$ ") == 7
    with in_memory(server) as running:
        places = {"10.0.0.5:524": f"{running.address}:{running.port}", "letter.ps": str(letter)}
        for line, shown in STEPS:
            run = called(*(places.get(word, word) for word in shlex.split(line)))
            assert [json.loads(text) for text in run.out.splitlines()] == [
                json.loads(text) for text in shown.splitlines()
            ], line
            assert (run.status, run.err) == (1 if "exit 3" in line else 0, "")
