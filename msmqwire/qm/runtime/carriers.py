"""What carries out the effects of a core that leave the process, as its driver sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from msmqwire.srmp.http_message import HttpMessage


class Network(Protocol):
    """Carries out the effects that leave the process."""

    def resolve(self, request: int, host: str, *, local: bool) -> None:
        """See `msmqwire.qm.model.effects.Resolve`."""

    def connect(self, connection: int, address: str, host: str) -> None:
        """See `msmqwire.qm.model.effects.Connect`."""

    def send(self, connection: int, data: bytes) -> None:
        """See `msmqwire.qm.model.effects.Send`."""

    def disconnect(self, connection: int) -> None:
        """See `msmqwire.qm.model.effects.Disconnect`."""

    def send_datagram(self, address: str, port: int, data: bytes, *, request: bool) -> None:
        """See `msmqwire.qm.model.effects.SendDatagram`."""

    def flush(self) -> None:
        """Send what this turn has queued; called once after the effects of a turn."""


class Http(Protocol):
    """Carries out the effects of SRMP by HTTP."""

    def request(self, request: int, url: str, message: HttpMessage) -> None:
        """See `msmqwire.qm.model.effects.HttpRequest`."""

    def respond(self, request: int, status: int) -> None:
        """See `msmqwire.qm.model.effects.HttpResponse`."""


class GroupNetwork(Protocol):
    """Carries out the effects on multicast groups."""

    def set_groups(self, groups: frozenset[tuple[str, int]]) -> None:
        """See `msmqwire.qm.model.effects.MulticastGroups`."""

    def send(self, request: int, address: str, port: int, data: bytes) -> None:
        """See `msmqwire.qm.model.effects.Multicast`."""


class Rpc(Protocol):
    """Carries out the effects of remote read."""

    def answer(self, call: int, results: Mapping[str, Any]) -> None:
        """See `msmqwire.qm.model.effects.RpcAnswer`."""

    def fault(self, call: int, status: int) -> None:
        """See `msmqwire.qm.model.effects.RpcFault`."""

    def flush(self) -> None:
        """Send the answers of this turn; called once after its effects."""
