"""The identifiers by which messages of other computers are looked up: [MS-MQDMPR] 3.1.7.1.9."""

from __future__ import annotations

from typing import Final

from msmqwire.remote_read.constants import Action

PEEK_CURRENT: Final = {
    "ulAction": int(Action.MQ_LOOKUP_PEEK_CURRENT),
    "dwMaxBodySize": 0,
    "dwMaxCompoundMessageSize": 0,
}
"""The bit that makes a read by lookup identifier ask for the message itself."""
PRIORITY_SHIFT: Final = 56
SEQUENCE_ID: Final = (1 << PRIORITY_SHIFT) - 1
"""The low seven bytes, which distinguish the messages of a queue manager."""
_PRIORITY_0: Final = 7 << PRIORITY_SHIFT


def lookup_spellings(identifier: int) -> tuple[int, ...]:
    """Return the LookupIdentifiers that a server may know a message by; the first one is the given one.

    Servers differ in whether the priority is part of those of transactional messages, or of non-transactional
    ones. The low seven bytes distinguish the messages of a queue manager.
    """
    low = identifier & SEQUENCE_ID
    return tuple(dict.fromkeys((identifier, low, _PRIORITY_0 | low)))
