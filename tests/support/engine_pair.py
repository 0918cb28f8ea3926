"""Two queue managers joined by a network, for rows about whole sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msmqwire.qm.model.effects import Connect, Disconnect, Effect, Resolve, Send, SendDatagram
from tests.support.engine_desk import HERE, OTHER, OWN, THERE, Desk, cut, kind


class Pair:
    """Two queue managers joined by a network that loses nothing; `wire` has what went over it, in order."""

    def __init__(self, *, delay: int = 0, **settings: Any) -> None:
        self.delay = delay
        self.alpha = Desk(identifier=OWN, name="alpha", address=HERE, now=5_000, **settings)
        self.beta = Desk(identifier=OTHER, name="beta", address=THERE, now=5_000, **settings)
        self._by_address = {HERE: self.alpha, THERE: self.beta, "alpha": self.alpha, "beta": self.beta}
        self._ends: dict[tuple[Desk, int], tuple[Desk, int]] = {}
        self._read = {self.alpha: 0, self.beta: 0}
        self._travelling: list[tuple[int, Desk, Any, tuple[Any, ...]]] = []
        self.wire: list[tuple[str, bytes]] = []

    @property
    def desks(self) -> Sequence[Desk]:
        return self.alpha, self.beta

    def name(self, desk: Desk) -> str:
        return desk.core.queue_manager.computer_name

    def run(self) -> None:
        """Deliver until nothing is on its way at this time."""
        busy = True
        while busy:
            busy = False
            for desk in self.desks:
                desk.take()
                for _, effect in desk.log[self._read[desk] :]:
                    self._perform(desk, effect)
                self._read[desk] = len(desk.log)
            due = [one for one in self._travelling if one[0] <= desk.now]
            self._travelling = [one for one in self._travelling if one[0] > desk.now]
            for _, _, action, arguments in due:
                action(*arguments)
                busy = True
            for desk in self.desks:
                desk.take()
                busy = busy or self._read[desk] < len(desk.log)

    def _later(self, desk: Desk, action: Any, *arguments: Any) -> None:
        self._travelling.append((desk.now + self.delay, desk, action, arguments))

    def _perform(self, desk: Desk, effect: Effect) -> None:
        match effect:
            case Resolve(request, host):
                known = self._by_address.get(host)
                found = [
                    address for address, one in self._by_address.items() if one is known and "." in address
                ]
                desk.engine.resolved(request, found)
            case Connect(connection, address, _):
                other = self._by_address[address]
                number = other.engine.next_connection()
                self._ends[desk, connection] = other, number
                self._ends[other, number] = desk, connection
                own = next(a for a, one in self._by_address.items() if one is desk and "." in a)
                other.engine.accepted(number, own)
                desk.engine.connected(connection)
            case Send(connection, data):
                end = self._ends.get((desk, connection))
                if end is not None:
                    self.wire += [(self.name(desk), packet) for packet in cut(data)]
                    self._later(desk, end[0].engine.received, end[1], data)
            case Disconnect(connection):
                end = self._ends.pop((desk, connection), None)
                if end is not None:
                    self._ends.pop(end, None)
                    end[0].engine.disconnected(end[1])
            case SendDatagram(address, port, data, _):
                self.wire.append((self.name(desk), data))
                other = self._by_address[address]
                own = next(a for a, one in self._by_address.items() if one is desk and "." in a)
                asked = port == 3527
                self._later(desk, lambda: other.engine.datagram(data, own, 4242, request=asked))

    def advance(self, ms: int) -> None:
        end = self.alpha.now + ms
        self.run()
        while True:
            times = [desk.core.deadline for desk in self.desks] + [one[0] for one in self._travelling]
            due = min((time for time in times if time is not None), default=end)
            if due > end:
                break
            self._at(max(due, self.alpha.now))
        self._at(end)

    def _at(self, now: int) -> None:
        for desk in self.desks:
            desk.now = now
            desk.core.at(now, desk.utc)
        self.run()

    def heard(self) -> list[tuple[str, str]]:
        """Who sent what kind of packet, in order; datagrams are P."""
        return [(who, "P" if data[2:4] == b"\x48\x55" else kind(data)) for who, data in self.wire]
