"""`attach`: the queues of a folder for programs, through its server or in its store."""

from __future__ import annotations

import socket
import threading
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msmqwire.errors import InvalidName, InvalidValue, QueueError, StoreInUse, StoreMissing, Unreachable
from msmqwire.qm.runtime.addresses import AddressOverrides
from msmqwire.qm.runtime.data_folder import DataFolder
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.store import open_store
from msmqwire.service.control import client as local_module
from msmqwire.service.control.client import Local
from msmqwire.service.folder import ControlAddress
from tests.support.running import (
    LEDGER,
    ORDERS,
    InThread,
    bodies,
    message,
    options,
    peeked,
    put,
    recoverable,
    served,
    until,
)

AWAY = r"DIRECT=OS:away\private$\orders"
OTHER = r"private$\other"
GUID = "12345678-1234-1234-1234-123456789abc"


@pytest.fixture(params=["served", "store"])
def queues(request: pytest.FixtureRequest, data: Path) -> Iterator[Local]:
    """The queues of a folder, with and without a server."""
    with served(options(data, ORDERS, f"{LEDGER};transactional")):
        if request.param == "served":
            with attach(data) as local:
                assert local.served
                yield local
    if request.param == "store":
        with attach(data) as local:
            assert not local.served
            yield local


EVERYTHING: dict[str, Any] = {
    "label": "caf\xe9 \N{SNOWMAN} \N{GRINNING FACE} \u05d0\u200f",
    "body": b64encode(bytes(range(256))).decode(),
    "body_type": 0x2011,
    "priority": 6,
    "class": 0,
    "correlation": f"{GUID}\\77",
    "application": 0xFFFFFFFF,
    "extension": b64encode(b"\x00\x01\xff").decode(),
    "acknowledge": ["pos_arrival", "pos_receive", "neg_arrival", "neg_receive"],
    "admin_queue": r"DIRECT=OS:away\PRIVATE$\admin",
    "response_queue": r"DIRECT=TCP:10.0.0.5\PRIVATE$\answers",
    "journal": True,
    "dead_letter": True,
    "time_to_reach_queue": 86_400,
    "time_to_be_received": 172_800,
}


@pytest.mark.parametrize("delivery, queue", [("recoverable", ORDERS), ("transactional", LEDGER)])
def test_every_property_of_a_message_goes_through(queues: Local, delivery: str, queue: str) -> None:
    expected = {**EVERYTHING, "delivery": delivery}
    if delivery == "transactional":
        expected["priority"] = 0  # the only one they can have: MQMQ-2.2.19.1
    (identifier,) = put(queues, queue, expected)
    (peeked,) = queues.call("peek", queue=queue)["messages"]
    (received,) = queues.call("receive", queue=queue)["messages"]
    assert received.pop("receipt") >= 1
    assert received == peeked
    assert received["identifier"] == identifier
    different = {name: (received[name], value) for name, value in expected.items() if received[name] != value}
    assert different == {}
    assert received["sent"]
    assert received["arrived"]


@pytest.mark.parametrize(
    "name, value",
    [
        ("label", ""),
        ("label", "x" * 249),
        ("label", "\N{GRINNING FACE}" * 124),
        ("body", b64encode(b"\x00" * 100_001).decode()),
        ("body_type", 8),
        ("class", 1),
        ("acknowledge", ["pos_receive"]),
        ("time_to_reach_queue", 60),
        ("extension", None),
        ("journal", False),
    ],
)
def test_one_property_of_a_message_goes_through(queues: Local, name: str, value: object) -> None:
    put(queues, ORDERS, {"delivery": "recoverable", "admin_queue": AWAY, name: value})
    (received,) = queues.call("receive", queue=ORDERS)["messages"]
    assert received[name] == value


def test_what_is_not_ended_is_back_after_closing(data: Path) -> None:
    with attach(data, create=True) as local:
        local.call("create", queue=ORDERS)
        name = local.call("status")["name"]
        put(local, ORDERS, *recoverable(b"1", b"2"), computer=name)
        received = local.call("receive", queue=ORDERS, count=2)["messages"]
        local.call("end", done=[received[0]["receipt"]])
    assert peeked(data, ORDERS) == [b"2"]


def test_errors_are_the_same_both_ways(queues: Local) -> None:
    with pytest.raises(QueueError) as missing:
        queues.call("show", queue=r"private$\nothing")
    assert missing.value.hresult == 0xC00E0003
    with pytest.raises(InvalidValue) as wrong:
        queues.call("receive", queue=ORDERS, count=0)
    assert wrong.value.path == "count"
    with pytest.raises(InvalidName) as name:
        queues.call("show", queue=r"private$\a\b")
    assert (name.value.offset, name.value.hresult) == (10, 0xC00E0014)


def test_there_has_to_be_a_folder_unless_it_is_to_be_made(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing) as caught:
        attach(tmp_path / "none")
    assert str(tmp_path / "none") in str(caught.value)
    assert not (tmp_path / "none").exists()
    with attach(tmp_path / "none", create=True) as local:
        assert local.call("list")["queues"]


def test_a_store_opened_by_a_program_without_a_server_is_in_use(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attach(data, create=True).close()
    monkeypatch.setattr(local_module, "STARTING_S", 0.2)
    store = open_store(data / "queues.msmq")
    with pytest.raises(StoreInUse):
        attach(data)
    store.close()
    attach(data).close()


def test_it_waits_for_a_server_that_is_just_starting(data: Path) -> None:
    attach(data, create=True).close()
    store = open_store(data / "queues.msmq")
    threading.Timer(0.3, store.close).start()
    with attach(data) as local:
        assert local.call("status")["queues"] == 3


@pytest.mark.parametrize("content", ["", "{", "[]", '{"path": 1}', '{"path": "", "port": "x", "token": ""}'])
def test_a_damaged_control_file_is_as_none(data: Path, content: str) -> None:
    attach(data, create=True).close()
    (data / "control").write_text(content)
    with attach(data) as local:
        assert not local.served


def test_a_stale_control_file_is_as_none(data: Path) -> None:
    attach(data, create=True).close()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for address in (ControlAddress(path=str(data / "no.sock")), ControlAddress(port=port, token="x")):
        DataFolder(data).write_control(address)
        with attach(data) as local:
            assert not local.served


def test_a_server_lost_in_mid_answer_is_unreachable(data: Path) -> None:
    attach(data, create=True).close()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        DataFolder(data).write_control(ControlAddress(port=listener.getsockname()[1], token="x"))
        local = attach(data)
        peer, _ = listener.accept()
        peer.sendall(b'{"id": 1, "ans')
        peer.close()
        with pytest.raises(Unreachable):
            local.call("status")
        local.close()


# -- outgoing queues ------------------------------------------------------------------------------------


def test_an_outgoing_queue_is_listed_read_and_purged(queues: Local) -> None:
    queues.call("send", to=AWAY, messages=recoverable(b"1", b"2"))
    (outgoing,) = [status for status in queues.call("list")["queues"] if status["kind"] == "outgoing"]
    assert outgoing["messages"] == 2
    assert outgoing["queue"].lower() == AWAY.lower()
    assert set(outgoing) == {"queue", "kind", "messages", "bytes", "state", "next_hops", "last_connection"}
    assert bodies(queues.call("peek", queue=AWAY, count=9)["messages"]) == [b"1", b"2"]
    with pytest.raises(QueueError):
        queues.call("delete", queue=AWAY)
    with pytest.raises(InvalidValue) as caught:
        queues.call("set", queue=AWAY, paused=True, label="x")
    assert caught.value.path == "label"
    assert queues.call("purge", queue=AWAY)["purged"] == 2
    assert queues.call("peek", queue=AWAY)["messages"] == []


def test_a_paused_outgoing_queue_sends_only_after_it_is_resumed(data: Path, tmp_path: Path) -> None:
    beta = tmp_path / "beta"
    beta_options = options(beta, ORDERS, OTHER, address="127.0.0.32", name="beta")
    to = rf"DIRECT=OS:beta\{ORDERS}"
    with served(beta_options) as server:
        overrides = AddressOverrides(hosts={"beta": ("127.0.0.32", server.port), "away": ("127.0.0.33", 1)})
        with served(options(data, overrides=overrides)), attach(data) as local:
            local.call("send", to=to, messages=recoverable(b"first"))
            until(lambda: peeked(beta, ORDERS) == [b"first"], "the connection is open")
            assert local.call("set", queue=to, paused=True)["state"] == "OnHold"
            local.call("send", to=to, messages=recoverable(b"waiting"))
            local.call("send", to=rf"DIRECT=OS:beta\{OTHER}", messages=recoverable(b"other"))
            until(lambda: peeked(beta, OTHER) == [b"other"], "another queue goes on")
            assert peeked(beta, ORDERS) == [b"first"]
            assert bodies(local.call("peek", queue=to, count=9)["messages"])[-1] == b"waiting"
            assert local.call("set", queue=to, paused=False)["state"] != "OnHold"
            until(lambda: peeked(beta, ORDERS) == [b"first", b"waiting"], "the queue is resumed")


def test_a_computer_that_is_down_is_reported(data: Path) -> None:
    with (
        served(options(data, overrides=AddressOverrides(hosts={"away": ("127.0.0.33", 1)}))),
        attach(data) as local,
    ):
        local.call("send", to=AWAY, messages=recoverable(b"1"))
        status = until(
            lambda: (status := local.call("show", queue=AWAY)) and status["last_connection"] and status,
            "the server has tried to connect",
        )
        assert status["messages"] == 1
        assert status["last_connection"]["status"] == "SocketConnectFailure"


@pytest.mark.requirement("DMPR-3.1.1.12-12", "MQMQ-2.2.18.1.6-07")
def test_an_unsent_message_that_is_purged_is_acked_on_request(queues: Local) -> None:
    asked = {"acknowledge": ["neg_arrival"], "admin_queue": rf"DIRECT=OS:alpha\{ORDERS}", "label": "told"}
    sent = queues.call("send", to=AWAY, messages=recoverable(b"1", **asked) + recoverable(b"2"))["sent"]
    assert queues.call("purge", queue=AWAY)["purged"] == 2
    (report,) = queues.call("peek", queue=ORDERS, count=9)["messages"]
    assert (report["class"], report["correlation"], report["label"]) == (0x8001, sent[0], "told")
    assert queues.call("show", queue=AWAY)["messages"] == 0


def test_express_messages_go_to_a_served_folder_alone(server: InThread) -> None:
    with attach(server.data) as local:
        put(local, ORDERS, message(b"x"))
        assert bodies(local.call("receive", queue=ORDERS)["messages"]) == [b"x"]
