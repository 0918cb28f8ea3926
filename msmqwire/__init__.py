"""Reads, writes and speaks the Microsoft Message Queuing (MSMQ) protocol family.

``parse`` and ``build`` turn bytes into packets and back; the rest is reached by its module.
"""

from msmqwire.errors import CaptureError, InvalidName, InvalidValue, LocatedError, MalformedPacket, MsmqError
from msmqwire.packets import build, from_json, parse, to_json

__version__ = "0.1.0"

__all__ = [
    "CaptureError",
    "InvalidName",
    "InvalidValue",
    "LocatedError",
    "MalformedPacket",
    "MsmqError",
    "__version__",
    "build",
    "from_json",
    "parse",
    "to_json",
]
