"""Connections that were asked for and never established: refused, unanswered, or to where nothing leads.

An attempt is a SYN to a port of MSMQ, a repeated one too: Windows repeats it with the same sequence number,
also after a reset. An attempt is answered by a reset of the port (refused), or a Destination unreachable of
ICMP or ICMPv6 that quotes it (unreachable); without either it is unanswered, also if the capture ends before
an answer could come.

Once a connection is established none of its attempts is a failed one, however often its SYN was sent or
refused before. It is established by a SYN with ACK, or by any later segment with ACK of either side: in a
capture of one direction, or one that has lost the answer, the client's own segments show that one came.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from msmqwire.capture.ip import ACK, RST, SYN, Datagram
from msmqwire.names.printable import counted, format_endpoint, safe

CONNECTIONS_MAX: Final = 1 << 14
"""Connections remembered by their SYN. Of more, the oldest is forgotten, and counted if it has failed."""
PAIRS_MAX: Final = 5_000
"""Pairs of a client and a port that are listed apart; the attempts of further ones are only counted."""

_SYN_DATA_MAX: Final = 1 << 16  # bytes that a SYN may carry, which a reset acknowledges too
_PORTS: Final = 1 << 16

_Key = tuple[str, int, str, int]  # the client with its port, the server with its port
_Pair = tuple[str, str, int]


class FailedAttempts(NamedTuple):
    """The attempts of one client to connect to one port, without those of established connections.

    Attributes:
        src: the client.
        dst: the server.
        dst_port: its port.
        attempts: SYNs that were sent.
        refused: those that a reset has answered.
        unanswered: those that nothing has answered.
        unreachable: those that an ICMP message has answered.
    """

    src: str
    dst: str
    dst_port: int
    attempts: int
    refused: int
    unanswered: int
    unreachable: int

    def to_json(self) -> dict[str, Any]:
        """Return it as the object in JSON."""
        return self._asdict()

    def __str__(self) -> str:
        """Return it in a line, with the next thing to check."""
        head = f"{self.src} > {format_endpoint(self.dst, self.dst_port)}: "
        head += f"{counted(self.attempts, 'attempt')} to connect"
        ends = [(name, getattr(self, name)) for name in CAUSES]
        ends = [(name, count) for name, count in ends if count]
        if len(ends) == 1:
            name = ends[0][0]
            return safe(f"{head}, {_whole(name, self.attempts)}: {CAUSES[name]}")
        return safe(f"{head}: {', '.join(f'{count:,} {name} ({CAUSES[name]})' for name, count in ends)}")


CAUSES: Final = {
    "refused": "no queue manager listens there",
    "unanswered": "the host is down, or a firewall drops them",
    "unreachable": "no route leads there, or a firewall rejects them",
}
"""Advice on the first thing to check, by the end of the attempts."""


def _whole(name: str, attempts: int) -> str:
    if name == "unanswered":
        return "none answered" if attempts > 1 else "not answered"
    return f"all {name}" if attempts > 1 else name


def left_out_sentence(attempts: int) -> str:
    """Say how many attempts are of pairs that are not listed."""
    return f"{counted(attempts, 'more attempt')} to connect, of too many clients and ports to list"


@dataclass(slots=True)
class _Connection:
    """A connection by its SYN.

    Attributes:
        isn: the sequence number of the SYN.
        is_open: whether it has not been established so far.
        attempts: the number of times the SYN was sent.
        refused, unreachable: the number of these that were answered so.
    """

    isn: int
    is_open: bool
    attempts: int = 0
    refused: int = 0
    unreachable: int = 0

    @property
    def unanswered(self) -> int:
        """The number of SYNs without an answer so far."""
        return self.attempts - self.refused - self.unreachable


class Attempts:
    """Finds failed attempts to connect in the segments of a capture, in bounded memory.

    Args:
        ports: those of MSMQ over TCP: 1801 and those given by ``ports``. Attempts at other ports, as those of
            HTTP or of the endpoint mapper, are not looked at: nothing shows that they were meant for MSMQ.

    Attributes:
        watched: for each port of clients whether a connection from it is not established so far. Segments of
            other ports need not be fed, unless they have SYN or RST.
    """

    def __init__(self, ports: Collection[int]) -> None:
        self.ports = frozenset(ports)
        self.watched = bytearray(_PORTS)
        self._open_at: Counter[int] = Counter()  # connections that are open, by the client's port
        self._connections: OrderedDict[_Key, _Connection] = OrderedDict()
        self._pairs: dict[_Pair, list[int]] = {}
        self._left_out = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """Give a copy for another reader, which counts for itself."""
        return Attempts, (self.ports,)

    def feed(self, datagram: Datagram) -> None:
        """Take the next datagram of the capture."""
        _, src, src_port, dst, dst_port, _, _, _, _, _, seq, ack, flags, _ = datagram
        if flags & (SYN | RST) or (flags & ACK and (self.watched[src_port] or self.watched[dst_port])):
            self.segment((src, src_port, dst, dst_port), seq, ack, flags)

    def segment(self, key: _Key, seq: int, ack: int, flags: int) -> None:
        """Take a TCP segment by its endpoints and header."""
        src, src_port, dst, dst_port = key
        if flags & (SYN | RST | ACK) == SYN:
            if dst_port in self.ports:
                self._attempt(key, seq)
            return
        back = (dst, dst_port, src, src_port)
        if flags & RST:
            self._refused(back, ack if flags & ACK else None)
        elif flags & SYN:
            if src_port in self.ports:
                self._established(back, (ack - 1) & 0xFFFF_FFFF)
        else:
            for one in (key, back):
                connection = self._connections.get(one)
                if connection is not None and connection.is_open:
                    self._close(one, connection)

    def unreachable(self, key: _Key, seq: int) -> None:
        """Take a segment that an ICMP message quotes, by its endpoints."""
        connection = self._connections.get(key)
        if connection is not None and connection.is_open and connection.isn == seq:
            connection.unreachable += connection.unanswered > 0

    def count_anew(self) -> None:
        """Forget the failed attempts so far: they are another reader's."""
        for key, connection in self._connections.items():
            if connection.is_open:
                self._close(key, connection)
        self._connections.clear()
        self._pairs.clear()
        self._left_out = 0

    def failed(self) -> tuple[list[FailedAttempts], int]:
        """Return the failed attempts so far, the most first, and how many more there were of other pairs."""
        pairs = {pair: list(counts) for pair, counts in self._pairs.items()}
        left_out = self._left_out
        for key, connection in self._connections.items():
            if connection.is_open:
                left_out += _add(pairs, key, connection)
        failed = [
            FailedAttempts(*pair, attempts, refused, attempts - refused - unreachable, unreachable)
            for pair, (attempts, refused, unreachable) in pairs.items()
        ]
        return sorted(failed, key=lambda one: (-one.attempts, one)), left_out

    def _attempt(self, key: _Key, seq: int) -> None:
        connection = self._connections.get(key)
        if connection is None or connection.isn != seq:
            if connection is not None:
                self._forget(key)
            connection = self._remember(key, _Connection(seq, is_open=True))
            self._open_at[key[1]] += 1
        if connection.is_open:
            connection.attempts += 1
        self.watched[key[1]] = self._open_at[key[1]] > 0

    def _refused(self, key: _Key, ack: int | None) -> None:
        connection = self._connections.get(key)
        if connection is None or not connection.is_open:
            return
        if ack is None or 0 < (ack - connection.isn) & 0xFFFF_FFFF <= _SYN_DATA_MAX:
            connection.refused += connection.unanswered > 0

    def _established(self, key: _Key, isn: int) -> None:
        """Note a connection whose SYN was answered, also if the capture has that late or never."""
        connection = self._connections.get(key)
        if connection is None:
            self._remember(key, _Connection(isn, is_open=False))
        elif connection.is_open:
            self._close(key, connection)
        else:
            connection.isn = isn

    def _close(self, key: _Key, connection: _Connection) -> None:
        connection.is_open = False
        port = key[1]
        self._open_at[port] -= 1
        if not self._open_at[port]:
            del self._open_at[port]
            self.watched[port] = 0

    def _remember(self, key: _Key, connection: _Connection) -> _Connection:
        self._connections[key] = connection
        if len(self._connections) > CONNECTIONS_MAX:
            self._forget(next(iter(self._connections)))
        return connection

    def _forget(self, key: _Key) -> None:
        """Forget a connection; if it was never established, its attempts have failed."""
        connection = self._connections.pop(key)
        if connection.is_open:
            self._close(key, connection)
            self._left_out += _add(self._pairs, key, connection)


def _add(pairs: dict[_Pair, list[int]], key: _Key, connection: _Connection) -> int:
    """Add attempts to those of their pair; return how many were left out for want of room."""
    src, _, dst, dst_port = key
    counts = pairs.get((src, dst, dst_port))
    if counts is None:
        if len(pairs) >= PAIRS_MAX:
            return connection.attempts
        counts = pairs[src, dst, dst_port] = [0, 0, 0]
    counts[0] += connection.attempts
    counts[1] += connection.refused
    counts[2] += connection.unreachable
    return 0
