"""The file of an administrator with the redirections of SRMP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from msmqwire.errors import InvalidValue
from msmqwire.names.json_words import why_not_json
from msmqwire.qm.protocols.srmp.redirections import Redirections

SIZE_MAX: Final = 64 << 20


def load_redirections(file: Path) -> Redirections:
    """Return the redirections of a file of JSON.

    Raises OSError if it can't be read, and InvalidValue, with the path in the JSON, for wrong content.
    """
    with file.open("rb") as stream:
        content = stream.read(SIZE_MAX + 1)
    if len(content) > SIZE_MAX:
        raise InvalidValue(f"{file} has more than {SIZE_MAX:,} bytes")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as exc:
        raise InvalidValue(f"{file}: {why_not_json(exc)}") from None
    try:
        return Redirections.from_json(value)
    except InvalidValue as exc:
        raise InvalidValue(f"{exc.why} (in {file})", path=exc.path) from None
