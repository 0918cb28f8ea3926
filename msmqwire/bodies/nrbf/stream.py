"""The result of reading a stream: its objects by their ids, and what refers to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from msmqwire.bodies.body import Problem
from msmqwire.bodies.nrbf.layouts import Layout
from msmqwire.bodies.nrbf.methods import Method

PROBLEMS_MAX: Final = 64
_PATH_MAX: Final = 200


@dataclass(slots=True)
class Stream:
    """The result of reading a stream.

    Attributes:
        root: the id of the root.
        objects: texts, objects and arrays by id; in place of those within them are the four bytes of ids.
        leaves: the ids of objects and arrays that have no objects in them.
        tables: the ids of objects with the members of a DataSet or DataTable.
        classes: the classes, by the id of their first object: as described, an object without values, and
            the characters of the names in it.
        types: the names of classes that types of arrays name.
        libraries: the names of libraries by id.
        method: the call or the return of a method, if it is one.
        problems: faults, in their order.
        end: the offset after the last byte read.
    """

    root: int
    objects: dict[int, Any] = field(default_factory=dict)
    leaves: set[int] = field(default_factory=set)
    tables: list[int] = field(default_factory=list)
    classes: dict[int, tuple[Layout, dict[str, Any], int]] = field(default_factory=dict)
    types: list[str] = field(default_factory=list)
    libraries: dict[int, str] = field(default_factory=dict)
    method: Method | None = None
    problems: list[Problem] = field(default_factory=list)
    end: int = 0

    def problem(self, why: str, path: str, offset: int | None = None) -> None:
        """Add a problem, of many not all."""
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(Problem(why, path[:_PATH_MAX], offset))
        elif len(self.problems) == PROBLEMS_MAX:
            self.problems.append(Problem("there are more problems, which are not listed"))

    def no_library(self, number: int, path: str, offset: int) -> None:
        """Add the problem that an id is that of no library."""
        self.problem(f"no library has the id {number}", path, offset)
