"""Protected messages and senders without rights: [MS-MQQB] 3.1.5.8.3."""

from __future__ import annotations

import pytest

from msmqwire.constants import MQQUEUEACCESSMASK
from msmqwire.qm.directory.embedded import EmbeddedDirectory
from msmqwire.qm.model import access
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import AuthenticationLevel, ConnectionStatus, QueuePrivacy
from msmqwire.qm.model.settings import Settings
from tests.support import handmade
from tests.support.engine_harness import (
    OWN_ID,
    PEER_ADDRESS,
    PEER_ID,
    THIRD_ID,
    EngineHarness,
    harness_with_peer,
)
from tests.support.peers.handwritten_peer import JN, NA, direct
from tests.support.qm.queue_contents import bodies, message_classes

ADMIN = direct("adm")
OPEN_NACKS = Settings(send_insecure_nacks=True)
USER, OTHER = "S-1-5-21-1-2-3-1001", "S-1-5-21-1-2-3-1002"
EVERYONE, ANONYMOUS = "S-1-1-0", "S-1-5-7"
WRITE = int(MQQUEUEACCESSMASK.MQSEC_WRITE_MESSAGE)
EB = 0x20
"""SecurityHeader.Flags; ST is the low four bits."""
SEALED = handmade.security_header(flags=1 | EB, encryption_key=b"k" * 76)


def allowing(*sids: str, mask: int = WRITE) -> bytes:
    """A descriptor that allows this access and nothing else."""
    entries = b"".join(_entry(access.sid_bytes(sid), mask) for sid in sids)
    dacl = (
        bytes((2, 0)) + (8 + len(entries)).to_bytes(2, "little") + len(sids).to_bytes(4, "little") + entries
    )
    owner = access.sid_bytes("S-1-5-18")
    head = bytes((1, 0, 4, 0x80)) + b"".join(
        offset.to_bytes(4, "little") for offset in (20, 20 + len(owner), 0, 20 + 2 * len(owner))
    )
    return head + owner + owner + dacl


def _entry(sid: bytes, mask: int) -> bytes:
    return bytes((0, 0)) + (8 + len(sid)).to_bytes(2, "little") + mask.to_bytes(4, "little") + sid


WITHOUT_DACL = bytes((1, 0, 0, 0x80)) + bytes(16)
"""A descriptor that allows everybody everything."""


def from_user(sid: str = USER, kind: int = 1, **fields: bytes) -> bytes:
    return handmade.security_header(flags=kind, security_id=access.sid_bytes(sid), **fields)


def verdict(harness: EngineHarness, security: bytes, **options: object) -> str:
    """The outcome for a message: "taken", or the class of the acknowledgement."""
    queue = harness.core.queues.lookup.path("here\\private$\\orders")
    admin = harness.core.queues.lookup.path("here\\private$\\adm") or harness.queue("adm")
    before, acknowledged = len(queue.positions), len(message_classes(admin))
    harness.accept_session().send_message(security=security, acks=NA, admin=ADMIN, **options)
    if len(queue.positions) > before:
        assert len(message_classes(admin)) == acknowledged
        return "taken"
    return f"{message_classes(admin)[-1]:04x}"


@pytest.mark.requirement("MQQB-3.1.5.8.3-28", "MQQB-3.1.5.8.3-30", "MQQB-5.1-03/b", "DMPR-3.1.1.12-60")
@pytest.mark.parametrize(
    ("allowed", "security", "expected"),
    [
        ([USER], from_user(USER), "taken"),
        ([USER], from_user(OTHER), "8004"),
        ([EVERYONE], from_user(OTHER), "taken"),
        ([EVERYONE], handmade.security_header(flags=2, security_id=PEER_ID.bytes_le), "taken"),
        ([USER], handmade.security_header(flags=2, security_id=PEER_ID.bytes_le), "8004"),
        ([ANONYMOUS], handmade.security_header(flags=2, security_id=PEER_ID.bytes_le), "8004"),
        ([ANONYMOUS], handmade.security_header(flags=0), "taken"),
        ([USER], handmade.security_header(flags=0), "8004"),
        ([], from_user(USER), "8004"),
    ],
)
def test_a_sender_needs_the_right_to_write(allowed, security, expected):
    harness = harness_with_peer(settings=OPEN_NACKS)
    harness.queue(security=allowing(*allowed))
    assert verdict(harness, security) == expected


@pytest.mark.requirement("MQQB-3.1.5.8.3-28")
def test_another_right_is_not_enough():
    harness = harness_with_peer(settings=OPEN_NACKS)
    harness.queue(security=allowing(USER, mask=0x1F & ~WRITE))
    assert verdict(harness, from_user()) == "8004"


@pytest.mark.requirement("MQQB-3.1.5.8.3-29")
@pytest.mark.parametrize("published", [False, True])
def test_the_directory_gives_a_public_queue_its_descriptor(published):
    directory = EmbeddedDirectory()
    harness = harness_with_peer(settings=OPEN_NACKS, directory=directory)
    harness.core.queue_manager.directory_integrated = True
    queue = harness.queue()
    queue.queue_type = queue.queue_type.PUBLIC
    queue.security = allowing(USER)
    if published:
        published_queue = Queue(queue.identifier, pathname="here\\orders", security=allowing(OTHER))
        published_queue.queue_type = queue.queue_type
        directory.create_directory_object(published_queue)
    assert verdict(harness, from_user(USER)) == ("8004" if published else "taken")
    assert verdict(harness, from_user(OTHER)) == ("taken" if published else "8004")


@pytest.mark.requirement("MQQB-3.1.5.8.3-32")
@pytest.mark.parametrize("sid", [b"\x01", b"\x02\x01" + bytes(10), bytes(60)])
@pytest.mark.parametrize("everybody", [True, False], ids=["no DACL", "entries"])
def test_a_sender_that_cannot_be_read_has_no_right(sid, everybody):
    """Not even where the descriptor has no DACL, so that everybody may write."""
    harness = harness_with_peer(settings=OPEN_NACKS)
    entries = allowing(EVERYONE, ANONYMOUS, "S-1-0-0")
    harness.queue(security=WITHOUT_DACL if everybody else entries)
    assert verdict(harness, handmade.security_header(flags=1, security_id=sid)) == "8004"
    assert verdict(harness, from_user()) == "taken"


@pytest.mark.requirement("MQMQ-2.2.18.1.6-10", "MQMQ-2.2.24-03")
@pytest.mark.requirement("DMPR-3.1.1.12-09/d", "MQQB-3.1.5.8.3-33", "MQQB-3.1.5.8.3-34", "MQQB-3.1.7.15-03")
@pytest.mark.parametrize("asked", [NA, 0])
@pytest.mark.parametrize("tx", [None, (1, 0)])
@pytest.mark.parametrize("insecure", [False, True])
def test_a_message_that_is_refused(asked, tx, insecure):
    harness = harness_with_peer(settings=Settings(send_insecure_nacks=insecure))
    queue = harness.queue(security=allowing(OTHER), transactional=tx is not None)
    admin, peer = harness.queue("adm"), harness.accept_session()
    peer.send_message(tx=tx, security=from_user(), acks=asked, admin=ADMIN)
    assert bodies(queue) == []
    assert message_classes(admin) == ([0x8004] if asked and insecure else [])
    finals = [packet.MessageClass for packet in peer.take("FinalAck")]
    assert finals == ([0x8004] if tx else [])


@pytest.mark.requirement("MQQB-3.1.5.8.3-35")
@pytest.mark.parametrize(
    "address_fields",
    [
        {"destination": direct()},
        {"destination": (3, handmade.private_id(5)), "address": OWN_ID.bytes_le},
    ],
    ids=["zero", "own"],
)
def test_access_is_checked_for_every_name(address_fields):
    harness = harness_with_peer(settings=OPEN_NACKS)
    harness.queue(security=allowing(OTHER))
    assert verdict(harness, from_user(), **address_fields) == "8004"


@pytest.mark.requirement("MQQB-3.1.5.8.3-36")
@pytest.mark.parametrize(
    ("allowed", "expected"), [([ANONYMOUS], "taken"), ([EVERYONE], "taken"), ([USER], "8004")]
)
def test_a_message_without_a_security_header_comes_from_anybody(allowed, expected):
    harness = harness_with_peer(settings=OPEN_NACKS)
    harness.queue(security=allowing(*allowed))
    assert verdict(harness, b"") == expected


@pytest.mark.requirement("MQQB-3.1.5.8.3-01")
def test_a_message_that_is_passed_on_is_not_judged():
    harness = harness_with_peer(routes={THIRD_ID: ["far"]}, settings=OPEN_NACKS)
    harness.names["far"], harness.hosts[PEER_ADDRESS] = PEER_ADDRESS, THIRD_ID
    admin, peer = harness.queue("adm"), harness.accept_session()
    security = from_user(signature=b"s" * 64, certificate=b"c" * 9, encryption_key=b"k" * 76)
    header = {"address": THIRD_ID.bytes_le, "destination": (3, handmade.private_id(9))}
    peer.send_message(b"sealed", security=security, privacy=3, acks=NA, admin=ADMIN, **header)
    (sent,) = harness.called[0].take("UserMessage")
    assert sent.body == b"sealed"
    assert message_classes(admin) == []
    assert sent.SecurityHeader == security


# --- what can't be verified or decrypted: others are in test_security_*.py ---


@pytest.mark.parametrize("tx", [None, (1, 0)])
@pytest.mark.parametrize(
    ("security", "privacy", "expected"),
    [
        (from_user(signature=b"s" * 64, certificate=b"c" * 9), 0, 0x8006),
        (handmade.security_header(flags=1 | EB, encryption_key=b"k" * 76), 3, 0x8007),
        (from_user(), 1, 0x8007),
    ],
)
def test_a_protected_message_is_refused(security, privacy, expected, tx):
    harness = harness_with_peer(settings=OPEN_NACKS)
    queue, admin, peer = (
        harness.queue(transactional=tx is not None),
        harness.queue("adm"),
        harness.accept_session(),
    )
    peer.send_message(b"m", security=security, privacy=privacy, tx=tx, acks=NA, admin=ADMIN)
    assert bodies(queue) == []
    assert message_classes(admin) == [expected]
    assert bodies(admin) == [b"" if privacy else b"m"]  # an encrypted body is not sent back
    finals = [packet.MessageClass for packet in peer.take("FinalAck")]
    assert finals == ([expected] if tx else [])


@pytest.mark.requirement("MQQB-3.1.5.8.3-16", "MQQB-3.1.5.8.3-17")
@pytest.mark.parametrize("insecure", [False, True])
@pytest.mark.parametrize("asked", [NA, 0])
@pytest.mark.parametrize("tx", [None, (1, 0)])
@pytest.mark.parametrize("level", [0, 2, 4, 6, 0xFFFFFFFF])
def test_an_encrypted_body_of_no_known_level_is_refused(level, tx, asked, insecure):
    harness = harness_with_peer(settings=Settings(send_insecure_nacks=insecure))
    queue, admin = harness.queue(transactional=tx is not None), harness.queue("adm")
    peer = harness.accept_session()
    peer.send_message(b"sealed", security=SEALED, privacy=level, tx=tx, acks=asked, admin=ADMIN)
    assert bodies(queue) == []
    assert message_classes(admin) == ([0x8007] if asked and insecure else [])
    assert b"sealed" not in bodies(admin)
    assert [packet.MessageClass for packet in peer.take("FinalAck")] == ([0x8007] if tx else [])
    assert peer.state is peer.state.OPEN


@pytest.mark.requirement("MQMQ-2.2.19.3-38")
@pytest.mark.parametrize("tx", [None, (1, 0)])
@pytest.mark.parametrize("algorithm", [0, 0x6601, 0x660D, 0x6611, 0xFFFFFFFF])
@pytest.mark.parametrize("level", [1, 3, 5])
def test_an_encrypted_body_under_an_unknown_cipher_is_refused(level, algorithm, tx):
    harness = harness_with_peer(settings=OPEN_NACKS)
    queue, admin = harness.queue(transactional=tx is not None), harness.queue("adm")
    peer = harness.accept_session()
    peer.send_message(
        b"sealed", security=SEALED, privacy=level, algorithm=algorithm, tx=tx, acks=NA, admin=ADMIN
    )
    assert bodies(queue) == []
    assert (message_classes(admin), bodies(admin)) == ([0x8007], [b""])
    assert [packet.MessageClass for packet in peer.take("FinalAck")] == ([0x8007] if tx else [])


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        pytest.param(
            {"authentication": True},
            "8006",
            marks=pytest.mark.requirement("DMPR-3.1.1.2-12"),
        ),
        ({"privacy_level": QueuePrivacy.BODY}, "8007"),
    ],
)
def test_a_queue_that_wants_protection_refuses_what_has_none(attributes, expected):
    harness = harness_with_peer(settings=OPEN_NACKS)
    harness.queue(**attributes)
    assert verdict(harness, from_user()) == expected


@pytest.mark.requirement("DMPR-3.1.1.3-15")
@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("flags", [JN, 0])
@pytest.mark.parametrize(
    "wish",
    [{"privacy_level": 3}, {"authentication_level": AuthenticationLevel.SIG20}],
    ids=["sealed", "signed"],
)
def test_a_message_that_cannot_be_protected_is_not_sent(wish, flags, transactional):
    harness = harness_with_peer()
    harness.send(b"secret", transactional=transactional, negative_journaling_requested=bool(flags), **wish)
    assert harness.called[0].take("UserMessage") == []
    assert bodies(harness.outgoing()) == []
    manager = harness.core.queue_manager
    dead = manager.system_transactional_deadletter_queue if transactional else manager.system_deadletter_queue
    assert bodies(dead) == ([b"secret"] if flags else [])
    last = harness.outgoing().connection_history[-1]
    assert last.status is ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE
    assert (last.time, last.addresses) == (harness.utc, (PEER_ADDRESS,))
    assert last.error & 0x80000000
