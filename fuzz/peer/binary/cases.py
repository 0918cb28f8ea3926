"""Building blocks of the cases of the binary protocol."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fuzz.peer.binary import messages
from fuzz.peer.steps import Case, Step
from fuzz.peer.target import Target
from msmqwire.schema import Record

NAME: Final = "binary"
MALFORMED: Final = "MQQB-3.1.5.1.3-01"


def opened(connection: int = 0) -> tuple[Step, ...]:
    """Return the steps that open a session."""
    return (
        Step("connect", connection),
        Step("establish", connection, messages.establish().to_bytes(), note="EstablishConnection"),
        Step("agree", connection, messages.parameters().to_bytes(), note="ConnectionParameters"),
    )


OPENED: Final = opened()


def case(ids: tuple[str, ...], text: str, *steps: Step) -> Case:
    """Return a case: the requirements that it tests, the behaviour of a correct peer, and the steps."""
    return Case(NAME, steps, ids, text)


@dataclass(frozen=True, slots=True)
class Draw:
    """Draws the content of cases: new numbers each time.

    Attributes:
        target: the peer.
        source: the source of randomness.
    """

    target: Target
    source: random.Random

    def number(self) -> int:
        """Return a MessageID."""
        return self.source.randrange(1, 1 << 30)

    def sequence(self) -> int:
        """Return a TxSequenceID, with room below and above."""
        return self.source.randrange(1 << 40, 1 << 60)

    def message(self, fields: Mapping[str, Any] | None = None, **more: Any) -> Record:
        """Return a message with a new MessageID; see `messages.message`."""
        return messages.message(self.target, self.number(), fields, **more)

    def unknown_queue(self) -> str:
        """Return the path name of a queue that the peer does not have."""
        return f"private$\\msmqwire_none_{self.source.randrange(1 << 32):08x}"


def send(
    data: bytes | Record,
    expects: str = "",
    note: str = "",
    breaks: tuple[str, ...] = (),
    connection: int = 0,
    cuts: tuple[int, ...] = (),
) -> Step:
    """Return a step that sends a packet, or bytes."""
    given = data.to_bytes() if isinstance(data, Record) else data
    return Step("send", connection, given, cuts, breaks, expects, note)
