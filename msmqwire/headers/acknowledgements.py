"""The bodies of order and final acknowledgements: [MS-MQQB] 2.2.4.1 and 2.2.5.1."""

from typing import Final

from msmqwire.headers.transaction import TX_SEQUENCE_ID
from msmqwire.schema import Header, guid, raw, sub, uint

ACK_BODY_SIZE: Final = 36
ACK_LABEL: Final = "QM Ordering Ack"
ORDER_QUEUE_NAME: Final = "order_queue$"
ORDER_QUEUE_IDENTIFIER: Final = 4

ORDER_ACK_BODY: Final = Header(
    "OrderAckBody",
    "[MS-MQQB] 2.2.4.1",
    (
        sub(TX_SEQUENCE_ID, meaning="Sequence of the message acknowledged.", req="MQQB-2.2.4.1-02"),
        uint(32, "TxSequenceNumber", "Number of the message acknowledged.", default=1, req="MQQB-2.2.4.1-03"),
        # MQQB-2.2.4.1-01
        uint(32, "TxPreviousSequenceNumber", "TxSequenceNumber - 1.", req="MQQB-2.2.4.1-04"),
        raw("Reserved", 20, "0; ignored.", req="MQQB-2.2.4.1-05"),  # MQQB-2.2.4.1-01
    ),
    "Which transactional message arrived.",
    size=ACK_BODY_SIZE,
    req=("MQQB-2.2.4.1-01",),
)

FINAL_ACK_BODY: Final = Header(
    "FinalAckBody",
    "[MS-MQQB] 2.2.5.1",
    (
        sub(TX_SEQUENCE_ID, meaning="Sequence of the message acknowledged.", req="MQQB-2.2.5.1-02"),
        uint(32, "TxSequenceNumber", "Number of the message acknowledged.", default=1, req="MQQB-2.2.5.1-03"),
        uint(
            32, "TxPreviousSequenceNumber", "Number of the message received before it.", req="MQQB-2.2.5.1-04"
        ),
        guid("SourceGUID", "Queue manager that sent the message.", req="MQQB-2.2.5.1-05"),  # MQQB-2.2.5.1-01
        # MQQB-2.2.5.1-01
        uint(32, "MessageID", "Number of the message at that queue manager.", req="MQQB-2.2.5.1-06"),
    ),
    "The outcome of a transactional message.",
    size=ACK_BODY_SIZE,
    req=("MQQB-2.2.5.1-01",),
)
