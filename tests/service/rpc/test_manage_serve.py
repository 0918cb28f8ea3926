"""`msmqwire.manage` and `msmqwire manage` against `msmqwire serve --rpc-manage`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import msmqwire
from msmqwire.errors import AuthenticationFailed, QueueError, RpcFault
from msmqwire.qm.client import SyncManagedHost
from msmqwire.qm.runtime.local import attach
from tests.support.installed import library
from tests.support.own_addresses import own_loopback
from tests.support.patience import limit
from tests.support.running import ADDRESS, LEDGER, ORDERS, Process, called, process, put, recoverable, until

RPC = ("--rpc", f"{ADDRESS}:0", "--set", "close_s=0.2")
OPEN = (*RPC, "--rpc-auth", "none", "--endpoint-mapper", f"{ADDRESS}:0")
ALICE, PASSWORD = "LAB\\alice", "Grün: blau 7"
AWAY = rf"DIRECT=TCP:127.0.0.199\{ORDERS}"
DENIED = "MQ_ERROR_ACCESS_DENIED"


@pytest.fixture
def server(data: Path) -> Iterator[Process]:
    """A server that may be managed by everybody, with a journal, messages, and some that can't leave."""
    with process(data, *OPEN, "--rpc-manage", "callers") as server:
        called("queue", "create", ORDERS, "--journal", "--data", data)
        called("queue", "create", LEDGER, "--transactional", "--data", data)
        with attach(data) as local:
            put(local, ORDERS, *recoverable(b"one", b"two"))
        with msmqwire.attach(data) as manager:
            manager.queue(ORDERS).receive(limit(20))
        assert called("send", AWAY, "--recoverable", "--transactional", "--data", data).status == 0
        yield server


@pytest.fixture
def host(server: Process) -> Iterator[SyncManagedHost]:
    with msmqwire.manage(ADDRESS, mapper_port=server.mapper_port, timeout=limit(20)) as host:
        yield host


def test_the_state_of_everything(host: SyncManagedHost) -> None:
    machine = host.machine()
    assert set(machine.private_queues or ()) == {rf"alpha\{ORDERS}", rf"alpha\{LEDGER}"}
    assert machine.connected is True
    rows = {row.format_name or row.asked: row for row in host.queues([f"{ORDERS};journal", "none"])}
    assert [name for name, row in rows.items() if row.reason is not None] == ["none"]
    assert rows[rf"DIRECT=OS:alpha\{ORDERS};JOURNAL"].messages == 1
    rows |= {row.name: row for row in rows.values() if ";" not in str(row.format_name)}
    orders = rows[rf"alpha\{ORDERS}"]
    assert (orders.messages, orders.state, orders.transactional) == (1, "LOCAL CONNECTION", False)
    assert rows[rf"alpha\{LEDGER}"].transactional is True
    [away] = host.outgoing()
    assert away.outgoing
    assert away.messages == 1
    assert host.queue(away.asked).messages == 1
    assert (machine.bytes_all_queues or 0) >= sum(row.bytes or 0 for row in (orders, away)) > 0


def test_both_ends_of_a_pause(host: SyncManagedHost, data: Path) -> None:
    host.pause(rf"127.0.0.199\{ORDERS}")
    assert host.queue(AWAY).state == "ONHOLD"
    host.resume(AWAY)
    assert host.queue(AWAY).state != "ONHOLD"
    host.resend(AWAY)
    host.tidy()
    assert host.queue(AWAY).messages == 1
    host.disconnect_network()
    assert host.machine().connected is False
    host.connect_network()
    assert host.machine().connected is True


def test_a_local_queue_is_not_paused(host: SyncManagedHost) -> None:
    for method in (host.pause, host.resume, host.resend):
        with pytest.raises(QueueError) as caught:
            method(ORDERS)
        assert caught.value.name == "MQ_ERROR_INVALID_PARAMETER"


def test_the_command_on_a_real_server(server: Process) -> None:
    words = ("--mapper-port", str(server.mapper_port))
    rows = called("manage", ADDRESS, "queues", *words).lines
    assert {rf"alpha\{ORDERS}", rf"alpha\{LEDGER}"} <= {row["path"] for row in rows}
    [away] = called("manage", ADDRESS, "outgoing", *words).lines
    assert called("manage", ADDRESS, "pause", away["format_name"], *words).one["action"] == "pause"
    assert called("manage", ADDRESS, "queue", AWAY, *words).one["state"] == "ONHOLD"
    missing = called("manage", ADDRESS, "queue", r"private$\none", *words).error(66)
    assert missing["name"] == "MQ_ERROR_QUEUE_NOT_FOUND"
    wrong = called("manage", ADDRESS, "pause", ORDERS, *words).error(69)
    assert "pause, resume and resend are for the queues that outgoing lists" in wrong["error"]


@pytest.mark.requirement("MQMR-3-02")
def test_by_default_nobody_manages(data: Path) -> None:
    with process(data, "--queue", ORDERS, *OPEN) as server:
        told = [
            called("manage", ADDRESS, *words, "--rpc-port", str(server.rpc_port)).error(69)
            for words in (("info",), ("queue", ORDERS), ("queue", r"private$\none"), ("tidy",))
        ]
    assert {error["name"] for error in told} == {DENIED}
    assert all("--rpc-manage" in error["error"] for error in told)


@pytest.mark.requirement("MQMR-5.2-01")
def test_users_manage_with_their_passwords(data: Path, tmp_path: Path) -> None:
    library("spnego")
    users, password = tmp_path / "users", tmp_path / "password"
    for file, text in ((users, f"{ALICE}:{PASSWORD}\n"), (password, f"{PASSWORD}\n")):
        file.write_text(text, encoding="utf-8")
        file.chmod(0o600)
    options = ("--rpc-users", str(users), "--rpc-auth", "none", "--rpc-manage", "users")
    with process(data, "--queue", ORDERS, *RPC, *options) as server:
        for level in ("connect", "integrity", "privacy"):
            secure = msmqwire.manage(
                ADDRESS, port=server.rpc_port, user=ALICE, password=PASSWORD, auth=level, timeout=limit(20)
            )  # type: ignore[arg-type]
            with secure as host:
                assert host.queue(ORDERS).messages == 0
        with msmqwire.manage(ADDRESS, port=server.rpc_port) as host, pytest.raises(QueueError) as caught:
            host.machine()
        assert caught.value.name == DENIED
        wrong = msmqwire.manage(ADDRESS, port=server.rpc_port, user=ALICE, password="no")
        with wrong as host, pytest.raises((AuthenticationFailed, RpcFault)):
            host.machine()
        words = ("--rpc-port", str(server.rpc_port), "--user", ALICE, "--password-file", password)
        assert called("manage", ADDRESS, "info", *words).one["connected"] is True


def test_many_queues_over_one_connection(data: Path) -> None:
    async def scenario(port: int) -> None:
        async with msmqwire.manage(ADDRESS, port=port, timeout=limit(60)) as host:
            rows, machine = await asyncio.gather(host.queues(), host.machine())
        assert [row.reason for row in rows] == [None] * 300
        assert len(machine.private_queues or ()) == 300

    with process(data, *OPEN, "--rpc-manage", "callers") as server:
        with attach(data) as local:
            for number in range(300):
                local.call("create", queue=rf"private$\q{number}")
        asyncio.run(scenario(server.rpc_port))


def test_a_server_that_is_restarted_is_found_again(data: Path) -> None:
    address = own_loopback(77)
    rpc = ("--rpc", f"{address}:18092", "--rpc-auth", "none", "--rpc-manage", "callers")
    with msmqwire.manage(address, port=18092, timeout=limit(20)) as host:
        for _ in range(2):
            with process(data, "--queue", ORDERS, *rpc, "--set", "close_s=0.2"):
                assert until(lambda: host.queue(ORDERS).messages == 0, "the server is found again")
