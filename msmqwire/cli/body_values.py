"""Bodies made of JSON values on the command line, for ``body encode`` and ``send``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final

from click import BadParameter

from msmqwire.cli.options import Option
from msmqwire.errors import InvalidValue
from msmqwire.names.json_words import why_not_json
from msmqwire.names.nearest import unknown_name

# `msmqwire.bodies` is imported only where a value is encoded.
HEADERS_FORMATS: Final = ("nservicebus", "rebus")
"""Formats of headers, with which a body is JSON."""
FORMATS: Final = ("activex", "xml", "nrbf", "json", "text", *HEADERS_FORMATS)
"""Formats that values are written in; `binary` is another name of nrbf."""
FORMATS_HELP: Final = f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
TypeName = Annotated[
    str | None,
    Option(
        "--type",
        metavar="NAME",
        help="Type of the value: VT_I4 of activex, int or a name of xml, System.Int32 of nrbf.",
    ),
]


HeadersFormat = Annotated[
    str | None,
    Option(
        "--headers-format",
        metavar="NAME",
        help="Product of --headers if the body is of another format: nservicebus or rebus.",
        complete=lambda: HEADERS_FORMATS,
    ),
]


def headers_format_of(name: str, headers: str | None, headers_format: str | None, extension: str) -> None:
    """Check the options of headers beside the format of a value. Raises BadParameter.

    Args:
        name: the format of the value.
        headers: the file of headers.
        headers_format: the product of the headers.
        extension: the option that says where the extension goes or comes from; empty if it is not given.
    """
    if headers_format is not None and headers_format not in HEADERS_FORMATS:
        wrong = unknown_name(headers_format, HEADERS_FORMATS, "format of headers")
        raise BadParameter(wrong.why, param_hint="--headers-format")
    if headers_format is not None and name in HEADERS_FORMATS:
        raise BadParameter(f"--format {name} decides it already", param_hint="--headers-format")
    if headers_format is not None and headers is None:
        raise BadParameter("it goes with --headers", param_hint="--headers-format")
    has_headers = headers_format is not None or name in HEADERS_FORMATS
    for option in ("" if headers is None else "--headers", extension):
        if option and not has_headers:
            whose = " or ".join(HEADERS_FORMATS)
            raise BadParameter(f"{name} has none; --headers-format {whose} adds some", param_hint=option)


_TEXTS: Final = ("activex", "xml", "nrbf", "text")
"""Formats in which a text alone is a usual value."""


def format_of(name: str) -> str:
    """Return the format that an option names. Raises BadParameter."""
    if name == "binary":
        return "nrbf"
    if name not in FORMATS:
        raise BadParameter(unknown_name(name, FORMATS, "format of a value").why, param_hint="--format")
    return name


def encoded(
    data: bytes,
    name: str,
    type_name: str | None,
    headers: Mapping[str, str] | None = None,
    headers_format: str | None = None,
    *,
    bare: bool = False,
) -> tuple[bytes, int, bytes]:
    """Return body, body type and extension of a JSON text in a format; a bare text needs no quotes.

    Raises:
        InvalidValue: it is not JSON, or the format or the type has no such value.
        BadParameter: the format has no such type.
    """
    from msmqwire.bodies import encode

    value = _bare_value(data, name) if bare and name in _TEXTS else value_of(data)
    try:
        return encode(value, name, type=type_name, headers=headers, headers_format=headers_format)
    except InvalidValue as exc:
        if exc.path == "type":
            raise BadParameter(exc.why, param_hint="--type") from None
        raise


def _bare_value(data: bytes, name: str) -> Any:
    """Return the value of a JSON text, or the text itself if it is not JSON. Raises InvalidValue."""
    try:
        value = value_of(data)
    except InvalidValue:
        if data.lstrip()[:1] in (b"{", b"[", b'"'):
            raise
    else:
        if isinstance(value, (str, list, dict)) or name != "text":
            return value
    try:
        return data.decode()
    except UnicodeDecodeError as exc:
        raise InvalidValue("the text is not UTF-8", offset=exc.start) from None


def headers_of(data: bytes) -> dict[str, str]:
    """Return the headers that a JSON text has. Raises InvalidValue."""
    value = value_of(data)
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        why = 'headers are an object of texts, as {"NServiceBus.MessageIntent": "Send"}'
        raise InvalidValue(why, path="headers")
    return value


def value_of(data: bytes) -> Any:
    """Return the value of a JSON text. Raises InvalidValue."""
    try:
        return json.loads(data, parse_constant=_refuse)
    except InvalidValue:
        raise
    except (ValueError, RecursionError) as exc:
        offset = getattr(exc, "pos", getattr(exc, "start", None))
        hint = "; a text stands in quotes" if data[:1].isalpha() else ""
        raise InvalidValue(why_not_json(exc) + hint, offset=offset) from None


def _refuse(constant: str) -> Any:
    name = {"NaN": "NaN", "Infinity": "INF"}.get(constant, "-INF")
    raise InvalidValue(f'{constant} is not JSON; this number is {{"$float": "{name}"}}')
