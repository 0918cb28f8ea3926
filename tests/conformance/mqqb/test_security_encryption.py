"""Bodies encrypted for their destination: [MS-MQQB] 3.1.7.1.5."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

from msmqwire.constants import CryptographicProvider, HResult
from msmqwire.qm.model.effects import Send
from msmqwire.qm.model.elements import QueueManager
from msmqwire.qm.model.enumerations import AesCipher, ConnectionStatus, LegacyCipher
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.security.encryption import Encryption
from tests.support.engine_harness import (
    OWN_ID,
    PEER_ADDRESS,
    PEER_ID,
    PEER_QUEUE,
    THIRD_ID,
    EngineHarness,
    harness_with_peer,
)
from tests.support.handmade import mqdspublickey, mqdspublickeys
from tests.support.qm.directory_recorder import DirectoryRecorder, public_queue
from tests.support.qm.message_security import (
    AES128,
    AES192,
    AES256,
    BASE,
    ENHANCED,
    RC2,
    RC4,
    decrypted,
    public_blob,
    published,
    rsa_key,
)
from tests.support.qm.queue_contents import bodies
from tests.support.qm.received_packets import ReceivedPacket
from tests.support.qm.secured_harness import configuration, random_bytes

TO_PEER = rf"PRIVATE={PEER_ID}\9"
AES, ALL = ("aes",), ("base", "enhanced", "aes")
LEGACY = {"send_rc2": True, "send_rc4": True}
LEVELS = {BASE: 1, ENHANCED: 3, CryptographicProvider.AES: 5}


def sender(*keys: str, destination: Any = PEER_ID, **options: Any) -> EngineHarness:
    """A queue manager whose directory has these keys of another one, for which the peer answers."""
    directory = DirectoryRecorder()
    directory.publish(
        QueueManager(
            destination, computer_name="far", qualified_computer_name=PEER_ADDRESS,
            public_encryption_key_list=published(**{name: rsa_key(name) for name in keys}) if keys else b"",
        ),
        QueueManager(OWN_ID, computer_name="here", queue_manager_quota=1 << 40),
    )  # fmt: skip
    defaults = {"directory": directory, "security": configuration(), "settings": Settings()}
    return harness_with_peer(**defaults | {"routes": {destination: [PEER_ADDRESS]}} | options)


def sent(harness: EngineHarness, body: bytes = b"secret", level: int = 5, **fields: Any) -> ReceivedPacket:
    """The packet in which a message with a PrivacyLevel goes out."""
    harness.send(body, to=fields.pop("to", TO_PEER), privacy_level=level, **fields)
    (packet,) = harness.called[-1].take("UserMessage")
    harness.called[-1].acknowledge()
    return packet


def opened(packet: ReceivedPacket, key: str = "aes", salt: bytes = b"") -> bytes:
    """The body of an encrypted packet, decrypted by hand."""
    return decrypted(packet.EncryptionAlgorithm, session_key(packet, key) + salt, packet.body)


def session_key(packet: ReceivedPacket, key: str = "aes") -> bytes:
    blob = packet.security.encryption_key
    assert blob[:4] == b"\x01\x02\x00\x00"
    assert int.from_bytes(blob[4:8], "little") == packet.EncryptionAlgorithm
    assert blob[8:12] == b"\x00\xa4\x00\x00"
    return rsa_key(key).decrypt(blob[12:][::-1], PKCS1v15())


@pytest.mark.requirement("MQMQ-2.2.20.6-07", "MQMQ-2.2.19.3-19")
@pytest.mark.requirement("MQQB-3.1.7.1.5-01", "DMPR-3.1.1.12-14", "DMPR-3.1.1.12-65", "DMPR-3.1.7.1.32-12")
@pytest.mark.parametrize("delivery", ["express", "recoverable", "transactional"])
def test_a_body_is_encrypted_if_its_privacy_level_says_so(delivery):
    harness = sender(*AES)
    kind = {} if delivery == "express" else {delivery: True}
    packet = sent(harness, **kind)
    assert opened(packet) == b"secret"
    assert b"secret" not in packet
    assert packet.security.flags & 0x20
    harness.send(b"clear", to=TO_PEER, **kind)
    (clear,) = harness.called[-1].take("UserMessage")
    assert (clear.body, clear.PrivacyLevel) == (b"clear", 0)
    assert clear.SecurityHeader is None
    if delivery == "transactional":
        assert [packet.tx[2], clear.tx[2]] == [1, 2]


@pytest.mark.requirement("MQQB-3.1.7.1-05")
def test_the_steps_of_sending_are_made_in_their_order(monkeypatch):
    harness = sender()  # without a key every encryption fails
    context, traces = harness.core.context, []
    monkeypatch.setattr(
        harness.core.system_messages, "trace", lambda message, next_hop: traces.append(context.effects[-1])
    )
    traced = {"tracing_requested": True, "tracing_queue_identifier": THIRD_ID}
    harness.hosts.clear()
    harness.send(b"late", to=TO_PEER, privacy_level=5, time_to_reach_queue=100, **traced)
    harness.utc_start += 200
    harness.hosts[PEER_ADDRESS] = PEER_ID
    harness.advance(5_000)
    assert bodies(harness.outgoing(TO_PEER)) == []
    statuses = [entry.status for entry in harness.outgoing(TO_PEER).connection_history]
    assert ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE not in statuses, "expiration before encryption"
    harness.send(b"secret", to=TO_PEER, privacy_level=5, transactional=True, **traced)
    harness.send(b"clear", to=TO_PEER, transactional=True)
    assert harness.called[0].sequenced_bodies() == [(b"clear", 1, 1, 0)], "encryption before numbers"
    assert traces == []
    harness.send(b"traced", to=TO_PEER, **traced)
    assert [type(effect) for effect in traces] == [Send], "the report comes last"


@pytest.mark.requirement("MQQB-3.1.7.1.5-02", "MQQB-5.1-02")
@pytest.mark.parametrize("to", [PEER_QUEUE, r"DIRECT=OS:far\private$\q"])
def test_nothing_is_encrypted_for_a_direct_name(to):
    harness = sender(*AES)
    harness.names["far"] = PEER_ADDRESS
    assert_given_up(harness, to, HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION)


@pytest.mark.requirement("MQQB-3.1.7.1.5-02")
def test_public_names_are_encrypted_for():
    harness = sender(*AES)
    queue = public_queue(pathname="far\\orders")
    harness._core_options["directory"].publish(queue)
    packet = sent(harness, to=f"PUBLIC={queue.identifier}")
    assert opened(packet) == b"secret"
    assert packet.QueueManagerAddress == PEER_ID.bytes_le


def assert_given_up(
    harness: EngineHarness, to: str = TO_PEER, error: int | None = None, level: int = 5, **fields: Any
) -> None:
    """Handling Encryption Errors: the message is not sent, dead-lettered, and the reason is told."""
    told: list[Any] = []
    harness.core.outcome.when_sent = lambda identifier, delivered, why: told.append((delivered, why))
    manager = harness.core.queue_manager
    for transactional in (False, True):
        dead = manager.system_deadletter_queue
        if transactional:
            dead = manager.system_transactional_deadletter_queue
        for wanted in (False, True):
            harness.send(
                b"secret", to=to, privacy_level=level, transactional=transactional,
                negative_journaling_requested=wanted, **fields,
            )  # fmt: skip
            assert bodies(dead) == ([b"secret"] if wanted else [])
    assert all(peer.take("UserMessage") == [] for peer in harness.called)
    assert not harness.transfer(to).table
    assert bodies(harness.outgoing(to)) == []
    entry = harness.outgoing(to).connection_history[-1]
    assert entry.status is ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE
    assert (entry.time, entry.addresses) == (harness.utc, (PEER_ADDRESS,))
    assert entry.error & 0x80000000
    assert error is None or entry.error == error
    assert len(told) == 4
    assert all(not delivered and isinstance(why, str) and why for delivered, why in told)
    harness.send(b"clear", to=to)  # the session goes on
    assert harness.called[-1].bodies() == [b"clear"]


@pytest.mark.requirement(
    "MQQB-3.1.7.1.5.1-01", "MQQB-3.1.7.1.5.1-02", "MQQB-3.1.7.1.5.1-03", "MQQB-3.1.7.1.5-04"
)
@pytest.mark.parametrize("case", ["not there", "no keys", "unreadable keys", "no directory"])
def test_a_destination_without_a_known_key(case):
    if case == "no directory":
        harness = sender(directory=None)
    elif case == "not there":
        harness = sender(*AES, destination=THIRD_ID, routes={PEER_ID: [PEER_ADDRESS]})
    else:
        harness = sender()
    if case == "unreadable keys":
        directory = harness._core_options["directory"]
        manager = directory.read_directory("QueueManager", [("Identifier", "EQUALS", PEER_ID)]).object
        manager.public_encryption_key_list = b"\x09" * 30
        directory.directory.write_directory(manager)
    assert_given_up(harness, error=HResult.MQ_ERROR_PUBLIC_KEY_NOT_FOUND)


@pytest.mark.requirement("MQQB-3.1.7.1.5-03", "MQQB-3.1.1.3.1-04", "MQQB-3.1.3.2-16")
def test_the_keys_are_read_from_the_directory_once_a_session():
    harness = sender(*AES)
    log = harness._core_options["directory"].log
    harness.send(b"clear", to=TO_PEER)
    harness.called[0].take()
    harness.called[0].acknowledge()
    assert harness.called[0].session.remote_public_keys == {}
    log.clear()
    sent(harness)
    sent(harness)
    reads = [entry[1:] for entry in log if entry[-1] == ["PublicEncryptionKeyList"]]
    assert reads == [("QueueManager", [("Identifier", "EQUALS", PEER_ID)], ["PublicEncryptionKeyList"])]
    session = harness.called[-1].session
    assert session.remote_public_keys[PEER_ID].keys() == {CryptographicProvider.AES}
    harness.called[-1].disconnect()
    harness.send(b"clear", to=TO_PEER)
    harness.advance(5_000)
    assert harness.called[-1].session.remote_public_keys == {}
    harness.called[-1].take()
    harness.called[-1].acknowledge()
    sent(harness)
    assert len([entry for entry in log if entry[-1] == ["PublicEncryptionKeyList"]]) == 2


def test_a_key_published_later_is_found_in_the_same_session():
    harness = sender("base", send_rc4=True)
    sent(harness, level=1)
    harness.send(b"too early", to=TO_PEER, privacy_level=5)
    directory = harness._core_options["directory"]
    manager = directory.read_directory("QueueManager", [("Identifier", "EQUALS", PEER_ID)]).object
    manager.public_encryption_key_list = published(base=rsa_key("base"), aes=rsa_key("aes"))
    directory.directory.write_directory(manager)
    assert opened(sent(harness)) == b"secret"
    assert len(harness.called) == 1


@pytest.mark.requirement("MQQB-3.1.1.3.3-01")
def test_a_routed_message_is_encrypted_for_its_destination():
    """Not for the next hop, though that is RemoteQMGuid by the letter: it could not be decrypted there."""
    harness = sender(*AES, destination=THIRD_ID, routes={THIRD_ID: ["hop"]})
    harness.names["hop"] = PEER_ADDRESS
    packet = sent(harness, to=rf"PRIVATE={THIRD_ID}\9")
    assert opened(packet) == b"secret"
    cache = harness.core.protection.encryption.send_symmetric_key_cache
    assert cache.get((CryptographicProvider.AES, AES256, THIRD_ID)).remote_qm_guid == THIRD_ID


def test_configured_keys_go_before_those_of_the_directory():
    keys = {PEER_ID: {CryptographicProvider.AES: rsa_key("pinned").public_key()}}
    harness = sender(*AES, security=configuration(peer_keys=keys))
    assert opened(sent(harness), "pinned") == b"secret"
    harness = sender(directory=None, security=configuration(peer_keys=keys))
    assert opened(sent(harness), "pinned") == b"secret"


# --- the choice of provider and cipher ---


@pytest.mark.requirement("DMPR-3.1.1.12-14", "MQMQ-2.2.19.3-19")
@pytest.mark.requirement("MQQB-3.1.7.1.5-06", "MQQB-3.1.1.3-07", "MQQB-3.1.7.1.5-20")
@pytest.mark.parametrize("level", [1, 3, 5])
@pytest.mark.parametrize(
    ("preferred", "algorithm", "size"),
    [
        pytest.param(AesCipher.AES256, AES256, 32, marks=pytest.mark.requirement("DMPR-5.1-01/b")),
        (AesCipher.AES128, AES128, 16),
        (AesCipher.AES192, AES192, 24),
    ],
)
def test_the_aes_provider_is_preferred_whatever_the_level(preferred, algorithm, size, level):
    harness = sender(*ALL, preferred_advanced_algorithm=preferred)
    packet = sent(harness, level=level)
    assert (packet.EncryptionAlgorithm, packet.PrivacyLevel) == (algorithm, 5)
    assert len(session_key(packet)) == size
    assert opened(packet) == b"secret"


@pytest.mark.requirement("MQQB-3.1.7.1.5-07")
@pytest.mark.parametrize("keys", [(), ("base",), ("base", "enhanced")])
def test_without_an_aes_key_the_advanced_level_fails(keys):
    assert_given_up(sender(*keys, **LEGACY), level=5)


@pytest.mark.requirement("DMPR-3.1.1.12-14", "MQMQ-2.2.19.3-19")
@pytest.mark.requirement("MQQB-3.1.7.1.5-08", "MQQB-3.1.7.1.5-20", "MQQB-3.1.1.3-08", "MQQB-3.1.1.3-10")
@pytest.mark.parametrize("level", [1, 3])
@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize(("preferred", "algorithm"), [(LegacyCipher.RC2, RC2), (LegacyCipher.RC4, RC4)])
def test_the_enhanced_provider_comes_second(preferred, algorithm, reduced, level):
    harness = sender(
        "base", "enhanced", preferred_enhanced_algorithm=preferred,
        send_enhanced_rc2_using_40_bit_keys=reduced, **{f"send_{preferred.value}": True},
    )  # fmt: skip
    asked = RC2 if preferred is LegacyCipher.RC4 else RC4  # is off: the preferred one is used
    packet = sent(harness, level=level, encryption_algorithm=asked)
    assert (packet.EncryptionAlgorithm, packet.PrivacyLevel) == (algorithm, 3)
    key = session_key(packet, "enhanced")
    assert len(key) == 16
    assert key.endswith(bytes(11)) == (reduced and algorithm == RC2)


@pytest.mark.requirement("MQQB-3.1.7.1.5-15")
def test_rc2_keys_of_40_bits_are_padded_with_zeros():
    harness = sender("enhanced", preferred_enhanced_algorithm=LegacyCipher.RC2,
                     send_enhanced_rc2_using_40_bit_keys=True, send_rc2=True)  # fmt: skip
    packet = sent(harness, level=3)
    assert session_key(packet, "enhanced") == random_bytes(5) + bytes(11)


@pytest.mark.requirement("MQQB-3.1.7.1.5-09")
def test_without_an_enhanced_key_the_enhanced_level_fails():
    assert_given_up(sender("base", **LEGACY), level=3)


@pytest.mark.requirement("DMPR-3.1.1.12-14", "MQMQ-2.2.19.3-19")
@pytest.mark.requirement("MQQB-3.1.7.1.5-10", "MQQB-3.1.7.1.5-20", "MQQB-3.1.1.3-09")
@pytest.mark.parametrize(("preferred", "algorithm"), [(LegacyCipher.RC2, RC2), (LegacyCipher.RC4, RC4)])
def test_the_base_provider_comes_last(preferred, algorithm):
    harness = sender("base", preferred_base_algorithm=preferred, **{f"send_{preferred.value}": True})
    packet = sent(harness, level=1, encryption_algorithm=RC2 if algorithm == RC4 else RC4)
    assert (packet.EncryptionAlgorithm, packet.PrivacyLevel) == (algorithm, 1)
    assert len(session_key(packet, "base")) == 5
    if algorithm == RC4:
        assert opened(packet, "base", salt=bytes(11)) == b"secret"


@pytest.mark.requirement("MQQB-3.1.7.1.5-11")
def test_keys_of_unknown_providers_are_none():
    harness = sender()
    directory = harness._core_options["directory"]
    manager = directory.read_directory("QueueManager", [("Identifier", "EQUALS", PEER_ID)]).object
    manager.public_encryption_key_list = mqdspublickeys(
        [mqdspublickey(public_blob(rsa_key("aes")), "Another Provider")]
    )
    directory.directory.write_directory(manager)
    assert_given_up(harness, level=1)


@pytest.mark.requirement("MQQB-3.1.7.1.5-12")
@pytest.mark.parametrize(
    ("level", "algorithm", "provider"),
    [(1, RC2, "base"), (1, RC4, "base"), (3, RC2, "enhanced"), (3, RC4, "enhanced"), (5, AES128, "aes")],
)
def test_the_requested_cipher_is_used_where_it_is_enabled(level, algorithm, provider):
    """Windows NT to Server 2003 choose it so, and write the names of providers: note 66."""
    harness = sender(**LEGACY)
    directory = harness._core_options["directory"]
    manager = directory.read_directory("QueueManager", [("Identifier", "EQUALS", PEER_ID)]).object
    names = {"base": BASE, "enhanced": ENHANCED, "aes": str(CryptographicProvider.AES)}
    manager.public_encryption_key_list = mqdspublickeys(
        [mqdspublickey(public_blob(rsa_key(key)), name.replace(" v", " ")) for key, name in names.items()]
    )
    directory.directory.write_directory(manager)
    packet = sent(harness, level=level, encryption_algorithm=algorithm)
    assert (packet.EncryptionAlgorithm, packet.PrivacyLevel) == (algorithm, level)
    assert len(session_key(packet, provider)) == {1: 5, 3: 16, 5: 16}[level]


@pytest.mark.parametrize("level", [1, 3])
def test_broken_ciphers_are_off(level):
    key = "base" if level == 1 else "enhanced"
    assert_given_up(sender(key), error=HResult.MQ_ERROR_ENCRYPTION_PROVIDER_NOT_SUPPORTED, level=level)
    harness = sender(key, send_rc4=True)
    sent(harness, level=level)
    assert harness.core.context.troubles["legacy rc4"] == 1


@pytest.mark.parametrize("level", [2, 4, 6])
def test_there_are_no_other_levels(level):
    assert_given_up(sender(*ALL), level=level)


# --- the packet ---


@pytest.mark.requirement(
    "MQQB-3.1.7.1.5-19", "MQQB-3.1.7.1.5-21", "MQMQ-2.2.19.3-40", "MQMQ-2.2.20.6-24", "MQMQ-2.2.20.6-03"
)
@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 1000])
def test_the_fields_of_an_encrypted_message(size):
    body = bytes(range(256)) * 4
    packet = sent(sender(*AES), body[:size])
    padded = size + 16 - size % 16
    assert (packet.MessageSize, packet.AllocationBodySize, len(packet.body)) == (padded,) * 3
    assert opened(packet) == body[:size]
    assert packet.security.flags & 0xF == 0  # there is no SecurityID
    assert packet.security.provider == (0x18, str(CryptographicProvider.AES))
    assert len(packet.security.encryption_key) == 12 + 128


@pytest.mark.requirement("DMPR-3.1.1.12-67", "DMPR-3.1.1.12-68")
@pytest.mark.parametrize(
    ("key", "level", "kind", "name"),
    [("base", 1, 1, BASE), ("enhanced", 3, 1, ENHANCED), ("aes", 5, 0x18, str(CryptographicProvider.AES))],
)
def test_the_provider_that_the_system_sets(key, level, kind, name):
    message = {"authentication_provider_type": 99, "authentication_provider_name": "of the application"}
    assert sent(sender(key, settings=Settings(**LEGACY)), level=level, **message).security.provider == (
        kind, name,
    )  # fmt: skip


def test_a_message_that_does_not_fit_encrypted_is_given_up():
    harness = sender(*AES)
    harness.send(b"x" * (4 * 1024 * 1024 - 300), to=TO_PEER, privacy_level=5)
    assert harness.called[-1].take("UserMessage") == []
    assert harness.outgoing(TO_PEER).connection_history[-1].error == HResult.MQ_ERROR_INSUFFICIENT_RESOURCES


def test_without_random_numbers_nothing_is_encrypted():
    assert_given_up(sender(*AES, security=configuration(random_bytes=None)))


@pytest.mark.requirement("DMPR-3.1.1.12-65")
@pytest.mark.parametrize("algorithm", [AES256, RC4])
def test_what_a_connector_has_encrypted_is_sent_as_it_is(algorithm):
    harness = sender()
    fields = {"symmetric_key": b"k" * 76, "encryption_algorithm": algorithm}
    if algorithm == RC4:  # which does not go with this level
        assert_given_up(harness, **fields)
        return
    packet = sent(harness, b"sealed", **fields)
    assert (packet.body, packet.security.encryption_key) == (b"sealed", b"k" * 76)


# --- the cache of keys made here ---


@pytest.mark.requirement("MQQB-3.1.7.1.5-13", "MQQB-3.1.7.1.5-14", "MQQB-3.1.7.1.5-16", "MQQB-3.1.1.3-05")
@pytest.mark.parametrize("key", ["aes", "enhanced", "base"])
def test_a_key_is_made_once_for_a_destination(key):
    made: list[int] = []

    def numbered(size: int) -> bytes:
        made.append(size)
        return bytes([len(made)]) * size

    level = {"aes": 5, "enhanced": 3, "base": 1}[key]
    legacy = {} if key == "aes" else LEGACY
    harness = sender(key, security=configuration(random_bytes=numbered), **legacy)
    first, second = sent(harness, level=level), sent(harness, b"again", level=level)
    assert first.security.encryption_key == second.security.encryption_key
    assert made == [{"aes": 32, "enhanced": 16, "base": 5}[key]]
    assert session_key(first, key) == bytes([1]) * made[0]
    encryption: Encryption = harness.core.protection.encryption
    sizes = len(encryption.send_symmetric_key_cache), len(encryption.send_base_symmetric_key_cache)
    assert sizes == ((0, 1) if key == "base" else (1, 0))
    harness.advance(660_000)  # the entry is gone, and so is the key
    assert session_key(sent(harness, level=level), key) == bytes([2]) * made[0]


def test_a_changed_directory_key_is_used_by_the_next_session_key():
    harness = sender(*AES)
    sent(harness)
    directory = harness._core_options["directory"]
    manager = directory.read_directory("QueueManager", [("Identifier", "EQUALS", PEER_ID)]).object
    manager.public_encryption_key_list = published(aes=rsa_key("new"))
    directory.directory.write_directory(manager)
    assert opened(sent(harness)) == b"secret"
    for _ in range(11):
        harness.advance(60_000)
        harness.send(b"to stay connected", to=TO_PEER)
        harness.called[-1].take()
        harness.called[-1].acknowledge()
    assert opened(sent(harness), "new") == b"secret"
    assert len(harness.called) == 1  # all in one session


@pytest.mark.requirement("MQQB-3.1.7.1.5.1-01", "MQQB-3.1.7.1.5.1-02")
@pytest.mark.parametrize("expires", [False, True])
def test_a_message_in_doubt_is_given_up_only_if_that_is_set(expires):
    """By the letter it is dead-lettered although it may be in its queue; by default it is tried again."""
    harness = sender(*AES, settings=Settings(expire_in_doubt=expires))
    harness.send(b"1", to=TO_PEER, privacy_level=5, transactional=True, negative_journaling_requested=True)
    assert len(harness.called[0].take("UserMessage")) == 1
    harness.called[0].disconnect()
    directory = harness._core_options["directory"].directory
    directory.connected = False
    restarted = harness.restarted()  # which forgets the keys that it had
    restarted.advance(12_000)
    dead = restarted.core.queue_manager.system_transactional_deadletter_queue
    assert (bodies(dead), bodies(restarted.outgoing(TO_PEER))) == (([b"1"], []) if expires else ([], [b"1"]))
    failed = ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE
    assert failed in [entry.status for entry in restarted.outgoing(TO_PEER).connection_history]
    assert [peer.take("UserMessage") for peer in restarted.called] == [[]] * len(restarted.called)
    assert expires or len(restarted.called) > 1
    directory.connected = True
    restarted.advance(70_000)
    again = restarted.called[-1].take("UserMessage")
    assert [opened(packet) for packet in again[-1:]] == ([] if expires else [b"1"])


@pytest.mark.parametrize("transactional", [False, True])
def test_a_message_is_encrypted_again_when_it_is_sent_again(transactional):
    harness = sender(*AES)
    harness.send(b"1", b"2", to=TO_PEER, privacy_level=5, transactional=transactional, recoverable=True)
    first = harness.called[0].take("UserMessage")
    harness.called[0].disconnect()
    restarted = harness.restarted()
    restarted.advance(10_000)
    again = restarted.called[-1].take("UserMessage")
    assert [opened(packet) for packet in (*first, *again)] == [b"1", b"2"] * 2
    if transactional:
        assert [packet.tx for packet in again] == [packet.tx for packet in first]
