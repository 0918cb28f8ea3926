"""The identities of a caller: itself, its groups, and the objects that it is security equivalent to."""

from __future__ import annotations

from msmqwire.ncp.constants import SUPERVISOR_ID, ObjectType
from msmqwire.netware.model.bindery import (
    EVERYONE,
    GROUP_MEMBERS,
    GROUPS_IM_IN,
    SECURITY_EQUALS,
    BinderyObject,
)
from msmqwire.netware.rules.objects import Objects


class Equivalence:
    """Security equivalence in the bindery: one step, never that of equivalents or groups.

    An object counts as itself, the members of its SECURITY_EQUALS, its groups by its own GROUPS_I'M_IN or by
    their GROUP_MEMBERS, and the group EVERYONE, to which all objects belong.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def identities(self, object_id: int | None) -> frozenset[int]:
        """Return the IDs of the objects that an object counts as; none if there is no such object."""
        found = self._objects.get(object_id)
        if found is None:
            return frozenset()
        everyone = self._objects.find(EVERYONE, ObjectType.NWOT_GROUP)  # QMS-qusers-06
        # QMS-qusers-02 and QMS-qusers-03
        return frozenset().union(
            (found.id,),
            found.members(SECURITY_EQUALS),
            found.members(GROUPS_IM_IN),
            self._objects.sets_of(found.id, GROUP_MEMBERS),
            () if everyone is None else (everyone.id,),  # QMS-qusers-06
        )

    def is_logged_in(self, object_id: int | None) -> bool:
        """Return whether an object has this ID; after its deletion none has."""
        return self._objects.get(object_id) is not None

    def is_supervisor(self, object_id: int | None) -> bool:
        """Return whether an object is SUPERVISOR or equivalent to it."""
        found = self._objects.get(object_id)
        return found is not None and (
            found.id == SUPERVISOR_ID or SUPERVISOR_ID in found.members(SECURITY_EQUALS)  # QMS-qobject-09
        )

    def admitted(self, object_id: int | None, holder: BinderyObject, property_name: str) -> bool:
        """Return whether a set admits an object: itself, one of its groups or equivalents is a member."""
        members = holder.members(property_name)
        # QMS-createq-11, QMS-qoperators-02, QMS-qusers-02, QMS-qusers-03, QMS-qusers-05 and QMS-qservers-02
        return not members.isdisjoint(self.identities(object_id))
