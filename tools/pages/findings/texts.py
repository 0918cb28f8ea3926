"""The importance of each finding and advice about it, by patterns of ids: the first that fits counts."""

from __future__ import annotations

from typing import Final

from tools.pages.findings import (
    attacks,
    management,
    messages,
    multicast,
    netware,
    packets,
    remote_read,
    security,
    sessions,
    srmp,
)

RESERVED: Final = (
    "Receivers ignore these bits, so the packet is accepted. A sender that sets them has not "
    "cleared its memory, speaks a later version, or hides data in them.",
    "Compare packets of the same sender: one value in all of them is a habit, values that change deserve a "
    "look at the bytes. In your own sender, write zero.",
)
"""For reserved and unused bits and fields."""
MEASURED: Final = (
    "The value decides how the bytes after it are read, so that a packet that can be parsed never shows "
    "this. It is of bytes that are malformed, or of a packet that a program has built with a value of its "
    "own: the receiver reads other fields than were meant, or closes the session.",
    "Leave the field out where you build the packet, and it is computed. In a capture, look for the attack "
    "or the other finding at the same bytes.",
)
"""For sizes, counts and bits of presence."""

TEXTS: Final = (
    *attacks.TEXTS,
    *multicast.TEXTS,
    *netware.TEXTS,
    *messages.TEXTS,
    *security.TEXTS,
    *packets.TEXTS,
    *sessions.TEXTS,
    *remote_read.TEXTS,
    *management.TEXTS,
    *srmp.TEXTS,
)
