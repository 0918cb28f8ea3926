"""The room on the disk of a store: publishers are stopped before consumers.

Receiving a message is a commit as well and needs some room, but frees many times as much. So no new messages
are accepted below a low-water mark of free space. A small reserve helps if another program has filled the
disk.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from msmqwire.service.logs import log

if TYPE_CHECKING:
    from msmqwire.service.store.sqlite import SqliteStore

MIN_FREE: Final = 64 << 20
"""Default of the low-water mark in bytes."""
POLL_S: Final = 1.0
"""Seconds between two checks of a disk that other programs write to as well."""
_PLENTY: Final = 1 << 30
"""Bytes above the mark: more than is written in `POLL_S`, between two checks."""
_LOG_SHARE: Final = 4
"""The log of the store may take this part of the mark: the store grows by as much when it is emptied."""
_RESERVE_SHARE: Final = 32
_RESUME_SHARE: Final = 4
"""Publishers resume when the room exceeds the mark by this part of it."""


class Room(Protocol):
    """The room on a disk, for a driver.

    Attributes:
        low: whether it is too small for new messages. plenty: whether it is large enough for one check every
            `POLL_S`.
        least: the bytes below which it is low; 0 for no such mark.
        spare: the bytes above that mark when it was measured last.
    """

    @property
    def least(self) -> int: ...

    @property
    def low(self) -> bool: ...

    @property
    def plenty(self) -> bool: ...

    @property
    def spare(self) -> int: ...

    def free(self) -> int:
        """Return the bytes available for new messages."""

    def look(self, *, tidy: bool = False) -> None:
        """Measure the room; with `tidy`, room that can be freed is freed first."""

    def release(self) -> bool:
        """Give up a reserve for a commit that was refused; return whether there was one."""


class DiskRoom:
    """The disk space left to the store of a server.

    Attributes:
        least: the low-water mark in bytes; 0 for none.
        low: whether the room is below that mark, so that no new messages may be accepted.
        plenty: whether the room is large enough for one check every `POLL_S`.
        spare: the bytes above the mark when the room was measured last.
    """

    def __init__(self, store: SqliteStore, least: int = MIN_FREE) -> None:
        self._store, self._folder = store, store.path.parent
        self._reserve = store.path.with_name(store.path.name + ".reserve")
        self._reserve_size = least // _RESERVE_SHARE
        self._has_reserve = self._reserve.exists()
        self.least, self.low, self.plenty, self.spare = least, False, False, 0
        if least:
            store.limit_log(least // _LOG_SHARE)
        self.look()

    def free(self) -> int:
        """Return the bytes available for new messages: free on the disk, or reusable inside the store.

        While the disk is almost full, the room inside can't be used: a change is logged on the disk first.
        """
        on_disk = free_on_disk(self._folder)
        if on_disk >= self.least + self.least // _RESUME_SHARE or on_disk < self.least // _LOG_SHARE:
            return on_disk
        return on_disk + self._store.reusable()

    def look(self, *, tidy: bool = False) -> None:
        """Set `low`, and restore the reserve once there is room for it.

        With `tidy` the log first frees its room if there is little.
        """
        if self.low and tidy:
            self._store.shorten_log()
        free, least = self.free(), self.least
        self.plenty, self.spare = free >= least + _PLENTY, free - least
        if self.low:
            self.low = free < least + least // _RESUME_SHARE
            if not self.low:
                log.warning("there is room on the disk again", extra={"free": free, "min_free": least})
        elif free < least:
            self.low = True
            self._store.shorten_log()
            log.error(
                "the disk is almost full: no new messages are accepted",
                extra={"free": free, "min_free": least},
            )
        if not (self.low or self._has_reserve) and free >= least + self._reserve_size:
            self._set_aside()

    def _set_aside(self) -> None:
        """Create the reserve, a file with allocated room on the disk."""
        if not self._reserve_size:
            return
        try:
            descriptor = os.open(self._reserve, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb") as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, self._reserve_size)
                else:
                    file.write(bytes(self._reserve_size))
            self._has_reserve = True
        except OSError as exc:
            log.warning("no room can be reserved", extra={"error": exc.strerror or str(exc)})
            self._reserve_size = 0
            with suppress(OSError):
                self._reserve.unlink(missing_ok=True)

    def release(self) -> bool:
        """Give up the reserve for a commit that was refused; return whether there was one."""
        if not self._has_reserve:
            return False
        self._has_reserve = False
        try:
            self._reserve.unlink()
        except OSError:
            return False
        log.warning("the reserved room is used", extra={"bytes": self._reserve_size})
        return True


def free_on_disk(folder: Path) -> int:
    """Return the free bytes of a disk for this user; an unknown disk counts as having enough."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 1 << 62
