"""A capture with much at once: for tests that divide captures, and join the results."""

from __future__ import annotations

import random

from tests.support import captures as c
from tests.support import handmade as h


def busy_capture(share: float) -> list[c.Frame]:
    """Connections of all kinds at once, with this share of their segments out of order, repeated or lost."""
    rng, talks = random.Random(16), []
    for number in range(8):
        talk = c.TcpConversation(
            (c.CLIENT, 50_000 + number % 5), (c.SERVER, 1801 if number % 4 else 8000), mss=300,
            client_isn=number * 7919, start_ns=c.START_NS + number * 3_000_000,
        )  # fmt: skip
        if number % 3:
            talk.handshake()
        for at in range(10):
            body = h.properties_header(label=f"{number} {at}", body=bytes([at]) * rng.randrange(900))
            talk.send(h.user_message(properties=body), by_client=at % 4 > 0)
        talk.close() if number % 2 else talk.reset()
        talks.append(talk.frames)
    frames = c.merged(*talks)
    return c.disorder(frames, rng, reorder=share, duplicate=share / 2, overlap=share / 2, drop=share / 5)
