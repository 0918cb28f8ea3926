"""Recognition of SRMP among HTTP messages, and the messages that they carry: [MC-MQSRM] 2.1.1, 2.2.2.

A path alone tells nothing: any web server may have ``/msmq/`` among its own. SRMP shows itself by the
SOAPAction of MSMQ, by an envelope with an element of its namespace, or by a path of queues with the
Content-Type of a message and no other SOAPAction. A request that a queue manager would take is SRMP, too.
"""

from __future__ import annotations

import re
from typing import Final

from msmqwire.errors import MalformedPacket
from msmqwire.srmp.fields import CONTENT_TYPE, CRLF, find_all, value_of
from msmqwire.srmp.http_message import HEADER_FIELDS, SOAP_ACTION, HttpMessage, RequestLine
from msmqwire.srmp.message import SrmpMessage, from_http
from msmqwire.srmp.multipart import MULTIPART_TYPE, TEXT_XML
from msmqwire.srmp.schema_names import SRMP

_CONTENT_ENCODING: Final = "Content-Encoding"
_METHOD: Final = "POST"
_NAMESPACE: Final = SRMP.encode()
_HEAD_MAX: Final = 0x1_0000
"""Bytes in which the header of a message that can't be framed is looked for."""
_QUEUES: Final = re.compile(r"(?:https?://[^/]*)?/msmq/(private(?:\$|%24)/)?", re.IGNORECASE)
_REQUEST: Final = re.compile(rb"POST ([^ \r\n]*)")
_ENVELOPE: Final = re.compile(rb"<(?:[\w.-]{1,64}:)?Envelope[\s/>]")
_TAG: Final = re.compile(rb"<(?:[^<>\"']++|\"[^<\"]*+\"|'[^<']*+')*+(?:>|\Z)")
_DECLARATION: Final = re.compile(
    rb"[\s\"']xmlns(?::[\w.-]{1,64})?\s{0,9}=\s{0,9}[\"']" + re.escape(_NAMESPACE) + rb"[\"']"
)
_NO_MARKUP: Final = re.compile(rb"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)", re.DOTALL)
"""Comments, text and instructions, each of which may contain the beginning of another. One without an end
goes to that of the data."""


def is_srmp(http: HttpMessage) -> bool:
    """Return whether a request is meant to be SRMP: a POST that shows it, to any path.

    Redirections let a queue have any URL.
    """
    start = http.start
    if not isinstance(start, RequestLine) or start.method != _METHOD:
        return False
    content_type, action = value_of(http.fields, CONTENT_TYPE), value_of(http.fields, SOAP_ACTION[0])
    return _is_meant(start.target, content_type, action, http.entity) or _is_taken(start.target, http)


def is_srmp_apdu(data: bytes) -> bool:
    """Return whether a message over PGM is meant to be SRMP, whose header does not matter: SRMP-2.1.2-04."""
    return has_envelope(data) or begins_srmp(data)


def begins_srmp(data: bytes) -> bool:
    """Return whether bytes that can't be framed, or may be cut off, begin like a request of SRMP."""
    request = _REQUEST.match(data)
    if request is None:
        return False
    head, _, entity = data[:_HEAD_MAX].partition(CRLF + CRLF)
    values: dict[str, str] = {}
    for line in head.split(CRLF)[1:]:
        name, colon, value = line.decode("latin-1").partition(":")
        if colon:
            values.setdefault(name.lower(), value.strip())
    content_type, action = values.get(CONTENT_TYPE.lower()), values.get(SOAP_ACTION[0].lower())
    return _is_meant(request[1].decode("latin-1"), content_type, action, entity)


def _is_meant(target: str, content_type: str | None, action: str | None, entity: bytes) -> bool:
    if action is not None and action.strip("\"'") == SOAP_ACTION[1].strip('"'):
        return True
    media_type = None if content_type is None else content_type.partition(";")[0].strip().lower()
    fits = media_type in (TEXT_XML, MULTIPART_TYPE)
    queues = _QUEUES.match(target)
    if queues is None:
        return fits and has_envelope(entity)
    if (fits and action is None) or (queues[1] is not None and (fits or media_type is None)):
        return True
    return entity.lstrip()[:1] in (b"<", b"-") and has_envelope(entity)


def _is_taken(target: str, http: HttpMessage) -> bool:
    """Return whether a queue manager would take a request, however its envelope spells the namespace."""
    if _QUEUES.match(target) is None:
        return False
    try:
        read_srmp(http)
    except MalformedPacket:
        return False
    return True


def has_envelope(data: bytes) -> bool:
    """Return whether there is an envelope with the namespace of SRMP, not only a text that mentions it."""
    if _NAMESPACE not in data:
        return False
    markup = _NO_MARKUP.sub(b"", data)
    envelope = _ENVELOPE.search(markup)
    if envelope is None:
        return False
    return any(_DECLARATION.search(tag[0]) for tag in _TAG.finditer(markup, envelope.start()))


def read_srmp(http: HttpMessage) -> SrmpMessage:
    """Return the message of a request or response. Raises MalformedPacket with path and offset."""
    for number in find_all(http.fields, _CONTENT_ENCODING):
        coding = http.fields[number].value
        if coding.lower() not in ("", "identity"):
            path = f"{HEADER_FIELDS}.{_CONTENT_ENCODING}"
            raise MalformedPacket(
                f"the content coding {coding:.40} is not decoded", path=path, offset=http.field_offset(number)
            )
    return from_http(http)
