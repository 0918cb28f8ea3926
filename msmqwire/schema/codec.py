"""The generated codec: plain `struct` code made from a schema, for everything that must be fast.

It decides only whether bytes are well-formed. If they are not, the reference reader supplies the path,
the offset and the reason; if a value is incomplete, it is filled in first. So both readers refuse alike,
and the fast path carries no bookkeeping.

The code for structures of the library is written out, in `msmqwire.schema.generated`; for others it is made
at their first use, by the same generator.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any, Final, TypeAlias

from msmqwire.errors import MalformedPacket
from msmqwire.schema import reasons
from msmqwire.schema.codec_support import Refused
from msmqwire.schema.generated import WRITTEN
from msmqwire.schema.nodes import SCHEMAS, Header
from msmqwire.schema.record import Record

_REFUSALS: Final = (Refused, AttributeError, TypeError, ValueError, struct.error, OverflowError)
_Functions: TypeAlias = tuple[Callable[[bytes, int, int], tuple[Any, int]], Callable[[Any], bytes]]


class Codec:
    """The generated reader and writer of one schema.

    Attributes:
        parser_source, builder_source: the generated Python, for inspection.
        read_trusted, write_trusted: the generated functions; they raise `Refused` or what Python
            raises for a value of the wrong type, without a reason.
    """

    def __init__(self, header: Header) -> None:
        self.header = header
        self.read_trusted, self.write_trusted = _written(header) or _compiled(header)

    @cached_property
    def parser_source(self) -> str:
        from msmqwire.schema.codec_parse import ParserSource
        from msmqwire.schema.codec_parts import Constants

        return ParserSource(self.header, Constants()).source

    @cached_property
    def builder_source(self) -> str:
        from msmqwire.schema.codec_build import BuilderSource
        from msmqwire.schema.codec_parts import Constants

        return BuilderSource(self.header, Constants()).source

    def read(self, data: bytes, offset: int = 0) -> tuple[Record, int]:
        """Return the structure at `offset` and the offset after it. Raises MalformedPacket."""
        if type(data) is not bytes:
            data = bytes(memoryview(data))
        try:
            return self.read_trusted(data, offset, len(data))
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
                return self.write_trusted(value)
            except _REFUSALS:
                pass  # a value is missing or does not fit: completing it reports which
        return self.write_trusted(self.header.make(value))

    def _explain(self, data: bytes) -> None:
        from msmqwire.schema.reference import read

        read(self.header, data)


def _written(header: Header) -> _Functions | None:
    """Return the functions of a structure of the library, once all that their module names is declared."""
    place = WRITTEN.get(header.key)
    if place is None:
        return None
    module, declaring, name = place
    if getattr(sys.modules.get(declaring), name, None) is not header:
        return None  # another structure of that name
    if any(other[0] == module and key not in SCHEMAS for key, other in WRITTEN.items()):
        return None
    functions: _Functions = import_module(f"msmqwire.schema.generated.{module}").CODECS[header.key]
    return functions


def _compiled(header: Header) -> _Functions:
    """Return the functions of any other structure."""
    from msmqwire.schema.codec_module import module_source

    space: dict[str, Any] = {"__name__": __name__}
    exec(compile(module_source([header], header.name), f"<generated for {header.key}>", "exec"), space)
    functions: _Functions = space["CODECS"][header.key]
    return functions
