"""The objects of the bindery, and the indexes by which they are found without walking it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator

from msmqwire.errors import NcpRefused
from msmqwire.ncp.constants import CompletionCode
from msmqwire.netware.model import names
from msmqwire.netware.model.bindery import BinderyObject
from msmqwire.netware.model.changes import Change, DeleteObject, PutNextObjectId, PutObject
from msmqwire.netware.model.settings import Settings
from msmqwire.netware.rules.refusals import limit_reached, no_object


class Objects:
    """All objects, by ID and by name and type. No rights are checked here."""

    def __init__(self, settings: Settings, changes: list[Change]) -> None:
        self._settings, self._changes = settings, changes
        self._objects: dict[int, BinderyObject] = {}
        self._ids: dict[tuple[str, int], int] = {}
        self._sorted: list[int] = []
        self._sets_of: dict[int, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        self._next_id = 1

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[BinderyObject]:
        """All objects by ascending ID."""
        return (self._objects[object_id] for object_id in self._sorted)

    @property
    def next_id(self) -> int:
        """The ID of the next new object."""
        return self._next_id

    def restore(self, objects: Iterable[BinderyObject], next_id: int) -> None:
        """Take the rows of a store."""
        for found in objects:
            self._insert(found)
        self._next_id = max(next_id, *(object_id + 1 for object_id in self._sorted[-1:]), 1)

    def __contains__(self, object_id: int) -> bool:
        return object_id in self._objects

    def get(self, object_id: int | None) -> BinderyObject | None:
        """Return an object, or None."""
        return None if object_id is None else self._objects.get(object_id)

    def __getitem__(self, object_id: int) -> BinderyObject:
        """Return an object.

        Raises:
            NcpRefused: NO_SUCH_OBJECT.
        """
        found = self._objects.get(object_id)
        if found is None:  # QMS-qservers-03
            raise no_object(f"{object_id:08X}")
        return found

    def named(self, name: str, type_: int) -> BinderyObject:
        """Return the object of this name and type.

        Raises:
            NcpRefused: NO_SUCH_OBJECT, INVALID_NAME or WILD_CARD_NOT_ALLOWED.
        """
        found = self.find(names.object_name(name), type_)
        if found is None:
            raise no_object(f"{name!r} of type {type_:#06x}")
        return found

    def find(self, name: str, type_: int) -> BinderyObject | None:
        """Return the object of this name, in capitals, and type, or None."""
        return self.get(self._ids.get((name, type_)))

    def following(self, object_id: int) -> Iterator[BinderyObject]:
        """Return the objects with greater IDs, in order."""
        start = bisect_right(self._sorted, object_id)
        return (self._objects[self._sorted[index]] for index in range(start, len(self._sorted)))

    def sets_of(self, member_id: int, property_name: str) -> frozenset[int]:
        """Return the IDs of the objects whose sets of this name hold the member."""
        sets = self._sets_of.get(member_id)
        return frozenset() if sets is None else frozenset(sets.get(property_name, ()))

    def check_new(self, name: str, type_: int) -> None:
        """Check that one more object fits, and that its name, in capitals, is free.

        Raises:
            NcpRefused: OBJECT_ALREADY_EXISTS or SERVER_OUT_OF_MEMORY.
        """
        if (name, type_) in self._ids:
            raise NcpRefused(
                f"there is {name!r} of type {type_:#06x} already", CompletionCode.OBJECT_ALREADY_EXISTS
            )
        if len(self._objects) >= self._settings.objects_max or self._next_id >= 0xFFFFFFFF:
            raise limit_reached("objects")

    def add(self, new: BinderyObject) -> None:
        """Insert an object with the ID `next_id`, once `check_new` has passed."""
        self._insert(new)
        self._next_id = max(self._next_id, new.id + 1)
        self._changes += PutNextObjectId(self._next_id), PutObject(new)

    def replace(self, changed: BinderyObject) -> None:
        """Replace the properties of an object."""
        self._index_sets(changed.id, self._objects[changed.id], changed)
        self._objects[changed.id] = changed
        self._changes.append(PutObject(changed))

    def delete(self, object_id: int) -> None:
        """Delete an object, and take it out of the sets of all other objects."""
        self._index_sets(object_id, self._objects[object_id], None)
        for name, holders in self._sets_of.pop(object_id, {}).items():
            for holder_id in holders:
                holder = self._objects[holder_id]
                old = holder.properties[name]
                self._objects[holder_id] = changed = holder.with_property(old.without_member(object_id))
                self._changes.append(PutObject(changed))
        gone = self._objects.pop(object_id)
        del self._ids[gone.name, gone.type]
        del self._sorted[bisect_left(self._sorted, object_id)]
        self._changes.append(DeleteObject(object_id))

    def _insert(self, new: BinderyObject) -> None:
        self._objects[new.id] = new
        self._ids[new.name, new.type] = new.id
        insort(self._sorted, new.id)
        self._index_sets(new.id, None, new)

    def _index_sets(self, holder_id: int, old: BinderyObject | None, new: BinderyObject | None) -> None:
        """Replace the sets of an object's old state in the index by those of its new state."""
        before = {} if old is None else old.properties
        after = {} if new is None else new.properties
        for name in before.keys() | after.keys():
            had = before[name].members if name in before else frozenset[int]()
            has = after[name].members if name in after else frozenset[int]()
            if had is has:
                continue
            for member in had - has:
                self._forget_set(holder_id, name, member)
            for member in has - had:
                self._sets_of[member][name].add(holder_id)

    def _forget_set(self, holder_id: int, name: str, member_id: int) -> None:
        sets = self._sets_of[member_id]
        sets[name].discard(holder_id)
        if not sets[name]:
            del sets[name]
            if not sets:
                del self._sets_of[member_id]
