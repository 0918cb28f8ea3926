"""Keys, users and signatures in a run, and the expected form of protected messages on arrival.

The keys are made once for each process. Their sizes are the same in all, so that a seed replays the same run.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final
from uuid import UUID

from msmqwire.constants import CryptographicProvider
from msmqwire.headers.security_descriptor import sid_bytes
from msmqwire.names import FormatName
from msmqwire.qm.directory.embedded import EmbeddedDirectory
from msmqwire.qm.model.directory_objects import User
from msmqwire.qm.model.enumerations import AuthenticationLevel
from msmqwire.qm.model.message import Message
from msmqwire.qm.security.configuration import SecurityConfiguration
from msmqwire.qm.security.signing import Signer, signed
from msmqwire.qm.security.user_certificates import register
from msmqwire.qm.sim.environment import Environment
from msmqwire.qm.sim.plan import NAMES, START_UTC, identifier_of
from msmqwire.qm.sim.tracked import Tracked
from msmqwire.qm.sim.violation import Invariant
from msmqwire.service.virtual.violation import Violation

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

KEYS: Final = 4
"""Limit of successive keys of a node for the bodies sent to it."""
SEARCHED: Final = 12
"""Bytes of the shortest body that is searched for in a whole packet."""
_BITS: Final = 1024
_DAY: Final = 86_400
_AES: Final = CryptographicProvider.AES
_LEVELS: Final = {1: AuthenticationLevel.SIG10, 2: AuthenticationLevel.SIG20, 3: AuthenticationLevel.SIG30}


@cache
def _key(node: str, number: int) -> RSAPrivateKey:
    from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

    return generate_private_key(65537, _BITS)


@cache
def _signer(node: str) -> Signer:
    from msmqwire.crypto.certificates import SenderCertificate, create_self_signed

    key = _key(node, 0)
    der = create_self_signed(key, node, START_UTC - _DAY, START_UTC + _DAY, 1)
    return Signer(key, SenderCertificate.read(der), sid_bytes(f"S-1-5-21-1-2-3-{1001 + NAMES.index(node)}"))


@cache
def _users() -> EmbeddedDirectory:
    """Return a directory of the users of all nodes, with their certificates."""
    directory = EmbeddedDirectory()
    for name in NAMES:
        signer = _signer(name)
        user = User(identifier_of(name), security_identifier=signer.sid)
        register(user, signer.certificate.der, identifier_of(name))
        directory.create_directory_object(user)
    return directory


class Keys:
    """The keys of all nodes, in the form of a directory: each node knows the present key of every other node.

    Attributes:
        counts: the number of keys that each node has had.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self.counts = dict.fromkeys(environment.plan.nodes, 1)
        self._published: dict[UUID, dict[CryptographicProvider, RSAPublicKey]] = {}
        if environment.plan.is_secured:
            for node in environment.plan.nodes:
                self._publish(node)

    def configuration(self, node: str) -> SecurityConfiguration:
        """Return the configuration of a node, which keeps all keys that it has had."""
        if not self._environment.plan.is_secured:
            return SecurityConfiguration()
        keys = tuple(_key(node, number) for number in range(self.counts[node], 0, -1))
        return SecurityConfiguration(
            random_bytes=self._environment.rng.randbytes,
            exchange_keys={_AES: keys},
            peer_keys=self._published,
            users=_users(),
        )

    def renew(self, node: str) -> None:
        """Give a node a new key; its peers encrypt for the earlier one until they look again."""
        if self.counts[node] < KEYS:
            self.counts[node] += 1
            self._publish(node)

    def _publish(self, node: str) -> None:
        self._published[identifier_of(node)] = {_AES: _key(node, self.counts[node]).public_key()}


def protect(tracked: Tracked, message: Message, destination: FormatName) -> None:
    """Sign and encrypt a message as requested, before it is sent to its destination."""
    if tracked.is_encrypted:
        message.privacy_level = 5
    if tracked.signature:
        message.destination = destination
        signed(
            message,
            _signer(tracked.sender),
            queue_manager=identifier_of(tracked.sender),
            version=_LEVELS[tracked.signature],
            transactional=tracked.is_transactional,
        )


def check_arrived(tracked: Tracked, message: Message) -> None:
    """Check that a message is in its queue as it was sent, in clear, and with its sender proved."""
    if message.body != tracked.body or message.encrypted:
        raise Violation(Invariant.PROTECTED, f"{tracked} has come with another body")
    expected = _LEVELS.get(tracked.signature, AuthenticationLevel.NONE)
    if message.authentication_level is not expected:
        raise Violation(
            Invariant.PROTECTED, f"{tracked} has come with {message.authentication_level.name} proved"
        )
    if message.decrypted is not (tracked.is_encrypted and tracked.destination != tracked.sender):
        raise Violation(Invariant.PROTECTED, f"{tracked} was not encrypted as requested")


def check_sent(tracked: Tracked, message: Message, data: bytes) -> None:
    """Check that an encrypted body is not in a packet.

    A short one is searched for only in its own field: three bytes occur by chance in one of many thousand
    ciphertexts.
    """
    shown = tracked.body in data if len(tracked.body) >= SEARCHED else message.body == tracked.body
    if tracked.is_encrypted and (not message.encrypted or shown):
        raise Violation(Invariant.PROTECTED, f"{tracked} is sent in clear")
