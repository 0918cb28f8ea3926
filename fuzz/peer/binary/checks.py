"""Cases that each test one requirement of the binary protocol."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from fuzz.peer.binary import messages
from fuzz.peer.steps import Case, Step
from fuzz.peer.target import Target
from msmqwire.schema import Record

NAME = "binary"
OPENED = (
    Step("connect"),
    Step("establish", data=messages.establish().to_bytes(), note="EstablishConnection"),
    Step("agree", data=messages.parameters().to_bytes(), note="ConnectionParameters"),
)
"""The steps that open a session."""


def fresh(target: Target) -> Case:
    """Return the case of a fresh session."""
    return Case(NAME, OPENED, ("MQQB-3.1.5.4.1-03",), "A fresh session is answered.")


def checks(target: Target, source: random.Random) -> Iterator[Case]:
    """Return the cases, each with values that are drawn anew."""
    message = messages.message(target, source.randrange(1, 1 << 30), recoverable=True)
    yield from _handshake(message)
    yield from _wrong_packets(target, source)


def _case(ids: tuple[str, ...], text: str, *steps: Step) -> Case:
    return Case(NAME, steps, ids, text)


def _handshake(message: Record) -> Iterator[Case]:
    ids = ("MQQB-3.1.5.8-01",)
    early = Step("send", data=message.to_bytes(), breaks=ids, expects="closed", note="an early UserMessage")
    text = "A UserMessage before the session is open ends the connection."
    yield _case(ids, text, Step("connect"), early)
    yield _case(ids, text, *OPENED[:2], early)


def _wrong_packets(target: Target, source: random.Random) -> Iterator[Case]:
    wrong: list[tuple[str, str, dict[str, Any]]] = [
        ("MQQB-3.1.5.1.2-02", "a wrong signature", {"BaseHeader": {"Signature": source.randrange(1 << 32)}}),
        ("MQQB-3.1.5.1.2-02", "a wrong version", {"BaseHeader": {"VersionNumber": 0x11}}),
    ]
    for requirement, note, fields in wrong:
        packet = messages.message(target, source.randrange(1, 1 << 30), fields)
        step = Step(
            "send",
            data=packet.to_bytes(),
            breaks=(requirement,),
            expects="closed",
            note=f"a packet with {note}",
        )
        yield _case((requirement,), f"A packet with {note} ends the session.", *OPENED, step)
