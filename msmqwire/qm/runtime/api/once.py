"""Requests with an Idempotency-Key: carried out once, and answered alike each time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256

from msmqwire.qm.rules.idempotency import KeptAnswer
from msmqwire.qm.runtime.api.problems import Problem
from msmqwire.qm.runtime.engine_driver import EngineDriver

Keep = Callable[[bytes, bool], None]
"""Keeps the answer of a request, durably or not; called in the call of the driver that carries it out."""


class Once:
    """The requests with a key of all tokens."""

    def __init__(self, driver: EngineDriver) -> None:
        self._driver = driver
        self._under_way: set[tuple[str, str]] = set()

    @property
    def keys_under_way(self) -> int:
        """The number of requests whose outcome is not durable yet."""
        return len(self._under_way)

    def find(self, owner: str, key: str, digest: bytes) -> bytes | None:
        """Return the answer to a request that was carried out before; None if it was not.

        Raises Problem: 409 for one that is under way, 422 for a key that another request has had.
        """
        if (owner, key) in self._under_way:
            why = "the request with this Idempotency-Key is under way: repeat it in a moment"
            raise Problem(409, why, name="IdempotencyKeyUnderWay", headers={"Retry-After": "1"})
        kept = self._driver.read(self._driver.core.idempotency.find, owner, key)
        if kept is None:
            return None
        if kept.digest != digest:
            why = "this Idempotency-Key was sent with another request: a key is of one request only"
            raise Problem(422, why, name="IdempotencyKeyReused", path="Idempotency-Key")
        return kept.answer

    @contextmanager
    def carried_out(self, owner: str, key: str, digest: bytes) -> Iterator[Keep]:
        """Carry out a request that `find` has not found; within this, repetitions are refused.

        So they are after it until its changes are durable, even if a disk refuses them for long.
        """
        under_way = owner, key
        self._under_way.add(under_way)
        kept = False

        def keep(answer: bytes, durable: bool) -> None:
            nonlocal kept
            self._driver.core.idempotency.put(owner, key, KeptAnswer(digest, answer), durable=durable)
            self._driver.when_settled(lambda: self._under_way.discard(under_way))
            kept = True

        try:
            yield keep
        finally:
            if not kept:
                self._under_way.discard(under_way)


def digest_of(method: str, path: str, body: bytes) -> bytes:
    """Return the digest by which a repeated request is known."""
    return sha256(b"\n".join((method.encode(), path.encode("utf-8", "surrogateescape"), body))).digest()


def packed(identifiers: Sequence[str]) -> bytes:
    """Return the identifiers of the messages of a request in few bytes: their numbers follow one another."""
    runs: list[tuple[str, int, int]] = []
    for identifier in identifiers:
        lineage, _, text = identifier.partition("\\")
        number = int(text)
        if runs and runs[-1][0] == lineage and runs[-1][1] + runs[-1][2] == number:
            runs[-1] = lineage, runs[-1][1], runs[-1][2] + 1
        else:
            runs.append((lineage, number, 1))
    return "\n".join(f"{lineage}\\{first}\\{count}" for lineage, first, count in runs).encode()


def unpacked(answer: bytes) -> list[str]:
    """Return the identifiers that `packed` has packed."""
    identifiers: list[str] = []
    for run in answer.decode().splitlines():
        lineage, first, count = run.split("\\")
        identifiers += [f"{lineage}\\{number}" for number in range(int(first), int(first) + int(count))]
    return identifiers
