"""Names that XML itself has."""

from __future__ import annotations

from typing import Final

XMLNS: Final = "xmlns"
XML_NAMESPACE: Final = "http://www.w3.org/XML/1998/namespace"
XMLNS_NAMESPACE: Final = "http://www.w3.org/2000/xmlns/"
