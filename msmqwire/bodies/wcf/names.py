"""Names that XML itself has, and how many attributes an element may have here."""

from __future__ import annotations

from typing import Final

ATTRIBUTES_MAX: Final = 10_000
"""Attributes of an element."""
XMLNS: Final = "xmlns"
XML_NAMESPACE: Final = "http://www.w3.org/XML/1998/namespace"
XMLNS_NAMESPACE: Final = "http://www.w3.org/2000/xmlns/"
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
"""The prefixes of one letter, each of which has record types of its own."""
