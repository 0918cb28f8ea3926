"""A store that fails while a server uses it: the server ends with an error, and no client waits for ever."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msmqwire.errors import StoreDamaged, Unreachable
from msmqwire.qm.runtime.local import attach
from tests.support.qm import failing_store
from tests.support.running import LEDGER, ORDERS, PATIENCE_S, peeked, put, recoverable


def test_a_server_whose_store_is_damaged_ends(tmp_path: Path) -> None:
    mark, data = tmp_path / "broken", tmp_path / "alpha"
    reason = "database disk image is malformed"
    server = failing_store.start(mark, StoreDamaged, reason, data, ORDERS, LEDGER)
    try:
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
    error = {"error": f"queues.msmq: {reason}", "path": "", "offset": None}
    assert (server.returncode, json.loads(errors.splitlines()[-1])) == (65, error)
    assert peeked(data, ORDERS) == [b"stored"]
