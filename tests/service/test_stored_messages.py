"""Messages in the store only: how often one is read, and that its outcome is reported all the same."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from msmqwire.qm.model.changes import Key, Table
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.store.sqlite import SqliteStore

ORDERS, ANSWERS = r"private$\orders", r"private$\answers"
TO = rf"DIRECT=OS:alpha\{ORDERS}"


def stored(path: Path, **properties: Any) -> None:
    """Leave one recoverable message in a folder."""
    with attach(path, create=True) as local:
        name = local.call("status")["name"]
        for queue in (ORDERS, ANSWERS):
            local.call("create", queue=queue)
        body = b64encode(b"order 7").decode()
        message = {"body": body, "delivery": "recoverable", **properties}
        if "acknowledge" in message:
            message["admin_queue"] = rf"DIRECT=OS:{name}\{ANSWERS}"
        local.call("send", to=rf"DIRECT=OS:{name}\{ORDERS}", messages=[message])


@pytest.fixture
def packets_read(monkeypatch: pytest.MonkeyPatch) -> list[Key]:
    """The packets that are read from stores, from now on."""
    found: list[Key] = []
    read = SqliteStore.row

    def row(self: SqliteStore, table: Table, key: Key) -> bytes | None:
        if table is Table.PACKET:
            found.append(key)
        return read(self, table, key)

    monkeypatch.setattr(SqliteStore, "row", row)
    return found


def received(path: Path) -> bytes:
    """Receive the message, and end it."""
    with attach(path) as local:
        (message,) = local.call("receive", queue=ORDERS)["messages"]
        local.call("end", done=[message["receipt"]])
        assert local.call("peek", queue=ORDERS)["messages"] == []
    return str(message["body"]).encode()


def test_a_message_that_nobody_follows_is_read_once(tmp_path: Path, packets_read: list[Key]) -> None:
    stored(tmp_path)
    packets_read.clear()
    assert received(tmp_path) == b64encode(b"order 7")
    assert len(packets_read) == 1


def test_the_receipt_of_one_that_is_followed_is_told(tmp_path: Path) -> None:
    stored(tmp_path, acknowledge=["pos_receive"])
    received(tmp_path)
    with attach(tmp_path) as local:
        (answer,) = local.call("peek", queue=ANSWERS)["messages"]
    assert answer["class_name"] == "ACK_RECEIVE"


@pytest.mark.parametrize("properties", [{"acknowledge": ["neg_receive"]}, {}])
def test_a_purge_tells_those_who_asked_without_a_reader(tmp_path: Path, properties: dict[str, Any]) -> None:
    stored(tmp_path, **properties)
    with attach(tmp_path) as local:  # the message was never in the memory of this process
        local.call("purge", queue=ORDERS)
        answers = [one["class_name"] for one in local.call("peek", queue=ANSWERS)["messages"]]
    assert answers == (["NACK_Q_PURGED"] if properties else [])
