"""Values of plain data as a writer needs them; a fault of one is an InvalidValue with its path."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Final
from uuid import UUID

from msmqwire.bodies import dates, plain
from msmqwire.bodies.body import Plain
from msmqwire.errors import InvalidValue

_NUMBER: Final = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,3})?")
_FLOATS: Final = {"NaN": "nan", "INF": "inf", "-INF": "-inf"}
_SHOWN: Final = 40
_PATH_MAX: Final = 400
"""Characters of a path that are kept, the last ones."""


def shown(value: Plain) -> str:
    """Return the beginning of a value for an error."""
    return plain.line(value, _SHOWN)


def path_of(names: Iterable[str | int]) -> str:
    """Return a path in a value: ``Items[3].Price``."""
    parts = (f"[{name}]" if isinstance(name, int) else f".{name}" for name in names)
    return "".join(parts).removeprefix(".")[-_PATH_MAX:]


def bytes_of(value: Plain, path: str = "") -> bytes:
    """Return the bytes of a ``$bytes``. Raises InvalidValue."""
    if isinstance(value, dict) and isinstance(text := value.get(plain.BYTES), str):
        try:
            return bytes.fromhex(text)
        except ValueError:
            raise InvalidValue(f"{text[:_SHOWN]!r} are not bytes in hex", path=path) from None
    raise InvalidValue(f'{shown(value)} is not bytes; write {{"$bytes": "00ff"}}', path=path)


def guid_of(value: Plain, path: str = "") -> str:
    """Return the GUID of a ``$guid`` or of a text. Raises InvalidValue."""
    text = value.get(plain.GUID) if isinstance(value, dict) else value
    try:
        return str(UUID(text if isinstance(text, str) else ""))
    except ValueError:
        example = '{"$guid": "557358d1-9150-9595-4997-0c1a2b3c4d5e"}'
        raise InvalidValue(f"{shown(value)} is not a GUID; write {example}", path=path) from None


def decimal_of(value: Plain, path: str = "") -> Decimal:
    """Return a number as it is written: an integer, a float or a ``$decimal``. Raises InvalidValue."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    text = value.get(plain.DECIMAL) if isinstance(value, dict) else repr(value)
    if isinstance(value, (dict, float)) and isinstance(text, str) and _NUMBER.fullmatch(text):
        return Decimal(text)
    raise InvalidValue(f'{shown(value)} is not a number; write {{"$decimal": "1.50"}} or 1.5', path=path)


def float_of(value: Plain, path: str = "") -> float:
    """Return a number as a float, one of ``$float`` too. Raises InvalidValue."""
    if isinstance(value, float):
        return value
    if isinstance(value, dict) and isinstance(text := value.get(plain.FLOAT), str):
        if text in _FLOATS:
            return float(_FLOATS[text])
        raise InvalidValue(f"{text!r:.{_SHOWN}} is not a float; there are NaN, INF and -INF", path=path)
    return float(decimal_of(value, path))


def date_of(value: Plain, path: str = "") -> str:
    """Return the text of a ``$date`` with nine digits and its zone. Raises InvalidValue."""
    text = value.get(plain.DATE) if isinstance(value, dict) else value
    whole = dates.of_text(text) if isinstance(text, str) else None
    if whole is None:
        example = '{"$date": "2026-11-28T08:00:00Z"}'
        raise InvalidValue(f"{shown(value)} is not a date; write {example}", path=path)
    return whole


def ticks_of(value: Plain, path: str = "") -> tuple[int, str]:
    """Return a date in 100 ns from the start of the year 1, and its zone. Raises InvalidValue."""
    found = dates.to_ticks(date_of(value, path))
    if found is None:
        raise InvalidValue(f"{shown(value)} is not a date", path=path)
    return found
