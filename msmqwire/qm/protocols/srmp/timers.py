"""The timers of SRMP."""

from __future__ import annotations

from msmqwire.qm.model.timer_kind import TimerKind


class SrmpTimer(TimerKind):
    """The timers of [MC-MQSRM] 3.1.2."""

    RETRANSMISSION = "Retransmission Timer"
    STREAM_RECEIPT_WAIT = "Stream Receipt Wait Timer"
    STREAM_RECEIPT_COALESCING = "Stream Receipt Coalescing Timer"
    SESSION_CLEANUP = "Session Cleanup Timer of SRMP"
