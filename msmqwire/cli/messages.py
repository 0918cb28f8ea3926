"""Messages as commands print them."""

from __future__ import annotations

import sys
from base64 import b64decode
from typing import Any, Final

from msmqwire.json_text import dumps
from msmqwire.names.printable import counted, safe

_TEXT_SHOWN: Final = 200
_TEXT_MAX: Final = 1 << 16
"""Characters of a body that JSON has as text too."""


def show(message: dict[str, Any], as_json: bool, *, decode: bool = False) -> None:
    """Print one message, as JSON or for human readers; with its decoded body if wanted."""
    from msmqwire.bodies import inspect_body, whole_text

    message.pop("receipt", None)
    body, extension = b64decode(message["body"]), b64decode(message["extension"] or "")
    found = inspect_body(body, body_type=message["body_type"], extension=extension)
    text = whole_text(body, found)
    if as_json or not sys.stdout.isatty():
        shown = text if text is not None and len(text) <= _TEXT_MAX else None
        decoded = {"body_decoded": found.to_json()} if decode else {}
        print(dumps({**message, "text": shown, **decoded}), flush=True)
        return
    if text is None:
        body_text = counted(len(body), "byte")
    else:
        body_text = safe(text[:_TEXT_SHOWN]) + ("..." if len(text) > _TEXT_SHOWN else "")
    kind = "" if message["class"] == 0 else f" {message['class_name']}"
    if message.get("deliveries"):
        kind += f"  given back {counted(message['deliveries'], 'time')}"
    if message.get("reason"):
        kind += f"  {message['reason']}"
    print(f"{message['identifier']}  {message['sent'] or '-'}  {message['delivery']}{kind}")
    label = safe(message["label"]) or "(no label)"
    if not decode:
        print(f"  {label}: {body_text}", flush=True)
        return
    print(f"  {label}: {counted(len(body), 'byte')}")
    from msmqwire.cli.body_text import body_lines

    for line in body_lines(found):
        print(f"  {line}")
    sys.stdout.flush()
