"""The one page of a server of metrics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from aiohttp import web

from msmqwire.service.bounded_page import BoundedPage
from msmqwire.service.page_guard import HEADERS, PageGuard, add_headers

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
PATH: Final = "/metrics"


def metrics_application(
    content_type: str,
    make: Callable[[], bytes],
    names: Iterable[str],
    option: str,
    *,
    more: Mapping[str, Handler] | None = None,
) -> web.Application:
    """Return an application that answers GET and HEAD of `PATH`, one request on a connection.

    Args:
        content_type: the type of the page.
        make: makes the page.
        names: host names, besides ``localhost`` and addresses, by which scrapers may reach it.
        option: the option of the server that adds a name, for refusals.
        more: further pages by path.
    """
    guard, page = PageGuard("the metrics are", names, option), BoundedPage(make)

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            guard.check_name(request)
            answer = await handler(request)
        except web.HTTPException as exc:
            answer = refusal(exc.status, exc.text or exc.reason)
            answer.headers.update((key, value) for key, value in exc.headers.items() if key == "Allow")
        answer.force_close()
        return answer

    async def send(request: web.Request) -> web.StreamResponse:
        guard.check_origin(request)
        return web.Response(body=page.content(), headers={"Content-Type": content_type})

    application = web.Application(middlewares=[check])
    application.on_response_prepare.append(add_headers)
    for path, handler in {PATH: send, **(more or {})}.items():
        application.router.add_get(path, handler)
    return application


def refusal(status: int, reason: str) -> web.Response:
    """Return an answer with an error."""
    return web.Response(status=status, text=f"{reason}\n", headers=HEADERS)
