"""The pages of the exporter: metrics of all targets or of one, and a start page."""

from __future__ import annotations

import html
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final
from urllib.parse import quote

from aiohttp import web

from msmqwire.exporter.families import CONTENT_TYPE
from msmqwire.exporter.scraping import Scraping
from msmqwire.names.nearest import unknown_name
from msmqwire.names.printable import counted
from msmqwire.service.metrics_page import PATH, refusal
from msmqwire.service.page_guard import PageGuard, add_headers

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
TIMEOUT_HEADER: Final = "X-Prometheus-Scrape-Timeout-Seconds"
WAIT_S: Final = 30.0
"""Seconds that a page waits for targets if the client names no time."""
WAIT_MAX_S: Final = 300.0
EARLIER_S: Final = 0.5
"""Seconds before the end of the client's time at which the page is sent, and the part of it at most."""
_EARLIER_PART: Final = 0.1
SEND_S: Final = 10.0
"""Seconds in which the client has to read the page."""
_LINKS_MAX: Final = 1000


def exporter_application(
    scraping: Scraping, names: Iterable[str], option: str, lasts: Callable[[web.BaseRequest, float], None]
) -> web.Application:
    """Return an application that answers GET and HEAD, one request on a connection.

    Args:
        scraping: the targets.
        names: host names, besides ``localhost`` and addresses, by which scrapers may reach it.
        option: the option of the exporter that adds a name, for refusals.
        lasts: lets the connection of a request last for a number of seconds from now.
    """
    guard = PageGuard("the exporter is", names, option)

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            guard.check_name(request)
            if request.match_info.http_exception is None:  # neither an unknown path nor a wrong method
                guard.check_origin(request)
            answer = await handler(request)
        except web.HTTPException as exc:
            answer = refusal(exc.status, exc.text or exc.reason)
            answer.headers.update((key, value) for key, value in exc.headers.items() if key == "Allow")
        answer.force_close()
        return answer

    async def metrics(request: web.Request) -> web.StreamResponse:
        _arguments(request, ())
        return await send(request, scraping.all)

    async def probe(request: web.Request) -> web.StreamResponse:
        name = _arguments(request, ("target",))["target"]
        machine = scraping.machines.get(name)
        if machine is None:
            raise web.HTTPNotFound(text=unknown_name(name, scraping.machines, "target").why)
        return await send(request, lambda seconds: scraping.one(machine, seconds))

    async def send(
        request: web.Request, made: Callable[[float], Awaitable[Iterator[bytes]]]
    ) -> web.StreamResponse:
        seconds = _seconds(request)
        if request.method == "HEAD":  # asks no target
            return web.Response(headers={"Content-Type": CONTENT_TYPE})
        lasts(request, seconds + SEND_S)
        parts = await made(seconds)
        # In parts, as a client may read slowly: then the next ones are not made yet.
        answer = web.StreamResponse(headers={"Content-Type": CONTENT_TYPE})
        answer.force_close()
        await answer.prepare(request)
        for part in parts:
            await answer.write(part)
        await answer.write_eof()
        return answer

    async def start(request: web.Request) -> web.StreamResponse:
        return web.Response(text=_start_page(scraping), content_type="text/html")

    async def healthy(request: web.Request) -> web.StreamResponse:
        return web.Response(text="healthy\n")

    application = web.Application(middlewares=[check])
    application.on_response_prepare.append(add_headers)
    for path, handler in ((PATH, metrics), ("/probe", probe), ("/", start), ("/-/healthy", healthy)):
        application.router.add_get(path, handler)
    return application


def _arguments(request: web.Request, wanted: tuple[str, ...]) -> dict[str, str]:
    """Return the arguments of a request: each of those wanted once, and no other. Raises HTTPBadRequest."""
    given = list(request.query.items())
    for name in wanted:
        if sum(key == name for key, _ in given) != 1:
            raise web.HTTPBadRequest(text=f"{request.path} has one {name}: {request.path}?{name}=NAME")
    for key, _ in given:
        if key not in wanted:
            allowed = f"only {', '.join(wanted)}" if wanted else "none"
            raise web.HTTPBadRequest(
                text=f"{key!r:.80} is no argument of {request.path}, which has {allowed}"
            )
    return dict(given)


def _seconds(request: web.Request) -> float:
    """Return how long a page may wait for targets. Raises HTTPBadRequest."""
    text = request.headers.get(TIMEOUT_HEADER)
    if text is None:
        return WAIT_S
    try:
        given = float(text)
    except ValueError:
        given = math.nan
    if not given > 0:
        raise web.HTTPBadRequest(text=f"{TIMEOUT_HEADER} is {text!r:.80}, not a number of seconds above 0")
    return min(given - min(EARLIER_S, given * _EARLIER_PART), WAIT_MAX_S)


def _start_page(scraping: Scraping) -> str:
    names = list(scraping.machines)
    links = "".join(
        f'<li><a href="/probe?target={quote(name, safe="")}">{html.escape(name)}</a></li>\n'
        for name in names[:_LINKS_MAX]
    )
    more = f"<p>And {counted(len(names) - _LINKS_MAX, 'more target')}.</p>\n" if names[_LINKS_MAX:] else ""
    return (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8"><title>msmqwire exporter</title></head><body>\n'
        "<h1>msmqwire exporter</h1>\n"
        f"<p>Metrics of MSMQ for Prometheus: {counted(len(names), 'target')}.</p>\n"
        f'<p><a href="{PATH}">Metrics of all targets</a></p>\n'
        f"<ul>\n{links}</ul>\n{more}</body></html>\n"
    )
