"""The security levels of the bindery, for reading and writing objects and properties."""

from __future__ import annotations

from enum import IntEnum

from msmqwire.errors import NcpRefused
from msmqwire.ncp.constants import CompletionCode
from msmqwire.netware.model.bindery import BinderyObject, Property
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.rules.equivalence import Equivalence


class Level(IntEnum):
    """A level of security, the same numbers for reading and writing. A caller has all levels up to its
    own.
    """

    ANY = 0
    LOGGED = 1
    OBJECT = 2
    SUPERVISOR = 3
    BINDERY = 4  # the file server itself, never a caller


class BinderyRights:
    """The level that a caller has on an object, compared with a security byte."""

    def __init__(self, equivalence: Equivalence) -> None:
        self._equivalence = equivalence

    def level(self, caller: Caller, holder: BinderyObject) -> Level:
        """Return the level of a caller on an object and its properties."""
        object_id = caller.effective_id
        if self._equivalence.is_supervisor(object_id):
            return Level.SUPERVISOR
        if object_id == holder.id:
            return Level.OBJECT
        return Level.LOGGED if self._equivalence.is_logged_in(object_id) else Level.ANY

    def may_read(self, caller: Caller, holder: BinderyObject, found: Property | None = None) -> bool:
        """Return whether a caller may see an object, or read the value of its property."""
        security = (holder if found is None else found).security
        return self._reaches(caller, holder, security & 0x0F)

    def may_write(self, caller: Caller, holder: BinderyObject, found: Property | None = None) -> bool:
        """Return whether a caller may give an object properties, or write the value of its property."""
        security = (holder if found is None else found).security
        return self._reaches(caller, holder, security >> 4)

    def _reaches(self, caller: Caller, holder: BinderyObject, needed: int) -> bool:
        return needed == Level.ANY or self.level(caller, holder) >= needed

    def is_supervisor(self, caller: Caller) -> bool:
        """Return whether a caller has the rights of SUPERVISOR."""
        return self._equivalence.is_supervisor(caller.effective_id)

    def check_security(self, caller: Caller, holder: BinderyObject | None, security: int) -> None:
        """Check a security byte that a caller gives: no level above its own, which it could not undo.

        Raises:
            NcpRefused: INVALID_BINDERY_SECURITY.
        """
        highest = Level.SUPERVISOR if holder is None else self.level(caller, holder)
        if not 0 <= security <= 0xFF or security & 0x0F > highest or security >> 4 > highest:
            raise NcpRefused(
                f"no security {security:#04x} can be given", CompletionCode.INVALID_BINDERY_SECURITY
            )
