"""Names of objects, properties and paths, as a file server takes them."""

from __future__ import annotations

from typing import Final

from msmqwire.errors import NcpRefused
from msmqwire.netware.constants import OBJECT_NAME_MAX, PROPERTY_NAME_MAX, CompletionCode

_LONGEST_PATH: Final = 255
_WILDCARDS: Final = "*?"
_ALLOWED: Final = frozenset(map(chr, range(0x21, 0x7E))) - frozenset("/\\:;,*?")
_ALLOWED_IN_PATHS: Final = frozenset(map(chr, range(0x21, 0x7F))) - frozenset('/\\:;,*?"<>|')


def object_name(name: str) -> str:
    """Return the name of an object in capitals.

    Raises:
        NcpRefused: WILD_CARD_NOT_ALLOWED or INVALID_NAME.
    """
    return _checked(name, OBJECT_NAME_MAX)


def property_name(name: str) -> str:
    """Return the name of a property in capitals; raises as `object_name`."""
    return _checked(name, PROPERTY_NAME_MAX)


def _checked(name: str, longest: int) -> str:
    if any(wildcard in name for wildcard in _WILDCARDS):
        raise NcpRefused(f"a name can't hold a wildcard: {name!r}", CompletionCode.WILD_CARD_NOT_ALLOWED)
    if not 0 < len(name) <= longest or not _ALLOWED.issuperset(name):
        raise NcpRefused(
            f"{name!r} is no name: 1 to {longest} printable ASCII characters, none of space / \\ : ; ,",
            CompletionCode.INVALID_NAME,
        )
    return name.upper()


def matches(name: str, pattern: str) -> bool:
    """Return whether a name in capitals fits a pattern in which ``*`` is any text and ``?`` any character.

    It takes at most len(name) * len(pattern) steps.
    """
    pattern = pattern.upper()
    at, star, retry, place = 0, -1, 0, 0
    while place < len(name):
        if at < len(pattern) and pattern[at] == "*":
            star, retry = at, place
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", name[place]):
            at, place = at + 1, place + 1
        elif star >= 0:  # let the last star take one character more
            retry += 1
            at, place = star + 1, retry
        else:
            return False
    return not pattern[at:].strip("*")


def volume_path(path: str) -> str:
    r"""Return a path in its one form, ``SYS:DIR\FILE`` in capitals; ``SYS:`` is the root of a volume.

    Both separators are taken, doubled ones and those at the ends are dropped.

    Raises:
        NcpRefused: INVALID_PATH: it names no volume, or has a part that is no name.
    """
    volume, colon, rest = path.upper().partition(":")
    parts = [part for part in rest.replace("/", "\\").split("\\") if part]
    if (
        len(path) > _LONGEST_PATH
        or not colon
        or not all(_ALLOWED_IN_PATHS.issuperset(part) and not part.endswith(".") for part in parts)
        or not volume.isalnum()
        or not volume.isascii()
    ):
        raise NcpRefused(f"{path!r} is no path", CompletionCode.INVALID_PATH)
    return f"{volume}:" + "\\".join(parts)


def parent(path: str) -> str:
    """Return the directory that a path of `volume_path` is in; the root is in itself."""
    volume, _, rest = path.partition(":")
    return f"{volume}:{rest.rpartition(chr(92))[0]}"
