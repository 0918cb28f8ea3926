"""Bodies of BinaryMessageFormatter, the objects of .NET's BinaryFormatter: [MS-NRBF].

Objects are read to plain data: names of classes and members, and values. No class is ever loaded or made.
"""

from __future__ import annotations

import re
from typing import Final

from msmqwire.bodies import plain
from msmqwire.bodies.body import Content, Plain
from msmqwire.bodies.limits import Budget
from msmqwire.bodies.nrbf.graph import assemble
from msmqwire.bodies.nrbf.reading import HEADER, read_stream
from msmqwire.bodies.nrbf.records import Record
from msmqwire.bodies.nrbf.tables import DATASET, tables_line
from msmqwire.errors import MalformedBody
from msmqwire.names.printable import counted

__all__ = ["read", "recognises", "write"]
# RecordTypeEnum 0, RootId, HeaderId, MajorVersion 1, MinorVersion 0, and the next record: 2.6.1.
_HEADER: Final = re.compile(rb"\x00.{8}\x01\x00\x00\x00\x00\x00\x00\x00[\x01-\x11\x15\x16]", re.DOTALL)


def recognises(body: bytes) -> bool:
    """Return whether a body begins as one of BinaryMessageFormatter does."""
    return _HEADER.match(body) is not None


def read(body: bytes, budget: Budget) -> Content:
    """Read a body.

    Raises:
        MalformedBody: it does not begin with a SerializationHeaderRecord of version 1.0.
    """
    _check_header(body)
    budget.exact(len(body))
    stream = read_stream(body, budget)
    if stream.end < len(body) and not stream.problems:
        following = counted(len(body) - stream.end, "byte", "follow")
        stream.problem(f"{following} the end", "MessageEnd", stream.end)
    value = assemble(stream, budget)
    if stream.tables:
        from msmqwire.bodies.nrbf.datasets import with_tables

        value = with_tables(value, stream, budget)
    return Content("nrbf", value, _line(value), tuple(stream.problems))


def write(value: Plain, type_: str | None = None) -> bytes:
    """Return a body that BinaryMessageFormatter reads; see `writing.write`. Raises InvalidValue."""
    from msmqwire.bodies.nrbf import writing

    return writing.write(value, type_)


def _check_header(body: bytes) -> None:
    """Refuse bytes that do not begin with a SerializationHeaderRecord of version 1.0, 2.6.1."""
    path = "SerializationHeaderRecord"
    if len(body) < HEADER.size or body[0] != Record.SERIALIZED_STREAM_HEADER:  # NRBF-2.6.1-01
        raise MalformedBody("the header of a serialized object is missing", path=path, offset=0)
    _, _, _, major, minor = HEADER.unpack_from(body)  # NRBF-2.6.1-08
    if major != 1:  # NRBF-2.6.1-09 and NRBF-2.6.1-08
        raise MalformedBody(f"the version is {major}, not 1", path=path + ".MajorVersion", offset=9)
    if minor != 0:  # NRBF-2.6.1-10
        raise MalformedBody(f"the version is 1.{minor}, not 1.0", path=path + ".MinorVersion", offset=13)


def _line(value: Plain) -> str | None:
    """Return a value in one line for people where `plain.line` makes less of it, else None."""
    if isinstance(value, dict):
        if DATASET in value:
            return plain.one_line(tables_line(value))
        if len(value) == 3 and "m_value" in value:  # a primitive value on its own
            return plain.line(value["m_value"])
    return None
