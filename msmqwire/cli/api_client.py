"""The HTTP API of a server, for commands that take a URL in place of a folder."""

from __future__ import annotations

import json
from http.client import HTTPException
from typing import Annotated, Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from click import BadParameter

from msmqwire.cli.options import Option
from msmqwire.cli.passwords import password_of
from msmqwire.errors import Unreachable

TIMEOUT_S: Final = 10.0
"""Seconds that a server may take for a step of an answer."""
ANSWER_MAX: Final = 64 << 20
"""Limit of an answer in bytes."""
_SCHEMES: Final = ("http", "https")

TokenFile = Annotated[
    str | None,
    Option(
        "--token-file",
        metavar="FILE",
        help="For a URL: the token of the API, in a file of one user alone; - for standard input.",
    ),
]


def is_url(text: str) -> bool:
    """Whether a place is a URL, not a folder."""
    return "://" in text


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirect: the token is for one server."""

    def redirect_request(self, *_: Any) -> None:
        return None


class ApiClient:
    """Requests to the API at the address of a console."""

    def __init__(self, url: str, token_file: str | None) -> None:
        """Take a URL as ``http://127.0.0.1:8180``. Raises BadParameter, NoInput and InvalidValue."""
        try:
            parts = urlsplit(url)
            known = parts.scheme in _SCHEMES and parts.hostname and parts.port != 0
        except ValueError:
            known = False
        if not known or parts.path not in ("", "/") or parts.query or parts.username is not None:
            raise BadParameter(f"{url!r:.200} is not the URL of a console, as http://127.0.0.1:8180")
        self.url = f"{parts.scheme}://{parts.netloc}"
        token = None if token_file is None else password_of(token_file, "token-file").strip()
        self._headers = {"Accept": "application/json"}
        if token is not None:
            if not (token.isascii() and token.isprintable() and token):
                raise BadParameter("not a token: one line of ASCII", param_hint="--token-file")
            self._headers["Authorization"] = f"Bearer {token}"
        self._opener = build_opener(_NoRedirects, ProxyHandler({}))  # the token is for nobody else

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Return the status and the JSON of an answer. Raises Unreachable without one."""
        data = None if body is None else json.dumps(body).encode()
        headers = self._headers | ({} if data is None else {"Content-Type": "application/json"})
        request = Request(self.url + path, data=data, headers=headers, method=method)
        try:
            try:
                response = self._opener.open(request, timeout=TIMEOUT_S)
            except HTTPError as exc:
                response = exc
            with response:
                content, status = response.read(ANSWER_MAX + 1), response.status
        except (OSError, HTTPException) as exc:
            why = exc.reason if isinstance(exc, URLError) else exc
            raise Unreachable(f"{self.url}: {getattr(why, 'strerror', None) or why or 'no answer'}") from None
        if len(content) > ANSWER_MAX:
            raise Unreachable(f"{self.url}: the answer has more than {ANSWER_MAX:,} bytes")
        try:
            return status, json.loads(content)
        except (ValueError, RecursionError):
            raise Unreachable(f"{self.url}: the answer, {status}, is not that of msmqwire") from None

    def done(self, method: str, path: str, body: object = None) -> Any:
        """Return the JSON of an answer that is no refusal. Raises Unreachable."""
        status, told = self.ask(method, path, body)
        if status >= 300:
            detail = told.get("detail") if isinstance(told, dict) else None
            raise Unreachable(f"{self.url}: {detail or 'refused'} ({status})")
        return told
