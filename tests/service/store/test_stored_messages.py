"""Messages that are only in the store: how often one is read, and that its outcome is reported."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from msmqwire.qm.model.tables import Table
from msmqwire.qm.runtime.local import attach
from msmqwire.service.store.changes import Key
from msmqwire.service.store.sqlite import SqliteStore

ORDERS, ANSWERS = r"private$\orders", r"private$\answers"
TO = rf"DIRECT=OS:alpha\{ORDERS}"


def store_message(path: Path, **properties: Any) -> None:
    """Store one recoverable message in a folder."""
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
    """The keys of packets that are read from stores."""
    keys: list[Key] = []
    read = SqliteStore.row

    def row(self: SqliteStore, table: Table, key: Key) -> bytes | None:
        if table is Table.PACKET:
            keys.append(key)
        return read(self, table, key)

    monkeypatch.setattr(SqliteStore, "row", row)
    return keys


def receive(path: Path) -> bytes:
    """Receive and confirm the message."""
    with attach(path) as local:
        (message,) = local.call("receive", queue=ORDERS)["messages"]
        local.call("end", done=[message["receipt"]])
        assert local.call("peek", queue=ORDERS)["messages"] == []
    return str(message["body"]).encode()


def test_a_message_that_nobody_follows_is_read_once(tmp_path: Path, packets_read: list[Key]) -> None:
    store_message(tmp_path)
    packets_read.clear()
    assert receive(tmp_path) == b64encode(b"order 7")
    assert len(packets_read) == 1


def test_the_receipt_of_one_that_is_followed_is_reported(tmp_path: Path) -> None:
    store_message(tmp_path, acknowledge=["pos_receive"])
    receive(tmp_path)
    with attach(tmp_path) as local:
        (answer,) = local.call("peek", queue=ANSWERS)["messages"]
    assert answer["class_name"] == "ACK_RECEIVE"


@pytest.mark.parametrize("properties", [{"acknowledge": ["neg_receive"]}, {}])
def test_a_purge_tells_those_who_asked_without_a_reader(tmp_path: Path, properties: dict[str, Any]) -> None:
    store_message(tmp_path, **properties)
    with attach(tmp_path) as local:  # the message is in the store only
        local.call("purge", queue=ORDERS)
        answers = [answer["class_name"] for answer in local.call("peek", queue=ANSWERS)["messages"]]
    assert answers == (["NACK_Q_PURGED"] if properties else [])
