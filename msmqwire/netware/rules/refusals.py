"""Refusals that several rules share."""

from __future__ import annotations

from msmqwire.errors import NcpRefused
from msmqwire.ncp.constants import CompletionCode


def no_queue(queue_id: int) -> NcpRefused:
    """Return the refusal of a call about a missing queue."""
    return NcpRefused(f"there is no queue {queue_id:08X}", CompletionCode.ERR_NO_QUEUE)  # QMS-ext-14


def no_queue_rights(what: str) -> NcpRefused:
    """Return the refusal of a call that the caller's rights to the queue don't allow; `what` is the needed
    right.
    """
    return NcpRefused(what, CompletionCode.ERR_NO_Q_RIGHTS)  # QMS-ext-14


def no_job(number: int) -> NcpRefused:
    """Return the refusal of a call about a missing job."""
    return NcpRefused(f"there is no job {number} in the queue", CompletionCode.ERR_NO_Q_JOB)  # QMS-ext-14


def no_job_rights(what: str) -> NcpRefused:
    """Return the refusal of a call that the caller's rights to the job don't allow; `what` is the needed
    right.
    """
    return NcpRefused(what, CompletionCode.ERR_NO_Q_JOB_RIGHTS)  # QMS-ext-14


def no_object(what: str) -> NcpRefused:
    """Return the refusal of a call about a missing object, or one that the caller can't see."""
    return NcpRefused(f"there is no object {what}", CompletionCode.NO_SUCH_OBJECT)


def limit_reached(what: str) -> NcpRefused:
    """Return the refusal of a call that would exceed a limit of the settings."""
    return NcpRefused(f"no more {what}", CompletionCode.SERVER_OUT_OF_MEMORY)
