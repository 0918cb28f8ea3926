"""A directory in one small file, or in memory: for computers that have no directory service to ask."""

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
"""What the directory itself sets: DMPR-3.1.1.1-13."""

_Status = DirectoryOperationResult
_SUCCESS: Final = _Status.SUCCESS
_P = ParamSpec("_P")
_R = TypeVar("_R")
_Row = tuple[UUID, dict[str, object]]


class _Failed(Exception):
    """The call ends with this result."""

    def __init__(self, status: DirectoryOperationResult) -> None:
        self.status = status


def _event(
    kind: Callable[[DirectoryOperationResult], _R],
) -> Callable[
    [Callable[Concatenate[EmbeddedDirectory, _P], _R]], Callable[Concatenate[EmbeddedDirectory, _P], _R]
]:
    """A call that tells how it ended: nothing that can go wrong with the file is raised."""

    def decorate(
        call: Callable[Concatenate[EmbeddedDirectory, _P], _R],
    ) -> Callable[Concatenate[EmbeddedDirectory, _P], _R]:
        def called(self: EmbeddedDirectory, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
            if not self.connected:
                return kind(_Status.DIRECTORY_NOT_CONNECTED)
            try:
                return call(self, *args, **kwargs)
            except _Failed as failed:
                return kind(failed.status)
            except (sqlite3.Error, ValueError, TypeError, KeyError, AttributeError):  # a row that is none
                return kind(_Status.GENERIC_ERROR)

        update_wrapper(called, call)
        return called

    return decorate


class EmbeddedDirectory:
    """A `Directory` in a SQLite file: several queue managers on one computer can share it.

    All types of objects can be created, users and the enterprise too. An object that comes with an identifier
    keeps it. FullPath, DirectoryPath, CreateTime and ModifyTime are set by the directory.

    Attributes:
        connected: False makes every call end with DirectoryNotConnected, as if the directory were away.
    """

    def __init__(
        self,
        path: str | Path = ":memory:",
        *,
        utc: Callable[[], int] = lambda: int(time.time()),
        new_guid: Callable[[], UUID] = uuid4,
    ) -> None:
        """Open a directory, or make a new one.

        Args:
            path: the file; it is made if it is not there. Without one the directory is in memory.
            utc: the time, in seconds since 1970-01-01 UTC.
            new_guid: gives the identifiers of objects that come without one.

        Raises:
            StoreError: one of its subclasses: the file is damaged, of something else, of a newer version, in
                use for long, or the system refuses it.
        """
        self.connected = True
        self._utc, self._new_guid = utc, new_guid
        self._database = open_file(str(path))
        self._queries: dict[int, tuple[Iterator[_Row], str, Sequence[str] | None]] = {}
        self._handles = 0

    def close(self) -> None:
        """Close the file; the directory can't be used any more."""
        self.connected = False
        self._database.close()

    # -- the events ---------------------------------------------------------------------------------

    @_event(CreateResult)
    def create_directory_object(
        self, directory_object: DirectoryObject, attributes: Sequence[str] | None = None
    ) -> CreateResult:
        """Create Directory Object: [MS-MQDSSM] 3.1.6.1."""
        kind = _type_of(directory_object)
        content = _content(directory_object, _known(kind, attributes))
        identifier = directory_object.identifier
        if identifier == NULL_GUID:
            identifier = self._new_guid()
        if path := stored_objects.full_path(kind, content):
            content["FullPath"] = path
        if kind == "Queue":
            content["DirectoryPath"] = f"LDAP://{path}"
        for name in ("CreateTime", "ModifyTime"):
            if name in ATTRIBUTES[kind]:
                content[name] = self._utc()
        try:
            self._database.execute(
                "INSERT INTO object (type, identifier, name, attributes) VALUES (?, ?, ?, ?)",
                (kind, identifier.bytes, _name(kind, content), stored_objects.write(content)),
            )
        except sqlite3.IntegrityError:
            return CreateResult(_Status.OBJECT_ALREADY_EXISTS)
        return CreateResult(_SUCCESS, identifier)

    @_event(DirectoryOperationResult)
    def delete_directory_object(self, directory_object: DirectoryObject) -> DirectoryOperationResult:
        """Delete Directory Object: [MS-MQDSSM] 3.1.6.2."""
        kind = _type_of(directory_object)
        identifier, _ = self._same(kind, directory_object)
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
        _known(object_type, attributes)
        row = next(self._select(object_type, filters or ()), None)
        if row is None:
            return ReadResult(_Status.OBJECT_NOT_FOUND)
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
        _known(object_type, attributes)
        found = list(self._select(object_type, filters or ()))
        orders = list(zip(attributes or (), sort_order or (), strict=bool(sort_order)))
        # Sorting is stable: the last sort rules, so that of the greatest priority comes last.
        for name, order in sorted(orders, key=lambda pair: pair[1].priority):
            if order.priority:
                found.sort(key=lambda row: sort_key(_value(row, name)), reverse=not order.ascending)
        self._handles += 1
        self._queries[self._handles] = iter(found), object_type, attributes
        return QueryResult(_SUCCESS, self._handles)

    @_event(ReadResult)
    def read_directory_next(self, handle: int) -> ReadResult:
        """Read Directory Next: [MS-MQDSSM] 3.1.6.5."""
        if handle not in self._queries:
            return ReadResult(_Status.GENERIC_ERROR)
        found, object_type, attributes = self._queries[handle]
        row = next(found, None)
        if row is None:
            return ReadResult(_Status.END_OF_DATA)
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
        written = _content(directory_object, _known(kind, attributes))
        self._database.execute("BEGIN IMMEDIATE")
        try:
            identifier, content = self._same(kind, directory_object)
            content |= written
            if "ModifyTime" in ATTRIBUTES[kind]:
                content["ModifyTime"] = self._utc()
            self._database.execute(
                "UPDATE object SET name = ?, attributes = ? WHERE type = ? AND identifier = ?",
                (_name(kind, content), stored_objects.write(content), kind, identifier.bytes),
            )
        except sqlite3.IntegrityError:
            self._database.execute("ROLLBACK")
            return _Status.OBJECT_ALREADY_EXISTS
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")
        return _SUCCESS

    @_event(ResolveResult)
    def resolve_distribution_list(self, name: DistributionListName) -> ResolveResult:
        """Resolve Distribution List: [MS-MQDSSM] 3.1.6.9. Lists in the list are resolved, each one once."""
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

    # -- what only this directory has ---------------------------------------------------------------

    @_event(DirectoryOperationResult)
    def set_distribution_list(
        self, identifier: UUID, members: Iterable[SingleName]
    ) -> DirectoryOperationResult:
        """Make a distribution list of queues and other lists, or give it other members; none: it goes."""
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
        """The objects that satisfy the filters, in the order in which they were created."""
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

    def _same(self, kind: str, directory_object: DirectoryObject) -> _Row:
        """The row of an object: by its identifier, without one by its name."""
        if directory_object.identifier != NULL_GUID:
            found = self._rows(kind, " AND identifier = ?", directory_object.identifier.bytes)
        else:
            content = _content(directory_object, ATTRIBUTES[kind])
            found = self._rows(kind, " AND name = ?", _name(kind, content))
        row = next(found, None)
        if row is None:
            raise _Failed(_Status.OBJECT_NOT_FOUND)
        return row

    def _element(self, kind: str, row: _Row, attributes: Sequence[str] | None) -> DirectoryObject:
        """The element of a row, with the attributes asked for."""
        identifier, content = row
        wanted: Iterable[str] = content if attributes is None else attributes
        if any(_value(row, name) is MISSING for name in wanted):
            raise _Failed(_Status.ATTRIBUTE_NOT_FOUND)
        asked = {name: _value(row, name) for name in wanted}
        found = stored_objects.element(kind, asked | {"Identifier": identifier})
        if isinstance(found, Queue):
            found.queue_type = QueueType.PUBLIC
            found.queue_manager = self._host(parse_path_name(str(content["Pathname"])).computer)
        elif isinstance(found, Site):
            found.site_gates = list(self._site_gates(identifier))
        elif isinstance(found, RoutingLink):
            found.site1, found.site2 = (
                self._site(end) for end in (found.site1_identifier, found.site2_identifier)
            )
            found.site_gates = list(self._queue_managers(found.site_gate_identifier_list))
        return found

    def _host(self, computer: str) -> QueueManager | None:
        """The queue manager of a computer, by the short or the full name."""
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
        """The queue managers in a site that links of it name as their gates."""
        gates: dict[UUID, None] = {}
        for row in self._rows("RoutingLink"):
            link = stored_objects.element("RoutingLink", row[1] | {"Identifier": row[0]})
            assert isinstance(link, RoutingLink)
            if site in (link.site1_identifier, link.site2_identifier):
                gates |= dict.fromkeys(link.site_gate_identifier_list)
        for manager in self._queue_managers(gates):
            if site in manager.site_identifier_list:
                yield manager


def _queue_manager(row: _Row) -> QueueManager:
    found = stored_objects.element("QueueManager", row[1] | {"Identifier": row[0]})
    assert isinstance(found, QueueManager)
    return found


def _type_of(directory_object: DirectoryObject) -> str:
    """The type of an object that the directory takes: only public queues, DMPR-3.1.1.2-24."""
    kind = type(directory_object).__name__
    if kind not in TYPES or (
        isinstance(directory_object, Queue) and directory_object.queue_type is not QueueType.PUBLIC
    ):
        raise _Failed(_Status.GENERIC_ERROR)
    return kind


def _known(kind: str, attributes: Sequence[str] | None) -> Iterable[str]:
    """The attributes that are meant, if there are such."""
    if kind not in TYPES or not ATTRIBUTES[kind].keys() >= set(attributes or ()):
        raise _Failed(_Status.GENERIC_ERROR)
    return ATTRIBUTES[kind] if attributes is None else attributes


def _content(directory_object: DirectoryObject, attributes: Iterable[str]) -> dict[str, object]:
    """The attributes of an object that its owner sets."""
    match directory_object:
        case RoutingLink(actual_cost=cost) if not 1 <= cost <= COST_MAX:
            raise _Failed(_Status.GENERIC_ERROR)
        case User(certificate_digest_list=digests) if any(len(digest) != DIGEST_SIZE for digest in digests):
            raise _Failed(_Status.GENERIC_ERROR)
    fields = ATTRIBUTES[type(directory_object).__name__]
    return {name: getattr(directory_object, fields[name]) for name in attributes if name not in _SERVER_SET}


def _name(kind: str, content: dict[str, object]) -> str:
    name = stored_objects.name_of(kind, content)
    if name is None:
        raise _Failed(_Status.GENERIC_ERROR)
    return name


def _value(row: _Row, name: str) -> object:
    return row[0] if name == "Identifier" else row[1].get(name, MISSING)
