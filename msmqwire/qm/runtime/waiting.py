"""Local access that waits for messages across restarts of the server, and does not block its start."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Final

from msmqwire.errors import OutcomeUnknown, StoreInUse, Unreachable
from msmqwire.qm.runtime.data_folder import STORE, DataFolder
from msmqwire.qm.runtime.local import attach, in_store
from msmqwire.service.control.client import GONE, Local, LocalBase, server_of

_LOOK_S: Final = 60.0
"""The longest interval in seconds before the server or the store is checked again."""
_POLL_S: Final = 0.1
_SHARE: Final = 5
"""The pause between two checks of the store, in durations of a check: the store may change endlessly."""
_CHANGING: Final = (DataFolder.control_name, STORE, STORE + "-wal")
"""Files that show that a process serves the folder or has opened its store."""

_Seen = list[tuple[int, int, int] | None]


class WaitingLocal(LocalBase):
    """Access to the queues of a folder for a client that waits long.

    It waits for a server that has gone, and never opens the store in its place. Without a server for the
    folder, the store is open only during a check: other processes may use it, and a server may start, through
    which the wait continues.
    """

    def __init__(self, path: str | os.PathLike[str], waits: Callable[[float], None]) -> None:
        """Attach to a folder, see `msmqwire.qm.runtime.local.attach`.

        `waits` is called when the server has gone, with the seconds that are left to wait for it.
        """
        self._folder, self._waits = DataFolder(path), waits
        self._local: Local | None = attach(path)
        self._through_server = self._local.served

    def call(self, op: str, /, **request: Any) -> dict[str, Any]:
        """Run a request, see `Local.call`. For a request that waits use `wait`."""
        return self._present().call(op, **request)

    def wait(self, op: str, seconds: float, /, **request: Any) -> list[dict[str, Any]]:
        """Receive or peek at messages, and wait up to a time for the first one; return them.

        The session must not hold received messages. Raises Unreachable if the server has gone and is not back
        in that time; OutcomeUnknown and all others of `Local.call`.
        """
        until = time.monotonic() + seconds
        looked, outage = 0.0, False
        while True:
            began = time.monotonic()
            try:
                local = self._present()
                wait_s = min(_left(until), _LOOK_S) if local.served else 0
                answer = local.call(op, wait_ms=int(wait_s * 1000), **request)
            except StoreInUse:
                if not _left(until):
                    raise
                self._pause(until)
                continue
            except OutcomeUnknown:
                raise
            except Unreachable:
                self._leave()
                if not _left(until):
                    raise
                if not outage:
                    self._waits(_left(until))
                    outage = True
                self._pause(until)
                continue
            outage = False
            messages: list[dict[str, Any]] = answer["messages"]
            if messages or not _left(until):
                return messages
            if not local.served:
                self._leave()
                looked = time.monotonic()
                self._until_changed(min(until, looked + _LOOK_S), looked + _SHARE * (looked - began))

    def _present(self) -> Local:
        """Return the present access, or a new one if it was left.

        Raises Unreachable if the server is not back, StoreInUse if another process has the store.
        """
        if self._local is None:
            self._local = server_of(self._folder)
            if self._local is None and self._through_server:
                raise Unreachable(f"{GONE}, and is not back: no server runs for {self._folder.path}")
            if self._local is None:
                self._local = in_store(self._folder, create=False)
            self._through_server = self._local.served
        return self._local

    def _leave(self) -> None:
        local, self._local = self._local, None
        if local is not None:
            local.close()

    @staticmethod
    def _pause(until: float) -> None:
        time.sleep(min(_POLL_S, _left(until)))

    def _until_changed(self, until: float, earliest: float) -> None:
        """Wait until a server writes its address, or another process has used the store."""
        before = self._seen()
        while _left(until) and (time.monotonic() < earliest or self._seen() == before):
            self._pause(until)

    def _seen(self) -> _Seen:
        seen: _Seen = []
        for name in _CHANGING:
            try:
                status = os.stat(self._folder.path / name)
            except OSError:
                seen.append(None)
            else:
                seen.append((status.st_mtime_ns, status.st_size, status.st_ino))
        return seen

    def close(self) -> None:
        self._leave()


def _left(until: float) -> float:
    """Return the seconds that are left."""
    return max(0.0, until - time.monotonic())
