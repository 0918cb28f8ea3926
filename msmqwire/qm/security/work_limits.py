"""Limits on the computation that messages of peers cause with keys and slow algorithms."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from msmqwire.constants import EncryptionAlgorithm, HashAlgorithm

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

    from msmqwire.qm.model.settings import Settings

_SECOND: Final = 1_000
_ORIGINS_MAX: Final = 4_096
_BITS: Final = 2_048
"""Bits of the key whose times are given. They grow with the square of its length, private ones the cube."""
_PRIVATE_MS: Final = 1.0
_SQUARING_MS: Final = 0.0025
CERTIFICATE_MS: Final = 0.1
"""Approximate milliseconds to read a certificate."""
_MIB: Final = 1 << 20
_MS_PER_MIB: Final[Mapping[int, float]] = {HashAlgorithm.CALG_MD2: 300.0, EncryptionAlgorithm.CALG_RC2: 12.0}
"""Of the algorithms that are far slower than the network. A hash may be made for two kinds of signature."""


def private_ms(key: RSAPrivateKey) -> float:
    """Return the approximate milliseconds that it takes to unwrap a session key."""
    return _PRIVATE_MS * (key.key_size / _BITS) ** 3


def public_ms(key: RSAPublicKey) -> float:
    """Return the approximate milliseconds that it takes to check a signature."""
    return _SQUARING_MS * (key.key_size / _BITS) ** 2 * key.public_numbers().e.bit_length()


def bytes_ms(algorithm: int, size: int) -> float:
    """Return the approximate milliseconds that an algorithm takes for bytes; 0 for most."""
    return _MS_PER_MIB.get(algorithm, 0.0) * size / _MIB


class WorkClock(Protocol):
    """The time and the settings of work: of a queue manager, its `Context`."""

    @property
    def settings(self) -> Settings:
        """The settings."""

    @property
    def now(self) -> int:
        """The time in milliseconds."""


class TooMuchWork(Exception):
    """A message of an origin that has caused too much work: its sender is to send it again later."""


class _WorkAllowance:
    """Milliseconds of work that are left; they are refilled evenly within a second."""

    __slots__ = ("left", "since")

    def __init__(self, left: float, now: int) -> None:
        self.left, self.since = left, now

    def refill(self, now: int, most: float) -> bool:
        """Add the share of the time since the last call; return whether the allowance is complete again."""
        self.left = min(self.left + (now - self.since) / _SECOND * most, most)
        self.since = now
        return self.left == most


class _Origin(NamedTuple):
    """The work left for an origin: of its own limit, and of its share of the total."""

    own: _WorkAllowance
    share: _WorkAllowance


class WorkLimits:
    """Counts work by origin and in total.

    Work that a cache saves is not counted. When the total is used up, origins that have used less than an
    equal share continue: a few greedy ones do not keep out the others. The overdraft by shares is limited:
    otherwise work would grow with the number of origins.

    Args:
        known: origins without a limit; so is this computer, the empty one.
    """

    def __init__(self, context: WorkClock, known: Container[str]) -> None:
        self._context, self._known = context, known
        self._origins: dict[str, _Origin] = {}  # of origins with less than all, first used first
        self._total = _WorkAllowance(context.settings.security_total_ms, context.now)

    def check(self, origin: str) -> None:
        """Raise TooMuchWork if an origin, or all together, have no work left. With work left, an origin may
        overdraw.
        """
        if not origin or origin in self._known:
            return
        total = self._context.settings.security_total_ms
        self._total.refill(self._context.now, total)
        found = self._origins.get(origin)
        if found is None:
            has_own = has_share = True
        else:
            self._refill(found)
            has_own, has_share = found.own.left > 0, found.share.left > 0
        if has_own and self._total.left > (-total if has_share else 0):
            return
        raise TooMuchWork

    def spend(self, origin: str, milliseconds: float) -> None:
        """Count work that has been done for an origin."""
        if not milliseconds or not origin or origin in self._known:
            return
        found = self._origins.pop(origin, None)
        if found is None:
            self._forget_complete()
            now = self._context.now
            own = _WorkAllowance(self._context.settings.security_per_origin_ms, now)
            found = _Origin(own, _WorkAllowance(self._share(len(self._origins) + 1), now))
        self._origins[origin] = found
        self._refill(found)
        found.own.left -= milliseconds
        # It is not to pay for work that no other origin caused.
        found.share.left = max(found.share.left - milliseconds, -self._share(len(self._origins)))
        self._total.left -= milliseconds

    def _share(self, origins: int) -> float:
        return self._context.settings.security_total_ms / origins

    def _refill(self, origin: _Origin) -> bool:
        """Add the share of the time; return whether both allowances of an origin are complete again."""
        now = self._context.now
        has_share = origin.share.refill(now, self._share(len(self._origins)))
        return origin.own.refill(now, self._context.settings.security_per_origin_ms) and has_share

    def _forget_complete(self) -> None:
        """Forget origins whose allowances are complete again; if need be, the least recently used ones."""
        while self._origins:
            first = next(iter(self._origins))
            if not self._refill(self._origins[first]) and len(self._origins) < _ORIGINS_MAX:
                return
            del self._origins[first]
