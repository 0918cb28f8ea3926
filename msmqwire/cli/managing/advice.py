"""What to do about the errors of ``msmqwire manage``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msmqwire.constants import HResult
from msmqwire.errors import (
    AnswerTimeout,
    AuthenticationFailed,
    HostNotFound,
    MsmqError,
    ProtocolViolation,
    QueueError,
    RpcFault,
    RpcRefused,
    Unreachable,
)
from msmqwire.rpc.constants import FaultStatus

_DENIED: Final = (5, 0x8007_0005, HResult.MQ_ERROR_ACCESS_DENIED)
_UNMAPPED: Final = (FaultStatus.EPT_S_NOT_REGISTERED, FaultStatus.WIN32_EPT_S_NOT_REGISTERED)


def advice_for(*, user: str | None, rpc_port: int | None) -> Callable[[MsmqError], str]:
    """Return the function that says what to do about an error, for a caller with these options."""

    def advice(error: MsmqError) -> str:
        match error:
            case QueueError() | RpcFault() if _status(error) in _DENIED:
                who = f"give {user} the rights" if user else r"try --user DOMAIN\NAME with --password-file"
                return (
                    f"{who}: Windows lets in administrators of the computer, msmqwire serve those that "
                    f"--rpc-manage says"
                )
            case QueueError(hresult=HResult.MQ_ERROR_QUEUE_NOT_FOUND):
                return (
                    "the commands queues and outgoing list names; messages on their way are in a queue with "
                    "the format name that outgoing shows"
                )
            case QueueError(hresult=HResult.MQ_ERROR_INVALID_PARAMETER):
                return "pause, resume and resend are for the queues that outgoing lists"
            case RpcFault() if error.status in _UNMAPPED:
                return (
                    "its endpoint mapper does not know the interface: is the Message Queuing service, or "
                    "msmqwire serve --rpc, running there?"
                )
            case RpcRefused():
                return "if the port serves something else, --rpc-port names the right one" if rpc_port else ""
            case AuthenticationFailed():
                return r"check --user DOMAIN\NAME and the password"
            case AnswerTimeout():
                return "--timeout gives it more time"
            case HostNotFound() | ProtocolViolation():
                return ""
            case Unreachable():
                return _way(rpc_port)
        return ""

    return advice


def _way(rpc_port: int | None) -> str:
    if rpc_port is not None:
        return "does a firewall let the port through, and does msmqwire serve --rpc, or MSMQ, listen there?"
    return (
        "where only the endpoint mapper is out of reach, --rpc-port names the port of the interface; on "
        "Windows the firewall rules of Message Queuing open both"
    )


def _status(error: QueueError | RpcFault) -> int:
    return error.hresult if isinstance(error, QueueError) else error.status
