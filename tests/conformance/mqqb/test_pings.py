"""Pings, asked and answered: [MS-MQQB] 3.1.1.1.1.9, 3.1.2.9, 3.1.5.2.2, 3.1.6.8 and 3.1.7.6 to 3.1.7.9."""

from __future__ import annotations

import pytest

from msmqwire.constants import HResult
from msmqwire.qm.model.effects import Connect, SendDatagram
from msmqwire.qm.model.elements import ConnectionHistory
from msmqwire.qm.model.enumerations import ConnectionStatus, OutgoingQueueState
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.states import PING, PingState
from tests.support import handmade as h
from tests.support.engine_desk import OTHER, OWN, THERE, Desk
from tests.support.engine_pair import Pair

W = PingState.WAITING
SECOND = r"DIRECT=TCP:10.0.0.3\private$\orders"
RC, RF = 1, 2


def asking(**settings: object) -> Desk:
    """A desk that has sent a message and waits for the answer to its ping."""
    desk = Desk(ping=True, **settings)  # type: ignore[arg-type]
    desk.send()
    desk.resolve(THERE)
    return desk


def answer(desk: Desk, *, cookie: int = 1, flags: int = 0, **fields: int) -> None:
    desk.engine.datagram(
        h.ping(cookie=cookie, flags=flags, queue_manager=OTHER.bytes_le, **fields),
        THERE,
        3527,
        request=False,  # type: ignore[arg-type]
    )
    desk.take()


def refused(desk: Desk) -> bool:
    (session,) = desk.engine.sessions.values()
    return desk.of(Connect) == [] and desk.left(Timer.SESSION_RETRY_CONNECT, session.number) is not None


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


@pytest.mark.requirement("MQQB-3.1.7.6-01", "MQQB-3.1.1.1.1.9-01", "MQQB-3.1.5.2.2-01", "MQQB-3.1.5.2.2-02")
@pytest.mark.parametrize("server", [True, False])
def test_the_request_byte_for_byte(server: bool) -> None:
    desk = asking(server_class=server)
    flags = 0 if server else RC
    expected = h.ping(flags=flags, cookie=1, queue_manager=OWN.bytes_le)
    assert expected[2:4] == b"\x48\x55"
    assert desk.datagrams() == [SendDatagram(THERE, 3527, expected, request=True)]
    assert desk.of(Connect) == [], "the connection waits for the answer"


@pytest.mark.requirement(
    "MQQB-3.1.7.6-04", "MQQB-3.1.1.1.1.9-04", "MQQB-3.1.5.2.2-02", "MQQB-3.1.7.9-01", "MQQB-3.1.7.8-03"
)
def test_a_response_with_rf_0_goes_on_to_the_connection() -> None:
    desk = asking()
    answer(desk)
    assert desk.left(Timer.PING_RESPONSE, 1) is None
    assert desk.of(Connect)
    (request,) = desk.connect().take()
    assert int.from_bytes(request[56:58], "little") & 0x100 == 0, "SE is 0 after a ping"
    desk.advance(30_000)
    assert len(desk.of(Connect)) == 1


@pytest.mark.requirement("MQQB-3.1.7.6-04", "MQQB-3.1.1.1.1.9-03", "MQQB-3.1.5.2.2-03", "MQQB-3.1.7.9-01")
def test_a_response_with_rf_1_is_a_ping_failure() -> None:
    desk = asking()
    desk.advance(500)
    answer(desk, flags=RF)
    assert refused(desk)
    assert desk.left(Timer.PING_RESPONSE, 1) is None
    assert desk.left(Timer.SESSION_RETRY_CONNECT, 1) == 5_000
    error = HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE
    assert list(desk.outgoing().connection_history) == [
        ConnectionHistory(ConnectionStatus.PING_FAILURE, desk.utc, error, (THERE,))
    ]


@pytest.mark.requirement(
    "MQQB-3.1.6.8-01", "MQQB-3.1.7.6-02", "MQQB-3.1.7.6-03", "MQQB-3.1.1.1.1.9-02", "MQQB-3.1.2.9-02",
    "MQQB-3.1.5.2.2-03",
)  # fmt: skip
def test_no_response_within_exactly_a_second_is_a_ping_failure() -> None:
    desk = asking()
    assert desk.left(Timer.PING_RESPONSE, 1) == 1_000
    desk.advance(999)
    assert not refused(desk)
    desk.advance(1)
    assert refused(desk)
    assert [entry.status for entry in desk.outgoing().connection_history] == [ConnectionStatus.PING_FAILURE]
    answer(desk)
    assert refused(desk), "an answer that comes later is for nobody"


@pytest.mark.requirement("MQQB-3.1.5.2.2-03")
def test_a_ping_that_fails_starts_no_timer_when_nothing_waits() -> None:
    desk = asking()
    desk.core.messages.purge(desk.outgoing())
    answer(desk, flags=RF)
    assert desk.engine.sessions == {}
    assert desk.core.deadline is None or not desk.left(Timer.SESSION_RETRY_CONNECT, 1)


@pytest.mark.requirement("MQQB-3.1.5.2.2-01", "MQQB-3.1.6.1-04", "MQQB-3.1.5.2.3-06")
def test_a_retry_with_the_next_address_does_not_ping() -> None:
    desk = Desk(ping=True)
    desk.send()
    desk.resolve(THERE, "10.0.0.3")
    answer(desk, flags=RF)
    desk.advance(5_000)
    assert len(desk.datagrams()) == 1
    assert desk.last(Connect).address == "10.0.0.3"
    (request,) = desk.connect().take()
    assert int.from_bytes(request[56:58], "little") & 0x100, "SE is 1 without a ping"


@pytest.mark.requirement("MQQB-3.1.5.2.2-01", "MQQB-3.1.6.1-04")
def test_a_retry_from_the_start_does_not_ping_either() -> None:
    desk = asking()
    desk.advance(6_000)
    desk.resolve(THERE)
    assert len(desk.datagrams()) == 1
    (request,) = desk.connect().take()
    assert int.from_bytes(request[56:58], "little") & 0x100


@pytest.mark.requirement("MQQB-3.1.1.3-18", "MQQB-3.1.3.2-18", "MQQB-3.1.2.9-01", "MQQB-3.1.7.6-02")
def test_each_request_has_a_cookie_and_a_timer_of_its_own() -> None:
    desk = Desk(ping=True)
    assert desk.engine.pings.cookie == 0
    for number, name in enumerate((r"DIRECT=TCP:10.0.0.2\private$\orders", SECOND)):
        desk.send(name)
        desk.resolve(name[11:19])
        desk.advance(300)
        assert desk.datagrams()[number].data[4:8] == (number + 1).to_bytes(4, "little")
    assert desk.left(Timer.PING_RESPONSE, 1) == 400
    assert desk.left(Timer.PING_RESPONSE, 2) == 700
    desk.advance(500)
    assert desk.left(Timer.PING_RESPONSE, 1) is None
    assert desk.left(Timer.PING_RESPONSE, 2) == 200
    answer(desk, cookie=2)
    assert [connect.address for connect in desk.of(Connect)] == ["10.0.0.3"]


@pytest.mark.requirement("MQQB-3.1.7.8-02")
@pytest.mark.parametrize("cookie", [0, 1, 3, 0x0100_0002, 0xFFFF_FFFF])
def test_a_response_with_another_cookie_is_ignored(cookie: int) -> None:
    desk = asking()
    desk.send(SECOND)
    desk.resolve("10.0.0.3")
    answer(desk, cookie=cookie)
    assert desk.of(Connect) == []
    assert desk.left(Timer.PING_RESPONSE, 1) == desk.left(Timer.PING_RESPONSE, 2) == 1_000
    answer(desk, cookie=2)
    assert len(desk.of(Connect)) == 1


@pytest.mark.requirement("MQQB-3.1.7.8-01")
@pytest.mark.parametrize("signature", [0, 0x5549, 0x4855])
def test_a_response_with_another_signature_is_ignored(signature: int) -> None:
    desk = asking()
    answer(desk, signature=signature)
    assert desk.of(Connect) == []
    assert desk.left(Timer.PING_RESPONSE, 1) == 1_000


@pytest.mark.requirement("MQQB-3.1.7.8-03")
def test_a_response_that_nobody_waits_for_is_ignored() -> None:
    desk = asking()
    answer(desk)
    desk.news()
    answer(desk)
    answer(desk, flags=RF)
    assert desk.news() == []
    assert len(desk.of(Connect)) == 1
    fresh = Desk()
    answer(fresh, cookie=0)
    assert fresh.news() == []


@pytest.mark.requirement("MQQB-3.1.7.7-02", "MQQB-3.1.7.7-03")
@pytest.mark.parametrize("flags", [0, RC, RF, RC | RF, 0xFFFC])
def test_a_request_is_answered_where_it_came_from(flags: int) -> None:
    desk = Desk()
    request = h.ping(flags=flags, cookie=0x8000_0001, queue_manager=OTHER.bytes_le)
    desk.engine.datagram(request, "10.0.0.9", 50_123, request=True)
    expected = h.ping(flags=flags & RC, cookie=0x8000_0001, queue_manager=OWN.bytes_le)
    assert desk.news() == [SendDatagram("10.0.0.9", 50_123, expected, request=False)]


@pytest.mark.requirement("MQQB-3.1.7.7-01")
@pytest.mark.parametrize("signature", [0, 0x5549, 0x4855])
def test_a_request_with_another_signature_is_ignored(signature: int) -> None:
    desk = Desk()
    desk.engine.datagram(h.ping(signature=signature), "10.0.0.9", 50_123, request=True)
    assert desk.news() == []


@pytest.mark.requirement("MQQB-3.1.7.7-03")
def test_rf_tells_that_a_session_would_be_refused() -> None:
    desk = Desk(max_in_sessions=1)

    def asked() -> int:
        desk.engine.datagram(h.ping(), "10.0.0.9", 50_123, request=True)
        desk.take()
        return desk.datagrams()[-1].data[0]

    assert asked() == 0
    peer = desk.rung()
    assert asked() == RF
    peer.drop()
    assert asked() == 0
    desk.core.queue_manager.connection_active = False
    assert asked() == RF


def test_pings_may_be_left_unanswered() -> None:
    desk = Desk(answer_pings=False)
    desk.engine.datagram(h.ping(), "10.0.0.9", 50_123, request=True)
    assert desk.news() == []


def test_a_ping_is_forgotten_when_the_queue_manager_stops() -> None:
    desk = asking()
    desk.core.stop()
    answer(desk)
    desk.advance(60_000)
    assert desk.of(Connect) == []
    assert desk.engine.sessions == {}


@pytest.mark.requirement("MQQB-3.1.1.7.1-01")
@pytest.mark.parametrize("ping", [True, False])
def test_figure_12(ping: bool) -> None:
    pair = Pair(delay=2, ping=ping)
    pair.beta.queue()
    pair.alpha.send()
    pair.advance(100)
    first = [("alpha", "P"), ("beta", "P")] if ping else []
    assert pair.heard() == [
        *first,
        ("alpha", "EC"),
        ("beta", "EC"),
        ("alpha", "CP"),
        ("beta", "CP"),
        ("alpha", "UM"),
    ]
    assert pair.alpha.outgoing().state is OutgoingQueueState.CONNECTED
