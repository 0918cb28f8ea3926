"""Objects of the bindery and their properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from msmqwire.errors import InvalidValue
from msmqwire.ncp.constants import BinderySecurity, PropertyFlags

Q_DIRECTORY: Final = "Q_DIRECTORY"  # QMS-qprops-02
Q_USERS: Final = "Q_USERS"  # QMS-qprops-02
Q_OPERATORS: Final = "Q_OPERATORS"  # QMS-qprops-02
Q_SERVERS: Final = "Q_SERVERS"  # QMS-qprops-02
SECURITY_EQUALS: Final = "SECURITY_EQUALS"
GROUPS_IM_IN: Final = "GROUPS_I'M_IN"
GROUP_MEMBERS: Final = "GROUP_MEMBERS"
PASSWORD: Final = "PASSWORD"
EVERYONE: Final = "EVERYONE"
SUPERVISOR: Final = "SUPERVISOR"

IDENTITY_PROPERTIES: Final = frozenset({SECURITY_EQUALS, GROUPS_IM_IN, GROUP_MEMBERS, PASSWORD})
"""The properties that determine an object's identity and equivalences."""

# QMS-qobject-07 and QMS-qdir-02
ANY_READ_SUPER_WRITE: Final = BinderySecurity.NWBS_ANY_READ | BinderySecurity.NWBS_SUPER_WRITE
LOGGED_READ_SUPER_WRITE: Final = BinderySecurity.NWBS_LOGGED_READ | BinderySecurity.NWBS_SUPER_WRITE
OBJECT_READ_SUPER_WRITE: Final = BinderySecurity.NWBS_OBJECT_READ | BinderySecurity.NWBS_SUPER_WRITE
# QMS-qdir-01
SUPER_READ_SUPER_WRITE: Final = BinderySecurity.NWBS_SUPER_READ | BinderySecurity.NWBS_SUPER_WRITE
BINDERY_READ_BINDERY_WRITE: Final = BinderySecurity.NWBS_BINDERY_READ | BinderySecurity.NWBS_BINDERY_WRITE


@dataclass(frozen=True, slots=True)
class Property:
    """A property of an object: a set of objects, or an item with a value of up to some segments.

    Attributes:
        name: in capitals.
        is_set: whether it holds `members`; an item holds `segments`.
        security: the levels of `BinderySecurity` for reading and writing its value.
        dynamic: whether it is gone after a restart.
        segments: the value of an item, 128 bytes each except the last, which may be shorter.
        members: the IDs of the objects in a set.
    """

    name: str
    is_set: bool
    security: int
    dynamic: bool = False
    segments: tuple[bytes, ...] = ()
    members: frozenset[int] = frozenset()

    @property
    def flags(self) -> PropertyFlags:
        """The flags byte of the property."""
        return PropertyFlags(PropertyFlags.BF_SET * self.is_set | PropertyFlags.BF_DYNAMIC * self.dynamic)

    def with_member(self, object_id: int) -> Property:
        """Return the set with one more member."""
        return replace(self, members=self.members | {object_id})

    def without_member(self, object_id: int) -> Property:
        """Return the set without a member."""
        return replace(self, members=self.members - {object_id})


@dataclass(frozen=True, slots=True)
class BinderyObject:
    """An object of the bindery: a user, a group, a queue, a queue server, or any other.

    Attributes:
        id: assigned by the file server, and never given to another object.
        name: in capitals; unique among the objects of its type.
        type: an `ObjectType`, or a number of the application's.
        security: the levels of `BinderySecurity` for seeing it and for giving it properties.
        dynamic: whether it is gone after a restart.
        properties: by name.
    """

    id: int
    name: str
    type: int
    security: int = LOGGED_READ_SUPER_WRITE
    dynamic: bool = False
    properties: Mapping[str, Property] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.id < 0xFFFFFFFF:
            raise InvalidValue(f"{self.id:#x} is not an ID of an object")

    def members(self, name: str) -> frozenset[int]:
        """The members of a set; none if the object has no such property, or it is an item."""
        found = self.properties.get(name)
        return frozenset() if found is None else found.members

    def with_property(self, changed: Property) -> BinderyObject:
        """Return the object with this property added or replaced."""
        return replace(self, properties={**self.properties, changed.name: changed})

    def without_property(self, name: str) -> BinderyObject:
        """Return the object without the property of this name."""
        left = {key: value for key, value in self.properties.items() if key != name}
        return replace(self, properties=left)

    def without_dynamic_properties(self) -> BinderyObject:
        """Return the object after a restart."""
        left = {key: value for key, value in self.properties.items() if not value.dynamic}
        return replace(self, properties=left)


@dataclass(frozen=True, slots=True)
class PropertyValue:
    """One segment of the value of a property.

    Attributes:
        data: the data of an item, 128 bytes.
        members: the members of a set, up to 32 IDs in ascending order.
        more: whether there is a following segment.
        flags: the flags of the property.
    """

    data: bytes
    members: tuple[int, ...]
    more: bool
    flags: PropertyFlags
