"""The checks of every request: its Host, Origin, login and limits."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from msmqwire.constants import HResult
from msmqwire.errors import EngineFailed, InvalidName, LocatedError, QueueError, StoreError, Unreachable
from msmqwire.qm.runtime.console.logins import BrowserSession, ConsoleLogins
from msmqwire.service.logs import log
from msmqwire.service.page_guard import HEADERS, PageGuard

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
CSRF_HEADER: Final = "X-CSRF-Token"
API: Final = "/api/"
OPEN: Final = frozenset({"/api/login"})
"""The paths of the API that need no login."""
SESSION: Final = web.RequestKey("session", BrowserSession)
"""The login of a request."""


class Guard:
    """Lets requests from a page of the console pass, and refuses all others at once."""

    def __init__(self, logins: ConsoleLogins, cookie: str, names: tuple[str, ...], *, write: bool) -> None:
        """Guard a console.

        Args:
            logins: the logins of browsers.
            cookie: the name of the cookie of a session.
            names: host names, besides ``localhost`` and addresses, by which browsers may reach it.
            write: whether changes are allowed.
        """
        self.logins, self.cookie, self.write = logins, cookie, write
        self._pages = PageGuard("the console is", names, "--console-name")

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Check a request, and turn errors into answers."""
        known = False
        try:
            known = self._check(request)
            response = await handler(request)
        except web.HTTPException as exc:
            known, response = SESSION in request, refusal(exc.status, exc.text or exc.reason)
            response.headers.update((key, value) for key, value in exc.headers.items() if key == "Allow")
        except (LocatedError, QueueError, StoreError, EngineFailed, Unreachable) as exc:
            response = _answer_to(exc)
        except Exception:
            log.exception("a request of the console failed")
            response = refusal(500, "a fault of msmqwire itself: the log has more")
        if not known and not response.prepared:
            response.force_close()
        return response

    def _check(self, request: web.Request) -> bool:
        """Return whether a request has a login. Raises HTTPException for a request that may not pass."""
        self._pages.check_name(request)
        if not request.path.startswith(API):
            return self._session_of(request) is not None
        self._pages.check_origin(request)
        session = self._session_of(request)
        if session is not None:
            request[SESSION] = session
            if not self.logins.allows_request(session):
                raise web.HTTPTooManyRequests(text="too many requests: wait a moment")
        if request.path in OPEN:
            return session is not None
        if session is None:
            raise web.HTTPUnauthorized(text="log in first")
        if request.method == "POST":
            self._check_csrf(request, session)
        return True

    def _session_of(self, request: web.Request) -> BrowserSession | None:
        identifier = self._cookie_of(request)
        return None if identifier is None else self.logins.find(identifier, request.remote or "")

    def _cookie_of(self, request: web.Request) -> str | None:
        """Return the value of our cookie.

        aiohttp would take milliseconds to make objects of thousands of cookies.
        """
        for field in request.headers.getall("Cookie", ()):
            for cookie in field.split(";"):
                name, _, value = cookie.partition("=")
                if name.strip() == self.cookie:
                    return value.strip()
        return None

    @staticmethod
    def _check_csrf(request: web.Request, session: BrowserSession) -> None:
        given = request.headers.get(CSRF_HEADER, "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, session.csrf.encode()):
            raise web.HTTPForbidden(text=f"the header {CSRF_HEADER} is wrong: reload the page")

    def check_write(self) -> None:
        """Raise HTTPForbidden in a console that changes nothing."""
        if not self.write:
            raise web.HTTPForbidden(text="the console is read-only: --console-write lets it change queues")


def refusal(status: int, reason: str, **more: Any) -> web.Response:
    """Return an answer with an error."""
    return web.json_response({"error": reason, **more}, status=status)


def guarded_refusal(status: int, reason: str) -> web.Response:
    """Return an answer with an error to a request without a handler of the console."""
    response = refusal(status, reason)
    response.headers.update(HEADERS)
    return response


def _answer_to(exc: Exception) -> web.Response:
    match exc:
        case QueueError():
            missing = exc.hresult in (
                HResult.MQ_ERROR_QUEUE_NOT_FOUND,
                HResult.MQ_ERROR_MESSAGE_NOT_FOUND,
                HResult.MQ_ERROR_MESSAGE_ALREADY_RECEIVED,
            )
            return refusal(404 if missing else 409, exc.why, hresult=f"0x{exc.hresult & 0xFFFFFFFF:08X}")
        case InvalidName() | LocatedError():
            return refusal(400, exc.why, path=exc.path)
        case _:
            return refusal(503, str(exc))
