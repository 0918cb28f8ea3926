r"""Queues for programs: elsewhere, and on this computer.

``msmqwire.connect(r"DIRECT=TCP:10.0.0.5\private$\orders")``, ``msmqwire.attach(FOLDER)``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from msmqwire.qm.client.attachment import Attachment, QueueManager, SyncQueueManager, attach
    from msmqwire.qm.client.connecting import connect
    from msmqwire.qm.client.connection import Connection
    from msmqwire.qm.client.management import ManagedHost, Management, SyncManagedHost, manage
    from msmqwire.qm.client.pushed_messages import Messages
    from msmqwire.qm.client.queue import Cursor, Queue
    from msmqwire.qm.client.received_message import ReceivedMessage
    from msmqwire.qm.client.sent import Acknowledgement, Outcome, Sent
    from msmqwire.qm.client.synchronous_queue import SyncQueue
    from msmqwire.qm.client.transactional import Transactional
    from msmqwire.qm.runtime.message_signers import load_signer
    from msmqwire.qm.security.signing import Signer

__all__ = [
    "Acknowledgement",
    "Attachment",
    "Connection",
    "Cursor",
    "ManagedHost",
    "Management",
    "Messages",
    "Outcome",
    "Queue",
    "QueueManager",
    "ReceivedMessage",
    "Sent",
    "Signer",
    "SyncManagedHost",
    "SyncQueue",
    "SyncQueueManager",
    "Transactional",
    "attach",
    "connect",
    "load_signer",
    "manage",
]

_PARTS: Final = {
    "client.attachment": (
        "Attachment",
        "QueueManager",
        "SyncQueueManager",
        "attach",
    ),
    "client.connecting": ("connect",),
    "client.connection": ("Connection",),
    "client.management": (
        "ManagedHost",
        "Management",
        "SyncManagedHost",
        "manage",
    ),
    "client.pushed_messages": ("Messages",),
    "client.queue": (
        "Cursor",
        "Queue",
    ),
    "client.received_message": ("ReceivedMessage",),
    "client.sent": (
        "Acknowledgement",
        "Outcome",
        "Sent",
    ),
    "client.synchronous_queue": ("SyncQueue",),
    "client.transactional": ("Transactional",),
    "runtime.message_signers": ("load_signer",),
    "security.signing": ("Signer",),
}
_PART_OF: Final = {name: part for part, names in _PARTS.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import parts on first use: a program that only reads by remote read needs no local queue manager."""
    if name not in _PART_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"msmqwire.qm.{_PART_OF[name]}"), name)
    return value
