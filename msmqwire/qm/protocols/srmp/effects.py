"""The effects of SRMP on the outside, besides those of `msmqwire.qm.model.effects`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from msmqwire.srmp.http_message import HttpMessage


class HttpRequest(NamedTuple):
    """Send a request of HTTP or HTTPS. The answer has the same number: it is a status code, or the
    reason why there is none. `url` is the destination, ``https://host:port/msmq/private$/q``; the start line
    and Host of the message agree with it unless the destination was redirected.
    """

    request: int
    url: str
    message: "HttpMessage"  # noqa: UP037  # compiled, it would be looked for without the quotes


class HttpResponse(NamedTuple):
    """Answer a request that came in by HTTP. Ignored if its connection is closed by now."""

    request: int
    status: int
