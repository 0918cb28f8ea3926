"""The parts of the core that the server of management uses."""

from __future__ import annotations

from typing import Protocol

from msmqwire.qm.model.context import Context
from msmqwire.qm.protocols.interface import TransferProtocol
from msmqwire.qm.rules.queues import Queues


class ManagementNeeds(Protocol):
    """The core, as far as calls ask about it and change it."""

    context: Context
    queues: Queues
    protocols: list[TransferProtocol]
