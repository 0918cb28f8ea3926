"""Reads and writes the packets of the Microsoft Message Queuing (MSMQ) protocol family.

``parse`` and ``build`` convert bytes into packets and back, ``dissect`` finds and checks the packets of
captures, ``lint`` judges one, ``table`` shows many, ``ladder`` draws a session, ``connect`` sends to queues
of other computers and reads them, ``manage`` watches and steers them, ``attach`` uses those of this one;
everything else is imported from its module.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from msmqwire.moved import Finder

if TYPE_CHECKING:
    from msmqwire.analysis.diagrams import Ladder, Table, ladder, table
    from msmqwire.analysis.dissection import Dissection, Item, dissect
    from msmqwire.analysis.lint import lint
    from msmqwire.errors import (
        CaptureError,
        EndUnknown,
        EngineFailed,
        InvalidName,
        InvalidValue,
        LocatedError,
        MalformedPacket,
        ManagerStopped,
        MsmqError,
        NotDelivered,
        OutcomeUnknown,
        QueueError,
        ReadTimeout,
        TransactionAborted,
        Unreachable,
    )
    from msmqwire.packets import build, from_json, parse, to_json
    from msmqwire.qm.client import ReceivedMessage, Signer, attach, connect, load_signer, manage
    from msmqwire.tables import read_capture
    from msmqwire.tables.lake import read_lake, write_lake

__version__ = "0.1.0"

__all__ = [
    "CaptureError",
    "Dissection",
    "EndUnknown",
    "EngineFailed",
    "InvalidName",
    "InvalidValue",
    "Item",
    "Ladder",
    "LocatedError",
    "MalformedPacket",
    "ManagerStopped",
    "MsmqError",
    "NotDelivered",
    "OutcomeUnknown",
    "QueueError",
    "ReadTimeout",
    "ReceivedMessage",
    "Signer",
    "Table",
    "TransactionAborted",
    "Unreachable",
    "__version__",
    "attach",
    "build",
    "connect",
    "dissect",
    "from_json",
    "ladder",
    "lint",
    "load_signer",
    "manage",
    "parse",
    "read_capture",
    "read_lake",
    "table",
    "to_json",
    "write_lake",
]

if Finder not in sys.meta_path:
    sys.meta_path.insert(0, Finder)

_PARTS: Final = {
    "tables": ("read_capture",),
    "analysis.diagrams": ("Ladder", "Table", "ladder", "table"),
    "analysis.dissection": ("Dissection", "Item", "dissect"),
    "errors": (
        "CaptureError",
        "EndUnknown",
        "EngineFailed",
        "InvalidName",
        "InvalidValue",
        "LocatedError",
        "MalformedPacket",
        "ManagerStopped",
        "MsmqError",
        "NotDelivered",
        "OutcomeUnknown",
        "QueueError",
        "ReadTimeout",
        "TransactionAborted",
        "Unreachable",
    ),
    "tables.lake": ("read_lake", "write_lake"),
    "packets": ("build", "from_json", "parse", "to_json"),
    "qm.client": ("ReceivedMessage", "Signer", "attach", "connect", "load_signer", "manage"),
}
_PART_OF: Final = {name: part for part, names in _PARTS.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import parts on first use, so that `import msmqwire` and the command line start fast."""
    if name == "lint":
        return import_module("msmqwire.analysis.lint")  # the package can be called
    if name not in _PART_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from msmqwire.extras import importing

    with importing():
        part = import_module(f"msmqwire.{_PART_OF[name]}")
    value = globals()[name] = getattr(part, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
