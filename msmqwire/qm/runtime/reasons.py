"""The reasons of refusals, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.constants import HResult, hresult_name

_REASONS: Final[Mapping[int, str]] = {
    HResult.MQ_ERROR_ACCESS_DENIED: "it is not for applications, or access is denied",
    HResult.MQ_ERROR_ILLEGAL_CURSOR_ACTION: "the cursor is not at a message, or waits for one",
    HResult.MQ_ERROR_ILLEGAL_FORMATNAME: "the name means no queue",
    HResult.MQ_ERROR_IO_TIMEOUT: "no message has come in time",
    HResult.MQ_ERROR_MESSAGE_ALREADY_RECEIVED: "the message was received by another reader",
    HResult.MQ_ERROR_MESSAGE_NOT_FOUND: "there is no such message to be read",
    HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED: "a message is damaged on the disk and set aside; the log has "
    "its name, and others can be read",
    HResult.MQ_ERROR_OPERATION_CANCELLED: "the wait for a message was cancelled",
    HResult.MQ_ERROR_QUEUE_DELETED: "the queue was deleted",
    HResult.MQ_ERROR_QUEUE_EXISTS: "there is a queue with this name",
    HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE: "the queue was deleted",
    HResult.MQ_ERROR_QUEUE_NOT_FOUND: "there is no such queue",
    HResult.MQ_ERROR_SHARING_VIOLATION: "another client has exclusive access to the queue",
    HResult.MQ_ERROR_TRANSACTION_ENLIST: "its computer takes no part in the transaction, which needs a "
    "coordinator (MS DTC) on both: read the queue without a transaction",
    HResult.MQ_ERROR_TRANSACTION_SEQUENCE: "the transaction has ended",
    HResult.MQ_ERROR_TRANSACTION_USAGE: "a transactional queue takes transactional messages only, and only "
    "such a queue takes them",
    HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION: "a queue with such a name can't be used for this",
}


def reason(status: int, name: str) -> str:
    """Describe a status for users."""
    code = hresult_name(status)
    unnamed = "error " if code.startswith("0x") else ""
    return f"{name}: {_REASONS.get(status, unnamed + code)}"
