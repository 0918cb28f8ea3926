"""The types of the arrays that compiled functions take.

They are the annotations of the functions that interpreted code calls, and of the records among their
arguments: from them the library is built, and the arguments of a call are checked. All arrays are contiguous,
the last index fastest.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple


class ArrayOf(NamedTuple):
    """What an array is.

    Attributes:
        kind: the type of its elements, as numpy names it.
        dimensions: how many indices it has.
        is_written: whether it must be one that can be written.
    """

    kind: str
    dimensions: int
    is_written: bool = True


Bytes = Annotated[Any, ArrayOf("uint8", 1)]
Input = Annotated[Any, ArrayOf("uint8", 1, is_written=False)]
"""Bytes that are only read."""
ByteRows = Annotated[Any, ArrayOf("uint8", 2)]
Bools = Annotated[Any, ArrayOf("bool", 1)]
BoolRows = Annotated[Any, ArrayOf("bool", 2)]
Int32s = Annotated[Any, ArrayOf("int32", 1)]
Int32Rows = Annotated[Any, ArrayOf("int32", 2)]
Int64s = Annotated[Any, ArrayOf("int64", 1)]
Int64Rows = Annotated[Any, ArrayOf("int64", 2)]
Int64Tables = Annotated[Any, ArrayOf("int64", 3)]
