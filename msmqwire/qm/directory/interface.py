"""The interface of directories for the rules of a queue manager: [MS-MQDSSM] 3.1.6."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from msmqwire.names import DistributionListName, SingleName
from msmqwire.qm.directory.attributes import Filter
from msmqwire.qm.model.directory_objects import DirectoryObject
from msmqwire.qm.model.enumerations import DirectoryOperationResult


class CreateResult(NamedTuple):
    """The result of Create Directory Object.

    Attributes:
        status: rStatus.
        identifier: rObjectGUID; None unless `status` is Success.
    """

    status: DirectoryOperationResult
    identifier: UUID | None = None


class ReadResult(NamedTuple):
    """The result of a read.

    Attributes:
        status: rStatus.
        object: rDirectoryObject; None unless `status` is Success. Attributes that were not asked for have the
            default of a new element.
    """

    status: DirectoryOperationResult
    object: DirectoryObject | None = None


class QueryResult(NamedTuple):
    """The result of beginning a read of several objects.

    Attributes:
        status: rStatus.
        handle: rQueryHandle; 0 unless `status` is Success.
    """

    status: DirectoryOperationResult
    handle: int = 0


class ResolveResult(NamedTuple):
    """The members of a distribution list.

    Attributes:
        status: rStatus.
        names: rFormatNameCollection; empty unless `status` is Success.
    """

    status: DirectoryOperationResult
    names: tuple[SingleName, ...] = ()


class SortOrder(NamedTuple):
    """An attribute-sort-order value: DMPR-3.1.7.1.21-02.

    Attributes:
        priority: SortPriority: the greatest sorts first, 0 does not sort.
        ascending: SortAscending.
    """

    priority: int = 0
    ascending: bool = True


class Directory(Protocol):
    """A directory. No method raises: failures are reported by a DirectoryOperationResult.

    Types and attributes have the names of the specification ("QueueManager", "SiteIdentifierList"), which
    `msmqwire.qm.directory.attributes` lists. An attribute list of None stands for all attributes, a filter of
    None for all objects. The caller owns the objects that it reads.

    References between objects are not published, but set in the objects that are read, because the rules
    need them: a Queue has the QueueManager of its computer, a Site its site gates, a RoutingLink its sites
    and site gates.
    """

    def create_directory_object(
        self, directory_object: DirectoryObject, attributes: Sequence[str] | None = None
    ) -> CreateResult:
        """Create Directory Object, [MS-MQDSSM] 3.1.6.1: with only these attributes if a list is given."""

    def delete_directory_object(self, directory_object: DirectoryObject) -> DirectoryOperationResult:
        """Delete Directory Object, [MS-MQDSSM] 3.1.6.2."""

    def read_directory(
        self,
        object_type: str,
        filters: Sequence[Filter] | None = None,
        attributes: Sequence[str] | None = None,
    ) -> ReadResult:
        """Read Directory, [MS-MQDSSM] 3.1.6.3: the first object of a type that satisfies all filters."""

    def read_directory_begin(
        self,
        object_type: str,
        filters: Sequence[Filter] | None = None,
        attributes: Sequence[str] | None = None,
        sort_order: Sequence[SortOrder] | None = None,
    ) -> QueryResult:
        """Read Directory Begin, [MS-MQDSSM] 3.1.6.4. `sort_order` has an element for each of `attributes`."""

    def read_directory_next(self, handle: int) -> ReadResult:
        """Read Directory Next, [MS-MQDSSM] 3.1.6.5: the next object, EndOfData after the last."""

    def read_directory_end(self, handle: int) -> DirectoryOperationResult:
        """Read Directory End, [MS-MQDSSM] 3.1.6.6."""

    def write_directory(
        self, directory_object: DirectoryObject, attributes: Sequence[str] | None = None
    ) -> DirectoryOperationResult:
        """Write Directory, [MS-MQDSSM] 3.1.6.7: only these attributes if a list is given."""

    def resolve_distribution_list(self, name: DistributionListName) -> ResolveResult:
        """Resolve Distribution List, [MS-MQDSSM] 3.1.6.9."""
