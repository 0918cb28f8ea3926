"""Options and limits of the console."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from msmqwire.qm.runtime.api.messaging_limits import MessagingLimits
from msmqwire.service.endpoints import Endpoint

PORT: Final = 8180
"""The default port."""


@dataclass(frozen=True, slots=True)
class ConsoleLimits:
    """Limits of the console beside those on connections, `msmqwire.service.page_connections.PageLimits`.

    Attributes:
        request_bytes: bytes of the body of a request of a page.
        requests_per_s: requests of one login in a second, on the average; three times as many at once.
        token_requests_per_s: the same, with one token.
        wrong_token_s: seconds after which a wrong token is answered.
        streams: streams of events of one login.
        sessions: logins at once; beyond it the least recently used one ends.
        session_s: the longest time of a login, in seconds.
        idle_s: seconds after which a login that is not used ends.
        unread_bytes: bytes of a stream that may wait for a reader before the stream is closed.
        sample_s: seconds from one sample of the counters to the next.
        samples: the number of samples kept.
        messaging: limits of the messages that tokens hold.
    """

    request_bytes: int = 4096
    requests_per_s: float = 100.0
    token_requests_per_s: float = 5000.0
    wrong_token_s: float = 0.5
    streams: int = 6
    sessions: int = 16
    session_s: float = 12 * 3600.0
    idle_s: float = 3600.0
    unread_bytes: int = 64 << 10
    sample_s: float = 2.0
    samples: int = 900
    messaging: MessagingLimits = field(default_factory=MessagingLimits)


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    """Options of the console.

    Attributes:
        endpoint: address and TCP port; the system chooses a free port for 0.
        write: whether it may change anything.
        names: host names, besides ``localhost`` and addresses, by which browsers may reach it.
        limits: limits on its clients.
    """

    endpoint: Endpoint
    write: bool = False
    names: tuple[str, ...] = ()
    limits: ConsoleLimits = field(default_factory=ConsoleLimits)
