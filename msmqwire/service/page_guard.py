"""The checks of every request for a page: the name by which it is reached, and the page that asks for it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address
from typing import Final

from aiohttp import HttpVersion11, web

HEADERS: Final = {
    "Server": "msmqwire",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""The header fields of all answers."""
_AUTHORITY: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9A-Za-z_.-]+))(?::[0-9]{0,5})?")
"""A host with a port: nothing before it, and no zone of an address, which no client sends."""
_ABSOLUTE: Final = re.compile(r"[A-Za-z][0-9A-Za-z+.-]*://([^/?#]*)")
"""A target in absolute form."""
_LOCALHOST: Final = "localhost"
_SCHEMES: Final = ("http", "https")


class PageGuard:
    """Refuses requests that come from pages of other sites, or by names of others.

    The name of a foreign site can be made to lead here (DNS rebinding): its pages would then have our origin.
    No such name is a literal address.
    """

    def __init__(self, what: str, names: Iterable[str], option: str) -> None:
        """Guard pages.

        Args:
            what: the pages and their verb, for the refusal: ``the console is``.
            names: host names, besides ``localhost`` and addresses, by which clients may reach them.
            option: the option of the server that adds a name.
        """
        self._refusal = f"{what} not reached by this name: {option} NAME allows it"
        self._names = {_LOCALHOST, *(name.lower().rstrip(".") for name in names)}

    def check_name(self, request: web.BaseRequest) -> None:
        """Raise HTTPMisdirectedRequest for a request that names another host."""
        hosts = request.headers.getall("Host", [])
        if absolute := _ABSOLUTE.match(request.raw_path):  # takes precedence over Host: RFC 9112 3.2.2
            hosts = [*hosts, absolute[1]]
        if not hosts and request.version < HttpVersion11:
            return  # of no browser
        if not hosts or not all(map(self._is_own, hosts)):
            raise web.HTTPMisdirectedRequest(text=self._refusal)

    def _is_own(self, host: str) -> bool:
        found = _AUTHORITY.fullmatch(host)
        if found is None:
            return False
        address, name = found.groups()
        if name is not None and name.lower().removesuffix(".") in self._names:
            return True
        return _is_address(address or name, 6 if address else 4)

    @staticmethod
    def check_origin(request: web.BaseRequest, *, asks_for_itself: bool = False) -> None:
        """Raise HTTPForbidden for a request from a page of another site.

        A page of another port of the same host has the same cookies. But browsers send the source of a
        request, and the Origin of requests that may change something.

        Args:
            request: the request.
            asks_for_itself: whether the request has a secret that no browser adds by itself: it may be of a
                program, without a source.
        """
        own = [f"{scheme}://{request.headers.get('Host', '')}" for scheme in _SCHEMES]
        reads = asks_for_itself or request.method in ("GET", "HEAD")
        given = request.headers.get("Origin", own[0] if reads else "")
        of_a_page = request.headers.get("Sec-Fetch-Site", "none" if reads else "same-origin")
        if given not in own or of_a_page not in (("same-origin", "none") if reads else ("same-origin",)):
            raise web.HTTPForbidden(text="the request is not of a page of this server")


@lru_cache(maxsize=64)
def _is_address(text: str, version: int) -> bool:
    try:
        return ip_address(text).version == version
    except ValueError:
        return False


async def add_headers(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """Give an answer the headers of all answers."""
    response.headers.update(HEADERS)
