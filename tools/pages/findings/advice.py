"""Advice that findings of several protocols share."""

from __future__ import annotations

from typing import Final

ATTACK: Final = (
    "Treat the sender as hostile until you know better: find it by its address, keep the capture, and see "
    "that the receiver has the security updates for Message Queuing."
)
SENDER: Final = (
    "Mend the program or library that built the packet; Windows does not send it. If you do not know the "
    "sender, its queue manager GUID and address are in the report."
)
SIGNATURE: Final = (
    "Have the sender sign again: renew its certificate and send one message. If messages of one sender only "
    "are concerned, ask who else could have changed them."
)
