"""Messages: [MS-MQDMPR] 3.1.1.12."""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Final, NamedTuple, Self
from uuid import UUID

from msmqwire.constants import EncryptionAlgorithm, HashAlgorithm, MessageClass
from msmqwire.names import FormatName, PrivateName, Role, to_user_header_queue
from msmqwire.qm.model.enumerations import (
    INFINITE,
    AcknowledgementsRequested,
    AuthenticationLevel,
    DeliveryGuarantee,
    QueueFormatType,
    SenderIdentifierType,
)

NULL_GUID: Final = UUID(int=0)
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
        "encrypted",
        "lookup_identifier",
        "origin",
        "packet",
        "signature_type",
        "transaction_status_queue",
    }
)


class ObjectId(NamedTuple):
    """OBJECTID, the identifier of a message in the whole system: [MS-MQMQ] 2.2.8."""

    lineage: UUID = NULL_GUID
    uniquifier: int = 0

    def __bytes__(self) -> bytes:
        return self.lineage.bytes_le + self.uniquifier.to_bytes(4, "little")

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
"""The sequence of a message that is in none, and of a transfer that has begun none."""


@dataclass(slots=True, eq=False)
class Message:
    """A message: [MS-MQDMPR] 3.1.1.12. Compared by identity.

    The attributes have the names of the specification, except for:

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
            SecurityHeader.Flags.AS. `authentication_level` says besides that its sender is proved.
        encrypted: whether `body` is encrypted: SecurityHeader.Flags.EB of a packet that was received.
        origin: where it came from over the network, or the message that it is about: see `origin_of`; empty
            for a message of this computer.
        packet: the UserMessage packet in which the message was received, as bytes; None for a new one.
    """

    body: bytes = b""
    label: str = ""
    identifier: ObjectId = NO_IDENTIFIER
    lookup_identifier: int = 0
    message_class: int = MessageClass.MQMSG_CLASS_NORMAL
    delivery_guarantee: DeliveryGuarantee = DeliveryGuarantee.EXPRESS
    priority: int = 3
    body_type: int = 0
    application_tag: int = 0
    extension: bytes = b""
    correlation_identifier: bytes = bytes(20)
    acknowledgements_requested: AcknowledgementsRequested = AcknowledgementsRequested.NONE
    sent_time: int = 0
    arrival_time: int = 0
    time_to_reach_queue: int = TIME_TO_REACH_QUEUE
    time_to_be_received: int = INFINITE
    positive_journaling_requested: bool = False
    negative_journaling_requested: bool = False
    allow_peek_when_locked: bool = False
    application_deadletter_queue: str = ""
    source_machine_identifier: UUID = NULL_GUID
    destination_queue_manager_identifier: UUID = NULL_GUID
    destination: FormatName | None = None
    administration: FormatName | None = None
    response: FormatName | None = None
    destinations: tuple[FormatName, ...] = ()
    administrations: tuple[FormatName, ...] = ()
    responses: tuple[FormatName, ...] = ()
    tracing_requested: bool = False
    tracing_queue_identifier: UUID = NULL_GUID
    hop_count: int = 0
    sender_identifier: bytes = b""
    sender_identifier_type: SenderIdentifierType = SenderIdentifierType.SID
    sender_certificate: bytes = b""
    authentication_level: AuthenticationLevel = AuthenticationLevel.NONE
    signature: bytes = b""
    multiple_destination_signature: bytes = b""
    authentication_provider_type: int = 0
    authentication_provider_name: str = ""
    privacy_level: int = 0
    encryption_algorithm: int = EncryptionAlgorithm.CALG_RC4
    hash_algorithm: int = HashAlgorithm.CALG_SHA1
    symmetric_key: bytes = b""
    encrypted: bool = False
    signature_type: AuthenticationLevel = AuthenticationLevel.NONE
    connector_type_identifier: UUID = NULL_GUID
    connector_queue_manager_identifier: UUID = NULL_GUID
    transactional_message_sequence_identifier: TxSequenceId | None = None
    transaction_sequence_number: int = 0
    transaction_previous_sequence_number: int = 0
    transaction_identifier: UUID | None = None
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
    packet: bytes | None = None

    @property
    def recoverable(self) -> bool:
        """Whether it must survive a restart."""
        return self.delivery_guarantee is DeliveryGuarantee.RECOVERABLE

    @property
    def transactional(self) -> bool:
        """Whether it belongs to a transactional sequence."""
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
        """DestinationQueueManagerIdentifier, or the host of a private destination where it is not set.

        It is UserHeader.QueueManagerAddress: [MS-MQMQ] 2.2.19.2.
        """
        address = self.destination_queue_manager_identifier
        if not address.int and isinstance(self.destination, PrivateName):
            return self.destination.guid
        return address

    @property
    def destination_queue_type(self) -> QueueFormatType:
        """How `destination` is named: DMPR-3.1.1.12-53. Raises InvalidName for what a packet can't name."""
        return self._queue_type(self.destination, "destination")

    @property
    def administration_queue_type(self) -> QueueFormatType:
        """How `administration` is named: DMPR-3.1.1.12-54. Raises InvalidName as the others do."""
        return self._queue_type(self.administration, "admin")

    @property
    def response_queue_type(self) -> QueueFormatType:
        """How `response` is named: DMPR-3.1.1.12-55. Raises InvalidName for what a packet can't name."""
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
        """Copy the message with changed attributes; without `packet` if that contains one of them."""
        if changed.keys() - _ATTRIBUTES_OUTSIDE_PACKET:
            changed.setdefault("packet", None)
        copied = type(self)(*_values(self))  # far quicker than dataclasses.replace
        for name, value in changed.items():
            setattr(copied, name, value)
        return copied


_values: Final = attrgetter(*(field.name for field in fields(Message)))
