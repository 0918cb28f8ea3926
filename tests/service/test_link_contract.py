"""The contract between queue managers and a network, tested on the simulated network and on real sockets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from msmqwire.qm.model.effects import Connect, Disconnect, Resolve, Send, SendDatagram
from msmqwire.qm.model.enumerations import ConnectionStatus
from tests.support.links import UNKNOWN, Links, simulated, sockets

pytestmark = pytest.mark.uvloop

LARGE = bytes(range(251)) * 40_000
MANY = 60
FAILED = ConnectionStatus.SOCKET_CONNECT_FAILURE


@pytest.fixture(params=["simulated 1", "simulated 2", "simulated 3", "sockets"])
def links(request: pytest.FixtureRequest) -> Iterator[Links]:
    kind, _, seed = request.param.partition(" ")
    with simulated(int(seed)) if kind == "simulated" else sockets() as found:
        yield found


@pytest.fixture
def alpha(links: Links) -> Any:
    return links.stations["alpha"]


@pytest.fixture
def beta(links: Links) -> Any:
    return links.stations["beta"]


def test_a_connection_is_told_at_both_ends(links, alpha, beta):
    number, there = links.connect(alpha, beta)
    links.settle()
    assert alpha.engine.of(number) == ["connected"]
    assert beta.engine.of(there) == ["accepted"]
    assert beta.engine.all("accepted")[0] == (there, alpha.address)


def test_bytes_come_whole_and_in_order_both_ways(links, alpha, beta):
    number, there = links.connect(alpha, beta)
    pieces = [bytes([n]) * (1 + n * 37) for n in range(200)]
    for piece in pieces:
        alpha.perform(Send(number, piece))
        beta.perform(Send(there, piece[::-1] + b"."))
    links.until(lambda: len(beta.engine.data(there)) >= sum(map(len, pieces)), "all came")
    links.until(lambda: len(alpha.engine.data(number)) >= sum(map(len, pieces)) + 200, "all came back")
    assert beta.engine.data(there) == b"".join(pieces)
    assert alpha.engine.data(number) == b"".join(piece + b"." for piece in pieces)


def test_several_sends_of_one_turn_come_in_their_order(links, alpha, beta):
    number, there = links.connect(alpha, beta)
    alpha.perform(*(Send(number, b"%03d" % n) for n in range(300)), Send(number, LARGE))
    links.until(lambda: len(beta.engine.data(there)) >= 900 + len(LARGE), "all came")
    assert beta.engine.data(there) == b"".join(b"%03d" % n for n in range(300)) + LARGE


@pytest.mark.parametrize("size", [0, 1, len(LARGE)])
def test_what_is_sent_before_the_end_comes_before_the_end(links, alpha, beta, size):
    number, there = links.connect(alpha, beta)
    sends = [Send(number, LARGE[:size])] if size else []
    alpha.perform(*sends, Disconnect(number))
    links.until(lambda: (there,) in beta.engine.all("disconnected"), "the end is told")
    assert beta.engine.data(there) == LARGE[:size]
    assert beta.engine.of(there) == ["accepted", *["received"] * bool(size), "disconnected"]


def test_what_is_sent_before_the_end_comes_though_the_other_side_is_sending(links, alpha, beta):
    number, there = links.connect(alpha, beta)
    links.at_once(
        (beta, (Send(there, LARGE),)),
        (alpha, (Send(number, LARGE), Disconnect(number))),
    )
    links.until(lambda: (there,) in beta.engine.all("disconnected"), "the end is told")
    assert beta.engine.data(there) == LARGE


@pytest.mark.parametrize("accepting", [False, True])
def test_who_disconnects_is_told_nothing_more(links, alpha, beta, accepting):
    number, there = links.connect(alpha, beta)
    first, own, second, other = (beta, there, alpha, number) if accepting else (alpha, number, beta, there)
    second.perform(Send(other, b"before"))
    links.until(lambda: first.engine.data(own) == b"before", "it came")
    before = first.engine.of(own)
    links.at_once((second, (Send(other, b"meanwhile"),)), (first, (Disconnect(own),)))
    links.until(lambda: (other,) in second.engine.all("disconnected"), "the end is told")
    links.settle()
    assert first.engine.of(own) == before
    assert first.engine.data(own) == b"before"
    assert second.engine.of(other)[-1] == "disconnected"


def test_both_sides_may_close_at_once(links, alpha, beta):
    number, there = links.connect(alpha, beta)
    links.at_once((alpha, (Disconnect(number),)), (beta, (Disconnect(there),)))
    links.settle()
    assert alpha.engine.of(number) == ["connected"]
    assert beta.engine.of(there) == ["accepted"]


def test_the_end_is_told_once(links, alpha, beta):
    number, there = links.connect(alpha, beta)
    alpha.perform(Disconnect(number))
    links.until(lambda: (there,) in beta.engine.all("disconnected"), "the end is told")
    beta.perform(Send(there, b"late"), Disconnect(there), Disconnect(there))
    alpha.perform(Disconnect(number))
    links.settle()
    assert beta.engine.of(there) == ["accepted", "disconnected"]
    assert alpha.engine.of(number) == ["connected"]


def test_sending_over_what_is_gone_or_never_was_is_passed_over(links, alpha, beta):
    number, there = links.connect(alpha, beta)
    alpha.perform(Disconnect(number), Send(number, b"after the end"), Send(number + 1000, b"to nobody"))
    alpha.perform(Send(number, b"later"), Disconnect(number + 1000))
    links.until(lambda: (there,) in beta.engine.all("disconnected"), "the end is told")
    links.settle()
    assert beta.engine.data(there) == b""
    again, there_again = links.connect(alpha, beta)
    alpha.perform(Send(again, b"another one"))
    links.until(lambda: beta.engine.data(there_again) == b"another one", "the others go on")


def test_a_refused_connection_is_told_as_failed_once(links, alpha, beta):
    beta.die()
    alpha.perform(Connect(77, beta.address, beta.name))
    links.until(lambda: alpha.engine.all("connect_failed"), "the failure is told")
    alpha.perform(Send(77, b"nothing"), Disconnect(77))
    links.settle()
    assert alpha.engine.of(77) == ["connect_failed"]
    assert alpha.engine.all("connect_failed") == [(77, FAILED)]


@pytest.mark.parametrize("accepting", [False, True])
def test_a_peer_that_dies_is_told_as_gone(links, alpha, beta, accepting):
    number, there = links.connect(alpha, beta)
    second, other = (alpha, number) if accepting else (beta, there)
    (beta if accepting else alpha).die()
    links.until(lambda: (other,) in second.engine.all("disconnected"), "the end is told")
    links.settle()
    assert second.engine.of(other) == ["connected" if accepting else "accepted", "disconnected"]


def test_one_that_is_given_up_before_it_is_there_is_told_to_nobody(links, alpha, beta):
    alpha.perform(Connect(77, beta.address, beta.name), Disconnect(77), Send(77, b"nothing"))
    links.settle()
    assert alpha.engine.of(77) == []
    for number, _ in beta.engine.all("accepted"):
        data = beta.engine.data(number)
        assert data.startswith(b"fence") or (data, beta.engine.of(number)[1:]) == (b"", ["disconnected"])


def test_names_are_resolved(links, alpha, beta):
    alpha.perform(Resolve(1, "beta"), Resolve(2, UNKNOWN), Resolve(3, "BETA"), Resolve(4, beta.address))
    links.until(lambda: len(alpha.engine.all("resolved")) == 4, "all are answered")
    assert sorted(alpha.engine.all("resolved")) == [
        (1, [beta.address]),
        (2, []),
        (3, [beta.address]),
        (4, [beta.address]),
    ]


def test_ping_requests_and_their_responses(links, alpha, beta):
    alpha.perform(SendDatagram(beta.address, links.ping_port, b"are you there?", request=True))
    links.until(lambda: beta.engine.all("datagram"), "the request comes")
    ((data, address, port, request),) = beta.engine.all("datagram")
    assert (data, address, request) == (b"are you there?", alpha.address, True)
    beta.perform(SendDatagram(address, port, b"here", request=False))
    links.until(lambda: alpha.engine.all("datagram"), "the response comes")
    ((data, address, _, request),) = alpha.engine.all("datagram")
    assert (data, address, request) == (b"here", beta.address, False)
    assert not links.stations["gamma"].engine.told


def test_many_pings_at_once_have_their_own_ways_back(links, alpha, beta):
    gamma = links.stations["gamma"]
    for one in (alpha, gamma):
        text = one.name.encode()
        one.perform(*(SendDatagram(beta.address, links.ping_port, text, request=True) for _ in range(5)))
    links.until(lambda: len(beta.engine.all("datagram")) == 10, "all requests come")
    for data, address, port, _ in beta.engine.all("datagram"):
        beta.perform(SendDatagram(address, port, b"to " + data, request=False))
    for one in (alpha, gamma):
        links.until(lambda one=one: len(one.engine.all("datagram")) == 5, "all responses come")
        assert {data for data, *_ in one.engine.all("datagram")} == {b"to " + one.name.encode()}


def test_numbers_are_never_mixed_up(links, alpha, beta):
    gamma = links.stations["gamma"]
    ways = [(alpha, beta), (beta, alpha), (gamma, alpha), (gamma, beta)]
    wanted: list[tuple[Any, int, Any]] = []
    for n in range(MANY):
        first, second = ways[n % len(ways)]
        wanted.append((first, first.engine.next_connection(), second))
    links.at_once(*((first, (Connect(number, to.address, to.name),)) for first, number, to in wanted))
    for first, number, _ in wanted:
        links.until(lambda f=first, n=number: "connected" in f.engine.of(n), "all are there")
        first.perform(Send(number, b"%s %d." % (first.name.encode(), number)))
    for first, number, second in wanted:
        text = b"%s %d." % (first.name.encode(), number)
        links.until(lambda s=second, t=text: s.engine.having(t), "the text comes")
        (there,) = second.engine.having(text)
        assert (there, first.address) in second.engine.all("accepted")
        second.perform(Send(there, b"answer to " + text), *[Disconnect(there)] * (number % 2))
    for first, number, _ in wanted:
        text = b"answer to %s %d." % (first.name.encode(), number)
        links.until(lambda f=first, n=number, t=text: f.engine.data(n) == t, "the answer comes")
        if number % 2:
            links.until(lambda f=first, n=number: f.engine.of(n)[-1] == "disconnected", "the end is told")
    links.settle()
    for first, number, _ in wanted:
        assert first.engine.of(number) == ["connected", "received", *["disconnected"] * (number % 2)]
