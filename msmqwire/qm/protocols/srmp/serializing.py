"""The conversion of a message of the queue manager into an SRMP envelope: [MC-MQSRM] 3.1.7.2.4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from msmqwire.errors import InvalidValue
from msmqwire.names import FormatName
from msmqwire.qm.model.enumerations import AcknowledgementsRequested
from msmqwire.qm.model.message import LABEL_MAX, NO_SEQUENCE, NULL_GUID, Message
from msmqwire.qm.protocols.srmp.queue_names import (
    MSMQ,
    write_destination,
    write_http,
    write_name,
)
from msmqwire.qm.protocols.srmp.times import date_of, limit_of
from msmqwire.srmp.envelope import Envelope
from msmqwire.srmp.identifiers import MessageIdentifier, StreamIdentifier

# The flags as plain numbers: testing a bit takes a tenth of the time.
_ARRIVAL: Final = int(AcknowledgementsRequested.ACK_POS_ARRIVAL)
_POSITIVE: Final = int(AcknowledgementsRequested.ACK_POS_RECEIVE)
_NEGATIVE: Final = int(AcknowledgementsRequested.ACK_NEG_RECEIVE)


class Serialized(NamedTuple):
    """The parts of a request, for `msmqwire.srmp.request.make_request`; None for a part that is left out."""

    envelope: Envelope
    body: bytes | None
    extension: bytes | None


def serialize(message: Message, *, queue_manager: UUID, receipts_url: str = "") -> Serialized:
    """Return the envelope of a message, its body and its extension.

    `signatures.signed` adds the Signature, which needs a key. App, HashAlgorithm and Correlation are written
    even if 0, as by Windows: without them the envelopes of 4.2 and 4.5 would not have their sizes.

    Args:
        message: a message with identifier and sent_time, and in a stream with its numbers.
        queue_manager: the sender, in streamId.
        receipts_url: the URL for stream receipts; for the first message of a stream.

    Raises InvalidValue, also from `build_envelope` for a value that does not fit into an element.
    """
    if message.privacy_level or message.encrypted:
        raise InvalidValue("an encrypted body can't be sent by SRMP; use HTTPS", path="privacy_level")
    if (
        message.signature or message.multiple_destination_signature
    ):  # SRMP-3.1.5.1.6.1-21: SRMP has no place for it
        raise InvalidValue("the signature of a packet can't be sent by SRMP", path="authentication_level")
    header: dict[str, Any] = {
        "path": _path(message),
        "properties": {
            # SRMP-3.1.7.2.4-08
            "expiresAt": limit_of(message.sent_time, message.time_to_be_received, "time_to_be_received"),
            "sentAt": date_of(message.sent_time, "sent_time"),  # SRMP-3.1.7.2.4-09, SRMP-2.2.5.1.2-02 and -03
        },
        "services": _services(message),
        # SRMP-3.1.7.2.4-15
        "stream": _stream(message, queue_manager, receipts_url) if _in_stream(message) else None,
        "Msmq": _msmq(message),  # SRMP-3.1.7.2.4-23
    }
    return Serialized(Envelope(header), message.body or None, message.extension or None)  # type: ignore[arg-type]


def _in_stream(message: Message) -> bool:
    return (message.transactional_message_sequence_identifier or NO_SEQUENCE) != NO_SEQUENCE


def _path(message: Message) -> dict[str, Any]:
    if len(message.label.encode("utf-16-le", "surrogatepass")) > 2 * LABEL_MAX:  # SRMP-2.2.4.1-07
        raise InvalidValue(f"a label has {LABEL_MAX} characters at most", path="label")
    rev = None
    if message.response is not None:  # SRMP-3.1.7.2.4-07
        rev = {"via": write_name(message.response, "response")}  # SRMP-3.1.7.2.4-07, SRMP-2.2.4.4-06
    return {
        "action": f"{MSMQ}{message.label}",  # SRMP-3.1.7.2.4-04, SRMP-2.2.4.1-02 and SRMP-2.2.4.1-07
        "to": write_destination(message.destination, "destination"),  # SRMP-3.1.7.2.4-05, SRMP-2.2.4.2-05
        # SRMP-3.1.7.2.4-06
        "id": MessageIdentifier(message.identifier.uniquifier, message.identifier.lineage),
        "rev": rev,
    }


def _services(message: Message) -> dict[str, Any] | None:
    requested = int(message.acknowledgements_requested)
    services: dict[str, Any] = {}
    if message.recoverable or _in_stream(message):  # SRMP-3.1.7.2.4-11
        services["durable"] = True  # SRMP-3.1.7.2.4-11
    if message.administration is not None:  # without it no receipt can be asked for: there is no sendTo
        if requested & _ARRIVAL:  # SRMP-3.1.7.2.4-12
            services["deliveryReceiptRequest"] = {"sendTo": _administration(message)}  # SRMP-3.1.7.2.4-12
        # Without the request its two children have no place: SRMP-3.1.7.2.4-14.
        if message.final_ack_required or requested & (_POSITIVE | _NEGATIVE):
            services["commitmentReceiptRequest"] = {
                "sendTo": _administration(message),  # SRMP-3.1.7.2.4-13
                "positiveOnly": bool(requested & _POSITIVE),  # SRMP-3.1.7.2.4-13
                "negativeOnly": bool(requested & _NEGATIVE),  # SRMP-3.1.7.2.4-13
            }
    return services or None  # SRMP-3.1.7.2.4-10


def _administration(message: Message) -> str:
    return write_http(message.administration, "administration")


def _stream(message: Message, queue_manager: UUID, receipts_url: str) -> dict[str, Any]:
    sequence = message.transactional_message_sequence_identifier or NO_SEQUENCE
    start = None
    if message.transaction_sequence_number == 1:  # SRMP-2.2.5.3.4-05, SRMP-3.1.7.2.4-19
        if not receipts_url:
            raise InvalidValue(
                "the first message of a stream names the place for receipts", path="receipts_url"
            )
        start = {"sendReceiptsTo": receipts_url}  # SRMP-3.1.7.2.4-19
    return {
        # SRMP-3.1.7.2.4-16
        "streamId": StreamIdentifier(queue_manager, sequence.time_stamp << 32 | sequence.ordinal),
        "current": message.transaction_sequence_number,  # SRMP-3.1.7.2.4-17
        "previous": message.transaction_previous_sequence_number or None,  # SRMP-3.1.7.2.4-18
        "start": start,
    }


def _msmq(message: Message) -> dict[str, Any]:
    return {
        "Class": int(message.message_class),  # SRMP-3.1.7.2.4-24
        "Priority": message.priority,  # SRMP-3.1.7.2.4-24
        "Journal": message.positive_journaling_requested,  # SRMP-3.1.7.2.4-25
        "DeadLetter": message.negative_journaling_requested,  # SRMP-3.1.7.2.4-25
        "Correlation": message.correlation_identifier,  # SRMP-3.1.7.2.4-26
        "Trace": message.tracing_requested,  # SRMP-3.1.7.2.4-27
        "ConnectorType": _guid(message.connector_type_identifier),  # SRMP-3.1.7.2.4-27
        "App": message.application_tag,  # SRMP-3.1.7.2.4-28
        "BodyType": message.body_type,  # SRMP-3.1.7.2.4-29
        "HashAlgorithm": int(message.hash_algorithm),  # SRMP-3.1.7.2.4-29
        "Eod": _eod(message),  # SRMP-3.1.7.2.4-30
        "Provider": _provider(message),  # SRMP-3.1.7.2.4-31
        "SourceQmGuid": message.source_machine_identifier,  # SRMP-3.1.7.2.4-32
        "DestinationMqf": _names(message.destinations, "destinations"),  # SRMP-3.1.7.2.4-33
        "AdminMqf": _names(message.administrations, "administrations"),  # SRMP-3.1.7.2.4-33
        "ResponseMqf": _names(message.responses, "responses"),  # SRMP-3.1.7.2.4-33
        # SRMP-3.1.7.2.4-34
        "TTrq": limit_of(message.sent_time, message.time_to_reach_queue, "time_to_reach_queue"),
    }


def _names(names: Sequence[FormatName], path: str) -> tuple[str, ...]:
    return tuple([write_name(name, path) for name in names]) if names else ()


def _eod(message: Message) -> dict[str, Any] | None:
    eod = {
        "First": message.first_in_transaction,  # SRMP-3.1.7.2.4-30
        "Last": message.last_in_transaction,  # SRMP-3.1.7.2.4-30
        "ConnectorId": _guid(message.connector_queue_manager_identifier),  # SRMP-3.1.7.2.4-30
    }
    return eod if any(eod.values()) else None


def _provider(message: Message) -> dict[str, Any] | None:
    provider = {
        "Type": message.authentication_provider_type or None,  # SRMP-3.1.7.2.4-31
        "Name": message.authentication_provider_name or None,  # SRMP-3.1.7.2.4-31
    }
    return provider if any(provider.values()) else None


def _guid(value: UUID) -> UUID | None:
    return None if value == NULL_GUID else value
