"""The elements of an SRMP envelope, as [MC-MQSRM] 2.2 has them, in the order of 3.1.7.2.4."""

from __future__ import annotations

from typing import Final

from msmqwire.srmp.elements import (
    Base64,
    Blank,
    Date,
    Flag,
    Group,
    Identifier,
    Ignored,
    Number,
    StreamId,
    Text,
    Uri,
)
from msmqwire.srmp.schema_msmq import MSMQ_GROUP
from msmqwire.srmp.schema_names import HTTP, ROUTING, SIGNATURE, SOAP, SRMP

PATH: Final = Group(
    name="path",
    namespace=ROUTING,
    section="2.2.4",
    meaning="Where the message goes, its identifier, label and response queue.",
    req=("SRMP-2.2.4-01", "SRMP-2.2.4-02", "SRMP-2.2.3-02"),
    least=1,
    must_understand="SRMP-2.2.4-04",
    order_req="SRMP-2.2.4-05",
    children=(
        Text(
            name="action",
            section="2.2.4.1",
            meaning="``MSMQ:`` and the label. Without ``MSMQ:`` there is no label.",
            req=("SRMP-2.2.4.1-01", "SRMP-2.2.4.1-02", "SRMP-2.2.4.1-03"),
            least=1,
            attribute="label",
        ),
        Uri(
            name="to",
            section="2.2.4.2",
            meaning="URI of the destination queue. It selects HTTP, HTTPS or PGM.",
            req=("SRMP-2.2.4.2-01", "SRMP-2.2.4.2-06"),
            least=1,
            starts=(*HTTP, "MSMQ:MULTICAST="),  # SRMP-2.2.4.2-02, -03, -04
            attribute="destination",
        ),
        Identifier(
            name="id",
            section="2.2.4.3",
            meaning="Identifier of the message. Without Msmq it is ignored, and may hold anything.",
            req=("SRMP-2.2.4.3-01", "SRMP-2.2.4.3-02", "SRMP-2.2.4.3-06"),
            least=1,
            any_text=True,
            attribute="identifier",
        ),
        Group(
            name="rev",
            section="2.2.4.4",
            meaning="The way of responses.",
            req=("SRMP-2.2.4.4-01",),
            void="via",  # SRMP-2.2.4.4-04
            void_req="SRMP-2.2.4.4-05",
            children=(
                Uri(
                    name="via",
                    section="2.2.4.4",
                    meaning="The response queue: a URI, or ``MSMQ:`` and a format name. Empty is none.",
                    req=("SRMP-2.2.4.4-02", "SRMP-2.2.4.4-03"),
                    least=1,
                    attribute="response",
                ),
            ),
        ),
        *(
            Ignored(
                name=name,
                section="2.2.4.5",
                meaning="Of WS-Routing. Ignored, and never written anew.",
                req=("SRMP-2.2.4.5-01",),
            )
            for name in ("fwd", "from", "relatesTo", "fault")  # SRMP-2.2.4.5-01
        ),
    ),
)

PROPERTIES: Final = Group(
    name="properties",
    namespace=SRMP,
    section="2.2.5.1",
    meaning="Times of the message.",
    req=("SRMP-2.2.5.1-01",),
    least=1,
    must_understand="SRMP-2.2.5.1-02",
    order_req="SRMP-3.1.7.2.4-08",
    children=(
        Date(
            name="expiresAt",
            section="2.2.5.1.1",
            meaning="The limit of TimeToBeReceived; without Msmq, that of TimeToReachQueue.",
            req=("SRMP-2.2.5.1.1-01",),
            least=1,
            attribute="time_to_be_received",
        ),
        Date(
            name="sentAt",
            section="2.2.5.1.2",
            meaning="When it was sent for the first time.",
            req=("SRMP-2.2.5.1.2-01",),
            attribute="sent_time",
        ),
        Ignored(
            name="inReplyTo",
            section="2.2.5.1.3",
            meaning="Ignored, and never written anew.",
            req=("SRMP-2.2.5.1.3-01",),
        ),
    ),
)

SERVICES: Final = Group(
    name="services",
    namespace=SRMP,
    section="2.2.5.2",
    meaning="Requests of the sender.",
    req=("SRMP-2.2.5.2-01",),
    must_understand="SRMP-2.2.5.2-02",
    order_req="SRMP-3.1.7.2.4-11",
    children=(
        Flag(
            name="durable",
            section="2.2.5.2.1",
            meaning="Stored on disk before it is sent, and when it is received.",
            req=("SRMP-2.2.5.2.1-01",),
            attribute="delivery_guarantee = Recoverable",
        ),
        Group(
            name="deliveryReceiptRequest",
            section="2.2.5.2.2",
            meaning="A receipt is wanted when the message is in its queue.",
            req=("SRMP-2.2.5.2.2-01",),
            attribute="acknowledgements_requested += AckPosArrival",
            children=(
                Uri(
                    name="sendTo",
                    section="2.2.5.2.2",
                    meaning="URI of the administration queue.",
                    req=("SRMP-2.2.5.2.2-02", "SRMP-2.2.5.2.2-03"),
                    least=1,
                    starts=HTTP,
                    attribute="administration",
                ),
            ),
        ),
        Group(
            name="commitmentReceiptRequest",
            section="2.2.5.2.3",
            meaning="A receipt is wanted when the message leaves its queue.",
            req=("SRMP-2.2.5.2.3-01",),
            attribute="final_ack_required = True",
            order_req="SRMP-3.1.7.2.4-13",
            children=(
                Uri(
                    name="sendTo",
                    section="2.2.5.2.3",
                    meaning="URI of the administration queue. Of two that differ the last one counts.",
                    req=("SRMP-2.2.5.2.3-02", "SRMP-2.2.5.2.3-04"),
                    least=1,
                    starts=HTTP,
                    attribute="administration",
                ),
                Flag(
                    name="positiveOnly",
                    section="2.2.5.2.3",
                    meaning="A receipt is wanted if an application received the message.",
                    req=("SRMP-2.2.5.2.3-05",),
                    attribute="acknowledgements_requested += AckPosReceive",
                ),
                Flag(
                    name="negativeOnly",
                    section="2.2.5.2.3",
                    meaning="A receipt is wanted if none did.",
                    req=("SRMP-2.2.5.2.3-06",),
                    attribute="acknowledgements_requested += AckNegReceive",
                ),
            ),
        ),
    ),
)

STREAM: Final = Group(
    name="stream",
    namespace=SRMP,
    section="2.2.5.3",
    meaning="The place of the message in a transactional sequence.",
    req=("SRMP-2.2.5.3-01",),
    must_understand="SRMP-2.2.5.3-02",
    order_req="SRMP-3.1.7.2.4-15",
    also={"Stream": "SRMP-2.2.5.3-06"},
    children=(
        StreamId(
            name="streamId",
            section="2.2.5.3.1",
            meaning="The sending queue manager and the sequence: TimeStamp << 32 | Ordinal.",
            req=("SRMP-2.2.5.3.1-01", "SRMP-2.2.5.3.1-02", "SRMP-2.2.5.3.1-05"),
            least=1,
            attribute="transactional_message_sequence_identifier",
        ),
        Number(
            name="current",
            section="2.2.5.3.2",
            meaning="Number of the message in the sequence, from 1.",
            req=("SRMP-2.2.5.3.2-01", "SRMP-2.2.5.3.2-03"),
            least=1,
            attribute="transaction_sequence_number",
        ),
        Number(
            name="previous",
            section="2.2.5.3.3",
            meaning="Number of the message before it; left out if it is 0.",
            req=("SRMP-2.2.5.3.3-01",),
            attribute="transaction_previous_sequence_number",
        ),
        Group(
            name="start",
            section="2.2.5.3.4",
            meaning="Stands in the first message of a sequence.",
            req=("SRMP-2.2.5.3.4-01",),
            children=(
                Uri(
                    name="sendReceiptsTo",
                    section="2.2.5.3.4",
                    meaning="URI of the queue that stream receipts go to.",
                    req=("SRMP-2.2.5.3.4-02", "SRMP-2.2.5.3.4-03"),
                    least=1,
                    starts=HTTP,
                    attribute="administration",
                ),
                Ignored(
                    name="expiresAt",
                    section="4.4",
                    meaning="In the example only.",
                    req=("SRMP-2.2.5.3-06",),
                    departure=True,
                ),
            ),
        ),
        *(
            Ignored(
                name=name,
                section="4.4",
                meaning="In the example only.",
                req=("SRMP-2.2.5.3-06",),
                departure=True,
            )
            for name in ("streamReceiptRequest", "end")  # SRMP-2.2.5.3-06
        ),
    ),
)

RECEIPTS: Final = (
    Group(
        name="streamReceipt",
        namespace=SRMP,
        section="2.2.5.6",
        meaning="Messages of a sequence were accepted.",
        req=("SRMP-2.2.5.6-01",),
        order_req="SRMP-2.2.5.6-02",
        children=(
            StreamId(
                name="streamId",
                section="2.2.5.6",
                meaning="The sequence.",
                req=("SRMP-2.2.5.6-02",),
                least=1,
            ),
            Number(
                name="lastOrdinal",
                section="2.2.5.6",
                meaning="Number of the last message; those before it are accepted too.",
                req=("SRMP-2.2.5.6-03",),
                least=1,
            ),
        ),
    ),
    Group(
        name="deliveryReceipt",
        namespace=SRMP,
        section="2.2.5.4",
        meaning="A message was put into its queue.",
        req=("SRMP-2.2.5.4-01",),
        order_req="SRMP-2.2.5.4-03",
        children=(
            Date(
                name="receivedAt",
                section="2.2.5.4",
                meaning="When it was.",
                req=("SRMP-2.2.5.4-03",),
                least=1,
            ),
            Identifier(
                name="id",
                section="2.2.5.4",
                meaning="The message.",
                req=("SRMP-2.2.5.4-04",),
                least=1,
            ),
        ),
    ),
    Group(
        name="commitmentReceipt",
        namespace=SRMP,
        section="2.2.5.5",
        meaning="A message has left its queue.",
        req=("SRMP-2.2.5.5-01",),
        order_req="SRMP-2.2.5.5-03",
        children=(
            Date(
                name="decidedAt",
                section="2.2.5.5",
                meaning="When it did.",
                req=("SRMP-2.2.5.5-03",),
                least=1,
            ),
            Text(
                name="decision",
                section="2.2.5.5",
                meaning="Whether an application received it.",
                req=("SRMP-2.2.5.5-04",),
                least=1,
                strip=True,
                one_of=("negative", "positive"),
            ),
            Identifier(
                name="id",
                section="2.2.5.5",
                meaning="The message.",
                req=("SRMP-2.2.5.5-05",),
                least=1,
            ),
        ),
    ),
)

SIGNATURE_GROUP: Final = Group(
    name="Signature",
    namespace=SIGNATURE,
    section="2.2.7",
    meaning="An XML signature, of whose namespace SRMP has an early form.",
    req=("SRMP-2.2.7-01", "SRMP-2.2.7-02", "SRMP-3.1.7.2.4-37"),
    order_req="SRMP-3.1.7.2.4-44",
    attribute="authentication_level = XmlSig",
    children=(
        Group(
            name="SignedInfo",  # SRMP-3.1.5.1.6.1-03
            section="2.2.7.1",
            meaning="The signed parts.",
            req=("SRMP-2.2.7.1-01",),
            least=1,
            order_req="SRMP-3.1.7.2.4-38",
            children=(
                Group(
                    name="SignatureMethod",  # SRMP-3.1.5.1.6.1-04
                    section="2.2.7.1.1",
                    meaning="The algorithm of the signature.",
                    req=("SRMP-2.2.7.1.1-01",),
                    least=1,
                    attributes=("Algorithm",),
                ),
                Group(
                    name="Reference",
                    section="2.2.7.1.2",
                    meaning="A part of the message, ``cid:body@GUID`` or ``cid:extension@GUID``.",
                    req=("SRMP-2.2.7.1.2-01",),
                    most=2,  # SRMP-3.1.5.1.6.1-07
                    attributes=("URI",),
                    order_req="SRMP-3.1.7.2.4-39",
                    children=(
                        Group(
                            name="DigestMethod",  # SRMP-3.1.5.1.6.1-12
                            section="2.2.7.1.2.1",
                            meaning="The hash algorithm.",
                            req=("SRMP-2.2.7.1.2.1-01",),
                            least=1,
                            attributes=("Algorithm",),
                        ),
                        Base64(
                            name="DigestValue",  # SRMP-3.1.5.1.6.1-14
                            section="2.2.7.1.2.2",
                            meaning="The hash of the part.",
                            req=("SRMP-2.2.7.1.2.2-01",),
                            least=1,
                        ),
                    ),
                ),
            ),
        ),
        Base64(
            name="SignatureValue",  # SRMP-3.1.5.1.6.1-19
            section="2.2.7.2",
            meaning="The signature of SignedInfo.",
            req=("SRMP-2.2.7.2-01",),
            least=1,
        ),
    ),
)

HEADER: Final = Group(
    name="Header",
    namespace=SOAP,
    section="2.2.2",
    meaning="The headers of SRMP.",
    req=("SRMP-2.2.2-02", "SRMP-2.2.2-06"),
    least=1,
    order_req="SRMP-2.2.5-03",
    refuses="SRMP-2.2.5-04",
    children=(PATH, PROPERTIES, SERVICES, STREAM, *RECEIPTS, MSMQ_GROUP, SIGNATURE_GROUP),  # SRMP-2.2.5-01
)

ENVELOPE: Final = Group(
    name="Envelope",
    namespace=SOAP,
    section="2.2.2",
    meaning="A SOAP 1.1 message.",
    req=("SRMP-2.2.2-01", "SRMP-2.2.2-06", "SRMP-2.2.3-01"),
    least=1,
    in_order=True,
    children=(
        HEADER,
        Blank(
            name="Body",
            section="2.2.2",
            meaning="Written empty, ignored when read: the body of the message is elsewhere.",
            req=("SRMP-2.2.2-03", "SRMP-2.2.2-04", "SRMP-2.2.2-05"),
            least=1,
        ),
    ),
)
