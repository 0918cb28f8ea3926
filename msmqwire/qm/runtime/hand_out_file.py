"""The messages that programs have, written down beside the store: they count if the server is killed.

A commit for each would double the syncs of programs that receive and delete one message at a time. A note is
a write of 16 bytes without a sync instead: the operating system has it if the process is killed; if the
computer itself fails, a count may be one less.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Final
from weakref import finalize
from zlib import crc32

from msmqwire.durable import UNFOLLOWED
from msmqwire.qm.model.hand_outs import HandOuts
from msmqwire.service.logs import log

if TYPE_CHECKING:
    from msmqwire.service.store.sqlite import SqliteStore

NAME: Final = "handed-out"
SLOTS_MAX: Final = 1 << 18
"""Limit of messages that are written down at a time: 4 MiB."""
_NOTE: Final = Struct("<QI")
_SUM: Final = Struct("<I")
_SLOT: Final = _NOTE.size + _SUM.size
_NOT_WRITTEN: Final = -1


def hand_outs_of(store: SqliteStore) -> HandOutFile:
    """Return the notes beside a store."""
    return HandOutFile(store.path.with_name(NAME))


class HandOutFile(HandOuts):
    """Notes in a file of slots: LookupIdentifier, count of deliveries, and the CRC-32 of both.

    A slot is used again once its message has ended, and not cleared: no LookupIdentifier is used again, and
    the count of a message that was given back is in its row. Damaged slots are ignored.
    """

    def __init__(self, path: Path) -> None:
        """Use a file, which is created with the first note."""
        super().__init__()
        self._path = path
        self._file: int | None = None
        self._free: list[int] = []
        self._slots = 0
        self._failed = False

    def note(self, lookup_identifier: int, deliveries: int, *, lasting: bool) -> None:
        slot = _NOT_WRITTEN
        if lasting and not self._failed and (self._free or self._slots < SLOTS_MAX):
            slot = self._slot()
            content = _NOTE.pack(lookup_identifier, deliveries)
            self._write(slot, content + _SUM.pack(crc32(content)))
        self._noted[lookup_identifier] = slot

    def _slot(self) -> int:
        if self._free:
            return self._free.pop()
        self._slots += 1
        return self._slots - 1

    def _write(self, slot: int, content: bytes) -> None:
        try:
            if self._file is None:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | UNFOLLOWED, 0o600)
                finalize(self, os.close, self._file)
            os.lseek(self._file, slot * _SLOT, os.SEEK_SET)
            os.write(self._file, content)
        except OSError as exc:  # programs go on; only a killed server would have counted by it
            self._failed = True
            log.warning("deliveries are not counted if the server is killed", extra={"error": str(exc)})

    def ended(self, lookup_identifier: int) -> bool:
        slot = self._noted.pop(lookup_identifier, None)
        if slot is None:
            return False
        if slot != _NOT_WRITTEN:
            self._free.append(slot)
        return True

    def withdraw(self, lookup_identifier: int) -> None:
        slot = self._noted.get(lookup_identifier, _NOT_WRITTEN)
        if slot != _NOT_WRITTEN and self._file is not None:
            self._write(slot, bytes(_SLOT))
        self.ended(lookup_identifier)

    def left(self) -> Mapping[int, int]:
        try:
            with self._path.open("rb") as file:
                content = file.read(SLOTS_MAX * _SLOT)
        except FileNotFoundError:
            return {}
        except OSError as exc:
            log.warning("deliveries before the last end are not counted", extra={"error": str(exc)})
            return {}
        found: dict[int, int] = {}
        for at in range(0, len(content) - _SLOT + 1, _SLOT):
            note = content[at : at + _NOTE.size]
            (checksum,) = _SUM.unpack_from(content, at + _NOTE.size)
            lookup_identifier, deliveries = _NOTE.unpack(note)
            if checksum == crc32(note):
                found[lookup_identifier] = max(deliveries, found.get(lookup_identifier, 0))
        return found
