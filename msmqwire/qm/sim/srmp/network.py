"""HTTP between the nodes of a run: requests and responses with their delays, failures and losses.

Requests travel as bytes. A sender learns the same as an HTTP client, at the same time: a response, a refused
or broken connection, or nothing at all before its time-out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msmqwire.qm.model.enumerations import QueueManagerState
from msmqwire.qm.protocols.srmp.effects import HttpRequest, HttpResponse
from msmqwire.qm.protocols.srmp.on_demand import srmp_of
from msmqwire.qm.sim.capture import Capture
from msmqwire.qm.sim.environment import Environment
from msmqwire.qm.sim.host import Host
from msmqwire.qm.sim.srmp.observer import SrmpObserver
from msmqwire.qm.sim.srmp.view import SrmpView
from msmqwire.service.carrier import Performers
from msmqwire.srmp.http_framer import HttpFramer
from msmqwire.srmp.http_message import HttpMessage, StatusLine

HTTP_PORT: Final = 80
_UNAVAILABLE: Final = 503
_CONNECT_TIMEOUT_MS: Final = 20_000
_REASONS: Final = {200: "OK", 400: "Bad Request", 500: "Internal Server Error", 503: "Service Unavailable"}


class Exchange:
    """A request of a node in one of its lives, until the node knows its outcome.

    Attributes:
        number: the number of the request at its sender. view: its content.
        open: whether its sender still waits for the response.
        lost: whether the response gets lost, or the connection was cut.
        target: where it has arrived; None before.
    """

    def __init__(self, sender: Host, number: int, data: bytes, view: SrmpView, delay: int) -> None:
        self.sender, self.epoch, self.number = sender, sender.epoch, number
        self.data, self.view, self.delay = data, view, delay
        self.open, self.lost = True, False
        self.target: Host | None = None

    @property
    def awaited(self) -> bool:
        """Whether its sender, in the same life, still waits for the response."""
        return self.open and self.sender.core is not None and self.sender.epoch == self.epoch


class SimulatedHttpNetwork:
    """All exchanges of HTTP.

    Args:
        environment: the environment of the run.
        hosts: the nodes, by name; looked up on demand.
        blocked_until: returns the time until which nothing passes between two nodes.
        observer: the observer of the exchanges. capture: records the traffic; None for no capture.
    """

    def __init__(
        self,
        environment: Environment,
        hosts: Mapping[str, Host],
        blocked_until: Callable[[Host, Host], int],
        observer: SrmpObserver,
        capture: Capture | None,
    ) -> None:
        self._environment, self._hosts, self._blocked_until = environment, hosts, blocked_until
        self._observer, self._capture = observer, capture
        self._exchanges: dict[Exchange, None] = {}
        self._arrived: dict[tuple[str, int, int], Exchange] = {}  # by node, life and number there
        self._arrivals = 0

    def performers(self, host: Host) -> Performers:
        """Return the carrier of its effects at a node."""
        return {
            HttpRequest: lambda effect: self.request(host, *effect),
            HttpResponse: lambda effect: self.respond(host, *effect),
        }

    # -- effects ----------------------------------------------------------------------------------------

    def request(self, sender: Host, number: int, url: str, message: HttpMessage) -> None:
        """Carry out `HttpRequest`."""
        environment, data = self._environment, message.to_bytes()
        name = url.split("/")[2].lower()
        target = next(host for host in self._hosts.values() if name in (host.name, host.address))
        view = self._observer.requested(sender.name, target.name, data)
        exchange = Exchange(sender, number, data, view, environment.rng.choice((0, 1, 5, 20, 200)))
        self._exchanges[exchange] = None
        environment.after(environment.plan.http_timeout_ms, lambda: self._fail(exchange, "no answer in time"))
        if environment.now < target.unresolved_until:
            environment.after(environment.rng.choice((0, 2, 50)), lambda: self._fail(exchange, "no address"))
        else:
            since = environment.now
            environment.after(exchange.delay, lambda: self._reach(exchange, target, since))

    def respond(self, host: Host, number: int, status: int) -> None:
        """Carry out `HttpResponse`."""
        exchange = self._arrived.pop((host.name, host.epoch, number), None)
        assert exchange is not None, "each request is answered once"
        self._observer.responded(host.name, exchange.sender.name, exchange.view, status)
        self._environment.after(exchange.delay, lambda: self._answer(exchange, host, status))

    # -- transport --------------------------------------------------------------------------------------

    def _reach(self, exchange: Exchange, target: Host, since: int) -> None:
        """A request reaches its destination, perhaps after its sender has given up waiting."""
        environment = self._environment
        rng, sender = environment.rng, exchange.sender
        if (until := self._blocked_until(sender, target)) > environment.now:
            if until - since > _CONNECT_TIMEOUT_MS and rng.random() < 0.5:
                self._fail_at(exchange, since + _CONNECT_TIMEOUT_MS, "can't connect")
            else:
                environment.after(until - environment.now, lambda: self._reach(exchange, target, since))
            return
        if target.core is None or environment.now < target.refuses_until:
            environment.counts["refused requests"] += 1
            self._fail(exchange, "the connection is refused")
            return
        if target.core.queue_manager.state is not QueueManagerState.READY:
            self._answer(exchange, target, _UNAVAILABLE)
            return
        plan = environment.plan
        if not environment.faults_over and rng.random() < plan.http_loss:
            environment.counts["lost in HTTP"] += 1
            if rng.random() < 0.5:
                self._break(exchange)
                return
            exchange.lost = True
        self._arrive(exchange, target)
        if not environment.faults_over and rng.random() < plan.http_repeat:
            delay = rng.choice((1, 50, 1_000, 20_000))
            environment.after(delay, lambda: self._arrive_again(exchange, target))

    def _arrive_again(self, exchange: Exchange, target: Host) -> None:
        """Deliver a request twice, as an intermediary that retries may do."""
        if target.core is not None and target.core.queue_manager.state is QueueManagerState.READY:
            self._environment.counts["repeated requests"] += 1
            self._arrive(exchange, target)

    def _arrive(self, exchange: Exchange, target: Host) -> None:
        environment = self._environment
        self._arrivals += 1
        number = self._arrivals
        exchange.target = target
        self._arrived[target.name, target.epoch, number] = exchange
        framer, data = HttpFramer(), exchange.data
        cut = len(data)
        if environment.rng.random() < environment.plan.split_probability:
            cut = environment.rng.randrange(len(data))
        (http,) = [message for part in (data[:cut], data[cut:]) for message in framer.feed(part)]
        address = exchange.sender.address
        target.call(lambda core: srmp_of(core).requested(number, http, address))

    def _answer(self, exchange: Exchange, target: Host, status: int) -> None:
        """A response reaches the sender, unless it is lost."""
        environment, sender = self._environment, exchange.sender
        if not exchange.awaited or exchange.lost:
            if exchange.awaited:
                self._break(exchange)
            return
        if (until := self._blocked_until(sender, target)) > environment.now:
            environment.after(until - environment.now, lambda: self._answer(exchange, target, status))
            return
        self._end(exchange)
        environment.log(target.name, f"{status} {_REASONS.get(status, '')}", sender.name)
        if self._capture is not None:
            line = StatusLine(status, _REASONS.get(status))
            response = line.to_bytes() + b"Content-Length: 0\r\n\r\n"
            connection = self._capture.connection(environment.now, sender.address, target.address, HTTP_PORT)
            connection.data(environment.now, 0, exchange.data)
            connection.data(environment.now, 1, response)
            connection.close(environment.now)
        sender.call(lambda core: srmp_of(core).answered(exchange.number, status, target.address))

    # -- failures ---------------------------------------------------------------------------------------

    def _break(self, exchange: Exchange) -> None:
        """End the connection of an exchange: its sender learns of it soon, late or by its time-out."""
        exchange.lost = True
        late = self._environment.rng.choice((0, 0, 50, 5_000, self._environment.plan.http_timeout_ms))
        self._fail_at(exchange, self._environment.now + late, "the connection is broken")

    def _fail_at(self, exchange: Exchange, time: int, reason: str) -> None:
        self._environment.after(time - self._environment.now, lambda: self._fail(exchange, reason))

    def _fail(self, exchange: Exchange, reason: str) -> None:
        if not exchange.awaited:
            self._end(exchange)
            return
        self._end(exchange)
        self._environment.counts["failed requests"] += 1
        self._environment.log(exchange.sender.name, f"request fails: {reason}")
        exchange.sender.call(lambda core: srmp_of(core).failed(exchange.number, reason))

    def _end(self, exchange: Exchange) -> None:
        exchange.open = False
        self._exchanges.pop(exchange, None)

    def under_way(self, host: Host) -> list[Exchange]:
        """Return the exchanges that a node takes part in."""
        return [exchange for exchange in self._exchanges if host in (exchange.sender, exchange.target)]

    def cut(self, exchange: Exchange) -> None:
        """Cut the connection of an exchange: a request under way may still arrive."""
        self._environment.counts["exchanges cut"] += 1
        self._break(exchange)

    def crashed(self, host: Host) -> None:
        """End the exchanges of a node that goes down: waiting senders learn of it, or time out."""
        for exchange in self.under_way(host):
            if exchange.sender is host:
                self._end(exchange)
            else:
                self._break(exchange)
        self._arrived = {key: exchange for key, exchange in self._arrived.items() if key[0] != host.name}
