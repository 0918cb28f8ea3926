"""Sending and answering pings: [MS-MQQB] 3.1.1.1.1.9, 3.1.2.9, 3.1.5.2.2, 3.1.6.8 and 3.1.7.6 to 3.1.7.9."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.constants import HResult
from msmqwire.qm.model.effects import Connect, SendDatagram
from msmqwire.qm.model.elements import ConnectionHistory
from msmqwire.qm.model.enumerations import ConnectionStatus, OutgoingQueueState
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.states import PING, PingState
from tests.support import handmade as h
from tests.support.engine_harness import OWN_ID, PEER_ADDRESS, PEER_ID, EngineHarness
from tests.support.qm.harness_network import joined_pair

W = PingState.WAITING
SECOND = r"DIRECT=TCP:10.0.0.3\private$\orders"
RC, RF = 1, 2


def asking(**settings: object) -> EngineHarness:
    """A harness that has a message to send and waits for the reply to its ping."""
    harness = EngineHarness(ping=True, **settings)  # type: ignore[arg-type]
    harness.send()
    assert harness.effects_of(SendDatagram) == [], "its address comes first"
    harness.resolve(PEER_ADDRESS)
    return harness


def answer(harness: EngineHarness, *, cookie: int = 1, flags: int = 0, **fields: int) -> None:
    harness.engine.datagram(
        h.ping(cookie=cookie, flags=flags, queue_manager=PEER_ID.bytes_le, **fields),
        PEER_ADDRESS,
        3527,
        request=False,  # type: ignore[arg-type]
    )
    harness.run()


def refused(harness: EngineHarness) -> bool:
    (session,) = harness.engine.sessions.values()
    return (
        harness.effects_of(Connect) == []
        and harness.time_left(Timer.SESSION_RETRY_CONNECT, session.number) is not None
    )


@pytest.mark.requirement(
    "MQQB-3.1.1.1.1.9-01", "MQQB-3.1.1.1.1.9-02", "MQQB-3.1.1.1.1.9-03", "MQQB-3.1.1.1.1.9-04"
)
def test_the_table_is_figure_11() -> None:
    assert PING == {
        (W, "Ping Response Timer"): PingState.REFUSED,
        (W, "Ping Response, RF 1"): PingState.REFUSED,
        (W, "Ping Response, RF 0"): PingState.ACCEPTED,
    }
    assert PingState.ACCEPTED.value == "TRUE"
    assert PingState.REFUSED.value == "FALSE"


@pytest.mark.requirement("MQQB-2.1.2-04", "MQQB-2.2.7-03", "MQQB-2.2.7-05", "MQQB-2.2.7-13")
@pytest.mark.requirement(
    "MQQB-3.1.7.6-01", "MQQB-3.1.1.1.1.9-01", "MQQB-3.1.5.2.2-01", "MQQB-3.1.5.2.2-02", "MQQB-3.1.5.2-02"
)
@pytest.mark.parametrize("server", [True, False])
def test_the_request_byte_for_byte(server: bool) -> None:
    harness = asking(server_class=server)
    flags = 0 if server else RC
    expected = h.ping(flags=flags, cookie=1, queue_manager=OWN_ID.bytes_le)
    assert expected[2:4] == b"\x48\x55"
    assert harness.effects_of(SendDatagram) == [SendDatagram(PEER_ADDRESS, 3527, expected, request=True)]
    assert harness.effects_of(Connect) == [], "the connection waits for the reply"
    assert harness.time_left(Timer.PING_RESPONSE, 1) == 1_000


@pytest.mark.requirement(
    "MQQB-3.1.7.6-04", "MQQB-3.1.1.1.1.9-01", "MQQB-3.1.1.1.1.9-04", "MQQB-3.1.5.2.2-02", "MQQB-3.1.7.9-01",
    "MQQB-3.1.7.8-03", "MQQB-3.1.5.2-02",
)  # fmt: skip
def test_a_response_with_rf_0_goes_on_to_the_connection() -> None:
    harness = asking()
    answer(harness)
    assert harness.time_left(Timer.PING_RESPONSE, 1) is None
    assert harness.effects_of(Connect)
    (request,) = harness.connect().take()
    assert int.from_bytes(request[56:58], "little") & 0x100 == 0, "SE is 0 after a ping"
    harness.advance(30_000)
    assert len(harness.effects_of(Connect)) == 1


@pytest.mark.requirement(
    "MQQB-3.1.7.6-04", "MQQB-3.1.1.1.1.9-03", "MQQB-3.1.5.2.2-02", "MQQB-3.1.5.2.2-03", "MQQB-3.1.7.9-01"
)
def test_a_response_with_rf_1_is_a_ping_failure() -> None:
    harness = asking()
    harness.advance(500)
    answer(harness, flags=RF)
    assert refused(harness)
    assert harness.time_left(Timer.PING_RESPONSE, 1) is None
    assert harness.time_left(Timer.SESSION_RETRY_CONNECT, 1) == 5_000
    error = HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE
    assert list(harness.outgoing().connection_history) == [
        ConnectionHistory(ConnectionStatus.PING_FAILURE, harness.utc, error, (PEER_ADDRESS,))
    ]


@pytest.mark.requirement("DMPR-3.1.1.3-15")
@pytest.mark.requirement(
    "MQQB-3.1.6.8-01", "MQQB-3.1.7.6-02", "MQQB-3.1.7.6-03", "MQQB-3.1.1.1.1.9-02", "MQQB-3.1.2.9-02",
    "MQQB-3.1.5.2.2-03",
)  # fmt: skip
def test_no_response_within_exactly_a_second_is_a_ping_failure() -> None:
    harness = asking()
    assert harness.time_left(Timer.PING_RESPONSE, 1) == 1_000
    harness.advance(999)
    assert not refused(harness)
    harness.advance(1)
    assert refused(harness)
    assert [entry.status for entry in harness.outgoing().connection_history] == [
        ConnectionStatus.PING_FAILURE
    ]
    answer(harness)
    assert refused(harness), "a later reply is ignored"


@pytest.mark.requirement("MQQB-3.1.5.2.2-03")
def test_a_ping_that_fails_starts_no_timer_when_nothing_waits() -> None:
    harness = asking()
    harness.core.messages.purge(harness.outgoing())
    answer(harness, flags=RF)
    assert harness.engine.sessions == {}
    assert harness.core.deadline is None or not harness.time_left(Timer.SESSION_RETRY_CONNECT, 1)


@pytest.mark.requirement("MQQB-3.1.5.2.2-01", "MQQB-3.1.6.1-04", "MQQB-3.1.5.2.3-06")
def test_a_retry_with_the_next_address_does_not_ping() -> None:
    harness = EngineHarness(ping=True)
    harness.send()
    harness.resolve(PEER_ADDRESS, "10.0.0.3")
    answer(harness, flags=RF)
    harness.advance(5_000)
    assert len(harness.effects_of(SendDatagram)) == 1
    assert harness.last_effect(Connect).address == "10.0.0.3"
    (request,) = harness.connect().take()
    assert int.from_bytes(request[56:58], "little") & 0x100, "SE is 1 without a ping"


@pytest.mark.requirement("MQQB-3.1.5.2.2-01", "MQQB-3.1.6.1-04")
def test_a_retry_from_the_start_does_not_ping_either() -> None:
    harness = asking()
    harness.advance(6_000)
    harness.resolve(PEER_ADDRESS)
    assert len(harness.effects_of(SendDatagram)) == 1
    (request,) = harness.connect().take()
    assert int.from_bytes(request[56:58], "little") & 0x100


@pytest.mark.requirement("MQQB-3.1.1.3-18", "MQQB-3.1.3.2-18", "MQQB-3.1.2.9-01", "MQQB-3.1.7.6-02")
def test_each_request_has_a_cookie_and_a_timer_of_its_own() -> None:
    harness = EngineHarness(ping=True)
    assert harness.engine.pings.cookie == 0
    for number, name in enumerate((r"DIRECT=TCP:10.0.0.2\private$\orders", SECOND)):
        harness.send(to=name)
        harness.resolve(name[11:19])
        harness.advance(300)
        assert harness.effects_of(SendDatagram)[number].data[4:8] == (number + 1).to_bytes(4, "little")
    assert harness.time_left(Timer.PING_RESPONSE, 1) == 400
    assert harness.time_left(Timer.PING_RESPONSE, 2) == 700
    harness.advance(500)
    assert harness.time_left(Timer.PING_RESPONSE, 1) is None
    assert harness.time_left(Timer.PING_RESPONSE, 2) == 200
    answer(harness, cookie=2)
    assert [connect.address for connect in harness.effects_of(Connect)] == ["10.0.0.3"]


@pytest.mark.requirement("MQQB-2.2.7-12")
@pytest.mark.requirement("MQQB-3.1.7.8-02")
@pytest.mark.parametrize("cookie", [0, 1, 3, 0x0100_0002, 0xFFFF_FFFF])
def test_a_response_with_another_cookie_is_ignored(cookie: int) -> None:
    harness = asking()
    harness.send(to=SECOND)
    harness.resolve("10.0.0.3")
    answer(harness, cookie=cookie)
    assert harness.effects_of(Connect) == []
    assert harness.time_left(Timer.PING_RESPONSE, 1) == harness.time_left(Timer.PING_RESPONSE, 2) == 1_000
    answer(harness, cookie=2)
    assert len(harness.effects_of(Connect)) == 1


@pytest.mark.requirement("MQQB-3.1.7.8-01")
@pytest.mark.parametrize("signature", [0, 0x5549, 0x4855])
def test_a_response_with_another_signature_is_ignored(signature: int) -> None:
    harness = asking()
    answer(harness, signature=signature)
    assert harness.effects_of(Connect) == []
    assert harness.time_left(Timer.PING_RESPONSE, 1) == 1_000


@pytest.mark.requirement("MQQB-3.1.7.8-03")
def test_a_response_that_nobody_waits_for_is_ignored() -> None:
    harness = asking()
    answer(harness)
    harness.new_effects()
    answer(harness)
    answer(harness, flags=RF)
    assert harness.new_effects() == []
    assert len(harness.effects_of(Connect)) == 1
    fresh = EngineHarness()
    answer(fresh, cookie=0)
    assert fresh.new_effects() == []


@pytest.mark.requirement("MQQB-2.1.2-02", "MQQB-2.1.2-07", "MQQB-2.2.7-04", "MQQB-2.2.7-07", "MQQB-2.2.7-13")
@pytest.mark.requirement("MQQB-3.1.7.7-02", "MQQB-3.1.7.7-03")
@pytest.mark.parametrize("flags", [0, RC, 0xFFFC])
def test_a_request_is_answered_where_it_came_from(flags: int) -> None:
    harness = EngineHarness()
    request = h.ping(flags=flags, cookie=0x8000_0001, queue_manager=PEER_ID.bytes_le)
    harness.engine.datagram(request, "10.0.0.9", 50_123, request=True)
    expected = h.ping(flags=flags & RC, cookie=0x8000_0001, queue_manager=OWN_ID.bytes_le)
    assert harness.new_effects() == [SendDatagram("10.0.0.9", 50_123, expected, request=False)]


@pytest.mark.requirement("MQQB-2.2.7-05", "MQQB-2.2.7-13")
@pytest.mark.parametrize(("flags", "maker"), [(RF, PEER_ID), (RC | RF, PEER_ID), (0, OWN_ID), (RC, OWN_ID)])
def test_a_response_at_the_ping_port_is_not_answered(flags: int, maker: UUID) -> None:
    """Two queue managers would answer each other without end: RF is clear in requests, and we sent none."""
    harness = EngineHarness()
    response = h.ping(flags=flags, queue_manager=maker.bytes_le)
    harness.engine.datagram(response, "10.0.0.9", 50_123, request=True)
    assert harness.new_effects() == []


@pytest.mark.requirement("MQQB-3.1.7.7-01")
@pytest.mark.parametrize("signature", [0, 0x5549, 0x4855])
def test_a_request_with_another_signature_is_ignored(signature: int) -> None:
    harness = EngineHarness()
    harness.engine.datagram(h.ping(signature=signature), "10.0.0.9", 50_123, request=True)
    assert harness.new_effects() == []


@pytest.mark.requirement("MQQB-3.1.7.7-03", "MQQB-2.2.7-06")
def test_rf_tells_that_a_session_would_be_refused() -> None:
    harness = EngineHarness(max_in_sessions=1)

    def asked() -> int:
        harness.engine.datagram(h.ping(), "10.0.0.9", 50_123, request=True)
        harness.run()
        return harness.effects_of(SendDatagram)[-1].data[0]

    assert asked() == 0
    peer = harness.accept_session()
    assert asked() == RF
    peer.disconnect()
    assert asked() == 0
    harness.core.queue_manager.connection_active = False
    assert asked() == RF


@pytest.mark.requirement("MQQB-2.1.2-06")
def test_pings_may_be_left_unanswered() -> None:
    harness = EngineHarness(answer_pings=False)
    harness.engine.datagram(h.ping(), "10.0.0.9", 50_123, request=True)
    assert harness.new_effects() == []


def test_a_ping_is_forgotten_when_the_queue_manager_stops() -> None:
    harness = asking()
    harness.core.stop()
    answer(harness)
    harness.advance(60_000)
    assert harness.effects_of(Connect) == []
    assert harness.engine.sessions == {}


@pytest.mark.requirement("MQQB-2.1-01", "MQQB-2.1.2-01")
@pytest.mark.requirement("MQQB-3.1.1.7.1-01")
@pytest.mark.parametrize("ping", [True, False])
def test_figure_12(ping: bool) -> None:
    network, alpha, beta = joined_pair(delay=2, ping=ping)
    beta.queue()
    alpha.send()
    network.advance(100)
    first = [("alpha", "Ping"), ("beta", "Ping")] if ping else []
    assert network.exchanged() == [
        *first,
        ("alpha", "EstablishConnection"),
        ("beta", "EstablishConnection"),
        ("alpha", "ConnectionParameters"),
        ("beta", "ConnectionParameters"),
        ("alpha", "UserMessage"),
    ]
    assert alpha.outgoing().state is OutgoingQueueState.CONNECTED
