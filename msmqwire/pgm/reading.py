"""A place in the bytes of a packet: every read is compared with what is left before it happens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msmqwire.errors import MalformedPacket
from msmqwire.names.printable import agreed, counted
from msmqwire.pgm.layouts import Layout


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

    def read(self, layout: Layout, path: str) -> dict[str, Any]:
        """Return the fields of a layout in the next bytes. Raises MalformedPacket."""
        return layout.parse(self.take(layout.size, path))
