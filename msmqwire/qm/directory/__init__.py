"""The directory of a queue manager: [MS-MQDSSM] 3.1.6, behind an interface.

`Directory` is what the rules of a queue manager ask; `msmqwire.qm.directory.embedded` has one of our own.
"""

from __future__ import annotations

from msmqwire.qm.directory.interface import (
    CreateResult,
    Directory,
    QueryResult,
    ReadResult,
    ResolveResult,
    SortOrder,
)

__all__ = ["CreateResult", "Directory", "QueryResult", "ReadResult", "ResolveResult", "SortOrder"]
