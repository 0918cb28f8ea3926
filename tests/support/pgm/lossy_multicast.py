"""``msmqwire`` with multicast sockets that lose 20 % of the datagrams, and repeat requests soon.

Run as ``python -m tests.support.pgm.lossy_multicast``.
"""

from __future__ import annotations

import random
import socket
import sys
from typing import Any

from msmqwire.cli import main
from msmqwire.pgm import receive_window
from msmqwire.qm.runtime.multicast import sockets

LOSS = 0.2


class Lossy(socket.socket):
    """A socket that loses datagrams, but not the first ones.

    Datagrams before a receiver first hears of a source are not for it, so it would not request them.
    """

    chance = random.Random(sys.argv[sys.argv.index("--name") + 1] if "--name" in sys.argv else 7)
    """Others on each computer: a receiver does not ask for what it hears another one ask for."""
    loss = LOSS
    __slots__ = ("spared",)

    def recvfrom(self, size: int, flags: int = 0) -> tuple[bytes, Any]:  # type: ignore[override]
        while True:
            got = super().recvfrom(size, flags)
            self.spared -= 1
            if self.spared >= 0 or self.chance.random() >= self.loss:
                return got


def lossy_socket(kind: int, protocol: int) -> socket.socket:
    """The result of `msmqwire.qm.runtime.multicast.sockets.new_socket`, with losses."""
    made = Lossy(socket.AF_INET, kind, protocol)
    made.setblocking(False)
    made.spared = 10
    return made


ASKS_SOON = {"NAK_RDATA_IVL": 0.3, "NAK_RPT_IVL": 0.2, "NAK_NCF_RETRIES": 300, "NAK_DATA_RETRIES": 300}
"""Constants of `msmqwire.pgm.receive_window`: a packet that is lost six times in a row takes twelve seconds
otherwise. There are enough attempts for a loaded machine."""


if __name__ == "__main__":
    sockets.new_socket = lossy_socket
    for name, value in ASKS_SOON.items():
        setattr(receive_window, name, value)
    main()
