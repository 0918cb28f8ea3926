"""Payloads without a binding: their layer is guessed by their first bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from scapy.packet import Packet as ScapyPacket

Guess: TypeAlias = Callable[[bytes], type[ScapyPacket] | None]


def guess(below: type[ScapyPacket], guessed: Guess) -> None:
    """Let `guessed` choose the class of a layer's payloads without a binding."""
    otherwise = below.default_payload_class

    def default_payload_class(self: ScapyPacket, payload: bytes) -> type[ScapyPacket]:
        return guessed(payload) or otherwise(self, payload)

    below.default_payload_class = default_payload_class
