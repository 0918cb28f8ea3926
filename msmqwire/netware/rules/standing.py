"""Who is known: those are bound by the limit of all files alone, the rest have shares of it."""

from __future__ import annotations

from msmqwire.netware.model.bindery import Q_OPERATORS
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.files import AnyFile, StoredJobFile
from msmqwire.netware.rules.equivalence import Equivalence
from msmqwire.netware.rules.file_space import KNOWN, Account
from msmqwire.netware.rules.logins import has_given_password
from msmqwire.netware.rules.objects import Objects


class Standing:
    """Finds the account of a caller for a file.

    Known are supervisors, operators for the jobs of their queue, and callers that have logged in with a
    password that a supervisor gave.
    """

    def __init__(self, objects: Objects, equivalence: Equivalence) -> None:
        self._objects, self._equivalence = objects, equivalence

    def account_of(self, caller: Caller, file: AnyFile) -> Account:
        """Return the account for which bytes of a caller are counted."""
        object_id = caller.effective_id
        if caller.has_proved or self._is_named(object_id, file):
            return KNOWN
        return Account(_text(object_id), caller.origin)

    def account_of_owner(self, object_id: int | None, file: AnyFile) -> Account:
        """Return the account for a file that was there at the start, from an address that is forgotten."""
        owner = self._objects.get(object_id)
        if (owner is not None and has_given_password(owner)) or self._is_named(object_id, file):
            return KNOWN
        return Account(_text(object_id))

    def _is_named(self, object_id: int | None, file: AnyFile) -> bool:
        """Return whether an administrator has named an object as one that administers, too."""
        if self._equivalence.is_supervisor(object_id):
            return True
        queue = self._objects.get(file.queue_id) if isinstance(file, StoredJobFile) else None
        return queue is not None and self._equivalence.admitted(object_id, queue, Q_OPERATORS)


def _text(object_id: int | None) -> str:
    return f"{object_id or 0:08X}"
