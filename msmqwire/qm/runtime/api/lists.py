"""Lists of the API: a page at a time, by a cursor that only its own list takes."""

from __future__ import annotations

import hmac
import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from heapq import nlargest, nsmallest
from operator import itemgetter
from typing import Any, Final, TypeVar

from msmqwire.errors import InvalidValue
from msmqwire.qm.runtime.api.routes import Parameter
from msmqwire.qm.runtime.api.values import Schema

LIMIT_MAX: Final = 200
"""Limit of items of a page."""
LIMIT_DEFAULT: Final = 50
_CURSOR_MAX: Final = 2048
_MAC_BYTES: Final = 16
PAGING: Final = (
    Parameter(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT},
        "The most items of a page",
    ),
    Parameter(
        "cursor",
        {"type": "string", "pattern": "^[A-Za-z0-9_-]*$", "maxLength": _CURSOR_MAX},
        "`next` of the page before",
    ),
)
"""The parameters of each list."""
ItemT = TypeVar("ItemT")
Key = str | int | list[str | int]
"""What items are sorted by: of a list all have the same form."""


def list_schema(items: Schema) -> Schema:
    """Return the schema of a page of a list."""
    return {
        "type": "object",
        "required": ["items", "next"],
        "properties": {
            "items": {"type": "array", "items": items, "maxItems": LIMIT_MAX},
            "next": {
                "type": ["string", "null"],
                "description": "The cursor of the next page; null at the end",
            },
        },
    }


class Cursors:
    """Makes and reads cursors, which clients can neither make nor carry over to another list."""

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = secrets.token_bytes(32) if secret is None else secret

    def make(self, kind: str, key: Key) -> str:
        """Return the cursor behind the item with a key, of a kind of list."""
        data = json.dumps(key, ensure_ascii=False).encode("utf-8", "surrogatepass")
        return urlsafe_b64encode(self._mac(kind, data) + data).decode().rstrip("=")

    def read(self, kind: str, cursor: str) -> Key:
        """Return the key of a cursor. Raises InvalidValue for one of another list."""
        try:
            data = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)) if cursor.isascii() else b""
        except (Error, ValueError):
            data = b""
        mac, data = data[:_MAC_BYTES], data[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(kind, data)):
            why = "not a cursor of this list, or of an earlier run of the server: begin without one"
            raise InvalidValue(why, path="cursor")
        key: Key = json.loads(data.decode("utf-8", "surrogatepass"))
        return key

    def _mac(self, kind: str, data: bytes) -> bytes:
        told = f"{len(kind)}:{kind}".encode("utf-8", "surrogatepass") + data
        return hmac.digest(self._secret, told, sha256)[:_MAC_BYTES]

    def page(
        self,
        items: Iterable[ItemT],
        parameters: dict[str, Any],
        kind: str,
        key: Callable[[ItemT], Key],
        show: Callable[[ItemT], Any] = lambda item: item,
        *,
        descending: bool = False,
    ) -> dict[str, Any]:
        """Return a page of a list: ``{"items", "next"}``.

        An item that is there during a whole walk is shown once, others once at most: pages go by key.

        Args:
            items: all items, in any order.
            parameters: those of the call, with ``limit`` and ``cursor`` of `PAGING`.
            kind: the list, with all that chooses its items: a cursor of another one is refused.
            key: returns what an item is sorted by; no two have the same.
            show: returns the JSON of an item.
            descending: whether the largest key comes first.

        Raises InvalidValue for a cursor of another list.
        """
        limit = parameters.get("limit", LIMIT_DEFAULT)
        after = self.after(parameters, kind)
        keyed = ((key(item), item) for item in items)
        left = keyed if after is None else (pair for pair in keyed if _follows(pair[0], after, descending))
        found = (nlargest if descending else nsmallest)(limit + 1, left, key=lambda pair: pair[0])
        shown = [show(item) for _, item in found[:limit]]
        return {"items": shown, "next": self.make(kind, found[limit - 1][0]) if len(found) > limit else None}

    def page_of_sorted(
        self,
        items: Sequence[tuple[str, ItemT]],
        parameters: dict[str, Any],
        kind: str,
        show: Callable[[ItemT], Any],
    ) -> dict[str, Any]:
        """Return a page of items that are sorted by their keys, which stand before them: see `page`."""
        limit, after = parameters.get("limit", LIMIT_DEFAULT), self.after(parameters, kind)
        begin = 0 if after is None else bisect_right(items, str(after), key=itemgetter(0))
        found = items[begin : begin + limit]
        more = begin + limit < len(items)
        shown = [show(item) for _, item in found]
        return {"items": shown, "next": self.make(kind, found[-1][0]) if more else None}

    def after(self, parameters: dict[str, Any], kind: str) -> Key | None:
        """Return the key behind which a page begins; None for the first page. Raises InvalidValue."""
        cursor = parameters.get("cursor")
        return None if cursor is None else self.read(kind, cursor)


def _follows(key: Any, after: Any, descending: bool) -> bool:
    return bool(key < after if descending else key > after)
