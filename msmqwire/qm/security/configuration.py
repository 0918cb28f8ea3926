"""The configuration of message security beside `Settings`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from msmqwire.constants import CryptographicProvider
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.qm.directory.interface import Directory

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey


@dataclass(frozen=True, slots=True)
class SecurityConfiguration:
    """The keys of a queue manager, and the signers that it trusts. Its repr shows no key.

    Attributes:
        random_bytes: returns a number of random bytes, for session keys; without it nothing is encrypted.
        exchange_keys: keys for the bodies sent to this queue manager, by provider. The first key of each is
            published to peers. The others are earlier keys, under which peers may still encrypt.
        signing_keys: the keys published as PublicSigningKeyList, by provider.
        peer_keys: keys of other queue managers, by identifier and provider. They take precedence over those
            of the directory.
        revoked: MD5 digests of revoked certificates.
        users: the source of users while the queue manager has no directory; None for none.
        readings: the readings of the specification for signatures and session keys.
    """

    random_bytes: Callable[[int], bytes] | None = field(default=None, repr=False)
    exchange_keys: Mapping[CryptographicProvider, Sequence[RSAPrivateKey]] = field(
        default_factory=dict, repr=False
    )
    signing_keys: Mapping[CryptographicProvider, RSAPublicKey] = field(default_factory=dict, repr=False)
    peer_keys: Mapping[UUID, Mapping[CryptographicProvider, RSAPublicKey]] = field(
        default_factory=dict, repr=False
    )
    revoked: frozenset[bytes] = frozenset()
    users: Directory | None = None
    readings: Readings = DEFAULT
