"""A place in the bytes of a packet: every read is compared with the remaining bytes before it happens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.names.printable import agreed, counted
from msmqwire.schema import Header, Record


@dataclass(slots=True)
class Reader:
    """Reads forward from `offset` and not beyond `end`."""

    data: bytes
    offset: int
    end: int

    @property
    def left(self) -> int:
        return self.end - self.offset

    def take(self, size: int, path: str) -> bytes:
        """Return the next bytes. Raises MalformedPacket."""
        if size > self.left:
            raise MalformedPacket(
                f"{counted(size, 'byte', 'are')} due, {agreed(self.left, 'are')} left",
                path=path,
                offset=self.end,
            )
        self.offset += size
        return self.data[self.offset - size : self.offset]

    def read(self, structure: Header, path: str) -> Any:
        """Return the record of a structure of fixed size in the next bytes. Raises MalformedPacket."""
        return structure.parse(self.take(fixed(structure), path))

    def read_fields(self, structure: Header, path: str) -> Any:
        """Return the record of a structure, refused at the field that is wrong. Raises MalformedPacket."""
        start = self.offset
        try:
            record, self.offset = structure.read(self.data[: self.end], self.offset)
        except MalformedPacket as exc:
            field = path + exc.path.removeprefix(structure.name)
            raise MalformedPacket(exc.why, path=field, offset=start + (exc.offset or 0)) from None
        return record


def fixed(structure: Header) -> int:
    """Return the size of a structure that is declared with one."""
    assert structure.size is not None
    return structure.size


def build(structure: Header, path: str = "", /, **values: Any) -> bytes:
    """Return the bytes of a structure with these values. Raises InvalidValue."""
    return build_record(structure.record(**values), path)


def build_record(record: Record, path: str) -> bytes:
    """Return the bytes of a complete record. Raises InvalidValue."""
    structure = record.schema
    try:
        return structure.build(record)
    except InvalidValue as exc:
        field = (path + exc.path.removeprefix(structure.name)).removeprefix(".")
        raise InvalidValue(exc.why, path=field) from None
