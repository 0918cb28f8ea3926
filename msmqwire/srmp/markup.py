"""XML as text: escaping, and an element that needs nothing around it."""

from __future__ import annotations

import re
from typing import Any, Final

_NOT_XML = re.compile("[^\t\n\r\\x20-\\ud7ff\\ue000-\\ufffd\U00010000-\U0010ffff]")
_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_XML: Final = "http://www.w3.org/XML/1998/namespace"


def is_xml_text(text: str) -> bool:
    """Return whether XML can hold all characters of a text."""
    return not _NOT_XML.search(text)


def text_xml(text: str) -> str:
    """Return text as the content of an element: SRMP-3.1.7.2.4-36. Raises ValueError.

    A carriage return is escaped too, else its reader would take it for a line feed.
    """
    usual = text.isascii() and text.replace("\n", "").isprintable()
    if usual and "&" not in text and "<" not in text and ">" not in text:
        return text
    if bad := _NOT_XML.search(text):
        raise ValueError(f"character {ord(bad[0]):#x} can't be in XML")
    return text.translate(_ESCAPES)


def attribute_xml(text: str) -> str:
    """Return text as the value of an attribute, with its quotation marks. Raises ValueError."""
    escaped = text_xml(text).replace('"', "&quot;")
    return '"' + escaped.replace("\n", "&#10;").replace("\t", "&#9;") + '"'


def own_xml(node: Any) -> str:
    """Return an element of lxml with all its namespaces declared in it; the same text for the same content.

    lxml's canonical form would do, but refuses namespaces that are not absolute, as that of Msmq.
    """
    parts: list[str] = []
    _write(node, None, parts)
    return "".join(parts)


def _write(node: Any, default: str | None, parts: list[str]) -> None:
    namespace, name = _split(node.tag)
    parts.append(f"<{name}")
    if namespace != default:
        parts.append(f" xmlns={attribute_xml(namespace)}")
    attributes = sorted((*_split(key), value) for key, value in node.attrib.items())
    spaces = sorted({uri for uri, _, _ in attributes if uri and uri != _XML})
    parts.extend(f" xmlns:n{number}={attribute_xml(uri)}" for number, uri in enumerate(spaces))
    for uri, local, value in attributes:
        prefix = "xml:" if uri == _XML else f"n{spaces.index(uri)}:" if uri else ""
        parts.append(f" {prefix}{local}={attribute_xml(value)}")
    parts.append(f">{text_xml(node.text or '')}")
    for child in node:
        _write(child, namespace, parts)
        parts.append(text_xml(child.tail or ""))
    parts.append(f"</{name}>")


def _split(tag: str) -> tuple[str, str]:
    namespace, _, name = tag.rpartition("}")
    return namespace[1:], name
