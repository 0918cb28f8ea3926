"""A message of WCF in one line: its action, and the content of its body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msmqwire.bodies import plain
from msmqwire.bodies.wcf.framing import ENCODINGS
from msmqwire.names.printable import ELLIPSIS

_HEAD_MAX: Final = 0x1_0000
"""Characters within which action and body are looked for."""
_BODY_MAX: Final = 512
"""Characters of the body that are looked at."""
_LINE_MAX: Final = 160

_USUAL_BODY: Final = "<s:Body>"
_ACTION: Final = re.compile(r"<(?:[\w.-]++:)?Action(?:\s[^<>]*+)?>([^<]*+)<")
_BODY: Final = re.compile(r"<(?:[\w.-]++:)?Body(?:\s[^<>]*+)?>")
# The end of an element; or the start of one, with its text and end if it has no elements.
_TOKEN: Final = re.compile(
    r"</[^<>]*+>|<(?:[\w.-]++:)?([\w.-]++)[^<>]*+(?:(?<=/)(>)|>(?:([^<]*+)(</)[^<>]*+>)?)"
)
_REFERENCES: Final = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&"))


def summary(value: Mapping[str, Any]) -> str:
    """Return ``http://tempuri.org/IOrders/Submit  Submit{Id: 5}``, or the address if there is no action."""
    xml = value.get("xml")
    parts = []
    if xml:
        at = xml.find(_USUAL_BODY, 0, _HEAD_MAX)
        end = at + len(_USUAL_BODY)
        if at < 0:
            body = _BODY.search(xml, 0, _HEAD_MAX)
            at, end = body.span() if body else (0, 0)
        name = xml.find("Action", 0, at)
        action = _ACTION.search(xml, xml.rfind("<", 0, name), at) if name > 0 else None
        if action:
            parts.append(_characters(action[1]))
        parts.append(_elements(xml[end : end + _BODY_MAX]))
    if not any(parts):
        encoding: Any = value.get("encoding")
        parts = [value.get("via") or "", f"({ENCODINGS.get(encoding, encoding)})"]
    return "  ".join(plain.one_line(part, _LINE_MAX) for part in parts if part)


def _characters(text: str) -> str:
    if "&" in text:
        for reference, character in _REFERENCES:
            text = text.replace(reference, character)
    return text


def _elements(xml: str) -> str:
    """Return the first element and its content: ``Submit{Id: 5, Lines{Line: 2}}``."""
    words: list[str] = []
    depth = size = 0
    comma = ""
    for name, empty, text, leaf in _TOKEN.findall(xml):
        if not name:
            if depth:
                words.append("}")
                depth -= 1
            comma = ", "
        elif leaf or empty:
            words.append(f"{comma}{name}: {text}" if text else comma + name)
            size += len(text)
            comma = ", "
        else:
            words.append(f"{comma}{name}{{")
            depth += 1
            comma = ""
        if not depth:
            break
        size += len(name)
        if size > _LINE_MAX:
            words.append(ELLIPSIS)
            break
    else:
        if words:
            words.append(ELLIPSIS)
    return _characters("".join(words))
