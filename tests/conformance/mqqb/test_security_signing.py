"""Messages that are signed where they are sent: [MS-MQQB] 3.1.7.1.4."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

from msmqwire.constants import MQ_OK, HResult
from msmqwire.crypto.certificates import SenderCertificate
from msmqwire.crypto.readings import Readings
from msmqwire.errors import InvalidValue
from msmqwire.names import parse_format_name
from msmqwire.qm.model.enumerations import (
    AcknowledgementsRequested,
    AuthenticationLevel,
    ConnectionStatus,
    DeliveryGuarantee,
    EnqueueStatus,
    QueuePrivacy,
    SenderIdentifierType,
)
from msmqwire.qm.model.message import Message
from msmqwire.qm.security.configuration import SecurityConfiguration
from msmqwire.qm.security.signing import Signer, signed
from tests.support.engine_harness import (
    OWN_ID,
    PEER_ADDRESS,
    PEER_ID,
    PEER_QUEUE,
    EngineHarness,
    harness_with_peer,
)
from tests.support.peers.handwritten_peer import JN, JP, direct
from tests.support.qm.message_security import MD5, SHA1, SHA256, SHA512, Sealed, certificate, rsa_key
from tests.support.qm.queue_contents import bodies, messages
from tests.support.qm.received_packets import ReceivedPacket
from tests.support.qm.secured_harness import ALICE, configuration, secured

SIG10, SIG20, SIG30 = AuthenticationLevel.SIG10, AuthenticationLevel.SIG20, AuthenticationLevel.SIG30
_HASHES = {MD5: hashes.MD5(), SHA1: hashes.SHA1(), SHA256: hashes.SHA256(), SHA512: hashes.SHA512()}
HERE = r"DIRECT=OS:here\private$\orders"
OTHER_READINGS = Readings(signature_bytes="big", queue_names="text", digest_info=False)


def alice(sid: bytes = ALICE) -> Signer:
    return Signer(rsa_key("alice"), SenderCertificate.read(certificate("alice")), sid)


def signed_message(to: str = PEER_QUEUE, **options: Any) -> Message:
    """A message with many properties, signed."""
    keywords = {
        name: options.pop(name)
        for name in ("version", "hash_algorithm", "transactional", "readings")
        if name in options
    }
    message = Message(body=b"secret body", destination=parse_format_name(to), **options)
    signed(message, alice(), queue_manager=OWN_ID, **keywords)
    return message


def transferred(
    harness: EngineHarness, message: Message, *, transactional: bool = False
) -> list[ReceivedPacket]:
    """The packets in which a message goes out."""
    descriptor = harness.open_to_send(message.destination)
    transaction = harness.begin() if transactional else None
    assert harness.core.send(descriptor, message, transaction) is EnqueueStatus.OK
    if transaction is not None:
        assert harness.core.commit(transaction) == MQ_OK
    harness.run()
    return [packet for peer in harness.called for packet in peer.take("UserMessage")]


def verify(signature: bytes, sealed: Sealed, algorithm: int = SHA512) -> None:
    """Verify a signature over fields that were put together by hand."""
    key = rsa_key("alice").public_key()
    key.verify(signature[::-1], sealed.signed_fields(), PKCS1v15(), _HASHES[algorithm])


@pytest.mark.requirement("MQQB-3.1.7.1.4-01/a", "MQQB-3.1.7.1.4-03", "MQMQ-2.2.20.6-28", "DMPR-3.1.1.12-66")
@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("algorithm", [SHA1, SHA256, SHA512])
@pytest.mark.parametrize("version", [SIG10, SIG20])
def test_the_signature_for_one_destination(version, algorithm, transactional):
    harness = harness_with_peer()
    asked = AcknowledgementsRequested.ACK_FULL_RECEIVE
    message = signed_message(
        version=version, hash_algorithm=algorithm, transactional=transactional, label="label", priority=5,
        acknowledgements_requested=asked, extension=b"extension",
        administration=parse_format_name(r"DIRECT=TCP:10.0.0.1\private$\adm"),
        response=parse_format_name(r"DIRECT=TCP:10.0.0.1\private$\answers"),
        positive_journaling_requested=True, negative_journaling_requested=True,
    )  # fmt: skip
    (packet,) = transferred(harness, message, transactional=transactional)
    sealed = Sealed(
        version=1 if version is SIG10 else 2, label="label", queue=direct(address=PEER_ADDRESS),
        admin=direct("adm"), response=direct("answers"), acks=int(asked), priority=5, user_flags=JN | JP,
        source=OWN_ID, others={"tx": ()} if transactional else {},
    )  # fmt: skip
    security = packet.security
    verify(security.signature, sealed, algorithm)
    with pytest.raises(InvalidSignature):
        verify(security.signature, Sealed(**vars(sealed) | {"label": "Label"}), algorithm)
    assert packet.HashAlgorithm == algorithm
    assert (security.security_id, security.certificate) == (ALICE, certificate("alice"))
    assert security.flags & 0xFFF == 1 | 0x40 | 0x80  # a SID, DE, AI; AU and AS are 0
    (plain,) = transferred(harness, Message(body=b"plain", destination=message.destination))
    assert plain.SecurityHeader is None


@pytest.mark.requirement("MQQB-3.1.7.1.4-01/b")
@pytest.mark.parametrize("version", [SIG10, SIG20, SIG30])
def test_what_asks_for_a_signature_is_not_sent_unsigned(version):
    harness = harness_with_peer()
    message = Message(
        body=b"m",
        destination=parse_format_name(rf"DIRECT=TCP:{PEER_ADDRESS}\private$\orders"),
        authentication_level=version,
        negative_journaling_requested=True,
    )
    assert transferred(harness, message) == []
    dead = messages(harness.core.queue_manager.system_deadletter_queue)
    assert [each.body for each in dead] == [b"m"]


@pytest.mark.requirement("MQQB-3.1.7.1.4-02", "DMPR-3.1.1.12-32", "DMPR-3.1.1.12-33", "MQMQ-2.2.20.3-05")
def test_the_signature_for_several_destinations():
    """One signature for all packets, over the names in the order in which the queue manager has them."""
    harness = harness_with_peer()
    names = rf"DIRECT=TCP:{PEER_ADDRESS}\private$\z,DIRECT=TCP:{PEER_ADDRESS}\private$\a"
    packets = transferred(harness, signed_message(names, version=SIG30))
    covered = bytes(20) + bytes(4) + b"secret body"
    for queue in ("a", "z"):
        covered += b"\3\0" + f"TCP:{PEER_ADDRESS}\\private$\\{queue}\0".encode("utf-16-le")
    covered += OWN_ID.bytes_le + bytes((0, 3, 0, 0)) + bytes(6) + bytes(16)
    assert len(packets) == 2
    for packet in packets:
        header = packet[packet.rindex(b"\x5e\x01\0\0\x80\0\0\0") :]  # MQFSignatureHeader, 128 bytes
        key = rsa_key("alice").public_key()
        key.verify(header[8:136][::-1], covered, PKCS1v15(), hashes.SHA512())
        assert packet.security.signature == b""
        assert packet.security.certificate == certificate("alice")


@pytest.mark.requirement("DMPR-3.1.1.12-32")
@pytest.mark.parametrize("several", ["responses", "administrations"])
def test_a_list_of_other_queues_moves_the_signature_too(several):
    one, listed = (rf"DIRECT=TCP:{PEER_ADDRESS}\private$\{name}" for name in ("orders", "b"))
    message = signed_message(
        one, version=SIG30, acknowledgements_requested=AcknowledgementsRequested.ACK_FULL_RECEIVE,
        **{several: (parse_format_name(listed),)},
    )  # fmt: skip
    (packet,) = transferred(harness_with_peer(), message)
    assert packet.security.signature == b""
    assert b"\x5e\x01\0\0\x80\0\0\0" in packet, "MQFSignatureHeader, 128 bytes"


@pytest.mark.parametrize("version", [SIG10, SIG20])
def test_several_destinations_have_no_other_signature(version):
    with pytest.raises(InvalidValue, match=r"3\.0"):
        signed_message(rf"{PEER_QUEUE},{PEER_QUEUE}2", version=version)


@pytest.mark.parametrize(
    ("name", "version"),
    [("DL=00000000-0000-0000-0000-000000000009", SIG30), (PEER_QUEUE, AuthenticationLevel.XML_SIG)],
)
def test_what_can_not_be_signed(name, version):
    with pytest.raises(InvalidValue):
        signed_message(name, version=version)
    with pytest.raises(InvalidValue):
        signed(Message(body=b"x"), alice(), queue_manager=OWN_ID)


def test_a_signer_has_a_key_that_belongs_to_its_certificate():
    with pytest.raises(InvalidValue, match="belong"):
        Signer(rsa_key("bob"), alice().certificate, ALICE)
    assert "private_key" not in repr(alice())


def test_a_signature_without_a_sid_names_nobody():
    message = Message(body=b"x", destination=parse_format_name(PEER_QUEUE))
    signed(message, alice(b""), queue_manager=OWN_ID)
    assert message.sender_identifier_type is SenderIdentifierType.NONE
    (packet,) = transferred(harness_with_peer(), message)
    assert packet.security.flags & 0xF == 0
    assert packet.security.security_id == b""


@pytest.mark.requirement("MQMQ-2.2.19.3-30", "DMPR-5.1-01/a", "MQQB-1.3.2.2-01")
def test_sha_512_is_the_default():
    (packet,) = transferred(harness_with_peer(), signed_message())
    assert packet.HashAlgorithm == SHA512 == 0x800E
    verify(packet.security.signature, Sealed(queue=direct(address=PEER_ADDRESS), source=OWN_ID))


@pytest.mark.parametrize("algorithm", [MD5, SHA1])
def test_broken_hashes_are_sent_if_they_are_on(algorithm):
    """MD5 is off; SHA-1 is on, with a warning."""
    harness = harness_with_peer()
    name = "md5" if algorithm == MD5 else "sha1"
    assert len(transferred(harness, signed_message(hash_algorithm=algorithm))) == (algorithm == SHA1)
    assert harness.core.context.troubles[f"legacy {name}"] == (algorithm == SHA1)
    harness = harness_with_peer(**{f"send_{name}": algorithm == MD5})
    assert len(transferred(harness, signed_message(hash_algorithm=algorithm))) == (algorithm == MD5)
    if algorithm == SHA1:
        entry = harness.outgoing().connection_history[-1]
        assert entry.status is ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE
        assert entry.error == HResult.MQ_ERROR_CANNOT_CREATE_HASH_EX


# --- to a queue of the same computer, and from one engine to another ---


@pytest.mark.parametrize("version", [SIG10, SIG20, SIG30])
@pytest.mark.parametrize("transactional", [False, True])
def test_a_signed_message_to_a_queue_here_is_verified(version, transactional):
    harness = secured(queue={"authentication": True, "transactional": transactional})
    message = signed_message(HERE, version=version, transactional=transactional)
    assert transferred(harness, message, transactional=transactional) == []
    (arrived,) = messages(harness.find_queue())
    assert arrived.authentication_level is version


@pytest.mark.parametrize("several", [False, True])
def test_what_a_message_claims_is_no_proof(several):
    """AuthenticationLevel asks for a signature when it is sent; in a queue it tells what was proved."""
    harness = secured()
    harness.queue("other")
    to = rf"{HERE},DIRECT=OS:here\private$\other" if several else HERE
    descriptor = harness.open_to_send(to)
    claim = Message(body=b"x", authentication_level=SIG20, sender_identifier=ALICE)
    assert harness.core.send(descriptor, claim) is EnqueueStatus.OK
    (arrived,) = messages(harness.find_queue())
    assert arrived.authentication_level is AuthenticationLevel.NONE
    forged = signed_message(to, version=SIG30)
    forged.body = b"forged"
    assert harness.core.send(descriptor, forged) == HResult.MQ_ERROR_MESSAGE_NOT_AUTHENTICATED
    assert len(messages(harness.find_queue())) == 1


@pytest.mark.parametrize("fate", ["journaled", "dead-lettered"])
def test_a_copy_of_what_was_sent_claims_no_proof(fate):
    harness = harness_with_peer()
    options = {"positive_journaling_requested": True, "negative_journaling_requested": True}
    message = signed_message(
        delivery_guarantee=DeliveryGuarantee.RECOVERABLE, time_to_reach_queue=60, **options
    )
    manager = harness.core.queue_manager
    assert len(transferred(harness, message)) == 1
    if fate == "journaled":
        harness.called[0].acknowledge()
    else:
        harness.called[0].disconnect()
        harness.hosts.clear()
        harness.advance(70_000)
    names = {"journaled": "system_journal_queue", "dead-lettered": "system_deadletter_queue"}
    (copy,) = messages(getattr(manager, names[fate]))
    (restored,) = messages(getattr(harness.restarted().core.queue_manager, names[fate]))
    for kept in (copy, restored):
        assert kept.authentication_level is AuthenticationLevel.NONE
        assert kept.signature == message.signature != b""


def test_queues_here_take_what_they_take_of_others():
    harness = secured(queue={"authentication": True})
    unsigned = Message(body=b"x")
    refused = harness.core.send(harness.open_to_send(HERE), unsigned)
    assert refused == HResult.MQ_ERROR_MESSAGE_NOT_AUTHENTICATED
    for privacy, level, taken in (
        (QueuePrivacy.BODY, 5, True),
        (QueuePrivacy.BODY, 0, False),
        (QueuePrivacy.NONE, 5, False),
        (QueuePrivacy.NONE, 0, True),
        (QueuePrivacy.OPTIONAL, 5, True),
    ):
        harness = secured(queue={"privacy_level": privacy})
        message = Message(body=b"x", privacy_level=level)
        status = harness.core.send(harness.open_to_send(HERE), message)
        assert status == (EnqueueStatus.OK if taken else HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE)
        assert bodies(harness.find_queue()) == ([b"x"] if taken else [])
        if taken:
            assert not messages(harness.find_queue())[0].decrypted  # it was never encrypted


@pytest.mark.requirement("MQQB-3.1.7.1-05", "MQQB-5.1-01")
@pytest.mark.parametrize("readings", [Readings(), OTHER_READINGS], ids=["default", "other"])
@pytest.mark.parametrize("version", [SIG10, SIG20, SIG30])
def test_signed_and_encrypted_from_one_queue_manager_to_another(version, readings):
    """It is signed in clear and encrypted then: the receiver could verify it in no other order."""
    receiver = secured(
        queue={"authentication": True, "privacy_level": QueuePrivacy.BODY},
        security=configuration(readings=readings),
    )
    number = receiver.find_queue().private_queue_number
    keys = {provider: own[0].public_key() for provider, own in configuration().exchange_keys.items()}
    sender = EngineHarness(
        hosts={PEER_ADDRESS: OWN_ID}, identifier=PEER_ID, computer_name="there", addresses=["10.0.0.9"],
        routes={OWN_ID: [PEER_ADDRESS]},
        security=SecurityConfiguration(
            random_bytes=configuration().random_bytes, peer_keys={OWN_ID: keys}, readings=readings
        ),
    )  # fmt: skip
    message = Message(
        body=b"secret body", destination=parse_format_name(f"PRIVATE={OWN_ID}\\{number:x}"), privacy_level=5
    )
    signed(message, replace(alice(), readings=readings), queue_manager=PEER_ID, version=version)
    (packet,) = transferred(sender, message)
    assert b"secret" not in packet
    peer = receiver.accept_session()
    peer.count_sent(recoverable=False)
    peer.send(packet)
    (arrived,) = messages(receiver.find_queue())
    assert (arrived.body, arrived.authentication_level) == (b"secret body", version)
    assert (arrived.decrypted, arrived.encryption_algorithm) == (True, 0x6610)
