"""Signatures of received messages, and their signers: [MS-MQQB] 3.1.5.8.3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from msmqwire.errors import InvalidName, InvalidSignature, InvalidValue, UnsupportedAlgorithm
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.enumerations import AuthenticationLevel, SenderIdentifierType
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.rules.expiring_cache import ExpiringCache
from msmqwire.qm.rules.identities import Identities
from msmqwire.qm.security import legacy
from msmqwire.qm.security.configuration import SecurityConfiguration
from msmqwire.qm.security.user_certificates import is_registered
from msmqwire.qm.security.work_limits import CERTIFICATE_MS, WorkLimits, bytes_ms, public_ms
from msmqwire.schema import Record

if TYPE_CHECKING:
    from msmqwire.crypto.certificates import SenderCertificate

_SLOW_MS: Final = 20.0
"""A slower hash is computed for registered certificates only: an unknown sender could hold up all traffic."""


@dataclass(frozen=True, slots=True)
class CachedUserCert:
    """A certificate that is registered for a user: [MS-MQQB] 3.1.1.3.4. The cache knows its CachedTime.

    Attributes:
        user_cert: UserCert, read.
        security_id: SecurityID.
    """

    user_cert: SenderCertificate
    security_id: bytes


class Verified(NamedTuple):
    """The result of a correct signature.

    Attributes:
        signature_type: its kind.
        known: whether its certificate is registered for the sender that the message names. A signature of an
            unknown signer is not an identity.
    """

    signature_type: AuthenticationLevel
    known: bool


class Authentication:
    """Verifies signatures, and finds their signers."""

    def __init__(self, context: Context, identities: Identities, work: WorkLimits) -> None:
        self._context, self._identities, self._work = context, identities, work
        settings = context.settings
        self.user_cert_cache: ExpiringCache[tuple[bytes, bytes], CachedUserCert] = ExpiringCache(
            context,
            Timer.USER_CERT_CACHE_CLEANUP,  # MQQB-3.1.5.8.3-12, MQQB-3.1.3.1-03, MQQB-3.1.2.13-01
            settings.user_cert_cache_size,
            settings.user_cert_lifetime_ms,
        )

    def verified(self, message: Message, packet: Record, configuration: SecurityConfiguration) -> Verified:
        """Verify the signature of a message.

        Args:
            message: a signed message.
            packet: the packet of the message, its body in clear.
            configuration: revoked certificates, and the reading of signatures.

        Raises:
            InvalidSignature: the message is to be refused with NACK_BAD_SIGNATURE.
            TooMuchWork: it is to be sent again later.
        """
        from msmqwire.crypto.signatures import recovered_from_signature, version_of

        has_sid = message.sender_identifier_type is SenderIdentifierType.SID
        sid = message.sender_identifier if has_sid else b""
        known = self.user_cert_cache.get((message.sender_certificate, sid))  # MQQB-3.1.5.8.3-08
        self._work.check(message.origin)
        certificate = _read(message.sender_certificate) if known is None else known.user_cert
        cost = public_ms(certificate.key)
        self._work.spend(message.origin, cost if known else cost + CERTIFICATE_MS)
        self._check_certificate(certificate, configuration)
        if not legacy.is_read(self._context, message.hash_algorithm):
            raise InvalidSignature("its hash is switched off")
        recovered = recovered_from_signature(packet, certificate.key, configuration.readings)
        if recovered is None:  # DMPR-3.1.1.12-10
            raise InvalidSignature("the signature was not made with the key of the certificate")
        is_known = known is not None
        slow = bytes_ms(message.hash_algorithm, len(message.body) + len(message.extension))
        if slow > _SLOW_MS:
            is_known = is_known or self._is_registered(certificate, message, sid)
            if not is_known:
                raise InvalidSignature("its hash would take too long for an unknown sender")
        self._work.spend(message.origin, slow)
        try:
            # MQQB-3.1.5.8.3-04, MQQB-3.1.5.8.3-05
            version = version_of(packet, recovered, configuration.readings)
        except (UnsupportedAlgorithm, InvalidValue, InvalidName) as exc:  # MQMQ-2.2.19.3-29
            raise InvalidSignature(str(exc)) from None
        if version is None:  # MQQB-3.1.5.8.3-06
            raise InvalidSignature("the signature is not that of the message")  # MQQB-3.1.5.8.3-07
        legacy.warn(self._context, message.hash_algorithm, f"a message of {message.origin} is signed")
        is_known = is_known or self._is_registered(certificate, message, sid)
        return Verified(AuthenticationLevel(version), is_known)

    def _check_certificate(
        self, certificate: SenderCertificate, configuration: SecurityConfiguration
    ) -> None:
        if not certificate.is_valid(self._context.utc):
            raise InvalidSignature("the certificate has expired, or is not valid yet")
        if certificate.digest in configuration.revoked:
            raise InvalidSignature("the certificate is revoked")

    def _is_registered(self, certificate: SenderCertificate, message: Message, sid: bytes) -> bool:
        """Look for a certificate in the directory: [MS-MQQB] 3.1.5.8.3.

        Raises InvalidSignature if it is missing and the specification is followed literally.
        """
        if sid:
            user = self._identities.user(sid)
            if user is not None and is_registered(user, certificate.der):  # MQQB-3.1.5.8.3-09
                origin = message.origin
                # MQQB-3.1.5.8.3-10
                self.user_cert_cache.add(
                    # MQQB-3.1.1.3.4-01 and -02
                    (certificate.der, sid),
                    CachedUserCert(certificate, sid),
                    origin,
                )
                return True
        if message.sender_identifier_type and self._context.settings.reject_unknown_certificates:
            # MQQB-3.1.5.8.3-13, MQQB-3.1.5.8.3-14
            raise InvalidSignature("the certificate is not registered for this sender")  # -13
        return False


def _read(certificate: bytes) -> SenderCertificate:
    """Read a certificate. Raises InvalidSignature."""
    from msmqwire.crypto.certificates import SenderCertificate

    try:
        return SenderCertificate.read(certificate)
    except InvalidValue as exc:
        raise InvalidSignature(str(exc)) from None
