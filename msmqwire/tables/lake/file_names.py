"""The names of the files of a lake: no two are alike, whoever writes them, and nobody can guess them."""

from __future__ import annotations

import secrets
from itertools import count


class FileNames:
    """The names of the files that are written together."""

    def __init__(self) -> None:
        self._token, self._numbers = secrets.token_hex(16), count()

    def new(self, folder: str) -> str:
        """Return the path of a further file of a folder; both below the lake."""
        return f"{folder}/part-{self._token}-{next(self._numbers)}.parquet"
