"""The options by which commands choose packets of captures, and the filters that they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Generic, NamedTuple, TextIO, TypeVar

from msmqwire.analysis.dissection import Dissection, Item
from msmqwire.analysis.dissection.kinds import KINDS
from msmqwire.analysis.lint.finding import SEVERITIES
from msmqwire.cli.captures import filters
from msmqwire.cli.errors import usage
from msmqwire.cli.options import Option
from msmqwire.names.printable import counted

if TYPE_CHECKING:
    from msmqwire.tables.expression import Expression

Port = Annotated[
    list[int] | None,
    Option("--port", min=1, max=65535, metavar="PORT", help="An additional port of {port}."),
]
From = Annotated[
    str | None, Option("--from", metavar="TIME", help="Only packets from this time on (ISO 8601 or seconds).")
]
To = Annotated[str | None, Option("--to", metavar="TIME", help="Only packets before this time.")]
Endpoint = Annotated[
    list[str] | None,
    Option(
        "--endpoint", metavar="ADDR[:PORT]", help="Only packets to or from ADDRESS, ADDRESS:PORT or :PORT."
    ),
]
Kind = Annotated[
    list[str] | None,
    Option(
        "--kind",
        metavar="KIND",
        help="Only packets of this kind, such as {kinds}.",
        complete=lambda: list(KINDS),
    ),
]
Label = Annotated[
    str | None, Option("--label", metavar="PATTERN", help="Only messages with a label, with * and ?.")
]
Queue = Annotated[
    str | None,
    Option(
        "--queue",
        metavar="PATTERN",
        help="Only messages to a queue: its format name or a part of it, with * and ?.",
    ),
]
Findings = Annotated[
    list[str] | None,
    Option(
        "--findings",
        metavar="ID",
        help=f"Only packets with findings: {filters.ANY}, {', '.join(SEVERITIES)}, or an id or the "
        "beginning of one.",
    ),
]
Where = Annotated[
    str | None,
    Option(
        "--where",
        metavar="EXPRESSION",
        help="Only packets for which an expression over the columns is true: kind == 'UserMessage' and "
        "label like 'order%' and body_size > 1000.",
    ),
]


Columns = Annotated[
    str | None, Option("--columns", metavar="NAME,NAME", help="Names of columns, separated by commas.")
]


def column_names(text: str | None) -> list[str] | None:
    """Return the names that ``--columns`` has. Raises BadParameter for one that no column has."""
    if text is None:
        return None
    from msmqwire.tables import chosen_columns

    names = [name.strip() for name in text.split(",")]
    with usage():
        chosen_columns(names)
    return names


def shows_findings(names: list[str] | None) -> bool:
    """Whether findings are among the columns with these names."""
    if names is None:
        return False
    from msmqwire.tables.columns import FINDING_IDS

    return FINDING_IDS in names


class Wanted(NamedTuple):
    """The chosen packets: those that meet all conditions.

    Attributes:
        conditions: on time and kind.
        item_filters: those that need the packet.
        expression: over columns.
        needs_lint: whether a filter or the expression asks for findings.
    """

    conditions: list[filters.Condition]
    item_filters: list[filters.Filter]
    expression: Expression | None
    needs_lint: bool

    @property
    def are_some(self) -> bool:
        """Whether some packets are wanted, not all."""
        return bool(self.conditions or self.item_filters or self.expression)

    def test(self) -> Chosen[Item]:
        """Return whether an item is wanted, as a function that counts."""
        return Chosen([*self._on_columns(), *self.item_filters])

    def choose(self, dissection: Dissection) -> Chosen[Item]:
        """Let a dissection leave out what the conditions on columns exclude; return the test of the rest.

        Nothing must have been read of it, and it must be of files: live input is shown by other ways, too.
        """
        conditions = [*self.conditions, *([] if self.expression is None else [self.expression])]
        if not conditions:
            return self.test()
        tests = self._on_columns()
        dissection.choose(conditions, lambda item: all(test(item) for test in tests))
        return Chosen(self.item_filters)

    def _on_columns(self) -> list[filters.Filter]:
        """Return the tests of the conditions on columns."""
        tests = [filters.meets(self.conditions)] if self.conditions else []
        return tests if self.expression is None else [*tests, filters.by_expression(self.expression)]


T = TypeVar("T")


class Chosen(Generic[T]):
    """Whether an item, or a message, meets all of some tests.

    Attributes:
        asked: the number of items.
        count: the number of these that do.
    """

    def __init__(self, tests: Sequence[Callable[[T], bool]]) -> None:
        self._tests = tests
        self.asked = self.count = 0

    def __call__(self, item: T) -> bool:
        self.asked += 1
        meets_all = not self._tests or all(test(item) for test in self._tests)
        self.count += meets_all
        return meets_all


def is_terminal(stream: TextIO) -> bool:
    """Whether the output is for a person."""
    return stream.isatty()


def say_no_match(err: TextIO, what: str, read: int, unit: str) -> None:
    """Tell a person that filters left nothing, ``no packet matches: 1,234 packets were read``; no program."""
    if is_terminal(err):
        print(f"no {what} matches: {counted(read, unit)} {'was' if read == 1 else 'were'} read", file=err)


def say_nothing_found(err: TextIO, what: str, frames: int) -> None:
    """Say to a person that captures have none, ``no messages: 1,234 frames were read``; to no program."""
    if is_terminal(err):
        read = f"{counted(frames, 'frame')} {'was' if frames == 1 else 'were'} read"
        print(f"no {what}: {read}; msmqwire dissect --stats counts the packets in them", file=err)


def wanted(
    start: str | None,
    end: str | None,
    host: list[str] | None,
    kind: list[str] | None,
    label: str | None,
    queue: str | None,
    findings: list[str] | None,
    where: str | None,
) -> Wanted:
    """Return the filters of the options. Raises BadParameter for conditions that no packet can meet."""
    with usage():
        conditions = filters.by_time(start, end)
        item_filters = [filters.by_endpoint(text) for text in host or ()]
        if kind:
            conditions.append(filters.by_kind(kind))
        if findings:
            item_filters.append(filters.by_findings(findings))
        if label is not None:  # this and the next one read the packet
            item_filters.append(filters.by_label(label))
        if queue is not None:
            item_filters.append(filters.by_queue(queue))
    expression = None if where is None else filters.expression_of(where)
    return Wanted(conditions, item_filters, expression, bool(findings) or _asks_for_findings(expression))


def _asks_for_findings(expression: Expression | None) -> bool:
    if expression is None:
        return False
    from msmqwire.tables.filters import need_findings

    return need_findings((), [expression])
