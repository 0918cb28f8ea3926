"""Queue managers of one enterprise in a simulated network, their directory, and the ways of messages."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msmqwire.names import PrivateName
from msmqwire.qm.directory.embedded import EmbeddedDirectory
from msmqwire.qm.model.directory_objects import DirectoryObject, RoutingLink, Site
from msmqwire.qm.model.elements import QueueManager
from msmqwire.qm.model.enumerations import DirectoryOperationResult as Result
from msmqwire.qm.model.message import NULL_GUID
from tests.support.engine_harness import EngineHarness
from tests.support.qm.harness_network import HarnessNetwork


class RoutedNetwork:
    """An enterprise whose queue managers run.

    Attributes:
        directory: the directory that all share.
        network: the network.
        identifiers: those of the queue managers, by name.
    """

    def __init__(self) -> None:
        self.directory, self.network = EmbeddedDirectory(), HarnessNetwork()
        self.identifiers: dict[str, UUID] = {}

    def publish(self, published: DirectoryObject) -> UUID:
        """Put an object into the directory; return its identifier."""
        status, identifier = self.directory.create_directory_object(published)
        assert status is Result.SUCCESS
        assert identifier is not None
        return identifier

    def describe(self, name: str, *sites: UUID, router: bool = False, **attributes: Any) -> UUID:
        """Publish a queue manager that `start` starts later."""
        identifier = self.identifiers[name] = UUID(int=0xA00 + len(self.identifiers))
        lists = {
            f"{way}_routing_server_identifier_list": [self.identifiers[server] for server in attributes[way]]
            for way in ("in", "out")
            if way in attributes
        }
        self.publish(
            QueueManager(
                identifier, computer_name=name, qualified_computer_name=name,
                site_identifier_list=list(sites), routing_server=router, **lists,  # type: ignore[arg-type]
            )
        )  # fmt: skip
        return identifier

    def link(self, cost: int, *ends: tuple[UUID, str]) -> UUID:
        """Publish a link between two sites, each with the name of its gate."""
        (site1, gate1), (site2, gate2) = ends
        return self.publish(
            RoutingLink(
                NULL_GUID, actual_cost=cost, site1_identifier=site1, site2_identifier=site2,
                site_gate_identifier_list=[self.identifiers[gate1], self.identifiers[gate2]],
            )
        )  # fmt: skip

    def sites(self, *sites: UUID) -> None:
        """Publish sites."""
        for site in sites:
            self.publish(Site(site, name=f"s{site.int}"))

    def start(self, *names: str, **options: Any) -> None:
        """Start queue managers: all that are published, or those named."""
        for name in names or self.identifiers:
            number = self.identifiers[name].int - 0xA00 + 1
            self.network.add(
                name, f"10.0.0.{number}", self.identifiers[name], directory=self.directory, **options
            )

    def __getitem__(self, name: str) -> EngineHarness:
        return self.network.harnesses[name]

    def private_name(self, receiver: str) -> str:
        """The private format name of the queue ``orders`` of a queue manager, which is created if need be."""
        harness = self[receiver]
        pathname = f"{receiver}\\private$\\orders"
        queue = harness.core.queues.lookup.path(pathname) or harness.queue()
        return str(PrivateName(self.identifiers[receiver], queue.private_queue_number))

    def send(self, sender: str, receiver: str, *bodies: bytes, **attributes: Any) -> None:
        """Send messages to the queue of `private_name`."""
        self[sender].send(*bodies, to=self.private_name(receiver), **attributes)
        self.network.run()

    def received(self, receiver: str) -> list[bytes]:
        """Receive all messages of the queue."""
        bodies = []
        while (body := self[receiver].receive(f"DIRECT=OS:{receiver}\\private$\\orders")) is not None:
            bodies.append(body)
        return bodies

    def way(self, body: bytes) -> list[str]:
        """The queue managers that a message with this body has passed, its sender first."""
        hops = [
            (carried.sender, carried.receiver)
            for carried in self.network.log
            if carried.kind == "UserMessage" and carried.packet.body == body
        ]
        return [hops[0][0], *(receiver for _, receiver in hops)] if hops else []
