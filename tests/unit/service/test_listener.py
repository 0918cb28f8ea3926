"""The listener of any protocol: who is admitted, who is ended for what is held, and how all ends."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from msmqwire.service.connection import PeerConnection
from msmqwire.service.descriptors import OpenConnections
from msmqwire.service.listener import PROVED_MAX, Listener
from msmqwire.service.places import ListenerLimits
from tests.support.patience import happens, limit

LOOPBACK = "127.0.0.1"
SOON_S = limit(30)


@dataclass
class Counts:
    """The counters of a listener."""

    accepted: int = 0
    refused: int = 0
    evicted: int = 0


class Incoming:
    """A connection without a socket."""

    def __init__(self, address: str = "10.0.0.1") -> None:
        self.address, self.held = address, 0
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ended: list[str] = []

    def stop(self) -> None:
        self.ended.append("stopped")

    def abort(self) -> None:
        self.ended.append("aborted")


class Home:
    """A listener of connections without sockets, and whom it has ended."""

    def __init__(
        self,
        connections: int = 9,
        per_origin: int = 9,
        held_bytes: int = 1000,
        close_s: float = 0.0,
        shared: OpenConnections | None = None,
        reserved: int = 0,
        known: Collection[str] = (),
    ) -> None:
        self.counts = Counts()
        self.evicted: list[Incoming] = []
        self.listener: Listener[Incoming] = Listener(
            "TEST",
            ListenerLimits(connections, per_origin, held_bytes, close_s, reserved),
            self.counts,
            shared or OpenConnections(),
            self.evicted.append,
            known.__contains__,
        )

    def come(self, address: str = "10.0.0.1", *, silent: bool = False) -> Incoming | None:
        """A connection comes from an address, and speaks unless it is silent; None if it is refused."""
        connection = Incoming(address)
        if not self.listener.admit(connection):
            return None
        if not silent:
            self.listener.spoke(connection)
        return connection

    def hold(self, connection: Incoming, size: int, *, received: int | None = None) -> None:
        """A connection holds so many bytes from now on."""
        received = size - connection.held if received is None else received
        connection.held = size
        self.listener.holds(connection, received)


def reasons(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, str]]:
    """Which refusals were told: of which kind, of whom, and why."""
    return [
        (record.getMessage(), getattr(record, "peer", ""), getattr(record, "reason", ""))
        for record in caplog.records
    ]


# -- admission ----------------------------------------------------------------------------------------------


def test_connections_are_admitted_up_to_the_limits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        home = Home(connections=4, per_origin=2)
        first = home.come("2001:db8::1")
        assert first is not None
        assert home.come("2001:db8::2:2")
        assert home.come("2001:db8::3") is None, "two of a network of 64 bits"
        assert home.come("10.0.0.2")
        assert home.come("10.0.0.3")
        assert home.come("10.0.0.4") is None, "four of all"
        assert (home.counts, len(home.listener)) == (Counts(accepted=4, refused=2), 4)
        home.listener.remove(first)
        assert first not in home.listener
        assert home.come("10.0.0.2"), "who has ended makes room"
        assert home.come("2001:db8::3") is None
        assert home.counts == Counts(accepted=5, refused=3)

    caplog.set_level(logging.WARNING)
    asyncio.run(run())
    refused = "a connection of TEST is refused"
    assert reasons(caplog) == [
        (refused, "2001:db8::3", "too many connections of this peer"),
        (refused, "10.0.0.4", "too many connections"),
        (refused, "2001:db8::3", "too many connections"),
    ]


def test_an_origin_without_connections_leaves_no_entry() -> None:
    async def run() -> None:
        home = Home(per_origin=1)
        for number in range(1000):
            connection = home.come(f"10.0.{number // 250}.{number % 250}")
            assert connection is not None
            home.hold(connection, 1)
            home.listener.remove(connection)
        assert (len(home.listener), home.listener.held.total, home.listener._places._of_origin) == (
            0,
            0,
            {},
        )
        assert home.listener, "it is still one"

    asyncio.run(run())


def test_listeners_share_the_descriptors_of_the_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("msmqwire.service.descriptors.limit", lambda: 8)  # 4 in all, 3 of one direction

    async def run() -> None:
        shared = OpenConnections()
        one, other = Home(shared=shared), Home(shared=shared)
        first = one.come()
        assert first is not None
        assert one.come()
        assert other.come()
        assert other.come() is None
        one.listener.remove(first)
        assert other.come()
        assert one.come() is None

    asyncio.run(run())
    assert {reason for *_, reason in reasons(caplog)} == {"too few file descriptors"}


def test_silent_ones_make_room_and_are_forgotten_once(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        home = Home(connections=3, per_origin=2)
        silent = [home.come(address, silent=True) for address in ("10.0.0.1", "10.0.0.2", "10.0.0.2")]
        assert home.come("10.0.0.3")
        oldest = silent[1]
        assert oldest is not None
        assert oldest.ended == ["aborted"]
        assert oldest in home.listener, "until it is closed"
        assert home.listener.silent == 2
        home.listener.spoke(oldest)  # its bytes were under way
        assert home.come("10.0.0.4")
        home.listener.remove(oldest)
        assert home.come("10.0.0.5")
        assert home.come("10.0.0.6") is None, "all have spoken"
        assert home.counts == Counts(accepted=6, refused=1, evicted=3)

    caplog.set_level(logging.WARNING)
    asyncio.run(run())
    makes_room = "a connection of TEST makes room for another"
    assert [(text, peer) for text, peer, _ in reasons(caplog)] == [
        (makes_room, "10.0.0.2"),
        (makes_room, "10.0.0.1"),
        (makes_room, "10.0.0.2"),
        ("a connection of TEST is refused", "10.0.0.6"),
    ]


def test_a_part_of_the_places_is_for_known_origins() -> None:
    async def run() -> None:
        home = Home(connections=8, reserved=4, known=["10.0.1.1"])
        proved = home.come("10.0.2.1")
        assert proved is not None
        home.listener.proved(proved)
        assert all(home.come(f"10.0.0.{number}") for number in range(5))
        assert home.come("10.0.0.9") is None
        assert home.come("10.0.1.1")
        home.listener.remove(proved)
        assert home.come("10.0.2.1"), "its origin is remembered"
        assert home.come("10.0.0.9", silent=True)
        assert home.come("10.0.2.1"), "instead of the silent one"
        assert home.come("10.0.0.9") is None

    asyncio.run(run())


def test_a_login_from_the_loopback_makes_nobody_known() -> None:
    """Any user of this computer sends from there."""

    async def run() -> None:
        home = Home(connections=8, reserved=4)
        proved = home.come("127.0.0.1")
        assert proved is not None
        home.listener.proved(proved)
        assert not home.listener._knows("127.0.0.1")
        assert all(home.come(f"10.0.0.{number}") for number in range(5))
        assert home.come("127.0.0.2") is None

    asyncio.run(run())


def test_the_origins_that_have_proved_it_are_limited() -> None:
    async def run() -> None:
        home = Home(connections=2 * PROVED_MAX)
        for number in range(PROVED_MAX + 1):
            connection = home.come(f"10.{number // 250}.{number % 250}.1")
            assert connection is not None
            home.listener.proved(connection)
        assert len(home.listener._proved._origins) == PROVED_MAX
        assert not home.listener._knows("10.0.0.1")
        assert home.listener._knows("10.0.1.1")

    asyncio.run(run())


def test_the_loopback_has_the_places_of_one_origin() -> None:
    async def run() -> None:
        home = Home(per_origin=3)
        assert all(home.come(address) for address in ("127.0.0.1", "127.200.3.4", "::1"))
        assert home.come("127.0.0.2") is None
        assert home.come("10.0.0.1")

    asyncio.run(run())


def test_silent_ones_leave_their_descriptors_to_any_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msmqwire.service.descriptors.limit", lambda: 64)  # 32 in all, 24 of one direction

    async def run() -> None:
        shared = OpenConnections()
        one = Home(99, 99, shared=shared, known=["10.0.1.1"])
        other = Home(99, 99, shared=shared, known=["10.0.1.1"])
        assert all(one.come(silent=True) for _ in range(20))
        assert other.come(silent=True)
        for _ in range(20):
            assert other.come("10.0.0.2")
        assert (one.counts.evicted, other.counts.evicted) == (20, 0), "the most silent listener makes room"
        assert other.come("10.0.0.2"), "in place of the last silent one"
        assert other.come("10.0.0.3") is None
        assert other.come("10.0.1.1", silent=True), "an eighth is for known origins"
        assert (one.come("10.0.0.3"), one.counts.refused) == (None, 1), "they make no room for unknown ones"

    asyncio.run(run())


def test_nobody_is_admitted_while_the_server_stops(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        home = Home()
        assert home.come()
        home.listener.stop_listening()
        assert home.come() is None
        assert (len(home.listener), home.counts) == (1, Counts(accepted=1, refused=1))
        assert home.listener.is_stopping

    asyncio.run(run())
    assert reasons(caplog) == [("a connection of TEST is refused", "10.0.0.1", "the server stops")]


# -- memory -------------------------------------------------------------------------------------------------


def several(home: Home, count: int) -> list[Incoming]:
    """So many connections."""
    admitted = [home.come(f"10.0.0.{number}") for number in range(count)]
    return [connection for connection in admitted if connection is not None]


def test_the_largest_wait_ends_first_and_no_more_than_needed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        home = Home(held_bytes=1000)
        small, large, middle, last = several(home, 4)
        home.hold(small, 200)
        home.hold(large, 450)
        home.hold(middle, 350)
        assert (home.listener.held.total, home.evicted) == (1000, []), "at the bound"
        home.hold(last, 1)
        assert home.evicted == [large]
        assert large.ended == ["aborted"]
        assert large in home.listener, "until it is closed"
        assert home.listener.held.total == 551
        home.hold(last, 900, received=0)
        assert home.evicted == [large, last], "the one that has just come, too"
        assert home.listener.held.total == 550
        home.listener.remove(large)
        assert home.listener.held.total == 550

    asyncio.run(run())
    told = [(record.getMessage(), vars(record)["peer"], vars(record)["bytes"]) for record in caplog.records]
    text = "connections of TEST hold too much: the one with the largest wait is ended"
    assert told == [(text, "10.0.0.1", 450), (text, "10.0.0.3", 900)]


def test_who_waits_longer_is_ended_before_who_holds_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        home, loop = Home(held_bytes=1000), asyncio.get_running_loop()
        now = [100.0]
        monkeypatch.setattr(loop, "time", lambda: now[0])
        slow, quick, new = several(home, 3)
        home.hold(slow, 300)
        now[0] += 3
        home.hold(quick, 600)
        home.hold(new, 101)
        assert home.evicted == [slow], "300 bytes for four seconds begun"
        monkeypatch.undo()

    asyncio.run(run())


def test_held_bytes_are_measured_again_before_any_eviction() -> None:
    async def run() -> None:
        home = Home(held_bytes=1000)
        reader, honest, greedy = several(home, 3)
        home.hold(reader, 600)
        home.hold(honest, 100)
        reader.held = 10  # it has read its answers, and nobody has told the listener
        home.hold(greedy, 400)
        assert home.evicted == []
        assert home.listener.held.total == 510
        home.hold(greedy, 900)
        assert home.evicted == [greedy]
        assert (reader.ended, honest.ended, home.listener.held.total) == ([], [], 110)

    asyncio.run(run())


# -- the end ------------------------------------------------------------------------------------------------


def test_a_close_stops_all_and_waits_for_their_ends() -> None:
    async def run() -> None:
        home = Home(close_s=2 * SOON_S)  # a close that notices no end comes too late
        connections = several(home, 3)
        closing = asyncio.ensure_future(home.listener.close())
        await happens(lambda: all(connection.ended for connection in connections), "all are stopped")
        assert [connection.ended for connection in connections] == [["stopped"]] * 3
        for connection in connections:
            assert not closing.done()
            connection.gone.set_result(None)
            for _ in range(10):  # turns of the loop: more than the end of a connection takes
                await asyncio.sleep(0)
        await asyncio.wait_for(closing, SOON_S)

    asyncio.run(run())


def test_a_close_does_not_wait_for_ever() -> None:
    async def run() -> None:
        home = Home(close_s=-0.99)
        several(home, 1)
        async with asyncio.timeout(SOON_S):
            await home.listener.close()

    asyncio.run(run())


def test_an_abort_ends_all() -> None:
    async def run() -> None:
        home = Home()
        connections = several(home, 3)
        home.listener.abort()
        assert [connection.ended for connection in connections] == [["aborted"]] * 3

    asyncio.run(run())


class Echo(PeerConnection):
    """A connection over a socket that sends much, and is closed in order."""

    held = 0

    def __init__(self, listener: Listener[Echo], close_s: float, sends: bytes, unwanted: int) -> None:
        super().__init__()
        self._listener, self._close_s, self._sends, self._unwanted_max = listener, close_s, sends, unwanted

    def _begin(self, transport: asyncio.Transport) -> bool:
        if not self._listener.admit(self):
            return False
        transport.write(self._sends)
        return True

    def _lost(self, reason: Exception | None) -> None:
        if self._admitted:
            self._listener.remove(self)

    def data_received(self, data: bytes) -> None:
        self._drop(data, self._unwanted_max)

    def close(self) -> None:
        assert self._transport is not None
        self._after(self._close_s, self.abort)
        self._send_end(self._transport)


async def listening(close_s: float, sends: bytes = b"", unwanted: int = 1 << 20) -> tuple[Any, int]:
    """A listener with a socket, and its port."""
    limits = ListenerLimits(1, 1, 0, close_s)
    listener: Listener[Echo] = Listener("ECHO", limits, Counts(), OpenConnections(), lambda _: None)
    port = await listener.bind_at(LOOPBACK, 0, lambda: Echo(listener, close_s, sends, unwanted))
    assert not listener.is_listening
    listener.accept()
    assert listener.is_listening
    return listener, port


async def admitted(listener: Listener[Echo]) -> Echo:
    """The connection of a listener, once it has one."""
    await happens(lambda: len(listener), "a connection is admitted")
    return next(iter(listener))


def test_a_close_returns_when_the_sockets_are_closed() -> None:
    async def run() -> None:
        listener, _ = await listening(0.1)
        await asyncio.sleep(0)
        await listener.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())


@pytest.mark.uvloop
def test_a_peer_that_is_gone_without_a_word_is_asked_for() -> None:
    async def run() -> None:
        listener, port = await listening(0.1)
        with socket.create_connection((LOOPBACK, port)):
            connection = await admitted(listener)
            assert connection._transport is not None
            own = connection._transport.get_extra_info("socket")
            assert own.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            await listener.close()

    asyncio.run(run())


@pytest.mark.uvloop
def test_a_peer_that_never_reads_is_ended_after_its_time() -> None:
    async def run() -> None:
        listener, port = await listening(0.2, bytes(32 << 20))
        with socket.create_connection((LOOPBACK, port)):
            connection = await admitted(listener)
            async with asyncio.timeout(SOON_S):
                await listener.close()
            assert connection.gone.done()
        assert len(listener) == 0
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((LOOPBACK, port))

    asyncio.run(run())


@pytest.mark.uvloop
def test_a_peer_that_reads_gets_all_before_the_end() -> None:
    async def run() -> None:
        listener, port = await listening(60.0, bytes(4 << 20))
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        connection = await admitted(listener)
        assert (connection.address, connection.local_address) == (LOOPBACK, LOOPBACK)
        closing = asyncio.ensure_future(listener.close())
        async with asyncio.timeout(SOON_S):
            assert len(await reader.read()) == 4 << 20
            assert not closing.done(), "the peer has not ended it"
            writer.close()
            await closing

    asyncio.run(run())


@pytest.mark.uvloop
def test_a_peer_that_sends_on_after_the_end_is_ended_at_once() -> None:
    async def run() -> None:
        listener, port = await listening(60.0, unwanted=1000)
        _, writer = await asyncio.open_connection(LOOPBACK, port)
        connection = await admitted(listener)
        closing = asyncio.ensure_future(listener.close())
        writer.write(bytes(1000))
        await happens(lambda: connection._unwanted == 1000, "all that is let pass has come")
        assert not connection.gone.done()
        writer.write(b"1")
        async with asyncio.timeout(SOON_S):
            await closing
        assert connection.gone.done()
        writer.close()

    asyncio.run(run())


@pytest.mark.uvloop
def test_a_connection_too_many_is_ended_and_counts_for_nothing() -> None:
    async def run() -> None:
        listener, port = await listening(0.1)
        with socket.create_connection((LOOPBACK, port)):
            listener.spoke(await admitted(listener))
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            async with asyncio.timeout(SOON_S):
                with suppress(ConnectionResetError):
                    assert await reader.read() == b""
            writer.close()
            assert len(listener) == 1
        await listener.close()

    asyncio.run(run())


def test_a_connection_that_was_reset_at_once_is_not_admitted() -> None:
    class Reset(asyncio.Transport):
        """A transport that does not know its peer any more."""

        aborted = False

        def abort(self) -> None:
            self.aborted = True

    async def run() -> None:
        listener, _ = await listening(0.1)
        transport, connection = Reset(), Echo(listener, 0.1, b"", 0)
        connection.connection_made(transport)
        assert transport.aborted
        connection.connection_lost(None)
        assert (len(listener), connection.gone.done()) == (0, True)
        await listener.close()

    asyncio.run(run())
