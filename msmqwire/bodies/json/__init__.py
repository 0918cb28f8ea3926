"""Bodies that are JSON, as JSON serializers of every framework write them.

A body without problems is read by the parser of the standard library; one with problems once more by a parser
that knows its position and keeps the values read so far.
"""

from __future__ import annotations

from msmqwire.bodies.json.reading import is_quoted, looks_like_json, of_text, read, recognises
from msmqwire.bodies.json.writing import write

__all__ = ["is_quoted", "looks_like_json", "of_text", "read", "recognises", "write"]
