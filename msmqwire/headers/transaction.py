"""TransactionHeader, the place of a message in its transactional sequence: [MS-MQMQ] 2.2.20.5."""

from typing import Final

from msmqwire.schema import Header, bit, flags, guid, maybe, reserved, sub, uint

TX_SEQUENCE_ID: Final = Header(
    "TxSequenceID",
    "[MS-MQMQ] 2.2.18.1.2",
    (
        uint(32, "Ordinal", "Low half of the identifier.", req="MQMQ-2.2.18.1.2-01"),
        uint(32, "TimeStamp", "High half of the identifier.", req="MQMQ-2.2.18.1.2-02"),
    ),
    "A transactional sequence; compares as TimeStamp << 32 | Ordinal.",
    size=8,
    req=("MQMQ-2.2.18.1.2-03",),
)

TRANSACTION_HEADER: Final = Header(
    "TransactionHeader",
    "[MS-MQMQ] 2.2.20.5",
    (
        flags(
            32,
            "Flags",
            bit("CG", 0, "ConnectorQMGuid is there.", req="MQMQ-2.2.20.5-04"),
            bit("FA", 1, "A FinalAck is asked for.", req="MQMQ-2.2.20.5-05"),
            bit("FM", 2, "First message of the transaction.", req="MQMQ-2.2.20.5-06"),
            bit("LM", 3, "Last message of the transaction.", req="MQMQ-2.2.20.5-07"),
            bit("ID", 4, "Number of the transaction.", width=20, req="MQMQ-2.2.20.5-09"),
            *reserved("X1 X2 X3 X4 X5 X6 X7 X8", 24, req="MQMQ-2.2.20.5-11"),
            req="MQMQ-2.2.20.5-03",
        ),
        # MQMQ-2.2.20.5-01
        sub(TX_SEQUENCE_ID, meaning="The sequence the message is in.", req="MQMQ-2.2.20.5-12"),
        uint(32, "TxSequenceNumber", "Place in the sequence, from 1.", default=1, req="MQMQ-2.2.20.5-13"),
        uint(
            32,
            "PreviousTxSequenceNumber",
            "Number of the message before it, 0 for none.",
            req="MQMQ-2.2.20.5-14",
        ),
        maybe(
            "Flags.CG",  # MQMQ-2.2.20.5-01, MQMQ-2.2.20.5-04
            guid("ConnectorQMGuid", "Application-defined GUID."),  # MQMQ-2.2.20.5-01, DMPR-3.1.7.1.32-35
            req="MQMQ-2.2.20.5-15",
        ),
    ),
    "Sequence of a transactional message.",
    req=("MQMQ-2.2.20.5-01",),
)
