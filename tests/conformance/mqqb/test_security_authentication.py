"""Signatures of received messages: [MS-MQQB] 3.1.5.8.3."""

from __future__ import annotations

import hashlib

import pytest
from Cryptodome.Hash import MD2
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.utils import NoDigestInfo

from msmqwire import parse
from msmqwire.qm.model.directory_objects import User
from msmqwire.qm.model.enumerations import AuthenticationLevel
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.rules.serialization import to_stored
from msmqwire.qm.security.configuration import SecurityConfiguration
from tests.support import handmade as h
from tests.support.codec_checks import proving
from tests.support.engine_harness import START_UTC, THIRD_ID, harness_with_peer
from tests.support.peers.handwritten_peer import JN, JP, NA, direct
from tests.support.qm.message_security import (
    DAY,
    MD5,
    SHA1,
    SHA256,
    SHA512,
    Sealed,
    certificate,
    rsa_key,
    user_certificates,
)
from tests.support.qm.queue_contents import bodies, message_classes
from tests.support.qm.secured_harness import (
    ALICE,
    OTHER_SID,
    TAKEN,
    configuration,
    last,
    recorder,
    secured,
    verdict,
)

BAD_SIGNATURE = "8006"
AUTHENTICATED = {"authentication": True}


def by_alice(**fields: object) -> Sealed:
    return Sealed(**{"signer": "alice", "sid": ALICE} | fields)  # type: ignore[arg-type]


@pytest.mark.requirement("DMPR-3.1.1.12-58")
@pytest.mark.requirement("DMPR-3.1.1.2-12")
@pytest.mark.parametrize(
    ("version", "level", "number"),
    [
        proving(2, AuthenticationLevel.SIG20, 3, ids="MQQB-3.1.5.8.3-03"),
        proving(1, AuthenticationLevel.SIG10, 1, ids="MQQB-3.1.5.8.3-04"),
        proving(3, AuthenticationLevel.SIG30, 5, ids="MQQB-3.1.5.8.3-05"),
    ],
)
@pytest.mark.parametrize("hash_algorithm", [MD5, SHA1, SHA256, SHA512])
def test_a_signature_says_who_sent_a_message(version, level, number, hash_algorithm):
    harness = secured(queue=AUTHENTICATED)
    sealed = by_alice(
        version=version, hash_algorithm=hash_algorithm, label="label", extension=b"extension",
        user_flags=JN | JP, priority=5, response=direct("answers"),
    )  # fmt: skip
    assert verdict(harness, sealed) == TAKEN
    message = last(harness)
    assert (message.body, message.authentication_level, message.signature_type) == (
        b"secret body", level, level,
    )  # fmt: skip
    assert (message.sender_identifier, message.sender_certificate) == (ALICE, certificate("alice"))
    assert number == parse(to_stored(message)).SecurityHeader.Flags.AS


@pytest.mark.requirement("DMPR-3.1.1.12-67", "DMPR-3.1.1.12-68")
@pytest.mark.parametrize("protected", ["signed", "encrypted", "neither"])
@pytest.mark.parametrize(
    ("kind", "name"), [(1, "Microsoft Base Cryptographic Provider, v1.0"), (0x7777, "A connector's provider")]
)
def test_the_provider_that_a_connector_sets_is_ignored(protected, kind, name):
    """Only a connector writes one beside a signature: MQMQ-2.2.20.6-35."""
    harness = secured()
    sealed = {
        "signed": by_alice(),
        "encrypted": Sealed(recipient=rsa_key("aes").public_key(), kind=0),
        "neither": Sealed(sid=ALICE),
    }[protected]
    sealed.provider = h.provider_info(kind, name)
    assert verdict(harness, sealed) == TAKEN
    message = last(harness)
    assert (message.authentication_provider_type, message.authentication_provider_name) == (kind, name)
    assert message.body == b"secret body"
    level = AuthenticationLevel.SIG20 if protected == "signed" else AuthenticationLevel.NONE
    assert message.authentication_level is level


@pytest.mark.requirement("MQQB-3.1.5.8.3-05")
def test_the_security_header_signature_overrides_the_lists():
    """A signature in the lists counts only without one in the security header, even if it is right."""
    harness = secured()
    fields = by_alice(version=3).fields()
    fields["security"] = by_alice(body=b"another").fields()["security"]
    harness.accept_session().send_message(**fields)
    assert bodies(harness.find_queue()) == []


@pytest.mark.requirement("DMPR-3.1.1.2-12")
@pytest.mark.requirement("MQQB-3.1.5.8.3-02")
def test_an_unsigned_message_is_not_authenticated():
    harness = secured()
    sealed = Sealed(sid=ALICE, certificate=certificate("alice"), hash_algorithm=0x800D)
    assert verdict(harness, sealed) == TAKEN  # not even its HashAlgorithm is looked at
    message = last(harness)
    assert message.authentication_level is message.signature_type is AuthenticationLevel.NONE
    assert len(harness.core.protection.authentication.user_cert_cache) == 0


@pytest.mark.requirement("MQMQ-2.2.18.1.6-12")
@pytest.mark.requirement("MQQB-3.1.5.8.3-02", "MQQB-3.1.5.8.3-06", "MQQB-3.1.5.8.3-07", "DMPR-3.1.1.12-10")
@pytest.mark.parametrize("insecure", [False, True])
@pytest.mark.parametrize("asked", [NA, 0])
@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("wrong", ["hash", "key"])
def test_a_wrong_signature_is_refused(wrong, transactional, asked, insecure):
    """The hash in it is that of another message, or the key of the certificate recovers none."""
    harness = secured(queue={"transactional": transactional}, send_insecure_nacks=insecure)
    peer = harness.accept_session()
    sealed = by_alice(acks=asked, admin=direct("adm"), others={"tx": (1, 0)} if transactional else {})
    if wrong == "key":
        sealed.signer, sealed.certificate = "other", certificate("alice")
    peer.send_message(**sealed.fields() | ({"body": b"SECRET BODY"} if wrong == "hash" else {}))
    assert bodies(harness.find_queue()) == []
    assert message_classes(harness.find_queue("adm")) == ([0x8006] if asked and insecure else [])
    finals = [packet.MessageClass for packet in peer.take("FinalAck")]
    assert finals == ([0x8006] if transactional else [])
    peer.send_message(**by_alice(others={"tx": (2, 1)} if transactional else {}).fields())
    assert bodies(harness.find_queue()) == [b"secret body"]


@pytest.mark.requirement("MQQB-3.1.5.8.3-06")
@pytest.mark.parametrize(
    "changed",
    [
        {"body": b"Secret body"},
        {"label": "Label"},
        {"priority": 4},
        {"flags": JP},
        {"acks": 0x0F},
        {"destination": direct("Orders")},
        {"message_class": 1},
        {"source": THIRD_ID},
        {"recoverable": True},
        {"hash_algorithm": SHA256},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_what_a_signature_covers_can_not_be_changed(changed):
    harness = secured(send_insecure_nacks=True)
    fields = by_alice(label="label", acks=NA, admin=direct("adm")).fields()
    harness.accept_session().send_message(**fields | changed)
    assert bodies(harness.find_queue()) == []
    assert message_classes(harness.find_queue("adm")) == [0x8006]


@pytest.mark.requirement("MQMQ-2.2.19.3-29")
@pytest.mark.parametrize("algorithm", [0, 0x8005, 0x800D, 0xFFFFFFFF])
def test_a_hash_that_messages_do_not_have_fails(algorithm):
    harness = secured()
    fields = by_alice(acks=NA, admin=direct("adm")).fields()
    harness.accept_session().send_message(**fields | {"hash_algorithm": algorithm})
    assert message_classes(harness.find_queue("adm")) == [0x8006]


def test_a_signature_without_a_valid_certificate_is_refused():
    harness = secured()
    for shown in (b"", b"x", certificate("alice")[:-1], certificate("alice") + b"x", bytes(70_000)[:65_000]):
        assert verdict(harness, by_alice(certificate=shown)) == BAD_SIGNATURE
    assert verdict(harness, by_alice(certificate=certificate("mallory"))) == BAD_SIGNATURE


# --- who it is ---


@pytest.mark.requirement("MQQB-3.1.5.8.3-09", "MQQB-3.1.5.8.3-10", "MQQB-3.1.1.3.4-01", "MQQB-3.1.1.3.4-02")
def test_a_certificate_is_read_from_the_directory_and_cached():
    harness = secured(queue=AUTHENTICATED)
    other = certificate("other")
    user = recorder(harness).read_directory("User", [("SecurityIdentifier", "EQUALS", ALICE)]).object
    user.certificates = user_certificates(other, certificate("alice"))
    recorder(harness).directory.write_directory(user)
    recorder(harness).log.clear()
    harness.advance(5_000)
    assert verdict(harness, by_alice()) == TAKEN
    reads = [entry for entry in recorder(harness).log if entry[:2] == ("read_directory", "User")]
    assert reads[0][2] == [("SecurityIdentifier", "EQUALS", ALICE)]
    cached = harness.core.protection.authentication.user_cert_cache.get((certificate("alice"), ALICE))
    assert (cached.user_cert.der, cached.security_id) == (certificate("alice"), ALICE)
    (entry,) = harness.core.protection.authentication.user_cert_cache._entries.values()
    assert entry.cached_time == harness.now == 5_000


@pytest.mark.requirement("MQQB-3.1.5.8.3-08")
def test_a_certificate_in_the_cache_needs_no_directory():
    harness = secured(queue=AUTHENTICATED)
    assert verdict(harness, by_alice()) == TAKEN
    recorder(harness).log.clear()
    assert verdict(harness, by_alice()) == TAKEN
    assert recorder(harness).log == []
    assert verdict(harness, by_alice(sid=OTHER_SID)) == BAD_SIGNATURE  # another SecurityID is another entry
    assert ("read_directory", "User") in [entry[:2] for entry in recorder(harness).log]


@pytest.mark.requirement("MQQB-3.1.5.8.3-09", "MQQB-3.1.5.8.3-13", "MQQB-3.1.5.8.3-14")
@pytest.mark.parametrize("asked", [NA, 0])
@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("case", ["no user", "another certificate", "unreadable", "offline"])
def test_a_sender_whose_certificate_nobody_knows_is_refused(case, transactional, asked):
    """By default everywhere; by a setting only by queues for authenticated messages."""
    lenient = {"reject_unknown_certificates": False}
    for options, refused in (
        ({"queue": {"transactional": transactional}}, True),
        ({"queue": AUTHENTICATED | {"transactional": transactional}, **lenient}, True),
        ({"queue": {"transactional": transactional}, **lenient}, False),
    ):
        harness = secured(users=False, **options)
        directory = recorder(harness)
        if case != "no user":
            known = {
                "another certificate": user_certificates(certificate("other")),
                "unreadable": b"\xff" * 9,
            }
            directory.publish(
                User(THIRD_ID, security_identifier=ALICE, certificates=known.get(case, user_certificates()))
            )
        peer = harness.accept_session()
        directory.directory.connected = case != "offline"
        sealed = by_alice(acks=asked, admin=direct("adm"), others={"tx": (1, 0)} if transactional else {})
        peer.send_message(**sealed.fields())
        assert bodies(harness.find_queue()) == ([] if refused else [b"secret body"])
        assert message_classes(harness.find_queue("adm")) == ([0x8006] if refused and asked else [])
        finals = [packet.MessageClass for packet in peer.take("FinalAck")]
        assert finals == ([0x8006] if refused and transactional else [])
        if not refused:
            assert last(harness).authentication_level is AuthenticationLevel.NONE
        assert len(harness.core.protection.authentication.user_cert_cache) == 0


@pytest.mark.parametrize(
    ("kind", "sid"), [(0, b""), (0, ALICE), (2, ALICE)], ids=["none", "none named", "guid"]
)
def test_a_signature_without_a_sid_is_no_identity(kind, sid):
    sealed = by_alice(kind=kind, sid=sid, recoverable=True)
    assert verdict(secured(), sealed) == (BAD_SIGNATURE if kind else TAKEN)  # of no user: MQQB-3.1.5.8.3-09
    harness = secured(reject_unknown_certificates=False)
    assert verdict(harness, sealed) == TAKEN
    for message in (last(harness), last(harness.restarted())):
        assert message.authentication_level is AuthenticationLevel.NONE
        assert message.signature_type is AuthenticationLevel.SIG20  # it was right, whoever made it
    harness = secured(queue=AUTHENTICATED)
    assert verdict(harness, by_alice()) == TAKEN  # from now on the cache has her certificate
    assert verdict(harness, sealed) == BAD_SIGNATURE


def test_users_can_be_in_a_directory_of_their_own():
    """Without a directory the queue manager stays in workgroup mode, and knows users all the same."""
    users = recorder(secured()).directory
    harness = harness_with_peer(
        security=SecurityConfiguration(users=users), settings=Settings(send_insecure_nacks=True)
    )
    harness.queue(**AUTHENTICATED)
    harness.queue("adm")
    assert not harness.core.queue_manager.directory_integrated
    assert verdict(harness, by_alice()) == TAKEN
    assert verdict(harness, by_alice(sid=OTHER_SID)) == BAD_SIGNATURE
    harness.core.protection.configure(SecurityConfiguration())
    assert verdict(harness, by_alice()) == BAD_SIGNATURE


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (-DAY, DAY, TAKEN),
        (0, 0, TAKEN),
        (-DAY, -1, BAD_SIGNATURE),
        (1, DAY, BAD_SIGNATURE),
    ],
    ids=["valid", "this second", "expired", "not yet valid"],
)
def test_a_certificate_counts_while_it_is_valid(start, end, expected):
    shown = certificate("alice", START_UTC + start, START_UTC + end)
    harness = secured(users=False)
    user = User(THIRD_ID, security_identifier=ALICE, certificates=user_certificates(shown))
    recorder(harness).publish(user)
    assert verdict(harness, by_alice(certificate=shown)) == expected


def test_a_certificate_expires_although_it_is_in_the_cache():
    shown = certificate("alice", START_UTC - DAY, START_UTC + 1)
    harness = secured(users=False)
    recorder(harness).publish(
        User(THIRD_ID, security_identifier=ALICE, certificates=user_certificates(shown))
    )
    assert verdict(harness, by_alice(certificate=shown)) == TAKEN
    harness.advance(2_000)
    assert verdict(harness, by_alice(certificate=shown)) == BAD_SIGNATURE


def test_a_revoked_certificate_is_believed_no_more():
    harness = secured(reject_unknown_certificates=False)
    assert verdict(harness, by_alice()) == TAKEN
    revoked = frozenset({hashlib.md5(certificate("alice")).digest()})
    harness.core.protection.configure(configuration(revoked=revoked))
    assert verdict(harness, by_alice()) == BAD_SIGNATURE
    assert verdict(harness, by_alice(signer="bob")) == TAKEN


@pytest.mark.parametrize(("name", "algorithm"), [("md5", MD5), ("sha1", SHA1)])
def test_old_hashes_can_be_switched_off(name, algorithm):
    harness = secured()
    assert verdict(harness, by_alice(hash_algorithm=algorithm)) == TAKEN
    assert harness.core.context.troubles[f"legacy {name}"] == 1
    harness = secured(**{f"read_{name}": False})
    assert verdict(harness, by_alice(hash_algorithm=algorithm)) == BAD_SIGNATURE
    assert verdict(harness, by_alice()) == TAKEN


@pytest.mark.requirement("MQQB-5.1-03/a")
def test_an_authenticated_queue_takes_no_unsigned_messages():
    harness = secured(queue=AUTHENTICATED)
    assert verdict(harness, Sealed(sid=ALICE)) == BAD_SIGNATURE
    assert verdict(harness, by_alice()) == TAKEN
    forged = by_alice(acks=NA, admin=direct("adm")).fields() | {"body": b"SECRET BODY"}
    harness.accept_session().send_message(**forged)
    assert bodies(harness.find_queue()) == [b"secret body"]
    assert verdict(secured(users=False, queue=AUTHENTICATED), by_alice()) == BAD_SIGNATURE


def test_a_replayed_message_is_taken_once():
    harness = secured()
    peer, fields = harness.accept_session(), by_alice(others={"message_id": 77}).fields()
    peer.send_message(**fields)
    peer.send_message(**fields)
    assert bodies(harness.find_queue()) == [b"secret body"]


def test_what_was_proved_survives_a_restart():
    harness = secured(queue=AUTHENTICATED)
    assert verdict(harness, by_alice(recoverable=True)) == TAKEN
    message = last(harness.restarted(), None)
    assert message.authentication_level is AuthenticationLevel.SIG20
    assert (message.sender_identifier, message.signature) == (ALICE, last(harness).signature)


def test_slow_hashes_count_as_work():
    """A signature with MD2 over 4 MiB takes longer than the packet on its way."""
    harness = secured()
    peer = harness.accept_session()
    fields = by_alice(body=bytes(3 << 20)).fields() | {"hash_algorithm": 0x8001}
    peer.send_message(**fields)
    assert not peer.closed
    peer.send_message(**by_alice().fields())
    assert peer.closed
    harness.advance(3_000)
    assert verdict(harness, by_alice()) == TAKEN


@pytest.mark.parametrize("address", ["10.0.0.9", "127.0.0.1", "::1"])
def test_signature_checks_per_origin_have_a_time_limit(address):
    """Senders without valid signatures cannot keep a queue manager computing, other users of it neither."""
    harness = secured(security_per_origin_ms=5, reject_unknown_certificates=False)
    peer = harness.accept_session(address=address)
    sent = 0
    while not peer.closed and sent < 1_000:
        peer.send_message(**by_alice(signer="mallory", body=b"%d" % sent).fields())
        sent += 1
    assert 10 < sent < 100  # the last one is not acknowledged: it is to be sent again
    assert len(bodies(harness.find_queue())) == sent - 1
    assert harness.core.context.troubles["message security"] == 1
    honest = harness.accept_session(address="10.0.0.3")
    honest.send_message(**by_alice().fields())
    harness.advance(1_000)
    again = harness.accept_session(address=address)
    again.send_message(**by_alice().fields())
    assert not again.closed
    assert bodies(harness.find_queue())[-2:] == [b"secret body"] * 2


def md2(body: bytes, signer: str, sid: bytes) -> Sealed:
    """A message with a right signature over MD2."""
    sealed = Sealed(
        body=body,
        certificate=certificate(signer),
        sid=sid,
        hash_algorithm=0x8001,
        acks=NA,
        admin=direct("adm"),
    )
    digest_info = (
        bytes.fromhex("3020300c06082a864886f70d020205000410") + MD2.new(sealed.signed_fields()).digest()
    )
    sealed.signature = rsa_key(signer).sign(digest_info, PKCS1v15(), NoDigestInfo())[::-1]
    return sealed


def test_a_hash_that_takes_long_is_made_for_those_who_are_known():
    """Nobody can make a queue manager compute for a second by one message that he signs himself."""
    harness, long = secured(reject_unknown_certificates=False), bytes(80 << 10)
    assert verdict(harness, md2(b"short", "mallory", OTHER_SID)) == TAKEN
    assert last(harness).authentication_level is AuthenticationLevel.NONE
    assert verdict(harness, md2(long, "mallory", OTHER_SID)) == BAD_SIGNATURE
    assert verdict(harness, md2(long, "alice", ALICE)) == TAKEN
    assert last(harness).authentication_level is AuthenticationLevel.SIG20


def test_nobody_is_charged_for_a_hash_that_is_not_made():
    """A peer with a known certificate and without its key could use up what unknown peers have."""
    harness = secured(security_total_ms=100)
    sealed = md2(bytes(1 << 20), "mallory", ALICE)
    sealed.certificate = certificate("alice")
    peer = harness.accept_session()
    for _ in range(3):
        assert verdict(harness, sealed, peer) == BAD_SIGNATURE
    assert verdict(harness, by_alice(), harness.accept_session(address="10.0.0.3")) == TAKEN
