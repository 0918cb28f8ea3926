"""Possible values of a column: a comparison with any other value is a mistake, which would find nothing.

Columns with names out of a known set, addresses, GUIDs and ports have such values; labels, names of queues
and numbers in general have not. Every value that a reader can give is possible, wrong or not by the
specifications.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final, get_args
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.analysis.dissection import kinds
from msmqwire.analysis.dissection.message_security import SignatureStatus
from msmqwire.analysis.protocols import protocols
from msmqwire.analysis.protocols.protocol import NameSet, TextForm
from msmqwire.bodies import FORMATS
from msmqwire.capture.ip import Transport
from msmqwire.constants import MessageClass, class_name
from msmqwire.errors import InvalidArgument
from msmqwire.names.addresses import captured_address
from msmqwire.names.nearest import unknown_name
from msmqwire.names.printable import with_article
from msmqwire.tables.columns import Column
from msmqwire.tables.expression import Containing, Matching

EQUALITIES: Final = ("==", "!=", "in")
"""The comparisons of which both sides must be possible; of an order a bound may be any value."""
PATH: Final = "where"
_PORT_MAX: Final = 0xFFFF
_CLASS_MAX: Final = 0xFFFF
_PRIORITY_MAX: Final = 7


@dataclass(frozen=True, slots=True)
class _Names:
    """Names out of a set.

    Attributes:
        what: the noun for such names.
        names: those to propose.
        see: the page that lists all.
        unnamed: values besides them, for things without a name.
    """

    what: str
    names: Sequence[str]
    see: str = kinds.SEE
    unnamed: Callable[[], Collection[str]] = frozenset

    def all(self) -> Iterator[str]:
        """Yield all values."""
        yield from self.names
        yield from self.unnamed()

    def problem(self, value: str) -> InvalidArgument | None:
        """Return the fault of a value."""
        if value in self.names or value in self.unnamed():
            return None
        unnamed = [one for one in self.unnamed() if one.lower() == value.lower()]
        return unknown_name(value, [*unnamed, *self.names], self.what, path=PATH, see=self.see)

    def problem_of_pattern(self, pattern: Matching | Containing, shown: str) -> InvalidArgument | None:
        """Return the fault of a pattern that matches no value."""
        every = pa.record_batch({pattern.column.name: list(self.all())})
        if pc.any(pattern.mask(every)).as_py():
            return None
        found = unknown_name(shown.strip("%_^$"), self.names, self.what, path=PATH, see=self.see)
        hint = found.why.partition(f" is not {with_article(self.what)}")[2]
        return InvalidArgument(
            f"no {self.what} is matched by {shown!r:.80}{hint}", path=PATH, near=found.near
        )


@dataclass(frozen=True, slots=True)
class _Texts:
    """Texts of a form.

    Attributes:
        what: the noun for them.
        form: returns the text in the form that a column has; raises ValueError if it has none.
        alphabet: the characters of such texts.
        example: one of them.
    """

    what: str
    form: Callable[[str], str]
    alphabet: str
    example: str

    def problem(self, value: str) -> InvalidArgument | None:
        """Return the fault of a value."""
        try:
            right = self.form(value)
        except InvalidArgument as exc:
            return exc
        except ValueError:
            return InvalidArgument(f"{value!r:.80} is not {with_article(self.what)}", path=PATH)
        if right == value:
            return None
        why = f"no {self.what} is written {value!r:.80}; did you mean {right}?"
        return InvalidArgument(why, path=PATH, near=(right,))

    def problem_of_pattern(self, pattern: Matching | Containing, shown: str) -> InvalidArgument | None:
        """Return the fault of a pattern with a character that no value has."""
        if isinstance(pattern, Matching) and pattern.regular:
            return None
        text = shown.lower() if isinstance(pattern, Matching) and pattern.ignore_case else shown
        others = set(text) - set(self.alphabet) - set("%_\\" if isinstance(pattern, Matching) else "")
        if not others:
            return None
        return InvalidArgument(f"no {self.what} has {min(others)!r} in it, as {shown!r:.80} has", path=PATH)


def _registered(values: NameSet | TextForm) -> _Names | _Texts:
    """Return the values that a protocol has registered for a column."""
    if isinstance(values, TextForm):
        return _Texts(*values)
    return _Names(values.what, values.names, unnamed=values.unnamed)


@cache
def _all_classes() -> frozenset[str]:
    return frozenset(class_name(number) for number in range(_CLASS_MAX + 1))


_ADDRESSES: Final = _Texts("address", partial(captured_address, path=PATH), "0123456789abcdef.:", "10.0.0.1")
_GUIDS: Final = _Texts("GUID", lambda text: str(UUID(text)), "0123456789abcdef-", str(UUID(int=1)))
_CLASSES: Final = _Names("message class", tuple(sorted(map(class_name, MessageClass))), unnamed=_all_classes)

POSSIBLE: Final[dict[str, _Names | _Texts]] = {
    "kind": _Names("kind of packet", kinds.KINDS),
    "transport": _Names("transport", get_args(Transport)),
    "class_name": _CLASSES,
    "signature_status": _Names("status of a signature", tuple(SignatureStatus)),
    "body_format": _Names("format of a body", FORMATS, see="docs/bodies.md lists all"),
    **{
        column: _registered(values)
        for protocol in protocols()
        for column, values in protocol.columns.values.items()
    },
    **dict.fromkeys(("src", "dst", "tunnel_src", "tunnel_dst"), _ADDRESSES),
    **dict.fromkeys(
        ("source_qm", "destination_qm", "connector_type", "client_guid", "server_guid", "qm_guid"), _GUIDS
    ),
}
"""The columns whose texts are not any."""
RANGES: Final = {"src_port": _PORT_MAX, "dst_port": _PORT_MAX, "priority": _PRIORITY_MAX}
"""The columns of numbers whose greatest is known; 0 is the least."""


def not_compared(column: Column) -> str:
    """Return why a column is not compared that has texts by name."""
    return f"{column.name} has texts by name: the only conditions are is null and is not null"


def refuse_impossible(column: Column, value: Any) -> None:
    """Raise InvalidArgument for a value that a column can't have, which names the nearest ones."""
    problem = _problem(column, value)
    if problem is not None:
        raise problem


def _problem(column: Column, value: Any) -> InvalidArgument | None:
    possible, greatest = POSSIBLE.get(column.name), RANGES.get(column.name)
    if possible is not None:
        return possible.problem(value)
    if greatest is not None and not 0 <= value <= greatest:
        return InvalidArgument(f"{column.name} is 0 to {greatest}, never {value}", path=PATH)
    return None


def refuse_impossible_pattern(pattern: Matching | Containing) -> None:
    """Raise InvalidArgument for a pattern that matches nothing a column can have."""
    possible = POSSIBLE.get(pattern.column.name)
    if possible is None:
        return
    shown = pattern.pattern if isinstance(pattern, Matching) else str(pattern.parts[0])
    problem = possible.problem_of_pattern(pattern, shown)
    if problem is not None:
        raise problem
