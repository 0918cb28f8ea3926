"""The objects of the directory: [MS-MQDMPR] 3.1.1.6 to 3.1.1.9 and 3.1.1.15."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from msmqwire.qm.model.message import NULL_GUID

if TYPE_CHECKING:
    from msmqwire.qm.model.elements import QueueManager


@dataclass(slots=True, eq=False, repr=False)
class DirectoryObject:
    """The base of all directory objects: [MS-MQDMPR] 3.1.1. The identifier never changes."""

    identifier: UUID

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.identifier}>"


@dataclass(slots=True, eq=False, repr=False)
class Enterprise(DirectoryObject):
    """All sites together: [MS-MQDMPR] 3.1.1.6. `default_time_to_live` is seconds."""

    name: str = ""  # DMPR-3.1.1.6-01
    weakened_security: bool = False
    non_ldap_capable_queue_manager_notification: bool = False
    default_time_to_live: int = 0  # DMPR-3.1.1.6-04
    old_directory: bool = False  # DMPR-3.1.1.6-05
    security: bytes = b""


@dataclass(slots=True, eq=False, repr=False)
class Site(DirectoryObject):
    """A site: [MS-MQDMPR] 3.1.1.7. Intervals are seconds."""

    name: str = ""
    primary_site_controller: str = ""  # DMPR-3.1.1.7-02
    intra_site_replication_interval: int = 0  # DMPR-3.1.1.7-03
    inter_site_replication_interval: int = 0  # DMPR-3.1.1.7-03
    full_path: str = ""
    foreign_site: bool = False  # DMPR-3.1.1.7-05
    public_signing_key_list: bytes = b""  # DMPR-3.1.1.7-06
    migrated_from_msmq10: bool = False  # DMPR-3.1.1.7-07
    security: bytes = b""
    site_gates: list[QueueManager] = field(default_factory=list)  # DMPR-3.1.1.7-09


@dataclass(slots=True, eq=False, repr=False)
class RoutingLink(DirectoryObject):
    """A link between two sites: [MS-MQDMPR] 3.1.1.8.

    Attributes:
        actual_cost: 1 to 999,999.
        site1, site2: the sites of the two identifiers.
    """

    description: str = ""  # DMPR-3.1.1.8-01
    full_path: str = ""
    actual_cost: int = 1
    site1_identifier: UUID = NULL_GUID  # DMPR-3.1.1.8-03
    site2_identifier: UUID = NULL_GUID  # DMPR-3.1.1.8-03
    site_gate_identifier_list: list[UUID] = field(default_factory=list)  # DMPR-3.1.1.8-04
    site1: Site | None = None  # DMPR-3.1.1.8-05
    site2: Site | None = None  # DMPR-3.1.1.8-05
    site_gates: list[QueueManager] = field(default_factory=list)  # DMPR-3.1.1.8-06


@dataclass(slots=True, eq=False, repr=False)
class ConnectedNetwork(DirectoryObject):
    """A network whose computers reach each other: [MS-MQDMPR] 3.1.1.9."""

    name: str = ""  # DMPR-3.1.1.9-01
    security: bytes = b""


@dataclass(slots=True, eq=False, repr=False)
class User(DirectoryObject):
    """A user: [MS-MQDMPR] 3.1.1.15.

    Attributes:
        security_identifier: a SID.
        certificate_digest_list: MD5 digests of the certificates, 16 bytes each.
        certificates: an MQUSERSIGNCERTS structure.
        groups: the SIDs of all groups that the user is in. [MS-MQDMPR] takes them from the account of the
            user (MQQB-3.1.5.8.3-31); a directory without accounts keeps them here.
    """

    security_identifier: bytes = b""  # DMPR-3.1.1.15-01
    certificate_digest_list: list[bytes] = field(default_factory=list)
    certificates: bytes = b""  # DMPR-3.1.1.15-03
    groups: list[bytes] = field(default_factory=list)
