"""The pages of a server that starts: its health, from the first moment on, and 503 for everything else."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from msmqwire.qm.runtime.api.guard import guarded_refusal
from msmqwire.qm.runtime.api.problems import Problem, problem_of
from msmqwire.qm.runtime.api.routes import Reply
from msmqwire.qm.runtime.health import Health
from msmqwire.service.metrics_page import Handler
from msmqwire.service.page_connections import PageLimits
from msmqwire.service.page_guard import PageGuard, add_headers
from msmqwire.service.page_server import PageServer

HEALTHZ: Final = "/healthz"
READYZ: Final = "/readyz"
RETRY_S: Final = 1
"""Seconds after which a client may ask again."""


def healthz() -> Reply:
    """Return the answer of a loop that turns."""
    return Reply({"ok": True})


def readyz(health: Health) -> Reply:
    """Return the checks: 200 if all hold, else 503."""
    report = health.report()
    return Reply(report, 200) if report["ok"] else Reply(report, 503, {"Retry-After": str(RETRY_S)})


def health_handlers(health: Health) -> dict[str, Handler]:
    """Return the handlers of requests by path, for an application without the API."""

    async def alive(request: web.Request) -> web.StreamResponse:
        return healthz().answer()

    async def ready(request: web.Request) -> web.StreamResponse:
        return readyz(health).answer()

    return {HEALTHZ: alive, READYZ: ready}


def starting_pages(page: str, health: Health, guard: PageGuard, limits: PageLimits) -> PageServer:
    """Return a server of pages that answers while the store is being restored.

    Args:
        page: the name of the pages that follow, for logs.
        health: the health of the server.
        guard: refuses names of others.
        limits: limits on connections without a login.
    """

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            guard.check_name(request)
            answer = await handler(request)
        except web.HTTPException as exc:
            problem = problem_of(exc)
            assert problem is not None, "it has a status"
            answer = problem.answer()
        answer.force_close()  # the next request is for the pages that follow
        return answer

    async def wait(request: web.Request) -> web.StreamResponse:
        why = f"the server starts: {health.words}"
        return Problem(503, why, headers={"Retry-After": str(RETRY_S)}).answer()

    application = web.Application(middlewares=[check])
    application.on_response_prepare.append(add_headers)
    for path, handler in health_handlers(health).items():
        application.router.add_get(path, handler)
    application.router.add_route("*", "/{rest:.*}", wait)
    return PageServer(page, application, guarded_refusal, limits)
