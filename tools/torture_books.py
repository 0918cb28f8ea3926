"""The books of a torture run: who was told what of each message, and whether all that balances.

Every participant appends to a book of its own, a line of JSON for each event, written before it goes on. The
times are those of the monotonic clock, which all processes of a computer share.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

EXPRESS, RECOVERABLE, TRANSACTIONAL = KINDS = ("express", "recoverable", "transactional")
_DIGEST: Final = 16
_UNSOUND: Final = "?"
_KILLS_AFTER: Final = 4
Entry = dict[str, Any]


# -- bodies -----------------------------------------------------------------------------------------------


def body_of(message: str, payload: bytes) -> bytes:
    """A body that tells which message it is, and whether it is intact."""
    rest = message.encode() + b"\n" + payload
    return hashlib.sha256(rest).hexdigest()[:_DIGEST].encode() + rest


def message_of(body: bytes, label: str) -> tuple[str, bool]:
    """Which message a body is of, and whether it is intact and bears its own label."""
    digest, rest = body[:_DIGEST], body[_DIGEST:]
    message = rest.partition(b"\n")[0].decode(errors="replace")
    sound = hashlib.sha256(rest).hexdigest()[:_DIGEST].encode() == digest
    return (message, message == label) if sound else (label or _UNSOUND, False)


def stream_of(message: str) -> tuple[str, int]:
    """The stream of a sender that a message is of, and its number there."""
    stream, _, number = message.rpartition("/")
    return (stream, int(number)) if stream and number.isascii() and number.isdigit() else (message, -1)


# -- writing and reading ------------------------------------------------------------------------------------


class Book:
    """What one participant writes down; what is written is there even if the process is killed at once."""

    def __init__(self, folder: Path, who: str) -> None:
        self.who = who
        self._file = os.open(path_of(folder, who), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, event: str, **entry: Any) -> float:
        """One event, now; gives its time."""
        now = time.monotonic()
        line = json.dumps({"at": now, "by": self.who, "event": event, **entry}).encode() + b"\n"
        assert os.write(self._file, line) == len(line), "a line is written in one piece"
        return now

    def close(self) -> None:
        """Nothing more is written."""
        os.close(self._file)


def path_of(folder: Path, who: str) -> Path:
    """Where the book of a participant is."""
    return folder / f"{who}.jsonl"


def entries_of(path: Path) -> Iterator[Entry]:
    """The entries of one book in their order; none if there is no such book."""
    if path.exists():
        with path.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def read_books(folder: Path) -> list[Entry]:
    """The entries of all books by time."""
    found = [entry for path in folder.glob("*.jsonl") for entry in entries_of(path)]
    return sorted(found, key=lambda entry: float(entry["at"]))


# -- what the books say of a message ------------------------------------------------------------------------


@dataclass(slots=True)
class Reading:
    """One time that a receiver had a message in its hands.

    Attributes:
        by: the receiver.
        asked, taken: when it asked for messages, and when it had written down what it got.
        place: the lookup identifier: where in the queue the message was.
        ending: when it began to end it; None if it never did.
        ended: when the end was confirmed; None if it never was.
    """

    by: str
    asked: float
    taken: float
    place: int
    ending: float | None = None
    ended: float | None = None


@dataclass(slots=True)
class Fate:
    """What became of a message.

    Attributes:
        queue: where it was to go.
        way: the servers that it comes through.
        group: what it is sent together with, all or not at all; empty for an event of its own.
        local: whether it was sent at the computer of the server.
        begun, stored, transferred, aborted: when its sender was told; None if it never was.
        unanswered: whether the server went before it answered the sender.
    """

    message: str
    kind: str
    queue: str
    by: str
    way: Sequence[str]
    group: str
    local: bool
    begun: float
    stored: float | None = None
    transferred: float | None = None
    aborted: float | None = None
    unanswered: bool = False
    readings: list[Reading] = field(default_factory=list)

    @property
    def received(self) -> bool:
        """Whether a receiver had it and began to end it, confirmed or not."""
        return any(reading.ending is not None for reading in self.readings)


@dataclass(frozen=True, slots=True)
class Wrong:
    """Something that does not balance.

    Attributes:
        what: ``lost``, ``twice``, ``order``, ``damaged``, ``unknown``, ``torn``, ``aborted``, ``refused``, or
            what the supervisor saw.
        message: of which message; empty for none.
        why: in words.
        story: all that the books say of it.
    """

    what: str
    message: str
    why: str
    story: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n    ".join([f"{self.what}: {self.message} {self.why}", *self.story])


class Balance:
    """The books of a run, balanced.

    Attributes:
        fates: by message.
        wrong: what does not balance.
        figures: counts.
    """

    def __init__(
        self,
        entries: Iterable[Entry],
        *,
        moved: Iterable[str] = (),
        shared: Iterable[str] = (),
        drained: bool = True,
    ) -> None:
        """Balance the books.

        Args:
            entries: of all books, by time.
            moved: the queues in which messages are moved, so that their places change.
            shared: the queues with several receivers: what one gives back comes to another one late.
            drained: whether nothing can be on its way any more, so that what is missing is lost.
        """
        self._entries, self._moved, self._shared = list(entries), frozenset(moved), frozenset(shared)
        self.fates: dict[str, Fate] = {}
        self.wrong: list[Wrong] = []
        self.figures: Counter[str] = Counter()
        self._killed: dict[str, list[float]] = defaultdict(list)
        self._hands: dict[tuple[str, str, int], Reading] = {}
        for entry in self._entries:
            getattr(self, f"_on_{entry['event']}", _nothing)(entry)
        for fate in self.fates.values():
            self._judge(fate, drained)
        self._judge_order()
        self._judge_groups(drained)

    # -- entries ------------------------------------------------------------------------------------------

    def _on_begun(self, entry: Entry) -> None:
        message = entry["message"]
        self.fates[message] = Fate(
            message, entry["kind"], entry["queue"], entry["by"], entry["way"], entry["group"], entry["local"],
            entry["at"],
        )  # fmt: skip

    def _on_stored(self, entry: Entry) -> None:
        for message in entry["messages"]:
            self.fates[message].stored = entry["at"]

    def _on_transferred(self, entry: Entry) -> None:
        self.fates[entry["message"]].transferred = entry["at"]

    def _on_aborted(self, entry: Entry) -> None:
        for message in entry["messages"]:
            self.fates[message].aborted = entry["at"]

    def _on_unanswered(self, entry: Entry) -> None:
        for message in entry["messages"]:
            self.fates[message].unanswered = True

    def _on_refused(self, entry: Entry) -> None:
        for message in entry["messages"]:
            self._add("refused", message, entry["why"])

    def _on_killed(self, entry: Entry) -> None:
        self._killed[entry["who"]].append(entry["at"])

    def _on_taken(self, entry: Entry) -> None:
        last, other = -1, ""
        for message, place, sound, _ in entry["messages"]:
            reading = Reading(entry["by"], entry["asked"], entry["at"], place)
            self._hands[entry["by"], message, place] = reading
            if not sound:
                self._add("damaged", message, f"as {entry['by']} read it")
            fate = self.fates.get(message)
            if fate is None:
                self._add("unknown", message, f"was read by {entry['by']}, and nobody has sent it")
                continue
            fate.readings.append(reading)
            if fate.queue != entry["queue"]:
                self._add("unknown", message, f"was sent to {fate.queue} and read in {entry['queue']}")
            if place <= last and fate.queue not in self._shared:
                self._add("order", message, f"was handed out after {other}, which is behind it in the queue")
            last, other = place, message

    def _on_ending(self, entry: Entry) -> None:
        for message, place in entry["messages"]:
            self._hands[entry["by"], message, place].ending = entry["at"]

    def _on_ended(self, entry: Entry) -> None:
        for message, place in entry["messages"]:
            self._hands[entry["by"], message, place].ended = entry["at"]

    # -- judging ------------------------------------------------------------------------------------------

    def _judge(self, fate: Fate, drained: bool) -> None:
        count, kind = self.figures, fate.kind
        count[f"{kind} begun"] += 1
        count[f"{kind} stored"] += fate.stored is not None
        count[f"{kind} transferred"] += fate.transferred is not None
        count[f"{kind} received"] += fate.received
        count[f"{kind} read again"] += max(0, len(fate.readings) - 1)
        if fate.aborted is not None:
            count[f"{kind} aborted"] += 1
            if fate.readings:
                self._add("aborted", fate.message, "was never committed, and was read")
        elif drained and not fate.received:
            self._judge_lost(fate)
        self._judge_copies(fate)

    def _judge_lost(self, fate: Fate) -> None:
        if fate.kind != EXPRESS:
            if fate.stored is not None:
                self._add("lost", fate.message, "was stored, and nobody has received it")
            return
        if fate.unanswered:
            self.figures["express never answered for"] += 1
            return
        safe = fate.transferred is not None or (fate.local and fate.stored is not None)
        at_risk = fate.way if safe else [*fate.way, fate.by]
        if any(at > fate.begun for who in at_risk for at in self._killed[who]):
            self.figures["express lost by kills"] += 1
        else:
            self._add("lost", fate.message, "was begun, and nothing that it goes through was killed after")

    def _judge_copies(self, fate: Fate) -> None:
        """Whether a message was in its queue once only.

        A reading whose end was not confirmed may be repeated. One that was confirmed may not; and a message
        that is at another place than before is another one with the same body. MessageIDHistoryTable does not
        keep express messages over a kill, [MS-MQQB] 3.1.1.3: one whose acknowledgement was lost comes again.
        """
        readings = fate.readings
        if len(readings) < 2:
            return
        moved = fate.queue in self._moved
        ended = sorted((one for one in readings if one.ended is not None), key=lambda one: one.taken)
        why, pair = "", readings[:2]
        if len(ended) > 1:
            why, pair = f"its end was confirmed {len(ended)} times", ended[:2]
        for first in ended:
            for later in readings:
                if not why and first.ended is not None and later.asked > first.ended:
                    why, pair = "was read again after its end was confirmed", [first, later]
        if not why and not moved and len(places := {one.place for one in readings}) > 1:
            other = next(one for one in readings if one.place != readings[0].place)
            why, pair = f"was at {len(places)} places of its queue", [readings[0], other]
        if not why:
            return
        if fate.kind == EXPRESS and self._killed_between(fate, *pair):
            self.figures["express twice by kills"] += 1
        else:
            self._add("twice", fate.message, why)

    def _killed_between(self, fate: Fate, first: Reading, second: Reading) -> bool:
        """Whether a server that a message goes through was killed between two readings."""
        return any(first.asked < at < second.taken for who in fate.way for at in self._killed[who])

    def _judge_order(self) -> None:
        """Places of a queue grow, and the messages of one sender have to be there in their order.

        Express ones that were not acknowledged before a kill come again after it, from the first of them on.
        """
        streams: dict[tuple[str, str], list[tuple[int, int, Reading, Fate]]] = defaultdict(list)
        for fate in self.fates.values():
            if fate.readings and fate.queue not in self._moved:
                stream, number = stream_of(fate.message)
                places = {reading.place: reading for reading in reversed(fate.readings)}
                for place in places if fate.kind == EXPRESS else [min(places)]:
                    streams[stream, fate.kind].append((place, number, places[place], fate))
        for found in streams.values():
            found.sort(key=lambda one: one[0])
            for (_, before, first, _), (_, number, second, fate) in pairwise(found):
                again = fate.kind == EXPRESS and self._killed_between(fate, first, second)
                if number < before and not again:
                    self._add("order", fate.message, f"is in the queue behind number {before}")

    def _judge_groups(self, drained: bool) -> None:
        groups: dict[str, list[Fate]] = defaultdict(list)
        for fate in self.fates.values():
            if fate.group:
                groups[fate.group].append(fate)
        self.figures["transactions"] = len(groups)
        for group in groups.values():
            missing = [fate for fate in group if not fate.received]
            if drained and missing and len(missing) < len(group):
                self._add("torn", missing[0].message, "is missing, and others of its transaction are there")

    # -- telling ------------------------------------------------------------------------------------------

    def _add(self, what: str, message: str, why: str) -> None:
        self.wrong.append(Wrong(what, message, why))

    def told(self, most: int = 50) -> list[Wrong]:
        """What is wrong, with the stories of the first ones."""
        return [Wrong(one.what, one.message, one.why, self.story(one.message)) for one in self.wrong[:most]]

    def story(self, message: str) -> tuple[str, ...]:
        """All that the books say of a message, and the first kills after each of it."""
        shown: list[Entry] = []
        after = 0
        for entry in self._entries:
            if _is_about(entry, message):
                shown.append(entry)
                after = 0
            elif shown and entry["event"] in ("killed", "ready"):
                after += 1
                if after <= _KILLS_AFTER:
                    shown.append(entry)
        zero = self._entries[0]["at"]
        return tuple(_shown(entry, message, zero) for entry in shown)


def _nothing(entry: Entry) -> None:
    """Entries that only stories need."""


def _is_about(entry: Entry, message: str) -> bool:
    if entry.get("message") == message:
        return True
    found = entry.get("messages", ())
    return any(one == message or (isinstance(one, list) and one[0] == message) for one in found)


def _shown(entry: Entry, message: str, zero: float) -> str:
    more = {name: value for name, value in entry.items() if name not in ("at", "by", "event", "messages")}
    for one in entry.get("messages", ()):
        if isinstance(one, list) and one[0] == message:
            more["this"] = one[1:]
    if "asked" in more:
        more["asked"] = round(more["asked"] - zero, 3)
    return f"{entry['at'] - zero:9.3f} {entry['by']} {entry['event']} {json.dumps(more)}"
