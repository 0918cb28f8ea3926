"""Direct format names of HTTP as URIs."""

from __future__ import annotations

from typing import Final

from msmqwire.names.formats import FormatName

_DIRECT: Final = "DIRECT="


def http_uri(name: FormatName) -> str:
    """Return the URI of a queue that is reached by HTTP or HTTPS."""
    scheme, colon, rest = name.text[len(_DIRECT) :].partition(":")
    return f"{scheme.lower()}{colon}{rest}".replace("\\", "/")  # the name may be written with either
