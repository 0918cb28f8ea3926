"""A message becomes the bytes of a request, and these the message that it was."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from msmqwire.constants import MessageClass
from msmqwire.names import DirectName, MulticastName, PublicName, parse_format_name
from msmqwire.qm.model.enumerations import INFINITE, AcknowledgementsRequested, DeliveryGuarantee
from msmqwire.qm.model.message import NO_SEQUENCE, Message, ObjectId, TxSequenceId
from msmqwire.qm.protocols.srmp.deserializing import deserialize, stream_of
from msmqwire.qm.protocols.srmp.serializing import serialize
from msmqwire.srmp.elements import UINT32_MAX
from msmqwire.srmp.identifiers import StreamIdentifier
from msmqwire.srmp.message import parse_message
from msmqwire.srmp.request import make_request, request_address
from msmqwire.srmp.times import NO_LIMIT
from tests.support.srmp.srmp_strategies import CHARACTERS

SENDER = UUID("32221eda-9376-46df-b6ed-783091123831")
ARRIVAL = 1_182_300_000
RECEIPTS = "http://own/MSMQ/PRIVATE$/order_queue$"
NUMBERS = st.integers(0, UINT32_MAX)
WORDS = st.text("abcXYZ0189$-_%?&=", min_size=1, max_size=20)
HTTP_NAMES = st.builds(
    DirectName,
    st.sampled_from(["HTTP", "HTTPS"]),
    st.sampled_from(["h", "host.example:8080", "[::1]", "10.0.0.1"]),
    WORDS,
    private=st.booleans(),
)
MULTICAST_NAMES = st.builds(MulticastName, st.just("234.1.1.1"), st.integers(1, 0xFFFF))
ANY_NAMES = HTTP_NAMES | MULTICAST_NAMES | st.builds(PublicName, st.uuids())
LISTS = st.lists(HTTP_NAMES, max_size=3).map(tuple)
REQUESTED = st.sampled_from(
    [
        AcknowledgementsRequested(word)
        for word in range(16)
        if not word & AcknowledgementsRequested.ACK_NEG_ARRIVAL  # SRMP has no element for it
    ]
)
ATTRIBUTES: dict[str, st.SearchStrategy[Any]] = {
    "body": st.binary(max_size=50),
    "extension": st.binary(max_size=50),
    "label": st.text(CHARACTERS, max_size=124),
    "message_class": st.sampled_from(MessageClass) | st.integers(0, 0xFFFF),
    "delivery_guarantee": st.sampled_from(DeliveryGuarantee),
    "priority": st.integers(0, 7),
    "body_type": NUMBERS,
    "application_tag": NUMBERS,
    "correlation_identifier": st.binary(min_size=20, max_size=20),
    "acknowledgements_requested": REQUESTED,
    "final_ack_required": st.booleans(),
    "positive_journaling_requested": st.booleans(),
    "negative_journaling_requested": st.booleans(),
    "tracing_requested": st.booleans(),
    "source_machine_identifier": st.uuids(),
    "destination": HTTP_NAMES | MULTICAST_NAMES,
    "administration": HTTP_NAMES,
    "response": st.none() | ANY_NAMES,
    "destinations": LISTS,
    "administrations": LISTS,
    "responses": LISTS,
    "hash_algorithm": NUMBERS,
    "authentication_provider_type": NUMBERS,
    "authentication_provider_name": st.text(CHARACTERS, max_size=20),
    "connector_type_identifier": st.uuids(),
    "connector_queue_manager_identifier": st.uuids(),
    "first_in_transaction": st.booleans(),
    "last_in_transaction": st.booleans(),
}
SEQUENCES = st.builds(TxSequenceId, NUMBERS, NUMBERS).filter(lambda sequence: sequence != NO_SEQUENCE)
TIMES = ("sent_time", "time_to_reach_queue", "time_to_be_received")
STREAM = (
    "transactional_message_sequence_identifier",
    "transaction_sequence_number",
    "transaction_previous_sequence_number",
)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """Messages of which SRMP says everything."""
    values = {name: draw(strategy) for name, strategy in ATTRIBUTES.items()}
    values["identifier"] = ObjectId(values["source_machine_identifier"], draw(NUMBERS))
    values["sent_time"] = sent = draw(st.integers(0, NO_LIMIT - 1))
    spans = st.integers(0, NO_LIMIT - 1 - sent) | st.just(INFINITE)
    values["time_to_reach_queue"], values["time_to_be_received"] = draw(spans), draw(spans)
    asked = AcknowledgementsRequested.ACK_POS_RECEIVE | AcknowledgementsRequested.ACK_NEG_RECEIVE
    values["final_ack_required"] |= bool(values["acknowledgements_requested"] & asked)
    if not (values["acknowledgements_requested"] or values["final_ack_required"]):
        values["administration"] = None  # it would not be written
    if draw(st.booleans()):
        numbers = draw(SEQUENCES), draw(st.integers(2, UINT32_MAX)), draw(NUMBERS)
        values.update(zip(STREAM, numbers, strict=True))
        values["delivery_guarantee"] = DeliveryGuarantee.RECOVERABLE
    return Message(**values)


def round_trip(message: Message) -> Message:
    envelope, body, extension = serialize(message, queue_manager=SENDER, receipts_url=RECEIPTS)
    target, host = request_address(envelope.path.to)
    request = make_request(
        envelope, target, host, boundary=18467, queue_manager=SENDER, body=body, extension=extension
    )
    return deserialize(parse_message(request.to_bytes()), ARRIVAL)


@given(messages())
def test_round_trip(message: Message) -> None:
    read = round_trip(message)
    for name in (*ATTRIBUTES, *TIMES, *STREAM, "identifier"):
        assert getattr(read, name) == getattr(message, name), name
    assert read.arrival_time == ARRIVAL


@given(messages(), SEQUENCES)
def test_first_message_of_a_stream(message: Message, sequence: TxSequenceId) -> None:
    first = message.copy(transactional_message_sequence_identifier=sequence, transaction_sequence_number=1)
    read = round_trip(first)
    assert read.transactional_message_sequence_identifier == sequence
    assert stream_of(read) == StreamIdentifier(SENDER, sequence.time_stamp << 32 | sequence.ordinal)
    assert read.administration == parse_format_name(f"DIRECT={RECEIPTS}")


@given(messages())
def test_what_was_read_is_written_alike(message: Message) -> None:
    read = round_trip(message)
    again = round_trip(read)
    assert again.soap_envelope == read.soap_envelope
