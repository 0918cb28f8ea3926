"""The directory of a queue manager: [MS-MQDSSM] 3.1.6, as an interface.

`Directory` is the interface that the rules of a queue manager use; `msmqwire.qm.directory.embedded` is an
implementation in a file.
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
