"""SRMP, messages over HTTP and multicast: the importance of each finding and advice about it."""

from __future__ import annotations

from typing import Final

from tools.pages.findings.advice import SIGNATURE

_XML_DO: Final = (
    "Compare the envelope with the example of the element in the page on [SRMP elements](srmp.md)."
)
_ANSWERS_DO: Final = "Look at what answers there: a proxy or another web server instead of Message Queuing."

TEXTS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "SRMP-2.1.1-11",
        "The receiver finds the end of the message by Content-Length. Without a right one it waits for bytes "
        "that do not come, or refuses the request.",
        "Have the sender count all bytes after the head. A proxy that changes the encoding may leave the "
        "field out.",
    ),
    (
        "SRMP-2.1.1-12",
        "The sender goes by the status and ignores the rest: the message was accepted. Message Queuing "
        "answers without a text, so that something else may have answered, and the message never reached a "
        "queue.",
        _ANSWERS_DO,
    ),
    (
        "SRMP-2.1.3.1-15",
        "Multicast carries messages of at most 64 KiB: receivers drop this one.",
        "Have the program divide the message, or send where the data is instead of the data.",
    ),
    (
        "SRMP-2.1.2-03",
        "Receivers of a multicast know the message by the group that it came to. One that goes by the head "
        "drops it.",
        "Nothing, if the receivers take the message. In your own sender, write address and port of the group "
        "as the example in [MC-MQSRM] 4.5 has them.",
    ),
    (
        "SRMP-2.1.1-13",
        "The sender does not know by this status whether the message arrived: it sends it again, or gives it "
        "up.",
        _ANSWERS_DO,
    ),
    (
        "SRMP-2.1.1-.*",
        "Windows still accepts the request. It was not made by Windows, or a proxy has changed its head.",
        "Nothing, if you know the sender. In your own sender, write the head as the examples of [MC-MQSRM] 4"
        " have it.",
    ),
    (
        "SRMP-2.2.2-1[12]-SOURCE",
        "Nothing is wrong: receivers know the part by what stands before the GUID. Windows writes the GUID "
        "of the sending queue manager, programs write any.",
        "Nothing.",
    ),
    (
        "SRMP-2.2.2-04",
        "Receivers take the body of a message from its part. What stands in the SOAP Body is not read.",
        "Have the sender put the body into a part of its own, as in [MC-MQSRM] 4.2.",
    ),
    (
        "SRMP-2.2.2-18",
        "Windows refuses messages of more than 4 MiB.",
        "Have the program divide the message, or send where the data is instead of the data.",
    ),
    (
        "SRMP-2.2.5.2.1-02",
        "A receiver that goes by the element keeps the message in memory only, and loses it in a restart: "
        "the stream then waits for it.",
        _XML_DO,
    ),
    (
        "SRMP-3.1.7.2.4-18",
        "No message has the number 0: the first one leaves the element out. A strict receiver refuses the "
        "message.",
        _XML_DO,
    ),
    (
        "SRMP-2.2.2-08",
        "A receipt is an envelope alone. The sender of the message may not take this for a receipt, and its "
        "message counts as lost.",
        _ANSWERS_DO,
    ),
    (
        "SRMP-2.2.2-(09|1[0-5])",
        "Receivers still find the parts. The message was not made by Windows, or a proxy has changed it.",
        "Nothing, if you know the sender. In your own sender, write the parts as the example in [MC-MQSRM] "
        "4.2 has them.",
    ),
    (
        "SRMP-2.2.2-07",
        "Receivers find body and extension by the names and the order of the parts. Where these differ, a "
        "receiver takes the message without them, or refuses it.",
        "Compare the parts with the example in [MC-MQSRM] 4.2, and mend the sender.",
    ),
    (
        "SRMP-3.1.5.1.6.*|SRMP-2.2.7.*|SRMP-3.1.7.2.4-37",
        "The receiver can't verify the signature of the message, and drops it.",
        SIGNATURE,
    ),
    (
        "SRMP-3.1.7.2.1-02",
        "The receiver drops the message as expired.",
        "Check the clock of the sender and the time that its program allows for the message.",
    ),
    (
        "SRMP-2.2.5.3.*|SRMP-3.1.7.2.4-15",
        "Messages of a stream are taken once and in order by these elements. With a wrong one the receiver "
        "waits for what never comes, or drops the message.",
        _XML_DO,
    ),
    (
        "SRMP-2.2.5.2-.*|SRMP-2.2.5.2.1-01",
        "services says whether the message is recoverable and which receipts the sender wants. A receiver "
        "that can't read it refuses the message.",
        _XML_DO,
    ),
    (
        "SRMP-2.2.5.(2|4|5|6).*|SRMP-3.1.5.1.5-.*|SRMP-3.1.7.2.4-13",
        "Receipts tell the sender what became of its message. It ignores one that does not fit, or never "
        "gets one that it asked for in a wrong way, and takes the message for lost.",
        _XML_DO,
    ),
    (
        "SRMP-(2.2.4-05|2.2.5-03|2.2.6-04|3.1.7.2.4-.*)",
        "Receivers are to take elements in any order; a strict one of another maker may refuse the message.",
        "Nothing, if it is taken. In your own sender, write the elements in the order of [MC-MQSRM] "
        "3.1.7.2.4.",
    ),
    (
        "SRMP-3.1.5.1.2-.*|SRMP-2.2.2-.*",
        "The receiver can't read the message, and drops it or answers 400.",
        _XML_DO,
    ),
    (
        "SRMP-2.2-01|SRMP-2.2.3-07",
        "Windows does not write it. A receiver may ignore it or refuse the message.",
        "Nothing, if the message is taken. In your own sender, leave it out.",
    ),
    (
        "SRMP-2.2(-|.3|.4|.5|.6).*",
        "Receivers find destination, identity and properties of the message in these elements. A receiver "
        "refuses the message because of a wrong one, or takes it with a default or another meaning in its "
        "place.",
        _XML_DO,
    ),
)
