"""A decoded body: the result of `decode`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from msmqwire.bodies.named import Named

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
"""A value as JSON has it; one that JSON lacks is an object whose first name has a ``$``: docs/bodies.md."""

NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of a body; the parts read before it are in the value.

    Attributes:
        error: the reason, one sentence without the location.
        path: the field or element, in the names of its specification; empty if none can be named.
        offset: the byte, counted from the start of the body, or of the extension if the path begins with
            ``extension``; None if unknown.
    """

    error: str
    path: str = ""
    offset: int | None = None

    def __str__(self) -> str:
        """The place and the text of the problem."""
        offset = "" if self.offset is None else f"byte {self.offset}"
        where = ", ".join(filter(None, (self.path, offset)))
        return f"{where}: {self.error}" if where else self.error

    def to_json(self) -> dict[str, Plain]:
        """Return the problem as the command line prints it."""
        return {"path": self.path, "offset": self.offset, "error": self.error}


@dataclass(frozen=True, slots=True)
class Content:
    """A body without its headers, as the reader of one format returns it.

    Attributes:
        format: one of `FORMATS`.
        value: the value as plain data.
        line: the value in one line for people, characters that can't be shown still in it; None for the
            result of `plain.line`, made when it is asked for.
        problems: faults, in their order.
    """

    format: str
    value: Plain
    line: str | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def text(self) -> str:
        """The value in one line for people."""
        if self.line is not None:
            return self.line
        from msmqwire.bodies import plain

        return _message(self) or plain.line(self.value)


@dataclass(frozen=True, slots=True)
class Headers:
    """The headers that a framework put into the extension.

    Attributes:
        format: one of `HEADERS_FORMATS`; None if there are none.
        values: the headers by name, in their order.
        problems: faults, with paths that begin with ``extension``.
    """

    format: str | None = None
    values: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS)
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Body:
    """The decoded body of a message.

    Attributes:
        format: one of `FORMATS`.
        value: the value as plain data.
        line: the value of `text`; None if it is still to be made of the value.
        headers_format: ``nservicebus`` or ``rebus``; None if the extension has no headers.
        headers: the headers in the extension, by name.
        problems: faults of body and headers, in their order.
    """

    format: str
    value: Plain
    line: str | None = None
    headers_format: str | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS)
    problems: tuple[Problem, ...] = ()

    @property
    def text(self) -> str:
        """The value in one line for people; empty if there is nothing to show."""
        if self.line is not None:
            return self.line
        from msmqwire.bodies.named import summary
        from msmqwire.bodies.plain import line

        return summary(self) or _message(self) or line(self.value)

    @property
    def named(self) -> Named:
        """Facts about the message that frameworks give under names of their own: its type, sender, time,
        sagas.
        """
        from msmqwire.bodies.named import named

        return named(self)

    def to_json(self) -> dict[str, Plain]:
        """Return the body as the command line prints it."""
        return {
            "format": self.format,
            "headers_format": self.headers_format,
            "value": self.value,
            "headers": dict(self.headers),
            "text": self.text,
            "problems": [problem.to_json() for problem in self.problems],
        }


def _message(content: Content | Body) -> str:
    """Return the line of a message of WCF, which is made of its XML; empty for other formats."""
    if content.format != "wcf" or not isinstance(content.value, dict):
        return ""
    from msmqwire.bodies.wcf.summary import summary

    return summary(content.value)
