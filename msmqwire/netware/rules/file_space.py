"""The bytes of all files, in shares: an object and an address that have proved nothing have a part at most.

Bytes are counted for whoever wrote them, and given back with their file. After a restart those of a file
are its owner's.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msmqwire.errors import NcpRefused
from msmqwire.names.printable import counted
from msmqwire.ncp.constants import CompletionCode
from msmqwire.netware.model.files import AnyFile
from msmqwire.netware.model.settings import Settings
from msmqwire.service.origin_shares import OriginShares

_SIZE_MAX: Final = 0xFFFFFFFF
"""The largest file size that calls can express: a file ends before the last offset."""


class Account(NamedTuple):
    """For whom bytes are counted; empty for those who are bound by the limit of all files alone.

    Attributes:
        object_id: the object, in eight hexadecimal digits.
        origin: its address, as `origin_of` has it; empty too if it is not known.
    """

    object_id: str = ""
    origin: str = ""


KNOWN: Final = Account()


class ShareUsedUp(NcpRefused):
    """There is room, but not for this account."""


class FileSpace:
    """Counts the bytes of each file, for an account each, and decides whether there may be more.

    Attributes:
        by_object, by_origin: the bytes of all files.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._sizes: dict[AnyFile, int] = {}
        self._parts: dict[AnyFile, dict[Account, int]] = {}
        most, own, reserve = (
            settings.files_bytes_max, settings.files_per_origin_percent, settings.files_reserve_percent,
        )  # fmt: skip
        self.by_object = OriginShares(most, (), own=own, reserve=reserve)
        self.by_origin = OriginShares(most, (), own=own, reserve=reserve)

    @property
    def used(self) -> int:
        """The bytes of all files."""
        return self.by_object.used

    def disk_has(self, spare: int) -> None:
        """Take note of the bytes that the disk can hold beside the files of now."""
        most = min(self._settings.files_bytes_max, self.used + max(spare, 0))
        self.by_object.resize(most)
        self.by_origin.resize(most)

    def size(self, file: AnyFile) -> int:
        """Return the size of a file in bytes."""
        return self._sizes.get(file, 0)

    def __contains__(self, file: AnyFile) -> bool:
        return file in self._parts

    def check(self, file: AnyFile, size: int, account: Account) -> None:
        """Check that a file may grow to `size` bytes by those of an account.

        Raises:
            NcpRefused: OUT_OF_DISK_SPACE; a ShareUsedUp if others may still write.
        """
        more = size - self.size(file)
        if (
            size > min(self._settings.file_bytes_max, _SIZE_MAX)
            or self.used + more > self._settings.files_bytes_max
        ):
            raise NcpRefused(
                f"no room for a file of {counted(size, 'byte')}", CompletionCode.OUT_OF_DISK_SPACE
            )
        for shares, who in ((self.by_object, account.object_id), (self.by_origin, account.origin)):
            if who and not shares.fits(who, more):
                raise ShareUsedUp(
                    f"the files of {who} have their share of the room", CompletionCode.OUT_OF_DISK_SPACE
                )

    def add(self, file: AnyFile, count: int, account: Account = KNOWN) -> None:
        """Count more bytes of a file."""
        parts = self._parts.setdefault(file, {})
        parts[account] = parts.get(account, 0) + count
        self._sizes[file] = self.size(file) + count
        if count:
            self.by_object.take(account.object_id, count)
            self.by_origin.take(account.origin, count)

    def set_size(self, file: AnyFile, size: int) -> None:
        """Note the size of a file: what it lacks was written last, what it has more is nobody's."""
        lost = self.size(file) - size
        if lost < 0:
            self.add(file, -lost)
            return
        self._sizes[file] = size
        parts = self._parts[file]
        for account in reversed(list(parts)):
            less = min(lost, parts[account])
            parts[account] -= less
            lost -= less
            self._give_back(account, less)

    def move(self, file: AnyFile, to: AnyFile) -> None:
        """Count the bytes of a file as those of another one, which replaces it."""
        self._parts[to], self._sizes[to] = self._parts.pop(file, {}), self._sizes.pop(file, 0)

    def delete(self, file: AnyFile) -> None:
        """Give the bytes of a file back."""
        self._sizes.pop(file, None)
        for account, count in self._parts.pop(file, {}).items():
            self._give_back(account, count)

    def _give_back(self, account: Account, count: int) -> None:
        if count:
            self.by_object.give_back(account.object_id, count)
            self.by_origin.give_back(account.origin, count)
