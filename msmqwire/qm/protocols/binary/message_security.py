"""Message security and access control: [MS-MQQB] 3.1.5.8.3, 3.1.7.1.4 and 3.1.7.1.5."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from msmqwire.constants import MQQUEUEACCESSMASK, MessageClass
from msmqwire.errors import MalformedPacket
from msmqwire.qm.model import access
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import SenderIdentifierType
from msmqwire.qm.model.message import Message
from msmqwire.qm.protocols.binary.session import Session
from msmqwire.qm.protocols.binary.transfer import SessionTransfer
from msmqwire.qm.rules.identities import Identities
from msmqwire.qm.rules.queues import Queues
from msmqwire.qm.security.protection import Protection
from msmqwire.schema import Record

WRITE = MQQUEUEACCESSMASK.MQSEC_WRITE_MESSAGE
_QUEUE_MANAGER: Final = access.Token(access.EVERYONE)  # MQQB-3.1.5.8.3-30
_ANONYMOUS: Final = access.Token(access.ANONYMOUS, frozenset({access.EVERYONE}))  # MQQB-3.1.5.8.3-36
_SID: Final = SenderIdentifierType.SID
_CACHE_SIZE = 1024


class MessageSecurity:
    """Checks incoming messages, and protects outgoing ones."""

    def __init__(self, queues: Queues, identities: Identities, protection: Protection) -> None:
        self._queues, self._identities, self._protection = queues, identities, protection

    def judge(self, message: Message, queue: Queue, packet: Record | None = None) -> int | None:
        """Decrypt and authenticate a message to a queue, and check the rights of its sender.

        `packet` is passed to `Protection.refusal`. Returns the class of refusal; None if it may be enqueued.

        Raises TooMuchWork for a message that its sender has to send again later.
        """
        refusal = self._protection.refusal(message, queue, packet)
        if refusal is not None:
            return refusal
        token = self._token(message.sender_identifier_type, message.sender_identifier)
        # MQQB-3.1.5.8.3-29, MQQB-5.1-03
        if token is None or not _may_write(self._queues.security_of(queue), token):  # MQQB-3.1.5.8.3-32
            # MQQB-3.1.5.8.3-34, MQQB-3.1.5.8.3-35
            return MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED  # MQQB-3.1.5.8.3-33
        return None

    def _token(self, kind: SenderIdentifierType, identifier: bytes) -> access.Token | None:
        """Return the user whose rights apply; anonymous if none is named, None if it can't be read."""
        if kind is _SID and identifier:
            token = _token_of(identifier)
            if token is None:  # MQQB-3.1.5.8.3-32
                return None
            groups = self._identities.groups_of(identifier)
            return access.Token(token.user, token.groups | groups) if groups else token
        if kind is SenderIdentifierType.QUEUE_MANAGER_IDENTIFIER:  # MQQB-3.1.5.8.3-30
            return _QUEUE_MANAGER
        return _ANONYMOUS  # DMPR-3.1.1.12-60, MQQB-3.1.5.8.3-36

    def protected(self, message: Message, transfer: SessionTransfer, session: Session) -> Message:
        """Return a message of this queue manager in the form for a session.

        Raises QueueError with the reason if the requested protection is not possible.
        """
        return self._protection.protected(message, transfer.qm_guid, session.remote_public_keys)


# The same few senders write to the same few queues: results for them are cached.


@lru_cache(maxsize=_CACHE_SIZE)
def _token_of(sid: bytes) -> access.Token | None:
    try:
        return access.Token.of(sid)
    except MalformedPacket:
        return None


@lru_cache(maxsize=_CACHE_SIZE)
def _may_write(descriptor: bytes, token: access.Token) -> bool:
    return access.access_allowed(descriptor, token, WRITE)  # MQQB-3.1.5.8.3-28
