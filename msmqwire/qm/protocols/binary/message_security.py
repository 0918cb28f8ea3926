"""Message security and access control: [MS-MQQB] 3.1.5.8.3, 3.1.7.1.4 and 3.1.7.1.5.

Signatures and ciphers are not implemented yet: a message that bears one can't be verified and is refused as
the specification says, and one that asks for one here is not sent.
"""

from __future__ import annotations

from functools import lru_cache

from msmqwire.constants import CIPHERS_OF_LEVEL, MQQUEUEACCESSMASK, MessageClass, PrivacyLevel
from msmqwire.errors import MalformedPacket
from msmqwire.qm.model import access
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import AuthenticationLevel, QueuePrivacy, SenderIdentifierType
from msmqwire.qm.model.message import Message
from msmqwire.qm.rules.queues import Queues

WRITE = MQQUEUEACCESSMASK.MQSEC_WRITE_MESSAGE
_NOBODY = access.Token(access.NULL_SID)
_CACHE_SIZE = 1024
_PRIVACY_LEVELS = frozenset(PrivacyLevel)


class MessageSecurity:
    """Judges the messages that arrive, and whether messages can be sent as they ask."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues

    def judge(self, message: Message, queue: Queue) -> int | None:
        """Return the class of refusal for a message to a queue; None if it may be enqueued."""
        if message.signature or message.multiple_destination_signature or queue.authentication:
            return MessageClass.MQMSG_CLASS_NACK_BAD_SIGNATURE  # MQQB-3.1.5.8.3-06
        if not message.encrypted and message.privacy_level not in _PRIVACY_LEVELS:
            return MessageClass.MQMSG_CLASS_NACK_BAD_SIGNATURE  # MQMQ-2.2.19.3-20
        if message.encrypted or message.privacy_level or queue.privacy_level is QueuePrivacy.BODY:
            # MQQB-3.1.5.8.3-16 and -26, MQMQ-2.2.19.3-38
            return MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION
        token = _token(message.sender_identifier_type, message.sender_identifier)
        if not _may_write(self._queues.security_of(queue), token):  # MQQB-3.1.5.8.3-29
            return MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED  # MQQB-3.1.5.8.3-33
        return None

    def can_protect(self, message: Message) -> bool:
        """Return whether a message can be sent with the protection that it asks for.

        Nobody can verify a signature for several destinations without the certificate; and that would be all
        that the SecurityHeader has: MQMQ-2.2.20.6-20.
        """
        several = message.multiple_destination_signature and message.sender_certificate
        signed = bool(message.signature or several)
        ciphers = CIPHERS_OF_LEVEL.get(message.privacy_level, ())  # MQMQ-2.2.19.3-39
        encrypted = bool(message.symmetric_key) and message.encryption_algorithm in ciphers
        return (message.authentication_level is AuthenticationLevel.NONE or signed) and (
            not message.privacy_level or encrypted
        )


# The same few senders write to the same few queues: results for them are cached.


@lru_cache(maxsize=_CACHE_SIZE)
def _token(kind: SenderIdentifierType, identifier: bytes) -> access.Token:
    """Return whose rights a message has, MQQB-3.1.5.8.3-28 and -30; anonymous if it does not say."""
    if kind is SenderIdentifierType.SID and identifier:
        try:
            return access.Token.of(identifier)
        except MalformedPacket:
            return _NOBODY  # MQQB-3.1.5.8.3-32
    if kind is SenderIdentifierType.QUEUE_MANAGER_IDENTIFIER:
        return access.Token(access.EVERYONE)
    return access.Token(access.ANONYMOUS, frozenset({access.EVERYONE}))


@lru_cache(maxsize=_CACHE_SIZE)
def _may_write(descriptor: bytes, token: access.Token) -> bool:
    return access.access_allowed(descriptor, token, WRITE)
