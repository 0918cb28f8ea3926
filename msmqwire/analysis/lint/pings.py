"""Requests and responses of the ping: [MS-MQQB] 2.2.7 and 3.1.7.6 to 3.1.7.8."""

from __future__ import annotations

from typing import Final

from msmqwire.analysis.lint.finding import Finding
from msmqwire.analysis.lint.registry import listed
from msmqwire.schema import Record

REQUESTS_MAX: Final = 1024
"""Unanswered requests that are remembered."""

RF_IN_REQUEST: Final = listed("MQQB-2.2.7-05", "A Ping Request has RF set", "Flags.RF")
RC_ECHO: Final = listed("MQQB-2.2.7-04", "A Ping Response has another RC than its request", "Flags.RC")
COOKIE_ECHO: Final = listed("MQQB-2.2.7-11", "A Ping Response has the Cookie of no request", "Cookie")


class PingLint:
    """Checks the Ping Packets between two addresses."""

    def __init__(self) -> None:
        self._requests: dict[int, bool] = {}

    def packet(self, direction: bool | str, packet: Record) -> list[Finding]:
        """Return the findings of a Ping; `direction` is ``c2s`` (or True) for one to the ping port."""
        flags = packet.Flags
        if direction is True or direction == "c2s":
            self._requests.pop(packet.Cookie, None)
            self._requests[packet.Cookie] = flags.RC
            if len(self._requests) > REQUESTS_MAX:
                del self._requests[next(iter(self._requests))]
            return [RF_IN_REQUEST.at("Flags.RF", 0, "set in a request")] if flags.RF else []
        if packet.Cookie not in self._requests:
            if not self._requests:
                return []  # the request was not seen
            return [COOKIE_ECHO.at("Cookie", 4, f"{packet.Cookie} answers no request")]
        if self._requests[packet.Cookie] != flags.RC:
            return [RC_ECHO.at("Flags.RC", 0, f"{int(flags.RC)} in the response to {int(not flags.RC)}")]
        return []
