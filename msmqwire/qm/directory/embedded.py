"""A directory in one small file, or in memory: for computers without a directory service."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import update_wrapper
from pathlib import Path
from typing import Concatenate, Final, ParamSpec, TypeVar
from uuid import UUID, uuid4

from msmqwire.names import DistributionListName, SingleName, parse_format_name, parse_path_name
from msmqwire.qm.directory import stored_objects
from msmqwire.qm.directory.attributes import (
    ATTRIBUTES,
    MISSING,
    TYPES,
    Filter,
    Operator,
    known_filters,
    satisfies,
    sort_key,
)
from msmqwire.qm.directory.files import open_file
from msmqwire.qm.directory.interface import CreateResult, QueryResult, ReadResult, ResolveResult, SortOrder
from msmqwire.qm.model.directory_objects import DirectoryObject, RoutingLink, Site, User
from msmqwire.qm.model.elements import Queue, QueueManager
from msmqwire.qm.model.enumerations import DirectoryOperationResult, QueueType
from msmqwire.qm.model.message import NULL_GUID

COST_MAX: Final = 999_999
"""The greatest cost of a routing link: DMPR-3.1.1.8-02."""
DIGEST_SIZE: Final = 16
"""Bytes of the digest of a certificate: DMPR-3.1.1.15-02."""

_SERVER_SET: Final = frozenset({"Identifier", "CreateTime", "ModifyTime", "FullPath", "DirectoryPath"})
"""The attributes that the directory itself sets."""

_Status = DirectoryOperationResult
_SUCCESS: Final = _Status.SUCCESS
_P = ParamSpec("_P")
_R = TypeVar("_R")
_Row = tuple[UUID, dict[str, object]]
"""The identifier of an object, and its other attributes."""


class _Failed(Exception):
    """Ends a call with a result."""

    def __init__(self, status: DirectoryOperationResult) -> None:
        self.status = status


def _event(
    result_type: Callable[[DirectoryOperationResult], _R],
) -> Callable[
    [Callable[Concatenate[EmbeddedDirectory, _P], _R]], Callable[Concatenate[EmbeddedDirectory, _P], _R]
]:
    """Decorate a call so that it returns failures, also those of the file, instead of raising."""

    def decorate(
        call: Callable[Concatenate[EmbeddedDirectory, _P], _R],
    ) -> Callable[Concatenate[EmbeddedDirectory, _P], _R]:
        def wrapper(self: EmbeddedDirectory, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
            if not self.connected:  # DMPR-3.1.1.17-02
                return result_type(_Status.DIRECTORY_NOT_CONNECTED)
            try:
                return call(self, *args, **kwargs)
            except _Failed as failed:
                return result_type(failed.status)
            except (sqlite3.Error, ValueError, TypeError, KeyError, AttributeError):  # an invalid row
                return result_type(_Status.GENERIC_ERROR)

        update_wrapper(wrapper, call)
        return wrapper

    return decorate


class EmbeddedDirectory:
    """A `Directory` in a SQLite file: several queue managers on one computer can share it.

    All types of objects can be created, users and the enterprise too. An object that comes with an identifier
    keeps it. FullPath, DirectoryPath, CreateTime and ModifyTime are set by the directory.

    Attributes:
        connected: False makes every call return DirectoryNotConnected, as if the directory were unreachable.
    """

    def __init__(
        self,
        path: str | Path = ":memory:",
        *,
        utc: Callable[[], int] = lambda: int(time.time()),
        new_guid: Callable[[], UUID] = uuid4,
    ) -> None:
        """Open a directory, or create one.

        Args:
            path: the file; it is created if it is missing. Without one the directory is in memory.
            utc: returns the time, in seconds since 1970-01-01 UTC.
            new_guid: returns identifiers for objects that come without one.

        Raises:
            StoreError: one of its subclasses: the file is damaged, is another kind of database or of a newer
                version, stays in use, or is refused by the operating system.
        """
        self.connected = True
        self._utc, self._new_guid = utc, new_guid
        self._database = open_file(str(path))
        self._queries: dict[int, tuple[Iterator[_Row], str, Sequence[str] | None]] = {}
        self._handles = 0

    def close(self) -> None:
        """Close the file. From then on the directory is not connected."""
        self.connected = False
        self._database.close()

    # -- the events ---------------------------------------------------------------------------------

    @_event(CreateResult)
    def create_directory_object(
        self, directory_object: DirectoryObject, attributes: Sequence[str] | None = None
    ) -> CreateResult:
        """Create Directory Object: [MS-MQDSSM] 3.1.6.1."""
        kind = _type_of(directory_object)
        content = _content(directory_object, _checked_attributes(kind, attributes))
        identifier = directory_object.identifier
        if identifier == NULL_GUID:
            identifier = self._new_guid()
        if path := stored_objects.full_path(kind, content):  # DMPR-3.1.1.1-13
            content["FullPath"] = path  # DMPR-3.1.1.1-13
        if kind == "Queue":
            content["DirectoryPath"] = f"LDAP://{path}"
        for name in ("CreateTime", "ModifyTime"):  # DMPR-3.1.1.1-08 and -09
            if name in ATTRIBUTES[kind]:
                content[name] = self._utc()  # DMPR-3.1.1.1-08 and -09
        try:
            self._database.execute(
                "INSERT INTO object (type, identifier, name, attributes) VALUES (?, ?, ?, ?)",
                (kind, identifier.bytes, _require_name(kind, content), stored_objects.write(content)),
            )
        except sqlite3.IntegrityError:
            return CreateResult(_Status.OBJECT_ALREADY_EXISTS)  # DMPR-3.1.1.17-02, DMPR-3.1.1.7-01
        return CreateResult(_SUCCESS, identifier)

    @_event(DirectoryOperationResult)
    def delete_directory_object(self, directory_object: DirectoryObject) -> DirectoryOperationResult:
        """Delete Directory Object: [MS-MQDSSM] 3.1.6.2."""
        kind = _type_of(directory_object)
        identifier, _ = self._stored_row(kind, directory_object)
        self._database.execute(
            "DELETE FROM object WHERE type = ? AND identifier = ?", (kind, identifier.bytes)
        )
        return _SUCCESS

    @_event(ReadResult)
    def read_directory(
        self,
        object_type: str,
        filters: Sequence[Filter] | None = None,
        attributes: Sequence[str] | None = None,
    ) -> ReadResult:
        """Read Directory: [MS-MQDSSM] 3.1.6.3."""
        _checked_attributes(object_type, attributes)
        row = next(self._select(object_type, filters or ()), None)
        if row is None:
            return ReadResult(_Status.OBJECT_NOT_FOUND)  # DMPR-3.1.1.17-02
        return ReadResult(_SUCCESS, self._element(object_type, row, attributes))

    @_event(QueryResult)
    def read_directory_begin(
        self,
        object_type: str,
        filters: Sequence[Filter] | None = None,
        attributes: Sequence[str] | None = None,
        sort_order: Sequence[SortOrder] | None = None,
    ) -> QueryResult:
        """Read Directory Begin: [MS-MQDSSM] 3.1.6.4."""
        _checked_attributes(object_type, attributes)
        rows = list(self._select(object_type, filters or ()))
        orders = list(zip(attributes or (), sort_order or (), strict=bool(sort_order)))  # DMPR-3.1.7.1.21-02
        # Sorting is stable, so the greatest priority is sorted last.
        for name, order in sorted(orders, key=lambda pair: pair[1].priority):
            if order.priority:  # DMPR-3.1.7.1.21-02
                # DMPR-3.1.7.1.21-02
                rows.sort(key=lambda row: sort_key(_value(row, name)), reverse=not order.ascending)
        self._handles += 1
        self._queries[self._handles] = iter(rows), object_type, attributes
        return QueryResult(_SUCCESS, self._handles)

    @_event(ReadResult)
    def read_directory_next(self, handle: int) -> ReadResult:
        """Read Directory Next: [MS-MQDSSM] 3.1.6.5."""
        if handle not in self._queries:
            return ReadResult(_Status.GENERIC_ERROR)
        rows, object_type, attributes = self._queries[handle]
        row = next(rows, None)
        if row is None:
            return ReadResult(_Status.END_OF_DATA)  # DMPR-3.1.1.17-02
        return ReadResult(_SUCCESS, self._element(object_type, row, attributes))

    @_event(DirectoryOperationResult)
    def read_directory_end(self, handle: int) -> DirectoryOperationResult:
        """Read Directory End: [MS-MQDSSM] 3.1.6.6."""
        return _Status.GENERIC_ERROR if self._queries.pop(handle, None) is None else _SUCCESS

    @_event(DirectoryOperationResult)
    def write_directory(
        self, directory_object: DirectoryObject, attributes: Sequence[str] | None = None
    ) -> DirectoryOperationResult:
        """Write Directory: [MS-MQDSSM] 3.1.6.7."""
        kind = _type_of(directory_object)
        written = _content(directory_object, _checked_attributes(kind, attributes))
        self._database.execute("BEGIN IMMEDIATE")
        try:
            identifier, content = self._stored_row(kind, directory_object)
            content |= written
            if "ModifyTime" in ATTRIBUTES[kind]:  # DMPR-3.1.1.1-09
                content["ModifyTime"] = self._utc()  # DMPR-3.1.1.1-09
            self._database.execute(
                "UPDATE object SET name = ?, attributes = ? WHERE type = ? AND identifier = ?",
                (_require_name(kind, content), stored_objects.write(content), kind, identifier.bytes),
            )
        except sqlite3.IntegrityError:
            self._database.execute("ROLLBACK")
            return _Status.OBJECT_ALREADY_EXISTS  # DMPR-3.1.1.7-01
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")
        return _SUCCESS

    @_event(ResolveResult)
    def resolve_distribution_list(self, name: DistributionListName) -> ResolveResult:
        """Resolve Distribution List: [MS-MQDSSM] 3.1.6.9. Nested lists are resolved, each of them once."""
        names: list[SingleName] = []
        lists, seen = [name.guid], {name.guid}
        for identifier in lists:
            for member in self._members(identifier):
                if not isinstance(member, DistributionListName):
                    names.append(member)
                elif member.guid not in seen:
                    seen.add(member.guid)
                    lists.append(member.guid)
        return ResolveResult(_SUCCESS, tuple(names))

    # -- beyond the interface -----------------------------------------------------------------------

    @_event(DirectoryOperationResult)
    def set_distribution_list(
        self, identifier: UUID, members: Iterable[SingleName]
    ) -> DirectoryOperationResult:
        """Create or replace a distribution list of queues and other lists; without members, delete it."""
        texts = [str(member) for member in members]
        if texts:
            self._database.execute(
                "REPLACE INTO distribution_list VALUES (?, ?)", (identifier.bytes, json.dumps(texts))
            )
        else:
            self._database.execute("DELETE FROM distribution_list WHERE identifier = ?", (identifier.bytes,))
        return _SUCCESS

    # -- rows -----------------------------------------------------------------------------------------

    def _members(self, identifier: UUID) -> Iterator[SingleName]:
        row = self._database.execute(
            "SELECT members FROM distribution_list WHERE identifier = ?", (identifier.bytes,)
        ).fetchone()
        if row is None:
            raise _Failed(_Status.OBJECT_NOT_FOUND)
        for text in json.loads(row[0]):
            yield parse_format_name(text)  # type: ignore[misc]  # only single names are written

    def _rows(self, kind: str, where: str = "", *values: object) -> Iterator[_Row]:
        statement = f"SELECT identifier, attributes FROM object WHERE type = ?{where} ORDER BY number"
        for identifier, row in self._database.execute(statement, (kind, *values)).fetchall():
            yield UUID(bytes=identifier), stored_objects.read(kind, row)

    def _select(self, kind: str, filters: Sequence[Filter]) -> Iterator[_Row]:
        """Yield the objects that satisfy the filters, in the order in which they were created."""
        if not known_filters(kind, filters):
            raise _Failed(_Status.GENERIC_ERROR)
        where = ""
        values: list[object] = []
        for name, operator, value in filters:
            if operator == Operator.EQUALS and name == "Identifier" and isinstance(value, UUID):
                where, values = f"{where} AND identifier = ?", [*values, value.bytes]
            elif operator == Operator.EQUALS and stored_objects.NAMED_BY[kind] == (name,):
                where, values = (
                    f"{where} AND name = ?",
                    [*values, stored_objects.name_of(kind, {name: value})],
                )
        for row in self._rows(kind, where, *values):
            if satisfies(filters, lambda name, row=row: _value(row, name)):  # type: ignore[misc]
                yield row

    def _stored_row(self, kind: str, directory_object: DirectoryObject) -> _Row:
        """Return the row of an object: by its identifier, or by its name if it has none."""
        if directory_object.identifier != NULL_GUID:
            rows = self._rows(kind, " AND identifier = ?", directory_object.identifier.bytes)
        else:
            content = _content(directory_object, ATTRIBUTES[kind])
            rows = self._rows(kind, " AND name = ?", _require_name(kind, content))
        row = next(rows, None)
        if row is None:
            raise _Failed(_Status.OBJECT_NOT_FOUND)
        return row

    def _element(self, kind: str, row: _Row, attributes: Sequence[str] | None) -> DirectoryObject:
        """Return the element of a row, with the attributes asked for."""
        identifier, content = row
        names: Iterable[str] = content if attributes is None else attributes  # DMPR-3.1.7.1.20-03
        values = {name: _value(row, name) for name in names}
        if MISSING in values.values():  # DMPR-3.1.1.17-02
            raise _Failed(_Status.ATTRIBUTE_NOT_FOUND)  # DMPR-3.1.1.17-02
        element = stored_objects.element(kind, values | {"Identifier": identifier})
        if isinstance(element, Queue):
            element.queue_type = QueueType.PUBLIC
            element.queue_manager = self._host(parse_path_name(str(content["Pathname"])).computer)
        elif isinstance(element, Site):
            element.site_gates = list(self._site_gates(identifier))  # DMPR-3.1.1-11, DMPR-3.1.1.7-09
        elif isinstance(element, RoutingLink):
            element.site1 = self._site(element.site1_identifier)  # DMPR-3.1.1-11, DMPR-3.1.1.8-05
            element.site2 = self._site(element.site2_identifier)  # DMPR-3.1.1-11, DMPR-3.1.1.8-05
            # DMPR-3.1.1-11, DMPR-3.1.1.8-06
            element.site_gates = list(self._queue_managers(element.site_gate_identifier_list))
        return element

    def _host(self, computer: str) -> QueueManager | None:
        """Return the queue manager of a computer, by the short or the full name."""
        for name in ("ComputerName", "QualifiedComputerName"):
            for row in self._select("QueueManager", [(name, Operator.EQUALS, computer)]):
                return _queue_manager(row)
        return None

    def _site(self, identifier: UUID) -> Site | None:
        for row in self._select("Site", [("Identifier", Operator.EQUALS, identifier)]):
            site = self._element("Site", row, None)
            assert isinstance(site, Site)
            return site
        return None

    def _queue_managers(self, identifiers: Iterable[UUID]) -> Iterator[QueueManager]:
        for identifier in identifiers:
            for row in self._select("QueueManager", [("Identifier", Operator.EQUALS, identifier)]):
                yield _queue_manager(row)

    def _site_gates(self, site: UUID) -> Iterator[QueueManager]:
        """Yield the queue managers in a site that its routing links name as gates."""
        gates: dict[UUID, None] = {}
        for row in self._rows("RoutingLink"):
            link = _bare_element("RoutingLink", row)
            assert isinstance(link, RoutingLink)
            if site in (link.site1_identifier, link.site2_identifier):  # DMPR-3.1.1-11, DMPR-3.1.1.7-09
                gates |= dict.fromkeys(link.site_gate_identifier_list)
        for manager in self._queue_managers(gates):
            if site in manager.site_identifier_list:  # DMPR-3.1.1-11, DMPR-3.1.1.7-09
                yield manager


def _bare_element(kind: str, row: _Row) -> DirectoryObject:
    """Return the element of a row, with all attributes and without references."""
    identifier, content = row
    return stored_objects.element(kind, content | {"Identifier": identifier})


def _queue_manager(row: _Row) -> QueueManager:
    manager = _bare_element("QueueManager", row)
    assert isinstance(manager, QueueManager)
    return manager


def _type_of(directory_object: DirectoryObject) -> str:
    """Return the type of an object; of queues only public ones are accepted, DMPR-3.1.1.2-24."""
    kind = type(directory_object).__name__
    if kind not in TYPES or (
        isinstance(directory_object, Queue) and directory_object.queue_type is not QueueType.PUBLIC
    ):
        raise _Failed(_Status.GENERIC_ERROR)
    return kind


def _checked_attributes(kind: str, attributes: Sequence[str] | None) -> Iterable[str]:
    """Return the attributes asked for, all of the type for None; fail if one is unknown."""
    if kind not in TYPES or not ATTRIBUTES[kind].keys() >= set(attributes or ()):  # DMPR-3.1.1.17-02
        raise _Failed(_Status.GENERIC_ERROR)
    return ATTRIBUTES[kind] if attributes is None else attributes


def _content(directory_object: DirectoryObject, attributes: Iterable[str]) -> dict[str, object]:
    """Return the attributes of an object that its owner sets; fail if one is invalid."""
    match directory_object:
        case RoutingLink(actual_cost=cost) if not 1 <= cost <= COST_MAX:
            raise _Failed(_Status.GENERIC_ERROR)
        case User(certificate_digest_list=digests) if any(len(digest) != DIGEST_SIZE for digest in digests):
            raise _Failed(_Status.GENERIC_ERROR)
    fields = ATTRIBUTES[type(directory_object).__name__]
    # DMPR-3.1.1.1-13
    return {name: getattr(directory_object, fields[name]) for name in attributes if name not in _SERVER_SET}


def _require_name(kind: str, content: dict[str, object]) -> str:
    name = stored_objects.name_of(kind, content)
    if name is None:
        raise _Failed(_Status.GENERIC_ERROR)
    return name


def _value(row: _Row, name: str) -> object:
    return row[0] if name == "Identifier" else row[1].get(name, MISSING)
