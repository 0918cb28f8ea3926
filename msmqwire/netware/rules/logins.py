"""Logging in and out, and passwords.

A login sends its password in the clear here. The bindery keeps a salted hash of it: the keyed login of
NetWare needs a weak hash that is as good as the password itself, which is never stored.
"""

from __future__ import annotations

from typing import Final

from msmqwire.errors import NcpRefused
from msmqwire.ncp.constants import CompletionCode
from msmqwire.netware.model.bindery import (
    BINDERY_READ_BINDERY_WRITE,
    PASSWORD,
    BinderyObject,
    Property,
)
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.passwords import PasswordHash, PasswordHashing
from msmqwire.netware.model.settings import Settings
from msmqwire.netware.rules.bindery_rights import BinderyRights, Level
from msmqwire.netware.rules.objects import Objects
from msmqwire.netware.rules.refusals import limit_reached

AT_ONCE: Final = PasswordHashing()
"""Hashes that are computed during a call; it sets no password."""


class BinderyLogins:
    """The object logged in is in the `Caller` of the connection."""

    def __init__(self, settings: Settings, objects: Objects, rights: BinderyRights) -> None:
        self._settings, self._objects, self._rights = settings, objects, rights

    def check(self, name: str, type_: int, password: bytes, hashing: PasswordHashing = AT_ONCE) -> int:
        """Return the ID of the object that logs in by this name, type and password.

        Raises:
            NcpRefused: NO_SUCH_OBJECT, INVALID_NAME or WILD_CARD_NOT_ALLOWED; FAILURE for a wrong password.
            HashNeeded: by `hashing`.
        """
        found = self._objects.named(name, type_)
        if not _is_right(found, password, hashing):  # QMS-qservers-04
            raise NcpRefused(f"{found.name} is not logged in by this password", CompletionCode.FAILURE)
        return found.id

    def change_password(
        self, caller: Caller, object_id: int, old: bytes, new: bytes, hashing: PasswordHashing
    ) -> None:
        """Give an object a password, or remove it by an empty one.

        Raises:
            NcpRefused: NO_SUCH_OBJECT; NO_PROPERTY_WRITE_RIGHTS for all but the object itself and
                supervisors; FAILURE if the old password of an object is wrong, which a supervisor need not
                know; SERVER_OUT_OF_MEMORY.
            HashNeeded: by `hashing`.
        """
        holder = self._objects[object_id]
        level = self._rights.level(caller, holder)
        if level < Level.OBJECT:
            raise NcpRefused(
                f"no right to change the password of {holder.name}",
                CompletionCode.NO_PROPERTY_WRITE_RIGHTS,
            )
        if level < Level.SUPERVISOR and not _is_right(holder, old, hashing):
            raise NcpRefused("the old password is wrong", CompletionCode.FAILURE)
        has_password = PASSWORD in holder.properties
        if not new:
            if has_password:
                self._objects.replace(holder.without_property(PASSWORD))
            return
        if not has_password and len(holder.properties) >= self._settings.properties_max:
            raise limit_reached(f"properties of {holder.name}")
        # Whoever logs in by a name without a password can give it one.
        self_made = level < Level.SUPERVISOR and not has_given_password(holder)
        value = PasswordHash.of(new, hashing, self_made=self_made).segments
        held = Property(PASSWORD, False, BINDERY_READ_BINDERY_WRITE, segments=value)  # QMS-createqs-04
        self._objects.replace(holder.with_property(held))


def has_given_password(found: BinderyObject) -> bool:
    """Return whether an object has a password that a supervisor gave it: only that proves who logs in."""
    held = found.properties.get(PASSWORD)
    stored = None if held is None else PasswordHash.read(held.segments)
    return stored is not None and not stored.self_made


def _is_right(found: BinderyObject, password: bytes, hashing: PasswordHashing) -> bool:
    """Return whether a password is that of an object: an object without one has the empty one.

    No password is right for an object whose property holds no hash, until a supervisor sets one.
    """
    held = found.properties.get(PASSWORD)
    if held is None:
        return not password
    stored = PasswordHash.read(held.segments)
    return stored is not None and bool(password) and stored.fits(password, hashing)
