"""Headers of Rebus in the extension: a JSON object of texts in UTF-8, in UTF-7 before version 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.bodies import plain
from msmqwire.bodies.body import Headers, Plain, Problem
from msmqwire.bodies.json.reading import value_of
from msmqwire.bodies.json.writing import write as write_json
from msmqwire.bodies.limits import Budget
from msmqwire.errors import MalformedBody

FORMAT: Final = "rebus"
_UTF7: Final = b"+AHs"
"""An opening brace in UTF-7."""


def recognises(extension: bytes) -> bool:
    """Return whether an extension begins as a JSON object does."""
    start = extension[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    return start.startswith(_UTF7) or (start[:1] == b"{" and start[1:].lstrip()[:1] in (b'"', b"}", b""))


def read(extension: bytes, budget: Budget) -> Headers:
    """Read headers; no object of texts is a problem, and no headers."""
    encoding = "utf-7" if extension.startswith(_UTF7) else "utf-8-sig"
    budget.spend(2 * len(extension))
    try:
        value, problems = value_of(extension.decode(encoding).rstrip("\0"), budget)
    except UnicodeDecodeError as exc:
        return Headers(
            None, problems=(Problem(f"is not well-formed {encoding[:5]}", "extension", exc.start),)
        )
    except MalformedBody as exc:
        return Headers(None, problems=(Problem(exc.why, "extension", exc.offset),))
    faults = [Problem(fault.error, _path(fault.path), fault.offset) for fault in problems]
    if not isinstance(value, dict):
        return Headers(None, problems=(*faults, Problem("is not an object of headers", "extension")))
    values: dict[str, str] = {}
    for name, item in value.items():
        values[name[1:] if name.startswith("$$") else name] = _text(name, item, faults)
    return Headers(FORMAT, values, tuple(faults))


def _path(path: str) -> str:
    return f"extension.{path}" if path else "extension"


def _text(name: str, item: Plain, faults: list[Problem]) -> str:
    if isinstance(item, str):
        return item
    if item is None:
        return ""
    if len(faults) < 100:
        faults.append(Problem("is not text", _path(name[:200])))
    return plain.line(item)


def write(headers: Mapping[str, str]) -> bytes:
    """Return headers as Rebus writes them. Raises InvalidValue."""
    return write_json({plain.member(name): value for name, value in headers.items()})
