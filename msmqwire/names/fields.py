"""Access to the fields of names on the wire, in mappings or objects; direct names in particular."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn
from uuid import UUID

from msmqwire.errors import InvalidName
from msmqwire.names.formats import DirectName, parse_format_name
from msmqwire.names.grammar import ILLEGAL_FORMAT_NAME, same_letters

DIRECT_PREFIX: Final = "DIRECT="
UINT32_MAX: Final = 0xFFFF_FFFF


def refuse(why: str, path: str, hresult: int = ILLEGAL_FORMAT_NAME) -> NoReturn:
    """Raise InvalidName for a field."""
    raise InvalidName(why, path=path, hresult=hresult)


def field_of(value: Any, name: str, path: str) -> Any:
    """Return a field of a mapping or object. Raises InvalidName if missing."""
    try:
        return value[name] if isinstance(value, Mapping) else getattr(value, name)
    except (KeyError, AttributeError):
        refuse(f"there is no {name}", path)


def guid_of(value: Any, name: str, path: str) -> UUID:
    """Return a GUID field, also one given as text."""
    guid = field_of(value, name, path)
    try:
        return guid if isinstance(guid, UUID) else UUID(guid)
    except (ValueError, TypeError, AttributeError):
        refuse("not a GUID", f"{path}.{name}")


def number_of(value: Any, name: str, path: str, most: int = UINT32_MAX) -> int:
    """Return an unsigned integer field of at most `most`."""
    number = field_of(value, name, path)
    if not isinstance(number, int) or not 0 <= number <= most:
        refuse(f"not a number from 0 to {most}", f"{path}.{name}")
    return number


def read_direct(text: Any, path: str) -> DirectName:
    """Parse a direct name, which the wire has without ``DIRECT=``; with the prefix is accepted too."""
    if not isinstance(text, str):
        refuse("not a text", path)
    prefixed = same_letters(text[: len(DIRECT_PREFIX)], DIRECT_PREFIX)
    try:
        name = parse_format_name(text if prefixed else DIRECT_PREFIX + text, spx=True)
    except InvalidName as exc:
        position = (exc.offset or 0) - (0 if prefixed else len(DIRECT_PREFIX))
        raise InvalidName(f"{exc.why} (character {position})", path=path, hresult=exc.hresult) from None
    if not isinstance(name, DirectName):
        refuse("more than one name", path)
    return name


def direct_text(name: DirectName) -> str:
    """Return the text of a direct name as on the wire, without ``DIRECT=``."""
    return name.text[len(DIRECT_PREFIX) :]
