"""Signatures of messages that are sent and received: [MC-MQSRM] 3.1.5.1.6.1 and 3.1.7.2.4.

The code that makes and verifies them is loaded with the first one: that takes a tenth of a second, and few
programs need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from msmqwire.errors import InvalidSignature, InvalidValue
from msmqwire.qm.model.enumerations import AuthenticationLevel
from msmqwire.qm.model.message import Message
from msmqwire.qm.protocols.srmp.serializing import Serialized
from msmqwire.srmp.message import SrmpMessage
from msmqwire.srmp.signature_element import SIGNATURE_PATH

if TYPE_CHECKING:
    from msmqwire.srmp.certificates import Signer, Trust


def authenticate(
    received: SrmpMessage, message: Message, trust: Trust | None, *, required: bool = False
) -> None:
    """Set AuthenticationLevel and SenderCertificate of a message whose Signature is verified.

    A message without one is left as it is. The attributes prove the author of the body and the extension
    only; label, queues and the rest of the envelope are unproved. Message.Signature, which is for the
    signatures of binary packets, stays empty: this one is in SoapEnvelope.

    Args:
        received: the message on the wire.
        message: the result of `deserialize`. Its ArrivalTime is the time at which certificates must be valid.
        trust: the trusted signers; None for none.
        required: whether the message must be signed, because its queue accepts only authenticated ones.

    Raises InvalidSignature for a message that is disregarded: SRMP-3.1.5.1.6.1-01.
    """
    envelope = received.envelope
    if envelope is None or envelope.Signature is None:
        if required:
            raise InvalidSignature("no Signature (SRMP-3.1.5.1.6.1-02)", path=SIGNATURE_PATH)
        return
    from msmqwire.srmp.certificates import Trust
    from msmqwire.srmp.verifying import verify

    verified = verify(received, trust or Trust(), message.arrival_time)
    # DMPR-3.1.1.12-16
    if (verified.body or b"", verified.extension or b"") != (message.body, message.extension):
        raise InvalidSignature("another body or extension is signed", path=SIGNATURE_PATH)
    message.authentication_level = message.signature_type = AuthenticationLevel.XML_SIG  # SRMP-3.1.5.1.1-47
    message.sender_certificate = verified.signer.der


def signed(
    serialized: Serialized, message: Message, signer: Signer | None, *, queue_manager: UUID
) -> Serialized:
    """Return the result of `serialize` with a Signature, if one is needed.

    It is needed if the message asks for it by AuthenticationLevel XmlSig, and for every message with a body
    or an extension if a signer is configured; without them there is nothing to sign (2.2.7.1.2).

    Args:
        serialized: the parts of the message.
        message: their source; its HashAlgorithm is used for the digests.
        signer: the signer of this queue manager, or None.
        queue_manager: the sender, after which the parts are named.

    Raises InvalidValue for a message whose request can't be met.
    """
    asked = message.authentication_level is AuthenticationLevel.XML_SIG
    has_payload = serialized.body is not None or serialized.extension is not None
    if not asked and (signer is None or not has_payload):
        return serialized
    if signer is None:
        raise InvalidValue("a signature is asked for, and no key is configured", path="authentication_level")
    from msmqwire.srmp.signing import sign

    envelope = sign(
        serialized.envelope,
        signer,
        queue_manager=queue_manager,
        body=serialized.body,
        extension=serialized.extension,
        hash_algorithm=message.hash_algorithm,
    )
    return serialized._replace(envelope=envelope)
