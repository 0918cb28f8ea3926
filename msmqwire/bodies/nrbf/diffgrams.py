"""The XML form of a DataSet: its schema, and its rows as a diffgram."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

from msmqwire.bodies.body import Plain
from msmqwire.bodies.limits import DICT_COST, LIST_COST, NAMES_BASE, NAMES_FACTOR, Budget, LimitExceeded
from msmqwire.bodies.nrbf.tables import NoTables, Table
from msmqwire.bodies.xml.simple import SIMPLE
from msmqwire.names.printable import counted, with_article

_SCHEMA: Final = "http://www.w3.org/2001/XMLSchema}"
_DATA: Final = "urn:schemas-microsoft-com:xml-msdata}"
_DIFFGRAM: Final = "urn:schemas-microsoft-com:xml-diffgram-v1}"
_NIL: Final = "http://www.w3.org/2001/XMLSchema-instance}nil"
_HIDDEN: Final = _DATA + "hidden"
_ESCAPED: Final = re.compile("_x((?![Dd][89A-Fa-f])[0-9A-Fa-f]{4})_")  # no halves of surrogate pairs
_PROBLEMS_MAX: Final = 16
_STRING: Final = "string"

_NET: Final = {
    "boolean": "System.Boolean",
    "byte": "System.SByte",
    "unsignedByte": "System.Byte",
    "short": "System.Int16",
    "unsignedShort": "System.UInt16",
    "int": "System.Int32",
    "unsignedInt": "System.UInt32",
    "long": "System.Int64",
    "integer": "System.Int64",
    "unsignedLong": "System.UInt64",
    "float": "System.Single",
    "double": "System.Double",
    "decimal": "System.Decimal",
    "dateTime": "System.DateTime",
    "date": "System.DateTime",
    "time": "System.DateTime",
    "duration": "System.TimeSpan",
    "base64Binary": "System.Byte[]",
    "hexBinary": "System.Byte[]",
    "anyURI": "System.Uri",
}
"""Types of .NET by those of the schema; all other types are texts."""
_XML: Final = {"System.Guid": "guid", "System.TimeSpan": "duration", "System.DateTimeOffset": "dateTime"}
"""Readers of the schema's texts that have a type of .NET besides."""

Problem = tuple[str, str]
"""A fault, and its place."""


def read_diffgram(
    schema: str, diffgram: str, budget: Budget
) -> tuple[str | None, list[Table], list[Problem]]:
    """Return the name of a DataSet, its tables, and its faults. Raises NoTables, LimitExceeded."""
    described = _Schema(budget)
    _parse(schema, described, "XmlSchema", budget)
    rows = _Rows(described, budget)
    try:
        _parse(diffgram, rows, "XmlDiffGram", budget)
    except NoTables as exc:
        rows.problem(str(exc), "XmlDiffGram")
    tables = [table for table, _, _ in described.tables.values()]
    for table in tables:
        for row in table.rows:
            _widen(row, len(table.columns), budget)
    return described.name, tables, rows.problems


def _widen(row: list[Plain], width: int, budget: Budget) -> None:
    """Make a row as long as its table is wide, which columns that the schema does not have widen."""
    if len(row) < width:
        budget.items(width - len(row))
        row.extend([None] * (width - len(row)))


class _Handler:
    """The function that parsing calls; `depth` is that of the element that begins or ends, 0 for the root."""

    def start(self, depth: int, name: str, attributes: dict[str, str]) -> None: ...
    def text(self, text: str) -> None: ...
    def end(self, depth: int) -> None: ...


def _parse(text: str, handler: _Handler, path: str, budget: Budget) -> None:
    """Parse XML without a document type, and with that without entities. Raises NoTables, LimitExceeded."""
    parser = expat.ParserCreate("utf-8", "}")
    depth = -1

    names = NAMES_BASE + NAMES_FACTOR * len(text)

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth, names
        names -= len(name) + sum(map(len, attributes))
        if names < 0:
            raise LimitExceeded("the names of elements with their namespaces are too long")
        depth += 1
        if depth >= budget.depth:
            raise LimitExceeded(f"more than {counted(budget.depth, 'element')} deep")
        budget.records()
        handler.start(depth, name, attributes)

    def end(_: str) -> None:
        nonlocal depth
        handler.end(depth)
        depth -= 1

    def doctype(*_: object) -> None:
        raise NoTables(f"{path} has a document type")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = handler.text, doctype
    parser.buffer_text = True
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as exc:
        raise NoTables(f"{path} is not well-formed XML: {expat.ErrorString(exc.code)}") from None
    finally:  # the handlers hold the parser, which holds them
        parser.StartElementHandler = parser.EndElementHandler = None
        parser.CharacterDataHandler = parser.StartDoctypeDeclHandler = None


def _decoded(name: str) -> str:
    """Return a name with the characters that XML does not allow for in names."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), name) if "_x" in name else name


@dataclass(slots=True)
class _Element:
    """An element that a schema declares."""

    name: str
    type: str
    net: str
    is_dataset: bool
    is_table: bool = False
    table: Table | None = None
    readers: list[str] = field(default_factory=list)


class _Schema(_Handler):
    """Tables and columns from the elements of a schema."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._open: list[_Element | None] = []
        self._elements: list[_Element] = []
        self.name: str | None = None
        # By name in the XML: the table, the number of each column by its name in the XML, and how it is read.
        self.tables: dict[str, tuple[Table, dict[str, int], list[str]]] = {}

    def start(self, depth: int, name: str, attributes: dict[str, str]) -> None:
        element: _Element | None = None
        innermost = self._elements[-1] if self._elements else None
        if name == _SCHEMA + "element" and "name" in attributes:
            self._budget.spend(DICT_COST)
            element = self._element(attributes)
            self._elements.append(element)
        elif innermost is not None:
            if name == _SCHEMA + "complexType":
                innermost.is_table = True
                if not innermost.is_dataset:
                    self.table(innermost.name)
            elif name == _SCHEMA + "attribute" and "name" in attributes:
                self._column(innermost, self._element(attributes))
            elif name == _SCHEMA + "simpleContent":
                column = attributes.get(_DATA + "ColumnName", f"{innermost.name}_Text")
                self._column(innermost, _Element(column, _STRING, "", False), "")
            elif name in (_SCHEMA + "restriction", _SCHEMA + "extension") and not innermost.type:
                innermost.type = _local(attributes.get("base", ""))
        self._open.append(element)

    def end(self, depth: int) -> None:
        if self._open.pop() is None:
            return
        element = self._elements.pop()
        if element.is_dataset:
            self.name = _decoded(element.name)
        elif not element.is_table and self._elements and not self._elements[-1].is_dataset:
            self._column(self._elements[-1], element)

    def _element(self, attributes: dict[str, str]) -> _Element:
        return _Element(
            attributes["name"],
            _local(attributes.get("type", "")),
            attributes.get(_DATA + "DataType", "").partition(",")[0],
            attributes.get(_DATA + "IsDataSet") == "true",
        )

    def table(self, name: str) -> tuple[Table, dict[str, int], list[str]]:
        """Return a table by its name in the XML, a new one if the schema has none."""
        if name not in self.tables:
            self._budget.spend(3 * DICT_COST)
            self.tables[name] = (Table(_decoded(name)), {}, [])
        return self.tables[name]

    def _column(self, of: _Element, column: _Element, name: str | None = None) -> None:
        """Add a column to a table; its name in the XML is empty if it is the text of the row."""
        table, numbers, readers = self.table(of.name)
        kind = column.type or _STRING
        numbers.setdefault(column.name if name is None else name, len(readers))
        readers.append(_XML.get(column.net, kind))
        self._budget.spend(DICT_COST)
        table.columns.append((_decoded(column.name), column.net or _NET.get(kind, "System.String")))

    def unknown(self, table: str, name: str) -> int:
        """Add a column that the schema does not have."""
        of = _Element(table, "", "", False)
        self._column(of, _Element(name, _STRING, "", False))
        return len(self.tables[table][2]) - 1


class _Rows(_Handler):
    """Rows from the first element of a diffgram that is not the diffgram's own."""

    def __init__(self, schema: _Schema, budget: Budget) -> None:
        self._schema, self._budget = schema, budget
        self._skipped: int | None = None
        # Of each open row: the depth, the name of its table, and its values.
        self._open: list[tuple[int, str, list[Plain]]] = []
        self._column: int | None = None
        self._depth = 0
        self._text: list[str] = []
        self._nil = False
        self.problems: list[Problem] = []

    def problem(self, why: str, path: str) -> None:
        if len(self.problems) < _PROBLEMS_MAX:
            self.problems.append((why, path))

    def start(self, depth: int, name: str, attributes: dict[str, str]) -> None:
        if self._skipped is not None or depth == 0:
            return
        if name.startswith(_DIFFGRAM):  # rows as they were before, and errors
            self._skipped = depth
            return
        if depth == 1 or self._column is not None:
            return
        local = name.rpartition("}")[2]
        if depth == 2:
            self._row(depth, local, attributes)
            return
        if not self._open:
            return
        table = self._open[-1][1]
        numbers = self._schema.tables[table][1]
        if local not in numbers and local in self._schema.tables:
            self._row(depth, local, attributes)
            return
        self._column = numbers[local] if local in numbers else self._schema.unknown(table, local)
        self._depth, self._nil = depth, attributes.get(_NIL) in ("true", "1")
        self._text.clear()

    def text(self, text: str) -> None:
        if self._column is not None or (self._open and "" in self._schema.tables[self._open[-1][1]][1]):
            self._text.append(text)

    def end(self, depth: int) -> None:
        if self._skipped is not None:
            if depth == self._skipped:
                self._skipped = None
            return
        if self._column is not None:
            if depth == self._depth:
                self._cell(self._column, None if self._nil else "".join(self._text))
                self._column = None
                self._text.clear()
        elif self._open and depth == self._open[-1][0]:
            number = self._schema.tables[self._open[-1][1]][1].get("")
            if number is not None:
                self._cell(number, "".join(self._text))
                self._text.clear()
            self._open.pop()

    def _row(self, depth: int, name: str, attributes: dict[str, str]) -> None:
        if name not in self._schema.tables:
            self._schema.table(name)
        table, numbers, readers = self._schema.tables[name]
        self._budget.items(len(readers))
        self._budget.spend(LIST_COST)
        row: list[Plain] = [None] * len(readers)
        table.rows.append(row)
        self._open.append((depth, name, row))
        self._text.clear()
        for key, text in attributes.items():
            column = key.removeprefix(_HIDDEN)
            if column in numbers and ("}" not in key or column != key):
                self._cell(numbers[column], text)

    def _cell(self, number: int, text: str | None) -> None:
        _, name, row = self._open[-1]
        table, _, readers = self._schema.tables[name]
        _widen(row, number + 1, self._budget)
        if text is None:
            return
        self._budget.text(len(text))
        reader = readers[number]
        if reader not in SIMPLE or reader == _STRING:
            row[number] = text
            return
        self._budget.spend(DICT_COST)
        try:
            row[number] = SIMPLE[reader](text.strip())
        except (ValueError, ArithmeticError):
            row[number] = text
            column = table.columns[number][0]
            self.problem(f"{text[:40]!r} is not {with_article(reader)}", f"XmlDiffGram.{table.name}.{column}")


def _local(name: str) -> str:
    return name.rpartition(":")[2]
