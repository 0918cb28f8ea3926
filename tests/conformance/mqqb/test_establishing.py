"""Establishing a protocol session, the side that asks: [MS-MQQB] 3.1.5.2 to 3.1.5.4."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest

from msmqwire.constants import HResult
from msmqwire.qm.model.effects import Connect, Disconnect, Resolve, Send, SendDatagram
from msmqwire.qm.model.elements import ConnectionHistory, OutgoingQueue, QueueManager
from msmqwire.qm.model.enumerations import ConnectionStatus, OutgoingQueueState
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.states import SessionState
from tests.support import handmade as h
from tests.support.engine_desk import (
    DIRECT,
    OTHER,
    OWN,
    THERE,
    THIRD,
    Desk,
    Peer,
    base_flags,
    internal_flags,
    kind,
)

S, Q, C = SessionState, OutgoingQueueState, ConnectionStatus
PRIVATE = f"PRIVATE={OTHER}\\0000000a"
ERROR = HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE


def history(desk: Desk, name: str = DIRECT) -> list[ConnectionHistory]:
    return list(desk.outgoing(name).connection_history)


def retry_left(desk: Desk) -> int | None:
    (session,) = desk.engine.sessions.values()
    return desk.left(Timer.SESSION_RETRY_CONNECT, session.number)


def routed(*hops: UUID | str, **settings: Any) -> Desk:
    return Desk(routes={OTHER: list(hops)}, **settings)


# -- 3.1.5.2 and 3.1.5.2.1: Resolve Host Address -----------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.5.2-01", "MQQB-3.1.5.2-02", "MQQB-3.1.1.1.1.1-01", "MQQB-3.1.5.2.1-07")
def test_a_message_for_elsewhere_makes_a_session_step_by_step() -> None:
    desk = Desk()
    desk.open()
    assert desk.news() == [], "nothing is done before there is a message"
    desk.send()
    (resolve,) = desk.news()
    assert isinstance(resolve, Resolve)
    assert resolve.host == THERE
    desk.resolve(THERE)
    (connect,) = desk.news()
    assert isinstance(connect, Connect)
    assert connect.address == THERE
    peer = desk.connect()
    (send,) = desk.news()
    assert isinstance(send, Send)
    assert kind(send.data) == "EC"
    assert peer.state is S.WAITING_ECR_MSG


@pytest.mark.requirement("MQQB-3.1.5.2.1-01", "MQQB-3.1.1.3.1-17")
def test_the_session_serves_the_outgoing_queue_of_that_name() -> None:
    desk = Desk()
    desk.open(r"DIRECT=TCP:10.0.0.9\private$\other")
    peer = desk.dial()
    queue = desk.core.queue_manager.queues[desk.outgoing().number]
    assert isinstance(queue, OutgoingQueue)
    assert queue.destination is not None
    assert queue.destination.canonical == desk.outgoing().destination.canonical  # type: ignore[union-attr]
    assert [transfer.queue for transfer in peer.session.transfers] == [queue]


@pytest.mark.requirement("MQQB-3.1.5.2.1-02", "MQQB-3.1.5.2.1-03", "MQQB-3.1.5.2-03")
def test_a_queue_whose_host_is_not_known_waits_for_validation() -> None:
    desk = Desk()
    name = f"PRIVATE={THIRD}\\0000000b"
    desk.core.routing.get_destination_info = lambda _: None  # type: ignore[method-assign]
    desk.send(name)
    queue = desk.outgoing(name)
    assert desk.of(Resolve) == []
    assert queue.state is Q.NEED_VALIDATION
    assert retry_left(desk) == 5_000
    assert history(desk, name) == [ConnectionHistory(C.ROUTING_DATA_NOT_AVAILABLE, desk.utc, ERROR, ())]


@pytest.mark.requirement("MQQB-3.1.5.2.1-02")
def test_get_destination_info_is_asked_again_each_time() -> None:
    desk = Desk(routes={OTHER: ["beta"]})
    name, second = f"PRIVATE={THIRD}\\0000000b", f"PRIVATE={UUID(int=0xC4)}\\0000000c"
    found: dict[UUID, UUID] = {}

    def read(name: Any) -> Any:
        host = found.get(name.guid)
        return None if host is None else type("Destination", (), {"host": "", "queue_manager": host})()

    desk.core.routing.get_destination_info = read  # type: ignore[method-assign]
    desk.send(name)
    desk.send(second)
    assert len(desk.engine.sessions) == 2, "two queues of unknown hosts need not lead to the same place"
    found[THIRD] = OTHER
    desk.advance(5_000)
    assert [question.host for question in desk.of(Resolve)] == ["beta"]
    assert desk.outgoing(second).state is Q.NEED_VALIDATION
    desk.resolve(THERE)
    desk.connect().accept(server=OTHER)
    assert desk.outgoing(name).state is Q.CONNECTED
    found[UUID(int=0xC4)] = OTHER
    desk.advance(5_000)
    assert desk.outgoing(second).state is Q.CONNECTED, "the session that leads there serves it too"
    assert len(desk.engine.sessions) == 1


@pytest.mark.requirement("MQQB-3.1.5.2.1-04", "MQQB-3.1.5.2.1-05")
def test_without_next_hops_the_queue_waits_for_validation() -> None:
    desk = Desk()
    desk.send(PRIVATE)
    assert desk.of(Resolve) == []
    assert desk.outgoing(PRIVATE).state is Q.NEED_VALIDATION
    assert retry_left(desk) == 5_000
    desk.core.routing.routes = {OTHER: ["gate.example"]}
    desk.advance(5_000)
    assert desk.last(Resolve).host == "gate.example"


@pytest.mark.requirement("MQQB-3.1.5.2.1-05", "MQQB-3.1.5.9-05")
def test_a_queue_on_hold_neither_waits_for_validation_nor_retries() -> None:
    desk = Desk()
    queue = desk.outgoing(PRIVATE)
    desk.core.queues.pause(queue)
    desk.send(PRIVATE)
    desk.advance(60_000)
    assert queue.state is Q.ON_HOLD
    assert desk.of(Resolve) == []
    assert desk.left(Timer.SESSION_RETRY_CONNECT, 1) is None
    assert len(queue.connection_history) == 0


@pytest.mark.requirement(
    "MQQB-3.1.5.2.1-04", "MQQB-3.1.5.2.1-06", "MQQB-3.1.5.2.1-08", "MQQB-3.1.1.3.1-03", "MQQB-3.1.1.3.1-02",
    "MQQB-3.1.1.3.1-26", "MQQB-3.1.1.3.1-27", "MQQB-3.1.1.3.1.3-01", "MQQB-3.1.1.3.1.3-02",
    "MQQB-3.1.1.3.1.3-03",
)  # fmt: skip
def test_every_address_of_every_next_hop_is_kept_in_order() -> None:
    desk = Desk()
    gates = {
        OTHER: QueueManager(OTHER, computer_name="beta", qualified_computer_name="beta.example"),
        THIRD: QueueManager(THIRD, computer_name="gamma", qualified_computer_name="gamma.example"),
    }
    desk.core.routing.get_next_hops = lambda guid: list(gates.values()) if guid == OTHER else []  # type: ignore[method-assign]
    queue = desk.outgoing(PRIVATE)
    queue.next_hops = ["IP=1.2.3.4"]
    desk.send(PRIVATE)
    questions = desk.of(Resolve)
    assert [question.host for question in questions] == ["beta.example", "gamma.example"]
    desk.engine.resolved(questions[1].request, ["10.0.0.4"])
    desk.take()
    assert desk.of(Connect) == [], "the others are still being resolved"
    desk.engine.resolved(questions[0].request, [THERE, "fd00::3"])
    desk.take()
    (session,) = desk.engine.sessions.values()
    assert [(hop.host_name, hop.qm_guid, hop.address) for hop in session.hops] == [
        ("beta.example", OTHER, THERE), ("beta.example", OTHER, "fd00::3"), ("gamma.example", THIRD,
        "10.0.0.4"),
    ]  # fmt: skip
    assert queue.next_hops == ["IP=10.0.0.2", "IPv6=fd00::3", "IP=10.0.0.4"]
    assert session.hop == 0
    assert (session.remote_address, session.remote_host_name, session.remote_guid) == (
        THERE,
        "beta.example",
        OTHER,
    )
    assert desk.of(Connect) == [Connect(session.connection or 0, THERE, "beta.example")]


@pytest.mark.requirement("MQQB-3.1.5.2-03")
def test_a_name_without_addresses_is_a_failure_of_names() -> None:
    desk = Desk()
    desk.send()
    desk.advance(2_000)
    desk.resolve()
    assert history(desk) == [ConnectionHistory(C.DNS_FAILURE, desk.utc, ERROR, ())]
    assert retry_left(desk) == 5_000
    desk.advance(5_000)
    assert len(desk.of(Resolve)) == 2, "it is asked again"


@pytest.mark.requirement("MQQB-3.1.5.2-03")
@pytest.mark.parametrize("status", [C.SOCKET_CREATE_FAILURE, C.SOCKET_CONNECT_FAILURE, C.UNKNOWN_FAILURE])
def test_a_connection_that_can_not_be_opened_is_written_down(status: ConnectionStatus) -> None:
    desk = Desk()
    desk.send()
    desk.resolve(THERE)
    desk.advance(3_000)
    desk.engine.connect_failed(desk.last(Connect).connection, status)
    assert history(desk) == [ConnectionHistory(status, desk.utc, ERROR, (THERE,))]
    assert retry_left(desk) == 5_000


@pytest.mark.requirement("MQQB-3.1.5.2.1-09")
def test_names_are_resolved_for_each_session_and_not_during_it() -> None:
    desk = Desk()
    peer = desk.dialled()
    peer.acknowledge()
    desk.send(count=5)
    desk.send(r"DIRECT=TCP:10.0.0.2\private$\more")
    assert len(desk.of(Resolve)) == 1
    peer.drop()
    desk.advance(5_000)
    assert len(desk.of(Resolve)) == 2


# -- 3.1.5.2.3: the request --------------------------------------------------------------------------------


@pytest.mark.requirement(
    "MQQB-3.1.5.2.3-02", "MQQB-3.1.5.2.3-03", "MQQB-3.1.5.2.3-04", "MQQB-3.1.5.2.3-05", "MQQB-3.1.5.2.3-06"
)
@pytest.mark.parametrize("direct", [True, False])
def test_the_request_byte_for_byte(direct: bool) -> None:
    desk = Desk(routes={OTHER: ["beta"]}, now=0x1_2345_6789)
    desk.knows(OTHER, "beta")
    peer = desk.dial(DIRECT if direct else PRIVATE)
    (request,) = peer.take()
    server = bytes(16) if direct else OTHER.bytes_le
    fields = h.establish_connection_header(client=OWN.bytes_le, server=server, time_stamp=0x2345_6789)
    assert request == h.establish_connection(fields)
    assert base_flags(request) & h.IN
    assert internal_flags(request) == 2
    assert peer.connection == desk.last(Connect).connection


@pytest.mark.requirement("MQQB-3.1.5.2.3-01", "MQQB-3.1.5.2.3-08", "MQQB-3.1.2.1-01", "MQQB-3.1.2.1-04")
@pytest.mark.parametrize(("delay", "expected"), [(0, 60_000), (250, 60_500)])
def test_the_initialization_timer_runs_from_the_request_to_the_parameters(delay: int, expected: int) -> None:
    desk = Desk(round_trip_delay_ms=delay)
    peer = desk.dial()
    timer = Timer.SESSION_INITIALIZATION, peer.session.number
    assert desk.left(*timer) == expected
    desk.advance(100)
    peer.send(peer.establish(client=OWN, server=OTHER))
    assert desk.left(*timer) == expected - 100, "it goes on until the parameters"
    peer.send(peer.parameters())
    assert desk.left(*timer) is None
    peer.acknowledge()
    desk.advance(100_000)
    assert peer.state is S.OPEN


@pytest.mark.requirement("MQQB-3.1.5.2.3-07", "MQQB-3.1.5.2.3-09")
def test_the_request_changes_states_and_is_written_down() -> None:
    desk = Desk()
    desk.send()
    desk.resolve(THERE)
    desk.advance(4_000)
    peer = desk.connect()
    assert peer.state is S.WAITING_ECR_MSG
    assert history(desk) == [ConnectionHistory(C.IN_PROCESS, desk.utc, 0, (THERE,))]
    assert desk.outgoing().state is Q.WAITING


@pytest.mark.requirement("MQQB-3.1.5.2.3-09", "MQQB-3.1.5.4.2-04")
def test_a_queue_on_hold_stays_so_while_its_session_opens() -> None:
    desk = Desk()
    desk.send()
    desk.core.queues.pause(desk.outgoing())
    desk.resolve(THERE)
    peer = desk.connect()
    assert desk.outgoing().state is Q.ON_HOLD
    peer.accept()
    assert desk.outgoing().state is Q.ON_HOLD
    assert peer.state is S.OPEN
    assert peer.take() == [], "messages of a queue on hold are not sent"


# -- 3.1.5.3.2: the response -------------------------------------------------------------------------------


@pytest.mark.requirement(
    "MQQB-3.1.5.3-02", "MQQB-3.1.5.3.2-01", "MQQB-3.1.5.3.2-06", "MQQB-3.1.5.3.2-07", "MQQB-3.1.1.1.1.1-04"
)
def test_a_valid_response_is_answered_by_the_parameters() -> None:
    desk = Desk(window_size=48, ack_wait_timeout_ms=21_000, round_trip_delay_ms=500)
    desk.knows(OTHER, "beta")
    peer = desk.dial(PRIVATE)
    began = desk.now
    peer.take()
    desk.advance(1_000)
    peer.send(peer.establish(client=OWN, server=OTHER, time_stamp=began))
    fields = h.connection_parameters_header(recoverable_ack_timeout=8_000, ack_timeout=21_500, window=48)
    assert peer.take() == [h.connection_parameters(fields)]
    assert peer.state is S.WAITING_CPR_MSG
    assert history(desk, PRIVATE)[1:] == [
        ConnectionHistory(C.ESTABLISH_PACKET_RECEIVED, desk.utc, 0, (THERE,))
    ]


@pytest.mark.requirement(
    "MQQB-3.1.5.3.2-01", "MQQB-3.1.5.3.2-03", "MQQB-3.1.5.3.2-04", "MQQB-3.1.1.1.1.1-03", "MQQB-3.1.5.2-03"
)
@pytest.mark.parametrize(
    "wrong",
    [
        {"client": OTHER},
        {"client": UUID(int=0)},
        {"server": THIRD},
        {"server": UUID(int=0)},
        {"internal": 0x12},
    ],
    ids=str,
)
def test_an_invalid_response_closes_the_session(wrong: dict[str, Any]) -> None:
    desk = Desk()
    desk.knows(OTHER, "beta")
    peer = desk.dial(PRIVATE)
    peer.take()
    peer.send(peer.establish(**({"client": OWN, "server": OTHER} | wrong)), peer.parameters())
    assert peer.closed
    assert peer.take() == [], "no ConnectionParameters packet is sent"
    assert desk.outgoing(PRIVATE).state is Q.DISCONNECTED
    assert history(desk, PRIVATE)[-1] == ConnectionHistory(C.CONNECTION_REFUSED, desk.utc, ERROR, (THERE,))
    assert desk.of(Disconnect) == [Disconnect(peer.connection)]


@pytest.mark.requirement("MQQB-3.1.5.3.2-02", "MQQB-3.1.1.3.1-02")
def test_by_a_direct_name_any_queue_manager_may_answer() -> None:
    desk = Desk()
    peer = desk.dial()
    peer.take()
    peer.send(peer.establish(client=OWN, server=THIRD))
    assert peer.state is S.WAITING_CPR_MSG
    assert peer.session.remote_guid == THIRD


@pytest.mark.requirement("MQQB-3.1.5.3.2-05", "MQQB-3.1.1.3.1-25", "MQQB-3.1.3.2-15")
@pytest.mark.parametrize(
    ("took", "expected"),
    [
        (0, 500),
        (62, 500),
        (63, 504),
        (1_000, 8_000),
        (14_999, 119_992),
        (15_000, 120_000),
        (15_001, 120_000),
        (59_000, 120_000),
    ],
)
def test_the_time_of_acknowledgements_is_eight_round_trips_within_limits(took: int, expected: int) -> None:
    desk = Desk(now=0xFFFF_FFF0)  # milliseconds wrap on the wire
    peer = desk.dial()
    assert peer.session.recoverable_ack_send_timeout == 0xFFFF_FFFF
    (request,) = peer.take()
    desk.advance(took)
    peer.send(peer.establish(client=OWN, server=OTHER, time_stamp=int.from_bytes(request[52:56], "little")))
    assert peer.session.recoverable_ack_send_timeout == expected
    assert struct.unpack_from("<L", peer.packets[0], 20) == (expected,)


@pytest.mark.requirement("MQQB-3.1.5.3-01")
@pytest.mark.parametrize("state", ["WAITING_CPR_MSG", "WAITING_CP_MSG", "OPEN, asked", "OPEN, asking"])
def test_an_establish_connection_packet_out_of_place_closes_the_session(state: str) -> None:
    desk = Desk()
    match state:
        case "WAITING_CPR_MSG":
            peer = desk.dial()
            peer.send(peer.establish(client=OWN, server=OTHER))
        case "WAITING_CP_MSG":
            peer = desk.ring()
            peer.send(peer.establish())
        case "OPEN, asked":
            peer = desk.rung()
        case _:
            peer = desk.dialled()
    assert peer.state.value == state.partition(",")[0]
    peer.take()
    peer.send(peer.establish(client=OWN, server=OTHER))
    assert peer.closed
    assert peer.take() == []


# -- 3.1.5.4: ConnectionParameters -------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.5.4-01")
@pytest.mark.parametrize("state", ["WAITING_EC_MSG", "WAITING_ECR_MSG", "OPEN"])
def test_parameters_out_of_place_close_the_session(state: str) -> None:
    desk = Desk()
    peer = {"WAITING_EC_MSG": desk.ring, "WAITING_ECR_MSG": desk.dial, "OPEN": desk.rung}[state]()
    assert peer.state.value == state
    peer.take()
    peer.send(peer.parameters())
    assert peer.closed
    assert peer.take() == []


@pytest.mark.requirement("MQQB-3.1.5.4-03")
@pytest.mark.parametrize("side", ["asking", "asked"])
def test_parameters_that_refuse_close_the_session(side: str) -> None:
    desk = Desk()
    if side == "asking":
        peer = desk.dial()
        peer.send(peer.establish(client=OWN, server=OTHER))
    else:
        peer = desk.ring()
        peer.send(peer.establish())
    peer.take()
    peer.send(peer.parameters(internal=0x13))
    assert peer.closed
    assert peer.take() == []


@pytest.mark.requirement(
    "MQQB-3.1.5.4-02", "MQQB-3.1.5.4.2-01", "MQQB-3.1.5.4.2-02", "MQQB-3.1.5.4.2-03", "MQQB-3.1.5.4.2-04",
    "MQQB-3.1.1.1.1.1-06", "MQQB-3.1.1.3.1-20",
)  # fmt: skip
def test_the_parameters_of_the_answer_open_the_session() -> None:
    desk = Desk()
    peer = desk.dial(addresses=("10.0.0.7", THERE, "10.0.0.8"))
    peer.drop()
    desk.advance(5_000)
    peer = desk.connect()
    assert desk.outgoing().next_hops == ["IP=10.0.0.7", "IP=10.0.0.2", "IP=10.0.0.8"]
    peer.send(peer.establish(client=OWN, server=OTHER))
    desk.advance(2_000)
    peer.take()
    peer.send(peer.parameters(window=31, ack=40_000, recoverable=9_000))
    assert peer.state is S.OPEN
    assert peer.session.received_window_size == 31
    assert peer.session.ack_wait_timeout == 20_000, "the side that asks keeps its own"
    assert peer.session.recoverable_ack_send_timeout != 9_000
    assert desk.outgoing().next_hops == ["IP=10.0.0.2"]
    assert desk.outgoing().state is Q.CONNECTED
    assert history(desk)[-1] == ConnectionHistory(C.ESTABLISHED, desk.utc, 0, (THERE,))
    assert desk.left(Timer.SESSION_INITIALIZATION, peer.session.number) is None
    assert peer.kinds() == "UM", "what waited is sent"


def test_pings_are_not_sent_unless_they_are_wanted() -> None:
    desk = Desk()
    desk.dialled()
    assert desk.of(SendDatagram) == []


def test_a_peer_without_a_connection_is_not_heard() -> None:
    desk = Desk()
    peer = Peer(desk, 99)
    desk.engine.received(99, peer.message())
    desk.engine.connected(99)
    desk.engine.disconnected(99)
    desk.engine.connect_failed(99, C.UNKNOWN_FAILURE)
    desk.engine.resolved(99, [THERE])
    assert desk.news() == []
