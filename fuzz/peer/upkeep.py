"""Whether the peer is up, and how it is brought back."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass
from typing import Final

from fuzz.peer.failure import SILENT, PeerFailure
from fuzz.peer.performing import Stage

BACK_S: Final = 30.0
"""The time to wait for a peer that has ended."""
_PAUSE_S: Final = 0.1


@dataclass(slots=True)
class Upkeep:
    """Keeps a peer up.

    Attributes:
        stage: its stage.
        protocol: the protocol in which it is probed.
        restart: the shell command that brings it back; None if it is restarted otherwise.
        restarts: the number of restarts.
    """

    stage: Stage
    protocol: str
    restart: str | None
    restarts: int = 0

    def down(self) -> PeerFailure | None:
        """Return why a fresh session is not answered; None if it is."""
        failure = self.stage.fresh(self.protocol)
        return failure if failure is not None and failure.what in SILENT else None

    def bring_back(self) -> bool:
        """Wait until the peer is up, after starting it if that is our business; return whether it is."""
        if self.down() is None or self.down() is None:  # it may just have been busy
            return True
        if self.restart is not None:
            self.restarts += 1
            subprocess.Popen(
                self.restart,
                shell=True,
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        deadline = time.monotonic() + BACK_S
        while time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
            if self.down() is None:
                return True
        return False
