"""Two queue managers that exchange SRMP messages over a network that can lose messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.engine_harness import OWN_ADDRESS, OWN_ID, PEER_ADDRESS, PEER_ID
from tests.support.srmp.srmp_harness import SentRequest, SrmpHarness

ALPHA, BETA = "alpha", "beta"


class SrmpPair:
    """Queue managers ``alpha`` and ``beta`` that share one clock.

    Attributes:
        harnesses: by name.
        carried: the senders and messages, in order.
        fate: decides the fate of a request: ``delivered``; ``lost`` before it arrives; ``unanswered``, when
            it is its response that is lost; ``late``, when it arrives after its sender has given it up.
        late: the requests that arrive with `deliver_late`: the receiver, the sender's address and the bytes.
    """

    def __init__(self, **options: Any) -> None:
        places = {ALPHA: (OWN_ADDRESS, OWN_ID), BETA: (PEER_ADDRESS, PEER_ID)}
        self.harnesses = {
            name: SrmpHarness(computer_name=name, addresses=[address], identifier=identifier, **options)
            for name, (address, identifier) in places.items()
        }
        self._addresses = {name: address for name, (address, _) in places.items()}
        self.carried: list[tuple[str, SentRequest]] = []
        self.late: list[tuple[str, str, bytes]] = []
        self.fate: Callable[[str, SentRequest], str] = lambda *_: "delivered"

    @property
    def alpha(self) -> SrmpHarness:
        return self.harnesses[ALPHA]

    @property
    def beta(self) -> SrmpHarness:
        return self.harnesses[BETA]

    def run(self) -> None:
        """Carry requests and responses until there are none."""
        busy = True
        while busy:
            busy = False
            for name, harness in self.harnesses.items():
                for sent in harness.take():
                    busy = True
                    self._carry(name, harness, sent)

    def _carry(self, name: str, harness: SrmpHarness, sent: SentRequest) -> None:
        self.carried.append((name, sent))
        host = sent.url.partition("://")[2].partition("/")[0].lower()
        fate = self.fate(name, sent)
        if fate == "late" and host in self.harnesses:
            self.late.append((host, self._addresses[name], sent.data))
        if fate in ("lost", "late") or host not in self.harnesses:
            harness.fail(sent)
            return
        status = self.harnesses[host].post(sent.data, self._addresses[name])
        if fate == "unanswered":
            harness.fail(sent)
        else:
            harness.answer(status, sent)

    def deliver_late(self) -> None:
        """Let late requests arrive; the responses are not awaited."""
        late, self.late = self.late, []
        for receiver, address, data in late:
            self.harnesses[receiver].post(data, address)
        self.run()

    def advance(self, milliseconds: int) -> None:
        """Let time pass, with each timer expiring when due."""
        self.run()
        end = self.alpha.now + milliseconds
        while True:
            deadlines = [harness.core.deadline for harness in self.harnesses.values()]
            due = min((time for time in deadlines if time is not None), default=end + 1)
            if due > end:
                break
            self._set_clock(max(due, self.alpha.now))
        self._set_clock(end)

    def _set_clock(self, now: int) -> None:
        for harness in self.harnesses.values():
            harness.set_clock(now)
        self.run()

    def exchanged(self) -> list[tuple[str, str]]:
        """The senders and kinds of messages, in order."""
        return [(name, kind_of(sent)) for name, sent in self.carried]


def kind_of(sent: SentRequest) -> str:
    """The kind of a request, by its elements."""
    kinds = ("deliveryReceipt", "streamReceipt", "commitmentReceipt")
    has = [kind for kind in kinds if kind in sent]
    return "+".join(has) or "message"
