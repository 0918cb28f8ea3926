"""The calls of queue management, the qmmgmt interface, in captures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from msmqwire.analysis.dissection.rpc_interfaces import CapturedInterface
from msmqwire.analysis.lint import Finding
from msmqwire.analysis.lint.management_stubs import lint_syntaxes
from msmqwire.capture.events import Endpoint
from msmqwire.management.interface import MANAGEMENT
from msmqwire.management.management_packet import ManagementPacket, kept_arguments
from msmqwire.rpc.constants import SyntaxId
from msmqwire.rpc.rpc_packet import RpcPacket


class ManagementCalls(CapturedInterface):
    """The calls of queue management: each is complete in itself."""

    interface = MANAGEMENT
    packet = ManagementPacket

    def queue(self, packet: RpcPacket, server: Endpoint) -> str:
        return cast("ManagementPacket", packet).asked_queue

    def kept(self, packet: RpcPacket) -> tuple[Any, int]:
        return kept_arguments(cast("ManagementPacket", packet))

    def lint_context(self, packet: RpcPacket, syntaxes: Sequence[SyntaxId]) -> list[Finding]:
        return lint_syntaxes(packet, syntaxes)
