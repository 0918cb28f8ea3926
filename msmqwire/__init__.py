"""Reads and writes the packets of the Microsoft Message Queuing (MSMQ) protocol family.

``parse`` and ``build`` convert bytes into packets and back, ``dissect`` finds and checks the packets of
captures, ``connect`` sends to queues of other computers and reads them, ``attach`` uses those of this one;
everything else is imported from its module.
"""

from typing import TYPE_CHECKING, Any

from msmqwire.errors import (
    CaptureError,
    EndUnknown,
    EngineFailed,
    InvalidName,
    InvalidValue,
    LocatedError,
    MalformedPacket,
    MsmqError,
    NotDelivered,
    QueueError,
    ReadTimeout,
    Unreachable,
)
from msmqwire.packets import build, from_json, parse, to_json

if TYPE_CHECKING:
    from msmqwire.columnar import read_capture
    from msmqwire.dissection import Dissection, Item, dissect
    from msmqwire.lake import read_lake, write_lake
    from msmqwire.qm.client import ReceivedMessage, Signer, attach, connect, load_signer

__version__ = "0.1.0"

__all__ = [
    "CaptureError",
    "Dissection",
    "EndUnknown",
    "EngineFailed",
    "InvalidName",
    "InvalidValue",
    "Item",
    "LocatedError",
    "MalformedPacket",
    "MsmqError",
    "NotDelivered",
    "QueueError",
    "ReadTimeout",
    "ReceivedMessage",
    "Signer",
    "Unreachable",
    "__version__",
    "attach",
    "build",
    "connect",
    "dissect",
    "from_json",
    "load_signer",
    "parse",
    "read_capture",
    "read_lake",
    "to_json",
    "write_lake",
]


def __getattr__(name: str) -> Any:
    """Import the larger parts on first use, so that `import msmqwire` stays fast."""
    if name == "read_capture":
        from msmqwire.columnar import read_capture

        return read_capture
    if name in ("Dissection", "Item", "dissect"):
        from msmqwire import dissection

        return getattr(dissection, name)
    if name in ("read_lake", "write_lake"):
        from msmqwire import lake

        return getattr(lake, name)
    if name in ("ReceivedMessage", "Signer", "attach", "connect", "load_signer"):
        from msmqwire.qm import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
