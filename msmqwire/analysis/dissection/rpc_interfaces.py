"""The interfaces of DCE/RPC whose calls are read in captures, each by the protocol that registers it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

from msmqwire.analysis.protocols import protocols
from msmqwire.capture.events import Endpoint
from msmqwire.rpc.constants import SyntaxId
from msmqwire.rpc.interface import Interface
from msmqwire.rpc.rpc_packet import RpcPacket, Stub

if TYPE_CHECKING:
    from msmqwire.analysis.dissection.rpc_calls import Call
    from msmqwire.analysis.lint import Finding


class CapturedInterface:
    """The meaning of the calls of an interface, one object for all connections of a capture.

    Attributes:
        interface: the interface.
        packet: the class of its calls and answers.
    """

    interface: ClassVar[Interface]
    packet: ClassVar[type[RpcPacket]]

    def read(self, stub: Stub) -> dict[str, Any]:
        """Return the attributes of a packet with this stub, beside its value and its places.

        Raises MalformedPacket, its offset counted in the stub.
        """
        return {}

    def queue(self, packet: RpcPacket, server: Endpoint) -> str:
        """Return the format name of the queue that a call is about; empty if that is unknown."""
        return ""

    def kept(self, packet: RpcPacket) -> tuple[Any, int]:
        """Return the arguments of a call that its answer is read with, and the bytes of stub they took."""
        return packet.value, len(packet.stub)

    def answered(self, call: Call, results: Any, server: Endpoint) -> None:
        """Take note of the results of a call."""

    def lint(
        self, packet: RpcPacket, client: Endpoint, server: Endpoint, *, whole: bool, new_group: bool
    ) -> list[Finding]:
        """Return the findings about the place of a call or an answer among the others.

        `whole` tells whether all of the connection so far was captured, and in the clear, `new_group` whether
        it began an association group.
        """
        return []

    def lint_context(self, packet: RpcPacket, syntaxes: Sequence[SyntaxId]) -> list[Finding]:
        """Return the findings about the transfer syntaxes that a PDU offers for the interface, or accepts."""
        return []


@cache
def interfaces() -> dict[str, type[CapturedInterface]]:
    """Return the interfaces that protocols have registered, by their names."""
    places = (protocol.traffic.interface for protocol in protocols())
    found = [resolve_name(place) for place in places if place]
    return {each.interface.name: each for each in found}


@cache
def _names() -> dict[tuple[Any, int], str]:
    known = ((name, each.interface.identifier) for name, each in interfaces().items())
    return {(identifier.uuid, identifier.major): name for name, identifier in known}


def interface_named(identifier: SyntaxId) -> str:
    """Return the name of the interface with an identifier; empty if it is not known."""
    return _names().get((identifier.uuid, identifier.major), "")
