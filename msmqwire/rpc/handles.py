"""Context handles, the state of a server that its clients hold: [C706] 14.3.13 and [MS-RPCE] 2.2.4."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID


class ContextHandle(NamedTuple):
    """20 bytes that a server issues and a client returns unchanged; all zero is the null handle."""

    attributes: int = 0
    uuid: UUID = UUID(int=0)

    @property
    def is_null(self) -> bool:
        """Whether it stands for no state: issued by no call, or closed."""
        return not self.attributes and not self.uuid.int


NULL_HANDLE = ContextHandle()
