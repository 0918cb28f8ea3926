"""Identifiers in SRMP envelopes: of messages, [MC-MQSRM] 2.2.4.3, and of streams, 2.2.5.3.1."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID


class MessageIdentifier(NamedTuple):
    """The identifier of a message: ``uuid:26626@32221eda-9376-46df-b6ed-783091123831``."""

    uniquifier: int
    lineage: UUID

    def __str__(self) -> str:
        return f"uuid:{self.uniquifier}@{self.lineage}"


class StreamIdentifier(NamedTuple):
    r"""The identifier of a stream: ``uid:4a85b192-3ccd-4ba2-a0ac-7f0a11be1b08\4839986701558349830``."""

    queue_manager: UUID
    number: int

    @property
    def time_stamp(self) -> int:
        """TxSequenceID.TimeStamp, the upper half of the number: SRMP-2.2.5.3.1-03."""
        return self.number >> 32  # SRMP-2.2.5.3.1-03, SRMP-2.2.5.3.1-04

    @property
    def ordinal(self) -> int:
        """TxSequenceID.Ordinal, the lower half of the number: SRMP-2.2.5.3.1-03."""
        return self.number & 0xFFFF_FFFF  # SRMP-2.2.5.3.1-03, SRMP-2.2.5.3.1-04

    def __str__(self) -> str:
        return f"uid:{self.queue_manager}\\{self.number}"
