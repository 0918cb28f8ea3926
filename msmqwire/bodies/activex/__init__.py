"""Bodies of ActiveXMessageFormatter and of MSMQ's ActiveX component: one value of the type in BodyType.

The types are those of [MS-MQMQ] 2.2.12 and of [MS-OAUT] 2.2.7. Numbers are little-endian; a value has no
prefix; an array or vector is its elements in sequence. Three things are written in two ways: a Boolean has
one byte where .NET wrote it and two elsewhere, a VT_DATE holds the ticks of .NET there and days since
1899-12-30 elsewhere, and a VT_LPWSTR may end in a null.
"""

from __future__ import annotations

from msmqwire.bodies.activex.reading import KINDS, OPAQUE, read
from msmqwire.bodies.activex.writing import kind_named, write

__all__ = ["KINDS", "OPAQUE", "kind_named", "read", "write"]
