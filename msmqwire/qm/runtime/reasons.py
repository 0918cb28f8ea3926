"""The reasons of refusals, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.constants import HResult, hresult_name
from msmqwire.constants.explanations import result_texts

_OURS: Final[Mapping[int, str]] = {
    HResult.MQ_ERROR_ACCESS_DENIED: "it is not for applications, or access is denied",
    HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED: "a message is damaged on the disk and set aside; the log has "
    "its name, and others can be read",
    HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE: "the queue was deleted",
    HResult.MQ_ERROR_TRANSACTION_ENLIST: "its computer takes no part in the transaction, which needs a "
    "coordinator (MS DTC) on both: read the queue without a transaction",
}
"""Reasons that our queue manager or client knows more precisely than the catalogue of all codes."""


def reason(status: int, name: str) -> str:
    """Describe a status for users."""
    return f"{name}: {_OURS.get(status) or _meaning(status)}"


def _meaning(status: int) -> str:
    texts = result_texts(status)
    return f"error {hresult_name(status)}" if texts is None else texts.meaning
