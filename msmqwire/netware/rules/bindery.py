"""Calls about bindery objects: create, delete, find, scan."""

from __future__ import annotations

from collections.abc import Mapping

from msmqwire.errors import NcpRefused
from msmqwire.ncp.constants import SUPERVISOR_ID, CompletionCode, ObjectType
from msmqwire.netware.model import names
from msmqwire.netware.model.bindery import (
    LOGGED_READ_SUPER_WRITE,
    SUPERVISOR,
    BinderyObject,
)
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.queue import JobQueue
from msmqwire.netware.rules.bindery_rights import BinderyRights, Level
from msmqwire.netware.rules.objects import Objects
from msmqwire.netware.rules.refusals import no_object
from msmqwire.netware.rules.trustees import Trustees


class Bindery:
    """The objects of the file server."""

    def __init__(
        self,
        objects: Objects,
        rights: BinderyRights,
        trustees: Trustees,
        queues: Mapping[int, JobQueue],
    ) -> None:
        self._objects, self._rights, self._trustees, self._queues = objects, rights, trustees, queues

    def restore(self) -> None:
        """Make a new bindery, or remove the dynamic objects and properties of a restored one, as after a
        restart.
        """
        for found in list(self._objects):
            if found.dynamic:
                self._trustees.forget_object(found.id)
                self._objects.delete(found.id)
        for found in list(self._objects):
            if any(held.dynamic for held in found.properties.values()):
                self._objects.replace(found.without_dynamic_properties())
        if self._objects.get(SUPERVISOR_ID) is None:
            self._objects.add(BinderyObject(SUPERVISOR_ID, SUPERVISOR, ObjectType.NWOT_USER))

    def create_object(
        self,
        caller: Caller,
        name: str,
        type_: int,
        *,
        security: int = LOGGED_READ_SUPER_WRITE,
        dynamic: bool = False,
    ) -> BinderyObject:
        """Create an object without properties.

        Raises:
            NcpRefused: NO_OBJECT_CREATE_RIGHTS, INVALID_NAME, WILD_CARD_NOT_ALLOWED,
                INVALID_BINDERY_SECURITY, OBJECT_ALREADY_EXISTS or SERVER_OUT_OF_MEMORY.
        """
        new = self.new_object(caller, name, type_, security=security, dynamic=dynamic)
        self._objects.add(new)  # QMS-using-01
        return new

    def new_object(
        self, caller: Caller, name: str, type_: int, *, security: int, dynamic: bool = False
    ) -> BinderyObject:
        """Return an object that may be added; raises as `create_object`."""
        if not self._rights.is_supervisor(caller):
            # QMS-createqs-01, QMS-supervisor-01 and QMS-createq-01
            raise NcpRefused("only a supervisor creates objects", CompletionCode.NO_OBJECT_CREATE_RIGHTS)
        name = names.object_name(name)
        if not 0 < type_ < ObjectType.NWOT_WILD:  # QMS-qobject-05 and QMS-qservers-06
            raise NcpRefused(f"{type_:#x} is not a type of an object", CompletionCode.WILD_CARD_NOT_ALLOWED)
        self._rights.check_security(caller, None, security)
        self._objects.check_new(name, type_)  # QMS-qobject-02
        # QMS-qobject-01, QMS-qobject-04 and QMS-qobject-06
        return BinderyObject(self._objects.next_id, name, type_, security, dynamic)

    def delete_object(self, caller: Caller, object_id: int) -> None:
        """Delete an object; it is gone from all sets and trustees. Jobs that it submitted stay.

        Raises:
            NcpRefused: NO_SUCH_OBJECT, NO_OBJECT_DELETE_RIGHTS.
        """
        found = self._objects[object_id]
        if not self._rights.is_supervisor(caller):
            raise NcpRefused("only a supervisor deletes objects", CompletionCode.NO_OBJECT_DELETE_RIGHTS)
        if object_id == SUPERVISOR_ID or object_id in self._queues:
            raise NcpRefused(
                f"{found.name} can't be deleted; a queue is destroyed",
                CompletionCode.NO_OBJECT_DELETE_RIGHTS,
            )
        self._trustees.forget_object(object_id)
        self._objects.delete(object_id)  # QMS-createqs-09

    def own_level(self, caller: Caller) -> Level:
        """Return the level of a caller on its own object; ANY without a login."""
        own = self._objects.get(caller.effective_id)
        return Level.ANY if own is None else self._rights.level(caller, own)

    def check_console(self, caller: Caller) -> None:
        """Check that the caller may use the console.

        Raises:
            NcpRefused: NO_CONSOLE_RIGHTS for all but supervisors.
        """
        if not self._rights.is_supervisor(caller):
            raise NcpRefused("the console is for supervisors", CompletionCode.NO_CONSOLE_RIGHTS)

    def get_id(self, caller: Caller, name: str, type_: int) -> BinderyObject:
        """Return the object of this name and type.

        Raises:
            NcpRefused: NO_SUCH_OBJECT, also if the caller may not see it; INVALID_NAME,
                WILD_CARD_NOT_ALLOWED.
        """
        found = self._objects.named(name, type_)  # QMS-createqs-03
        if not self._rights.may_read(caller, found):
            raise no_object(f"{name!r} of type {type_:#06x}")
        return found

    def get_name(self, caller: Caller, object_id: int) -> BinderyObject:
        """Return the object of this ID.

        Raises:
            NcpRefused: NO_SUCH_OBJECT, also if the caller may not see it.
        """
        found = self._objects[object_id]
        if not self._rights.may_read(caller, found):
            raise no_object(f"{object_id:08X}")
        return found

    def scan(
        self, caller: Caller, pattern: str = "*", type_: int = ObjectType.NWOT_WILD, *, after: int = 0
    ) -> BinderyObject:
        """Return the next object that the caller may see, in the order of IDs.

        Args:
            pattern: a pattern of its name, with the wildcards ``*`` and ``?``.
            type_: its type, or NWOT_WILD for any.
            after: the ID of the object found last; 0 or 0xFFFFFFFF to begin.

        Raises:
            NcpRefused: NO_SUCH_OBJECT: there are no more.
        """
        fits = names.expression(pattern).fullmatch  # compiled once: any client may scan thousands of objects
        any_type = type_ == ObjectType.NWOT_WILD  # QMS-qobject-08
        for found in self._objects.following(0 if after == 0xFFFFFFFF else after):
            if (
                (any_type or found.type == type_)
                and fits(found.name)
                and self._rights.may_read(caller, found)
            ):
                return found
        raise no_object(f"{pattern!r} of type {type_:#06x} after {after:08X}")
