"""The HTTP requests that carry messages: [MC-MQSRM] 3.1.7.2.4, 3.1.7.2.5 and 3.1.7.9."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from msmqwire.qm.model.message import Message
from msmqwire.qm.protocols.srmp.queue_names import write_destination
from msmqwire.qm.protocols.srmp.serializing import serialize
from msmqwire.qm.protocols.srmp.signatures import signed
from msmqwire.srmp.envelope import Envelope
from msmqwire.srmp.fields import Field, find_all
from msmqwire.srmp.http_message import HttpMessage
from msmqwire.srmp.message import SrmpMessage, parse_message
from msmqwire.srmp.multipart import Multipart, boundary_of
from msmqwire.srmp.request import make_request, request_address

if TYPE_CHECKING:
    from msmqwire.srmp.certificates import Signer

VIA: Final = "Via"
HOPS_MAX: Final = 15
"""Limit of forwarding queue managers that a message may pass, as for routing servers in [MS-MQQB]."""
_BOUNDARIES: Final = 1 << 32


def build_request(
    message: Message, *, queue_manager: UUID, receipts_url: str, signer: Signer | None = None
) -> HttpMessage:
    """Return the request for a message that begins here, always the same for the same message.

    A receipt comes with its envelope. `receipts_url` is the URL for the receipts of its stream; `signer`
    signs messages with a body or an extension. Raises InvalidValue.
    """
    envelope: Envelope | bytes
    body, extension = message.body or None, message.extension or None
    if message.soap_envelope:
        envelope = message.soap_envelope.encode("utf-8")
    else:
        serialized = serialize(message, queue_manager=queue_manager, receipts_url=receipts_url)
        envelope, body, extension = signed(serialized, message, signer, queue_manager=queue_manager)
    to = write_destination(message.destination, "destination")
    return _request(message, to, envelope, body, extension, queue_manager)


def forward_request(message: Message, *, queue_manager: UUID, computer: str) -> HttpMessage:
    """Return the request that forwards a message received by SRMP.

    Its envelope is unchanged, unless the message has been redirected: then ``to`` names the new destination.
    ``Via`` names this computer, RFC 9110 7.6.3. Raises InvalidValue.
    """
    received = parse_message(message.soap_compound_message)
    envelope: Envelope | bytes = received.envelope_bytes or b""
    to = write_destination(message.destination, "destination")
    parsed = received.envelope
    assert parsed is not None, "a received message has an envelope"
    if parsed.path.to.casefold() != to.casefold():
        envelope = parsed.replace(path=parsed.path.replace(to=to))
    else:
        to = parsed.path.to
    request = _request(message, to, envelope, received.body, received.extension, queue_manager)
    # Each on one line, however it was received: RFC 9112 5.2.
    passed = [" ".join(received.fields[number].value.split()) for number in find_all(received.fields, VIA)]
    via = [Field(VIA, value) for value in (*passed, f"1.1 {computer}") if value]
    return HttpMessage(request.start, (*request.fields, *via), request.entity)


def hops(received: SrmpMessage) -> int:
    """Return the number of queue managers, and of proxies that name themselves, that a message has passed."""
    return sum(received.fields[number].value.count(",") + 1 for number in find_all(received.fields, VIA))


def _request(
    message: Message,
    to: str,
    envelope: Envelope | bytes,
    body: bytes | None,
    extension: bytes | None,
    queue_manager: UUID,
) -> HttpMessage:
    target, host = request_address(to)
    made = make_request(
        envelope,
        target,
        host,
        boundary=_boundary(message, body, extension),
        queue_manager=queue_manager,
        body=body,
        extension=extension,
    )
    content = made.content
    assert made.start is not None, "a request has a first line"
    entity = content.to_bytes() if isinstance(content, Multipart) else content
    return HttpMessage(made.start, made.fields, entity)


def _boundary(message: Message, *parts: bytes | None) -> int:
    """Return the number of a boundary that no part contains, since readers search for it."""
    number = message.identifier.uniquifier
    while any(part is not None and boundary_of(number).encode() in part for part in parts):
        number = (number + 1) % _BOUNDARIES
    return number
