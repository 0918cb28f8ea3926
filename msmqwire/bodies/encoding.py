"""`encode`: bodies as the programs of each format write them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from msmqwire.bodies import nrbf, nservicebus, rebus, scalars, texts, wcf
from msmqwire.bodies.body import Plain
from msmqwire.bodies.decoding import VT_BINARY_OBJECT
from msmqwire.errors import InvalidValue
from msmqwire.names.nearest import unknown_name

FORMATS_WRITTEN: Final = (
    "activex", "xml", "nrbf", "binary", "wcf", "json", "text", "bytes", "nservicebus", "rebus",
)  # fmt: skip
"""Formats that `encode` takes; ``binary`` is another name of ``nrbf``."""
_FRAMEWORKS: Final = {"nservicebus": nservicebus, "rebus": rebus}
_NSERVICEBUS_TIME: Final = "%Y-%m-%d %H:%M:%S:%f Z"


def encode(
    value: Plain,
    format: str,
    *,
    type: str | None = None,
    headers: Mapping[str, str] | None = None,
    headers_format: str | None = None,
) -> tuple[bytes, int, bytes]:
    """Return a message's body, BodyType and extension.

    The formats ``nservicebus`` and ``rebus`` are a JSON body with headers of that framework. These are
    made where they are not given, since receivers ask for them:

    * ``nservicebus``: ``NServiceBus.MessageId``, ``NServiceBus.CorrelationId`` (the same),
      ``NServiceBus.MessageIntent`` (``Send``), ``NServiceBus.ContentType``, ``NServiceBus.TimeSent`` (now),
      ``NServiceBus.EnclosedMessageTypes`` (the type), ``CorrId``;
    * ``rebus``: ``rbs2-msg-id``, ``rbs2-content-type``, ``rbs2-intent`` (``p2p``), ``rbs2-senttime`` (now),
      ``rbs2-msg-type`` (the type).

    Args:
        value: plain data, as `Body.value` has it.
        format: one of `FORMATS_WRITTEN`.
        type: for ``activex`` the name of the VARENUM (``VT_I8``), for ``xml`` the root element, for
            ``nrbf`` the class, for ``json`` its ``$type``, for ``text`` the encoding, and for the frameworks
            the type of the message.
        headers: headers of a framework, which come first and replace those that are made.
        headers_format: ``nservicebus`` or ``rebus``: only these headers, with a body of another format.

    Raises:
        InvalidValue: the format can't hold the value; the path leads to the part of it.
        InvalidArgument: there is no such format, or no such type.
    """
    if format not in FORMATS_WRITTEN:
        raise unknown_name(format, FORMATS_WRITTEN, "format of bodies that is written", path="format")
    if headers_format is not None and headers_format not in _FRAMEWORKS:
        raise unknown_name(headers_format, _FRAMEWORKS, "format of headers", path="headers_format")
    if format in _FRAMEWORKS:
        if headers_format not in (None, format):
            why = f"a message of {format} has no headers of {headers_format}; write format json"
            raise InvalidValue(why, path="headers_format")
        return _framework(value, format, type, headers or {})
    if headers is not None and headers_format is None:
        why = "headers are those of a framework; write headers_format nservicebus or rebus"
        raise InvalidValue(why, path="headers_format")
    body, body_type = _body(value, format, type)
    extension = b"" if headers_format is None else _FRAMEWORKS[headers_format].write(_checked(headers or {}))
    return body, body_type, extension


def _body(value: Plain, format: str, type_: str | None) -> tuple[bytes, int]:
    if format == "activex":
        from msmqwire.bodies import activex

        return activex.write(value, type_)
    if format == "xml":
        from msmqwire.bodies import xml

        return xml.write(value, type_), 0
    if format == "json":
        from msmqwire.bodies import json

        return json.write(value, type_), 0
    if format == "wcf":
        return wcf.write(value, type_), 0
    if format == "text":
        return texts.write(value, type_), 0
    if format == "bytes":
        return scalars.bytes_of(value, ""), 0
    return nrbf.write(value, type_), VT_BINARY_OBJECT


def _framework(
    value: Plain, format: str, type_: str | None, headers: Mapping[str, str]
) -> tuple[bytes, int, bytes]:
    from msmqwire.bodies import json

    body = json.write(value)
    made = _nservicebus(type_) if format == "nservicebus" else _rebus(type_)
    given = _checked(headers)
    if "NServiceBus.MessageId" in given:
        made["NServiceBus.CorrelationId"] = given["NServiceBus.MessageId"]
    whole = {**given, **{name: text for name, text in made.items() if name not in given}}
    if format == "nservicebus" and "CorrId" not in whole:
        # NServiceBus writes it for receivers of version 3.
        whole["CorrId"] = f"{whole['NServiceBus.CorrelationId']}\\0"
    return body, 0, _FRAMEWORKS[format].write(whole)


def _nservicebus(type_: str | None) -> dict[str, str]:
    message_id = str(uuid.uuid4())
    return {
        "NServiceBus.MessageId": message_id,
        "NServiceBus.MessageIntent": "Send",
        "NServiceBus.CorrelationId": message_id,
        "NServiceBus.ContentType": "application/json",
        **({"NServiceBus.EnclosedMessageTypes": type_} if type_ else {}),
        "NServiceBus.TimeSent": datetime.now(UTC).strftime(_NSERVICEBUS_TIME),
    }


def _rebus(type_: str | None) -> dict[str, str]:
    return {
        "rbs2-msg-id": str(uuid.uuid4()),
        "rbs2-intent": "p2p",
        **({"rbs2-msg-type": type_} if type_ else {}),
        "rbs2-senttime": datetime.now(UTC).isoformat(timespec="microseconds"),
        "rbs2-content-type": "application/json;charset=utf-8",
    }


def _checked(headers: Mapping[str, str]) -> dict[str, str]:
    for name, text in headers.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise InvalidValue("the value of a header is a text", path=f"headers.{name!s:.80}")
    return dict(headers)
