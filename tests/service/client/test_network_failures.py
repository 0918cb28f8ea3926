"""Failures of sockets are reported to the engine only."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from msmqwire.errors import StoreRefused
from msmqwire.qm.runtime.addresses import AddressOverrides
from msmqwire.qm.runtime.connection import SessionConnection
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.folder import open_core
from msmqwire.qm.runtime.limits import Limits
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.transport import TcpNetwork
from msmqwire.qm.store import memory_store
from msmqwire.service.listening_sockets import ListeningSockets
from msmqwire.service.store.changes import Changes
from tests.support.patience import happens
from tests.support.running import command, listed, message, options, served, until

FAR = r"DIRECT=TCP:127.0.0.91\PRIVATE$\far"


class From(asyncio.Transport):
    """A connection from an address."""

    aborted = False

    def __init__(self, address: str) -> None:
        super().__init__({"peername": (address, 50_000)})

    def abort(self) -> None:
        self.aborted = True


class Reset(asyncio.Transport):
    """A connection that its peer has reset before it is handled."""

    aborted = False

    def abort(self) -> None:
        self.aborted = True


def test_a_connection_that_was_reset_at_once_is_no_fault() -> None:
    async def run() -> None:
        store = memory_store()
        driver = EngineDriver(open_core(store, "alpha"), store)
        driver.start()
        network = TcpNetwork(driver)
        for number in (None, 7):
            transport, connection = Reset(), SessionConnection(network, number)
            connection.connection_made(transport)
            assert transport.aborted
            connection.connection_lost(None)
        assert (network.traffic.accepted, network.traffic.connected, network.connections) == (0, 0, {})
        await driver.stop()

    asyncio.run(run())


def test_an_ipv6_network_of_64_bits_counts_as_one_peer() -> None:
    """Whoever has one address of it has them all: the oldest silent one makes room for the next."""
    addresses = [
        "2001:db8::1",
        "2001:db8::2",
        "2001:db8::ffff:1:2",
        "2001:db8:0:1::1",
        "192.0.2.1",
        "192.0.2.2",
    ]

    async def run() -> tuple[list[str], int]:
        store = memory_store()
        driver = EngineDriver(open_core(store, "alpha"), store)
        driver.start()
        network = TcpNetwork(driver, limits=Limits(connections_per_peer=2))

        transports = [From(address) for address in addresses]
        for transport in transports:
            SessionConnection(network, None).connection_made(transport)
        ended = [address for address, one in zip(addresses, transports, strict=True) if one.aborted]
        await driver.stop()
        return ended, network.traffic.evicted

    assert asyncio.run(run()) == (["2001:db8::1"], 1)


def test_a_port_that_can_not_be_is_a_connection_that_fails(data: Path) -> None:
    with served(options(data, overrides=AddressOverrides(port=70_000))) as server:
        with attach(server.data) as local:
            local.call("send", to=FAR, messages=[message(b"", delivery="recoverable")])

        def failed() -> object:
            status = listed(server.data)[FAR]["last_connection"]
            return status is not None and status["status"] != "InProcess" and status

        assert until(failed, "the connection attempt fails") == {
            "status": "SocketConnectFailure",
            "error": "0xC00E0069",
        }


def test_what_is_restored_is_durable_only_once_the_disk_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        store, refuses = memory_store(), [True]
        commit = store.commit

        def refusing(changes: Changes) -> None:
            if refuses:
                raise StoreRefused("No space left on device", file="queues.msmq")
            commit(changes)

        monkeypatch.setattr(store, "commit", refusing)
        driver = EngineDriver(open_core(store, "alpha"), store)
        driver.start()
        durable = asyncio.ensure_future(driver.durable())
        await happens(lambda: driver.refused, "the disk refuses")
        assert (driver.refused, driver.commits, durable.done()) == (True, 0, False)
        refuses.clear()
        await durable
        assert (driver.refused, driver.commits) == (False, 1)
        await driver.stop()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("--name", "a b", "'a b' is not the name of a computer: letters, digits, hyphens, dots"),
        (
            "--queue",
            "q;transactionl",
            "'q;transactionl': after the name of a queue only ;transactional may stand",
        ),
    ],
)
def test_wrong_names_are_refused_before_all_else(data: Path, option: str, value: str, reason: str) -> None:
    error = command("serve", "--data", data, option, value, "--log", "error").error(2)
    assert error["error"] == reason
    assert not data.exists()


@pytest.mark.uvloop
def test_an_unforeseen_end_of_accepting_is_reported() -> None:
    """Nobody awaits the task, so that it would be silent."""

    async def run() -> list[str]:
        told: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["message"]))

        def broken() -> asyncio.Protocol:
            raise ZeroDivisionError

        listening = ListeningSockets()
        port = await listening.bind("127.0.0.1", 0, broken)
        listening.accept()
        with socket.create_connection(("127.0.0.1", port)):
            await happens(lambda: told, "the fault is reported")
        listening.close()
        await listening.wait_closed()
        return told

    assert "a connection can't be accepted" in asyncio.run(run())
