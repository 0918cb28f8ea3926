"""Limits of a report: its page has to open in a browser, whatever was captured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DETAILS_DEFAULT: Final = 5_000
PACKETS_DEFAULT: Final = 250_000


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a report. Items beyond one are counted, and the page says that they were left out.

    Attributes:
        packets: rows of the table of packets.
        details: packets, from the first, whose fields and bytes are in the report.
        examples: packets with their fields and bytes for each requirement, besides those.
        requirements: ids of findings.
        sessions: rows of the table of sessions.
        managers: queue managers.
        addresses: addresses of one queue manager.
        endpoints: addresses of computers.
        queues: names of queues.
        problems: damaged places of the capture files.
        text: characters of one label, name or summary.
        texts: characters of all labels, names and summaries together.
        bytes: bytes shown of one packet, and of one body that was decrypted.
        fields: fields shown of one packet.
        body_text: characters of the preview of a body.
        detail_bytes: bytes that the fields and bytes of all packets take in the page, compressed.
        identities: messages remembered, to tell which were sent again.
        pending: requests remembered that have no answer yet.
        lives: messages whose life is shown.
        events: events of the life of one message.
        timeline: intervals of the charts over time.
    """

    packets: int = PACKETS_DEFAULT
    details: int = DETAILS_DEFAULT
    examples: int = 10
    requirements: int = 2_000
    sessions: int = 20_000
    managers: int = 2_000
    addresses: int = 8
    endpoints: int = 5_000
    queues: int = 5_000
    problems: int = 200
    text: int = 300
    texts: int = 24_000_000
    bytes: int = 4_096
    fields: int = 400
    body_text: int = 4_000
    detail_bytes: int = 48_000_000
    identities: int = 500_000
    pending: int = 100_000
    lives: int = 50_000
    events: int = 20
    timeline: int = 480
