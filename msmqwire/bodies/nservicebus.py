"""Headers of NServiceBus 3 to 10 in the extension: the XML that XmlSerializer makes of a list of HeaderInfo.

They are read as NServiceBus reads them, not as strictly as XML is: a mark or spaces may come first, nulls or
anything else after the end tag, and a value may have characters that XML forbids, as they are or as
references (``&#x1;``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from msmqwire.bodies.body import Headers, Problem
from msmqwire.bodies.limits import DICT_COST, Budget, LimitExceeded
from msmqwire.errors import InvalidValue

FORMAT: Final = "nservicebus"
_START: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?<ArrayOfHeaderInfo[\s/>]")
_OPEN: Final = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?<ArrayOfHeaderInfo[^>]*?(/?)>")
_END: Final = "</ArrayOfHeaderInfo>"
_HEADER: Final = re.compile(
    r"\s*<HeaderInfo>\s*<Key>([^<]*)</Key>\s*(?:<Value>([^<]*)</Value>\s*|(<Value\s*/>\s*))?</HeaderInfo>"
)
_HEADER_COST: Final = DICT_COST // 2
_TAG: Final = re.compile(r"<(?P<end>/?)(?:[\w.-]++:)?+(?P<name>[\w.-]++)(?P<attributes>[^<>]*+)>")
_TEXT: Final = re.compile(r"[^<]+")
_SKIPPED: Final = {"<![CDATA[": "]]>", "<!--": "-->", "<?": "?>"}
"""Other markup that begins with <: its end, by its beginning."""
_NIL: Final = re.compile(r"""nil\s*=\s*["'](?:true|1)["']""")
_REFERENCE: Final = re.compile(r"&(?:#x([0-9a-fA-F]{1,8})|#([0-9]{1,10})|(\w+));")
_NAMED: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_BEGINNING: Final = (
    '\ufeff<?xml version="1.0" encoding="utf-8"?><ArrayOfHeaderInfo'
    ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema">'
)
_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_PROBLEMS_MAX: Final = 100
_ESCAPED: Final = re.compile("[\udc80-\udcff]")


def recognises(extension: bytes) -> bool:
    """Return whether an extension begins as headers of NServiceBus do."""
    return _START.match(extension) is not None


def read(extension: bytes, budget: Budget) -> Headers:
    """Read headers; a faulty one is a problem, and the sound ones are kept."""
    # Bytes that are not UTF-8 stay as surrogates until places have been counted.
    text = extension.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    mark = len(extension) - len(text.encode("utf-8", "surrogateescape"))
    values: dict[str, str] = {}
    problems: list[Problem] = []
    try:
        _read(text, values, problems, budget)
    except LimitExceeded as exc:
        problems.append(Problem(exc.why, "extension"))
    if mark:
        problems = [replace(one, offset=one.offset and one.offset + mark) for one in problems]
    if _ESCAPED.search(text):
        end = text.find(_END)
        text = text[:end] if end >= 0 else text
    if _ESCAPED.search(text):
        values = {_well_formed(name): _well_formed(value) for name, value in values.items()}
        problems.append(Problem("is not well-formed UTF-8", "extension"))
    return Headers(FORMAT, values, tuple(problems))


def _read(text: str, values: dict[str, str], problems: list[Problem], budget: Budget) -> None:
    start = _OPEN.match(text)
    if start is None:
        problems.append(Problem("the start tag of the headers is not ended", "extension", 0))
        return
    at = start.end()
    if start[1]:
        return
    end = text.rfind(_END)
    budget.spend(2 * len(text))
    match = _HEADER.match
    while (found := match(text, at)) is not None:
        at = found.end()
        _add(found[1], found[2] or "", values, problems, budget)
    if not text.startswith(_END, at):
        if end < 0:
            problems.append(Problem("the headers are not ended", "extension", _offset(text, len(text))))
        _read_otherwise(text, at, end if end >= 0 else len(text), values, problems, budget)


def _read_otherwise(
    text: str, at: int, end: int, values: dict[str, str], problems: list[Problem], budget: Budget
) -> None:
    """Read headers as elements, wherever they are: with comments, CDATA, other orders, prefixes."""
    inside = ""
    parts: dict[str, list[str]] = {}
    while at < end:
        if (run := _TEXT.match(text, at, end)) is not None:
            at = run.end()
            if inside:
                budget.text(len(run[0]))
                parts[inside].append(unescaped(_lines(run[0])))
            continue
        start = next((start for start in _SKIPPED if text.startswith(start, at)), None)
        if start is not None:
            close = text.find(_SKIPPED[start], at, end)
            if close < 0:
                problems.append(Problem(f"{start} is not ended", "extension", _offset(text, at)))
                return
            if inside and start == "<![CDATA[":
                budget.text(close - at)
                parts[inside].append(_lines(text[at + len(start) : close]))
            at = close + len(_SKIPPED[start])
            continue
        tag = _TAG.match(text, at, end)
        if tag is None:
            problems.append(Problem("has a < that begins no element", "extension", _offset(text, at)))
            if len(problems) >= _PROBLEMS_MAX:
                return
            at += 1
            continue
        at = tag.end()
        name = tag["name"]
        if name == "HeaderInfo":
            if tag["end"] and "Key" in parts:
                key, value = "".join(parts["Key"]), "".join(parts.get("Value", ()))
                _put(key, value, values, problems, budget)
            parts, inside = {}, ""
        elif name in ("Key", "Value"):
            empty = tag["attributes"].endswith("/")
            inside = "" if tag["end"] or empty else name
            if inside or not (tag["end"] or _NIL.search(tag["attributes"])):
                parts[name] = []


def _offset(text: str, at: int) -> int:
    return len(text[:at].encode("utf-8", "surrogateescape"))


def _well_formed(text: str) -> str:
    """Return a text with replacement characters for bytes that are not UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _add(key: str, value: str, values: dict[str, str], problems: list[Problem], budget: Budget) -> None:
    if "\r" in key or "\r" in value:
        key, value = _lines(key), _lines(value)
    if "&" in key:
        key = unescaped(key)
    if "&" in value:
        value = unescaped(value)
    _put(key, value, values, problems, budget)


def _put(key: str, value: str, values: dict[str, str], problems: list[Problem], budget: Budget) -> None:
    budget.records()
    budget.spend(_HEADER_COST)
    if key not in values:
        values[key] = value
    elif len(problems) < _PROBLEMS_MAX:
        why = "is there twice, which NServiceBus refuses; the first one is kept"
        problems.append(Problem(why, f"extension.{key:.200}"))


def _lines(text: str) -> str:
    """Return a text with its line ends as every reader of XML has them."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def unescaped(text: str) -> str:
    """Return a text with its references replaced, those of characters that XML forbids too."""
    return _REFERENCE.sub(_character, text)


def _character(found: re.Match[str]) -> str:
    if found[3]:
        return _NAMED.get(found[3], found[0])
    code = int(found[1], 16) if found[1] else int(found[2])
    return chr(code) if code < 0xD800 or 0xE000 <= code < 0x110000 else "\ufffd"


def write(headers: Mapping[str, str]) -> bytes:
    """Return headers as NServiceBus writes them: with a byte order mark, on one line.

    Raises InvalidValue.
    """
    parts = [_BEGINNING]
    for key, value in headers.items():
        name, text = _escaped(key, key), _escaped(value, key)
        written = f"<Value>{text}</Value>" if text else "<Value />"
        parts.append(f"<HeaderInfo><Key>{name}</Key>{written}</HeaderInfo>")
    return "".join((*parts, _END)).encode()


def _escaped(text: str, path: str) -> str:
    if _SURROGATE.search(text):
        raise InvalidValue("a text with half a surrogate pair can't be written", path=f"headers.{path!a:.80}")
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _FORBIDDEN.sub(lambda found: f"&#x{ord(found[0]):X};", text)
