"""Envelopes of MassTransit: an object in JSON with a ``message``, and its types in ``messageType``."""

from __future__ import annotations

from collections.abc import Sequence

from msmqwire.bodies import plain
from msmqwire.bodies.body import Content, Plain

_FORMAT = "masstransit"


def of_content(content: Content) -> Content | None:
    """Return JSON or XML as the envelope that it is; None if it is none."""
    value = content.value
    if not isinstance(value, dict) or "message" not in value:
        return None
    types = value.get("messageType")
    if content.format == "xml" and value.get(plain.TYPE) != "envelope":
        return None
    names = types if isinstance(types, list) else [types]
    if not all(isinstance(name, str) for name in names) or not ("messageId" in value or _are_urns(names)):
        return None
    return Content(_FORMAT, value, None, content.problems)


def _are_urns(names: Sequence[Plain]) -> bool:
    return bool(names) and all(isinstance(name, str) and name.startswith("urn:message:") for name in names)
