"""Which HTTP messages are SRMP, and the messages that they carry: [MC-MQSRM] 2.1.1, 2.2.2."""

from __future__ import annotations

import re
from typing import Final

from msmqwire.errors import MalformedPacket
from msmqwire.srmp.fields import find_all
from msmqwire.srmp.http_message import HEADER_FIELDS, HttpMessage, RequestLine
from msmqwire.srmp.message import SrmpMessage, from_http
from msmqwire.srmp.schema_names import SRMP

_CONTENT_ENCODING: Final = "Content-Encoding"
_PATH: Final = "/msmq/"  # in any case of letters
_NAMESPACE: Final = SRMP.encode()
_REQUEST: Final = re.compile(rb"POST [^ \r\n]*/(?i:msmq)/")


def is_srmp(http: HttpMessage) -> bool:
    """Return whether a request is meant to be SRMP: a POST to a path with ``/msmq/``, or of its elements.

    Redirections let a queue have any URL, so the namespace of SRMP anywhere in the entity is enough.
    """
    start = http.start
    if not isinstance(start, RequestLine) or start.method != "POST":
        return False
    return _PATH in start.target.lower() or _NAMESPACE in http.entity


def is_srmp_apdu(data: bytes) -> bool:
    """Return whether what came over PGM is meant to be SRMP, whose header does not matter: SRMP-2.1.2-04."""
    return data.startswith(b"POST ") or _NAMESPACE in data


def begins_srmp(data: bytes) -> bool:
    """Return whether bytes that can't be framed begin like a request to a queue."""
    return _REQUEST.match(data) is not None


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
