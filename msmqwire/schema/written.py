"""The functions of the library's structures that are written out: whether they are there, and fit.

They are in `msmqwire.schema.generated`, which is made when the library is installed or a wheel of it is
built, by ``tools/generate/codec_code.py``. In a checkout declarations change: there the code is used only if
it was made of the sources as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final
from zlib import crc32

PACKAGE: Final = Path(__file__).resolve().parents[1]
_SOURCES: Final = ("constants", "headers", "names", "ncp", "packets.py", "pgm", "ping", "rpc", "schema")
"""The parts of the library that declare structures, or make code of the declarations."""

Index = Mapping[str, tuple[str, str, str]]
"""The module of the code of a structure, the one that declares it, and its name there, by key."""


@cache
def index() -> Index:
    """Return which structures have code that is written out: none where it is missing or out of date."""
    try:
        from msmqwire.schema.generated import SOURCES, WRITTEN
    except ImportError:
        return {}
    if (PACKAGE.parent / "pyproject.toml").is_file() and sources() != SOURCES:
        import logging  # which a short command does without

        log = logging.getLogger("msmqwire.schema")
        log.debug("msmqwire/schema/generated is out of date, so code is made at first use: make generated")
        return {}
    written: Index = WRITTEN
    return written


def has_written(room: str, key: str) -> bool:
    """Return whether a structure with written code has some in a room of `generated`: few have composers."""
    from msmqwire.schema.generated import COMPOSED

    return room != "composers" or key in COMPOSED


def sources() -> int:
    """Return a checksum of the sources that the code is made of."""
    result = 0
    for part in _SOURCES:
        place = PACKAGE / part
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            if "generated" not in path.parts:
                result = crc32(path.read_bytes(), crc32(path.name.encode(), result))
    return result
