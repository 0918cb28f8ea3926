"""The peer without mistakes: our own queue manager and our own checks find nothing wrong with it."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest

from msmqwire.analysis.lint import SessionLint, lint_packet
from msmqwire.constants import MessageClass
from msmqwire.names import parse_format_name
from msmqwire.packets import CONNECTION_PARAMETERS, ESTABLISH_CONNECTION, USER_MESSAGE, parse, well_formed
from msmqwire.ping import PING
from msmqwire.qm.model.effects import Connect
from msmqwire.qm.model.enumerations import AcknowledgementsRequested
from tests.support import handmade as h
from tests.support.broken_peers.manager import Manager
from tests.support.broken_peers.mistakes import MISTAKES
from tests.support.broken_peers.server import Server
from tests.support.engine_harness import PEER_ADDRESS, EngineHarness
from tests.support.paths import ROOT
from tests.support.patience import limit
from tests.support.peers.broken_peer_world import (
    ADDRESS,
    ADMIN,
    MISSING,
    ORDERS,
    TX,
    Client,
    Clock,
    World,
    in_sequence,
    message,
)
from tests.support.peers.raw_peer import GUID, Message, Session, direct
from tests.support.peers.srmp_peer import SRMP, srmp_peer
from tests.support.qm.received_packets import cut
from tests.support.running import until
from tools.pages.conformance import read_tables

CLIENT = UUID(bytes_le=GUID)
ALL = AcknowledgementsRequested.ACK_FULL_RECEIVE | AcknowledgementsRequested.ACK_POS_ARRIVAL


def test_each_mistake_breaks_requirements_that_there_are() -> None:
    known = {id_ for table in read_tables().values() for id_ in table}
    assert {id_ for mistake in MISTAKES.values() for id_ in mistake.requirements} <= known


# -- our queue manager sends to it ------------------------------------------------------------------------


class Joined:
    """Our queue manager and the peer, joined by one connection that ours has opened."""

    def __init__(self, harness: EngineHarness, manager: Manager, clock: Clock) -> None:
        self._harness, self._manager, self._clock = harness, manager, clock
        self._connection = harness.last_effect(Connect).connection
        self.sent: list[tuple[bool, bytes]] = []
        self.closed = False
        harness.peers[self._connection] = self  # type: ignore[assignment]
        self._travelling: deque[tuple[bool, bytes]] = deque()
        self.session = manager.accept(self, "10.0.0.1")
        harness.engine.connected(self._connection)
        harness.run()

    def hear(self, data: bytes) -> None:
        """Ours sends."""
        self.sent += ((True, packet) for packet in cut(data))
        self._travelling.append((True, data))

    def write(self, data: bytes) -> None:
        """The peer sends."""
        self.sent += ((False, packet) for packet in cut(data))
        self._travelling.append((False, data))

    def _deliver(self) -> None:
        """Bring over what was sent, in its order."""
        while self._travelling:
            ours, data = self._travelling.popleft()
            if ours and self.session is not None:
                self._manager.receive(self.session, data)
            elif not ours:
                self._harness.engine.received(self._connection, data)
                self._harness.run()

    def close(self) -> None:
        """The peer ends the connection."""
        self.closed = True

    def advance(self, seconds: int) -> None:
        """Let time pass on both sides."""
        for _ in range(4 * seconds):
            self._deliver()
            self._clock.advance(0.25)
            self._harness.advance(250)

    def findings(self) -> list[Any]:
        """What lint says of the session, and of each packet of the peer."""
        session, findings = SessionLint(), []
        for ours, data in self.sent:
            packet = parse(data)
            findings += session.packet(ours, packet, data)
            findings += [] if ours else lint_packet(packet)
        return findings


@pytest.mark.parametrize("reader", [False, True], ids=["kept", "read"])
def test_our_queue_manager_and_the_peer_understand_each_other(reader: bool) -> None:
    """Messages of all kinds, with acknowledgements of all kinds, more than a window of them."""
    clock = Clock()
    manager = Manager(clock, reader=reader)
    ours = EngineHarness(utc=int(time.time()))
    admin = ours.queue("admin")
    places = [rf"DIRECT=TCP:{PEER_ADDRESS}\private$\{name}" for name in ("orders", "tx")]
    name = parse_format_name(rf"PRIVATE={ours.core.queue_manager.identifier}\{admin.private_queue_number:x}")
    asks: dict[str, Any] = {"administration": name, "acknowledgements_requested": ALL}
    ours.send(count=70, to=places[0], **asks)
    ours.resolve(PEER_ADDRESS)
    joined = Joined(ours, manager, clock)
    ours.send(count=70, to=places[0], recoverable=True, **asks)
    ours.send(count=70, to=places[1], transactional=True, positive_journaling_requested=True, **asks)
    ours.send(b"lost", to=places[1], **asks)
    joined.advance(12)
    assert joined.findings() == []
    assert not joined.closed
    assert [len(queue.bodies) for queue in manager.queues.values()] == [64, 64]
    assert list(manager.queues["private$\\tx"].bodies) == [b"m%d" % number for number in range(6, 70)]
    assert all(not ours.transfer(place).table for place in places)
    waiting = ours.transfer(places[1]).awaiting_final_ack
    assert len(waiting or ()) == (0 if reader else 70)
    got = [position.message.message_class for position in admin.positions]
    assert got.count(MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE) == 210
    assert got.count(MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_MSG) == 1
    assert got.count(MessageClass.MQMSG_CLASS_ACK_RECEIVE) == (210 if reader else 0)


# -- packets of ours to it --------------------------------------------------------------------------------


def test_built_packets_are_answered_by_readable_packets() -> None:
    world = World(insecure_nacks=True)
    client = Client(world, opened=False)
    client.send(ESTABLISH_CONNECTION.build({"EstablishConnectionHeader": {"ClientGuid": CLIENT}}))
    client.send(CONNECTION_PARAMETERS.build({}))
    queue = {"DirectFormatName": r"TCP:127.0.0.1\PRIVATE$\Orders"}
    client.send(USER_MESSAGE.build({"UserHeader": {"DestinationQueue": queue, "SentTime": 0}}))
    kinds = [parse(packet).schema.name for packet in client.take(60)]
    assert kinds == ["EstablishConnection", "ConnectionParameters", "SessionAck"]
    assert len(world.manager.queues["private$\\orders"].bodies) == 1


def test_lint_finds_nothing_in_what_it_sends() -> None:
    world = World(insecure_nacks=True)
    client = Client(world)
    for queue in (ORDERS, TX, MISSING, (3, h.private_id(0x10)), (5, GUID)):
        for recoverable in (False, True):
            client.push(message(queue=queue, recoverable=recoverable, wants=15))
        client.push(in_sequence(1, queue=queue, wants=15))
    client.push(message(wants=4, age=9, time_to_reach_queue=8))
    answers = client.take(1)
    assert {packet.kind for packet in answers} == {"UserMessage", "OrderAck", "FinalAck", "SessionAck"}
    assert all(well_formed(packet, 0, len(packet), strict=True) for packet in answers)
    assert [finding for packet in answers for finding in lint_packet(parse(packet))] == []


# -- its sessions -----------------------------------------------------------------------------------------


def test_acknowledgements_are_as_late_as_the_timeouts_say() -> None:
    client = Client(World(), recoverable=700, ack=30_000)
    client.push(message())
    assert client.acks(14.9) == []
    assert [header.ack for header in client.acks(0.2)] == [1]
    client.push(message(recoverable=True))
    assert client.acks(0.65) == []
    assert [header[:3] for header in client.acks(0.1)] == [(2, 1, 1)]


def test_half_a_window_is_acknowledged_at_once() -> None:
    client = Client(World(), window=6)
    client.push(*(message() for _ in range(7)))
    assert [header.ack for header in client.acks()] == [3, 6]


def test_messages_beyond_the_window_wait_for_acknowledgements() -> None:
    client = Client(World(), window=2)
    client.push(*(message(wants=1) for _ in range(5)))
    received = []
    for _ in range(3):
        received.append(len(client.messages()))
        client.send(*client.session_acks(window=2))
    assert received == [2, 2, 1]


def test_what_was_not_acknowledged_goes_over_the_next_session() -> None:
    world = World()
    client = Client(world)
    client.push(message(wants=1, recoverable=True, message_id=31), message(wants=1, message_id=32))
    first = client.messages()
    client.leave()
    client = Client(world, opened=False)
    client.send(*_opening())
    again = client.messages()[2:]
    assert [packet.CorrelationID for packet in again] == [packet.CorrelationID for packet in first]
    assert len(first) == 2


def _opening() -> list[bytes]:
    return [
        ESTABLISH_CONNECTION.build({"EstablishConnectionHeader": {"ClientGuid": CLIENT}}),
        CONNECTION_PARAMETERS.build({}),
    ]


def test_an_ack_for_another_local_address_opens_a_connection() -> None:
    """An acknowledgement for an address of another computer opens none."""
    world = World()
    client = Client(world)
    for address in ("127.0.0.77", "192.0.2.1", ADDRESS):
        admin = direct(rf"TCP:{address}\private$\admin")
        client.push(message(wants=1, admin=admin))
    assert world.called == ["127.0.0.77"]
    assert len(client.messages()) == 1


def test_a_session_that_does_not_begin_in_time_ends() -> None:
    client = Client(World(), opened=False)
    client.take(59.9)
    assert not client.closed
    client.take(0.2)
    assert client.closed


# -- sockets ----------------------------------------------------------------------------------------------


@contextmanager
def listening(mistake: str | None = None, **options: Any) -> Iterator[tuple[Any, list[BaseException]]]:
    """A peer on a thread: where it listens for sessions, pings and HTTP, and what it has ended with."""
    ended: list[BaseException] = []
    loop = asyncio.new_event_loop()

    async def start() -> Any:
        server = Server(Manager(loop, mistake, **options), crashed=ended.append, hung=ended.append)
        places = server.listen, server.answer_pings, server.serve_http
        return [await place("127.0.0.1", 0) for place in places]

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(start(), loop).result(limit(10)), ended
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(limit(10))
        loop.close()


def test_over_sockets() -> None:
    with listening(reader=True) as ((at, *_), ended), Session.opened(at, recoverable=500) as peer:
        peer.push(Message(b"m", ORDERS, recoverable=True, wants=15, admin=ADMIN))
        peer.push(Message(b"t", TX, tx=(9, 1, 1, 0), journal=0x200))
        arrived = peer.until_acknowledged()
        assert [packet.MessageClass for packet in arrived[:3]] == [2, 0x4000, 0x4000]
        assert ended == []


def test_a_ping_is_answered() -> None:
    with listening() as ((_, at, _http), _ended):
        asked = PING.build({"Cookie": 0xFFFFFFFF, "Flags": {"RC": 1}})
        answer = PING.parse(_exchange(at, asked))
        assert (answer.Cookie, int(answer.Flags.RC), int(answer.Flags.RF)) == (0xFFFFFFFF, 1, 0)


def test_a_message_over_http_is_taken_and_its_receipt_is_posted() -> None:
    with listening() as ((*_, at), ended), srmp_peer("127.0.0.1", at) as peer:
        asks = (
            '<services se:mustUnderstand="1"><deliveryReceiptRequest>'
            f"<sendTo>{peer.url}/receipts</sendTo></deliveryReceiptRequest></services>"
        )
        envelope = peer.envelope("http://127.0.0.1/msmq/private$/orders", services=asks)
        assert peer.post(envelope, b"payload") == 200
        (receipt,) = peer.wait(1, until)
        assert receipt.text(f"{SRMP}deliveryReceipt", f"{SRMP}id") == f"uuid:1@{peer.guid}"
        assert ended == []


def _exchange(at: tuple[str, int], data: bytes) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(limit(10))
        udp.sendto(data, at)
        return udp.recv(100)


def test_the_process_prints_its_address_and_dies_of_its_mistake() -> None:
    command = [sys.executable, "-m", "tests.support.broken_peers", "--mistake", "closes_server_on_reset"]
    options = ["--listen", "127.0.0.1:0", "--ping", "127.0.0.1:0"]
    with subprocess.Popen(
        [*command, *options], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as peer:
        assert peer.stdout is not None
        ready = json.loads(peer.stdout.readline())
        assert ready["mistake"] == "closes_server_on_reset"
        host, _, port = ready["listen"].rpartition(":")
        Session.opened((host, int(port))).reset()
        assert peer.wait(limit(30)) == 134
        assert peer.stderr is not None
        assert b"nobody catches it" in peer.stderr.read()
