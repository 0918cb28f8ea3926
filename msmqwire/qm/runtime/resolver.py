"""Host names to addresses, robust against a slow or silent system resolver.

getaddrinfo can't be cancelled, so each call has its own daemon thread, which a stop does not wait for. A call
that takes too long is given up: its place is free again, while its thread counts as lost until it returns.
Names that only peers have asked for can use half of the places.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from msmqwire.qm.runtime.limits import Limits
from msmqwire.service.logs import log

Answer = Callable[[list[str]], None]
WAITING_MAX: Final = 500
"""Limit of names of each kind that wait for a place; further ones get no address for now."""
FAILED_MAX: Final = 1000
FAILED_S: Final = 30.0
"""The number of names without an address that are remembered for peers, and for how many seconds."""
ADDRESSES_MAX: Final = 16
"""Limit of addresses used for one name."""


@dataclass(eq=False)
class _Question:
    """A name that is being resolved, or waits for it.

    Attributes:
        local: whether a local application sends to it.
        answers: functions called with its addresses.
        ended: whether they have been called.
    """

    name: str
    local: bool
    answers: list[Answer] = field(default_factory=list)
    started: bool = False
    ended: bool = False


@dataclass
class _Places:
    """The places of one kind of question.

    Attributes:
        size: the number of places.
        running: threads whose answer is awaited.
        lost: threads that take too long and have not returned.
        waiting: questions without a place.
    """

    size: int
    running: int = 0
    lost: int = 0
    waiting: deque[_Question] = field(default_factory=deque)

    @property
    def has_room(self) -> bool:
        """Whether one more may start: lost threads never outnumber the places."""
        return self.running < self.size and self.running + self.lost < 2 * self.size


class NameResolver(Protocol):
    """The resolver of host names."""

    def resolve(self, name: str, answer: Answer, *, local: bool) -> None:
        """Call `answer` with the addresses of a name.

        `local` is whether a local application sends to it: no peer may keep it waiting.
        """


class Resolver:
    """Resolves host names for one queue manager."""

    def __init__(self, limits: Limits) -> None:
        self._timeout_s = limits.resolve_s
        kept = max(1, limits.resolutions // 2)
        self._places = {True: _Places(kept), False: _Places(max(1, limits.resolutions - kept))}
        self._questions: dict[str, _Question] = {}  # questions that have not ended
        self._failed: OrderedDict[str, float] = OrderedDict()  # until when, latest last

    def resolve(self, name: str, answer: Answer, *, local: bool) -> None:
        """Call `answer` with the addresses of a host, later; with an empty list for none."""
        loop, key = asyncio.get_running_loop(), name.lower()
        question = self._questions.get(key)
        if question is None:
            if not local and self._has_failed(key, loop.time()):
                loop.call_soon(answer, [])
                return
            question = _Question(name, local)
            if not self._enter(question):
                log.warning("too many host names are being resolved", extra={"host": name})
                loop.call_soon(answer, [])
                return
            self._questions[key] = question
        elif local and not question.local and not question.started:  # it need not wait among names of peers
            self._places[False].waiting.remove(question)
            question.local = True
            self._places[True].waiting.append(question)
        question.answers.append(answer)
        self._start_waiting()

    def _has_failed(self, key: str, now: float) -> bool:
        failed = self._failed
        while failed and next(iter(failed.values())) <= now:
            failed.popitem(last=False)
        return key in failed

    def _enter(self, question: _Question) -> bool:
        waiting = self._places[question.local].waiting
        if len(waiting) >= WAITING_MAX:
            return False
        waiting.append(question)
        return True

    def _start_waiting(self) -> None:
        for places in self._places.values():
            while places.waiting and places.has_room:
                self._start(places.waiting.popleft(), places)

    def _start(self, question: _Question, places: _Places) -> None:
        loop = asyncio.get_running_loop()
        question.started = True
        places.running += 1
        deadline = loop.call_later(self._timeout_s, self._give_up, question, places)

        def returned(addresses: list[str]) -> None:
            deadline.cancel()
            if question.ended:
                places.lost -= 1
            else:
                places.running -= 1
                self._end(question, addresses)
            self._start_waiting()

        def work() -> None:
            addresses = _addresses(question.name)
            try:
                loop.call_soon_threadsafe(returned, addresses)
            except RuntimeError:
                return  # the loop has ended, and no question is left

        try:
            threading.Thread(target=work, name=f"resolve {question.name}", daemon=True).start()
        except RuntimeError as exc:  # no more threads
            log.error("a host name can't be resolved", extra={"host": question.name, "error": str(exc)})
            loop.call_soon(returned, [])

    def _give_up(self, question: _Question, places: _Places) -> None:
        places.running -= 1
        places.lost += 1
        log.warning("a host name takes too long to be resolved", extra={"host": question.name})
        self._end(question, [])
        self._start_waiting()

    def _end(self, question: _Question, addresses: list[str]) -> None:
        question.ended = True
        key = question.name.lower()
        del self._questions[key]
        self._failed.pop(key, None)
        if not addresses:
            self._failed[key] = asyncio.get_running_loop().time() + FAILED_S
            if len(self._failed) > FAILED_MAX:
                self._failed.popitem(last=False)
        for answer in question.answers:
            answer(addresses)


def _addresses(name: str) -> list[str]:
    """Return the addresses of a host as the system resolves it; an empty list for none."""
    try:
        results = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(socket_address[0]) for *_, socket_address in results))[:ADDRESSES_MAX]
