"""What the deprecated `decode_body` returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DecodedBody:
    """A decoded message body.

    Attributes:
        kind: its format: the name of its type (``VT_BSTR``, ``VT_I4 | VT_VECTOR``) or, by content,
            ``xml``, ``utf-16 text``, ``utf-8 text``, ``binaryformatter``, ``nmf``, ``bytes`` or ``empty``.
        value: the value: int, float, bool, Decimal, datetime, str, UUID, a list of those, an NmfMessage, the
            value of an XML document with one simple element, bytes for the rest, None for no value.
        text: the value as readable text, None if it has none.
        raw: the bytes of the body, always.
        note: why the value is less than the type or content announced, or None.
    """

    kind: str
    value: object
    text: str | None
    raw: bytes
    note: str | None = None
