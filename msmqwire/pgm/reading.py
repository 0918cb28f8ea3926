"""A place in the bytes of a packet: every read is compared with what is left before it happens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from construct import ConstructError

from msmqwire.errors import InvalidValue, MalformedPacket


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
            raise MalformedPacket(f"{size} bytes are due, {self.left} are left", path=path, offset=self.end)
        self.offset += size
        return self.data[self.offset - size : self.offset]

    def read(self, schema: Any, path: str) -> Any:
        """Return what a schema of fixed size makes of the next bytes. Raises MalformedPacket."""
        return schema.parse(self.take(schema.sizeof(), path))


def build(schema: Any, value: Any, path: str) -> bytes:
    """Return the bytes of a value. Raises InvalidValue."""
    try:
        built: bytes = schema.build(value)
    except (ConstructError, TypeError) as exc:
        field = ".".join(filter(None, (path, *(getattr(exc, "path", None) or "").split(" -> ")[1:])))
        raise InvalidValue(f"the value does not fit the field: {value!r}", path=field) from exc
    return built
