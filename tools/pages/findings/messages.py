"""Bodies and properties of messages: the importance of each finding and advice about it."""

from __future__ import annotations

from typing import Final

from tools.pages.findings.advice import ATTACK, SENDER

TEXTS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "MQMQ-2.2.19.3-12",
        "The queue manager does not look at BodyType; the program that receives the message chooses by it "
        "how to read the body. Types of COM, System.Messaging and WCF are known here; this is none of them.",
        "Ask which program sends it. If both ends agree on the number nothing is to be done; if not, the "
        "receiver fails with a body that it can't read.",
    ),
    (
        "MQMQ-2.2.12-06",
        "VT_VARIANT is the type of the elements of an array, each of which says its own. Alone it does not "
        "say how to read the body. The queue manager does not look at it.",
        "Have the sender use the type of the value itself, or VT_ARRAY or VT_VECTOR with VT_VARIANT.",
    ),
    (
        "MQMQ-2.2.19.2-26",
        "Acknowledgements go to the administration queue: without one none comes, though the sender asked "
        "for them, as Windows does in the example of [MS-MQQB] 4.1.7. If there is a queue and nothing was "
        "asked for, none comes either.",
        "If the sender waits for acknowledgements, have it set both the administration queue and the kinds "
        "(`AdministrationQueue` and `AcknowledgeType` in System.Messaging).",
    ),
    (
        "MQMQ-2.2.19.1-07",
        "Transactional messages are read in the order in which they were sent. A queue manager that goes by "
        "the priority changes their order.",
        SENDER,
    ),
    (
        "MQMQ-2.2.19.2-10",
        "Each router on the way adds one, and gives the message up when there are 29. No router writes more.",
        "Look for routers that send to each other in a circle, and at the program that built the packet.",
    ),
    (
        "MQMQ-2.2.19.2-(11|33)",
        "The receiver writes recoverable messages to disk and keeps express ones in memory. By a wrong value"
        " a message is lost in a restart that ought to survive it, or refused.",
        SENDER,
    ),
    (
        "MQMQ-2.2.19.2-30",
        "The value says that the response queue is on the computer of the administration queue. Without one,"
        " the answer has nowhere to go.",
        SENDER,
    ),
    (
        "MQMQ-2.2.19.2-34",
        "Without this bit there is no MessagePropertiesHeader, and so neither label nor body. The receiver "
        "refuses the packet.",
        SENDER,
    ),
    (
        "MQMQ-2.2.19.2-39",
        "Queue managers add these headers to messages that came over HTTP when they store them. On a session"
        " only exploits of CVE-2023-21554 send them.",
        ATTACK,
    ),
    (
        "MQMQ-2.2.19.3-07",
        "Windows has room for 250 characters of a label, with the null. It refuses a longer one, and "
        "programs that trust the number write past their buffer.",
        SENDER,
    ),
    (
        "MQMQ-2.2.19.2-(22|24)",
        "The receiver can't know which form of name follows, and closes the session; all that waits on it is"
        " sent again later.",
        SENDER,
    ),
    (
        "MQMQ-2.2.19.2-03",
        "With a GUID beside a direct name, or none beside a name that needs it, a router sends the message "
        "elsewhere or not at all.",
        SENDER,
    ),
    (
        "MQMQ-2.2.19.3-43|MQMQ-2.2.20.7-0[48]|MQMQ-2.2.20.6-38|MQRR-2.2.5.1.2.1-05|MQRR-2.2.5.4-02",
        "Programs copy such texts up to the null: without one, or with one inside, they read too much or "
        "show only a part.",
        "Have the sender end the text with one null character, and count it where the field is a length.",
    ),
    (
        "MQMQ-2.2.18.1.6-22|MQRR-2.2.5.3-04|MQQB-2.2.(4-10|5-09)",
        "The class says whether this is a message or an acknowledgement, and of what. Programs that meet an "
        "unknown class drop it or take a refusal for an arrival.",
        SENDER,
    ),
    (
        "MQMQ-2.2.19.3-16-SIZE",
        "A reader that takes so many bytes for the body reads memory that is not of the packet.",
        ATTACK,
    ),
    (
        "MQMQ-2.2.19.3-16",
        "A receiver that makes room for the body by this number has too little, and refuses or cuts the "
        "message.",
        SENDER,
    ),
    (
        "MQMQ-2.2.19.3-46|MQMQ-2.2.18.1.5.2-03|MQMQ-2.2.20-11|MQMQ-2.2.20.6-21|MQRR-2.2.5.4-01",
        "The next header begins at a multiple of four: another amount of padding moves it, and a receiver "
        "that reckons with the rule reads it from the wrong bytes.",
        SENDER,
    ),
)
