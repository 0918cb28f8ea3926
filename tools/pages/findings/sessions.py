"""Sessions, and the identity of queue managers: the importance of each finding and advice about it."""

from __future__ import annotations

from typing import Final

_HANDSHAKE_DO: Final = (
    "Look at both packets of the exchange in the capture: `msmqwire dissect FILE --stream N --hexdump`. Two "
    "computers with one address, a device that rewrites packets, or a queue manager of another program are "
    "the usual causes."
)
_ACKNOWLEDGING_DO: Final = (
    "Look at the receiver's queue manager: what answers there is not Windows, or was changed on the way."
)

TEXTS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "DMPR-3.1.1-05",
        "Machines that were cloned with MSMQ installed have the same GUID, and may number their messages "
        "alike: a receiver can take one of two messages for a copy and drop it, and acknowledgements can go "
        "to the other machine. It may also be a forged sender, or one machine with several addresses: a new "
        "lease of DHCP, NAT between two places of a capture, several networks.",
        "Ask whether both addresses are one machine. If not, and both are yours, give the clone a GUID of "
        "its own: stop its Message Queuing service, delete the value `QMId` under "
        "`HKLM\\Software\\Microsoft\\MSMQ\\Parameters\\MachineCache`, set the DWORD `SysPrep` under "
        "`HKLM\\Software\\Microsoft\\MSMQ\\Parameters` to 1, and start the service. Or remove Message "
        "Queuing there and install it again. `msmqwire fate` shows the messages of each address.",
    ),
    (
        "MQQB-2.2.1-08",
        "The sender asked for one queue manager and another one answers: another computer has the address "
        "now, or a copy of the machine. It should refuse the connection. If neither side notices, messages "
        "go to the wrong computer.",
        _HANDSHAKE_DO,
    ),
    (
        "MQQB-2.2.3.1-(09|18)",
        "Windows always writes this value. Nothing else depends on it, but a receiver may close a connection "
        "that has another.",
        "Nothing, if the connection opens. Another value is a sign that the queue manager is not Windows.",
    ),
    (
        "MQQB-3.1.5.3.1-.*|MQQB-2.2.3.1.*|MQQB-3.1.5.(2.3|3.2-06|4.1).*",
        "Both sides learn from this exchange whom they talk to and how. A side that sees something "
        "unexpected closes the connection and tries again: messages wait though the network is fine.",
        _HANDSHAKE_DO,
    ),
    (
        "MQQB-2.2.2.1-.*",
        "The timers decide how long messages wait for acknowledgement: too short, and they are sent twice; "
        "too long, and a dead connection is noticed late. A receiver may close the session instead.",
        "Check the settings of the queue manager that sends the packet.",
    ),
    (
        "MQQB-3.1.5.(3|4|5|6|7|8)-01|MQQB-3.1.5.3.2-03",
        "The receiver closes the session with a packet that comes out of its order. If the capture lacks the"
        " beginning of the connection, that explains it too.",
        _HANDSHAKE_DO,
    ),
    (
        "MQQB-3.1.6.3-02",
        "A sender that sends without an acknowledgement fills a dead connection; its messages arrive "
        "only after a new one is opened.",
        "Look whether acknowledgements are missing in the capture. If not, see why the receiver is silent: a"
        " full disk, a paused service, a firewall that drops one direction.",
    ),
    (
        "MQMQ-2.2.20.4-(10|13)",
        "The receiver acknowledges by its own count of messages. If the sender counts otherwise, "
        "acknowledgements are taken for those of other messages: some are sent twice, some forgotten. A "
        "capture with lost frames shows it as well.",
        "See whether the capture has gaps. If not, mend the sender's count.",
    ),
    (
        "MQMQ-2.2.20.4-(06|07|09|14).*|MQQB-3.1.1.6.1-02|MQQB-3.1.7.1-03.*",
        "Acknowledgements and windows keep sender and receiver in step. Wrong ones make a sender forget "
        "messages that did not arrive, or stop sending. A capture with lost frames shows it as well.",
        "See whether the capture has gaps. If not, look at the side that acknowledges.",
    ),
    (
        "MQMQ-2.2.20.5-.*|MQQB-3.1.1.5-.*|MQQB-3.1.5.8.6-04",
        "Transactional messages are taken once and in order by these numbers: a message with a wrong one "
        "waits until the missing ones come, or is dropped as a duplicate. A restored or cloned machine that "
        "reuses its numbers shows it, and so does a capture with gaps.",
        "Look at the messages of the sequence before it. Two machines with one queue manager GUID need a new"
        " installation of Message Queuing on one of them.",
    ),
    (
        "MQQB-2.2.(4.1-03-SENT|5.1-03-SENT)",
        "The sender ignores an acknowledgement of what it has not sent; the intended message stays "
        "unacknowledged. If the capture lacks that message, this explains it.",
        "See whether the capture has gaps. If not, look at the receiver's queue manager, or for a peer that "
        "forges acknowledgements.",
    ),
    (
        "MQQB-2.2.4.*",
        "The sender of transactional messages sends them again until they are acknowledged in order. It may "
        "not recognize an acknowledgement with wrong fields: the messages come again, and in the end are "
        "reported as undelivered.",
        _ACKNOWLEDGING_DO,
    ),
    (
        "MQQB-2.2.5.*",
        "By this acknowledgement the sender of a transactional message learns whether a program received it "
        "or the receiver refused it. It may not recognize one with wrong fields: the message counts as "
        "undelivered though it was received, or a refusal stays unknown.",
        _ACKNOWLEDGING_DO,
    ),
    (
        "MQQB-2.2.7-.*",
        "A sender asks by a ping whether it may connect. It ignores an answer that does not fit, takes the "
        "receiver for dead, and its messages wait.",
        "See who sends it: scanners probe this port with bytes of other protocols.",
    ),
)
