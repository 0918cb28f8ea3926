"""Bodies that are XML, above all those of XmlMessageFormatter, whose root element is named after the type.

No entity, no document type, no network; size, depth and attributes are limited. docs/bodies.md has the
mapping of elements to plain data: members by name, lists of repeated elements, ``@name`` for attributes.
"""

from __future__ import annotations

from msmqwire.bodies.xml.reading import looks_like_xml, of_text, read, recognises
from msmqwire.bodies.xml.writing import write

__all__ = ["looks_like_xml", "of_text", "read", "recognises", "write"]
