"""The checks of every request: its Host, Origin, token or login, and limits."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from msmqwire.qm.runtime.api.allowances import Allowance
from msmqwire.qm.runtime.api.logins import BrowserSession, ConsoleLogins
from msmqwire.qm.runtime.api.problems import Problem, problem_of
from msmqwire.qm.runtime.api.rights import Caller
from msmqwire.qm.runtime.api.routes import BASE
from msmqwire.qm.runtime.api.tokens import Tokens
from msmqwire.service.logs import log
from msmqwire.service.page_guard import HEADERS, PageGuard

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
CSRF_HEADER: Final = "X-CSRF-Token"
HEALTH: Final = ("/healthz", "/readyz")
"""The paths of the API at the root."""
SESSION: Final = web.RequestKey("session", BrowserSession)
"""The login of a request of a browser."""
CALLER: Final = web.RequestKey("caller", Caller)
"""Who sends a request with a token, or with a login."""
_CHALLENGE: Final = 'Bearer realm="msmqwire"'
_SCHEME: Final = "bearer "


def is_api(path: str) -> bool:
    """Whether a path is of the API, and no file of the pages."""
    return path.startswith(f"{BASE}/") or path in (BASE, *HEALTH)


class Guard:
    """Lets requests with a token or from a page of the console pass, and refuses all others at once."""

    def __init__(
        self, logins: ConsoleLogins, tokens: Tokens, cookie: str, names: tuple[str, ...], *, write: bool
    ) -> None:
        """Guard a console.

        Args:
            logins: the logins of browsers.
            tokens: the tokens.
            cookie: the name of the cookie of a session.
            names: host names, besides ``localhost`` and addresses, by which clients may reach it.
            write: whether changes are allowed.
        """
        self.logins, self.tokens, self.cookie, self.write = logins, tokens, cookie, write
        self._pages = PageGuard("the console is", names, "--console-name")
        self._allowances: dict[str, Allowance] = {}  # by key of the token
        tokens.on_revoked.append(self._revoked)

    def _revoked(self, caller: Caller) -> None:
        self._allowances.pop(caller.key, None)

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Check a request, and turn errors into answers."""
        known = False
        try:
            known = await self._check(request)
            response = await handler(request)
        except Exception as exc:
            known, response = SESSION in request or CALLER in request, _problem(exc)
        if not response.prepared and (not known or not request.content.is_eof()):
            response.force_close()  # what is left of a body is not read
        return response

    async def _check(self, request: web.Request) -> bool:
        """Return whether a request has a token or a login. Raises HTTPException and Problem.

        The files of the pages are no secret.
        """
        self._pages.check_name(request)
        if not is_api(request.path):
            return self._session_of(request) is not None
        caller = await self._bearer(request)
        if caller is not None:
            self._pages.check_origin(request, asks_for_itself=True)
            if not self._allowance_of(caller).takes(asyncio.get_running_loop().time()):
                raise _too_many()
            request[CALLER] = caller
            return True
        session = self._session_of(request)
        if session is None:
            return False
        self._pages.check_origin(request)
        request[SESSION], request[CALLER] = session, session.caller
        if not self.logins.allows_request(session):
            raise _too_many()
        if request.method not in ("GET", "HEAD"):
            self._check_csrf(request, session)
        return True

    async def _bearer(self, request: web.Request) -> Caller | None:
        """Return who sends a token; None if none is sent. Raises Problem for a wrong one, after a while.

        Only the connection that has sent it waits.
        """
        given = request.headers.getall("Authorization", [])
        if not given:
            return None
        caller = None
        if len(given) == 1 and given[0][: len(_SCHEME)].lower() == _SCHEME:
            caller = self.tokens.find(given[0][len(_SCHEME) :])
        if caller is None:
            log.warning("a wrong token for the API", extra={"peer": request.remote})
            await self.delay()
            raise not_authorized("that is no token that holds: msmqwire token create makes one")
        return caller

    async def delay(self) -> None:
        """Wait as long as whoever has sent a wrong token has to."""
        await asyncio.sleep(self.logins.limits.wrong_token_s)

    def _allowance_of(self, caller: Caller) -> Allowance:
        allowance = self._allowances.get(caller.key)
        if allowance is None:
            now = asyncio.get_running_loop().time()
            allowance = Allowance(self.logins.limits.token_requests_per_s, now)
            self._allowances[caller.key] = allowance
        return allowance

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


def not_authorized(why: str) -> Problem:
    """Return the problem of a request that has no token, or a wrong one."""
    return Problem(401, why, headers={"WWW-Authenticate": _CHALLENGE})


def _too_many() -> Problem:
    return Problem(429, "too many requests: wait a moment", headers={"Retry-After": "1"})


def _problem(exc: Exception) -> web.Response:
    problem = problem_of(exc)
    if problem is None:
        log.error("a request of the API failed", exc_info=exc)
        problem = Problem(500, "a fault of msmqwire itself: the log has more")
    return problem.answer()


def guarded_refusal(status: int, reason: str) -> web.Response:
    """Return an answer with an error to a request without a handler of the console."""
    response = Problem(status, reason).answer()
    response.headers.update(HEADERS)
    return response
