"""DebugHeader, the queue for trace messages: [MS-MQMQ] 2.2.20.8."""

from typing import Final

from msmqwire.schema import Header, bit, flags, guid, maybe, reserved, uint

DEBUG_HEADER: Final = Header(
    "DebugHeader",
    "[MS-MQMQ] 2.2.20.8",
    (
        flags(
            16,
            "Flags",
            bit("QT", 0, "0 no queue, 1 a public queue.", width=2, req="MQMQ-2.2.20.8-02"),
            *reserved("X2 X3 X4 X5 X6 X7 X8 X9 X10 X11 X12 X13 X14 X15", 2, req="MQMQ-2.2.20.8-03"),
            req="MQMQ-2.2.20.8-01",
        ),
        uint(16, "Reserved", "0; ignored.", req="MQMQ-2.2.20.8-04"),
        maybe(
            "Flags.QT",
            guid("QueueIdentifier", "GUID of the public queue for traces."),
            equals=1,
            req="MQMQ-2.2.20.8-05",
        ),
    ),
    "Where trace messages go.",
)
