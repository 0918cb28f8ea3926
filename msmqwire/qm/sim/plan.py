"""The plan of a run, made from its seed: what applications do and what goes wrong, and when.

A plan is data. What a run does beyond it (delays, sizes of chunks) is drawn from the same seed while it goes,
so a plan with items left out is a run of its own that is as repeatable: shrinking is leaving out items.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

from msmqwire.qm.model.enumerations import AcknowledgementsRequested
from msmqwire.qm.model.settings import Settings

NAMES: Final = ("alpha", "beta", "gamma", "delta")
BUSY_MS: Final = 60_000
"""Operations begin within this time; faults end soon after it."""
PLAIN: Final = "plain"
TRANSACTIONAL: Final = "tx"
SMALL: Final = "small"
"""The queues of every node: one of each kind, `SMALL` a plain one with a quota of a kilobyte."""
SMALL_TRANSACTIONAL: Final = "smalltx"
QUEUES: Final = (PLAIN, TRANSACTIONAL, SMALL, SMALL_TRANSACTIONAL)
FAULTS: Final = (
    "crash", "restart", "cut", "partition", "refuse", "unresolved", "disk", "slow disk", "clock", "amnesia",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that happens.

    Attributes:
        at: milliseconds since the start.
        what: the kind, as in `workload.OPERATIONS` or `FAULTS`.
        node: where.
        args: further details, by name.
    """

    at: int
    what: str
    node: str
    args: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        details = " ".join(f"{name}={value}" for name, value in self.args.items())
        return f"t={self.at} {self.node} {self.what} {details}".rstrip()


@dataclass(frozen=True, slots=True)
class Plan:
    """A run before it is run.

    Attributes:
        seed: what everything is drawn from.
        nodes: names of the queue managers.
        settings: of all of them.
        clocks: seconds that the clock of each is ahead.
        router: the node that messages between two others pass by routed names, if there is one.
        chunks: the chance that bytes arrive in pieces.
        lossy: the chance that a datagram is lost.
        items: by time.
    """

    seed: int
    nodes: tuple[str, ...]
    settings: Settings
    clocks: tuple[int, ...]
    router: str | None
    chunks: float
    lossy: float
    items: tuple[Item, ...]

    def having(self, items: Iterable[Item]) -> Plan:
        """The same run with other items."""
        return replace(self, items=tuple(items))


def make(seed: int, *, nodes: int | None = None) -> Plan:
    """The plan of a seed, with so many nodes if that is given, 2 to 4."""
    rng = Random(f"plan {seed}")
    count = nodes or rng.choice((2, 2, 3, 3, 4))
    names = NAMES[:count]
    router = names[1] if count > 2 and rng.random() < 0.5 else None
    busiest = _stream(rng, names, router)
    items = _operations(rng, names, router, busiest)
    if rng.random() < 0.9:
        items += _faults(rng, (*names, busiest[0], busiest[1]), router, [item.at for item in items])
    return Plan(
        seed,
        names,
        _settings(rng, count),
        tuple(rng.choice((0, 0, 0, 1, -1, 5, -40)) for _ in names),
        router,
        rng.choice((0.0, 0.1, 0.5)),
        rng.choice((0.0, 0.2)),
        tuple(sorted(items, key=lambda item: item.at)),
    )


def _settings(rng: Random, count: int) -> Settings:
    crowded = count == 2 and rng.random() < 0.1  # idle sessions must make room for others soon
    return Settings(
        session_retry_connect_ms=rng.choice((1_000, 5_000)),
        session_initialization_ms=rng.choice((5_000, 60_000)),
        session_cleanup_ms=25_000 if crowded else rng.choice((30_000, 300_000)),
        window_size=rng.choice((1, 2, 4, 16, 64)),
        acknowledge_at_window=rng.choice((0.5, 1.0)),
        resend_timer_table=rng.choice(((3, 5, 10), (30, 30, 30, 60))),
        remove_duplicate_size=4 if rng.random() < 0.05 else 10_000,
        ping=rng.random() < 0.2,
        max_in_sessions=2 if crowded else 0xFFFFFFFF,
    )


# -- what applications do ----------------------------------------------------------------------------------


Stream = tuple[str, str, str]
"""From where, to where, and how that is named."""


def _stream(rng: Random, names: tuple[str, ...], router: str | None) -> Stream:
    if router is not None and rng.random() < 0.7:
        here, there = rng.sample([name for name in names if name != router], 2)
        return here, there, "PRIVATE"
    here = rng.choice(names)
    there = here if rng.random() < 0.05 else rng.choice([name for name in names if name != here])
    return here, there, rng.choice(("OS", "OS", "TCP", "PRIVATE", "PRIVATE"))


def _operations(rng: Random, names: tuple[str, ...], router: str | None, busiest: Stream) -> list[Item]:
    items: list[Item] = []
    budget = rng.randrange(15, 45)
    start = 0
    while budget > 0:
        start += rng.choice((0, 5, 50, 1_000, 8_000)) * rng.randrange(1, 4)
        if start > BUSY_MS:
            start = rng.randrange(BUSY_MS)
        kind = _send if rng.random() < 0.5 else _transaction
        made = kind(rng, names, start, busiest if rng.random() < 0.6 else _stream(rng, names, router))
        budget -= made.args["count"]
        items.append(made)
    items += [_receive(rng, names) for _ in range(rng.randrange(4, 14))]
    for what, chance in (("purge", 0.2), ("pause", 0.3), ("offline", 0.2)):
        if rng.random() < chance:
            args: dict[str, Any] = {"queue": rng.choice(QUEUES)}
            if what != "purge":
                args = {"ms": rng.randrange(500, 30_000), "pick": rng.randrange(8)}
            items.append(Item(rng.randrange(BUSY_MS), what, rng.choice(names), args))
    return items


def _wishes(rng: Random) -> dict[str, Any]:
    """What a message asks for; what is usual is left out."""
    found: dict[str, Any] = {}
    if rng.random() < 0.3:
        found["journal"] = True
    if rng.random() < 0.4:
        found["deadletter"] = True
    if rng.random() < 0.4:
        found["acks"] = int(
            rng.choice(
                (
                    AcknowledgementsRequested.ACK_FULL_REACH_QUEUE,
                    AcknowledgementsRequested.ACK_FULL_RECEIVE,
                    AcknowledgementsRequested.ACK_FULL_RECEIVE | AcknowledgementsRequested.ACK_POS_ARRIVAL,
                )
            )
        )
    if rng.random() < 0.2:
        found["reach_s"] = rng.choice((0, 2, 5, 20, 60))
    if rng.random() < 0.1:
        found["receive_s"] = rng.choice((0, 3, 10, 60))
    return found


def _send(rng: Random, names: tuple[str, ...], at: int, stream: Stream) -> Item:
    here, there, form = stream
    queue = rng.choice((PLAIN, PLAIN, PLAIN, SMALL, TRANSACTIONAL if rng.random() < 0.2 else PLAIN))
    args = {
        "count": rng.choice((1, 1, 2, 3, 8)),
        "to": there,
        "form": form,
        "queue": queue,
        "recoverable": rng.random() < 0.65,
        "size": rng.choice((0, 0, 10, 300, 3_000)),
        **_wishes(rng),
    }
    if rng.random() < 0.2:
        args["priority"] = rng.randrange(8)
    return Item(at, "send", here, args)


def _transaction(rng: Random, names: tuple[str, ...], at: int, stream: Stream) -> Item:
    here, there, form = stream
    queue = TRANSACTIONAL
    if rng.random() < 0.1:
        queue = rng.choice((SMALL_TRANSACTIONAL, SMALL_TRANSACTIONAL, PLAIN))
    args = {
        "count": rng.choice((1, 1, 2, 3, 8)),
        "to": there,
        "form": form,
        "queue": queue,
        "size": rng.choice((0, 0, 10, 300)),
        "end": rng.choice(
            ("commit",) * 6 + ("abort", "external commit", "external commit", "external abort")
        ),
        "hold_ms": rng.choice((0, 0, 0, 10, 2_000)),
        **_wishes(rng),
    }
    if rng.random() < 0.3:
        there, form = rng.choice(names), rng.choice(("OS", "TCP", "PRIVATE"))
        args["also"] = {"to": there, "form": form}
    return Item(at, "transaction", here, args)


def _receive(rng: Random, names: tuple[str, ...]) -> Item:
    mode = rng.choice(("plain", "plain", "commit", "commit", "abort", "external commit", "external abort",
                       "take", "give back", "wait"))  # fmt: skip
    args = {
        "queue": rng.choice((PLAIN, TRANSACTIONAL, TRANSACTIONAL, SMALL, SMALL_TRANSACTIONAL)),
        "mode": mode,
        "count": rng.choice((1, 3, 10, 50)),
        "hold_ms": rng.choice((0, 0, 20, 3_000)),
    }
    return Item(rng.randrange(BUSY_MS + 10_000), "receive", rng.choice(names), args)


# -- what goes wrong ---------------------------------------------------------------------------------------


def _faults(rng: Random, names: tuple[str, ...], router: str | None, busy: list[int]) -> list[Item]:
    """Most of them come soon after something else begins, when messages are on their way."""
    kinds = [kind for kind in FAULTS if rng.random() < 0.5 and (kind != "amnesia" or router)] or [
        "crash",
        "cut",
    ]
    items = []
    for _ in range(rng.choice((2, 4, 8, 16))):
        what = rng.choice(kinds)
        at = rng.choice(busy) + rng.choice((0, 1, 20, 100, 500, 1_000, 5_000)) * rng.randrange(3)
        if rng.random() < 0.2:
            at = rng.randrange(BUSY_MS)
        node = rng.choice((*names, router or names[0]))
        if what == "amnesia" and router is not None:
            node = router  # what others send by it they still hold
        items.append(Item(at, what, node, _damage(rng, what, names)))
    return items


def _damage(rng: Random, what: str, names: tuple[str, ...]) -> dict[str, Any]:
    short = rng.choice((50, 500, 3_000, 20_000))
    match what:
        case "crash":
            return {"after": rng.choice((0, 0, 1, 2, 3, 5)), "ms": rng.choice((1, 100, 2_000, 15_000))}
        case "cut":
            return {"late_ms": rng.choice((0, 0, 100, 10_000, 40_000)), "pick": rng.randrange(8)}
        case "partition":
            return {"other": rng.choice(names), "ms": short}
        case "disk":
            return {"ms": rng.choice((20, 200, 3_000))}
        case "slow disk":
            return {"ms": short, "each_ms": rng.choice((100, 1_000, 4_000))}
        case "clock":
            return {"seconds": rng.choice((-30, -3, -1, 1, 3, 30))}
        case "amnesia":
            return {"ms": rng.choice((1, 100, 2_000))}
    return {"ms": short}
