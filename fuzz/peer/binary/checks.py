"""Cases that each test one requirement of the binary protocol."""

from __future__ import annotations

import random
from collections.abc import Iterator

from fuzz.peer.binary import messages
from fuzz.peer.binary.cases import OPENED, Draw, case, send
from fuzz.peer.binary.directed.counts import counts
from fuzz.peer.binary.directed.delivery import delivery
from fuzz.peer.binary.directed.framing import framing
from fuzz.peer.binary.directed.handshake import handshakes
from fuzz.peer.binary.directed.headers import headers
from fuzz.peer.binary.directed.lengths import lengths
from fuzz.peer.binary.directed.ranges import ranges
from fuzz.peer.binary.directed.sessions import sessions
from fuzz.peer.binary.directed.transactions import transactions
from fuzz.peer.steps import Case
from fuzz.peer.target import Target

_SUBJECTS = (sessions, handshakes, framing, lengths, headers, counts, delivery, transactions, ranges)


def fresh(target: Target) -> Case:
    """Return the case of a fresh session."""
    return case(("MQQB-3.1.5.4.1-03",), "A fresh session is answered.", *OPENED)


def serving(target: Target) -> Case:
    """Return the case of a peer that serves: it takes messages, and acknowledges their arrival."""
    wants = messages.PA | messages.NA
    taken = {target.queue: messages.message(target, 1, recoverable=True, wants=wants)}
    if target.transactional_queue:
        sequence = 1 << 40, 1, 0
        queue = target.transactional_queue
        taken[queue] = messages.message(target, 2, queue=queue, sequence=sequence, wants=wants)
    steps = [send(packet, "taken", f"a message to {name}") for name, packet in taken.items()]
    return case(("MQQB-3.1.5.8.10-01",), "A message is taken, and its arrival acknowledged.", *OPENED, *steps)


def has_queue(target: Target) -> Case:
    """Return the case by which a peer says that it does not have its queue.

    It may drop a plain message for a queue that is not there, but a transactional one has a FinalAck.
    """
    packet = messages.message(target, 1, sequence=(1 << 40, 1, 0), wants=messages.NA)
    step = send(packet, "class 8009, final 8009, uncounted", f"a transactional message to {target.queue}")
    return case((), "A queue that is not transactional refuses a transactional message.", *OPENED, step)


def checks(target: Target, source: random.Random) -> Iterator[Case]:
    """Return the cases, each with values that are drawn anew."""
    draw = Draw(target, source)
    for subject in _SUBJECTS:
        yield from subject(draw)
