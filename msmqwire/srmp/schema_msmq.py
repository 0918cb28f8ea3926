"""The Msmq element, the attributes of a message that only MSMQ has: [MC-MQSRM] 2.2.6."""

from __future__ import annotations

from typing import Final

from msmqwire.srmp.elements import Base64, Date, Flag, Group, Guid, Names, Number, Text
from msmqwire.srmp.schema_names import MSMQ

MSMQ_GROUP: Final = Group(
    name="Msmq",
    namespace=MSMQ,
    section="2.2.6",
    meaning="The attributes of a message that only MSMQ has. Without it, they have their defaults.",
    req=("SRMP-2.2.6-01", "SRMP-2.2.6-02", "SRMP-2.2.6-03", "SRMP-2.2.3-04"),
    order_req="SRMP-2.2.6-04",
    children=(
        Number(
            name="Class",
            section="2.2.6.1",
            meaning="Class of the message.",
            req=("SRMP-2.2.6.1-01", "SRMP-2.2.6-05"),
            least=1,
            maximum=0xFFFF,
            attribute="message_class",
        ),
        Number(
            name="Priority",
            section="2.2.6.2",
            meaning="0 to 7.",
            req=("SRMP-2.2.6.2-01", "SRMP-2.2.6.2-02", "SRMP-2.2.6-05"),
            least=1,
            maximum=7,
            attribute="priority",
        ),
        Flag(
            name="Journal",
            section="2.2.6.3",
            meaning="The sender keeps a copy of delivered messages.",
            req=("SRMP-2.2.6.3-01",),
            attribute="positive_journaling_requested = True",
        ),
        Flag(
            name="DeadLetter",
            section="2.2.6.4",
            meaning="The sender keeps undelivered messages.",
            req=("SRMP-2.2.6.4-01",),
            attribute="negative_journaling_requested = True",
        ),
        Base64(
            name="Correlation",
            section="2.2.6.5",
            meaning="Identifier of the message that this one is about: GUID and number, 20 bytes.",
            req=("SRMP-2.2.6.5-01", "SRMP-2.2.6.5-02"),
            length=20,
            attribute="correlation_identifier",
        ),
        Flag(
            name="Trace",
            section="2.2.6.6",
            meaning="Reports of its route are wanted.",
            req=("SRMP-2.2.6.6-01",),
            attribute="tracing_requested = True",
        ),
        Guid(
            name="ConnectorType",
            section="2.2.6.7",
            meaning="The foreign system that it goes to or comes from.",
            req=("SRMP-2.2.6.7-01",),
            attribute="connector_type_identifier",
        ),
        Number(
            name="App",
            section="2.2.6.8",
            meaning="A number of the application.",
            req=("SRMP-2.2.6.8-01",),
            attribute="application_tag",
        ),
        Number(
            name="BodyType",
            section="2.2.6.9",
            meaning="Type of the body.",
            req=("SRMP-2.2.6.9-01", "SRMP-2.2.6-05"),
            least=1,
            attribute="body_type",
        ),
        Number(
            name="HashAlgorithm",
            section="2.2.6.10",
            meaning="Hash algorithm of signatures.",
            req=("SRMP-2.2.6.10-01",),
            attribute="hash_algorithm",
        ),
        Group(
            name="Eod",
            section="2.2.6.11",
            meaning="The place of the message in its transaction.",
            req=("SRMP-2.2.6.11-01",),
            order_req="SRMP-3.1.7.2.4-30",
            children=(
                Flag(
                    name="First",
                    section="2.2.6.11",
                    meaning="It is the first one.",
                    req=("SRMP-2.2.6.11-02",),
                    attribute="first_in_transaction = True",
                ),
                Flag(
                    name="Last",
                    section="2.2.6.11",
                    meaning="It is the last one.",
                    req=("SRMP-2.2.6.11-03",),
                    attribute="last_in_transaction = True",
                ),
                Guid(
                    name="ConnectorId",
                    section="2.2.6.11",
                    meaning="Queue manager of the connector.",
                    req=("SRMP-2.2.6.11-04",),
                    attribute="connector_queue_manager_identifier",
                ),
            ),
        ),
        Group(
            name="Provider",
            section="2.2.6.12",
            meaning="The cryptographic service provider of the signature.",
            req=("SRMP-2.2.6.12-01",),
            order_req="SRMP-3.1.7.2.4-31",
            children=(
                # Both MUST be there, yet 3.1.7.2.4 writes only the one that the message has.
                Number(
                    name="Type",
                    section="2.2.6.12",
                    meaning="Type of the provider.",
                    req=("SRMP-2.2.6.12-02",),
                    lenient="SRMP-2.2.6.12-02",
                    attribute="authentication_provider_type",
                ),
                Text(
                    name="Name",
                    section="2.2.6.12",
                    meaning="Name of the provider.",
                    req=("SRMP-2.2.6.12-03",),
                    lenient="SRMP-2.2.6.12-03",
                    attribute="authentication_provider_name",
                ),
            ),
        ),
        Guid(
            name="SourceQmGuid",
            section="2.2.6.13",
            meaning="The sending queue manager. It counts if it differs from that of id.",
            req=("SRMP-2.2.6.13-01", "SRMP-2.2.6-05"),
            least=1,
            attribute="source_machine_identifier",
        ),
        Names(
            name="DestinationMqf",
            section="2.2.6.14",
            meaning="All destinations.",
            req=("SRMP-2.2.6.14-01", "SRMP-2.2.6.14-02"),
            attribute="destinations",
        ),
        Names(
            name="AdminMqf",
            section="2.2.6.15",
            meaning="All administration queues.",
            req=("SRMP-2.2.6.15-01", "SRMP-2.2.6.15-02"),
            attribute="administrations",
        ),
        Names(
            name="ResponseMqf",
            section="2.2.6.16",
            meaning="All response queues.",
            req=("SRMP-2.2.6.16-01", "SRMP-2.2.6.16-02"),
            attribute="responses",
        ),
        Date(
            name="TTrq",
            section="2.2.6.17",
            meaning="When it expires.",
            req=("SRMP-2.2.6.17-01", "SRMP-2.2.6-05"),
            least=1,
            attribute="time_to_reach_queue",
        ),
    ),
)
