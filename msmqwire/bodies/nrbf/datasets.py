"""Objects of System.Data as tables: the values of the members of a DataSet or DataTable, in two forms.

In the form XML they are a schema and a diffgram, both texts. In the binary form they are the columns of each
table, for a DataSet in a stream of its own, and the values column by column, with a bit for each null.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from msmqwire.bodies import plain
from msmqwire.bodies.body import Plain
from msmqwire.bodies.limits import LIST_COST, Budget, LimitExceeded
from msmqwire.bodies.nrbf.graph import assemble
from msmqwire.bodies.nrbf.layouts import TABLES
from msmqwire.bodies.nrbf.reading import HEADER, read_stream
from msmqwire.bodies.nrbf.stream import Stream
from msmqwire.bodies.nrbf.tables import NoTables, Table, as_plain

_OBJECT_COST: Final = 92
_GUID: Final = struct.Struct("<ihh8B")
_GUID_MEMBERS: Final = tuple(f"_{letter}" for letter in "abcdefghijk")
_DELETED: Final = 3
_MODIFIED: Final = 1
"""Two bits of a row's state; a third says whether it is being edited."""


def with_tables(value: Plain, stream: Stream, budget: Budget) -> Plain:
    """Return a value with tables in place of the objects that hold them."""
    holder: dict[str, Any] = {"": value}
    try:
        objects, found = _walk(holder, budget)
        for container, key in reversed(found):
            try:
                container[key] = _tables(container[key], objects, stream, budget)
            except NoTables as exc:
                stream.problem(f"no tables: {exc}", container[key][plain.TYPE].partition(",")[0])
    except LimitExceeded as exc:
        stream.problem(exc.why, "System.Data")
    tables: Plain = holder[""]
    return tables


def _walk(holder: dict[str, Any], budget: Budget) -> tuple[dict[int, Any], list[tuple[Any, Any]]]:
    """Return all objects by their ids, and the places of those with tables."""
    objects: dict[int, Any] = {}
    found: list[tuple[Any, Any]] = []
    pending: list[Any] = [holder]
    while pending:
        container = pending.pop()
        for key, value in container.items() if isinstance(container, dict) else enumerate(container):
            if isinstance(value, dict):
                number = value.get(plain.ID)
                if isinstance(number, int):
                    budget.spend(_OBJECT_COST)
                    objects[number] = value
                if plain.TYPE in value and not TABLES.isdisjoint(value):
                    found.append((container, key))
                pending.append(value)
            elif isinstance(value, list):
                pending.append(value)
    return objects, found


def _tables(members: dict[str, Any], objects: dict[int, Any], stream: Stream, budget: Budget) -> Plain:
    """Return the tables that an object holds. Raises NoTables, LimitExceeded."""
    schema, diffgram = members.get("XmlSchema"), members.get("XmlDiffGram")
    if isinstance(schema, str) and isinstance(diffgram, str):
        from msmqwire.bodies.nrbf.diffgrams import read_diffgram

        name, tables, wrong = read_diffgram(schema, diffgram, budget)
        for why, path in wrong:
            stream.problem(why, path)
        return as_plain(name, tables)
    binary = _Binary(objects, budget)
    if "DataTable.Columns.Count" in members:
        table = binary.columns(members)
        binary.rows(table, members, 0)
        return as_plain(None, [table])
    count = members.get("DataSet.Tables.Count")
    if not isinstance(count, int):
        raise NoTables("the form of the members is unknown")
    tables = []
    for number in range(count):
        data = _bytes(members.get(f"DataSet.Tables_{number}"))
        if data is None or len(data) < HEADER.size:
            raise NoTables(f"DataSet.Tables_{number} is missing")
        inner = read_stream(data, budget)
        described = assemble(inner, budget)
        for problem in inner.problems:
            stream.problem(problem.error, f"DataSet.Tables_{number}.{problem.path}")
        if not isinstance(described, dict):
            raise NoTables(f"DataSet.Tables_{number} is not a table")
        table = _Binary(_walk({"": described}, budget)[0], budget).columns(described)
        binary.rows(table, members, number)
        tables.append(table)
    name = members.get("DataSet.DataSetName")
    return as_plain(name if isinstance(name, str) else None, tables)


class _Binary:
    """The binary form: members by name, among objects that refer to each other."""

    def __init__(self, objects: dict[int, Any], budget: Budget) -> None:
        self._objects, self._budget = objects, budget

    def _follow(self, value: Any) -> Any:
        """Return a value or the object that it refers to; of an array with an id its items."""
        if isinstance(value, dict):
            if plain.REF in value:
                value = self._objects.get(value[plain.REF])
            if isinstance(value, dict) and plain.ITEMS in value and plain.TYPE not in value:
                value = value[plain.ITEMS]
        return value

    def columns(self, members: dict[str, Any]) -> Table:
        """Return a table with its columns."""
        count, name = members.get("DataTable.Columns.Count"), members.get("DataTable.TableName")
        if not isinstance(count, int) or not isinstance(name, str):
            raise NoTables("a table has no name or columns")
        table = Table(name)
        for number in range(count):
            column = members.get(f"DataTable.DataColumn_{number}.ColumnName")
            if not isinstance(column, str):
                raise NoTables(f"the column {number} of {name:.80} has no name")
            # .NET Framework writes a System.Type, .NET since Core its whole name.
            kind = self._follow(
                members.get(f"DataTable.DataColumn_{number}.DataType")
                or members.get(f"DataTable.DataColumn_{number}.DataType_AssemblyQualifiedName")
            )
            if isinstance(kind, dict):  # a System.Type, of which only the name matters
                kind = self._follow(kind.get("Data"))
            table.columns.append((column, kind.partition(",")[0] if isinstance(kind, str) else ""))
        return table

    def rows(self, table: Table, members: dict[str, Any], number: int) -> None:
        """Read the rows of a table as they are now, without those that are deleted."""
        prefix = f"DataTable_{number}."
        count = members.get(prefix + "Rows.Count")
        stores = self._list(members.get(prefix + "Records"))
        nulls = self._list(members.get(prefix + "NullBits"))
        states = self._bits(members.get(prefix + "RowStates"))
        if not isinstance(count, int) or states is None or 3 * count > 32 * len(states):
            raise NoTables(f"the rows of {table.name:.80} are missing")
        width = len(table.columns)
        values: list[Any] = []
        missing: list[Any] = []
        for column in range(width if count else 0):
            items = self._follow(stores[column]) if stores and column < len(stores) else None
            data = _bytes(items)
            bits = self._bits(nulls[column]) if nulls and column < len(nulls) else None
            if data is None and not isinstance(items, list):
                raise NoTables(f"the values of {table.name:.80} are missing")
            values.append(items if data is None else data)
            missing.append(bits or ())
        record = 0
        for row in range(count):
            state = _bit(states, 3 * row) | _bit(states, 3 * row + 1) << 1
            current = record + (state == _MODIFIED)
            record = current + 1 + _bit(states, 3 * row + 2)
            if state == _DELETED:
                continue
            self._budget.items(width)
            self._budget.spend(LIST_COST)
            try:
                table.rows.append(
                    [
                        None if _bit(bits, current) else self._cell(items[current])
                        for items, bits in zip(values, missing, strict=True)
                    ]
                )
            except IndexError:
                raise NoTables(f"the values of {table.name:.80} are fewer than its rows") from None

    def _list(self, value: Any) -> list[Any] | None:
        """Return the items of an ArrayList."""
        value = self._follow(value)
        items = self._follow(value.get("_items")) if isinstance(value, dict) else None
        return items if isinstance(items, list) else None

    def _bits(self, value: Any) -> list[int] | None:
        """Return the words of a BitArray."""
        value = self._follow(value)
        words = self._follow(value.get("m_array")) if isinstance(value, dict) else None
        if isinstance(words, list) and all(isinstance(word, int) for word in words):
            return words
        return None

    def _cell(self, value: Any) -> Plain:
        """Return a value of a column; a Guid, which .NET keeps in eleven members, as one."""
        if isinstance(value, dict) and value.get(plain.TYPE) == "System.Guid":
            from uuid import UUID

            try:
                data = _GUID.pack(*(value[name] for name in _GUID_MEMBERS))
            except (KeyError, struct.error):
                return value
            self._budget.spend(_OBJECT_COST)
            return {plain.GUID: str(UUID(bytes_le=data))}
        cell: Plain = value
        return cell


def _bit(words: Any, number: int) -> int:
    """Return a bit of a BitArray; those that are not there are not set."""
    at = number >> 5
    return words[at] >> (number & 31) & 1 if at < len(words) else 0


def _bytes(value: Any) -> bytes | None:
    digits = value.get(plain.BYTES) if isinstance(value, dict) else None
    return bytes.fromhex(digits) if isinstance(digits, str) else None
