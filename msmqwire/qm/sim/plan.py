"""The plan of a run, made from its seed: the actions of applications, and the faults and their times.

A plan is data. Everything that a run does beyond it (delays, sizes of chunks) is drawn from the same seed
during the run, so that a plan with fewer items is a separate run and just as repeatable: shrinking leaves
items out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final
from uuid import UUID

from msmqwire.qm.model.enumerations import AcknowledgementsRequested
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.sim.joined import simulated

NAMES: Final = ("alpha", "beta", "gamma", "delta")
START_UTC: Final = 1_700_000_000
"""The start of every run, in seconds since 1970-01-01."""
BUSY_MS: Final = 60_000
"""Operations begin within this time; faults end soon after it."""
NON_TRANSACTIONAL: Final = "plain"
TRANSACTIONAL: Final = "tx"
SMALL: Final = "small"
"""The queues of every node, one of each kind; the quota of the small ones is `Plan.small_quota`."""
SMALL_TRANSACTIONAL: Final = "smalltx"
QUEUES: Final = (NON_TRANSACTIONAL, TRANSACTIONAL, SMALL, SMALL_TRANSACTIONAL)
STRAY: Final = "STRAY"
"""The form of format names of a queue manager that does not exist: see `stray_hop`."""
HTTP: Final = "HTTP"
"""The form of the names of queues that are reached by HTTP."""
SUBQUEUE: Final = "done"
"""The subqueue to which remote readers move messages."""
NOBODY: Final = UUID(int=0xDEAD)
"""The identifier of a queue manager that does not exist."""
_SHORT_HISTORY: Final = 100
_HTTP_SHARES: Final = (0.0, 0.0, 0.3, 0.6, 1.0)
"""The fraction of the links of a run that use HTTP."""
_SECURED_SHARES: Final = (0.0, 0.0, 0.0, 0.5, 1.0)
_PROTECTIONS: Final = (
    {"sign": 1}, {"sign": 2}, {"sign": 3}, {"encrypt": True}, {"sign": 2, "encrypt": True},
    {"sign": 3, "encrypt": True},
)  # fmt: skip
REMOTE_SHARE: Final = 0.4
"""The probability that a run has remote readers."""
REMOTE_MODES: Final = (
    "accept", "reject", "wait", "late", "cancel", "look up", "walk", "several", "other connection", "move",
    "purge", "vanish",
)  # fmt: skip
"""The scripts of remote readers: see `remote_scripts`."""
TRANSACTIONAL_REMOTE_MODES: Final = ("commit", "abort", "vanish in a transaction", "single")
"""The scripts for transactional queues only."""
FAULTS: Final = (
    "crash", "restart", "cut", "partition", "refuse", "unresolved", "disk", "slow disk", "clock", "amnesia",
)  # fmt: skip
FULL_DISK: Final = "full disk"
"""One more fault: there is almost no room, so that no new messages are accepted."""


@dataclass(frozen=True, slots=True)
class Item:
    """An operation of an application or an injected fault.

    Attributes:
        at: milliseconds since the start.
        kind: one of `FAULTS`, `FULL_DISK`, "send", "transaction", "receive", "remote read", "purge", "pause",
            "offline" or "key".
        node: name of the node.
        args: parameters of the kind, by name.
    """

    at: int
    kind: str
    node: str
    args: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        details = " ".join(f"{name}={value}" for name, value in self.args.items())
        return f"t={self.at} {self.node} {self.kind} {details}".rstrip()


@dataclass(frozen=True, slots=True)
class Plan:
    """The description of a run.

    Attributes:
        seed: source of all choices.
        nodes: names of the queue managers.
        settings: the settings of all queue managers.
        clock_offsets: the seconds by which the clock of each node is ahead.
        router: the node by which messages between two other nodes are routed; None for no routing.
        split_probability: the probability that bytes arrive in several chunks.
        loss_probability: the probability that a datagram is lost.
        items: the operations and faults, by time.
        http_loss: the probability that an HTTP request or its response is lost.
        http_repeat: the probability that a request arrives again.
        http_timeout_ms: the longest wait for a response.
        remote_pending_s: seconds after which a message that a remote reader does not end returns.
        is_secured: whether any message is signed or encrypted.
        commits_in_thread: whether the drivers commit in a thread, not in their turns.
    """

    seed: int
    nodes: tuple[str, ...]
    settings: Settings
    clock_offsets: tuple[int, ...]
    router: str | None
    split_probability: float
    loss_probability: float
    items: tuple[Item, ...]
    http_loss: float = 0.0
    http_repeat: float = 0.0
    http_timeout_ms: int = 60_000
    remote_pending_s: int = 10
    is_secured: bool = False
    commits_in_thread: bool = False

    @property
    def short_history(self) -> bool:
        """Whether MessageIDHistoryTable is so short that duplicates pass."""
        return self.settings.remove_duplicate_size < _SHORT_HISTORY

    @property
    def uses_http(self) -> bool:
        """Whether HTTP carries any message."""
        return any(HTTP in (item.args.get("form"), item.args.get("admin")) for item in self.items)

    @property
    def has_policies(self) -> bool:
        """Whether policies move poison messages, and the oldest ones of full queues."""
        return self.seed % 5 == 2

    @property
    def small_quota(self) -> int:
        """The quota of the small queues in kilobytes; a single HTTP message takes more than one."""
        return 4 if self.uses_http else 1

    def with_items(self, items: Iterable[Item]) -> Plan:
        """Return the same run with other items."""
        return replace(self, items=tuple(items))


def address_of(node: str) -> str:
    """Return the IP address of a node."""
    return f"10.0.0.{NAMES.index(node) + 1}"


def identifier_of(node: str) -> UUID:
    """Return the identifier of the queue manager of a node."""
    return UUID(int=0xA0 + NAMES.index(node))


def stray_hop(nodes: tuple[str, ...], router: str | None) -> str:
    """Return the node to which all other nodes send messages for `NOBODY`: it refuses to forward them."""
    return router or nodes[-1]


def make_plan(
    seed: int,
    *,
    nodes: int | None = None,
    http: float | None = None,
    remote: float = REMOTE_SHARE,
    secured: float | None = None,
) -> Plan:
    """Make the plan of a seed.

    Args:
        seed: source of all choices.
        nodes: the number of nodes, 2 to 4; None draws it.
        http: the fraction of links that use HTTP, 0 to 1; None draws it. It is 0 without the protocol.
        remote: the probability of remote readers, 0 to 1.
        secured: the fraction of messages signed or encrypted, 0 to 1; None draws it.
    """
    rng = Random(f"plan {seed}")
    count = nodes or rng.choice((2, 2, 3, 3, 4))
    names = NAMES[:count]
    router = names[1] if count > 2 and rng.random() < 0.5 else None
    busiest = _stream(rng, names, router)
    items = _operations(rng, names, router, busiest)
    items += _strays(Random(f"strays {seed}"), names, router)
    chance = Random(f"http {seed}")
    links = _http_links(chance, names, http)
    items = [_over_http(item, links) for item in items]
    if rng.random() < 0.9:
        times = [item.at for item in items]
        items += _faults(rng, (*names, busiest[0], busiest[1]), router, times)
    settings = _settings(rng, count)
    readers = Random(f"remote {seed}")
    if readers.random() < remote:
        items += _remote_reads(readers, names, items)
    luck = Random(f"security {seed}")
    share = luck.choice(_SECURED_SHARES) if secured is None else secured
    items = [_secured(luck, item, share) for item in items]
    if share:
        settings = replace(settings, symmetric_key_short_lifetime_ms=luck.choice((3_000, 600_000)),
                           security_per_origin_ms=luck.choice((250, 1)))  # fmt: skip
        times = [luck.randrange(BUSY_MS) for _ in range(luck.choice((0, 2, 4)))]
        items += [Item(at, "key", luck.choice(names)) for at in times]
    disks = Random(f"disks {seed}")
    commits_in_thread = disks.random() < 0.5
    for _ in range(disks.choice((0, 0, 1, 3))):
        args = {"ms": disks.choice((500, 3_000, 20_000))}
        items.append(Item(disks.randrange(BUSY_MS), FULL_DISK, disks.choice(names), args))
    return Plan(
        seed,
        names,
        replace(settings, retransmission_timeout_ms=chance.choice((1_000, 5_000, 20_000))),
        tuple(rng.choice((0, 0, 0, 1, -1, 5, -40)) for _ in names),
        router,
        rng.choice((0.0, 0.1, 0.5)),
        rng.choice((0.0, 0.2)),
        tuple(sorted(items, key=lambda item: item.at)),
        chance.choice((0.0, 0.05, 0.3)),
        chance.choice((0.0, 0.0, 0.2)),
        chance.choice((10_000, 60_000)),
        readers.choice((2, 10, 60)),
        is_secured=share > 0,
        commits_in_thread=commits_in_thread,
    )


def _secured(rng: Random, item: Item, share: float) -> Item:
    """Return an item with its messages signed, encrypted or both, at random."""
    if item.kind not in ("send", "transaction") or rng.random() >= share:
        return item
    return replace(item, args={**item.args, **rng.choice(_PROTECTIONS)})


def _settings(rng: Random, count: int) -> Settings:
    crowded = count == 2 and rng.random() < 0.1  # idle sessions soon make room for new ones
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


# -- operations of applications ----------------------------------------------------------------------------


Stream = tuple[str, str, str]
"""Sender, destination, and the form of format name that the destination is addressed by."""


def _stream(rng: Random, names: tuple[str, ...], router: str | None) -> Stream:
    if router is not None and rng.random() < 0.7:
        sender, destination = rng.sample([name for name in names if name != router], 2)
        return sender, destination, "PRIVATE"
    sender = rng.choice(names)
    local = rng.random() < 0.05
    destination = sender if local else rng.choice([name for name in names if name != sender])
    return sender, destination, rng.choice(("OS", "OS", "TCP", "PRIVATE", "PRIVATE"))


def _operations(rng: Random, names: tuple[str, ...], router: str | None, busiest: Stream) -> list[Item]:
    items: list[Item] = []
    budget = rng.randrange(15, 45)
    start = 0
    while budget > 0:
        start += rng.choice((0, 5, 50, 1_000, 8_000)) * rng.randrange(1, 4)
        if start > BUSY_MS:
            start = rng.randrange(BUSY_MS)
        make_item = _send if rng.random() < 0.5 else _transaction
        stream = busiest if rng.random() < 0.6 else _stream(rng, names, router)
        item = make_item(rng, names, start, stream)
        budget -= item.args["count"]
        items.append(item)
    items += [_receive(rng, names) for _ in range(rng.randrange(4, 14))]
    for kind, probability in (("purge", 0.2), ("pause", 0.3), ("offline", 0.2)):
        if rng.random() < probability:
            args: dict[str, Any] = {"queue": rng.choice(QUEUES)}
            if kind != "purge":
                args = {"ms": rng.randrange(500, 30_000), "pick": rng.randrange(8)}
            items.append(Item(rng.randrange(BUSY_MS), kind, rng.choice(names), args))
    return items


def _options(rng: Random) -> dict[str, Any]:
    """Draw the properties of a message; defaults are left out."""
    options: dict[str, Any] = {}
    if rng.random() < 0.3:
        options["journal"] = True
    if rng.random() < 0.4:
        options["deadletter"] = True
    if rng.random() < 0.4:
        options["acks"] = int(
            rng.choice(
                (
                    AcknowledgementsRequested.ACK_FULL_REACH_QUEUE,
                    AcknowledgementsRequested.ACK_FULL_RECEIVE,
                    AcknowledgementsRequested.ACK_FULL_RECEIVE | AcknowledgementsRequested.ACK_POS_ARRIVAL,
                )
            )
        )
    if rng.random() < 0.2:
        options["reach_s"] = rng.choice((0, 2, 5, 20, 60))
    if rng.random() < 0.1:
        options["receive_s"] = rng.choice((0, 3, 10, 60))
    return options


def _send(rng: Random, names: tuple[str, ...], at: int, stream: Stream) -> Item:
    sender, destination, form = stream
    queue = rng.choice(
        (
            NON_TRANSACTIONAL,
            NON_TRANSACTIONAL,
            NON_TRANSACTIONAL,
            SMALL,
            TRANSACTIONAL if rng.random() < 0.2 else NON_TRANSACTIONAL,
        )
    )
    args = {
        "count": rng.choice((1, 1, 2, 3, 8)),
        "to": destination,
        "form": form,
        "queue": queue,
        "recoverable": rng.random() < 0.65,
        "size": rng.choice((0, 0, 10, 300, 3_000)),
        **_options(rng),
    }
    if rng.random() < 0.2:
        args["priority"] = rng.randrange(8)
    return Item(at, "send", sender, args)


def _transaction(rng: Random, names: tuple[str, ...], at: int, stream: Stream) -> Item:
    sender, destination, form = stream
    queue = TRANSACTIONAL
    if rng.random() < 0.1:
        queue = rng.choice((SMALL_TRANSACTIONAL, SMALL_TRANSACTIONAL, NON_TRANSACTIONAL))
    args = {
        "count": rng.choice((1, 1, 2, 3, 8)),
        "to": destination,
        "form": form,
        "queue": queue,
        "size": rng.choice((0, 0, 10, 300)),
        "end": rng.choice(
            ("commit",) * 6 + ("abort", "external commit", "external commit", "external abort")
        ),
        "hold_ms": rng.choice((0, 0, 0, 10, 2_000)),
        **_options(rng),
    }
    if rng.random() < 0.3:
        destination, form = rng.choice(names), rng.choice(("OS", "TCP", "PRIVATE"))
        args["also"] = {"to": destination, "form": form}
    return Item(at, "transaction", sender, args)


def _strays(rng: Random, names: tuple[str, ...], router: str | None) -> list[Item]:
    """Draw messages for `NOBODY`, which the next hop has to refuse."""
    items = []
    for _ in range(rng.choice((0, 0, 0, 1, 3))):
        hop = stray_hop(names, router)
        stream = rng.choice([name for name in names if name != hop]), hop, STRAY
        make_item = _send if rng.random() < 0.5 else _transaction
        item = make_item(rng, names, rng.randrange(BUSY_MS), stream)
        args = {name: arg for name, arg in item.args.items() if name != "also"}
        items.append(replace(item, args={**args, "count": 1}))
    return items


def _http_links(rng: Random, names: tuple[str, ...], share: float | None) -> set[tuple[str, str]]:
    """Draw the pairs of nodes between which HTTP carries messages, from the first to the second."""
    share = rng.choice(_HTTP_SHARES) if share is None else share
    if all(protocol.form != HTTP for protocol in simulated()):
        return set()
    return {(sender, to) for sender in names for to in names if rng.random() < share}


def _over_http(item: Item, links: set[tuple[str, str]]) -> Item:
    """Return an item with the messages on these links, and acknowledgements on the way back, by HTTP."""
    args = dict(item.args)
    if item.kind not in ("send", "transaction") or args["form"] == STRAY:
        return item
    for named in (args, args.get("also", {})):
        if (item.node, named.get("to")) in links:
            named["form"] = HTTP
    forms = args["form"], args.get("also", {}).get("form")
    if HTTP in forms or (args["to"], item.node) in links:
        args["admin"] = HTTP
    return replace(item, args=args)


def _receive(rng: Random, names: tuple[str, ...]) -> Item:
    mode = rng.choice(("plain", "plain", "commit", "commit", "abort", "external commit", "external abort",
                       "take", "give back", "wait"))  # fmt: skip
    args = {
        "queue": rng.choice((NON_TRANSACTIONAL, TRANSACTIONAL, TRANSACTIONAL, SMALL, SMALL_TRANSACTIONAL)),
        "mode": mode,
        "count": rng.choice((1, 3, 10, 50)),
        "hold_ms": rng.choice((0, 0, 20, 3_000)),
    }
    return Item(rng.randrange(BUSY_MS + 10_000), "receive", rng.choice(names), args)


def _remote_reads(rng: Random, names: tuple[str, ...], items: list[Item]) -> list[Item]:
    """Draw programs that read the queues of other nodes soon after messages come, and faults meanwhile."""
    sends = [item for item in items if item.kind in ("send", "transaction") and item.args["form"] != STRAY]
    drawn = []
    for _ in range(rng.choice((3, 5, 8))):
        sent = rng.choice(sends)
        at = sent.at + rng.choice((200, 1_000, 3_000)) * rng.randrange(1, 4)
        server = sent.args["to"]
        client = rng.choice([name for name in names if name != server])
        transactional = sent.args["queue"] in (TRANSACTIONAL, SMALL_TRANSACTIONAL)
        args = {
            "from": server,
            "queue": sent.args["queue"],
            "mode": rng.choice(REMOTE_MODES + TRANSACTIONAL_REMOTE_MODES if transactional else REMOTE_MODES),
            "count": rng.choice((1, 2, 3, 5)),
            "hold_ms": rng.choice((0, 0, 20, 500, 3_000)),
        }
        drawn.append(Item(at, "remote read", client, args))
        if rng.random() < 0.25:
            kind = rng.choice(("crash", "cut", "cut", "restart", "partition", "slow disk"))
            at += rng.choice((0, 20, 100, 500, 3_000)) * rng.randrange(1, 4)
            drawn.append(Item(at, kind, server, _fault_args(rng, kind, names)))
    return drawn


# -- faults ------------------------------------------------------------------------------------------------


def _faults(rng: Random, names: tuple[str, ...], router: str | None, busy: list[int]) -> list[Item]:
    """Draw faults, most of them soon after one of the `busy` times, when messages are in flight."""
    kinds = [kind for kind in FAULTS if rng.random() < 0.5 and (kind != "amnesia" or router)]
    kinds = kinds or ["crash", "cut"]
    items = []
    for _ in range(rng.choice((2, 4, 8, 16))):
        kind = rng.choice(kinds)
        at = rng.choice(busy) + rng.choice((0, 1, 20, 100, 500, 1_000, 5_000)) * rng.randrange(3)
        if rng.random() < 0.2:
            at = rng.randrange(BUSY_MS)
        node = rng.choice((*names, router or names[0]))
        if kind == "amnesia" and router is not None:
            node = router  # the senders still hold the messages sent through it
        items.append(Item(at, kind, node, _fault_args(rng, kind, names)))
    return items


def _fault_args(rng: Random, kind: str, names: tuple[str, ...]) -> dict[str, Any]:
    short = rng.choice((50, 500, 3_000, 20_000))
    match kind:
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
