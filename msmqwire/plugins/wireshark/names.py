"""Names of display filters: one rule for all of them.

The filter of a field is ``msmq.`` and its path in the specification's names, in lower case. The header at the
start of the path goes without its ending ``Header``, list indices are left out, and the fields of a Ping are
under ``ping``: ``UserHeader.MessageID`` is ``msmq.user.messageid``, ``BaseHeader.Flags.PR`` is
``msmq.base.flags.pr``. Text that is not well-formed has its bytes under that name and ``.utf16le``, as in
JSON.
"""

from __future__ import annotations

import re
from typing import Final

PROTOCOL: Final = "msmq"
_INDEX: Final = re.compile(r"\[\d*\]")


def filter_name(path: str) -> str:
    """Return the display filter of the field or structure at a path that begins with a header."""
    head, *rest = _INDEX.sub("", path).split(".")
    return ".".join([PROTOCOL, head.removesuffix("Header"), *rest]).lower()
