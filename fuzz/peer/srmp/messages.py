"""The requests that are sent to a peer, built as Windows builds them; some are then made wrong.

Dates and the port of receipts are placeholders, which each performance fills: a seed file is replayed at
another time, from another port.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID, uuid5

from fuzz.peer.binary.messages import merged
from fuzz.peer.steps import IDENTITY
from fuzz.peer.target import Target
from msmqwire.srmp.envelope import Envelope, build_envelope
from msmqwire.srmp.http_framer import HttpFramer
from msmqwire.srmp.identifiers import MessageIdentifier, StreamIdentifier
from msmqwire.srmp.request import make_request, request_address

SENT: Final = datetime(2001, 1, 1, 0, 0, 1, tzinfo=UTC)
"""The placeholder for now."""
REACHED: Final = datetime(2001, 1, 1, 0, 0, 2, tzinfo=UTC)
"""The placeholder for a time by which every message has reached its queue."""
RECEIVED: Final = datetime(2001, 1, 1, 0, 0, 3, tzinfo=UTC)
"""The placeholder for the time until which messages are kept: soon, so that the queues of the peer do not
grow.
"""
PAST: Final = datetime(2001, 1, 1, 0, 0, 4, tzinfo=UTC)
"""The placeholder for an hour ago."""
NEVER: Final = datetime(2038, 1, 19, 3, 14, 7, tzinfo=UTC)
PORT: Final = "10080"
"""The placeholder for the port for receipts."""
OTHER: Final = UUID("6f746865-7266-a66f-b57a-7a65726e6f6f")
"""The placeholder for another queue manager than the sender, equally unknown."""
KEPT_S: Final = 30
_HOUR: Final = 3600
_BOUNDARY: Final = 77077
STREAM: Final = 0x6D73_6D71_0000_0001
"""The number of the first stream of a queue manager."""


def date(value: datetime) -> str:
    """Return a date as envelopes have it: [MC-MQSRM] 2.2.1.2."""
    return value.strftime("%Y%m%dT%H%M%S")


def dressed(data: bytes, port: int, identity: UUID, *, loopback: bool) -> bytes:
    """Return the bytes of a step with its placeholders filled.

    Args:
        data: the bytes.
        port: the port for receipts.
        identity: the identity of the sending queue manager.
        loopback: whether the peer shares the clock of this side.
    """
    now = int(time.time())
    times = {SENT: now, REACHED: now + 24 * _HOUR, RECEIVED: now + KEPT_S, PAST: now - _HOUR}
    if not loopback:
        times[RECEIVED] = times[REACHED]
    for stands, seconds in times.items():
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
        data = data.replace(date(stands).encode(), date(at).encode())
    other = uuid5(identity, "other")
    return data.replace(str(OTHER).encode(), str(other).encode()).replace(
        f":{PORT}/".encode(), f":{port:05}/".encode()
    )


# -- addresses ------------------------------------------------------------------------------------------


def authority(target: Target) -> str:
    """Return host and port of the peer as a URL has them."""
    port = target.ports.srmp
    return target.host if port == 80 else f"{target.host}:{port}"


def url(target: Target, queue: str | None = None) -> str:
    """Return the URL of a queue of the peer; of its usual one for None."""
    path = (target.queue if queue is None else queue).replace("\\", "/")
    return f"http://{authority(target)}/msmq/{path}"


def receipts(target: Target, name: str) -> str:
    """Return a URL of this side for receipts; no other queue manager of this side has it."""
    return f"http://{target.own}:{PORT}/msmq/private$/{name}-{IDENTITY}"


# -- envelopes ------------------------------------------------------------------------------------------


def header(
    target: Target, number: int, groups: Mapping[str, Any] | None = None, *, queue: str | None = None
) -> dict[str, Any]:
    """Return the header of a user message: [MC-MQSRM] 2.2.4 to 2.2.6.

    Args:
        target: the peer.
        number: Uniquifier of the message.
        groups: elements that are put over the usual ones; a group that is None is left out.
        queue: the path name of the queue without the computer; the usual one for None.
    """
    usual: dict[str, Any] = {
        "path": {
            "action": "MSMQ:msmqwire",
            "to": url(target, queue),
            "id": MessageIdentifier(number, IDENTITY),
        },
        "properties": {"expiresAt": RECEIVED, "sentAt": SENT},
        "Msmq": {"Class": 0, "Priority": 3, "BodyType": 0, "SourceQmGuid": IDENTITY, "TTrq": REACHED},
    }
    return {name: group for name, group in merged(usual, groups or {}).items() if group is not None}


def envelope(target: Target, number: int, groups: Mapping[str, Any] | None = None, **more: Any) -> bytes:
    """Return the envelope with the `header` of these arguments."""
    return build_envelope(Envelope(header(target, number, groups, **more)))  # type: ignore[arg-type]


def stream(
    number: int, current: int, start: str | None = None, previous: int | None = None
) -> dict[str, Any]:
    """Return the elements of a message of a stream: [MC-MQSRM] 2.2.5.3.

    Args:
        number: the number of the stream.
        current: the number of the message in it. start: the destination of stream receipts, in the first
            message.
        previous: the number of the message before; None to leave it out.
    """
    group: dict[str, Any] = {"streamId": StreamIdentifier(IDENTITY, number), "current": current}
    if previous is not None:
        group["previous"] = previous
    if start is not None:
        group["start"] = {"sendReceiptsTo": start}
    return {"services": {"durable": True}, "stream": group}


def wants_receipt(target: Target, number: int) -> dict[str, Any]:
    """Return the elements that ask for a delivery receipt, at a URL of the message's own."""
    return {"services": {"deliveryReceiptRequest": {"sendTo": receipts(target, f"d{number}")}}}


# -- requests -------------------------------------------------------------------------------------------


def post(
    target: Target, text: bytes, body: bytes | None = None, extension: bytes | None = None, *, to: str = ""
) -> bytes:
    """Return the HTTP request of an envelope of any content: [MC-MQSRM] 2.1.1.

    `to` is the URL with the path and host of the request; the usual queue's if it is empty.
    """
    path, host = request_address(to or url(target))
    message = make_request(
        text, path, host, boundary=_BOUNDARY, queue_manager=IDENTITY, body=body, extension=extension
    )
    return message.to_bytes()


def kind(data: bytes) -> str:
    """Return the kind of the bytes of a step, for the counts of the report."""
    framer = HttpFramer()
    messages = framer.feed(data)
    if framer.error is not None or framer.buffered or not messages:
        return "bytes"
    return "request" if len(messages) == 1 else "requests"
