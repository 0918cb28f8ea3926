"""The mistakes: for each its requirements, by the ids of docs/conformance, and the fault of the peer."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Mistake(NamedTuple):
    """Requirements that are broken, and the sentence that says how."""

    requirements: tuple[str, ...]
    sentence: str


_FRAMING = {
    "loses_second": Mistake(
        ("MQMQ-2.2.20-01", "MQQB-3.1.5.8.2-02"), "Of two packets in one segment it loses the second."
    ),
    "half_packet_blocks": Mistake(
        ("MQQB-3.1.1.3.1-01",), "While half a packet has come over one session, no other is served."
    ),
    "any_packet_size": Mistake(
        ("MQMQ-2.2.19.1-21", "MQQB-3.1.5.1.3-01"),
        "It waits for a packet of more than 4 MiB, and sets memory aside for it.",
    ),
    "small_size_hangs": Mistake(
        ("MQMQ-2.2.19.1-19", "MQQB-3.1.5.1.3-01"), "A PacketSize below 16 keeps it busy for ever."
    ),
    "crashes_on_odd_size": Mistake(
        ("MQMQ-2.2.19.1-19", "MQQB-3.1.5.1.3-01"), "An odd PacketSize ends the process."
    ),
    "any_version": Mistake(("MQQB-3.1.5.1.2-01", "MQQB-3.1.5.1.2-02"), "VersionNumber is not looked at."),
    "any_signature": Mistake(("MQQB-3.1.5.1.2-01", "MQQB-3.1.5.1.2-02"), "Signature is not looked at."),
    "session_header_in_size": Mistake(
        ("MQMQ-2.2.19.1-20",), "PacketSize of a message is taken to count its SessionHeader."
    ),
    "quadratic_reader": Mistake(
        ("MQQB-3.1.1.3.1-01", "MQMQ-2.2.19.1-21"),
        "With each byte all bytes held are summed up: 20 KiB keep it busy for seconds.",
    ),
    "leaks_malformed": Mistake(("MQQB-3.1.5.1.3-01",), "A malformed packet and 64 KiB are never given back."),
    "closes_late": Mistake(
        ("MQQB-3.1.5.1.3-01",), "A session that a malformed packet ends is closed half a minute later."
    ),
    "sessions_stay": Mistake(
        ("MQQB-3.1.5.9-03", "MQQB-3.1.5.10-01"),
        "A closed session keeps its place; after 32 of them nobody is let in.",
    ),
    "closes_server_on_reset": Mistake(("MQQB-3.1.5.9-03",), "A RST on one connection ends the process."),
    "reserved_must_be_zero": Mistake(
        ("MQMQ-2.2.19.1-03",), "A packet with BaseHeader.Reserved other than 0 ends the session."
    ),
    "refuses_reserved_flags": Mistake(
        ("MQMQ-2.2.19.1-17",), "A reserved bit of BaseHeader.Flags ends the session."
    ),
    "dies_at_128": Mistake(("MQMQ-2.2.20.4-02",), "The 128th packet of a session ends the process."),
    "unknown_internal_packet": Mistake(("MQQB-2.2.1-05",), "An internal packet of unknown type is skipped."),
    "answers_the_newest": Mistake(
        ("MQQB-3.1.1.3.1-01", "MQQB-3.1.1.6.1-01"), "Whatever it sends goes over the newest session."
    ),
}

_HANDSHAKE = {
    "before_handshake": Mistake(
        ("MQQB-3.1.5.8-01", "MQQB-2.1.1-01"), "It takes messages before the handshake."
    ),
    "establishes_again": Mistake(
        ("MQQB-3.1.5.3-01",), "EstablishConnection is answered in an open session as well."
    ),
    "any_server_guid": Mistake(
        ("MQQB-3.1.5.3.1-09", "MQQB-2.2.1-08"), "A ServerGuid of somebody else is accepted."
    ),
    "refuses_null_guid": Mistake(
        ("MQQB-3.1.5.3.1-08",), "A null ServerGuid, that of a direct name, is refused."
    ),
    "client_guid_lost": Mistake(
        ("MQQB-3.1.5.3.1-04", "MQQB-2.2.3.1-02"), "ClientGuid of its response is null."
    ),
    "echoes_server_guid": Mistake(
        ("MQQB-3.1.5.3.1-05", "MQQB-2.2.3.1-05"),
        "ServerGuid of its response is that of the request, null too.",
    ),
    "own_time_stamp": Mistake(
        ("MQQB-3.1.5.3.1-06", "MQQB-2.2.3.1-07"), "TimeStamp of its response is its own."
    ),
    "se_lost": Mistake(("MQQB-3.1.5.3.1-07", "MQQB-2.2.3.1-11"), "SE of its response is 0."),
    "padding_of_zeros": Mistake(("MQQB-2.2.3.1-18",), "Padding of its response is zeros, not 0x5A."),
    "size_without_internal_header": Mistake(
        ("MQMQ-2.2.19.1-19", "MQQB-2.2.3-01"), "PacketSize of its response is 568, not 572."
    ),
    "own_timeouts": Mistake(("MQQB-3.1.5.4.1-02",), "Its ConnectionParameters has timeouts of its own."),
    "echoes_window": Mistake(
        ("MQQB-3.1.5.4.1-02", "MQMQ-2.2.20.4-14"),
        "It takes the WindowSize of the initiator for its own, 0 too.",
    ),
    "any_timeouts": Mistake(("MQQB-2.2.2.1-02", "MQQB-2.2.2.1-04"), "Timeouts out of range are accepted."),
    "ack_timeout_zero_crashes": Mistake(
        ("MQQB-2.2.2.1-04", "MQQB-3.1.5.1.3-01"), "An AckTimeout of 0 ends the process."
    ),
}

_MESSAGES = {
    "trusts_data_length": Mistake(
        ("MQRR-2.2.5.1.2.1-04", "MQQB-3.1.5.1.3-01"),
        "DataLength of SRMPEnvelopeHeader is trusted: a little too much is read, with a page more it dies.",
    ),
    "crashes_without_null": Mistake(
        ("MQMQ-2.2.18.1.5.2-05", "MQQB-3.1.5.1.3-01"),
        "A direct name whose last character is not null ends the process.",
    ),
    "crashes_on_a_long_name": Mistake(
        ("MQMQ-2.2.18.1.5.2-01",), "A direct name of more than 255 characters ends the process."
    ),
    "illegal_queue_form": Mistake(
        ("MQMQ-2.2.19.2-22", "MQMQ-2.2.19.2-24"), "An illegal DQ or AQ is taken as no queue."
    ),
    "label_overflows": Mistake(
        ("MQMQ-2.2.19.3-07", "MQQB-3.1.5.1.3-01"), "A LabelLength above 250 ends the process."
    ),
    "body_as_it_comes": Mistake(
        ("MQMQ-2.2.19.3-15", "MQQB-3.1.5.1.3-01"),
        "A MessageSize that leads out of the packet is taken with the bytes that are there.",
    ),
    "body_a_byte_beyond": Mistake(
        ("MQMQ-2.2.19.3-15", "MQQB-3.1.5.1.3-01"),
        "A MessageSize that leads one byte out of the packet is taken.",
    ),
    "sizes_wrap": Mistake(
        ("MQMQ-2.2.20.6-39", "MQQB-3.1.5.1.3-01"),
        "Sizes in SecurityHeader are rounded up in 32 bits: 0xFFFFFFFD is 0.",
    ),
    "counts_elements": Mistake(
        ("MQMQ-2.2.20.2-08", "MQQB-3.1.5.1.3-01"),
        "An ElementCount above 1,048,576 keeps it busy for ever.",
    ),
    "sequence_number_zero": Mistake(
        ("MQMQ-2.2.20.5-13",), "A TxSequenceNumber of 0 does not end the session."
    ),
    "sequence_by_ordinal": Mistake(
        ("MQMQ-2.2.18.1.2-03", "MQQB-3.1.5.8.6-04"),
        "Of two sequences that of the greater Ordinal is the newer; OrderAcks have both halves exchanged.",
    ),
    "refuses_reserved_user_flags": Mistake(
        ("MQMQ-2.2.19.2-43",), "A reserved bit of UserHeader.Flags ends the session."
    ),
    "connector_type_forgotten": Mistake(
        ("MQMQ-2.2.19.2-35", "MQMQ-2.2.19.2-44"), "ConnectorType is taken for the next header."
    ),
    "response_queue_1_has_bytes": Mistake(
        ("MQMQ-2.2.19.2-28", "MQMQ-2.2.19.2-29"), "A ResponseQueue of RQ 1 is looked for in the packet."
    ),
    "aligns_the_body": Mistake(
        ("MQMQ-2.2.19.3-44", "MQMQ-2.2.19.3-45"),
        "ExtensionData and MessageBody are looked for at a multiple of 4 bytes behind the label.",
    ),
    "history_of_a_session": Mistake(
        ("MQQB-3.1.5.8.1-02", "MQQB-3.1.1.3-13"), "A message that comes again over another session is taken."
    ),
    "sequences_of_a_session": Mistake(
        ("MQQB-3.1.1.3.1-15", "MQQB-3.1.1.3.1-16"), "The sequences are forgotten at the end of a session."
    ),
    "takes_duplicates": Mistake(
        ("MQQB-3.1.5.8.1-02",), "A message with a known MessageID is put into the queue again."
    ),
    "takes_transactional_duplicates": Mistake(
        ("MQQB-3.1.5.8.6-05", "MQQB-3.1.1.1.1.8-02"), "A transactional message is taken twice."
    ),
    "takes_gaps": Mistake(
        ("MQQB-3.1.5.8.6-05", "MQQB-3.1.1.6.2-03"),
        "A transactional message is taken before the one it follows.",
    ),
    "takes_old_sequences": Mistake(
        ("MQQB-3.1.5.8.6-04", "MQQB-3.1.5.8.6-05"), "A message of an older sequence is taken."
    ),
    "takes_transactional": Mistake(
        ("MQQB-3.1.5.8.2-11", "MQQB-3.1.5.8.2-12"),
        "A queue that is not transactional takes transactional messages.",
    ),
    "takes_non_transactional": Mistake(("MQQB-3.1.5.8.2-13",), "A transactional queue takes other messages."),
    "swaps_transactional_classes": Mistake(
        ("MQQB-3.1.5.8.2-11", "MQQB-3.1.5.8.2-13"), "NACK_NOT_TRANSACTIONAL_Q and _MSG are exchanged."
    ),
    "wrong_class_for_missing_queue": Mistake(
        ("MQQB-3.1.5.8.2-10",), "FinalAck for a queue that is not there says NACK_NOT_TRANSACTIONAL_Q."
    ),
    "ignores_hop_count": Mistake(
        ("MQQB-3.1.5.8.2-18", "MQQB-3.1.5.8.2-19"), "RC above 29 is not reported as such."
    ),
    "ignores_time_to_reach_queue": Mistake(
        ("MQQB-3.1.5.8-04", "MQMQ-2.2.19.1-23"), "A message that has expired on its way is delivered."
    ),
    "ignores_quota": Mistake(("MQQB-3.1.5.8.8-03",), "A queue takes more than its quota."),
    "never_expires_in_queue": Mistake(
        ("MQMQ-2.2.19.2-05", "MQQB-3.1.7.2-01"), "TimeToBeReceived passes without an acknowledgement."
    ),
}

_SESSION_ACKS = {
    "window_zero": Mistake(("MQMQ-2.2.20.4-14",), "A SessionHeader with WindowSize 0 is taken."),
    "sends_window_zero": Mistake(("MQMQ-2.2.20.4-14", "MQQB-3.1.6.4-07"), "Its SessionAck has WindowSize 0."),
    "never_acknowledges": Mistake(("MQQB-3.1.6.4-01", "MQQB-3.1.5.8.7-01"), "It sends no SessionAck."),
    "ack_off_by_one": Mistake(
        ("MQQB-3.1.6.4-03", "MQMQ-2.2.20.4-06"), "AckSequenceNumber is one more than what has come."
    ),
    "flags_start_at_bit_1": Mistake(
        ("MQQB-3.1.5.8.7-06", "MQMQ-2.2.20.4-09"), "RecoverableMsgAckFlags is shifted by one."
    ),
    "no_recoverable_base": Mistake(
        ("MQQB-3.1.6.4-08", "MQMQ-2.2.20.4-07"), "RecoverableMsgAckSeqNumber is always 0."
    ),
    "flags_not_cleared": Mistake(
        ("MQQB-3.1.6.4-09",), "RecoverableMsgAckFlags keeps its bits after a SessionAck."
    ),
    "no_ack_at_32": Mistake(
        ("MQQB-3.1.5.8.7-01",), "After 32 recoverable messages the bits of further ones are lost."
    ),
    "counts_in_a_byte": Mistake(
        ("MQMQ-2.2.20.4-06", "MQMQ-2.2.20.4-19"), "After 255 messages of a session it counts from 0 again."
    ),
    "counts_survive": Mistake(
        ("MQQB-3.1.3.2-01", "MQMQ-2.2.20.4-03"),
        "A session begins with the counts that the last one ended with.",
    ),
    "duplicates_not_counted": Mistake(
        ("MQQB-3.1.5.8.1-04",),
        "A duplicate is not counted, so that the sender's next counts end the session.",
    ),
    "sent_not_counted": Mistake(
        ("MQQB-3.1.6.4-04", "MQMQ-2.2.20.4-10"), "UserMsgSequenceNumber is 0 whatever it has sent."
    ),
    "ack_without_sh": Mistake(
        ("MQQB-2.2.6-02", "MQQB-3.1.6.4-02"), "BaseHeader.Flags.SH is clear in its SessionAck."
    ),
    "ack_of_wrong_type": Mistake(("MQQB-2.2.1-04", "MQQB-2.2.6-02"), "PT of its SessionAck is 5."),
    "ignores_counts": Mistake(
        ("MQQB-3.1.5.5.5-01",), "Counts in a SessionHeader that are not its own do not end the session."
    ),
    "header_before_message": Mistake(
        ("MQQB-3.1.5.8.4-02",),
        "A SessionHeader is compared with the counts before the message it comes with.",
    ),
    "wrong_counts_lose_message": Mistake(
        ("MQMQ-2.2.20.4-11",), "A message whose SessionHeader has wrong counts is not delivered."
    ),
    "ack_of_nothing_crashes": Mistake(
        ("MQQB-3.1.5.5.1-01",), "An AckSequenceNumber above what it has sent ends the process."
    ),
}

_ACKNOWLEDGEMENTS = {
    "no_order_ack": Mistake(("MQQB-3.1.5.8.6-02", "MQQB-3.1.6.9-01"), "It sends no OrderAck."),
    "order_ack_for_accepted_only": Mistake(
        ("MQQB-3.1.5.8.6-02",), "A transactional message that comes again is not acknowledged again."
    ),
    "order_ack_of_other_sequence": Mistake(
        ("MQQB-2.2.4.1-02",), "TxSequenceID of its OrderAck is of the next sequence."
    ),
    "order_ack_previous_is_number": Mistake(
        ("MQQB-2.2.4.1-04",), "TxPreviousSequenceNumber of its OrderAck is TxSequenceNumber."
    ),
    "order_ack_label": Mistake(
        ("MQQB-2.2.4-07",), 'The label of its OrderAck is "QM ordering ack", with small letters.'
    ),
    "order_ack_with_priority": Mistake(("MQQB-2.2.4-02",), "Its OrderAck has priority 3."),
    "no_final_ack": Mistake(
        ("MQQB-3.1.5.8.2-10", "MQQB-3.1.5.8.2-12"), "A transactional message is refused without a FinalAck."
    ),
    "final_ack_without_message_id": Mistake(("MQQB-2.2.5.1-06",), "MessageID in its FinalAck is 0."),
    "final_ack_previous_is_number_less_1": Mistake(
        ("MQQB-2.2.5.1-04",), "TxPreviousSequenceNumber of its FinalAck is TxSequenceNumber - 1."
    ),
    "no_negative_acknowledgement": Mistake(
        ("MQMQ-2.2.19.3-04", "MQQB-3.1.5.8.2-13"), "A message is refused in silence."
    ),
    "no_positive_acknowledgement": Mistake(
        ("MQQB-3.1.5.8.10-01", "MQMQ-2.2.19.3-02"), "The arrival of a message is not acknowledged."
    ),
    "acknowledges_unasked": Mistake(
        ("MQMQ-2.2.19.3-02",), "The arrival of each message with an administration queue is acknowledged."
    ),
    "wrong_correlation": Mistake(
        ("MQMQ-2.2.19.3-11", "MQQB-3.1.7.15-11"), "In CorrelationID the number comes before the GUID."
    ),
    "acknowledges_by_express": Mistake(
        ("MQQB-3.1.7.15-16",), "The acknowledgement of a recoverable message is express."
    ),
    "negative_without_body": Mistake(
        ("MQQB-3.1.7.15-18",), "A negative acknowledgement does not bring the body back."
    ),
    "no_response_queue": Mistake(
        ("MQQB-3.1.7.15-15",), "An acknowledgement does not name the destination as its response queue."
    ),
}

_PINGS = {
    "wrong_cookie": Mistake(("MQQB-2.2.7-11", "MQQB-3.1.7.7-02"), "It answers a ping with the next cookie."),
    "wrong_cookie_above_2_31": Mistake(
        ("MQQB-2.2.7-11",), "Cookies of 0x80000000 and more come back without their highest bit."
    ),
    "ping_signature": Mistake(("MQQB-2.2.7-08", "MQQB-3.1.7.7-02"), "Its pings have the Signature 0x4855."),
    "answers_any_ping": Mistake(
        ("MQQB-3.1.7.7-01", "MQQB-2.2.7-09"), "It answers pings with another Signature."
    ),
    "short_ping": Mistake(("MQQB-2.2.7-01",), "Its answer ends before QMGuid."),
    "ping_echoes_guid": Mistake(
        ("MQQB-2.2.7-13", "MQQB-3.1.7.7-02"), "Its answer has the QMGuid of the request."
    ),
    "ping_without_rc": Mistake(("MQQB-2.2.7-04", "MQQB-3.1.7.7-02"), "RC of its answer is always 0."),
    "ping_always_refuses": Mistake(
        ("MQQB-2.2.7-06", "MQQB-3.1.7.7-03"), "RF of its answer is set, and sessions are accepted."
    ),
    "deaf_after_bad_ping": Mistake(
        ("MQQB-2.2.7-09", "MQQB-2.1.2-02"), "After a datagram of another size no ping is answered."
    ),
    "short_ping_crashes": Mistake(("MQQB-2.2.7-09",), "A datagram of less than 8 bytes ends the process."),
}

_HTTP = {
    "http_trusts_content_length": Mistake(
        ("SRMP-2.1.1-11", "SRMP-2.2.2-18"), "A Content-Length of 2 GiB or more ends the process."
    ),
    "http_answers_a_byte_early": Mistake(
        ("SRMP-2.1.1-11",), "A request is taken when all but the last byte of its Content-Length have come."
    ),
    "http_loses_second_request": Mistake(
        ("SRMP-2.1.1-12",), "The second request of a connection is not answered."
    ),
    "http_crashes_without_boundary": Mistake(
        ("SRMP-2.2.2-17",), "A multipart entity without boundary ends the process."
    ),
    "http_trusts_part_length": Mistake(
        ("SRMP-2.2.2-17",), "A part that goes on behind the entity is taken as far as it is there."
    ),
    "http_ok_for_malformed": Mistake(("SRMP-3.1.5.1.2-01",), "What is malformed is answered by 200."),
    "http_500_for_malformed": Mistake(
        ("SRMP-3.1.5.1.2-01", "SRMP-2.1.1-13"),
        "What is malformed is answered by 500, as if to be sent again.",
    ),
    "http_expands_entities": Mistake(
        ("SRMP-3.1.5.1.2-02", "SRMP-2.2.2-06"),
        "Entities of a document type are expanded whatever their size.",
    ),
    "http_nesting_crashes": Mistake(
        ("SRMP-3.1.5.1.2-02",), "A thousand elements inside each other end the process."
    ),
    "http_crashes_on_a_date": Mistake(("SRMP-2.2.1.2-02",), "A date that there is not ends the process."),
    "http_ok_for_unknown_queue": Mistake(
        ("SRMP-3.1.5.1.3-08",), "A message to a queue that is not there is answered by 200."
    ),
    "http_takes_duplicates": Mistake(("SRMP-3.1.5.1.11-02",), "A message is put into its queue twice."),
    "http_takes_gaps": Mistake(
        ("SRMP-2.2.5.3-05", "SRMP-3.1.5.1.6.3-04"),
        "A message of a stream is taken before the one it follows.",
    ),
    "http_no_delivery_receipt": Mistake(("SRMP-2.2.5.2.2-05",), "It sends no delivery receipts."),
    "http_receipt_of_the_next": Mistake(
        ("SRMP-2.2.5.4-04",), "A delivery receipt is about the message with the next number."
    ),
}

MISTAKES: Mapping[str, Mistake] = MappingProxyType(
    {**_FRAMING, **_HANDSHAKE, **_MESSAGES, **_SESSION_ACKS, **_ACKNOWLEDGEMENTS, **_PINGS, **_HTTP}
)
