"""Requests as Windows sends them: [MC-MQSRM] 2.1.1, 2.2.2."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from msmqwire.errors import InvalidValue
from msmqwire.srmp.envelope import Envelope, build_envelope
from msmqwire.srmp.fields import CONTENT_LENGTH, CONTENT_TYPE, Field
from msmqwire.srmp.http_message import HOST, PROXY_ACCEPT, SOAP_ACTION, RequestLine
from msmqwire.srmp.message import SrmpMessage
from msmqwire.srmp.multipart import (
    BODY_ID,
    EXTENSION_ID,
    TEXT_XML,
    Multipart,
    boundary_of,
    envelope_part,
    multipart_type,
    payload_part,
)

_ALWAYS: Final = (Field(*SOAP_ACTION), Field(*PROXY_ACCEPT))
_MULTICAST: Final = "msmq:multicast="


def request_address(to: str) -> tuple[str, str]:
    """Return request target and Host for the ``to`` of an envelope.

    Raises InvalidValue for anything but an HTTP URL or a multicast address.
    """
    if to.lower().startswith(_MULTICAST):
        address = to[len(_MULTICAST) :]
        return address, address  # SRMP-2.1.1-06
    scheme, separator, rest = to.partition("://")
    host, slash, path = rest.partition("/")
    if not separator or scheme.lower() not in ("http", "https") or not host:
        raise InvalidValue(f"{to!r} is not an address of an HTTP request", path="to")
    return f"{slash or '/'}{path}".lower(), host  # SRMP-2.1.1-04 and SRMP-2.1.1-06


def make_request(
    envelope: Envelope | bytes,
    target: str,
    host: str,
    *,
    boundary: int,
    queue_manager: UUID,
    body: bytes | None = None,
    extension: bytes | None = None,
) -> SrmpMessage:
    """Return the request that Windows would send, in its order of fields and parts.

    Without body and extension it is plain ``text/xml``, as every receipt is. `boundary` is
    the number in the boundary, `queue_manager` the sender, after which the parts are named.
    Raises InvalidValue for an envelope that can't be built.
    """
    if isinstance(envelope, Envelope):
        envelope = build_envelope(envelope)
    content: Multipart | bytes = envelope
    content_type = TEXT_XML  # SRMP-2.2.2-08
    payloads = ((BODY_ID, body), (EXTENSION_ID, extension))
    # SRMP-2.2.2-08
    parts = [payload_part(data, prefix, queue_manager) for prefix, data in payloads if data is not None]
    if parts:  # SRMP-2.2.2-08
        content = Multipart(boundary_of(boundary), (envelope_part(envelope), *parts))
        content_type = multipart_type(content.boundary)
    size = content.size if isinstance(content, Multipart) else len(content)
    fields = (
        Field(HOST, host),
        Field(CONTENT_TYPE, content_type),
        Field(CONTENT_LENGTH, str(size)),
        *_ALWAYS,
    )
    # SRMP-2.1.1-04, SRMP-2.1.1-05 and SRMP-2.1.1-10
    return SrmpMessage(RequestLine("POST", target), fields, content)
