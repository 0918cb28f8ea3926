"""The kinds of items: a filter by a name that is none of them finds nothing in any capture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.analysis.protocols import protocols
from msmqwire.errors import InvalidArgument
from msmqwire.names.nearest import unknown_name

KINDS: Final = (
    "EstablishConnection", "ConnectionParameters", "SessionAck", "UserMessage", "OrderAck", "FinalAck",
    "Ping", *(kind for protocol in protocols() for kind in protocol.packets.kinds), "Malformed", "Skipped",
)  # fmt: skip
"""All values of `Item.kind`."""
SEE: Final = "docs/columns.md#values lists all"
"""The page that lists all kinds, and all other values of a set."""
_BY_LOWER: Final[Mapping[str, str]] = {kind.lower(): kind for kind in KINDS}


def kind_named(name: str) -> str:
    """Return the kind with a name, in any case. Raises InvalidArgument, which names the nearest ones."""
    kind = _BY_LOWER.get(name.strip().lower())
    if kind is None:
        raise unknown_kind(name)
    return kind


def unknown_kind(name: str, path: str = "kind") -> InvalidArgument:
    """Return the error for a name that no kind has."""
    return unknown_name(name, KINDS, "kind of packet", path=path, see=SEE)
