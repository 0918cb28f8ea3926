"""Errors of the API: ``application/problem+json`` of RFC 9457."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web

from msmqwire.constants import HResult
from msmqwire.errors import (
    ChangeWaits,
    EngineFailed,
    InvalidName,
    LocatedError,
    MsmqError,
    QueueError,
    StoreError,
    StoreRefused,
    Unreachable,
)

RETRY: Final = {"Retry-After": "1"}
"""The header field of an answer to a request that may be repeated soon."""
CONTENT_TYPE: Final = "application/problem+json"
_STATUS_OF: Final[Mapping[int, int]] = {
    HResult.MQ_ERROR_QUEUE_NOT_FOUND: 404,
    HResult.MQ_ERROR_MESSAGE_NOT_FOUND: 404,
    HResult.MQ_ERROR_MESSAGE_ALREADY_RECEIVED: 404,
    HResult.MQ_ERROR_ILLEGAL_FORMATNAME: 400,
    HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME: 400,
    HResult.MQ_ERROR_OPERATION_CANCELLED: 503,
    HResult.MQ_ERROR_INSUFFICIENT_RESOURCES: 507,
}
"""By code of a refusal: the status; 409 for all others."""


class Problem(MsmqError):
    """A request that is refused with a status of HTTP.

    Attributes:
        status: the status.
        detail: the reason, one sentence.
        name: the name of the error; by default that of the status.
        path: the value that is meant, as ``messages[3].label``; empty for none.
        headers: further header fields of the answer.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        name: str = "",
        path: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.path = status, detail, path
        self.name = name or _title(status).replace(" ", "").replace("-", "")
        self.headers = dict(headers or {})

    def body(self) -> bytes:
        """Return its JSON."""
        told: dict[str, Any] = {
            "type": "about:blank",
            "title": _title(self.status),
            "status": self.status,
            "detail": self.detail,
            "name": self.name,
        }
        if self.path:
            told["path"] = self.path
        return json.dumps(told, separators=(",", ":")).encode()

    def answer(self) -> web.Response:
        """Return the answer."""
        return web.Response(
            status=self.status, body=self.body(), content_type=CONTENT_TYPE, headers=self.headers
        )


def too_many(why: str) -> Problem:
    """Return the problem of a request beyond a limit, which may be repeated."""
    return Problem(429, why, headers=RETRY)


def problem_of(exc: Exception) -> Problem | None:
    """Return the problem that an exception is for a client; None for a fault of ours."""
    kind = type(exc).__name__
    match exc:
        case Problem():
            return exc
        case web.HTTPException():
            kept = {key: value for key, value in exc.headers.items() if key in ("Allow", "Retry-After")}
            return Problem(exc.status, exc.text or exc.reason, headers=kept)
        case QueueError():
            return Problem(_STATUS_OF.get(exc.hresult, 409), exc.why, name=exc.name)
        case InvalidName() | LocatedError():
            return Problem(400, exc.why, name=kind, path=exc.path)
        case ChangeWaits() | StoreRefused():
            return Problem(507, str(exc), name=kind)
        case StoreError() | EngineFailed() | Unreachable():
            return Problem(503, str(exc), name=kind)
        case _:
            return None


def _title(status: int) -> str:
    return HTTPStatus(status).phrase
