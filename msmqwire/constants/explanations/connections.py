"""The connection history and the states of outgoing queues, explained.

[MS-MQMQ] 2.3.12.25 and 2.3.12.11, [MS-MQDMPR] 3.1.1.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.constants.explanations.explanation import Texts

CONNECTION_STATUS_NAMES: Final[Mapping[int, str]] = {
    0x00000000: "InProcess",
    0x00000001: "EstablishPacketReceived",
    0x00000002: "Established",
    0x80000000: "UnknownFailure",
    0x80000001: "PingFailure",
    0x80000002: "SocketCreateFailure",
    0x80000003: "SocketBindFailure",
    0x80000004: "SocketConnectFailure",
    0x80000005: "TcpNotEnabled",
    0x80000006: "SocketSendFailure",
    0x80000007: "ConnectionNotReady",
    0x80000008: "DnsFailure",
    0x80000009: "CertificateValidationFailure",
    0x8000000A: "ConnectionLimitReached",
    0x8000000B: "ConnectionRefused",
    0x8000000C: "RoutingDataNotAvailable",
    0x8000000D: "LowResource",
}
"""The names of ConnectionHistory.Status by the numbers of the wire."""

CONNECTION_STATUSES: Final[Mapping[int, Texts]] = {
    0x00000000: Texts(
        "a connection is being established",
        "The queue manager is about to connect.",
        "Wait for the next entry of the history; one that stays here gets no answer.",
    ),
    0x00000001: Texts(
        "the other side has answered the connection, and the session is not open yet",
        "The handshake of the session is under way.",
        "Wait for the next entry of the history.",
    ),
    0x00000002: Texts(
        "the connection is established, and messages can be sent",
        "The destination was reached.",
        "No action is needed.",
    ),
    0x80000000: Texts(
        "the connection failed for an unknown reason",
        "The queue manager could not tell; its error code may.",
        "Try msmqwire ping HOST --session from the sending computer's network.",
    ),
    0x80000001: Texts(
        "the destination did not answer the ping, or refused a session in its answer",
        "Before a connection the queue manager pings UDP port 3527, which a firewall may drop while TCP is "
        "open; or the service there is stopped.",
        "Open UDP port 3527 to the destination and start the service there; msmqwire ping HOST tries it.",
    ),
    0x80000002: Texts(
        "no socket could be made",
        "The sending computer has no memory or handles left for one.",
        "Look for a program there with very many connections, and restart it.",
    ),
    0x80000003: Texts(
        "the socket could not be bound to an address",
        "The address that the service is bound to is gone, or all local ports are in use.",
        "Check the addresses of the sending computer and the setting BindInterfaceIP of the service.",
    ),
    0x80000004: Texts(
        "no connection to TCP port 1801 of the destination could be made",
        "It is off, its service is stopped, its address is wrong, or a firewall drops or refuses the port.",
        "Start the service there and open TCP port 1801; msmqwire ping HOST --session tries it.",
    ),
    0x80000005: Texts(
        "TCP is not enabled on the sending computer",
        "It has no network, or the protocol is not bound to a network card.",
        "Check the network settings of the sending computer.",
    ),
    0x80000006: Texts(
        "the connection broke while messages were sent",
        "The destination restarted or closed it, or a firewall or NAT forgot the connection.",
        "Look into the log of the destination for that time; check idle limits of firewalls in between.",
    ),
    0x80000007: Texts(
        "messages were to be sent before the session was open",
        "The session ended, or did not open, when messages were to go.",
        "No action is needed if a later entry is established; else look at the failures before it.",
    ),
    0x80000008: Texts(
        "the name of the destination has no address",
        "The name is mistyped, or DNS does not know it from the sending computer.",
        "Look the name up there by nslookup; correct DNS or the format name, or use DIRECT=TCP:.",
    ),
    0x80000009: Texts(
        "the certificate of the server was not accepted",
        "It has expired, is for another name, or comes from an authority that the sender does not trust "
        "(HTTPS).",
        "Renew the certificate, or let the sending computer trust its authority.",
    ),
    0x8000000A: Texts(
        "the limit of connections is reached",
        "The sending computer has as many sessions as it may.",
        "Raise the limit, or send through fewer destinations at a time.",
    ),
    0x8000000B: Texts(
        "the destination refuses the session",
        "Its limit of connections or a quota is reached, it expects another queue manager, or it found a "
        "packet invalid.",
        "Look into the log of the destination; two computers cloned with their MSMQ identity do this as "
        "well.",
    ),
    0x8000000C: Texts(
        "no route to the destination is known, since the directory can't be reached",
        "The format name needs the directory, and no domain controller answers, or there is none.",
        "Make a domain controller reachable from the sending computer, or use a direct format name.",
    ),
    0x8000000D: Texts(
        "the sending computer has too little memory",
        "The service or the kernel of that computer has no memory left.",
        "Free memory there, and look for queues with very many messages.",
    ),
}
"""By number."""

QUEUE_STATES: Final[Mapping[str, Texts]] = {
    "LOCAL CONNECTION": Texts(
        "the queue is on the asked computer itself, so nothing is sent",
        "Local queues have no connection.",
        "No action is needed; messages in it wait for a reader.",
    ),
    "INACTIVE": Texts(
        "the queue manager does not try to connect",
        "The queue has no messages to send, or the last ones are sent and the connection was closed.",
        "No action is needed while it is empty; a queue with messages should be waiting or connected.",
    ),
    "WAITING": Texts(
        "the queue manager tries to connect to the destination, and has not reached it",
        "The destination is off or unreachable: its service, its name, or a firewall in between.",
        "Look at the connection history; try msmqwire ping HOST --session.",
    ),
    "NEED VALIDATION": Texts(
        "the address of the destination is not known yet",
        "The format name needs the directory or DNS, and it was not found there, or neither answers.",
        "Make the directory and DNS reachable from the sending computer, or use a direct format name.",
    ),
    "ONHOLD": Texts(
        "the queue is paused, and nothing is sent",
        "Somebody paused it.",
        "Resume it: msmqwire manage HOST resume QUEUE.",
    ),
    "LOCKED": Texts(
        "the queue is locked, since the computer may send over HTTP only",
        "Hardened security is on there, and the format name is not of HTTP.",
        "Send to a DIRECT=HTTPS: name, or turn hardened security off.",
    ),
    "CONNECTED": Texts(
        "the queue manager is connected and sends",
        "The destination, or the next computer on the way to it, was reached.",
        "No action is needed; messages leave when the other side acknowledges them.",
    ),
    "DISCONNECTING": Texts(
        "the connection is being closed",
        "Nothing was to be sent for a while, or the computer is leaving the network.",
        "Ask again in a minute.",
    ),
    "DISCONNECTED": Texts(
        "the queue manager is not connected, and sends nothing",
        "The whole computer was disconnected from the network by its administration, or the connection has "
        "ended.",
        "Connect the computer: msmqwire manage HOST connect.",
    ),
}
"""By the text of PROPID_MGMT_QUEUE_STATE."""
