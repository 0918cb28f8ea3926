"""The resolver and the datagrams of a node, over the network of the run: `TcpNetwork` uses them."""

from __future__ import annotations

from collections.abc import Callable

from msmqwire.ping import PING_PORT
from msmqwire.qm.sim.host import Host
from msmqwire.qm.sim.network import Network


class VirtualResolver:
    """Resolves names over the network of the run."""

    def __init__(self, network: Network, node: Host) -> None:
        self._network, self._node = network, node

    def resolve(self, name: str, answer: Callable[[list[str]], None], *, local: bool) -> None:
        """See `Resolver.resolve`."""
        self._network.resolve(self._node, name, answer)


class VirtualPings:
    """Sends datagrams over the network of the run."""

    port = PING_PORT

    def __init__(self, network: Network, node: Host) -> None:
        self._network, self._node = network, node

    async def listen(self, address: str, port: int) -> int:
        """The network of the run passes datagrams to `Host.datagram`."""
        return port

    def stop_listening(self) -> None:
        """See `PingSockets.stop_listening`."""

    def close(self) -> None:
        """See `PingSockets.close`."""

    def answer(self, address: str, port: int, data: bytes) -> bool:
        """See `PingSockets.answer`."""
        self._network.datagram(self._node, address, port, data)
        return True

    async def request(self, address: str, port: int, data: bytes, listening: str) -> None:
        """See `PingSockets.request`."""
        self._network.datagram(self._node, address, port, data)
