"""Items whose packet is parsed when somebody asks for it."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.analysis.dissection.item import Item
from msmqwire.packets import parse

UNREAD: Final = object()
"""In place of the packet of an item that is not parsed yet."""

_PACKET: Final[Any] = Item.packet  # type: ignore[misc]


class LazyItem(Item):
    """An item that parses its bytes at the first use of `packet`, if that is `UNREAD`.

    It takes itself for an `Item`: it equals one with the same values, and `dataclasses.replace` makes one.
    """

    __slots__ = ()

    @property  # type: ignore[misc]
    def __class__(self) -> type[Item]:  # type: ignore[override]
        return Item

    @property
    def packet(self) -> Any:
        """The packet, or None."""
        packet = _PACKET.__get__(self)
        if packet is UNREAD:
            packet = parse(self.raw)
            _PACKET.__set__(self, packet)
        return packet

    @packet.setter
    def packet(self, packet: Any) -> None:
        _PACKET.__set__(self, packet)

    def __reduce__(self) -> tuple[Any, ...]:
        return Item, tuple(getattr(self, name) for name in Item.__match_args__)
