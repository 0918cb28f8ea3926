"""Findings about a single packet, whatever form it has: `msmqwire.lint(packet)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from msmqwire import packets
from msmqwire.analysis.lint.attacks import lint_malformed
from msmqwire.analysis.lint.finding import Finding
from msmqwire.analysis.lint.packet import lint_packet
from msmqwire.analysis.protocols import protocol_of, protocols
from msmqwire.errors import MalformedPacket
from msmqwire.schema import Record

if TYPE_CHECKING:
    from msmqwire.ncp.ncp_packet import NcpPacket
    from msmqwire.pgm import PgmPacket
    from msmqwire.rpc.rpc_packet import RpcPacket
    from msmqwire.srmp.message import SrmpMessage


class Dissected(Protocol):
    """The part of a `msmqwire.Item` that lint needs."""

    @property
    def packet(self) -> object:
        """The packet, or None."""

    @property
    def raw(self) -> bytes:
        """The bytes of the packet."""

    @property
    def findings(self) -> Sequence[Finding]:
        """The findings of its dissection."""


def lint(
    packet: bytes | Record | SrmpMessage | PgmPacket | RpcPacket | NcpPacket | Dissected,
    *,
    protocol: packets.Protocol | Literal["srmp"] = "session",
) -> list[Finding]:
    """Return the departures from the specifications in one packet or message, by id of the requirement.

    The package `msmqwire.analysis.lint` is called for the same: ``msmqwire.lint(packet)``.

    Args:
        packet: a packet, a message of SRMP, a call of remote read, a packet of NCP or of PGM; bytes, which
            may be malformed; or an item of `msmqwire.dissect`. The findings of an item are those that it
            has, which are also about its place in the session; if it was dissected with ``lint=False``,
            those of its packet alone, and none of bytes that are malformed: judge its `raw`.
        protocol: the protocol of bytes: ``session``, ``ping``, ``remote_read`` or ``srmp``.

    Raises:
        TypeError: it is none of these.
    """
    if isinstance(packet, Record):
        return lint_packet(packet)
    if (judge := _judge_of(packet)) is not None:
        return judge(packet)
    if isinstance(packet, bytes | bytearray | memoryview):
        return _lint_bytes(bytes(packet), protocol)
    if not hasattr(packet, "findings"):
        raise TypeError(f"lint judges packets, bytes and items, not {type(packet).__name__}")
    item: Any = packet
    return list(item.findings) or _lint_dissected(item)


def _lint_bytes(data: bytes, protocol: str) -> list[Finding]:
    for joined in protocols():
        if joined.name == protocol and joined.judging.judge_bytes:
            found: list[Finding] = resolve_name(joined.judging.judge_bytes)(data)
            return found
    of_msmq = cast(packets.Protocol, protocol)
    try:
        packet = packets.parse(data, protocol=of_msmq)
    except MalformedPacket as error:
        return lint_malformed(data, error, of_msmq)
    return lint_packet(packet, data)


def _lint_dissected(item: Dissected) -> list[Finding]:
    packet = item.packet
    if isinstance(packet, Record):
        return lint_packet(packet, item.raw)
    judge = _judge_of(packet)
    return [] if judge is None else judge(packet)


def _judge_of(packet: object) -> Callable[[Any], list[Finding]] | None:
    """Return the judge of a packet of a protocol that has joined; None for other packets."""
    protocol = protocol_of(packet)
    return None if protocol is None else resolve_name(protocol.judging.judge)
