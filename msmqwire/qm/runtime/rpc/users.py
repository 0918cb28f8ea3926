r"""The file of an administrator with the users of remote read: a line each, ``DOMAIN\user:password``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msmqwire.errors import InvalidValue
from msmqwire.ownership import read_secret

SIZE_MAX: Final = 1 << 20
_PATH: Final = "rpc_users"


def load_users(file: Path) -> dict[str, str]:
    r"""Return the passwords of a file by ``DOMAIN\user``, or in their place ``$NT$`` and an NT hash.

    Raises OSError if it can't be read, and InvalidValue for invalid content, also for a file that other users
    may read or write. No error shows a password.
    """
    content = read_secret(file, SIZE_MAX, _PATH)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise InvalidValue(f"{file} is not UTF-8: {exc.reason} at byte {exc.start}", path=_PATH) from None
    users: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        name, _, secret = line.removesuffix("\r").partition(":")
        if line in ("", "\r"):
            continue
        if not name or not secret:
            raise InvalidValue(f"{file}, line {number}: not DOMAIN\\user:password", path=_PATH)
        if name in users:
            raise InvalidValue(f"{file}, line {number}: {name!r:.100} comes twice", path=_PATH)
        users[name] = secret
    return users
