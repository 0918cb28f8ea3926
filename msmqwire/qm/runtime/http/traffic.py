"""The counters of HTTP."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class HttpTraffic:
    """Counters of HTTP."""

    accepted: int = 0
    refused: int = 0
    evicted: int = 0
    requests: int = 0
    turned_away: int = 0
    sent: int = 0
    send_failed: int = 0
