"""The DOS attribute HIDDEN of a file: the system's on Windows, else an extended attribute.

The extended attribute is user.DOSATTRIB with the number in hexadecimal digits, the oldest form of Samba's;
Samba and Wine read it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

HIDDEN: Final = 0x02
ATTRIBUTE: Final = "user.DOSATTRIB"


def hide(path: Path) -> bool:
    """Give a file the attribute HIDDEN; return whether the file system has accepted it."""
    if sys.platform == "win32":
        import ctypes

        return bool(ctypes.windll.kernel32.SetFileAttributesW(str(path), HIDDEN))
    if sys.platform != "linux":
        return False
    try:
        os.setxattr(path, ATTRIBUTE, b"0x%x" % HIDDEN, follow_symlinks=False)
    except OSError:
        return False
    return True
