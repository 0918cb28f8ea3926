"""Establishing a protocol session as the initiator: [MS-MQQB] 3.1.5.2 to 3.1.5.4."""

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
from tests.support.engine_harness import OWN_ID, PEER_ADDRESS, PEER_ID, PEER_QUEUE, THIRD_ID, EngineHarness
from tests.support.peers.handwritten_peer import PA, HandwrittenPeer
from tests.support.qm.received_packets import ReceivedPacket

S, Q, C = SessionState, OutgoingQueueState, ConnectionStatus
PRIVATE = f"PRIVATE={PEER_ID}\\0000000a"
ERROR = HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE


def history(harness: EngineHarness, name: str = PEER_QUEUE) -> list[ConnectionHistory]:
    return list(harness.outgoing(name).connection_history)


def retry_left(harness: EngineHarness) -> int | None:
    (session,) = harness.engine.sessions.values()
    return harness.time_left(Timer.SESSION_RETRY_CONNECT, session.number)


def routed(*hops: UUID | str, **settings: Any) -> EngineHarness:
    return EngineHarness(routes={PEER_ID: list(hops)}, **settings)


# -- 3.1.5.2 and 3.1.5.2.1: Resolve Host Address -----------------------------------------------------------


def test_the_resolver_keeps_places_for_hosts_of_applications() -> None:
    """The owner keeps places of its resolver for applications."""
    harness = EngineHarness()
    harness.queue()
    peer = harness.accept_session()
    peer.send_message(acks=PA, admin=(7, h.direct_name(r"OS:third\private$\adm")))
    (asked,) = harness.effects_of(Resolve)
    assert asked[1:] == ("third", False)
    harness.send(to=PEER_QUEUE)
    assert harness.last_effect(Resolve)[1:] == (PEER_ADDRESS, True)
    harness.send(b"1", b"2", to=r"DIRECT=OS:third\private$\orders")
    again = [question for question in harness.effects_of(Resolve) if question.host == "third"]
    assert again == [asked, Resolve(asked.request, "third", local=True)], "an application asks for it, too"
    harness.engine.resolved(asked.request, ["10.0.0.33"])
    harness.engine.resolved(asked.request, ["10.0.0.34"])
    harness.run()
    assert [effect.address for effect in harness.effects_of(Connect)] == ["10.0.0.33"]


def test_a_name_is_asked_for_again_by_who_still_needs_it() -> None:
    harness = EngineHarness()
    harness.queue()
    peer = harness.accept_session()
    peer.send_message(acks=PA, admin=(7, h.direct_name(r"OS:third\private$\adm")))
    harness.resolve()
    harness.send(to=r"DIRECT=OS:third\private$\adm")
    harness.advance(harness.core.context.settings.session_retry_connect_ms)
    assert [question.local for question in harness.effects_of(Resolve)] == [False, True]


@pytest.mark.requirement(
    "MQQB-3.1.5.2-01", "MQQB-3.1.5.2-02", "MQQB-3.1.1.1.1.1-01", "MQQB-3.1.5.2.1-07/a", "MQQB-3.1.5.2.1-04"
)
def test_a_message_for_elsewhere_makes_a_session_step_by_step() -> None:
    harness = EngineHarness()
    asked: list[UUID] = []
    harness.core.routing.get_next_hops = lambda guid: asked.append(guid) or []  # type: ignore[method-assign, func-returns-value]
    harness.open_to_send()
    assert harness.new_effects() == [], "nothing happens before there is a message"
    harness.send()
    (resolve,) = harness.new_effects()
    assert isinstance(resolve, Resolve)
    assert resolve.host == PEER_ADDRESS
    harness.resolve(PEER_ADDRESS)
    (connect,) = harness.new_effects()
    assert isinstance(connect, Connect)
    assert connect.address == PEER_ADDRESS
    peer = harness.connect()
    (send,) = harness.new_effects()
    assert isinstance(send, Send)
    assert ReceivedPacket(send.data).kind == "EstablishConnection"
    assert peer.state is S.WAITING_ECR_MSG
    assert asked == [], "a direct name has no next hops"


@pytest.mark.requirement("MQQB-3.1.5.2.1-01", "MQQB-3.1.1.3.1-17")
def test_the_session_serves_the_outgoing_queue_of_that_name() -> None:
    harness = EngineHarness()
    harness.open_to_send(r"DIRECT=TCP:10.0.0.9\private$\other")
    peer = harness.request_session()
    queue = harness.core.queue_manager.queues[harness.outgoing().number]
    assert isinstance(queue, OutgoingQueue)
    assert queue.destination is not None
    assert queue.destination.canonical == harness.outgoing().destination.canonical  # type: ignore[union-attr]
    assert [transfer.queue for transfer in peer.session.transfers] == [queue]
    harness.send()
    assert [transfer.queue for transfer in peer.session.transfers] == [queue], "it is found again"


@pytest.mark.requirement("MQQB-3.1.5.2.1-02", "MQQB-3.1.5.2.1-03", "MQQB-3.1.5.2-03")
def test_a_queue_whose_host_is_not_known_waits_for_validation() -> None:
    harness = EngineHarness()
    name = f"PRIVATE={THIRD_ID}\\0000000b"
    harness.core.routing.get_destination_info = lambda _: None  # type: ignore[method-assign]
    harness.send(to=name)
    queue = harness.outgoing(name)
    assert harness.effects_of(Resolve) == []
    assert queue.state is Q.NEED_VALIDATION
    assert retry_left(harness) == 5_000
    assert history(harness, name) == [ConnectionHistory(C.ROUTING_DATA_NOT_AVAILABLE, harness.utc, ERROR, ())]


@pytest.mark.requirement("MQQB-3.1.5.2.1-02")
def test_get_destination_info_is_asked_again_each_time() -> None:
    harness = EngineHarness(routes={PEER_ID: ["beta"]})
    name, second = f"PRIVATE={THIRD_ID}\\0000000b", f"PRIVATE={UUID(int=0xC4)}\\0000000c"
    hosts: dict[UUID, UUID] = {}

    def get_destination_info(name: Any) -> Any:
        host = hosts.get(name.guid)
        return None if host is None else type("Destination", (), {"host": "", "queue_manager": host})()

    harness.core.routing.get_destination_info = get_destination_info  # type: ignore[method-assign]
    harness.send(to=name)
    harness.send(to=second)
    assert len(harness.engine.sessions) == 2, "two queues with unknown hosts need not share a session"
    hosts[THIRD_ID] = PEER_ID
    harness.advance(5_000)
    assert [question.host for question in harness.effects_of(Resolve)] == ["beta"]
    assert harness.outgoing(second).state is Q.NEED_VALIDATION
    harness.resolve(PEER_ADDRESS)
    harness.connect().answer_handshake(server=PEER_ID)
    assert harness.outgoing(name).state is Q.CONNECTED
    hosts[UUID(int=0xC4)] = PEER_ID
    harness.advance(5_000)
    assert harness.outgoing(second).state is Q.CONNECTED, "the session to that host serves it too"
    assert len(harness.engine.sessions) == 1


@pytest.mark.requirement("MQQB-3.1.5.2.1-04", "MQQB-3.1.5.2.1-05", "MQQB-3.1.5.2-03")
def test_without_next_hops_the_queue_waits_for_validation() -> None:
    harness = EngineHarness()
    harness.send(to=PRIVATE)
    assert harness.effects_of(Resolve) == []
    assert harness.outgoing(PRIVATE).state is Q.NEED_VALIDATION
    assert retry_left(harness) == 5_000
    assert history(harness, PRIVATE) == [
        ConnectionHistory(C.ROUTING_DATA_NOT_AVAILABLE, harness.utc, ERROR, ())
    ]
    harness.core.routing.routes = {PEER_ID: ["gate.example"]}
    harness.advance(5_000)
    assert harness.last_effect(Resolve).host == "gate.example"


@pytest.mark.requirement("MQQB-3.1.5.2.1-05", "MQQB-3.1.5.9-05")
def test_a_queue_on_hold_starts_no_validation_and_no_retry() -> None:
    harness = EngineHarness()
    queue = harness.outgoing(PRIVATE)
    harness.core.queues.pause(queue)
    harness.send(to=PRIVATE)
    harness.advance(60_000)
    assert queue.state is Q.ON_HOLD
    assert harness.effects_of(Resolve) == []
    assert harness.time_left(Timer.SESSION_RETRY_CONNECT, 1) is None
    assert len(queue.connection_history) == 0


@pytest.mark.requirement("MQQB-3.1.5.2.1-03", "MQQB-3.1.5.2.1-05")
@pytest.mark.parametrize("known", [False, True], ids=["no destination", "no next hops"])
def test_a_failed_lookup_leaves_a_queue_on_hold(known: bool) -> None:
    harness = EngineHarness()
    if not known:
        harness.core.routing.get_destination_info = lambda _: None  # type: ignore[method-assign]
    harness.send(to=PRIVATE)
    queue = harness.outgoing(PRIVATE)
    assert queue.state is Q.NEED_VALIDATION
    harness.core.queues.pause(queue)
    harness.advance(5_000)
    assert queue.state is Q.ON_HOLD
    assert len(queue.connection_history) == 2, "it was looked up again"
    assert harness.time_left(Timer.SESSION_RETRY_CONNECT, 1) is None


@pytest.mark.requirement(
    "MQQB-3.1.5.2.1-04", "MQQB-3.1.5.2.1-06", "MQQB-3.1.5.2.1-08", "MQQB-3.1.1.3.1-03", "MQQB-3.1.1.3.1-02",
    "MQQB-3.1.1.3.1-26", "MQQB-3.1.1.3.1-27", "MQQB-3.1.1.3.1.3-01", "MQQB-3.1.1.3.1.3-02",
    "MQQB-3.1.1.3.1.3-03",
)  # fmt: skip
def test_every_address_of_every_next_hop_is_kept_in_order() -> None:
    harness = EngineHarness()
    gates = {
        PEER_ID: QueueManager(PEER_ID, computer_name="beta", qualified_computer_name="beta.example"),
        THIRD_ID: QueueManager(THIRD_ID, computer_name="gamma", qualified_computer_name="gamma.example"),
    }
    harness.core.routing.get_next_hops = lambda guid: list(gates.values()) if guid == PEER_ID else []  # type: ignore[method-assign]
    queue = harness.outgoing(PRIVATE)
    queue.next_hops = ["IP=1.2.3.4"]
    harness.send(to=PRIVATE)
    questions = harness.effects_of(Resolve)
    assert [question.host for question in questions] == ["beta.example", "gamma.example"]
    harness.engine.resolved(questions[1].request, ["10.0.0.4"])
    harness.run()
    assert harness.effects_of(Connect) == [], "the other hosts are still being resolved"
    harness.engine.resolved(questions[0].request, [PEER_ADDRESS, "fd00::3"])
    harness.run()
    (session,) = harness.engine.sessions.values()
    assert [(hop.host_name, hop.qm_guid, hop.address) for hop in session.hops] == [
        ("beta.example", PEER_ID, PEER_ADDRESS),
        ("beta.example", PEER_ID, "fd00::3"),
        ("gamma.example", THIRD_ID, "10.0.0.4"),
    ]
    assert queue.next_hops == ["IP=10.0.0.2", "IPv6=fd00::3", "IP=10.0.0.4"]
    assert session.hop == 0
    assert (session.remote_address, session.remote_host_name, session.remote_guid) == (
        PEER_ADDRESS,
        "beta.example",
        PEER_ID,
    )
    assert harness.effects_of(Connect) == [Connect(session.connection or 0, PEER_ADDRESS, "beta.example")]


@pytest.mark.requirement("MQQB-3.1.5.2.1-08")
def test_the_first_hop_is_the_first_that_has_an_address() -> None:
    harness = EngineHarness()
    gates = [QueueManager(PEER_ID, computer_name="beta"), QueueManager(THIRD_ID, computer_name="gamma")]
    harness.core.routing.get_next_hops = lambda guid: gates  # type: ignore[method-assign]
    harness.send(to=PRIVATE)
    first, second = harness.effects_of(Resolve)
    harness.engine.resolved(first.request, [])
    harness.engine.resolved(second.request, ["10.0.0.4"])
    (session,) = harness.engine.sessions.values()
    taken = session.remote_address, session.remote_host_name, session.remote_guid
    assert taken == ("10.0.0.4", "gamma", THIRD_ID)


@pytest.mark.requirement("MQQB-3.1.5.2-03")
def test_a_name_without_addresses_is_a_failure_of_names() -> None:
    harness = EngineHarness()
    harness.send()
    harness.advance(2_000)
    harness.resolve()
    assert history(harness) == [ConnectionHistory(C.DNS_FAILURE, harness.utc, ERROR, ())]
    assert retry_left(harness) == 5_000
    harness.advance(5_000)
    assert len(harness.effects_of(Resolve)) == 2, "the name is resolved again"


@pytest.mark.requirement("MQQB-3.1.5.2-03")
@pytest.mark.parametrize("status", [C.SOCKET_CREATE_FAILURE, C.SOCKET_CONNECT_FAILURE, C.UNKNOWN_FAILURE])
def test_a_connection_that_can_not_be_opened_is_written_down(status: ConnectionStatus) -> None:
    harness = EngineHarness()
    harness.send()
    harness.resolve(PEER_ADDRESS)
    harness.advance(3_000)
    harness.engine.connect_failed(harness.last_effect(Connect).connection, status)
    assert history(harness) == [ConnectionHistory(status, harness.utc, ERROR, (PEER_ADDRESS,))]
    assert retry_left(harness) == 5_000


@pytest.mark.requirement("MQQB-3.1.5.2.1-09", "MQQB-3.1.5.2-01")
def test_names_are_resolved_for_each_session_and_not_during_it() -> None:
    harness = EngineHarness()
    peer = harness.open_session()
    peer.acknowledge()
    harness.send(count=5)
    harness.send(to=r"DIRECT=TCP:10.0.0.2\private$\more")
    assert len(harness.effects_of(Resolve)) == 1
    peer.disconnect()
    harness.advance(5_000)
    assert len(harness.effects_of(Resolve)) == 2


# -- 3.1.5.2.3: the request --------------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-2.2.3.1-01")
@pytest.mark.requirement("MQQB-2.2.3.1-02", "MQQB-2.2.3.1-04", "MQQB-2.2.3.1-06", "MQQB-2.2.3.1-14")
@pytest.mark.requirement(
    "MQQB-3.1.5.2.1-07/b",
    "MQQB-3.1.5.2.3-02",
    "MQQB-3.1.5.2.3-03",
    "MQQB-3.1.5.2.3-04",
    "MQQB-3.1.5.2.3-05",
    "MQQB-3.1.5.2.3-06",
)
@pytest.mark.parametrize("direct", [True, False])
def test_the_request_byte_for_byte(direct: bool) -> None:
    harness = EngineHarness(routes={PEER_ID: ["beta"]}, now=0x1_2345_6789)
    harness.route_to(PEER_ID, "beta")
    peer = harness.request_session(to=PEER_QUEUE if direct else PRIVATE)
    (request,) = peer.take()
    server = bytes(16) if direct else PEER_ID.bytes_le
    fields = h.establish_connection_header(client=OWN_ID.bytes_le, server=server, time_stamp=0x2345_6789)
    assert request == h.establish_connection(fields)
    assert request.base_flags & h.IN
    assert request.internal_flags == 2
    assert peer.connection == harness.last_effect(Connect).connection


@pytest.mark.requirement("MQQB-2.2.3.1-12")
def test_a_client_system_says_so_in_its_request() -> None:
    (request,) = EngineHarness(server_class=False).request_session().take()
    assert request.OperatingSystem == 0x0110


@pytest.mark.requirement("MQQB-3.1.5.2.3-01", "MQQB-3.1.5.2.3-08", "MQQB-3.1.2.1-01", "MQQB-3.1.2.1-04")
@pytest.mark.parametrize(("delay", "expected"), [(0, 60_000), (250, 60_500)])
def test_the_initialization_timer_ends_with_the_parameters(delay: int, expected: int) -> None:
    harness = EngineHarness(round_trip_delay_ms=delay)
    peer = harness.request_session()
    timer = Timer.SESSION_INITIALIZATION, peer.session.number
    assert harness.time_left(*timer) == expected
    harness.advance(100)
    peer.send(peer.establish(client=OWN_ID, server=PEER_ID))
    assert harness.time_left(*timer) == expected - 100, "it runs until ConnectionParameters"
    peer.send(peer.parameters())
    assert harness.time_left(*timer) is None
    peer.acknowledge()
    harness.advance(100_000)
    assert peer.state is S.OPEN
    other = EngineHarness(round_trip_delay_ms=delay)
    other.request_session().disconnect()
    assert other.time_left(*timer) is None
    other.advance(10_000)
    other.resolve(PEER_ADDRESS)
    other.connect()
    assert other.time_left(*timer) == expected, "it starts anew with each request"


@pytest.mark.requirement("MQQB-3.1.5.2.3-07", "MQQB-3.1.5.2.3-09")
def test_the_request_changes_states_and_is_written_down() -> None:
    harness = EngineHarness()
    harness.send()
    harness.resolve(PEER_ADDRESS)
    harness.advance(4_000)
    peer = harness.connect()
    assert peer.state is S.WAITING_ECR_MSG
    assert history(harness) == [ConnectionHistory(C.IN_PROCESS, harness.utc, 0, (PEER_ADDRESS,))]
    assert harness.outgoing().state is Q.WAITING


@pytest.mark.requirement("DMPR-3.1.1.3-11/b")
@pytest.mark.requirement("MQQB-3.1.5.2.3-09", "MQQB-3.1.5.4.2-04")
def test_a_queue_on_hold_stays_so_while_its_session_opens() -> None:
    harness = EngineHarness()
    harness.send()
    harness.core.queues.pause(harness.outgoing())
    harness.resolve(PEER_ADDRESS)
    peer = harness.connect()
    assert harness.outgoing().state is Q.ON_HOLD
    peer.answer_handshake()
    assert harness.outgoing().state is Q.ON_HOLD
    assert peer.state is S.OPEN
    assert peer.take() == [], "messages of a queue on hold are not sent"


# -- 3.1.5.3.2: the response -------------------------------------------------------------------------------


@pytest.mark.requirement(
    "MQQB-3.1.5.3-02", "MQQB-3.1.5.3.2-01", "MQQB-3.1.5.3.2-06", "MQQB-3.1.5.3.2-07", "MQQB-3.1.1.1.1.1-04"
)
def test_a_valid_response_is_answered_by_the_parameters() -> None:
    harness = EngineHarness(window_size=48, ack_wait_timeout_ms=21_000, round_trip_delay_ms=500)
    harness.route_to(PEER_ID, "beta")
    peer = harness.request_session(to=PRIVATE)
    began = harness.now
    peer.take()
    harness.advance(1_000)
    peer.send(peer.establish(client=OWN_ID, server=PEER_ID, time_stamp=began))
    fields = h.connection_parameters_header(recoverable_ack_timeout=8_000, ack_timeout=21_500, window=48)
    assert peer.take() == [h.connection_parameters(fields)]
    assert peer.state is S.WAITING_CPR_MSG
    assert history(harness, PRIVATE)[1:] == [
        ConnectionHistory(C.ESTABLISH_PACKET_RECEIVED, harness.utc, 0, (PEER_ADDRESS,))
    ]


@pytest.mark.requirement("DMPR-3.1.1.3-15")
@pytest.mark.requirement(
    "MQQB-3.1.5.3.2-01", "MQQB-3.1.5.3.2-03", "MQQB-3.1.5.3.2-04", "MQQB-3.1.1.1.1.1-03", "MQQB-3.1.5.2-03"
)
@pytest.mark.parametrize(
    "wrong",
    [
        {"client": PEER_ID},
        {"client": UUID(int=0)},
        {"server": THIRD_ID},
        {"server": UUID(int=0)},
        {"internal": 0x12},
    ],
    ids=str,
)
def test_an_invalid_response_closes_the_session(wrong: dict[str, Any]) -> None:
    harness = EngineHarness()
    harness.route_to(PEER_ID, "beta")
    peer = harness.request_session(to=PRIVATE)
    peer.take()
    peer.send(peer.establish(**({"client": OWN_ID, "server": PEER_ID} | wrong)), peer.parameters())
    assert peer.closed
    assert peer.take() == [], "no ConnectionParameters packet is sent"
    assert harness.outgoing(PRIVATE).state is Q.DISCONNECTED
    assert history(harness, PRIVATE)[-1] == ConnectionHistory(
        C.CONNECTION_REFUSED, harness.utc, ERROR, (PEER_ADDRESS,)
    )
    assert harness.effects_of(Disconnect) == [Disconnect(peer.connection)]


@pytest.mark.requirement("MQQB-3.1.5.3.2-02", "MQQB-3.1.1.3.1-02")
def test_by_a_direct_name_any_queue_manager_may_answer() -> None:
    harness = EngineHarness()
    peer = harness.request_session()
    peer.take()
    peer.send(peer.establish(client=OWN_ID, server=THIRD_ID))
    assert peer.state is S.WAITING_CPR_MSG
    assert peer.session.remote_guid == THIRD_ID


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
def test_the_ack_interval_is_eight_round_trips_within_limits(took: int, expected: int) -> None:
    harness = EngineHarness(now=0xFFFF_FFF0)  # milliseconds wrap round on the wire
    peer = harness.request_session()
    assert peer.session.recoverable_ack_send_timeout == 0xFFFF_FFFF
    (request,) = peer.take()
    harness.advance(took)
    peer.send(peer.establish(client=OWN_ID, server=PEER_ID, time_stamp=request.TimeStamp))
    assert peer.session.recoverable_ack_send_timeout == expected
    assert struct.unpack_from("<L", peer.packets[0], 20) == (expected,)


@pytest.mark.requirement("MQQB-3.1.5.3.2-05")
def test_the_ack_interval_is_taken_from_the_answer() -> None:
    harness = EngineHarness()
    peer = harness.request_session()
    peer.take()
    harness.advance(3_000)
    peer.send(peer.establish(client=OWN_ID, server=PEER_ID, time_stamp=harness.now - 1_000))
    assert peer.session.recoverable_ack_send_timeout == 8_000, "not by the time of our own request"


@pytest.mark.requirement("MQQB-3.1.5.3-01")
@pytest.mark.parametrize("state", ["WAITING_CPR_MSG", "WAITING_CP_MSG", "OPEN, asked", "OPEN, asking"])
def test_a_misplaced_establish_connection_closes_the_session(state: str) -> None:
    harness = EngineHarness()
    match state:
        case "WAITING_CPR_MSG":
            peer = harness.request_session()
            peer.send(peer.establish(client=OWN_ID, server=PEER_ID))
        case "WAITING_CP_MSG":
            peer = harness.accept_connection()
            peer.send(peer.establish())
        case "OPEN, asked":
            peer = harness.accept_session()
        case _:
            peer = harness.open_session()
    assert peer.state.value == state.partition(",")[0]
    peer.take()
    peer.send(peer.establish(client=OWN_ID, server=PEER_ID))
    assert peer.closed
    assert peer.take() == []


# -- 3.1.5.4: ConnectionParameters -------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.5.4-01")
@pytest.mark.parametrize("state", ["WAITING_EC_MSG", "WAITING_ECR_MSG", "OPEN"])
def test_parameters_out_of_place_close_the_session(state: str) -> None:
    harness = EngineHarness()
    peer = {
        "WAITING_EC_MSG": harness.accept_connection,
        "WAITING_ECR_MSG": harness.request_session,
        "OPEN": harness.accept_session,
    }[state]()
    assert peer.state.value == state
    peer.take()
    peer.send(peer.parameters())
    assert peer.closed
    assert peer.take() == []


@pytest.mark.requirement("MQQB-3.1.5.4-03")
@pytest.mark.parametrize("side", ["asking", "asked"])
def test_parameters_that_refuse_close_the_session(side: str) -> None:
    harness = EngineHarness()
    if side == "asking":
        peer = harness.request_session()
        peer.send(peer.establish(client=OWN_ID, server=PEER_ID))
    else:
        peer = harness.accept_connection()
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
    harness = EngineHarness()
    peer = harness.request_session(addresses=("10.0.0.7", PEER_ADDRESS, "10.0.0.8"))
    peer.disconnect()
    harness.advance(5_000)
    peer = harness.connect()
    assert harness.outgoing().next_hops == ["IP=10.0.0.7", "IP=10.0.0.2", "IP=10.0.0.8"]
    peer.send(peer.establish(client=OWN_ID, server=PEER_ID))
    harness.advance(2_000)
    peer.take()
    peer.send(peer.parameters(window=31, ack=40_000, recoverable=9_000))
    assert peer.state is S.OPEN
    assert peer.session.received_window_size == 31
    assert peer.session.ack_wait_timeout == 20_000, "the initiator keeps its own value"
    assert peer.session.recoverable_ack_send_timeout != 9_000
    assert harness.outgoing().next_hops == ["IP=10.0.0.2"]
    assert harness.outgoing().state is Q.CONNECTED
    assert history(harness)[-1] == ConnectionHistory(C.ESTABLISHED, harness.utc, 0, (PEER_ADDRESS,))
    assert harness.time_left(Timer.SESSION_INITIALIZATION, peer.session.number) is None
    assert peer.kinds() == ["UserMessage"], "the waiting message is sent"


def test_pings_are_not_sent_unless_they_are_wanted() -> None:
    harness = EngineHarness()
    harness.open_session()
    assert harness.effects_of(SendDatagram) == []


def test_a_peer_without_a_connection_is_not_heard() -> None:
    harness = EngineHarness()
    peer = HandwrittenPeer(harness, 99, PEER_ID)
    harness.engine.received(99, peer.message())
    harness.engine.connected(99)
    harness.engine.disconnected(99)
    harness.engine.connect_failed(99, C.UNKNOWN_FAILURE)
    harness.engine.resolved(99, [PEER_ADDRESS])
    assert harness.new_effects() == []
