r"""Names of queues as URIs and back: [MC-MQSRM] 2.2.4.2, 2.2.4.4, 3.1.5.1.1, 3.1.7.2.4.

A message has format names, ``DIRECT=http://host/msmq/private$/q``. On the wire an HTTP name is the URI alone,
and any other name, where allowed, has ``MSMQ:`` before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from msmqwire.errors import InvalidName, InvalidValue, MalformedPacket
from msmqwire.names import DirectName, FormatName, MulticastName, MultipleElementName, parse_format_name
from msmqwire.names.uris import http_uri
from msmqwire.srmp.schema_names import HTTP

MSMQ: Final = "MSMQ:"
_DIRECT: Final = "DIRECT="
_PROTOCOLS: Final = ("HTTP", "HTTPS")
# The same few queues are named again and again. Names from unknown peers hold at most 1 MB.
_SHORT: Final = 256
_parse_short: Final = lru_cache(1024)(parse_format_name)


def read_destination(uri: str, path: str) -> FormatName:
    """Return the queue of ``to``. Raises MalformedPacket for a queue that neither HTTP nor PGM can reach."""
    name = _parse(uri.removeprefix(MSMQ) if uri.startswith(MSMQ) else _DIRECT + uri, path)
    if not isinstance(name, MulticastName) and not is_http(name):
        raise MalformedPacket(f"{name.kind} name", path=path)
    return name


def read_http(uri: str, path: str) -> FormatName:
    """Return the queue of a URI that begins with ``http://`` or ``https://``. Raises MalformedPacket."""
    name = _parse(_DIRECT + uri, path)
    if not is_http(name):  # several names, separated by commas
        raise MalformedPacket(f"{name.kind} name", path=path)
    return name


def read_response(text: str, path: str) -> FormatName | None:
    """Return the queue of ``via``: any single queue, or None for a text of another form.

    Raises MalformedPacket.
    """
    if text.startswith(HTTP):
        return read_http(text, path)
    if not text.startswith(MSMQ):
        return None
    name = _parse(text.removeprefix(MSMQ), path)
    if isinstance(name, MultipleElementName):
        raise MalformedPacket("several names", path=path)
    return name


def read_list(texts: Iterable[str] | None, path: str) -> tuple[FormatName, ...]:
    """Return the queues of a list; only HTTP queues count: SRMP-3.1.5.1.1-43. Raises MalformedPacket."""
    return tuple(read_http(text, path) for text in texts or () if text.startswith(HTTP))


def write_destination(name: FormatName | None, path: str) -> str:
    """Return a destination as ``to``. Raises InvalidValue for a queue that neither HTTP nor PGM can reach."""
    if isinstance(name, MulticastName):  # SRMP-3.1.7.2.4-05
        return f"{MSMQ}{name.canonical}"
    return write_http(name, path)


def write_http(name: FormatName | None, path: str) -> str:
    """Return a queue as a URI. Raises InvalidValue for a queue that HTTP can't reach."""
    if name is None or not is_http(name):  # SRMP-3.1.7.2.4-05
        raise InvalidValue(f"{'no name' if name is None else name.text} is not an HTTP name", path=path)
    return http_uri(name)


def write_name(name: FormatName, path: str) -> str:
    """Return the text of a queue for ``via`` and lists, which allow any single queue. Raises InvalidValue for
    several in one.
    """
    if is_http(name):  # SRMP-3.1.7.2.4-07
        return http_uri(name)
    if isinstance(name, MultipleElementName):
        raise InvalidValue("several names in one", path=path)
    return f"{MSMQ}{name.text}"  # SRMP-3.1.7.2.4-07


def is_http(name: FormatName | None) -> bool:
    """Whether HTTP or HTTPS carries messages for this queue."""
    return isinstance(name, DirectName) and name.protocol in _PROTOCOLS


def _parse(text: str, path: str) -> FormatName:
    try:
        return _parse_short(text) if len(text) <= _SHORT else parse_format_name(text)
    except InvalidName as exc:
        raise MalformedPacket(f"{text!r:.200} is not a format name: {exc.why}", path=path) from None
