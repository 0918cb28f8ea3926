"""Directory objects and their attributes: [MS-MQDMPR] 2.3, 3.1.1.5 to 3.1.1.9 and 3.1.1.15."""

from __future__ import annotations

import ast
from hashlib import md5
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from msmqwire.headers import MQDSPUBLICKEYS, MQUSERSIGNCERTS
from msmqwire.names import DirectName
from msmqwire.qm.directory.attributes import ATTRIBUTES, TYPES
from msmqwire.qm.directory.embedded import EmbeddedDirectory
from msmqwire.qm.model.directory_objects import (
    ConnectedNetwork,
    DirectoryObject,
    Enterprise,
    RoutingLink,
    Site,
    User,
)
from msmqwire.qm.model.elements import (
    IncomingTransactionalTransferInfo,
    OutgoingTransferInfo,
    Queue,
    QueueManager,
)
from msmqwire.qm.model.enumerations import DirectoryOperationResult as Result
from msmqwire.qm.model.enumerations import DirectoryServerType, OperatingSystemType, QueuePrivacy, QueueType
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.security.user_certificates import register
from tests.support.paths import ROOT

# The tables of [MS-MQDSSM] 3.1.6.20, and ConnectedNetwork of [MS-MQDMPR] 3.1.1.9.
PUBLISHED = {
    "QueueManager": "Identifier ComputerName QueueManagerVersion OperatingSystemType QualifiedComputerName "
    "CreateTime ModifyTime DirectoryServerType RemoteAccessServer QueueManagerQuota JournalQuota "
    "ForeignSystem FullPath SiteIdentifierList ConnectedNetworkIdentifierList "
    "OutRoutingServerIdentifierList InRoutingServerIdentifierList RoutingServer DirectoryServer "
    "SupportingServer PublicEncryptionKeyList PublicSigningKeyList Security Clustered "
    "OperatingSystemVersion",
    "Queue": "Identifier Label CreateTime ModifyTime Type Pathname QualifiedPathname Journaling Quota "
    "JournalQuota Authentication PrivacyLevel Transactional MulticastAddress Security BasePriority "
    "FullPath DirectoryPath",
    "Enterprise": "Identifier Name WeakenedSecurity NonLDAPCapableQueueManagerNotification "
    "DefaultTimeToLive OldDirectory Security",
    "Site": "Identifier Name PrimarySiteController IntraSiteReplicationInterval "
    "InterSiteReplicationInterval FullPath ForeignSite PublicSigningKeyList MigratedFromMsmq10 Security",
    "RoutingLink": "Identifier Description FullPath ActualCost Site1Identifier Site2Identifier "
    "SiteGateIdentifierList",
    "ConnectedNetwork": "Identifier Name Security",
    "User": "Identifier SecurityIdentifier CertificateDigestList Certificates",
}
OWN = {"User": {"Groups"}}
"""What the schema does not have."""


def guid(number: int) -> UUID:
    return UUID(int=number)


@pytest.fixture
def directory(tmp_path: Path) -> EmbeddedDirectory:
    return EmbeddedDirectory(tmp_path / "directory", utc=lambda: 1_700_000_000)


def create_and_read(directory: EmbeddedDirectory, obj: DirectoryObject) -> Any:
    """Create the object and return it as the directory stores it."""
    status, identifier = directory.create_directory_object(obj)
    assert status is Result.SUCCESS
    result = directory.read_directory(type(obj).__name__, [("Identifier", "EQUALS", identifier)])
    assert result.status is Result.SUCCESS
    return result.object


@pytest.mark.requirement("DMPR-2.3-01")
@pytest.mark.parametrize("kind", PUBLISHED)
def test_the_attributes_of_the_schema(kind: str) -> None:
    assert set(ATTRIBUTES[kind]) == set(PUBLISHED[kind].split()) | OWN.get(kind, set())
    assert TYPES.keys() == PUBLISHED.keys()


@pytest.mark.requirement("DMPR-2.3-01")
def test_protocols_reach_the_directory_by_its_events() -> None:
    """The other two are for the users of a queue manager that is in no directory."""
    engine, holding = ROOT / "msmqwire/qm", set()
    for path in engine.rglob("*.py"):
        name = path.relative_to(engine).as_posix()
        if not name.startswith(("protocols/", "rules/", "security/")):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            of_directory = isinstance(node, ast.ImportFrom) and "qm.directory" in (node.module or "")
            if of_directory and any(taken.name.endswith("Directory") for taken in node.names):
                holding.add(name)
    assert holding == {"rules/directory_events.py", "rules/identities.py", "security/configuration.py"}


ATTRIBUTE_CASES = [
    ("DMPR-3.1.1.6-01", Enterprise, "name", "Company"),
    ("DMPR-3.1.1.6-04", Enterprise, "default_time_to_live", 345_600),
    ("DMPR-3.1.1.6-05", Enterprise, "old_directory", True),
    ("DMPR-3.1.1.7-02", Site, "primary_site_controller", "PSC1"),
    ("DMPR-3.1.1.7-03", Site, "intra_site_replication_interval", 20),
    ("DMPR-3.1.1.7-03", Site, "inter_site_replication_interval", 60),
    ("DMPR-3.1.1.7-05", Site, "foreign_site", True),
    ("DMPR-3.1.1.7-07", Site, "migrated_from_msmq10", True),
    ("DMPR-3.1.1.8-01", RoutingLink, "description", "over the sea"),
    ("DMPR-3.1.1.8-03", RoutingLink, "site1_identifier", guid(11)),
    ("DMPR-3.1.1.8-03", RoutingLink, "site2_identifier", guid(12)),
    ("DMPR-3.1.1.8-04", RoutingLink, "site_gate_identifier_list", [guid(5), guid(4)]),
    ("DMPR-3.1.1.9-01", ConnectedNetwork, "name", "cable"),
    ("DMPR-3.1.1.15-01", User, "security_identifier", bytes.fromhex("010100000000000512000000")),
]
NEEDED: dict[type[DirectoryObject], dict[str, Any]] = {
    Enterprise: {},
    Site: {"name": "north"},
    RoutingLink: {"site1_identifier": guid(1), "site2_identifier": guid(2)},
    ConnectedNetwork: {"name": "wire"},
    User: {"security_identifier": b"\1\1"},
}


@pytest.mark.parametrize(
    "kind, field, value",
    [
        pytest.param(*case, id=f"{case[0].__name__}.{case[1]}", marks=pytest.mark.requirement(id_))
        for id_, *case in ATTRIBUTE_CASES
    ],
)
def test_an_attribute_is_stored_and_searchable(
    directory: EmbeddedDirectory, kind: type[DirectoryObject], field: str, value: Any
) -> None:
    obj = kind(guid(1000), **NEEDED[kind] | {field: value})  # type: ignore[arg-type]
    stored = getattr(create_and_read(directory, obj), field)
    assert stored == value
    assert type(stored) is type(value)
    name = next(name for name, attribute in ATTRIBUTES[kind.__name__].items() if attribute == field)
    search_value = value[0] if isinstance(value, list) else value
    assert directory.read_directory(kind.__name__, [(name, "EQUALS", search_value)]).object is not None
    assert getattr(kind(guid(1001)), field) in ("", 0, False, b"", [], NULL_GUID)
    assert directory.read_directory(kind.__name__, [(name, "NOT-EQUALS", search_value)]).object is None


@pytest.mark.requirement("DMPR-3.1.1.7-01")
def test_no_two_sites_have_one_name(directory: EmbeddedDirectory) -> None:
    create = directory.create_directory_object
    assert create(Site(guid(1), name="North")).status is Result.SUCCESS
    assert create(Site(guid(2), name="north")).status is Result.OBJECT_ALREADY_EXISTS
    assert create(Site(guid(2), name="")).status is Result.GENERIC_ERROR
    assert create(Site(guid(2), name="south")).status is Result.SUCCESS
    assert directory.write_directory(Site(guid(2), name="NORTH")) is Result.OBJECT_ALREADY_EXISTS
    assert directory.write_directory(Site(guid(2), name="SOUTH")) is Result.SUCCESS


@pytest.mark.parametrize(
    "obj, path",
    [
        pytest.param(
            Site(guid(1), name="a, b"),
            "CN=a\\, b,CN=Sites,CN=Configuration",
            marks=pytest.mark.requirement("DMPR-3.1.1.7-04"),
        ),
        pytest.param(
            RoutingLink(guid(1), site1_identifier=guid(0xA), site2_identifier=guid(0xB)),
            f"CN={0xA:032x}{0xB:032x},CN=MsmqServices,CN=Services,CN=Configuration",
            marks=pytest.mark.requirement("DMPR-3.1.1.8-01"),
        ),
    ],
)
def test_objects_are_found_by_their_distinguished_names(
    directory: EmbeddedDirectory, obj: DirectoryObject, path: str
) -> None:
    kind = type(obj).__name__
    assert create_and_read(directory, obj).full_path == path
    stored = directory.read_directory(kind, [("FullPath", "EQUALS", path)]).object
    assert stored is not None
    assert stored.identifier == obj.identifier
    assert directory.read_directory(kind, [("FullPath", "EQUALS", "CN=x")]).object is None


@pytest.mark.requirement("DMPR-3.1.1.7-06")
def test_the_keys_of_a_site_controller(directory: EmbeddedDirectory) -> None:
    keys = MQDSPUBLICKEYS.build({"aPublicKeys": [{"sProviderName": "p", "aBuf": b"key"}]})
    stored_keys = create_and_read(
        directory, Site(guid(1), name="north", public_signing_key_list=keys)
    ).public_signing_key_list
    assert MQDSPUBLICKEYS.parse(stored_keys).aPublicKeys[0].aBuf == b"key"
    assert create_and_read(directory, Site(guid(2), name="south")).public_signing_key_list == b""


@pytest.mark.requirement("DMPR-3.1.1.7-09")
def test_the_gates_of_a_site(directory: EmbeddedDirectory) -> None:
    north, south = guid(1), guid(2)
    for number, sites in ((10, [north]), (11, [south]), (12, [north, south]), (13, [north])):
        manager = QueueManager(guid(number), computer_name=f"m{number}", site_identifier_list=sites)
        create_and_read(directory, manager)
    link = RoutingLink(guid(20), site1_identifier=north, site2_identifier=south)
    link.site_gate_identifier_list = [guid(12), guid(11), guid(10), guid(99)]
    create_and_read(directory, link)
    other = RoutingLink(guid(21), site1_identifier=south, site2_identifier=guid(3))
    other.site_gate_identifier_list = [guid(13)]
    create_and_read(directory, other)
    gates = create_and_read(directory, Site(north, name="north")).site_gates
    assert [gate.identifier for gate in gates] == [guid(12), guid(10)]
    assert all(isinstance(gate, QueueManager) for gate in gates)
    assert create_and_read(directory, Site(guid(3), name="east")).site_gates == []
    assert "SiteGateCollection" not in ATTRIBUTES["Site"]


@pytest.mark.requirement("MQMQ-2.3.7.12-01")
@pytest.mark.requirement("DMPR-3.1.1.8-02", "MQBR-1.3.3-02", "MQBR-3.1.3.1-06")
@pytest.mark.parametrize(
    "cost, valid", [(-1, False), (0, False), (1, True), (999_999, True), (1_000_000, False)]
)
def test_the_cost_of_a_link(directory: EmbeddedDirectory, cost: int, valid: bool) -> None:
    link = RoutingLink(guid(1), site1_identifier=guid(2), site2_identifier=guid(3), actual_cost=cost)
    assert directory.create_directory_object(link).status is (
        Result.SUCCESS if valid else Result.GENERIC_ERROR
    )
    link.actual_cost = 5
    directory.create_directory_object(link)
    link.actual_cost = cost
    assert directory.write_directory(link) is (Result.SUCCESS if valid else Result.GENERIC_ERROR)


@pytest.mark.requirement("DMPR-3.1.1.8-05", "DMPR-3.1.1.8-06")
def test_what_a_link_refers_to(directory: EmbeddedDirectory) -> None:
    for number in (1, 2, 3):
        create_and_read(directory, Site(guid(number), name=f"s{number}"))
        create_and_read(directory, QueueManager(guid(10 + number), computer_name=f"m{number}"))
    link = RoutingLink(guid(20), site1_identifier=guid(3), site2_identifier=guid(1))
    link.site_gate_identifier_list = [guid(12), guid(99), guid(11)]
    stored = create_and_read(directory, link)
    assert isinstance(stored.site1, Site)
    assert isinstance(stored.site2, Site)
    assert (stored.site1.identifier, stored.site2.identifier) == (guid(3), guid(1))
    assert [gate.identifier for gate in stored.site_gates] == [guid(12), guid(11)]
    assert not {"Site1Reference", "Site2Reference", "SiteGateCollection"} & set(ATTRIBUTES["RoutingLink"])


@pytest.mark.requirement("DMPR-3.1.1.15-02", "MQMQ-2.3.6.5-01/b")
@pytest.mark.parametrize("size, valid", [(15, False), (16, True), (17, False)])
def test_digests_of_certificates(directory: EmbeddedDirectory, size: int, valid: bool) -> None:
    digests = [md5(b"one").digest(), bytes(size)]
    user = User(guid(1), security_identifier=b"s", certificate_digest_list=digests)
    status = directory.create_directory_object(user).status
    assert status is (Result.SUCCESS if valid else Result.GENERIC_ERROR)
    if valid:
        stored = directory.read_directory("User", [("CertificateDigestList", "EQUALS", digests[0])]).object
        assert isinstance(stored, User)
        assert stored.certificate_digest_list == digests


@pytest.mark.requirement("DMPR-3.1.1.15-02")
def test_a_registered_certificate_is_listed_by_its_digest() -> None:
    user = User(guid(1), security_identifier=b"s")
    for certificate in (b"one", b"two", b"one"):
        register(user, certificate, guid(9))
    digests = [md5(certificate).digest() for certificate in (b"one", b"two")]
    assert user.certificate_digest_list == digests
    assert [entry.Digest for entry in MQUSERSIGNCERTS.parse(user.certificates).Certificates] == digests


@pytest.mark.requirement("DMPR-3.1.1.15-03")
def test_certificates_of_a_user(directory: EmbeddedDirectory) -> None:
    packed = MQUSERSIGNCERTS.build({"Certificates": [{"Certificate": b"one"}, {"Certificate": b"two"}]})
    user = User(guid(1), security_identifier=b"s", certificates=packed)
    certificates = MQUSERSIGNCERTS.parse(create_and_read(directory, user).certificates)
    assert [entry.Certificate for entry in certificates.Certificates] == [b"one", b"two"]
    assert create_and_read(directory, User(guid(2), security_identifier=b"t")).certificates == b""


@pytest.mark.requirement("DMPR-3.1.1.4-01/c")
@pytest.mark.requirement("DMPR-3.1.1.5-01/b")
def test_a_transfer_is_not_published() -> None:
    info = IncomingTransactionalTransferInfo(Queue(guid(1)), DirectName("OS", "here", "q"), guid(2))
    assert not isinstance(info, DirectoryObject)
    assert "IncomingTransactionalTransferInfo" not in TYPES
    assert not isinstance(OutgoingTransferInfo(), DirectoryObject)
    assert {"OutgoingTransferInfo", "OutgoingQueue"}.isdisjoint(TYPES)


def test_every_attribute_of_a_queue_manager_and_a_queue(directory: EmbeddedDirectory) -> None:
    """Every attribute has a distinct value, so that none can be lost or mixed up with another."""
    manager = QueueManager(
        guid(1), "m", "v", "5.0", OperatingSystemType.WIN_ENT, "m.example", 1, 2, 3, 4, True, "", [guid(5)],
        [guid(6)], [guid(7)], [guid(8)], True, True, True, True, DirectoryServerType.PRIMARY_SITE_CONTROLLER,
        b"e", b"s", b"d", True,
    )  # fmt: skip
    queue = Queue(
        guid(2), "l", 1, 2, guid(9), "m\\q", "m.example\\q", 0, True, 5, 6, True, QueuePrivacy.BODY, True,
        "234.1.1.1:8001", b"d", 7,
    )  # fmt: skip
    queue.queue_type = QueueType.PUBLIC
    set_by_directory: dict[str, Any] = {"create_time": 1_700_000_000, "modify_time": 1_700_000_000}
    for obj, paths in (
        (manager, {"full_path": "CN=msmq,CN=m,CN=Computers"}),
        (
            queue,
            {
                "full_path": "CN=q,CN=msmq,CN=m,CN=Computers",
                "directory_path": "LDAP://CN=q,CN=msmq,CN=m,CN=Computers",
            },
        ),
    ):
        stored = create_and_read(directory, obj)
        for field in ATTRIBUTES[type(obj).__name__].values():
            assert getattr(stored, field) == (set_by_directory | paths).get(field, getattr(obj, field)), field
    assert NULL_GUID not in (manager.identifier, queue.identifier)
