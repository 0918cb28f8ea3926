"""Messages: [MS-MQDMPR] 3.1.1.12."""

from __future__ import annotations

from copy import copy
from functools import lru_cache
from typing import Any, Final, NamedTuple, Self
from uuid import UUID

from msmqwire.constants import EncryptionAlgorithm, HashAlgorithm, MessageClass
from msmqwire.names import FormatName, PrivateName, Role, to_user_header_queue
from msmqwire.qm.model.enumerations import (
    INFINITE,
    AcknowledgementsRequested,
    AuthenticationLevel,
    DeliveryGuarantee,
    MoveReason,
    QueueFormatType,
    SenderIdentifierType,
)

NULL_GUID: Final = UUID(int=0)
_RECOVERABLE: Final = DeliveryGuarantee.RECOVERABLE
LABEL_MAX: Final = 249
"""Characters of a label: DMPR-3.1.1.12-46."""
TIME_TO_REACH_QUEUE: Final = 0x54600
"""Seconds, four days: DMPR-3.1.1.12-48."""
_ATTRIBUTES_OUTSIDE_PACKET: Final = frozenset(
    {
        "allow_peek_when_locked",
        "application_deadletter_queue",
        "arrival_time",
        "authentication_level",
        "deliveries",
        "encrypted",
        "expires",
        "lookup_identifier",
        "move_reason",
        "origin",
        "packet",
        "peer",
        "signature_type",
        "transaction_status_queue",
    }
)


@lru_cache(maxsize=1024)
def _guid_bytes(guid: UUID) -> bytes:
    """Return the bytes of a GUID. GUIDs of queue managers recur, and converting one takes a microsecond."""
    return guid.bytes_le


class ObjectId(NamedTuple):
    """OBJECTID, the identifier of a message in the whole system: [MS-MQMQ] 2.2.8."""

    lineage: UUID = NULL_GUID
    uniquifier: int = 0

    def __bytes__(self) -> bytes:
        return _guid_bytes(self.lineage) + self.uniquifier.to_bytes(4, "little")

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read an identifier from 20 bytes, as in CorrelationID."""
        return cls(UUID(bytes_le=data[:16]), int.from_bytes(data[16:], "little"))


class TxSequenceId(NamedTuple):
    """A transactional sequence: [MS-MQMQ] 2.2.18.1.2. Compares as its 64-bit number does."""

    time_stamp: int = 0
    ordinal: int = 0


NO_IDENTIFIER: Final = ObjectId()
"""The identifier of a message that has not been sent."""
NO_SEQUENCE: Final = TxSequenceId()
"""The sequence of a message outside a sequence, and of a transfer that has not begun one."""
NO_CORRELATION: Final = bytes(20)  # DMPR-3.1.1.12-38
"""CorrelationID of a message that refers to no other."""
_NORMAL: Final = MessageClass.MQMSG_CLASS_NORMAL
_EXPRESS: Final = DeliveryGuarantee.EXPRESS
_NO_ACKNOWLEDGEMENTS: Final = AcknowledgementsRequested.NONE
_SID: Final = SenderIdentifierType.SID
_UNAUTHENTICATED: Final = AuthenticationLevel.NONE
_RC4: Final = EncryptionAlgorithm.CALG_RC4
_NO_REASON: Final = MoveReason.NONE
_SHA1: Final = HashAlgorithm.CALG_SHA1


class Message:
    """A message: [MS-MQDMPR] 3.1.1.12. Compared by identity.

    Attributes that are not given are taken from the class, which makes a message cheap to create. They have
    the names of the specification, except for:

    Attributes:
        identifier: uniquifier 0 until the message is sent for the first time.
        message_class: MESSAGE_CLASS_VALUES, or a number of an application.
        privacy_level: MessagePropertiesHeader.PrivacyLevel: 0, 1 (40-bit), 3 (128-bit) or 5 (AES).
        sent_time: seconds since 1970-01-01 UTC; 0 until it is set.
        arrival_time: when it was put into its present queue, in the same unit.
        time_to_reach_queue: seconds after `sent_time`; `INFINITE` for no limit.
        time_to_be_received: seconds after `sent_time`; `INFINITE` for no limit.
        destination: DestinationQueueFormatName.
        administration: AdministrationQueueFormatName.
        response: ResponseQueueFormatName.
        destinations, administrations, responses: the names of the multiple-element forms.
        hop_count: routing servers passed: UserHeader.Flags.RC.
        signature_type: the kind of its signature, if that was verified here, whoever made it:
            SecurityHeader.Flags.AS. `authentication_level` says in addition that its sender is proved.
        encrypted: whether `body` is encrypted: SecurityHeader.Flags.EB of a packet that was received.
        origin: its source in the network, or that of the message it reports on: see `origin_of`; empty for a
            message of this computer.
        peer: the address that it came from, while it is in memory; empty if that is `origin`.
        expires: when it ends if nobody receives it, in seconds since 1970-01-01 UTC; 0 for never or unknown.
        deliveries, move_reason: those of its `MoveHistory`.
        packet: the UserMessage packet in which the message was received, as bytes; None for a new one.
    """

    body: bytes = b""  # DMPR-3.1.1.12-36
    label: str = ""
    identifier: ObjectId = NO_IDENTIFIER  # DMPR-3.1.1.12-02
    lookup_identifier: int = 0
    message_class: int = _NORMAL  # DMPR-3.1.1.12-06 and -07
    delivery_guarantee: DeliveryGuarantee = _EXPRESS  # DMPR-3.1.1.12-17
    priority: int = 3  # DMPR-3.1.1.12-21
    body_type: int = 0  # DMPR-3.1.1.12-37
    application_tag: int = 0  # DMPR-3.1.1.12-34
    extension: bytes = b""  # DMPR-3.1.1.12-61
    correlation_identifier: bytes = NO_CORRELATION  # DMPR-3.1.1.12-38
    acknowledgements_requested: AcknowledgementsRequested = _NO_ACKNOWLEDGEMENTS  # DMPR-3.1.1.12-39
    sent_time: int = 0
    arrival_time: int = 0
    time_to_reach_queue: int = TIME_TO_REACH_QUEUE
    time_to_be_received: int = INFINITE  # DMPR-3.1.1.12-49
    positive_journaling_requested: bool = False  # DMPR-3.1.1.12-23, MQQB-1.3.4-01
    negative_journaling_requested: bool = False  # DMPR-3.1.1.12-24 and -25, MQQB-1.3.4-01
    allow_peek_when_locked: bool = False  # DMPR-3.1.1.12-03
    application_deadletter_queue: str = ""  # DMPR-3.1.1.12-04
    source_machine_identifier: UUID = NULL_GUID  # DMPR-3.1.1.12-35
    destination_queue_manager_identifier: UUID = NULL_GUID  # DMPR-3.1.1.12-52
    destination: FormatName | None = None  # DMPR-3.1.1.12-28
    administration: FormatName | None = None  # DMPR-3.1.1.12-30
    response: FormatName | None = None  # DMPR-3.1.1.12-26
    destinations: tuple[FormatName, ...] = ()  # DMPR-3.1.1.12-29
    administrations: tuple[FormatName, ...] = ()  # DMPR-3.1.1.12-31
    responses: tuple[FormatName, ...] = ()  # DMPR-3.1.1.12-27
    tracing_requested: bool = False  # DMPR-3.1.1.12-19
    tracing_queue_identifier: UUID = NULL_GUID  # DMPR-3.1.1.12-20
    hop_count: int = 0
    sender_identifier: bytes = b""
    sender_identifier_type: SenderIdentifierType = _SID  # DMPR-3.1.1.12-59
    sender_certificate: bytes = b""  # DMPR-3.1.1.12-58
    authentication_level: AuthenticationLevel = _UNAUTHENTICATED  # DMPR-3.1.1.12-15
    signature: bytes = b""
    multiple_destination_signature: bytes = b""  # DMPR-3.1.1.12-33
    authentication_provider_type: int = 0  # DMPR-3.1.1.12-67
    authentication_provider_name: str = ""
    privacy_level: int = 0  # DMPR-3.1.1.12-13 and -14
    encryption_algorithm: int = _RC4  # DMPR-3.1.1.12-51
    hash_algorithm: int = _SHA1  # DMPR-3.1.1.12-50
    symmetric_key: bytes = b""
    encrypted: bool = False
    signature_type: AuthenticationLevel = _UNAUTHENTICATED
    connector_type_identifier: UUID = NULL_GUID  # DMPR-3.1.1.12-62
    connector_queue_manager_identifier: UUID = NULL_GUID  # DMPR-3.1.1.12-63
    transactional_message_sequence_identifier: TxSequenceId | None = None  # DMPR-3.1.1.12-69
    transaction_sequence_number: int = 0
    transaction_previous_sequence_number: int = 0
    transaction_identifier: UUID | None = None  # DMPR-3.1.1.12-71
    transaction_number: int = 0
    final_ack_required: bool = False
    first_in_transaction: bool = False
    last_in_transaction: bool = False
    transaction_status_queue: str = ""
    soap_envelope: str = ""
    soap_compound_message: bytes = b""
    soap_header: str = ""
    soap_body: str = ""
    origin: str = ""
    peer: str = ""
    expires: int = 0
    deliveries: int = 0
    move_reason: MoveReason = _NO_REASON
    packet: bytes | None = None

    def __init__(self, **attributes: Any) -> None:
        """Make a message with these attributes. Raises TypeError for a name that is none."""
        for name, value in attributes.items():
            if not hasattr(Message, name):
                raise TypeError(f"a message has no {name}")
            setattr(self, name, value)

    def came_from(self, address: str, origin: str) -> None:
        """Set the network address of the sender, and the origin of that address."""
        self.origin, self.peer = origin, "" if address == origin else address

    @property
    def recoverable(self) -> bool:
        """Whether the message must survive a restart."""
        return self.delivery_guarantee is _RECOVERABLE  # DMPR-3.1.1.12-17

    @property
    def transactional(self) -> bool:
        """Whether the message belongs to a transactional sequence."""
        return self.transactional_message_sequence_identifier is not None

    @property
    def decrypted(self) -> bool:
        """Whether its body was encrypted with `encryption_algorithm`, and has been decrypted here."""
        return bool(self.symmetric_key and self.privacy_level) and not self.encrypted

    @property
    def outcome_requested(self) -> bool:
        """Whether its sender may have asked for a report or a copy at its end."""
        return bool(
            self.acknowledgements_requested
            or self.positive_journaling_requested
            or self.negative_journaling_requested
            or self.final_ack_required
        )

    @property
    def queue_manager_address(self) -> UUID:
        """DestinationQueueManagerIdentifier, or else the host of a private destination.

        It is UserHeader.QueueManagerAddress: [MS-MQMQ] 2.2.19.2.
        """
        address = self.destination_queue_manager_identifier
        if not address.int and isinstance(self.destination, PrivateName):
            return self.destination.guid
        return address

    @property
    def destination_queue_type(self) -> QueueFormatType:
        """The kind of `destination`: DMPR-3.1.1.12-53. Raises InvalidName for a name that no packet can
        have.
        """
        return self._queue_type(self.destination, "destination")

    @property
    def administration_queue_type(self) -> QueueFormatType:
        """The kind of `administration`: DMPR-3.1.1.12-54. Raises InvalidName likewise."""
        return self._queue_type(self.administration, "admin")

    @property
    def response_queue_type(self) -> QueueFormatType:
        """The kind of `response`: DMPR-3.1.1.12-55. Raises InvalidName for a name that no packet can have."""
        return self._queue_type(self.response, "response")

    def _queue_type(self, name: FormatName | None, role: Role) -> QueueFormatType:
        kind, _ = to_user_header_queue(
            name,
            role,
            source_qm=self.source_machine_identifier,
            destination_qm=self.queue_manager_address,
            admin=self.administration,
        )
        return QueueFormatType(kind)

    def copy(self, **changed: object) -> Self:
        """Copy the message with changed attributes; without `packet` if the packet contains one of them."""
        if changed.keys() - _ATTRIBUTES_OUTSIDE_PACKET:
            changed.setdefault("packet", None)
        copied = copy(self)
        for name, value in changed.items():
            setattr(copied, name, value)
        return copied
