"""The generated codec: plain `struct` code made from a schema, for everything that must be fast.

It decides only whether bytes are well-formed. If they are not, the reference reader supplies the path,
the offset and the reason; if a value is incomplete, it is filled in first. So both readers refuse alike,
and the fast path carries no bookkeeping.

The code for structures of the library is written out when it is installed, into `msmqwire.schema.generated`;
see `msmqwire.schema.written`. For other structures, and if that is missing or out of date, it is made at
their first use, by the same generator.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any, Final

from msmqwire.errors import MalformedPacket
from msmqwire.schema import reasons
from msmqwire.schema.codec_support import Refused
from msmqwire.schema.nodes import SCHEMAS, Header
from msmqwire.schema.record import Record
from msmqwire.schema.written import has_written, index

_REFUSALS: Final = (Refused, AttributeError, TypeError, ValueError, struct.error, OverflowError)


class Codec:
    """The generated reader, writers and composer of one schema.

    Attributes:
        parser_source, builder_source, composer_source, json_source: the generated Python, for inspection.
        read_trusted, write_trusted, compose_trusted: the generated functions; they raise `Refused`, or any
            exception of Python for a value of the wrong type, without a reason.
        json_trusted: the same for the JSON text of a record; it raises `Refused` for values that the reader
            does not make, and AttributeError for a field that is not set.
    """

    def __init__(self, header: Header) -> None:
        self.header = header

    @cached_property
    def read_trusted(self) -> Callable[[bytes, int, int], tuple[Any, int]]:
        function: Callable[[bytes, int, int], tuple[Any, int]] = _function("readers", self.header)
        return function

    @cached_property
    def write_trusted(self) -> Callable[[Any], bytes]:
        function: Callable[[Any], bytes] = _function("writers", self.header)
        return function

    @cached_property
    def compose_trusted(self) -> Callable[..., bytes]:
        function: Callable[..., bytes] = _function("composers", self.header)
        return function

    @cached_property
    def json_trusted(self) -> Callable[[Any], str]:
        function: Callable[[Any], str] = _function("json_writers", self.header)
        return function

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

    @cached_property
    def composer_source(self) -> str:
        from msmqwire.schema.codec_compose import ComposerSource
        from msmqwire.schema.codec_parts import Constants

        return ComposerSource(self.header, Constants()).source

    @cached_property
    def json_source(self) -> str:
        from msmqwire.schema.codec_json import JsonSource
        from msmqwire.schema.codec_parts import Constants

        return JsonSource(self.header, Constants()).source

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

    def compose(self, *values: Any) -> bytes:
        """Return the bytes of plain values; sizes, counts, presence bits and padding are computed.

        It takes the parts of `codec_compose.given_parts`, in this order: a tuple of its values, or None, for
        a structure inside, and bytes for one with lists or of several forms. Flag words are integers. The
        result is that of `make` and `build`, many times faster.

        Raises InvalidValue, and TypeError for a schema with lists.
        """
        try:
            return self.compose_trusted(*values)
        except _REFUSALS:
            from msmqwire.schema.codec_given import mapping

        return self.write_trusted(self.header.make(mapping(self.header, values)))

    def _explain(self, data: bytes) -> None:
        from msmqwire.schema.reference import read

        read(self.header, data)


def _function(room: str, header: Header) -> Any:
    """Return the function of a structure: from a room of `generated` if it is there, else made now."""
    place = _written(header)
    if place is None or not has_written(room, header.key):
        return _compiled(room, header)
    return import_module(f"msmqwire.schema.generated.{room}.{place}").FUNCTIONS[header.key]


def _written(header: Header) -> str | None:
    """Return the module with the code of a structure, once all that it names is declared."""
    written = index()
    module, declaring, name = written.get(header.key, ("", "", ""))
    if getattr(sys.modules.get(declaring), name, None) is not header:
        return None  # none of the library, or another structure of that name
    if any(other[0] == module and key not in SCHEMAS for key, other in written.items()):
        return None
    return module


def _compiled(room: str, header: Header) -> Any:
    from msmqwire.schema.codec_module import KINDS, module_source

    source = module_source(KINDS[room], [header], header.name)
    space: dict[str, Any] = {"__name__": __name__}
    exec(compile(source, f"<generated {room} of {header.key}>", "exec"), space)
    return space["FUNCTIONS"][header.key]
