"""The families of metrics, and their text in the exposition format of Prometheus, version 0.0.4."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
LABEL_MAX: Final = 512
"""Characters of the value of a label: names of queues are shorter, and a peer may send anything."""
_SPECIAL: Final = re.compile(r'[\\\n"]')
_ESCAPES: Final = {"\\": r"\\", "\n": r"\n", '"': r"\""}


@dataclass(frozen=True, slots=True)
class Family:
    """Metrics of one name.

    Attributes:
        name: the name.
        help: the meaning, one line.
        labels: the names of its labels.
        type: gauge or counter.
    """

    name: str
    help: str
    labels: tuple[str, ...] = ("target",)
    type: str = "gauge"

    @property
    def head(self) -> str:
        """The lines with the meaning and the type, which stand once in a page."""
        return f"# HELP {self.name} {self.help}\n# TYPE {self.name} {self.type}\n"

    def sample(self, value: float, *labels: str) -> str:
        """Return the line of a value; labels in their order."""
        pairs = ",".join(f'{key}="{escaped(text)}"' for key, text in zip(self.labels, labels, strict=True))
        return f"{self.name}{{{pairs}}} {value!r}\n" if pairs else f"{self.name} {value!r}\n"


def escaped(text: str) -> str:
    """Return the value of a label, with escapes."""
    return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], text)


def label(text: str) -> str:
    """Return a text of a peer as the value of a label: short enough, and text that UTF-8 can have."""
    return text[:LABEL_MAX].encode("utf-8", "replace").decode()


_QUEUE: Final = ("target", "name")

MESSAGES: Final = Family("windows_msmq_messages_in_queue", "Messages in a queue.", _QUEUE)
BYTES: Final = Family("windows_msmq_bytes_in_queue", "Bytes of the messages in a queue.", _QUEUE)
JOURNAL_MESSAGES: Final = Family(
    "windows_msmq_messages_in_journal_queue", "Messages in the journal of a queue.", _QUEUE
)
JOURNAL_BYTES: Final = Family(
    "windows_msmq_bytes_in_journal_queue", "Bytes of the messages in the journal of a queue.", _QUEUE
)
OUTGOING_MESSAGES: Final = Family(
    "msmq_outgoing_messages", "Messages that wait to be sent, or for their acknowledgement.", _QUEUE
)
OUTGOING_BYTES: Final = Family("msmq_outgoing_bytes", "Bytes of these messages.", _QUEUE)
OUTGOING_STATE: Final = Family(
    "msmq_outgoing_state",
    "1 for the state of the connection of an outgoing queue, else 0.",
    (*_QUEUE, "state"),
)
UNACKNOWLEDGED: Final = Family(
    "msmq_outgoing_unacknowledged_messages",
    "Transactional messages sent without an order acknowledgement.",
    _QUEUE,
)
UNREAD: Final = Family(
    "msmq_outgoing_unread_messages",
    "Transactional messages that have arrived, as far as is known, and are not known to be received.",
    _QUEUE,
)
RESENDS: Final = Family(
    "msmq_outgoing_resends", "How many times the last transactional message was sent.", _QUEUE
)
LAST_ACK: Final = Family(
    "msmq_outgoing_last_acknowledgement_timestamp_seconds",
    "When the last order acknowledgement came; absent for never.",
    _QUEUE,
)
FAILURES: Final = Family(
    "msmq_connection_failures", "Failed connections among those in the history, of 64 at most.", _QUEUE
)
LAST_FAILURE: Final = Family(
    "msmq_connection_last_failure_timestamp_seconds",
    "When the newest failure in the history was; absent without one.",
    _QUEUE,
)
CONNECTED: Final = Family("msmq_connected", "1 unless the queue manager was taken off the network.")
ALL_BYTES: Final = Family("msmq_bytes_all_queues", "Bytes of the messages in all queues of a queue manager.")
QUEUES: Final = Family("msmq_queues", "Queues with metrics.")
LEFT_OUT: Final = Family("msmq_queues_left_out", "Queues without metrics because there are too many.")
REFUSED: Final = Family(
    "msmq_queues_refused", "Queues without metrics that the queue manager does not report."
)

OF_QUEUES: Final = (
    MESSAGES,
    BYTES,
    JOURNAL_MESSAGES,
    JOURNAL_BYTES,
    OUTGOING_MESSAGES,
    OUTGOING_BYTES,
    OUTGOING_STATE,
    UNACKNOWLEDGED,
    UNREAD,
    RESENDS,
    LAST_ACK,
    FAILURES,
    LAST_FAILURE,
)
"""Families with a label for the queue."""
OF_MACHINES: Final = (CONNECTED, ALL_BYTES, QUEUES, LEFT_OUT, REFUSED)
"""Families of a target that has answered."""

UP: Final = Family("msmq_up", "1 if the target has answered, 0 if nothing is known of its queues.")
DURATION: Final = Family("msmq_scrape_duration_seconds", "Time that the calls to a target took.")
AGE: Final = Family("msmq_scrape_age_seconds", "Time since the calls to a target ended.")
ERRORS: Final = Family(
    "msmq_scrape_errors_total",
    "Failed scrapes of a target by reason; for the reason name, queues that it does not report.",
    ("target", "reason"),
    "counter",
)
OF_SCRAPES: Final = (UP, DURATION, AGE, ERRORS)
"""Families of every target."""

TARGETS: Final = Family("msmq_exporter_targets", "Targets in the file.", ())
RELOADED: Final = Family(
    "msmq_exporter_last_reload_successful", "1 if the file of targets was right when it was last read.", ()
)
RELOAD_TIME: Final = Family(
    "msmq_exporter_last_reload_success_timestamp_seconds", "When the targets in use were read.", ()
)
OF_EXPORTER: Final = (TARGETS, RELOADED, RELOAD_TIME)
"""Families of the exporter itself."""

Blocks = Mapping[str, str]
"""Lines with samples, by the name of their family."""


class Lines:
    """Collects samples of several families, and so many of each as there are."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}

    def add(self, family: Family, value: float | None, *labels: str) -> None:
        """Add a sample; a value of None is none."""
        if value is not None:
            self._lines.setdefault(family.name, []).append(family.sample(value, *labels))

    def blocks(self) -> Blocks:
        """Return the samples."""
        return {name: "".join(lines) for name, lines in self._lines.items()}


def page(families: Iterable[Family], blocks: Iterable[Blocks]) -> Iterator[bytes]:
    """Yield the parts of a page: the samples of each family in one place, after its meaning."""
    kept = list(blocks)
    for family in families:
        parts = [found for one in kept if (found := one.get(family.name))]
        if parts:
            yield "".join((family.head, *parts)).encode()
