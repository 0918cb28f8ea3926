"""Changes that a token asks for: each has a line in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msmqwire.qm.runtime.api.routes import Call
from msmqwire.service.logs import log

if TYPE_CHECKING:
    from msmqwire.qm.runtime.api.api import Api

_LOGGED_MAX: Final = 300


def said(call: Call, what: str, error: Exception | None = None, **details: Any) -> None:
    """Write a line in the log about a change by the token of a call, or about its refusal."""
    extra = {"token": call.sender.name, "peer": call.request.remote}
    extra |= {name: str(value)[:_LOGGED_MAX] for name, value in details.items()}
    if error is None:
        log.info(f"API: {what}", extra=extra)
    else:
        log.warning(f"API: {what} refused", extra={**extra, "error": str(error)})


async def change(api: Api, call: Call, op: str, **request: Any) -> dict[str, Any]:
    """Run an operation that changes something, with a line in the log. Raises as `Api.run` does."""
    details = {("of" if name == "name" else name): value for name, value in request.items()}
    try:
        answer = await api.run(op, **request)
    except Exception as exc:
        said(call, op, exc, **details)
        raise
    said(call, op, **details)
    return answer
