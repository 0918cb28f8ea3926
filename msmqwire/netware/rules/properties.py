"""Calls about the properties of objects: items and sets."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from msmqwire.errors import NcpRefused
from msmqwire.names.printable import counted
from msmqwire.ncp.constants import SEGMENT_SIZE, CompletionCode, ObjectType
from msmqwire.netware.model import names
from msmqwire.netware.model.bindery import (
    GROUP_MEMBERS,
    GROUPS_IM_IN,
    IDENTITY_PROPERTIES,
    LOGGED_READ_SUPER_WRITE,
    OBJECT_READ_SUPER_WRITE,
    Q_OPERATORS,
    SECURITY_EQUALS,
    BinderyObject,
    Property,
    PropertyValue,
)
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.settings import Settings
from msmqwire.netware.rules.bindery_rights import BinderyRights
from msmqwire.netware.rules.objects import Objects
from msmqwire.netware.rules.refusals import limit_reached

_MEMBERS_OF_A_SEGMENT: Final = SEGMENT_SIZE // 4
_OPERATOR_TYPES: Final = (ObjectType.NWOT_USER, ObjectType.NWOT_GROUP)  # QMS-qoperators-06


class BinderyProperties:
    """The properties of all objects. Properties of identity and equivalence are for supervisors alone."""

    def __init__(self, settings: Settings, objects: Objects, rights: BinderyRights) -> None:
        self._settings, self._objects, self._rights = settings, objects, rights

    def create(
        self,
        caller: Caller,
        object_id: int,
        name: str,
        *,
        is_set: bool,
        security: int,
        dynamic: bool = False,
    ) -> None:
        """Give an object a property without a value.

        Raises:
            NcpRefused: NO_SUCH_OBJECT, INVALID_NAME, WILD_CARD_NOT_ALLOWED, NO_PROPERTY_CREATE_RIGHTS,
                INVALID_BINDERY_SECURITY, PROPERTY_ALREADY_EXISTS or SERVER_OUT_OF_MEMORY.
        """
        holder = self._objects[object_id]
        name = names.property_name(name)
        if not self._may_change(caller, holder, name):
            raise NcpRefused(
                f"no right to give {holder.name} properties", CompletionCode.NO_PROPERTY_CREATE_RIGHTS
            )
        self._rights.check_security(caller, holder, security)
        if name in holder.properties:
            raise NcpRefused(f"{holder.name} has {name} already", CompletionCode.PROPERTY_ALREADY_EXISTS)
        if len(holder.properties) >= self._settings.properties_max:
            raise limit_reached(f"properties of {holder.name}")
        # QMS-qprops-03, QMS-createq-14 and QMS-createqs-05
        self._objects.replace(holder.with_property(Property(name, is_set, security, dynamic)))

    def delete(self, caller: Caller, object_id: int, name: str) -> None:
        """Delete a property with its value.

        Raises:
            NcpRefused: NO_SUCH_OBJECT, NO_SUCH_PROPERTY, NO_PROPERTY_DELETE_RIGHTS.
        """
        holder, found = self._found(object_id, name)
        if not (
            self._may_change(caller, holder, found.name) and self._rights.may_write(caller, holder, found)
        ):
            raise NcpRefused(f"no right to delete {found.name}", CompletionCode.NO_PROPERTY_DELETE_RIGHTS)
        self._objects.replace(holder.without_property(found.name))

    def scan(self, caller: Caller, object_id: int, pattern: str = "*") -> list[Property]:
        """Return the properties that the caller may read, by name.

        Raises:
            NcpRefused: NO_SUCH_OBJECT, NO_OBJECT_READ_RIGHTS.
        """
        holder = self._objects[object_id]
        if not self._rights.may_read(caller, holder):
            raise NcpRefused(f"no right to see {holder.name}", CompletionCode.NO_OBJECT_READ_RIGHTS)
        return [
            found
            for name, found in sorted(holder.properties.items())
            if names.matches(name, pattern) and self._rights.may_read(caller, holder, found)
        ]

    def read(self, caller: Caller, object_id: int, name: str, segment: int = 1) -> PropertyValue:
        """Return a segment of a value; segments count from 1. An item without a value has none.

        Raises:
            NcpRefused: NO_SUCH_OBJECT, NO_SUCH_PROPERTY, NO_PROPERTY_READ_RIGHTS, NO_SUCH_SEGMENT.
        """
        found = self._readable(caller, object_id, name)
        count = -(-len(found.members) // _MEMBERS_OF_A_SEGMENT) or 1 if found.is_set else len(found.segments)
        if not 1 <= segment <= count:
            raise NcpRefused(f"{found.name} has no segment {segment}", CompletionCode.NO_SUCH_SEGMENT)
        more, flags = segment < count, found.flags
        if not found.is_set:
            return PropertyValue(found.segments[segment - 1], (), more, flags)
        start = (segment - 1) * _MEMBERS_OF_A_SEGMENT
        return PropertyValue(
            b"", tuple(sorted(found.members))[start : start + _MEMBERS_OF_A_SEGMENT], more, flags
        )

    def write(
        self, caller: Caller, object_id: int, name: str, data: bytes, *, segment: int = 1, more: bool = False
    ) -> None:
        """Write a segment of an item, at most the one after its last.

        Args:
            data: at most 128 bytes, padded with zeroes.
            more: whether segments after this one are kept.

        Raises:
            NcpRefused: NO_SUCH_OBJECT, NO_SUCH_PROPERTY, NO_PROPERTY_WRITE_RIGHTS, NO_SUCH_SEGMENT,
                SERVER_OUT_OF_MEMORY; BAD_LENGTH for more than a segment; FAILURE for a set.
        """
        holder, found = self._writable(caller, object_id, name)
        if found.is_set:
            raise NcpRefused(f"{found.name} is a set", CompletionCode.FAILURE)
        if len(data) > SEGMENT_SIZE:
            raise NcpRefused(f"a segment of {counted(len(data), 'byte')}", CompletionCode.BAD_LENGTH)
        if not 1 <= segment <= len(found.segments) + 1:
            raise NcpRefused(f"{found.name} has no segment {segment}", CompletionCode.NO_SUCH_SEGMENT)
        if segment > self._settings.segments_max:
            raise limit_reached(f"segments of {found.name}")
        after = found.segments[segment:] if more else ()
        segments = (*found.segments[: segment - 1], data.ljust(SEGMENT_SIZE, b"\0"), *after)  # QMS-createq-05
        self._objects.replace(holder.with_property(replace(found, segments=segments)))  # QMS-createqs-06

    def add_member(self, caller: Caller, object_id: int, name: str, member_id: int) -> None:
        """Add an object to a set.

        Raises:
            NcpRefused: NO_SUCH_OBJECT, also for the member; NO_SUCH_PROPERTY, NOT_SET_PROPERTY,
                NO_PROPERTY_WRITE_RIGHTS, MEMBER_ALREADY_EXISTS, SERVER_OUT_OF_MEMORY.
        """
        holder, found = self._writable_set(caller, object_id, name)
        member = self._objects[member_id]  # QMS-qservers-03
        if found.name == Q_OPERATORS and member.type not in _OPERATOR_TYPES:
            raise NcpRefused(f"{member.name} is neither a user nor a group", CompletionCode.NO_SUCH_OBJECT)
        if member_id in found.members:
            raise NcpRefused(
                f"{member.name} is in {found.name} already", CompletionCode.MEMBER_ALREADY_EXISTS
            )
        self._check_room(found)
        # QMS-createq-13, QMS-createqs-08 and QMS-createq-07
        self._objects.replace(holder.with_property(found.with_member(member_id)))

    def delete_member(self, caller: Caller, object_id: int, name: str, member_id: int) -> None:
        """Take an object out of a set.

        Raises:
            NcpRefused: NO_SUCH_OBJECT, NO_SUCH_PROPERTY, NOT_SET_PROPERTY, NO_PROPERTY_WRITE_RIGHTS,
                NO_SUCH_MEMBER.
        """
        holder, found = self._writable_set(caller, object_id, name)
        self._check_member(found, member_id)
        self._objects.replace(holder.with_property(found.without_member(member_id)))  # QMS-createq-13

    def check_member(self, caller: Caller, object_id: int, name: str, member_id: int) -> None:
        """Check that an object is itself in a set: groups and equivalence don't count.

        Raises:
            NcpRefused: NO_SUCH_MEMBER if it is not; NO_SUCH_OBJECT, NO_SUCH_PROPERTY, NOT_SET_PROPERTY,
                NO_PROPERTY_READ_RIGHTS.
        """
        found = self._readable(caller, object_id, name)
        _check_set(found)
        self._check_member(found, member_id)

    def join_group(self, caller: Caller, member_id: int, group_id: int) -> None:
        """Make an object a member of a group, in all related properties of both.

        Raises:
            NcpRefused: NO_PROPERTY_WRITE_RIGHTS for all but supervisors; NO_SUCH_OBJECT, also for an object
                that is not a group; MEMBER_ALREADY_EXISTS, SERVER_OUT_OF_MEMORY.
        """
        group, member = self._objects[group_id], self._objects[member_id]
        self._check_supervisor(caller)
        if group.type != ObjectType.NWOT_GROUP or group_id == member_id:
            raise NcpRefused(f"{group.name} is not a group", CompletionCode.NO_SUCH_OBJECT)
        joined = self._joined(group, GROUP_MEMBERS, LOGGED_READ_SUPER_WRITE, member_id)
        member = self._joined(member, GROUPS_IM_IN, LOGGED_READ_SUPER_WRITE, group_id)
        if group_id not in member.members(SECURITY_EQUALS):
            member = self._joined(member, SECURITY_EQUALS, OBJECT_READ_SUPER_WRITE, group_id)
        self._objects.replace(joined)
        self._objects.replace(member)

    def make_equivalent(self, caller: Caller, object_id: int, to_id: int) -> None:
        """Make an object security equivalent to another.

        Raises:
            NcpRefused: NO_PROPERTY_WRITE_RIGHTS for all but supervisors; NO_SUCH_OBJECT,
                MEMBER_ALREADY_EXISTS, SERVER_OUT_OF_MEMORY.
        """
        changed, other = self._objects[object_id], self._objects[to_id]
        self._check_supervisor(caller)
        self._objects.replace(self._joined(changed, SECURITY_EQUALS, OBJECT_READ_SUPER_WRITE, other.id))

    def _joined(self, holder: BinderyObject, name: str, security: int, member_id: int) -> BinderyObject:
        """Return an object with one more member in a set, which is created if it is missing."""
        found = holder.properties.get(name)
        if found is None:
            if len(holder.properties) >= self._settings.properties_max:
                raise limit_reached(f"properties of {holder.name}")
            found = Property(name, True, security)
        if member_id in found.members:
            raise NcpRefused(f"{holder.name} has it in {name}", CompletionCode.MEMBER_ALREADY_EXISTS)
        self._check_room(found)
        return holder.with_property(found.with_member(member_id))

    def _found(self, object_id: int, name: str) -> tuple[BinderyObject, Property]:
        holder = self._objects[object_id]
        found = holder.properties.get(name.upper())
        if found is None:
            raise NcpRefused(f"{holder.name} has no {name!r}", CompletionCode.NO_SUCH_PROPERTY)
        return holder, found

    def _readable(self, caller: Caller, object_id: int, name: str) -> Property:
        holder, found = self._found(object_id, name)
        if not self._rights.may_read(caller, holder, found):
            # QMS-qdir-03
            raise NcpRefused(f"no right to read {found.name}", CompletionCode.NO_PROPERTY_READ_RIGHTS)
        return found

    def _writable(self, caller: Caller, object_id: int, name: str) -> tuple[BinderyObject, Property]:
        holder, found = self._found(object_id, name)
        if found.name in IDENTITY_PROPERTIES:
            self._check_supervisor(caller)
        if not self._rights.may_write(caller, holder, found):
            # QMS-qusers-04
            raise NcpRefused(f"no right to write {found.name}", CompletionCode.NO_PROPERTY_WRITE_RIGHTS)
        return holder, found

    def _writable_set(self, caller: Caller, object_id: int, name: str) -> tuple[BinderyObject, Property]:
        holder, found = self._writable(caller, object_id, name)
        _check_set(found)
        return holder, found

    def _may_change(self, caller: Caller, holder: BinderyObject, name: str) -> bool:
        """Whether a caller may give an object a property of this name, or remove it."""
        if name in IDENTITY_PROPERTIES and not self._rights.is_supervisor(caller):
            return False
        return self._rights.may_write(caller, holder)

    def _check_supervisor(self, caller: Caller) -> None:
        if not self._rights.is_supervisor(caller):
            raise NcpRefused(
                "only a supervisor changes equivalences", CompletionCode.NO_PROPERTY_WRITE_RIGHTS
            )

    def _check_room(self, found: Property) -> None:
        if len(found.members) >= self._settings.members_max:
            raise limit_reached(f"members of {found.name}")

    def _check_member(self, found: Property, member_id: int) -> None:
        if member_id not in found.members:
            raise NcpRefused(f"{member_id:08X} is not in {found.name}", CompletionCode.NO_SUCH_MEMBER)


def _check_set(found: Property) -> None:
    if not found.is_set:
        raise NcpRefused(f"{found.name} is an item", CompletionCode.NOT_SET_PROPERTY)
