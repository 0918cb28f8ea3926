"""SessionHeader, the acknowledgement of the messages that came over a session: [MS-MQMQ] 2.2.20.4."""

from typing import Final

from msmqwire.schema import Header, uint

SESSION_HEADER_SIZE: Final = 16  # MQMQ-2.2.20.4-01
WINDOW_SIZE_DEFAULT: Final = 64

SESSION_HEADER: Final = Header(  # MQQB-4.1.8-02
    "SessionHeader",
    "[MS-MQMQ] 2.2.20.4",
    (
        # MQMQ-2.2.20.4-20
        # MQQB-2.2.6-03
        uint(16, "AckSequenceNumber", "Messages received on this session.", req="MQMQ-2.2.20.4-06"),
        uint(
            16,
            "RecoverableMsgAckSeqNumber",
            "Lowest recoverable message that is stored and not yet acknowledged, 0 for none.",
            req=("MQMQ-2.2.20.4-07", "MQMQ-2.2.20.4-08"),
        ),
        uint(  # MQMQ-2.2.20.4-20
            32,
            "RecoverableMsgAckFlags",
            "Bit k: recoverable message RecoverableMsgAckSeqNumber + k is stored.",
            req="MQMQ-2.2.20.4-09",
        ),
        # MQQB-2.2.6-03
        uint(16, "UserMsgSequenceNumber", "Messages sent on this session.", req="MQMQ-2.2.20.4-10"),
        uint(
            16,
            "RecoverableMsgSeqNumber",
            "Recoverable messages sent on this session.",
            req="MQMQ-2.2.20.4-13",
        ),
        uint(  # MQMQ-2.2.20.4-20
            16,
            "WindowSize",
            "Messages that may be unacknowledged.",
            default=WINDOW_SIZE_DEFAULT,
            req="MQMQ-2.2.20.4-14",
        ),
        uint(16, "Reserved", "Anything; ignored.", req="MQMQ-2.2.20.4-18"),
    ),
    "Session acknowledgement, alone or at the end of a message.",
    size=SESSION_HEADER_SIZE,
    req=("MQMQ-2.2.20.4-01",),
)
