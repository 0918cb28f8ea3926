"""Limits on the computation with keys and slow algorithms that messages of others cause."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Final

from msmqwire.constants import EncryptionAlgorithm, HashAlgorithm
from msmqwire.qm.model.context import Context

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

_SECOND: Final = 1_000
_ORIGINS_MAX: Final = 4_096
_BITS: Final = 2_048
"""Bits of the key whose times are given, which grow with the square of its length, private ones the cube."""
_PRIVATE_MS: Final = 1.0
_SQUARING_MS: Final = 0.0025
CERTIFICATE_MS: Final = 0.1
"""Milliseconds to read a certificate, about."""
_MIB: Final = 1 << 20
_MS_PER_MIB: Final[Mapping[int, float]] = {HashAlgorithm.CALG_MD2: 300.0, EncryptionAlgorithm.CALG_RC2: 12.0}
"""Of the algorithms that are far slower than the network. A hash may be made for two kinds of signature."""


def private_ms(key: RSAPrivateKey) -> float:
    """Return about how many milliseconds it takes to unwrap a session key."""
    return _PRIVATE_MS * (key.key_size / _BITS) ** 3


def public_ms(key: RSAPublicKey) -> float:
    """Return about how many milliseconds it takes to check a signature."""
    return _SQUARING_MS * (key.key_size / _BITS) ** 2 * key.public_numbers().e.bit_length()


def bytes_ms(algorithm: int, size: int) -> float:
    """Return about how many milliseconds an algorithm takes for bytes; 0 for most."""
    return _MS_PER_MIB.get(algorithm, 0.0) * size / _MIB


class TooMuchWork(Exception):
    """A message of an origin that has caused too much work: its sender is to send it again later."""


class _Allowance:
    """Milliseconds of work that are left; they come back evenly within a second."""

    __slots__ = ("left", "most", "since")

    def __init__(self, most: float, now: int) -> None:
        self.left, self.most, self.since = most, most, now

    def refill(self, now: int) -> bool:
        """Add what the time since the last call gives; return whether it is complete again."""
        self.left = min(self.left + (now - self.since) / _SECOND * self.most, self.most)
        self.since = now
        return self.left == self.most


class WorkLimits:
    """Counts work by origin and in all. What is cheap because a cache has it is not counted.

    Args:
        known: origins without a limit; so is this computer, the empty one.
    """

    def __init__(self, context: Context, known: Container[str]) -> None:
        self._context, self._known = context, known
        self._origins: dict[str, _Allowance] = {}  # of those that have less than all, first used first
        self._total = _Allowance(context.settings.security_total_ms, context.now)

    def check(self, origin: str) -> None:
        """Raise TooMuchWork if an origin, or all together, have no work left. One that has may overdraw."""
        if not origin or origin in self._known:
            return
        now, own = self._context.now, self._origins.get(origin)
        self._total.refill(now)
        if own is not None:
            own.refill(now)
        if self._total.left > 0 and (own is None or own.left > 0):
            return
        self._context.trouble("message security", f"messages of {origin} take too much work for now")
        raise TooMuchWork

    def spend(self, origin: str, milliseconds: float) -> None:
        """Count work that has been done for an origin."""
        if not origin or origin in self._known:
            return
        now, own = self._context.now, self._origins.pop(origin, None)
        if own is None:
            self._forget_complete(now)
            own = _Allowance(self._context.settings.security_per_origin_ms, now)
        own.refill(now)
        self._origins[origin] = own
        own.left -= milliseconds
        self._total.left -= milliseconds

    def _forget_complete(self, now: int) -> None:
        """Forget origins that have all of theirs again; if need be, those that were used longest ago."""
        if len(self._origins) < _ORIGINS_MAX:
            return
        self._origins = {origin: own for origin, own in self._origins.items() if not own.refill(now)}
        while len(self._origins) >= _ORIGINS_MAX:
            del self._origins[next(iter(self._origins))]
