"""The conversion of an SRMP message into a message of the queue manager: [MC-MQSRM] 3.1.5.1.1."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from msmqwire.constants import MessageClass
from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.names import FormatName
from msmqwire.qm.model.enumerations import AcknowledgementsRequested, DeliveryGuarantee
from msmqwire.qm.model.message import LABEL_MAX, NULL_GUID, Message, ObjectId, TxSequenceId
from msmqwire.qm.protocols.srmp.queue_names import (
    MSMQ,
    read_destination,
    read_http,
    read_list,
    read_response,
)
from msmqwire.qm.protocols.srmp.times import message_time_of
from msmqwire.srmp.content import Content
from msmqwire.srmp.envelope import Envelope, parse_envelope
from msmqwire.srmp.identifiers import StreamIdentifier
from msmqwire.srmp.message import SrmpMessage
from msmqwire.srmp.soap_text import soap_text
from msmqwire.srmp.times import span_of, time_of

WITHOUT_MSMQ: Final = ObjectId(NULL_GUID, 1)
"""The identifier of a message without Msmq, which is not checked for duplicates: SRMP-3.1.5.1.1-13."""
_HEADER: Final = "Envelope.Header"
_MESSAGE_CLASSES: Final = {int(member): member for member in MessageClass}


def deserialize(received: SrmpMessage, arrival: int, destination: FormatName | None = None) -> Message:
    """Return the message that a request carries, or an envelope alone; `arrival` is the present time.

    `destination` is given for a message that an administrator redirects, whose ``to`` may be any URL.

    AuthenticationLevel stays None despite a signature: applications trust it, so only
    `signatures.authenticate` sets it, after verification.

    Raises MalformedPacket for a request that gets status 400 (SRMP-3.1.5.1.2-01), InvalidValue for an HTTP
    response, which carries no message.
    """
    data, envelope = received.envelope_bytes, received.envelope
    if data is None or envelope is None:
        raise InvalidValue("a response carries no message")
    # SRMP-3.1.5.1.1-01, -06, -07
    message = Message(arrival_time=arrival, body=received.body or b"", extension=received.extension or b"")
    message.soap_compound_message = received.to_bytes()  # SRMP-3.1.5.1.1-02
    # SRMP-3.1.5.1.1-03, -04, -05
    message.soap_envelope, message.soap_header, message.soap_body = soap_text(data)  # DMPR-3.1.1.12-75
    _read_path(envelope.path, message, destination)
    _read_times(envelope, message)
    if envelope.services is not None:
        _read_services(envelope.services, message)
    if envelope.stream is not None:
        _read_stream(envelope.stream, message)
    message.identifier = WITHOUT_MSMQ  # SRMP-3.1.5.1.1-13, SRMP-2.2.4.3-03
    if envelope.Msmq is not None:  # SRMP-2.2.6-03
        _read_msmq(envelope.Msmq, message)
        # SourceQmGuid has precedence over the GUID in id: SRMP-2.2.4.3-05.
        # SRMP-3.1.5.1.1-12, SRMP-4.2-02, SRMP-4.4-05
        message.identifier = ObjectId(message.source_machine_identifier, envelope.path.id.uniquifier)
    return message


def reach_limit(envelope: Envelope) -> datetime:
    """Return the time by which a message has to be in its queue: SRMP-3.1.5.1.4-01."""
    # SRMP-2.2.6.17-03, SRMP-3.1.5.1.4-01
    limit: datetime = envelope.properties.expiresAt if envelope.Msmq is None else envelope.Msmq.TTrq
    return limit


def stream_of(message: Message) -> StreamIdentifier | None:
    """Return the streamId of a received message, which its receipts repeat; None without a stream.

    Its GUID may differ from SourceQmGuid, as in 4.4, so it is taken from the envelope. A message of the
    binary protocol may have any bytes as its envelope.
    """
    sequence = message.transactional_message_sequence_identifier
    if sequence is None:
        return None
    if message.soap_envelope:
        with suppress(MalformedPacket):
            stream = parse_envelope(message.soap_envelope.encode("utf-8", "surrogatepass")).stream
            if stream is not None:
                return StreamIdentifier(*stream.streamId)
    return StreamIdentifier(message.source_machine_identifier, sequence.time_stamp << 32 | sequence.ordinal)


def _read_path(path: Content, message: Message, destination: FormatName | None) -> None:
    if path.action.startswith(MSMQ):  # SRMP-3.1.5.1.1-08 and -09  # SRMP-2.2.4.1-07
        message.label = _label(path.action.removeprefix(MSMQ))  # SRMP-2.2.4.1-07, SRMP-4.1-02, SRMP-4.2-02
    # SRMP-3.1.5.1.1-10 and -11, SRMP-4.1-02, SRMP-4.2-02, SRMP-4.5-02
    message.destination = destination or read_destination(path.to, f"{_HEADER}.path.to")
    if path.rev is not None and path.rev.via:  # an empty one is none: SRMP-2.2.4.4-04
        message.response = read_response(path.rev.via, f"{_HEADER}.path.rev.via")  # SRMP-3.1.5.1.1-14 and -15


def _label(text: str) -> str:
    """Return a label that can be sent again: a longer one is truncated, between two characters."""
    return text.encode("utf-16-le")[: 2 * LABEL_MAX].decode("utf-16-le", "ignore")  # SRMP-2.2.4.1-07


def _read_times(envelope: Envelope, message: Message) -> None:
    properties, msmq = envelope.properties, envelope.Msmq
    reach_queue = reach_limit(envelope)
    if properties.sentAt is not None:
        # SRMP-3.1.5.1.1-17, SRMP-4.1-02, SRMP-4.2-02, SRMP-4.3-05, SRMP-4.5-02
        message.sent_time = message_time_of(properties.sentAt, f"{_HEADER}.properties.sentAt")
    else:
        # SRMP-2.2.5.1.2-04: the limit counts from the arrival. A limit that is over must stay so.
        message.sent_time = min(message.arrival_time, max(0, time_of(reach_queue)))
    # SRMP-3.1.5.1.1-16 and -46, SRMP-2.2.5.1.1-03, SRMP-4.1-02, SRMP-4.2-02, SRMP-4.5-02
    message.time_to_reach_queue = span_of(reach_queue, message.sent_time)
    if msmq is not None:  # beside TTrq, it is the limit that no other element has: SRMP-3.1.5.1.1-48
        message.time_to_be_received = span_of(properties.expiresAt, message.sent_time)


def _read_services(services: Content, message: Message) -> None:
    path = f"{_HEADER}.services"
    if services.durable:  # SRMP-3.1.5.1.1-18, SRMP-2.2.5.2.1-06 and SRMP-2.2.5.2.1-04
        message.delivery_guarantee = DeliveryGuarantee.RECOVERABLE
    requested = AcknowledgementsRequested.NONE
    if services.deliveryReceiptRequest is not None:
        requested |= AcknowledgementsRequested.ACK_POS_ARRIVAL  # SRMP-3.1.5.1.1-19, SRMP-2.2.5.2.2-04
    if services.commitmentReceiptRequest is not None:
        message.final_ack_required = True  # SRMP-3.1.5.1.1-21
        if services.commitmentReceiptRequest.positiveOnly:
            requested |= AcknowledgementsRequested.ACK_POS_RECEIVE  # SRMP-3.1.5.1.1-23
        if services.commitmentReceiptRequest.negativeOnly:  # SRMP-2.2.5.2.3-08
            requested |= AcknowledgementsRequested.ACK_NEG_RECEIVE  # SRMP-3.1.5.1.1-24
    message.acknowledgements_requested = requested
    for name, request in services.items():  # in the order of the document: the last one counts
        if isinstance(request, Content):
            # SRMP-3.1.5.1.1-20 and -22, SRMP-2.2.5.2.3-03
            message.administration = read_http(request.sendTo, f"{path}.{name}.sendTo")


def _read_stream(stream: Content, message: Message) -> None:
    identifier: StreamIdentifier = stream.streamId
    message.transactional_message_sequence_identifier = TxSequenceId(  # SRMP-3.1.5.1.1-25
        identifier.time_stamp, identifier.ordinal
    )
    message.transaction_sequence_number = stream.current  # SRMP-3.1.5.1.1-26
    # SRMP-3.1.5.1.1-27, SRMP-2.2.5.3.3-03
    message.transaction_previous_sequence_number = stream.previous or 0
    # The messages of 4.4 lack durable; a stream message is stored nevertheless: SRMP-3.1.5.1.6.2-01.
    message.delivery_guarantee = DeliveryGuarantee.RECOVERABLE  # SRMP-3.1.1.1.3-03
    if stream.start is not None:  # it overwrites sendTo: SRMP-2.2.5.3.4-04
        uri, path = stream.start.sendReceiptsTo, f"{_HEADER}.stream.start.sendReceiptsTo"
        message.administration = read_http(uri, path)


def _read_msmq(msmq: Content, message: Message) -> None:
    message.message_class = _MESSAGE_CLASSES.get(msmq.Class, msmq.Class)  # SRMP-3.1.5.1.1-29
    message.priority, message.body_type = msmq.Priority, msmq.BodyType  # SRMP-3.1.5.1.1-30 and -31
    message.positive_journaling_requested = msmq.Journal  # SRMP-3.1.5.1.1-32
    message.negative_journaling_requested = msmq.DeadLetter  # SRMP-3.1.5.1.1-33
    message.tracing_requested = msmq.Trace  # SRMP-3.1.5.1.1-34
    message.source_machine_identifier = msmq.SourceQmGuid  # SRMP-3.1.5.1.1-42
    _set(message, "correlation_identifier", msmq.Correlation)  # SRMP-3.1.5.1.1-35
    _set(message, "connector_type_identifier", msmq.ConnectorType)  # SRMP-3.1.5.1.1-36
    _set(message, "application_tag", msmq.App)  # SRMP-3.1.5.1.1-37
    _set(message, "hash_algorithm", msmq.HashAlgorithm)  # SRMP-3.1.5.1.1-38
    if msmq.Eod is not None:
        # SRMP-3.1.5.1.1-39
        message.first_in_transaction, message.last_in_transaction = msmq.Eod.First, msmq.Eod.Last
        _set(message, "connector_queue_manager_identifier", msmq.Eod.ConnectorId)  # SRMP-3.1.5.1.1-40
    if msmq.Provider is not None:  # SRMP-3.1.5.1.1-41
        _set(message, "authentication_provider_type", msmq.Provider.Type)
        _set(message, "authentication_provider_name", msmq.Provider.Name)
    path = f"{_HEADER}.Msmq"
    message.destinations = read_list(msmq.DestinationMqf, f"{path}.DestinationMqf")  # SRMP-3.1.5.1.1-43
    message.administrations = read_list(msmq.AdminMqf, f"{path}.AdminMqf")  # SRMP-3.1.5.1.1-44
    message.responses = read_list(msmq.ResponseMqf, f"{path}.ResponseMqf")  # SRMP-3.1.5.1.1-45


def _set(message: Message, attribute: str, value: Any) -> None:
    """Set an attribute; it keeps its default if the element is missing."""
    if value is not None:
        setattr(message, attribute, value)
