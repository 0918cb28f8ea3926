"""Logging in and out, and passwords.

A login sends its password in the clear here, so only objects without a password log in: an object with a
password can't. The password itself is not kept.
"""

from __future__ import annotations

from msmqwire.errors import NcpRefused
from msmqwire.ncp.constants import CompletionCode
from msmqwire.netware.model.bindery import (
    BINDERY_READ_BINDERY_WRITE,
    PASSWORD,
    Property,
)
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.settings import Settings
from msmqwire.netware.rules.bindery_rights import BinderyRights, Level
from msmqwire.netware.rules.objects import Objects
from msmqwire.netware.rules.refusals import limit_reached


class BinderyLogins:
    """The object logged in is in the `Caller` of the connection."""

    def __init__(self, settings: Settings, objects: Objects, rights: BinderyRights) -> None:
        self._settings, self._objects, self._rights = settings, objects, rights

    def check(self, name: str, type_: int, password: bytes) -> int:
        """Return the ID of the object that logs in by this name, type and password.

        Raises:
            NcpRefused: NO_SUCH_OBJECT, INVALID_NAME or WILD_CARD_NOT_ALLOWED; FAILURE for a password that is
                not empty, and for an object with a password.
        """
        found = self._objects.named(name, type_)
        if PASSWORD in found.properties or password:
            raise NcpRefused(f"{found.name} is not logged in by this password", CompletionCode.FAILURE)
        return found.id

    def change_password(self, caller: Caller, object_id: int, old: bytes, new: bytes) -> None:
        """Give an object a password, or remove it by an empty one.

        Raises:
            NcpRefused: NO_SUCH_OBJECT; NO_PROPERTY_WRITE_RIGHTS for all but the object itself and
                supervisors; FAILURE if the old password of an object is wrong, which a supervisor need not
                know; SERVER_OUT_OF_MEMORY.
        """
        holder = self._objects[object_id]
        level = self._rights.level(caller, holder)
        if level < Level.OBJECT:
            raise NcpRefused(
                f"no right to change the password of {holder.name}",
                CompletionCode.NO_PROPERTY_WRITE_RIGHTS,
            )
        has_password = PASSWORD in holder.properties
        if level < Level.SUPERVISOR and (has_password or old):
            raise NcpRefused("the old password is wrong", CompletionCode.FAILURE)
        if not new:
            if has_password:
                self._objects.replace(holder.without_property(PASSWORD))
            return
        if not has_password and len(holder.properties) >= self._settings.properties_max:
            raise limit_reached(f"properties of {holder.name}")
        self._objects.replace(holder.with_property(Property(PASSWORD, False, BINDERY_READ_BINDERY_WRITE)))
