"""Trustees of directories, and their rights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from msmqwire.ncp.constants import TrusteeRights
from msmqwire.netware.model import names
from msmqwire.netware.model.changes import Change, DeleteTrustee, PutTrustee
from msmqwire.netware.model.files import Trustee
from msmqwire.netware.model.settings import Settings
from msmqwire.netware.rules.equivalence import Equivalence
from msmqwire.netware.rules.refusals import limit_reached

ALL_RIGHTS = TrusteeRights(0xFF)


class Trustees:
    """Assignments of rights. An assignment holds below its directory up to the next one of the same
    object.
    """

    def __init__(self, settings: Settings, equivalence: Equivalence, changes: list[Change]) -> None:
        self._settings, self._equivalence, self._changes = settings, equivalence, changes
        self._by_path: dict[str, dict[int, TrusteeRights]] = {}
        self._paths_of: dict[int, set[str]] = defaultdict(set)

    def __iter__(self) -> Iterator[Trustee]:
        return (
            Trustee(path, object_id, rights)
            for path, trustees in self._by_path.items()
            for object_id, rights in trustees.items()
        )

    def restore(self, trustees: Iterable[Trustee]) -> None:
        """Take the rows of a store."""
        for found in trustees:
            self._put(found)

    def effective_rights(self, object_id: int | None, path: str) -> TrusteeRights:
        """Return the rights of an object in a directory, joined with those of all objects that it counts
        as.
        """
        if self._equivalence.is_supervisor(object_id):
            return ALL_RIGHTS
        rights = TrusteeRights(0)
        missing = set(self._equivalence.identities(object_id))
        while missing:
            trustees = self._by_path.get(path, {})
            for identity in missing & trustees.keys():
                rights |= trustees[identity]
                missing.discard(identity)
            above = names.parent(path)
            if above == path:
                break
            path = above
        return rights

    def put(self, trustee: Trustee) -> None:
        """Assign rights to an object.

        Raises:
            NcpRefused: SERVER_OUT_OF_MEMORY.
        """
        there = self._by_path.get(trustee.path, {})
        if trustee.object_id not in there and len(there) >= self._settings.trustees_max:
            raise limit_reached(f"trustees of {trustee.path}")
        self._put(trustee)
        self._changes.append(PutTrustee(trustee))

    def forget_object(self, object_id: int) -> None:
        """Delete all assignments of an object."""
        for path in self._paths_of.pop(object_id, ()):
            del self._by_path[path][object_id]
            self._changes.append(DeleteTrustee(path, object_id))

    def _put(self, trustee: Trustee) -> None:
        self._by_path.setdefault(trustee.path, {})[trustee.object_id] = TrusteeRights(trustee.rights)
        self._paths_of[trustee.object_id].add(trustee.path)
