"""Support for generated readers and writers, beside the rules for text."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any
from uuid import UUID

from msmqwire.schema.nodes import SCHEMAS, Flags
from msmqwire.schema.record import flags_class


class Refused(Exception):
    """Raised by generated code for input it does not accept; `Codec` turns it into a located error."""


@lru_cache(maxsize=4096)
def guid(data: bytes) -> UUID:
    """Return a GUID. Those of queue managers recur, and making one takes a microsecond."""
    return UUID(bytes_le=data)  # MQQB-2.2-01, MQMQ-2.2.18.1.1-01


@lru_cache(maxsize=4096)
def _bytes_of(number: int) -> bytes:
    return UUID(int=number).bytes_le  # MQQB-2.2-01, MQMQ-2.2.18.1.1-01


def guid_bytes(value: Any) -> bytes:
    """Return the 16 bytes of a GUID. Raises AttributeError for anything else."""
    return _bytes_of(value.int) if type(value) is UUID else value.bytes_le


def record_of(key: str) -> Any:
    """Return the class of the records of a structure."""
    return SCHEMAS[key].record


def maker_of(key: str) -> Callable[[], Any]:
    """Return the function that makes a record without fields; calling the class would look at arguments."""
    return partial(object.__new__, SCHEMAS[key].record)


def flags_of(key: str, name: str) -> Callable[[int], Any]:
    """Return the function that makes a flag word; the words of most packets are a few."""
    part = SCHEMAS[key].part(name)
    assert isinstance(part, Flags)
    return lru_cache(maxsize=1024)(flags_class(key, part))


def part_of(key: str, name: str) -> Any:
    """Return a part of a structure."""
    return SCHEMAS[key].part(name)


def reader_of(key: str) -> Callable[[bytes, int, int], tuple[Any, int]]:
    """Return the reader of another structure."""
    return SCHEMAS[key].codec.read_trusted


def writer_of(key: str) -> Callable[[Any], bytes]:
    """Return the writer of another structure."""
    return SCHEMAS[key].codec.write_trusted
