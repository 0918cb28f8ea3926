"""Messages of WCF: [MC-NMF] framing, and an envelope in one of its encodings.

A body of net.msmq names where the message goes and how it is encoded, and then has the message: as records of
[MC-NBFX] with the dictionaries of [MC-NBFS] and [MC-NBFSE], as text, or as MTOM. The value is
``{"via": …, "encoding": …, "xml": …}``: the address, the number of the encoding or its content type, and the
envelope as XML. A session has more: ``mode``, and ``more`` with the envelopes after the first one.
An envelope of records that stands alone has a ``via`` of null.
"""

from __future__ import annotations

import re
from typing import Final

from msmqwire.bodies.body import Content, Plain
from msmqwire.bodies.limits import Budget
from msmqwire.bodies.wcf.fault import Fault, read_size
from msmqwire.bodies.wcf.framing import NmfMessage, read_nmf

__all__ = ["NmfMessage", "read", "read_nmf", "recognises", "write"]

# VersionRecord 1.x, ModeRecord, and the type of a ViaRecord.
FRAMED: Final = re.compile(rb"\x00\x01.\x01[\x01-\x04]\x02", re.DOTALL)
# <s:Envelope and a declaration with a prefix of one letter, as all writers of WCF begin.
_ENVELOPE: Final = b"\x56\x02\x0b\x01"


def recognises(body: bytes) -> bool:
    """Return whether a body begins as a framed message does, or as an envelope of records."""
    return FRAMED.match(body) is not None or bare_encoding(body) is not None


def bare_encoding(body: bytes) -> int | None:
    """Return the encoding of an envelope of records that stands alone, None if it is none."""
    if body.startswith(_ENVELOPE):
        return 7
    try:
        size, at = read_size(body, 0)
    except Fault:
        return None
    return 8 if body.startswith(_ENVELOPE, at + size) else None


def read(body: bytes, budget: Budget) -> Content:
    """Read a body.

    Raises:
        MalformedBody: it has neither a preamble nor an envelope of records.
    """
    from msmqwire.bodies.wcf.reading import read_body

    return read_body(body, budget)


def write(value: Plain, type_: str | None) -> bytes:
    """Return the body with a message.

    Args:
        value: ``via``, ``encoding`` (7 where there is none, as net.msmq has it) and ``xml``.
        type_: not used by this format, and so refused.

    Raises:
        InvalidValue: the value is not a message, or its XML is none that a message can have.
    """
    from msmqwire.bodies.wcf.writing import write_body

    return write_body(value, type_)
