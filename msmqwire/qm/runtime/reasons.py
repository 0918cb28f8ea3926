"""The reasons of refusals, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.constants import MQ_OK, HResult, hresult_name
from msmqwire.constants.explanations import result_texts
from msmqwire.errors import QueueError
from msmqwire.qm.model.enumerations import EnqueueStatus

_OURS: Final[Mapping[int, str]] = {
    HResult.MQ_ERROR_ACCESS_DENIED: "it is not for applications, or access is denied",
    HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED: "a message is damaged on the disk and set aside; the log has "
    "its name, and others can be read",
    HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE: "the queue was deleted",
    HResult.MQ_ERROR_TRANSACTION_ENLIST: "its computer takes no part in the transaction, which needs a "
    "coordinator (MS DTC) on both: read the queue without a transaction",
}
"""Reasons that our queue manager or client knows more precisely than the catalogue of all codes."""
_NOT_TAKEN: Final = {
    EnqueueStatus.QUEUE_QUOTA_EXCEEDED: "the quota of the queue is used up",
    EnqueueStatus.QUEUE_MANAGER_QUOTA_EXCEEDED: "the quota of the computer is used up, or its disk full",
}


def reason(status: int, name: str) -> str:
    """Describe a status for users."""
    return f"{name}: {_OURS.get(status) or _meaning(status)}"


def check_sent(status: int, name: str) -> None:
    """Raise QueueError for a status of a sent message that is a refusal."""
    if status == MQ_OK:
        return
    if isinstance(status, EnqueueStatus):
        code = HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
        raise QueueError(_NOT_TAKEN.get(status, f"the message is not taken: {status.name}"), code)
    raise QueueError(reason(status, name), status)


def _meaning(status: int) -> str:
    texts = result_texts(status)
    return f"error {hresult_name(status)}" if texts is None else texts.meaning
