r"""The file of an administrator with the users of remote read: a line each, ``DOMAIN\user:password``."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from msmqwire.errors import InvalidValue

SIZE_MAX: Final = 1 << 20
_PATH: Final = "rpc_users"


def load_users(file: Path) -> dict[str, str]:
    r"""Return the passwords of a file by ``DOMAIN\user``, or in their place ``$NT$`` and an NT hash.

    Raises OSError if it can't be read, and InvalidValue for what is wrong in it, also for a file that
    anybody but its owner may read or write. No error tells a password.
    """
    with file.open("rb") as stream:
        if os.name == "posix" and (mode := stat.S_IMODE(os.fstat(stream.fileno()).st_mode)) & 0o077:
            why = f"{file} has the mode {mode:04o}: others may use it; chmod 600 makes it its owner's alone"
            raise InvalidValue(why, path=_PATH)
        content = stream.read(SIZE_MAX + 1)
    if len(content) > SIZE_MAX:
        raise InvalidValue(f"{file} has more than {SIZE_MAX:,} bytes", path=_PATH)
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
