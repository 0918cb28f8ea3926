"""Messages verified, decrypted and encrypted by a queue manager: [MS-MQQB] 3.1.5.8.3 and 3.1.7.1."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Final
from uuid import UUID

from msmqwire.constants import CIPHERS_OF_LEVEL, HResult, KeyAlgorithm, MessageClass, PrivacyLevel
from msmqwire.errors import DecryptionFailed, InvalidSignature, QueueError
from msmqwire.names import FormatName, PrivateName, PublicName
from msmqwire.packets import USER_MESSAGE
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import AuthenticationLevel, QueuePrivacy
from msmqwire.qm.model.message import Message
from msmqwire.qm.rules.directory_events import DirectoryEvents
from msmqwire.qm.rules.identities import Identities
from msmqwire.qm.rules.message_to_packet import new_packet
from msmqwire.qm.security import legacy
from msmqwire.qm.security.authentication import Authentication
from msmqwire.qm.security.configuration import SecurityConfiguration
from msmqwire.qm.security.decryption import Decryption
from msmqwire.qm.security.encryption import Encryption, RemoteKeys, not_for_direct_names
from msmqwire.qm.security.published_keys import key_list
from msmqwire.qm.security.work_limits import WorkLimits
from msmqwire.schema import Record

_PRIVACY_LEVELS: Final = frozenset(PrivacyLevel)
_BAD_SIGNATURE: Final = MessageClass.MQMSG_CLASS_NACK_BAD_SIGNATURE  # DMPR-3.1.1.12-10
_BAD_ENCRYPTION: Final = MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION  # DMPR-3.1.1.12-10
_BODY: Final = QueuePrivacy.BODY


class Protection:
    """Verifies, decrypts and encrypts messages.

    Args:
        context: the state of the queue manager. directory: holds the keys of peers, and publishes those of
            this queue manager.
        identities: holds the registered certificates.
        known: origins without a limit on the work that their messages cause.
        configuration: the keys of the queue manager.

    Attributes:
        configuration: see `configure`.
        authentication, decryption, encryption: its parts, with their caches.
    """

    def __init__(
        self,
        context: Context,
        directory: DirectoryEvents,
        identities: Identities,
        known: Container[str],
        configuration: SecurityConfiguration,
    ) -> None:
        self._context, self._directory, self._identities = context, directory, identities
        work = WorkLimits(context, known)
        self.authentication = Authentication(context, identities, work)
        self.decryption = Decryption(context, work)
        self.encryption = Encryption(context, directory)
        self.configuration = configuration

    # -- configuration --------------------------------------------------------------------------------

    def configure(self, configuration: SecurityConfiguration) -> None:
        """Use other keys from now on; results of the earlier ones are not used again."""
        self.configuration, self._identities.users = configuration, configuration.users
        self.forget()
        self.publish()

    def forget(self) -> None:
        """Forget all cached keys, certificates and groups, because users or keys have been changed here."""
        self.authentication.user_cert_cache.clear()
        self.decryption.receive_symmetric_key_cache.clear()
        self.encryption.send_symmetric_key_cache.clear()
        self.encryption.send_base_symmetric_key_cache.clear()
        self._identities.forget()

    def publish(self) -> None:
        """Set the lists of public keys, in the directory too."""
        manager, configuration = self._context.queue_manager, self.configuration
        lists: dict[str, tuple[str, bytes]] = {}
        if configuration.exchange_keys:  # DMPR-3.1.3-11
            keys = {
                provider: own[0].public_key() for provider, own in configuration.exchange_keys.items() if own
            }
            lists["PublicEncryptionKeyList"] = (
                "public_encryption_key_list",
                key_list(keys, KeyAlgorithm.CALG_RSA_KEYX),  # DMPR-3.1.3-11
            )
        if configuration.signing_keys:  # DMPR-3.1.3-12
            lists["PublicSigningKeyList"] = (
                "public_signing_key_list",
                key_list(configuration.signing_keys, KeyAlgorithm.CALG_RSA_SIGN),  # DMPR-3.1.3-12
            )
        changed = [name for name, (field, value) in lists.items() if getattr(manager, field) != value]
        for name in changed:
            setattr(manager, *lists[name])  # MQMQ-2.2.20.6-34, DMPR-3.1.3-11 and -12
        if changed:
            self._directory.write_directory(manager, changed)  # MQMQ-2.2.20.6-34

    # -- messages that arrive -------------------------------------------------------------------------

    def refusal(self, message: Message, queue: Queue, packet: Record | None = None) -> int | None:
        """Decrypt and authenticate a received message for a queue here.

        The body is decrypted first: it was signed in clear. `packet` is the packet of the message, if it is
        at hand; its body is decrypted too.

        Returns the class of refusal; None for a message with valid protection.

        Raises TooMuchWork for a message that its sender is to send again later.
        """
        if message.encrypted:
            if queue.privacy_level is QueuePrivacy.NONE:  # MQMQ-2.3.1.12-02
                return _BAD_ENCRYPTION
            try:
                message.body = self.decryption.decrypted(message, self.configuration)
            except DecryptionFailed:
                # MQQB-3.1.5.8.3-16, MQQB-3.1.5.8.3-17
                return _BAD_ENCRYPTION  # MQQB-3.1.5.8.3-26, MQQB-3.1.5.8.3-27
            message.encrypted = False
        elif message.privacy_level not in _PRIVACY_LEVELS:
            return _BAD_SIGNATURE  # MQMQ-2.2.19.3-20
        elif message.privacy_level or queue.privacy_level is _BODY:
            return _BAD_ENCRYPTION
        try:
            self._authenticate(message, packet)
        except InvalidSignature:
            return _BAD_SIGNATURE  # MQQB-3.1.5.8.3-06, MQQB-5.1-03
        if message.decrypted:
            message.packet = None  # it is stored with its body in clear
        if queue.authentication and not message.authentication_level:
            return _BAD_SIGNATURE
        return None

    def refusal_here(self, message: Message, queue: Queue) -> HResult | None:
        """Authenticate a message of a local application for a queue here.

        It does not leave the computer, so its body need not be encrypted; but it has to ask for encryption if
        the queue requires it. Returns the reason of a refusal.

        Raises InvalidValue, InvalidName: no packet can hold the message.
        """
        private = QueuePrivacy.BODY if message.privacy_level else QueuePrivacy.NONE
        if queue.privacy_level not in (QueuePrivacy.OPTIONAL, private):
            return HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE
        try:
            self._authenticate(message)
        except InvalidSignature:
            return HResult.MQ_ERROR_MESSAGE_NOT_AUTHENTICATED
        if queue.authentication and not message.authentication_level:
            return HResult.MQ_ERROR_MESSAGE_NOT_AUTHENTICATED
        return None

    def _authenticate(self, message: Message, packet: Record | None = None) -> None:
        """Set the attributes that the signature of a message proves. Raises as `Authentication.verified`."""
        if message.authentication_level or message.signature_type:
            message.authentication_level = message.signature_type = AuthenticationLevel.NONE
        if message.signature or message.multiple_destination_signature:  # MQQB-3.1.5.8.3-02
            verified = self.authentication.verified(message, _packet(message, packet), self.configuration)
            message.signature_type = verified.signature_type  # MQQB-3.1.5.8.3-03 to -05
            if verified.known:
                message.authentication_level = verified.signature_type

    # -- messages that are sent -----------------------------------------------------------------------

    def check_can_leave(self, message: Message, names: Iterable[FormatName | None]) -> None:
        """Refuse at once a message whose requested protection is not possible for queues of other computers.

        Raises QueueError with the reason.
        """
        if message.signature or message.multiple_destination_signature:
            self._check_hash(message)
        if not message.privacy_level:
            return
        for name in names:
            if not isinstance(name, PrivateName | PublicName):
                raise not_for_direct_names()
        algorithm = message.encryption_algorithm
        if not legacy.is_sent(self._context, algorithm):
            raise QueueError(
                f"{legacy.LEGACY[algorithm]} is broken and switched off (send_{legacy.LEGACY[algorithm]})",
                HResult.MQ_ERROR_ENCRYPTION_PROVIDER_NOT_SUPPORTED,
            )

    def _check_hash(self, message: Message) -> None:
        """Raise QueueError for a signature with a hash that is switched off."""
        if not legacy.is_sent(self._context, message.hash_algorithm):
            name = legacy.LEGACY[message.hash_algorithm]
            raise QueueError(
                f"its signature uses {name}, which is broken and switched off (send_{name})",
                HResult.MQ_ERROR_CANNOT_CREATE_HASH_EX,
            )

    def protected(
        self, message: Message, destination: UUID | None, remote: dict[UUID, RemoteKeys]
    ) -> Message:
        """Return a message of this queue manager in the form for a session: [MS-MQQB] 3.1.7.1.4, 3.1.7.1.5.

        It was signed in the application, which alone has the key. `destination` and `remote` are as for
        `Encryption.encrypted`.

        Raises QueueError with the reason if the requested protection is not possible.
        """
        signature = message.signature or message.multiple_destination_signature
        if message.authentication_level and not signature:  # MQQB-3.1.7.1.4-01
            raise QueueError(
                "it asks for a signature, and has none", HResult.MQ_ERROR_CERTIFICATE_NOT_PROVIDED
            )
        if message.multiple_destination_signature and not message.sender_certificate:
            # No receiver could verify it; and an empty SecurityHeader is forbidden: MQMQ-2.2.20.6-20.
            raise QueueError("it has no certificate", HResult.MQ_ERROR_CERTIFICATE_NOT_PROVIDED)
        if signature:
            self._check_hash(message)
            legacy.warn(self._context, message.hash_algorithm, "a message is signed")
        if not message.privacy_level:  # MQQB-3.1.7.1.5-01, MQQB-5.1-01
            return message
        if message.encrypted:  # by a connector application: DMPR-3.1.1.12-65
            if message.encryption_algorithm not in CIPHERS_OF_LEVEL.get(message.privacy_level, ()):
                raise QueueError(
                    "its PrivacyLevel does not fit its cipher", HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE
                )
            return message
        return self.encryption.encrypted(message, destination, remote, self.configuration)  # MQQB-5.1-01


def _packet(message: Message, packet: Record | None) -> Record:
    """Return the packet of a message with its body in clear: its own, or a new one."""
    if packet is None:
        packet = USER_MESSAGE.parse(message.packet or new_packet(message))
    # MQMQ-2.5-04; its size is not covered.
    packet.MessagePropertiesHeader.MessageBody = message.body
    return packet
