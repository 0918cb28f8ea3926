"""The endpoint of the OpenAPI document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from msmqwire.qm.runtime.api.routes import Call, Route

if TYPE_CHECKING:
    from msmqwire.qm.runtime.api.api import Api


def routes(api: Api) -> list[Route]:
    """Return the route."""

    async def document(call: Call) -> web.StreamResponse:
        return web.Response(body=api.document, content_type="application/json")

    return [
        Route(
            "GET",
            "/openapi.json",
            None,
            "openapi",
            "This document",
            document,
            answers={200: {"type": "object"}},
            tag="about",
            while_restoring=True,
        )
    ]
