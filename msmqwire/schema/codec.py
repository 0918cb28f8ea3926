"""The generated codec: plain `struct` code made from a schema, for everything that must be fast.

It decides only whether bytes are well-formed. If they are not, the reference reader supplies the path,
the offset and the reason; if a value is incomplete, it is filled in first. So both readers refuse alike,
and the fast path carries no bookkeeping.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from msmqwire.errors import MalformedPacket
from msmqwire.schema import reasons, record
from msmqwire.schema.codec_build import BuilderSource
from msmqwire.schema.codec_parse import ParserSource
from msmqwire.schema.nodes import Header
from msmqwire.schema.record import Record


class Refused(Exception):
    """Raised by generated code for input it does not accept; `Codec` turns it into a located error."""


_REFUSALS: Final = (Refused, AttributeError, TypeError, ValueError, struct.error, OverflowError)


@lru_cache(maxsize=4096)
def _guid(data: bytes) -> UUID:
    """Return a GUID. Those of queue managers recur, and making one takes a microsecond."""
    return UUID(bytes_le=data)


class Codec:
    """The generated reader and writer of one schema.

    Attributes:
        parser_source, builder_source: the generated Python, for inspection.
        read_trusted, write_trusted: the generated functions; they raise `Refused` or what Python
            raises for a value of the wrong type, without a reason.
    """

    def __init__(self, header: Header) -> None:
        self.header = header
        parser, builder = ParserSource(header), BuilderSource(header)
        self.parser_source, self.builder_source = parser.source, builder.source
        common = {
            "Refused": Refused,
            "guid": _guid,
            "from_bytes": int.from_bytes,
            "new": object.__new__,
            **{name: getattr(record, name) for name in record.__dict__ if not name.startswith("_")},
        }
        self.read_trusted = _compiled("read", parser.source, {**common, **parser.constants})
        self.write_trusted = _compiled("write", builder.source, {**common, **builder.constants})

    def read(self, data: bytes, offset: int = 0) -> tuple[Record, int]:
        """Return the structure at `offset` and the offset after it. Raises MalformedPacket."""
        try:
            return self.read_trusted(data, offset, len(data))  # type: ignore[no-any-return]
        except Refused:
            pass
        self._explain(data[offset:])
        raise AssertionError("the readers disagree")

    def parse(self, data: bytes) -> Record:
        """Return the structure that takes exactly these bytes. Raises MalformedPacket."""
        value, end = self.read(data)
        if end != len(data):
            raise MalformedPacket(reasons.followed(len(data) - end), path=self.header.name, offset=end)
        return value

    def build(self, value: Any) -> bytes:
        """Return the bytes of a record or mapping. Raises InvalidValue."""
        if isinstance(value, Record) and value.schema is self.header:
            try:
                return self.write_trusted(value)  # type: ignore[no-any-return]
            except _REFUSALS:
                pass  # a value is missing or does not fit: completing it reports which
        return self.write_trusted(self.header.make(value))  # type: ignore[no-any-return]

    def _explain(self, data: bytes) -> None:
        from msmqwire.schema.reference import read

        read(self.header, data)


def _compiled(name: str, source: str, space: dict[str, Any]) -> Any:
    exec(compile(source, f"<generated {name}>", "exec"), space)
    return space[name]
