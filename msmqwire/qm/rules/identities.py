"""Users of the directory: their certificates, and their groups for access checks."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from msmqwire.qm.directory.attributes import Operator
from msmqwire.qm.directory.interface import Directory
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.directory_objects import User
from msmqwire.qm.rules.directory_events import DirectoryEvents

_CACHED: Final = 1_024


class Identities:
    """Finds users by their SIDs.

    Attributes:
        users: the source of users if the queue manager has no directory; None for none.
    """

    def __init__(self, context: Context, directory: DirectoryEvents, users: Directory | None = None) -> None:
        self._context, self._directory, self.users = context, directory, users
        self._groups: OrderedDict[bytes, tuple[int, frozenset[bytes]]] = OrderedDict()  # the oldest first

    def user(self, sid: bytes) -> User | None:
        """Return the user with a SID: [MS-MQQB] 3.1.5.8.3. None if there is none, or the directory fails."""
        filters = [("SecurityIdentifier", Operator.EQUALS, sid)]  # MQQB-3.1.5.8.3-09
        if self.users is not None and not self._context.queue_manager.directory_integrated:
            found = self.users.read_directory("User", filters).object
        else:
            found = self._directory.read_directory("User", filters).object
        return found if isinstance(found, User) else None

    def groups_of(self, sid: bytes) -> frozenset[bytes]:
        """Return the SIDs of the groups of a user, for a token: MQQB-3.1.5.8.3-31. None for an unknown user.

        Answers of the directory are used for `Settings.user_cert_lifetime_ms`.
        """
        now, known = self._context.now, self._groups.get(sid)
        if known is not None and now - known[0] < self._context.settings.user_cert_lifetime_ms:
            return known[1]
        user = self.user(sid)
        groups = frozenset() if user is None else frozenset(user.groups)
        self._groups.pop(sid, None)
        if len(self._groups) >= _CACHED:
            self._groups.popitem(last=False)
        self._groups[sid] = now, groups
        return groups

    def forget(self) -> None:
        """Read all users from the directory again: it has been changed here."""
        self._groups.clear()
