"""The books of a torture run: each participant's knowledge of each message, and the balance of all.

Every participant appends a line of JSON for each event to its own book before it continues. The times are
those of the monotonic clock, which all processes of a computer share.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

EXPRESS, RECOVERABLE, TRANSACTIONAL = KINDS = ("express", "recoverable", "transactional")
_DIGEST: Final = 16
_UNSOUND: Final = "?"
_KILLS_AFTER: Final = 4
_NOTICED_S: Final = 60.0
"""Seconds by which a participant may notice the end of a server before the supervisor has written it."""
Entry = dict[str, Any]


# -- bodies -----------------------------------------------------------------------------------------------


def body_of(message: str, payload: bytes) -> bytes:
    """Return a body that names its message and proves that it is intact."""
    rest = message.encode() + b"\n" + payload
    return hashlib.sha256(rest).hexdigest()[:_DIGEST].encode() + rest


def message_of(body: bytes, label: str) -> tuple[str, bool]:
    """Return the message that a body belongs to, and whether it is intact and has the right label."""
    digest, rest = body[:_DIGEST], body[_DIGEST:]
    message = rest.partition(b"\n")[0].decode(errors="replace")
    sound = hashlib.sha256(rest).hexdigest()[:_DIGEST].encode() == digest
    return (message, message == label) if sound else (label or _UNSOUND, False)


def stream_of(message: str) -> tuple[str, int]:
    """Return the stream of a message, and its number there."""
    stream, _, number = message.rpartition("/")
    return (stream, int(number)) if stream and number.isascii() and number.isdigit() else (message, -1)


# -- writing and reading ------------------------------------------------------------------------------------


class Book:
    """The book of one participant; entries survive a kill of the process at any moment."""

    def __init__(self, folder: Path, who: str) -> None:
        self.who = who
        self._file = os.open(path_of(folder, who), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, event: str, **entry: Any) -> float:
        """Write an event; return its time."""
        now = time.monotonic()
        line = json.dumps({"at": now, "by": self.who, "event": event, **entry}).encode() + b"\n"
        assert os.write(self._file, line) == len(line), "a line is written in one piece"
        return now

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def path_of(folder: Path, who: str) -> Path:
    """Return the path of the book of a participant."""
    return folder / f"{who}.jsonl"


def entries_of(path: Path) -> Iterator[Entry]:
    """Yield the entries of a book in order; none if the book is missing."""
    if path.exists():
        with path.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def read_books(folder: Path) -> list[Entry]:
    """Return the entries of all books, sorted by time."""
    entries = [entry for path in folder.glob("*.jsonl") for entry in entries_of(path)]
    return sorted(entries, key=lambda entry: float(entry["at"]))


# -- messages -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Reading:
    """A reception of a message.

    Attributes:
        by: the receiver.
        asked: the time when it requested messages.
        taken: the time when it had recorded the received ones.
        place: the lookup identifier, which is the position in the queue.
        ending: when it began to end the message; None if it never did, or the message is back for certain.
        ended: when the end was confirmed; None if it never was.
        remote: whether it was by remote read: its end has a known outcome, or a doubt that is explained.
        released: when a remote reader began to end it, or to give it back; None if it never did.
        doubted: when its end had lost its answer; None if it had not.
    """

    by: str
    asked: float
    taken: float
    place: int
    ending: float | None = None
    ended: float | None = None
    remote: bool = False
    released: float | None = None
    doubted: float | None = None


@dataclass(slots=True)
class Fate:
    """The history of a message.

    Attributes:
        queue: its destination.
        way: the servers that it passes through.
        group: its transaction; empty for none.
        local: whether it was sent at the computer of the server.
        begun, stored, transferred, aborted: the time when its sender knew of it; None if it never did.
        unanswered: whether the server was killed before it answered the sender.
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
        """Whether a receiver began to end it, confirmed or not."""
        return any(reading.ending is not None for reading in self.readings)


@dataclass(frozen=True, slots=True)
class Wrong:
    """A discrepancy.

    Attributes:
        what: ``lost``, ``twice``, ``order``, ``damaged``, ``unknown``, ``torn``, ``aborted``, ``refused``,
            ``doubt``, or a kind of the supervisor.
        message: the message; empty for none.
        why: description.
        story: all entries about the message.
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
        fates: histories by message.
        wrong: the discrepancies.
        figures: counts.
    """

    def __init__(
        self,
        entries: Iterable[Entry],
        *,
        moved: Iterable[str] = (),
        shared: Iterable[str] = (),
        by_http: Iterable[str] = (),
        drained: bool = True,
    ) -> None:
        """Balance the books.

        Args:
            entries: entries of all books, sorted by time.
            moved: queues in which messages are moved, so that their positions change.
            shared: queues with several receivers: messages returned by one reach another one late.
            by_http: queues whose messages come by HTTP: they are counted once more for themselves.
            drained: whether no message can be in transit any more, so that missing ones are lost.
        """
        self._entries, self._moved, self._shared = list(entries), frozenset(moved), frozenset(shared)
        self._by_http = frozenset(by_http)
        self.fates: dict[str, Fate] = {}
        self.wrong: list[Wrong] = []
        self.figures: Counter[str] = Counter()
        self._killed: dict[str, list[float]] = defaultdict(list)
        self._killing: dict[str, list[float]] = defaultdict(list)
        self._readings: dict[tuple[str, str, int], Reading] = {}
        for entry in self._entries:
            getattr(self, f"_on_{entry['event'].replace(' ', '_')}", _nothing)(entry)
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

    def _on_killing(self, entry: Entry) -> None:
        self._killing[entry["who"]].append(entry["at"])

    def _on_killed(self, entry: Entry) -> None:
        self._killed[entry["who"]].append(entry["at"])

    def _on_taken(self, entry: Entry) -> None:
        last, other = -1, ""
        for message, place, sound, _ in entry["messages"]:
            remote = entry.get("remote", False)
            reading = Reading(entry["by"], entry["asked"], entry["at"], place, remote=remote)
            self._readings[entry["by"], message, place] = reading
            if not sound:
                self._add("damaged", message, f"as {entry['by']} read it")
            fate = self.fates.get(message)
            if fate is None:
                self._add("unknown", message, f"was read by {entry['by']}, and no sender has sent it")
                continue
            fate.readings.append(reading)
            if fate.queue != entry["queue"]:
                self._add("unknown", message, f"was sent to {fate.queue} and read in {entry['queue']}")
            if place <= last and fate.queue not in self._shared:
                self._add("order", message, f"was handed out after {other}, which is after it in the queue")
            last, other = place, message

    def _on_ending(self, entry: Entry) -> None:
        for message, place in entry["messages"]:
            reading = self._readings[entry["by"], message, place]
            reading.ending = reading.released = entry["at"]

    def _on_ended(self, entry: Entry) -> None:
        for message, place in entry["messages"]:
            self._readings[entry["by"], message, place].ended = entry["at"]

    def _on_back(self, entry: Entry) -> None:
        for item in entry["messages"]:
            if isinstance(item, list):  # of a remote reader
                message, place = item
                self._readings[entry["by"], message, place].released = entry["at"]

    def _on_not_ended(self, entry: Entry) -> None:
        for message, place in entry["messages"]:
            reading = self._readings[entry["by"], message, place]
            reading.ending, reading.released = None, reading.released or entry["at"]

    def _on_in_doubt(self, entry: Entry) -> None:
        for message, place in entry["messages"]:
            self._readings[entry["by"], message, place].doubted = entry["at"]

    # -- judging ------------------------------------------------------------------------------------------

    def _judge(self, fate: Fate, drained: bool) -> None:
        count, kind = self.figures, fate.kind
        counted = [kind] if fate.queue not in self._by_http else [kind, f"by HTTP, {kind}"]
        for group in counted:
            count[f"{group} begun"] += 1
            count[f"{group} stored"] += fate.stored is not None
            count[f"{group} transferred"] += fate.transferred is not None
            count[f"{group} received"] += fate.received
        count[f"{kind} read again"] += max(0, len(fate.readings) - 1)
        if fate.aborted is not None:
            count[f"{kind} aborted"] += 1
            if fate.readings:
                self._add("aborted", fate.message, "was never committed, and was read")
        elif drained and not fate.received:
            self._judge_lost(fate)
        self._judge_copies(fate)
        self._judge_remote(fate)

    def _judge_lost(self, fate: Fate) -> None:
        if fate.kind != EXPRESS:
            if fate.stored is not None:
                self._add("lost", fate.message, "was stored, and no receiver has received it")
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
        """Check that a message was in its queue only once.

        A reception whose end was not confirmed may be repeated; a confirmed one may not, and a message at
        another position than before is a duplicate. MessageIDHistoryTable does not keep express messages
        over a kill, [MS-MQQB] 3.1.1.3: one whose acknowledgement was lost is received again.
        """
        readings = fate.readings
        if len(readings) < 2:
            return
        moved = fate.queue in self._moved
        ended = sorted((reading for reading in readings if reading.ended is not None), key=lambda r: r.taken)
        why, pair = "", readings[:2]
        if len(ended) > 1:
            why, pair = f"its end was confirmed {len(ended)} times", ended[:2]
        for first in ended:
            for later in readings:
                if not why and first.ended is not None and later.asked > first.ended:
                    why, pair = "was read again after its end was confirmed", [first, later]
        if not why and not moved and len(places := {reading.place for reading in readings}) > 1:
            other = next(reading for reading in readings if reading.place != readings[0].place)
            why, pair = f"was at {len(places)} places of its queue", [readings[0], other]
        if not why:
            return
        if fate.kind == EXPRESS and self._killed_between(fate, *pair):
            self.figures["express twice by kills"] += 1
        else:
            self._add("twice", fate.message, why)

    def _judge_remote(self, fate: Fate) -> None:
        """Check that remote readers had a message alone, and that kills explain all doubts.

        An acknowledgement whose answer was lost leaves a message in doubt: it may be gone or come again.
        No other message may be, except by a kill of the reader before it has written the outcome.
        """
        for reading in fate.readings:
            if not reading.remote:
                continue
            self.figures["received remotely"] += 1
            self.figures["received remotely, end confirmed"] += reading.ended is not None
            others = [other for other in fate.readings if other is not reading]
            gone = self._first_kill(reading.asked, reading.by, fate.way[-1], begun=True)
            until = min(at for at in (reading.released, gone, float("inf")) if at is not None)
            if any(other.asked > reading.taken and other.taken < until for other in others):
                self._add("twice", fate.message, f"was handed out while {reading.by} had it")
            if reading.ending is None or reading.ended is not None:
                continue
            self.figures["received remotely, end in doubt"] += 1
            again = any(other.taken > reading.taken for other in others)
            self.figures[f"received remotely, end in doubt, {'read again' if again else 'gone'}"] += 1
            killed = fate.way[-1] if reading.doubted is not None else reading.by
            at = self._first_kill(reading.asked, killed)
            if at is None or at > (reading.doubted or at) + _NOTICED_S:
                self._add("doubt", fate.message, f"is in doubt for {reading.by}, and {killed} was not killed")

    def _first_kill(self, after: float, *who: str, begun: bool = False) -> float | None:
        """Return the time of the first kill of one of some processes after a time, or of its beginning if
        `begun`.

        Between the two the process may be dead already, and its messages be with other receivers.
        """
        kills = [at for each in who for at in self._killed[each]]
        if begun:
            kills += [at for each in who for at in self._killing[each]]
        return min((at for at in kills if at > after), default=None)

    def _killed_between(self, fate: Fate, first: Reading, second: Reading) -> bool:
        """Whether a server that a message passes through was killed between two receptions."""
        return any(first.asked < at < second.taken for who in fate.way for at in self._killed[who])

    def _judge_order(self) -> None:
        """Check that the positions of messages of one sender are in order.

        Express messages not acknowledged before a kill are repeated after it, from the first of them on.
        """
        streams: dict[tuple[str, str], list[tuple[int, int, Reading, Fate]]] = defaultdict(list)
        for fate in self.fates.values():
            if fate.readings and fate.queue not in self._moved:
                stream, number = stream_of(fate.message)
                places = {reading.place: reading for reading in reversed(fate.readings)}
                for place in places if fate.kind == EXPRESS else [min(places)]:
                    streams[stream, fate.kind].append((place, number, places[place], fate))
        for positions in streams.values():
            positions.sort(key=lambda position: position[0])
            for (_, before, first, _), (_, number, second, fate) in pairwise(positions):
                again = fate.kind == EXPRESS and self._killed_between(fate, first, second)
                if number < before and not again:
                    self._add("order", fate.message, f"is in the queue after number {before}")

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

    # -- reporting ----------------------------------------------------------------------------------------

    def _add(self, what: str, message: str, why: str) -> None:
        self.wrong.append(Wrong(what, message, why))

    def stories(self, most: int = 50) -> list[Wrong]:
        """Return the first discrepancies with their stories."""
        return [replace(wrong, story=self.story(wrong.message)) for wrong in self.wrong[:most]]

    def story(self, message: str) -> tuple[str, ...]:
        """Return all entries about a message, and the first kills after each of them."""
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
    """Ignore an entry that only stories show."""


def _is_about(entry: Entry, message: str) -> bool:
    if entry.get("message") == message:
        return True
    items = entry.get("messages", ())
    return any(item == message or (isinstance(item, list) and item[0] == message) for item in items)


def _shown(entry: Entry, message: str, zero: float) -> str:
    more = {name: value for name, value in entry.items() if name not in ("at", "by", "event", "messages")}
    for item in entry.get("messages", ()):
        if isinstance(item, list) and item[0] == message:
            more["this"] = item[1:]
    if "asked" in more:
        more["asked"] = round(more["asked"] - zero, 3)
    return f"{entry['at'] - zero:9.3f} {entry['by']} {entry['event']} {json.dumps(more)}"
