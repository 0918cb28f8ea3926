"""Headers of packets: the importance of each finding and advice about it."""

from __future__ import annotations

from typing import Final

from tools.pages.findings.advice import SENDER

TEXTS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "MQMQ-2.2.19.1-(02|18|21)|MQQB-2.2.(1-04|2-01|2-02|3-01|3-02|6-01|6-02)|MQQB-3.1.5.1.3-01",
        "A receiver knows packets by this value, and closes the session with a packet that has another. If "
        "bytes are missing in the capture, what follows them looks like this too.",
        "See whether the capture has a gap before it. If not, the sender is not a queue manager, or speaks "
        "another protocol on this port.",
    ),
    (
        "MQMQ-2.2.19.1-15",
        "TR asks for a trace of the message, and DebugHeader, which names the queue for it, is missing: the "
        "trace has nowhere to go.",
        SENDER,
    ),
    (
        "MQMQ-2.2.19.1-24",
        "Only messages expire. A program that goes by the time drops an acknowledgement or a packet of the "
        "session.",
        SENDER,
    ),
    (
        "MQQB-2.2.1-07",
        "CS refuses a connection while it is being opened. In a SessionAck it has no meaning: the receiver "
        "ignores it, or closes the session.",
        SENDER,
    ),
    (
        "MQMQ-2.2.19.1-(09|10|11|13)|MQMQ-2.2.20-04|MQQB-2.2.6-02-SH",
        "The bits say which headers follow and whether a packet is a message: the receiver reads other "
        "headers than were meant, or closes the session.",
        SENDER,
    ),
    (
        "MQMQ-2.2.20-12|MQMQ-2.2.19.1-19",
        "The receiver skips bytes that are in no header. They may hide data, or a second packet that a "
        "device which cuts the stream otherwise takes for a real one.",
        "Look at the bytes (`--hexdump`). An ExtensionHeader, which Windows sends there, is not a finding.",
    ),
    (
        "MQMQ-2.2.18.1.(4-01|5.2-05)",
        "The receiver can't read the name of the queue, and closes the session.",
        SENDER,
    ),
    (
        "MQMQ-2.2.20.(1|2|3)-.*",
        "A message to several queues is taken apart by these values: a copy is lost or goes to the wrong "
        "queue.",
        SENDER,
    ),
    (
        "MQMQ-2.2.20.7-.*|MQMQ-2.2.20.8-.*|MQRR-2.2.5.1.2.*-0[12]",
        "The receiver takes the header for another, or does not find what it looks for in it.",
        SENDER,
    ),
    (
        "MQRR-2.2.5.1.2.1-04-UNIT",
        "Programs that count characters look for the next header twice as far away. Some senders count "
        "bytes, some characters.",
        "Nothing, if the receiver takes the message. In your own sender, count characters with the null.",
    ),
    (
        "MQRR-2.2.5.1.2.*",
        "A program that finds the body by these numbers reads other bytes than the sender meant. Windows "
        "finds the body in the HTTP message itself, and accepts other numbers.",
        "Nothing, if it is a note. Otherwise look at the HTTP message in the packet.",
    ),
    (
        "MQRR-2.2.5.*",
        "The client that reads the message remotely finds the headers after it by these values, and shows a "
        "wrong subqueue, address or dead-letter queue.",
        "Look at the server that stored the message: its version and whether its store was damaged.",
    ),
)
