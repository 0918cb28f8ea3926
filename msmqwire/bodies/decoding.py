"""`decode`: which reader reads a body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from msmqwire.bodies import gzip, masstransit, nrbf, nservicebus, plain, rebus, shuttle, texts, wcf
from msmqwire.bodies.body import Body, Content, Headers, Problem
from msmqwire.bodies.limits import DEFAULT, Budget, LimitExceeded, Limits
from msmqwire.constants import VarEnum
from msmqwire.errors import MalformedBody

FORMATS: Final = (
    "activex", "xml", "nrbf", "wcf", "json", "text", "gzip", "masstransit", "shuttle", "bytes",
)  # fmt: skip
"""Formats of bodies, as `Body.format` names them."""
HEADERS_FORMATS: Final = (nservicebus.FORMAT, rebus.FORMAT)

VT_BINARY_OBJECT: Final = 0x300
"""The type that .NET's BinaryMessageFormatter writes; it has no name elsewhere."""

_BYTES_OF_ACTIVEX: Final = (VarEnum.VT_UI1 | VarEnum.VT_VECTOR, VarEnum.VT_UI1 | VarEnum.VT_ARRAY)
BYTES_TYPES: Final = frozenset((VarEnum.VT_EMPTY, VarEnum.VT_NULL, VarEnum.VT_BLOB, *_BYTES_OF_ACTIVEX))
"""Types that mean no more than bytes: the content decides."""
_MANY: Final = VarEnum.VT_VECTOR | VarEnum.VT_ARRAY
_VALUES: Final = frozenset(VarEnum) - {VarEnum.VT_VECTOR, VarEnum.VT_ARRAY} - BYTES_TYPES
_XML_TYPES: Final = ("xml",)
_JSON_TYPES: Final = ("json", "javascript")
_NO_CONTENT: Final = Content("bytes", plain.raw(b""), "")


def decode(body: bytes, *, body_type: int = 0, extension: bytes = b"", limits: Limits = DEFAULT) -> Body:
    """Return the decoded body of a message.

    The type decides the format; if it says no more than bytes, the content and the headers do. Nothing is
    executed, imported or resolved by the name of a type, and no bytes make this take more than its limits.

    Args:
        body: MessagePropertiesHeader.MessageBody, decrypted.
        body_type: MessagePropertiesHeader.BodyType, 0 if unknown.
        extension: MessagePropertiesHeader.ExtensionData, where NServiceBus and Rebus have their headers.
        limits: the limits of decoding; the rest is a problem.

    Raises:
        MalformedBody: the body can't be of the format that its type names. A fault further on is a problem,
            and the part before it is in the value.
    """
    body, extension = bytes(body), bytes(extension)
    budget = Budget(limits, len(body) + len(extension))
    headers = _headers(extension, budget)
    try:
        content = _content(body, body_type, headers, budget)
    except LimitExceeded as exc:
        content = Content("bytes", plain.raw(body), "", (Problem(exc.why),))
    return Body(
        content.format,
        content.value,
        content.line,
        headers.format,
        headers.values,
        content.problems + headers.problems if headers.problems else content.problems,
    )


def _headers(extension: bytes, budget: Budget) -> Headers:
    if not extension:
        return _NO_HEADERS
    try:
        if nservicebus.recognises(extension):
            return nservicebus.read(extension, budget)
        if rebus.recognises(extension):
            return rebus.read(extension, budget)
    except LimitExceeded as exc:
        return Headers(problems=(Problem(exc.why, "extension"),))
    return _NO_HEADERS


_NO_HEADERS: Final = Headers()


def _content(body: bytes, body_type: int, headers: Headers, budget: Budget) -> Content:
    if body_type == VT_BINARY_OBJECT:
        return nrbf.read(body, budget)
    if body_type & ~_MANY in _VALUES and body_type <= 0xFFFF:
        from msmqwire.bodies import activex

        if body_type not in _BYTES_OF_ACTIVEX:
            return activex.read(body, body_type, budget)
    if body_type in _BYTES_OF_ACTIVEX:
        content = by_content(body, budget, headers.values) if body else _NO_CONTENT
        if content.format != "bytes":
            return content
        return Content("activex", content.value, content.line, content.problems)
    if not body:
        return Content("activex", None, "null") if body_type == VarEnum.VT_NULL else _NO_CONTENT
    return by_content(body, budget, headers.values)


def by_content(body: bytes, budget: Budget, headers: Mapping[str, str] | None = None) -> Content:
    """Decode bytes by their form and the headers; never raises."""
    if gzip.recognises(body):
        try:
            return gzip.read(body, budget, _inside)
        except MalformedBody:
            pass
    kind = _content_type(headers) if headers else ""
    content = _inside(body, budget, kind)
    if content.format in ("json", "xml"):
        found = masstransit.of_content(content) or shuttle.of_content(content, budget, _inside)
        return found or content
    return content


def _content_type(headers: Mapping[str, str]) -> str:
    """Return ``json`` or ``xml`` if headers say so of the body."""
    name = headers.get("NServiceBus.ContentType") or headers.get("rbs2-content-type") or ""
    kind = name.partition(";")[0].lower()
    return "json" if kind.endswith(_JSON_TYPES) else "xml" if kind.endswith(_XML_TYPES) else ""


def _inside(body: bytes, budget: Budget, kind: str = "") -> Content:
    """Decode bytes by their form, without looking into gzip or envelopes; never raises."""
    from msmqwire.bodies import json, xml

    for recognises, read in ((nrbf.recognises, nrbf.read), (wcf.recognises, wcf.read)):
        if recognises(body):
            try:
                return read(body, budget)
            except MalformedBody:
                pass  # bytes that only begin so
    text = texts.decoded(body)
    if text is None:
        text = texts.of_declared_encoding(body)
    if text is None:
        return Content("bytes", plain.raw(body), "")
    fault: MalformedBody | None = None
    content: Content | None = None
    if kind == "xml" and not xml.looks_like_xml(text):
        fault = MalformedBody("not well-formed XML: no element found", offset=0)
    is_quoted = json.is_quoted(text)
    if kind == "json" or is_quoted or json.looks_like_json(text):
        try:
            content = json.of_text(text, budget)
            just_begins = content.problems and (is_quoted or _is_just_a_bracket(content))
            if kind != "json" and just_begins:
                content = None
        except MalformedBody as exc:
            fault = exc if kind else None
    if content is None and xml.looks_like_xml(text):
        try:
            content = xml.of_text(text, budget)
        except MalformedBody as exc:
            fault = fault or exc
    if content is None:
        content = texts.of_text(text, budget)
    if fault is not None:
        return replace(content, problems=(*content.problems, Problem(fault.why, fault.path, fault.offset)))
    return content


def _is_just_a_bracket(content: Content) -> bool:
    """Return whether a text with faults only begins as JSON does, as ``[2026-11-28] started`` does."""
    if not any(problem.error.startswith("not well-formed") for problem in content.problems):
        return False
    value = content.value
    return not value or (isinstance(value, list) and not isinstance(value[0], (dict, list, str)))
