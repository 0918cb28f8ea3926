"""The text of definitions: one JSON object, bounded and without ambiguity."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from msmqwire.errors import InvalidValue
from msmqwire.names.json_words import why_not_json
from msmqwire.names.printable import counted

SIZE_MAX: Final = 64 << 20
"""Limit of definitions in bytes."""
ITEMS_MAX: Final = 20_000
"""Limit of items in all lists together: they are imported in one step, which holds up everything else."""
VERSION_NAME: Final = "msmqwire_definitions"
VERSION: Final = 1


def check_size(size: int) -> None:
    """Raise InvalidValue for more bytes than definitions may have."""
    if size > SIZE_MAX:
        raise InvalidValue(
            f"more than {counted(SIZE_MAX >> 20, 'MiB', 'MiB')}: divide the definitions", path=""
        )


def parse_definitions(content: bytes) -> dict[str, Any]:
    """Return the object in a file of definitions.

    Raises InvalidValue: it is too large, no JSON, has a member twice, or a number that JSON does not have.
    """
    check_size(len(content))
    try:
        found = json.loads(
            content.decode("utf-8-sig"), object_pairs_hook=_object, parse_constant=_no_number,
            parse_float=_float,
        )  # fmt: skip
    except (json.JSONDecodeError, UnicodeDecodeError) as exc:
        raise InvalidValue(f"not definitions: {why_not_json(exc)}", path="") from None
    except RecursionError:
        raise InvalidValue("not definitions: nested too deeply", path="") from None
    except ValueError as exc:  # an integer with thousands of digits
        if isinstance(exc, InvalidValue):
            raise
        raise InvalidValue("not definitions: a number has too many digits", path="") from None
    if not isinstance(found, dict):
        raise InvalidValue("not definitions: no JSON object", path="")
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise InvalidValue("the member is there twice", path=name[:100])
        members[name] = value
    return members


def _no_number(text: str) -> NoReturn:
    raise InvalidValue(f"{text} is no number of JSON", path="")


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise InvalidValue(f"{text[:40]} is too large a number", path="")
    return value


def check_version(definitions: Mapping[str, Any]) -> None:
    """Raise InvalidValue for an object that is no definitions of this version."""
    version = definitions.get(VERSION_NAME)
    if isinstance(version, bool) or version != VERSION:
        why = f'definitions begin with "{VERSION_NAME}": {VERSION}'
        raise InvalidValue(f"{why}, of which this has {version!r:.40}", path=VERSION_NAME)
