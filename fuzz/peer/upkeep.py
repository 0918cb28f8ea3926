"""Whether the peer serves, and how it is brought back."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass, field
from typing import Final

from fuzz.peer.failure import SILENT, PeerFailure
from fuzz.peer.performing import Stage
from fuzz.peer.watcher import Silent, Watcher, noticing
from msmqwire.names.printable import in_seconds

BACK_S: Final = 30.0
"""The time to wait for a peer that has ended, or answers wrongly after a case."""
_PAUSE_S: Final = 0.1


@dataclass(slots=True)
class Upkeep:
    """Keeps a peer up.

    Attributes:
        stage: its stage.
        protocol: the protocol in which it is probed.
        restart: the shell command that brings it back; None if it is restarted otherwise.
        watcher: is notified of a wait.
        restarts: the number of restarts.
    """

    stage: Stage
    protocol: str
    restart: str | None
    watcher: Watcher = field(default_factory=Silent)
    restarts: int = 0

    def down(self) -> PeerFailure | None:
        """Return why a fresh session is not answered; None if it is."""
        failure = self.stage.fresh(self.protocol)
        return failure if failure is not None and failure.what in SILENT else None

    def unserved(self) -> PeerFailure | None:
        """Return why the peer does not serve; None if it does. It takes longer than `down`."""
        probe = self.stage.probes.get(self.protocol)
        return self.down() if probe is None else self.stage.perform(probe).failure

    def bring_back(self, deadline: float, *, quick: bool = False) -> bool:
        """Wait until the peer serves, after starting it if that is our business; return whether it does.

        Args:
            deadline: the end of the wait, by the monotonic clock; `BACK_S` is the longest.
            quick: whether a fresh session is enough.
        """
        began = time.monotonic()
        deadline = min(deadline, began + BACK_S, self.stage.until)
        bad = self.down if quick else self.unserved
        left = in_seconds(round(max(0.0, deadline - began)))
        with noticing(self.watcher, f"the peer does not serve: waiting up to {left} for it") as wait:
            if bad() is not None and bad() is not None:  # it may just have been busy
                self._restart()
                while bad() is not None:
                    if time.monotonic() >= deadline:
                        return False
                    time.sleep(min(_PAUSE_S, max(0.0, deadline - time.monotonic())))
        if wait.noticed and not self.stage.over:
            self.watcher.line(f"the peer serves again, after {time.monotonic() - began:.1f} s")
        return not self.stage.over

    def _restart(self) -> None:
        if self.restart is None:
            return
        self.restarts += 1
        subprocess.Popen(
            self.restart,
            shell=True,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
