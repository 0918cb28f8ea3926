"""Bodies of requests: read within limits of their own and of all together, and parsed as strict JSON."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final, NoReturn

from aiohttp import web

from msmqwire.errors import InvalidValue
from msmqwire.names.printable import counted
from msmqwire.qm.runtime.api.problems import Problem

HELD_MAX: Final = 256 << 20
"""Bytes of bodies that are being read, of all clients together."""
_SHARE: Final = 4
"""One caller may have a fourth of them."""
_JSON: Final = ("application/json", "application/merge-patch+json")
_EXACT: Final = float(1 << 53)


class BodyRoom:
    """Reads bodies; those that are incomplete have a limit in all."""

    def __init__(self, most: int = HELD_MAX) -> None:
        self._most = most
        self._held: Counter[str] = Counter()
        self._total = 0

    async def read(self, request: web.Request, most: int, key: str) -> bytes:
        """Return the body of a request, of a caller with a key.

        Raises Problem: 413 for one that is longer than `most` bytes, 503 if there is no room now, 400 if it
        does not arrive whole.
        """
        if (request.content_length or 0) > most:
            raise _too_long(most)
        if not request.can_read_body:
            return b""
        data = bytearray()
        held = 0
        try:
            async for chunk in request.content.iter_any():
                data += chunk
                if len(data) > most:
                    raise _too_long(most)
                held += len(chunk)
                self._hold(key, len(chunk))
        except (web.RequestPayloadError, ConnectionError):
            raise Problem(400, "the body did not arrive whole") from None
        finally:
            self._held[key] -= held
            self._total -= held
            if not self._held[key]:
                del self._held[key]
        return bytes(data)

    def _hold(self, key: str, size: int) -> None:
        self._held[key] += size
        self._total += size
        if self._total > self._most or self._held[key] > self._most // _SHARE:
            why = "too many bodies are being read: try again in a moment"
            raise Problem(503, why, headers={"Retry-After": "1"})


def json_of(request: web.Request, data: bytes) -> Any:
    """Return the JSON of a body. Raises InvalidValue, and Problem for another type of content."""
    if request.content_type not in _JSON:
        raise Problem(415, "the body is not application/json")
    if (request.charset or "utf-8").lower() not in ("utf-8", "utf8"):
        raise Problem(415, "the charset of JSON is UTF-8")
    try:
        return json.loads(data.decode(), parse_constant=_refuse_constant, parse_float=_number)
    except UnicodeDecodeError:
        raise InvalidValue("not UTF-8", path="body") from None
    except RecursionError:
        raise InvalidValue("nested too deeply", path="body") from None
    except ValueError:  # also a number of thousands of digits
        raise InvalidValue("not JSON", path="body") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _number(text: str) -> int | float:
    """Return a number: 1.0 is a whole one, as JSON Schema has it."""
    value = float(text)
    if abs(value) == float("inf"):
        raise ValueError(text)
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def _too_long(most: int) -> Problem:
    return Problem(413, f"the body is longer than {counted(most, 'byte')}")
