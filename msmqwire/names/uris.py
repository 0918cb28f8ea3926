"""Direct format names of HTTP as URIs."""

from __future__ import annotations

from typing import Final

from msmqwire.names.formats import FormatName

SCHEMES: Final = ("http://", "https://")
_DIRECT: Final = "DIRECT="


def http_uri(name: FormatName) -> str:
    """Return the URI of a queue that is reached by HTTP or HTTPS."""
    uri = name.text[len(_DIRECT) :]
    if not uri.startswith(SCHEMES):
        scheme, colon, rest = uri.partition(":")
        uri = f"{scheme.lower()}{colon}{rest}"
    return uri.replace("\\", "/")  # the name may be written with either
