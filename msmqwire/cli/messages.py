"""Messages as commands print them."""

from __future__ import annotations

import sys
from base64 import b64decode
from typing import Any, Final

from msmqwire.cli.common import dumps
from msmqwire.names.printable import counted, safe

_TEXT_SHOWN: Final = 200
_TEXT_MAX: Final = 1 << 16
"""Characters of a body that JSON has as text too."""


def show(message: dict[str, Any], as_json: bool) -> None:
    """Print one message, as JSON or for human readers."""
    from msmqwire.bodies import decode_body

    message.pop("receipt", None)
    body = b64decode(message["body"])
    text = decode_body(body, message["body_type"]).text
    if as_json or not sys.stdout.isatty():
        shown = text if text is not None and len(text) <= _TEXT_MAX else None
        print(dumps({**message, "text": shown}), flush=True)
        return
    if text is None:
        body_text = counted(len(body), "byte")
    else:
        body_text = safe(text[:_TEXT_SHOWN]) + ("..." if len(text) > _TEXT_SHOWN else "")
    kind = "" if message["class"] == 0 else f" {message['class_name']}"
    print(f"{message['identifier']}  {message['sent'] or '-'}  {message['delivery']}{kind}")
    print(f"  {safe(message['label']) or '(no label)'}: {body_text}", flush=True)
