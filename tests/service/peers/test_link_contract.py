"""The contract between queue managers and a network, tested on the simulated network and on real sockets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from msmqwire.qm.model.effects import Connect, Disconnect, Resolve, Send, SendDatagram
from msmqwire.qm.model.enumerations import ConnectionStatus
from tests.support.qm.links import UNKNOWN, Links, simulated, sockets

pytestmark = pytest.mark.uvloop

LARGE = bytes(range(251)) * 40_000
MANY = 60
FAILED = ConnectionStatus.SOCKET_CONNECT_FAILURE


@pytest.fixture(params=["simulated 1", "simulated 2", "simulated 3", "sockets"])
def links(request: pytest.FixtureRequest) -> Iterator[Links]:
    kind, _, seed = request.param.partition(" ")
    with simulated(int(seed)) if kind == "simulated" else sockets() as links:
        yield links


@pytest.fixture
def alpha(links: Links) -> Any:
    return links.stations["alpha"]


@pytest.fixture
def beta(links: Links) -> Any:
    return links.stations["beta"]


def test_a_connection_is_reported_at_both_ends(links, alpha, beta):
    number, accepted = links.connect(alpha, beta)
    links.settle()
    assert alpha.engine.of(number) == ["connected"]
    assert beta.engine.of(accepted) == ["accepted"]
    assert beta.engine.all("accepted")[0] == (accepted, alpha.address)


def test_bytes_come_whole_and_in_order_both_ways(links, alpha, beta):
    number, accepted = links.connect(alpha, beta)
    segments = [bytes([n]) * (1 + n * 37) for n in range(200)]
    for segment in segments:
        alpha.perform(Send(number, segment))
        beta.perform(Send(accepted, segment[::-1] + b"."))
    links.until(lambda: len(beta.engine.data(accepted)) >= sum(map(len, segments)), "all bytes arrive")
    links.until(lambda: len(alpha.engine.data(number)) >= sum(map(len, segments)) + 200, "all replies arrive")
    assert beta.engine.data(accepted) == b"".join(segments)
    assert alpha.engine.data(number) == b"".join(segment + b"." for segment in segments)


def test_several_sends_of_one_turn_come_in_their_order(links, alpha, beta):
    number, accepted = links.connect(alpha, beta)
    alpha.perform(*(Send(number, b"%03d" % n) for n in range(300)), Send(number, LARGE))
    links.until(lambda: len(beta.engine.data(accepted)) >= 900 + len(LARGE), "all bytes arrive")
    assert beta.engine.data(accepted) == b"".join(b"%03d" % n for n in range(300)) + LARGE


@pytest.mark.parametrize("size", [0, 1, len(LARGE)])
def test_what_is_sent_before_the_end_comes_before_the_end(links, alpha, beta, size):
    number, accepted = links.connect(alpha, beta)
    sends = [Send(number, LARGE[:size])] if size else []
    alpha.perform(*sends, Disconnect(number))
    links.until(lambda: (accepted,) in beta.engine.all("disconnected"), "the end is reported")
    assert beta.engine.data(accepted) == LARGE[:size]
    assert beta.engine.of(accepted) == ["accepted", *["received"] * bool(size), "disconnected"]


def test_data_sent_before_the_end_arrives_despite_peer_sending(links, alpha, beta):
    number, accepted = links.connect(alpha, beta)
    links.at_once(
        (beta, (Send(accepted, LARGE),)),
        (alpha, (Send(number, LARGE), Disconnect(number))),
    )
    links.until(lambda: (accepted,) in beta.engine.all("disconnected"), "the end is reported")
    assert beta.engine.data(accepted) == LARGE


@pytest.mark.parametrize("accepting", [False, True])
def test_an_end_that_disconnects_gets_no_more_events(links, alpha, beta, accepting):
    number, accepted = links.connect(alpha, beta)
    closing, connection, peer, peer_connection = (
        (beta, accepted, alpha, number) if accepting else (alpha, number, beta, accepted)
    )
    peer.perform(Send(peer_connection, b"before"))
    links.until(lambda: closing.engine.data(connection) == b"before", "the bytes arrive")
    before = closing.engine.of(connection)
    links.at_once((peer, (Send(peer_connection, b"meanwhile"),)), (closing, (Disconnect(connection),)))
    links.until(lambda: (peer_connection,) in peer.engine.all("disconnected"), "the end is reported")
    links.settle()
    assert closing.engine.of(connection) == before
    assert closing.engine.data(connection) == b"before"
    assert peer.engine.of(peer_connection)[-1] == "disconnected"


def test_both_sides_may_close_at_once(links, alpha, beta):
    number, accepted = links.connect(alpha, beta)
    links.at_once((alpha, (Disconnect(number),)), (beta, (Disconnect(accepted),)))
    links.settle()
    assert alpha.engine.of(number) == ["connected"]
    assert beta.engine.of(accepted) == ["accepted"]


def test_the_end_is_reported_once(links, alpha, beta):
    number, accepted = links.connect(alpha, beta)
    alpha.perform(Disconnect(number))
    links.until(lambda: (accepted,) in beta.engine.all("disconnected"), "the end is reported")
    beta.perform(Send(accepted, b"late"), Disconnect(accepted), Disconnect(accepted))
    alpha.perform(Disconnect(number))
    links.settle()
    assert beta.engine.of(accepted) == ["accepted", "disconnected"]
    assert alpha.engine.of(number) == ["connected"]


def test_sending_over_what_is_gone_or_never_was_is_passed_over(links, alpha, beta):
    number, accepted = links.connect(alpha, beta)
    alpha.perform(Disconnect(number), Send(number, b"after the end"), Send(number + 1000, b"to nobody"))
    alpha.perform(Send(number, b"later"), Disconnect(number + 1000))
    links.until(lambda: (accepted,) in beta.engine.all("disconnected"), "the end is reported")
    links.settle()
    assert beta.engine.data(accepted) == b""
    again, accepted_again = links.connect(alpha, beta)
    alpha.perform(Send(again, b"another one"))
    links.until(lambda: beta.engine.data(accepted_again) == b"another one", "other connections still work")


def test_a_refused_connection_is_reported_as_failed_once(links, alpha, beta):
    beta.die()
    alpha.perform(Connect(77, beta.address, beta.name))
    links.until(lambda: alpha.engine.all("connect_failed"), "the failure is reported")
    alpha.perform(Send(77, b"nothing"), Disconnect(77))
    links.settle()
    assert alpha.engine.of(77) == ["connect_failed"]
    assert alpha.engine.all("connect_failed") == [(77, FAILED)]


@pytest.mark.parametrize("accepting", [False, True])
def test_a_peer_that_dies_is_reported_as_gone(links, alpha, beta, accepting):
    number, accepted = links.connect(alpha, beta)
    survivor, connection = (alpha, number) if accepting else (beta, accepted)
    (beta if accepting else alpha).die()
    links.until(lambda: (connection,) in survivor.engine.all("disconnected"), "the end is reported")
    links.settle()
    assert survivor.engine.of(connection) == ["connected" if accepting else "accepted", "disconnected"]


def test_a_cancelled_connection_attempt_is_reported_to_no_one(links, alpha, beta):
    alpha.perform(Connect(77, beta.address, beta.name), Disconnect(77), Send(77, b"nothing"))
    links.settle()
    assert alpha.engine.of(77) == []
    for number, _ in beta.engine.all("accepted"):
        data = beta.engine.data(number)
        assert data.startswith(b"fence") or (data, beta.engine.of(number)[1:]) == (b"", ["disconnected"])


def test_names_are_resolved(links, alpha, beta):
    alpha.perform(Resolve(1, "beta"), Resolve(2, UNKNOWN), Resolve(3, "BETA"), Resolve(4, beta.address))
    links.until(lambda: len(alpha.engine.all("resolved")) == 4, "all names are answered")
    assert sorted(alpha.engine.all("resolved")) == [
        (1, [beta.address]),
        (2, []),
        (3, [beta.address]),
        (4, [beta.address]),
    ]


def test_ping_requests_and_their_responses(links, alpha, beta):
    alpha.perform(SendDatagram(beta.address, links.ping_port, b"are you there?", request=True))
    links.until(lambda: beta.engine.all("datagram"), "the request arrives")
    ((data, address, port, request),) = beta.engine.all("datagram")
    assert (data, address, request) == (b"are you there?", alpha.address, True)
    beta.perform(SendDatagram(address, port, b"here", request=False))
    links.until(lambda: alpha.engine.all("datagram"), "the response arrives")
    ((data, address, _, request),) = alpha.engine.all("datagram")
    assert (data, address, request) == (b"here", beta.address, False)
    assert not links.stations["gamma"].engine.events


def test_many_pings_at_once_have_their_own_ways_back(links, alpha, beta):
    gamma = links.stations["gamma"]
    for station in (alpha, gamma):
        texts = [b"%s %d" % (station.name.encode(), number) for number in range(5)]
        station.perform(*(SendDatagram(beta.address, links.ping_port, text, request=True) for text in texts))
    links.until(lambda: len(beta.engine.all("datagram")) == 10, "all requests arrive")
    for data, address, port, _ in beta.engine.all("datagram"):
        beta.perform(SendDatagram(address, port, b"to " + data, request=False))
    for station in (alpha, gamma):
        links.until(lambda station=station: len(station.engine.all("datagram")) == 5, "all responses arrive")
        expected = {b"to %s %d" % (station.name.encode(), number) for number in range(5)}
        assert {data for data, *_ in station.engine.all("datagram")} == expected


def test_numbers_are_never_mixed_up(links, alpha, beta):
    gamma = links.stations["gamma"]
    routes = [(alpha, beta), (beta, alpha), (gamma, alpha), (gamma, beta)]
    connections: list[tuple[Any, int, Any]] = []
    for n in range(MANY):
        initiator, acceptor = routes[n % len(routes)]
        connections.append((initiator, initiator.engine.next_connection(), acceptor))
    links.at_once(
        *(
            (initiator, (Connect(number, acceptor.address, acceptor.name),))
            for initiator, number, acceptor in connections
        )
    )
    for initiator, number, _ in connections:
        links.until(lambda i=initiator, n=number: "connected" in i.engine.of(n), "all are connected")
        initiator.perform(Send(number, b"%s %d." % (initiator.name.encode(), number)))
    for initiator, number, acceptor in connections:
        text = b"%s %d." % (initiator.name.encode(), number)
        links.until(lambda a=acceptor, t=text: a.engine.having(t), "the text arrives")
        (accepted,) = acceptor.engine.having(text)
        assert (accepted, initiator.address) in acceptor.engine.all("accepted")
        acceptor.perform(Send(accepted, b"answer to " + text), *[Disconnect(accepted)] * (number % 2))
    for initiator, number, _ in connections:
        text = b"answer to %s %d." % (initiator.name.encode(), number)
        links.until(lambda i=initiator, n=number, t=text: i.engine.data(n) == t, "the answer arrives")
        if number % 2:
            links.until(
                lambda i=initiator, n=number: i.engine.of(n)[-1] == "disconnected", "the end is reported"
            )
    links.settle()
    for initiator, number, _ in connections:
        assert initiator.engine.of(number) == ["connected", "received", *["disconnected"] * (number % 2)]
