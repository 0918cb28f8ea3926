"""``msmqwire`` with multicast sockets that lose 20 % of what they get, and that ask again soon.

Run as ``python -m tests.support.lossy_multicast``.
"""

from __future__ import annotations

import random
import socket
from typing import Any

from msmqwire.cli import main
from msmqwire.pgm import receive_window
from msmqwire.qm.runtime.multicast import sockets

LOSS = 0.2


class Lossy(socket.socket):
    """A socket that loses datagrams."""

    chance = random.Random(7)
    loss = LOSS

    def recvfrom(self, size: int, flags: int = 0) -> tuple[bytes, Any]:  # type: ignore[override]
        while True:
            got = super().recvfrom(size, flags)
            if self.chance.random() >= self.loss:
                return got


def lossy_socket(kind: int, protocol: int) -> socket.socket:
    """What `msmqwire.qm.runtime.multicast.sockets.new_socket` makes, but for the losses."""
    made = Lossy(socket.AF_INET, kind, protocol)
    made.setblocking(False)
    return made


if __name__ == "__main__":
    sockets.new_socket = lossy_socket
    # A packet that is lost six times in a row takes twelve seconds otherwise.
    receive_window.NAK_RDATA_IVL = 0.3  # type: ignore[misc]
    receive_window.NAK_RPT_IVL = 0.2  # type: ignore[misc]
    main()
