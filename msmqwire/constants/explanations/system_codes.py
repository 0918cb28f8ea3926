"""Codes of Windows, of its sockets and of remote calls that clients of MSMQ meet, explained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from msmqwire.constants.explanations.explanation import Texts
from msmqwire.constants.ntstatus import NtStatus


class Named(NamedTuple):
    """A code that has a name of its own here: its name and its words."""

    name: str
    texts: Texts


_UNREACHED: Final = (
    "Start it, and open the port in the firewalls between: msmqwire ping HOST --session tries it."
)
_CLOSED: Final = "Look into the event log there for that time, and call again."
_DENIED: Final = Texts(
    "access is denied",
    "The user has not the rights, the logon failed, or the server demands a stronger authentication level; "
    "Windows refuses management from the network to users that do not administer the computer.",
    "Call as an administrator of that computer (--user), with --auth privacy.",
)
_UNKNOWN_INTERFACE: Final = Texts(
    "the server does not have this interface",
    "The port is that of another service, or the server is of a version without it.",
    "Find the port by the endpoint mapper at port 135, or correct --rpc-port.",
)
_NOT_REGISTERED: Final = Texts(
    "the endpoint mapper knows no port of this interface",
    "The Message Queuing service is stopped or not installed there, or does not serve it on the network.",
    "Start the service; of Windows check that calls from the network are allowed.",
)
_BAD_STUB: Final = Texts(
    "the server could not read the arguments of the call",
    "The two sides disagree on the form of the data, or the bytes were changed.",
    "Report it with a capture of the call: msmqwire dissect shows its bytes.",
)
_NO_MEMORY: Final = Texts(
    "there is not enough memory",
    "The computer or the service has used up its memory or a quota.",
    "Free memory there, and look for queues with very many messages.",
)

WIN32_CODES: Final[Mapping[int, Named]] = {
    5: Named("ERROR_ACCESS_DENIED", _DENIED),
    8: Named("ERROR_NOT_ENOUGH_MEMORY", _NO_MEMORY),
    14: Named("ERROR_OUTOFMEMORY", _NO_MEMORY),
    53: Named(
        "ERROR_BAD_NETPATH",
        Texts(
            "the computer was not found on the network",
            "Its name is mistyped or has no address, or it is off.",
            "Look up the name, and try msmqwire ping HOST.",
        ),
    ),
    87: Named(
        "ERROR_INVALID_PARAMETER",
        Texts(
            "an argument of the call is not valid",
            "A value is out of range, or the server does not know the call in this form.",
            "Check the arguments of the call.",
        ),
    ),
    112: Named(
        "ERROR_DISK_FULL",
        Texts(
            "the disk is full",
            "Messages, journals or other files have used it up.",
            "Free the disk of the storage folder, read or purge journals and dead letters.",
        ),
    ),
    1326: Named(
        "ERROR_LOGON_FAILURE",
        Texts(
            "the name of the user or the password is wrong",
            "It is mistyped, or the account is of another domain or computer.",
            r"Name the user as DOMAIN\USER, and check --password-file.",
        ),
    ),
    1450: Named("ERROR_NO_SYSTEM_RESOURCES", _NO_MEMORY),
    1717: Named("RPC_S_UNKNOWN_IF", _UNKNOWN_INTERFACE),
    1722: Named(
        "RPC_S_SERVER_UNAVAILABLE",
        Texts(
            "the server of remote calls can't be reached",
            "The computer is off, its service is stopped, or a firewall drops port 135 or the port of the "
            "interface.",
            "Start it, open port 135 and the port of the service, or name the latter by --rpc-port.",
        ),
    ),
    1723: Named(
        "RPC_S_SERVER_TOO_BUSY",
        Texts(
            "the server takes no more calls now",
            "Too many calls are under way.",
            "Call again later, or with fewer calls at once.",
        ),
    ),
    1726: Named(
        "RPC_S_CALL_FAILED",
        Texts("the call was lost on its way", "The service ended or the connection broke.", _CLOSED),
    ),
    1753: Named("EPT_S_NOT_REGISTERED", _NOT_REGISTERED),
    1764: Named(
        "RPC_S_CANNOT_SUPPORT",
        Texts(
            "the server does not support this call",
            "It is switched off there, or not for callers from the network.",
            "Call on that computer itself, or allow it in the settings of the service.",
        ),
    ),
    1783: Named("RPC_X_BAD_STUB_DATA", _BAD_STUB),
    1818: Named(
        "RPC_S_CALL_CANCELLED",
        Texts(
            "the call was cancelled",
            "The caller gave up, as after its timeout.",
            "Call again with a longer timeout.",
        ),
    ),
    1825: Named(
        "RPC_S_SEC_PKG_ERROR",
        Texts(
            "the authentication of the call failed",
            "The server does not know the user or the kind of authentication, or the clocks differ by "
            "minutes.",
            "Check --auth, --user and the clocks of both computers.",
        ),
    ),
    10013: Named(
        "WSAEACCES",
        Texts(
            "the system forbids the connection",
            "A firewall on the sending computer blocks it.",
            "Allow Message Queuing in the firewall of that computer.",
        ),
    ),
    10050: Named(
        "WSAENETDOWN",
        Texts(
            "the network is down",
            "A network card is off or unplugged.",
            "Check the network of that computer.",
        ),
    ),
    10051: Named(
        "WSAENETUNREACH",
        Texts(
            "there is no route to the network",
            "The sending computer lacks a gateway, or a router on the way a route.",
            "Check the routes of the sending computer.",
        ),
    ),
    10054: Named(
        "WSAECONNRESET",
        Texts("the other side cut the connection", "Its service ended, or a firewall cut it.", _CLOSED),
    ),
    10055: Named(
        "WSAENOBUFS",
        Texts(
            "the system has no buffers or ports left for sockets",
            "Programs keep very many connections open or in TIME_WAIT.",
            "Look for such a program on that computer.",
        ),
    ),
    10060: Named(
        "WSAETIMEDOUT",
        Texts(
            "the other side did not answer in time",
            "The computer is off, or a firewall drops the packets.",
            _UNREACHED,
        ),
    ),
    10061: Named(
        "WSAECONNREFUSED",
        Texts(
            "the computer answers, and nothing listens on the port",
            "Its Message Queuing service is stopped, or a firewall refuses the port.",
            _UNREACHED,
        ),
    ),
    10065: Named(
        "WSAEHOSTUNREACH",
        Texts(
            "there is no route to the computer",
            "It is off, or a router on the way refuses it.",
            "Check its address and the routes to it.",
        ),
    ),
    11001: Named(
        "WSAHOST_NOT_FOUND",
        Texts(
            "the name has no address",
            "It is mistyped, or DNS does not know it.",
            "Look the name up by nslookup on the computer that asks.",
        ),
    ),
}
"""Errors of Windows by code; in a result they stand as 0x8007 and the code in 16 bits."""

RPC_STATUSES: Final[Mapping[int, Named]] = {
    0x16C9A0D6: Named("EPT_S_NOT_REGISTERED", _NOT_REGISTERED),
    0x1C00000D: Named(
        "NCA_S_FAULT_CANCEL",
        Texts("the call was cancelled", "The caller asked for it.", "Call again if it is still needed."),
    ),
    0x1C000012: Named(
        "NCA_S_FAULT_UNSPEC",
        Texts("the server failed in the call, and does not say why", "It has an inner error.", _CLOSED),
    ),
    0x1C00001A: Named(
        "NCA_S_FAULT_CONTEXT_MISMATCH",
        Texts(
            "the server does not know the handle of the call",
            "The service was restarted, or the handle was closed, or comes from another connection.",
            "Connect and open the queue again.",
        ),
    ),
    0x1C00001B: Named("NCA_S_FAULT_REMOTE_NO_MEMORY", _NO_MEMORY),
    0x1C00001C: Named(
        "NCA_S_INVALID_PRES_CONTEXT_ID",
        Texts(
            "the call names an interface that the connection was not opened for",
            "The client is at fault.",
            "Report it with a capture of the connection.",
        ),
    ),
    0x1C010001: Named(
        "NCA_S_COMM_FAILURE",
        Texts("the connection was lost in the call", "The service ended or the network failed.", _CLOSED),
    ),
    0x1C010002: Named(
        "NCA_S_OP_RNG_ERROR",
        Texts(
            "the interface has no such operation",
            "The server is of an older version, or the number of the operation is wrong.",
            "Do it without this operation; management has the operations 0 and 1 only.",
        ),
    ),
    0x1C010003: Named("NCA_S_UNK_IF", _UNKNOWN_INTERFACE),
    0x1C01000B: Named(
        "NCA_S_PROTO_ERROR",
        Texts(
            "the server found the protocol of the call broken",
            "A packet is malformed, or came out of order.",
            "Report it with a capture of the connection.",
        ),
    ),
    0x1C010013: Named(
        "NCA_S_OUT_ARGS_TOO_BIG",
        Texts(
            "the results do not fit into an answer",
            "They are larger than the server may send.",
            "Ask for less at once.",
        ),
    ),
    0x1C010014: Named(
        "NCA_S_SERVER_TOO_BUSY",
        Texts(
            "the server takes no more calls now",
            "Too many calls are under way.",
            "Call again later, or with fewer calls at once.",
        ),
    ),
    0x1C010017: Named(
        "NCA_S_UNSUPPORTED_TYPE",
        Texts(
            "the server does not know the type of the object",
            "The client names a type that the interface does not have.",
            "Call without a type.",
        ),
    ),
}
"""Statuses of faults by code."""

NTSTATUSES: Final[Mapping[int, Texts]] = {
    NtStatus.STATUS_INVALID_HANDLE: Texts(
        "the handle is not valid",
        "The queue was closed, or the handle is of another connection.",
        "Open the queue again.",
    ),
    NtStatus.STATUS_INVALID_PARAMETER: Texts(
        "an argument of the call is not valid",
        "A value is out of range, or two of them do not fit together.",
        "Check the arguments of the call.",
    ),
    NtStatus.STATUS_ACCESS_DENIED: _DENIED,
    NtStatus.STATUS_NOT_FOUND: Texts(
        "what the call names is not there",
        "A read or a message was over before it was cancelled or ended.",
        "No action is needed if it had ended; else open the queue again.",
    ),
}
"""By code."""
