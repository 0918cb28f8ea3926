"""Messages signed by the application that sends them: [MS-MQQB] 3.1.7.1.4.

The private key of a user does not leave the process of that user: a queue manager gets signed messages, and
has no key to sign them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from uuid import UUID

from msmqwire.constants import HashAlgorithm
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.errors import InvalidValue
from msmqwire.headers.security_descriptor import SID
from msmqwire.names import DistributionListName, FormatName, MultipleElementName
from msmqwire.packets import USER_MESSAGE
from msmqwire.qm.model.enumerations import AuthenticationLevel, DeliveryGuarantee, SenderIdentifierType
from msmqwire.qm.model.message import Message
from msmqwire.qm.rules.directory_events import each_once
from msmqwire.qm.rules.message_to_packet import new_packet
from msmqwire.schema import Record

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    from msmqwire.crypto.certificates import SenderCertificate

_SOME_TRANSACTION: Final = UUID(int=1)


@dataclass(frozen=True, slots=True)
class Signer:
    """A signer of messages. Its repr does not show the key.

    Attributes:
        private_key: the sender's key.
        certificate: the certificate of that key. sid: the SID of the sender, for whom the certificate is
            registered; empty for none: a signature without a SID does not prove an identity.
        readings: the receiver's readings of the specification.

    Raises InvalidValue for a key that does not belong to the certificate, MalformedPacket for an invalid SID.
    """

    private_key: RSAPrivateKey = field(repr=False)
    certificate: SenderCertificate
    sid: bytes = b""
    readings: Readings = DEFAULT

    def __post_init__(self) -> None:
        if self.private_key.public_key() != self.certificate.key:
            raise InvalidValue("the private key does not belong to the certificate")
        if self.sid:
            SID.parse(self.sid)


def signed(
    message: Message,
    signer: Signer,
    *,
    queue_manager: UUID,
    version: AuthenticationLevel = AuthenticationLevel.SIG20,
    hash_algorithm: int = HashAlgorithm.CALG_SHA_512,
    transactional: bool = False,
) -> None:
    """Sign a message, which must not be changed afterwards. Its body stays in clear: it is encrypted later.

    Sets AuthenticationLevel, HashAlgorithm, SenderIdentifier and its type, SenderCertificate, and Signature
    or MultipleDestinationSignature; and the attributes that the queue manager would change when it takes the
    message.

    Args:
        message: a message with its destination.
        signer: its signer.
        queue_manager: the queue manager that is going to send it.
        version: SIG10, SIG20 or SIG30. Messages to several queues can have SIG30 only: MQQB-3.1.7.1.4-02. A
            message to a single queue with SIG30 gets a MultiQueueFormatHeader for it.
        hash_algorithm: a HashAlgorithm. MD2, MD4, MD5 and SHA-1 are broken.
        transactional: whether it is going to be sent in a transaction.

    Raises:
        InvalidValue, InvalidName: no packet can hold the message, or it can't be signed that way.
        UnsupportedAlgorithm: not a hash of messages.
    """
    from msmqwire.crypto.signatures import sign
    from msmqwire.crypto.signed_fields import SignatureVersion

    if version not in list(map(int, SignatureVersion)):
        raise InvalidValue(f"{version.name} is not supported here", path="authentication_level")
    if message.destination is None:
        raise InvalidValue("a signed message has a destination", path="destination")
    prepare(message, signer.sid, signer.certificate.der, version, hash_algorithm, transactional=transactional)
    packet = _packet(message, queue_manager, transactional=transactional)
    signature = sign(packet, SignatureVersion(version), signer.private_key, hash_algorithm, signer.readings)
    set_signature(message, signature)


def set_signature(message: Message, signature: bytes) -> None:
    """Put a signature into a message that has been prepared for it."""
    if message.authentication_level is AuthenticationLevel.SIG30:  # DMPR-3.1.1.12-66
        message.multiple_destination_signature = signature  # DMPR-3.1.1.12-32
    else:
        message.signature = signature  # MQQB-3.1.7.1.4-03, DMPR-3.1.1.12-66


def prepare(
    message: Message,
    sid: bytes,
    certificate: bytes,
    version: AuthenticationLevel,
    hash_algorithm: int,
    *,
    transactional: bool,
) -> None:
    """Set all attributes of a signed message except the signature; see `signed`.

    `sid` is the signer's, empty for none, and `certificate` is in DER.

    Raises InvalidValue for a version that does not fit the destination.
    """
    names = _destinations(message.destination)
    several = len(names) > 1 or bool(message.destinations)
    if version is AuthenticationLevel.SIG30:
        message.destinations = message.destinations or names
    elif several:
        raise InvalidValue("a message to several queues has a signature 3.0", path="authentication_level")
    message.authentication_level, message.hash_algorithm = version, hash_algorithm  # MQMQ-2.2.19.3-30
    message.sender_identifier = sid
    message.sender_identifier_type = SenderIdentifierType.SID if sid else SenderIdentifierType.NONE
    message.sender_certificate = certificate
    message.signature = message.multiple_destination_signature = b""
    if not message.acknowledgements_requested:
        message.administration = None  # MQMQ-2.2.19.2-26
    if transactional:
        message.delivery_guarantee, message.priority = DeliveryGuarantee.RECOVERABLE, 0


def _destinations(name: FormatName | None) -> tuple[FormatName, ...]:
    """Return the queues of a name in the order of Open Queue."""
    if isinstance(name, DistributionListName):
        raise InvalidValue("the members of a distribution list are not known here", path="destination")
    if isinstance(name, MultipleElementName):
        return tuple(each_once(name.elements))
    return () if name is None else (name,)


def _packet(message: Message, queue_manager: UUID, *, transactional: bool) -> Record:
    """Return the packet that the queue manager is going to make of a message."""
    copy = message.copy(source_machine_identifier=queue_manager)
    if isinstance(copy.destination, MultipleElementName):
        copy.destination = message.destinations[0]  # each packet has its own, which 3.0 does not cover
    if transactional:
        copy.transaction_identifier = _SOME_TRANSACTION
    return USER_MESSAGE.parse(new_packet(copy))  # type: ignore[no-any-return]
