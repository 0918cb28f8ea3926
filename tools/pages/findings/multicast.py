"""Datagrams of PGM: the importance of each finding and advice about it."""

from __future__ import annotations

from typing import Final

TEXTS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "PGM-CHECKSUM",
        "A receiver that verifies the checksum drops the datagram, and asks for it again. Network cards "
        "compute the checksums of TCP and UDP, not this one: it is what the sender has written.",
        "Capture on the sending side, too. If it is right there, something on the way damages or changes "
        "datagrams; if not, the sender's driver of PGM writes it so.",
    ),
    (
        "PGM-OPTIONS",
        "Receivers skip options by their lengths: with wrong ones they miss an option, or take data for one.",
        "Find out which driver of PGM sends it. What can be read of the datagram is shown.",
    ),
    (
        "PGM-TSDU-LENGTH",
        "Receivers take so many bytes as data: too many, and the message has bytes of the header or none; "
        "too few, and its end is lost. Some senders count the header.",
        "Nothing, if the receivers take the messages. The data are shown up to the end of the datagram.",
    ),
)
