"""Names of objects, properties and paths that a file server accepts."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from msmqwire.errors import NcpRefused
from msmqwire.ncp.constants import OBJECT_NAME_MAX, PROPERTY_NAME_MAX, CompletionCode

SERVER_NAME: Final = "MSMQWIRE"
"""The name of a file server that has been given none."""
_LONGEST_PATH: Final = 255
_WILDCARDS: Final = "*?"
_ALLOWED: Final = frozenset(map(chr, range(0x21, 0x7E))) - frozenset("/\\:;,*?")
_ALLOWED_IN_PATHS: Final = frozenset(map(chr, range(0x21, 0x7F))) - frozenset('/\\:;,*?"<>|')
_DOS_NAME_MAX: Final = 8
_DOS_EXTENSION_MAX: Final = 3
_DEVICES: Final = frozenset(
    {"CON", "PRN", "AUX", "NUL", "CLOCK$"} | {f"{port}{n}" for port in ("COM", "LPT") for n in range(10)}
)
"""Names that DOS and Windows reserve for devices, with any extension."""


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
            f"{name!r} is not a name: 1 to {longest} printable ASCII characters, none of space / \\ : ; ,",
            CompletionCode.INVALID_NAME,
        )
    return name.upper()


def matches(name: str, pattern: str) -> bool:
    """Return whether a name in capitals fits a pattern in which ``*`` is any text and ``?`` any character."""
    return expression(pattern).fullmatch(name) is not None


@lru_cache(maxsize=64)
def expression(pattern: str) -> re.Pattern[str]:
    """Return a pattern of `matches` as an expression that takes at most len(name) * len(pattern) steps.

    The text between two stars is found as early as possible, and never tried elsewhere.
    """
    pieces = ["".join("." if char == "?" else re.escape(char) for char in piece)
              for piece in pattern.upper().split("*")]  # fmt: skip
    if len(pieces) == 1:
        return re.compile(pieces[0], re.DOTALL)
    first, *between, last = pieces
    found = "".join(f"(?>.*?{piece})" for piece in between if piece)
    return re.compile(f"{first}{found}.*{last}", re.DOTALL)


def volume_path(path: str) -> str:
    r"""Return a path in canonical form, ``SYS:DIR\FILE`` in capitals; ``SYS:`` is the root of a volume.

    Both separators are accepted; doubled and outer ones are dropped. The parts are DOS names: up to eight
    characters, and up to three after a dot.

    Raises:
        NcpRefused: INVALID_PATH: it names no volume, or has an invalid part.
    """
    volume, colon, rest = path.upper().partition(":")
    parts = [part for part in rest.replace("/", "\\").split("\\") if part]  # QMS-qdir-06
    if (
        len(path) > _LONGEST_PATH
        or not colon  # QMS-qdir-04
        or not all(map(_is_dos_name, (volume, *parts)))
        or not volume.isalnum()
    ):
        raise NcpRefused(f"{path!r} is not a path", CompletionCode.INVALID_PATH)  # QMS-qdir-04
    return f"{volume}:" + "\\".join(parts)


def _is_dos_name(part: str) -> bool:
    name, dot, extension = part.partition(".")
    return (
        0 < len(name) <= _DOS_NAME_MAX
        and len(extension) <= _DOS_EXTENSION_MAX
        and bool(extension) == bool(dot)
        and "." not in extension
        and _ALLOWED_IN_PATHS.issuperset(part)
        and name not in _DEVICES
    )


def parent(path: str) -> str:
    """Return the directory that a path of `volume_path` is in; the root is in itself."""
    volume, _, rest = path.partition(":")
    return f"{volume}:{rest.rpartition(chr(92))[0]}"
