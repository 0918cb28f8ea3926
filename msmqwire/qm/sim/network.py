"""The network of a run: connections that delay, cut and refuse, names not found, datagrams that are lost."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

from msmqwire.ping import PING_PORT
from msmqwire.qm.core import Core
from msmqwire.qm.model.enumerations import ConnectionStatus
from msmqwire.qm.sim.packet_observer import Listener

if TYPE_CHECKING:
    from msmqwire.qm.sim.node import Node
    from msmqwire.qm.sim.world import World

_REPLY_PORT: Final = 40_000
_CONNECT_TIMEOUT_MS: Final = 20_000
_CONNECTED: Final = "connected"
_GONE: Final = "gone"
Payload = bytes | str


class End:
    """One end of a connection, at a queue manager in one of its lives."""

    __slots__ = ("epoch", "knows", "node", "number", "open")

    def __init__(self, node: Node, number: int) -> None:
        self.node, self.epoch, self.number = node, node.epoch, number
        self.open = True  # what it sends goes out
        self.knows = False  # that the connection is gone

    @property
    def alive(self) -> bool:
        """Whether the queue manager is still in the life that has this connection."""
        return self.node.core is not None and self.node.epoch == self.epoch


def _connected(number: int, core: Core) -> None:
    core.engine.connected(number)


def _disconnected(number: int, core: Core) -> None:
    core.engine.disconnected(number)


def _received(number: int, data: bytes, core: Core) -> None:
    core.engine.received(number, data)


class Connection:
    """A transport connection: two directions, each in order, with a delay of its own."""

    def __init__(self, network: Network, first: End, second: End) -> None:
        rng = network.world.rng
        self.network, self.ends = network, (first, second)
        self._delays = [rng.choice((0, 1, 5, 20, 200)) for _ in range(2)]
        self._flying: tuple[deque[tuple[int, Payload]], ...] = (deque(), deque())
        self._listeners = (Listener(first.node, second.node), Listener(second.node, first.node))
        capture, now = network.world.capture, network.world.now
        self._stream = capture and capture.opened(now, first.node.address, second.node.address)

    def side(self, node: Node) -> int:
        """Which end is that of a node."""
        return 0 if self.ends[0].node is node else 1

    def send(self, side: int, data: bytes) -> None:
        """Bytes from one end."""
        if not self.ends[side].open:
            return
        self._listeners[side].sent(data, self._listeners[1 - side])
        world = self.network.world
        rng = world.rng
        pieces = [data]
        if rng.random() < world.plan.chunks:
            cuts = sorted(rng.randrange(len(data)) for _ in range(2))
            pieces = [data[: cuts[0]], data[cuts[0] : cuts[1]], data[cuts[1] :]]
        for piece in pieces:
            if piece:
                self.put(side, piece, rng.choice((0, 0, 1, 3)) if len(pieces) > 1 else 0)

    def put(self, side: int, payload: Payload, delay: int = 0) -> None:
        """Something on its way from one end to the other, behind what is there."""
        flying, world = self._flying[side], self.network.world
        due = world.now + self._delays[side] + delay
        if flying:
            due = max(due, flying[-1][0])
        flying.append((due, payload))
        world.after(due - world.now, lambda: self._arrive(side))

    def _arrive(self, side: int) -> None:
        flying, world = self._flying[side], self.network.world
        source, target = self.ends[side], self.ends[1 - side]
        blocked = self.network.blocked_until(source.node, target.node)
        if blocked > world.now:
            world.after(blocked - world.now, lambda: self._arrive(side))
            return
        while flying and flying[0][0] <= world.now:
            _, payload = flying.popleft()
            if target.knows or not target.alive:
                continue
            if payload == _CONNECTED:
                target.node.call(partial(_connected, target.number))
            elif payload == _GONE:
                target.knows, target.open = True, False
                if self._stream:
                    self._stream.closed(world.now)
                world.tell(target.node.name, f"connection with {source.node.name} is gone")
                target.node.call(partial(_disconnected, target.number))
            else:
                assert isinstance(payload, bytes)
                if self._stream:
                    self._stream.data(world.now, side, payload)
                target.node.call(partial(_received, target.number, payload))

    def close(self, side: int) -> None:
        """One end closes it: what it sent still arrives."""
        end = self.ends[side]
        if end.open:
            end.open = False
            self.put(side, _GONE)
        end.knows = True
        self._forget_if_over()

    def cut(self, late: tuple[int, int]) -> None:
        """Both directions end somewhere in what is on its way; each end learns of it after a time."""
        rng = self.network.world.rng
        for side in range(2):
            flying = self._flying[side]
            left = rng.randrange(sum(len(one) for _, one in flying if isinstance(one, bytes)) + 1)
            kept: list[tuple[int, Payload]] = []
            for due, payload in flying:
                arrives = payload
                if isinstance(payload, bytes):
                    arrives, left = payload[:left], max(left - len(payload), 0)
                if arrives:
                    kept.append((due, arrives))
            flying.clear()
            flying.extend(kept)
            self.ends[side].open = False
        for side in range(2):
            self.put(side, _GONE, late[side])
        self._forget_if_over()

    def _forget_if_over(self) -> None:
        if not (self.ends[0].open or self.ends[1].open):
            self.network.forget(self)


class Network:
    """All connections, and what hinders new ones."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.connections: dict[Connection, None] = {}
        self._by_end: dict[tuple[str, int, int], Connection] = {}
        self._connecting: dict[tuple[str, int, int], End] = {}
        self._partitions: dict[frozenset[str], int] = {}

    def blocked_until(self, one: Node, other: Node) -> int:
        """Until when nothing goes between two nodes."""
        if self.world.calm:
            return -1
        return self._partitions.get(frozenset((one.name, other.name)), -1)

    def partition(self, one: str, other: str, ms: int) -> None:
        """Nothing goes between two nodes for a time."""
        self._partitions[frozenset((one, other))] = self.world.now + ms

    def forget(self, connection: Connection) -> None:
        """A connection that is over at both ends."""
        self.connections.pop(connection, None)
        for end in connection.ends:
            self._by_end.pop((end.node.name, end.epoch, end.number), None)

    # -- effects ----------------------------------------------------------------------------------------

    def send(self, node: Node, number: int, data: bytes) -> None:
        """`Send`."""
        connection = self._by_end.get((node.name, node.epoch, number))
        if connection is not None:
            connection.send(connection.side(node), data)

    def disconnect(self, node: Node, number: int) -> None:
        """`Disconnect`."""
        connection = self._by_end.get((node.name, node.epoch, number))
        if connection is not None:
            self.world.tell(
                node.name, "closes the connection", connection.ends[1 - connection.side(node)].node.name
            )
            connection.close(connection.side(node))
        elif (end := self._connecting.get((node.name, node.epoch, number))) is not None:
            end.open = False

    def connect(self, node: Node, number: int, address: str) -> None:
        """`Connect`."""
        target = self._at(address)
        delay = self.world.rng.choice((0, 1, 10, 100))
        end = End(node, number)
        self._connecting[node.name, node.epoch, number] = end
        self.world.after(delay, lambda: self._reach(end, target, self.world.now))

    def _reach(self, end: End, target: Node | None, since: int) -> None:
        world = self.world
        if not (end.alive and end.open):
            self._ended(end)
            return
        if target is not None and (until := self.blocked_until(end.node, target)) > world.now:
            if until - since > _CONNECT_TIMEOUT_MS:
                world.after(since + _CONNECT_TIMEOUT_MS - world.now, lambda: self._refuse(end))
            else:
                world.after(until - world.now, lambda: self._reach(end, target, since))
            return
        if target is None or target.core is None or world.now < target.refuses_until:
            self._refuse(end)
            return
        self._ended(end)
        number = target.core.engine.next_connection()
        accepting = End(target, number)
        connection = Connection(self, end, accepting)
        self.connections[connection] = None
        for one in connection.ends:
            self._by_end[one.node.name, one.epoch, one.number] = connection
        world.counts["connections"] += 1
        world.tell(end.node.name, "connects", target.name)
        connection.put(1, _CONNECTED)
        target.call(lambda core: core.engine.accepted(number, end.node.address))

    def _ended(self, end: End) -> None:
        """An attempt to connect has come to its end."""
        self._connecting.pop((end.node.name, end.epoch, end.number), None)

    def _refuse(self, end: End) -> None:
        self._ended(end)
        if end.alive and end.open:
            self.world.counts["refused connections"] += 1
            self.world.tell(end.node.name, "can't connect")
            status = ConnectionStatus.SOCKET_CONNECT_FAILURE
            end.node.call(lambda core: core.engine.connect_failed(end.number, status))

    def resolve(self, node: Node, request: int, host: str) -> None:
        """`Resolve`."""
        world = self.world
        epoch = node.epoch
        found = [one for one in world.nodes.values() if host.lower() in (one.name, one.address)]
        fails = any(world.now < one.unresolved_until for one in found)
        addresses = [] if fails else [one.address for one in found]

        def answer() -> None:
            if node.epoch == epoch:
                node.call(lambda core: core.engine.resolved(request, addresses))

        world.after(world.rng.choice((0, 2, 50)), answer)

    def datagram(self, node: Node, address: str, port: int, data: bytes) -> None:
        """`SendDatagram`."""
        world = self.world
        target = self._at(address)
        lost = target is None or self.blocked_until(node, target) > world.now
        if lost or (not world.calm and world.rng.random() < world.plan.lossy):
            world.counts["lost datagrams"] += 1
            return
        assert target is not None
        if world.capture:
            world.capture.datagram(world.now, node.address, address, port, data)
        request = port == PING_PORT
        world.after(
            world.rng.choice((0, 5, 900, 1_100) if not world.calm else (0, 5)),
            lambda: target.call(
                lambda core: core.engine.datagram(data, node.address, _REPLY_PORT, request=request)
            ),
        )

    def _at(self, address: str) -> Node | None:
        return next((one for one in self.world.nodes.values() if one.address == address), None)

    # -- faults -----------------------------------------------------------------------------------------

    def cut(self, node: Node, pick: int, late_ms: int) -> None:
        """Cut one of the connections of a node."""
        mine = [one for one in self.connections if any(end.node is node for end in one.ends)]
        if not mine:
            return
        connection = mine[pick % len(mine)]
        other = connection.ends[1 - connection.side(node)].node
        self.world.counts["connections cut"] += 1
        self.world.tell(node.name, "CUT", other.name)
        late = (late_ms, 0) if self.world.rng.random() < 0.5 else (0, late_ms)
        connection.cut(late)

    def down(self, node: Node) -> None:
        """A node goes down: the other ends learn of it, some late."""
        rng = self.world.rng
        for connection in list(self.connections):
            side = connection.side(node)
            end = connection.ends[side]
            if end.node is node and end.epoch == node.epoch:
                late = rng.choice((0, 0, 50, 5_000, 45_000))
                connection.cut((late, late))
