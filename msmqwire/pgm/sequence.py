"""Sequence numbers: 32 bits on the wire, without a limit inside: RFC 3208 section 4."""

from __future__ import annotations

from typing import Final

MODULUS: Final = 1 << 32


def wire(number: int) -> int:
    """Return the 32 bits that a number has on the wire."""
    return number % MODULUS


def near(reference: int, received: int) -> int:
    """Return the number nearest to a reference that has these 32 bits on the wire."""
    distance = (received - reference) % MODULUS
    return reference + distance - (MODULUS if distance >= MODULUS // 2 else 0)
