"""Encrypted bodies of received messages: [MS-MQQB] 3.1.5.8.3."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.enumerations import AuthenticationLevel, QueuePrivacy
from msmqwire.qm.rules import serialization
from tests.support.engine_harness import PEER_ID
from tests.support.handmade import simpleblob
from tests.support.peers.handwritten_peer import NA, direct
from tests.support.qm.message_security import AES128, AES192, AES256, RC2, RC4, Sealed, rsa_key
from tests.support.qm.queue_contents import bodies, message_classes
from tests.support.qm.secured_harness import (
    AES,
    ALICE,
    BASE,
    ENHANCED,
    TAKEN,
    configuration,
    last,
    secured,
    verdict,
)

BAD_ENCRYPTION = "8007"
_CIPHERS = {
    "rc4 base": (1, RC4, 5, "base"),
    "rc4": (3, RC4, 16, "enhanced"),
    "aes128": (5, AES128, 16, "aes"),
    "aes192": (5, AES192, 24, "aes"),
    "aes256": (5, AES256, 32, "aes"),
}


def for_us(cipher: str = "aes256", **fields: object) -> Sealed:
    privacy, algorithm, size, key = _CIPHERS[cipher]
    # The Base provider's cipher has 11 zero bytes of salt behind its five.
    return Sealed(
        **{
            "recipient": rsa_key(key).public_key(), "privacy": privacy, "algorithm": algorithm,
            "session_key": bytes(range(1, size + 1)), "sid": ALICE,
        } | fields
    )  # type: ignore[arg-type]  # fmt: skip


class Salted(Sealed):
    """A message under a key of 40 bits, whose cipher has salt."""

    def fields(self) -> dict[str, object]:
        short = self.session_key
        blob, self.session_key = self.wrapped(), short + bytes(11)
        fields = Sealed(**vars(self) | {"blob": blob}).fields()
        self.session_key = short
        return fields


@pytest.mark.requirement("MQMQ-2.2.19.3-19")
@pytest.mark.requirement("MQQB-3.1.5.8.3-15", "MQQB-3.1.5.8.3-19", "MQQB-3.1.5.8.3-25", "DMPR-3.1.1.12-14")
@pytest.mark.parametrize("cipher", [*_CIPHERS])
def test_a_body_is_decrypted_with_the_key_of_its_provider(cipher):
    harness = secured()
    sealed = for_us(cipher)
    if cipher == "rc4 base":
        sealed = Salted(**vars(sealed))
    assert verdict(harness, sealed) == TAKEN
    message = last(harness)
    assert (message.body, message.encrypted, message.decrypted) == (b"secret body", False, True)
    assert (message.privacy_level, message.encryption_algorithm) == _CIPHERS[cipher][:2]


@pytest.mark.requirement("MQQB-3.1.5.8.3-16", "MQQB-3.1.5.8.3-17")
@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("level", [0, 2, 4, 6, 0xFFFFFFFF])
def test_a_right_key_does_not_help_without_a_known_level(level, transactional):
    harness = secured(queue={"transactional": transactional})
    peer = harness.accept_session()
    others = {"tx": (1, 0)} if transactional else {}
    peer.send_message(**for_us(acks=NA, admin=direct("adm"), others=others).fields() | {"privacy": level})
    assert bodies(harness.find_queue()) == []
    assert message_classes(harness.find_queue("adm")) == [0x8007]
    finals = [packet.MessageClass for packet in peer.take("FinalAck")]
    assert finals == ([0x8007] if transactional else [])


@pytest.mark.requirement("MQQB-3.1.5.8.3-15")
@pytest.mark.parametrize("key", ["base", "enhanced", "another"])
def test_only_the_key_of_the_provider_will_do(key):
    sealed = for_us(recipient=rsa_key(key).public_key())
    assert verdict(secured(), sealed) == BAD_ENCRYPTION


@pytest.mark.requirement("MQMQ-2.2.20.6-07", "MQMQ-2.5-04")
def test_decryption_comes_before_signature_verification():
    harness = secured(queue={"authentication": True, "privacy_level": QueuePrivacy.BODY})
    sealed = for_us(signer="alice")
    assert verdict(harness, sealed) == TAKEN
    assert last(harness).authentication_level is AuthenticationLevel.SIG20
    fields = for_us(signer="alice", acks=NA, admin=direct("adm")).fields()
    other = for_us(signer="alice", body=b"Secret body", acks=NA, admin=direct("adm")).fields()
    peer = harness.accept_session()
    peer.send_message(**fields | {"body": other["body"]})  # decrypts, and is not what was signed
    broken = fields["body"][:-1] + bytes([fields["body"][-1] ^ 0xFF])
    peer.send_message(**fields | {"body": broken})
    assert message_classes(harness.find_queue("adm")) == [0x8006, 0x8007]
    assert bodies(harness.find_queue("adm")) == [b"", b""]  # clear bodies are not sent back in clear


@pytest.mark.requirement("MQMQ-2.2.18.1.6-13")
@pytest.mark.requirement("MQQB-3.1.5.8.3-26", "MQQB-3.1.5.8.3-27", "DMPR-3.1.1.12-10")
@pytest.mark.parametrize("insecure", [False, True])
@pytest.mark.parametrize("asked", [NA, 0])
@pytest.mark.parametrize("transactional", [False, True])
def test_what_can_not_be_decrypted_is_refused(transactional, asked, insecure):
    harness = secured(queue={"transactional": transactional}, send_insecure_nacks=insecure)
    peer = harness.accept_session()
    sealed = for_us(acks=asked, admin=direct("adm"), others={"tx": (1, 0)} if transactional else {})
    peer.send_message(**sealed.fields() | {"body": bytes(16)})
    assert bodies(harness.find_queue()) == []
    assert message_classes(harness.find_queue("adm")) == ([0x8007] if asked and insecure else [])
    finals = [packet.MessageClass for packet in peer.take("FinalAck")]
    assert finals == ([0x8007] if transactional else [])


def _faults() -> dict[str, dict[str, object]]:
    good = for_us().wrapped()
    numbers = rsa_key("aes").public_key().public_numbers()
    textbook = pow(3, numbers.e, numbers.n)  # without any padding
    return {
        "body cut": {"body": b"x" * 15},
        "body empty": {"body": b""},
        "padding": {"body": bytes(32)},
        "key empty": {"blob": b""},
        "key cut": {"blob": good[:-1]},
        "key too long": {"blob": good + b"x"},
        "key changed": {"blob": good[:-1] + bytes([good[-1] ^ 1])},
        "key of zeros": {"blob": simpleblob(bytes(128))},
        "key of ones": {"blob": simpleblob(b"\xff" * 128)},
        "key of another length": {"blob": for_us(session_key=bytes(16)).wrapped()},
        "key of another cipher": {"blob": for_us(algorithm=AES128).wrapped()},
        "no blob": {"blob": b"k" * 140},
        "64 KiB": {"blob": good + bytes(60_000) + b"x"},
        "encrypted for another": {"blob": for_us(recipient=rsa_key("another").public_key()).wrapped()},
        "textbook": {"blob": simpleblob(textbook.to_bytes(128, "little"))},
    }  # fmt: skip


@pytest.mark.requirement("MQQB-3.1.5.8.3-26")
def test_nobody_can_tell_a_wrong_key_from_a_wrong_padding():
    """The same class, the same packets, the same effects, and no trace in a cache for later messages."""
    seen = set()
    for fault in _faults().values():
        harness = secured(queue={"transactional": True})
        peer = harness.accept_session()
        sealed = for_us(acks=NA, admin=direct("adm"), others={"tx": (1, 0)})
        sealed.blob = fault.get("blob")
        peer.send_message(
            **sealed.fields() | {name: value for name, value in fault.items() if name != "blob"}
        )
        harness.advance(60_000)
        answers = tuple((packet.kind, getattr(packet, "body", b"")) for packet in peer.all_packets)
        classes = tuple(message_classes(harness.find_queue("adm")))
        cached = len(harness.core.protection.decryption.receive_symmetric_key_cache)
        troubles = tuple(sorted(harness.core.context.troubles.items()))
        seen.add((answers, classes, tuple(bodies(harness.find_queue("adm"))), cached, troubles))
    ((_, classes, sent_back, cached, troubles),) = seen
    assert (classes, sent_back, cached, troubles) == ((0x8007,), (b"",), 0, (("refused", 1),))


@pytest.mark.requirement("MQQB-2.4.2-03")
def test_a_key_blob_of_256_bytes_is_read_whatever_the_key():
    sealed = for_us()
    assert verdict(secured(), for_us(blob=sealed.wrapped() + bytes(128))) == TAKEN


@pytest.mark.requirement("MQQB-2.4.2-03")
def test_zeros_after_an_encrypted_key_end_with_256_bytes():
    """Each number of them would be another key in the cache, of up to 64 KiB."""
    sealed, harness = for_us(), secured()
    for more in (129, 4096, 0xF000):
        assert verdict(harness, for_us(blob=sealed.wrapped() + bytes(more))) == BAD_ENCRYPTION
    assert verdict(harness, sealed) == TAKEN


# --- what a queue takes: [MS-MQMQ] 2.3.1.12 ---


@pytest.mark.requirement("MQMQ-2.3.1.12-02", "DMPR-3.1.1.2-13")
@pytest.mark.parametrize(
    ("level", "clear", "sealed"),
    [
        (QueuePrivacy.NONE, TAKEN, BAD_ENCRYPTION),
        (QueuePrivacy.OPTIONAL, TAKEN, TAKEN),
        (QueuePrivacy.BODY, BAD_ENCRYPTION, TAKEN),
    ],
)
def test_the_privacy_of_a_queue(level, clear, sealed):
    harness = secured(queue={"privacy_level": level})
    assert verdict(harness, Sealed(sid=ALICE)) == clear
    assert verdict(harness, for_us()) == sealed


# --- the cache of received keys ---


@pytest.mark.requirement(
    "MQQB-3.1.5.8.3-18", "MQQB-3.1.5.8.3-19", "MQQB-3.1.5.8.3-20", "MQQB-3.1.1.3.3-01", "MQQB-3.1.1.3.3-02",
    "MQQB-3.1.1.3.3-03",
    "MQQB-3.1.1.3.3-04", "MQQB-3.1.1.3.3-05",
)  # fmt: skip
def test_a_key_is_unwrapped_once(monkeypatch):
    unwrapped = _count_unwrapping(monkeypatch)
    harness = secured()
    sealed = for_us()
    sealed.blob = blob = sealed.wrapped()
    peer = harness.accept_session()
    harness.advance(5_000)
    for body in (b"1", b"2", b"3"):
        sealed.body = body
        assert verdict(harness, sealed, peer) == TAKEN
    assert bodies(harness.find_queue()) == [b"1", b"2", b"3"]
    assert len(unwrapped) == 1
    found = AES, AES256, PEER_ID, blob
    cached = harness.core.protection.decryption.receive_symmetric_key_cache.get(found)
    assert cached.remote_qm_guid == PEER_ID
    assert (cached.crypto_service_provider, cached.crypto_algorithm) == (AES, AES256)
    assert (cached.encrypted_symmetric_key, cached.symmetric_key.key) == (blob, bytes(range(1, 33)))
    (entry,) = harness.core.protection.decryption.receive_symmetric_key_cache._entries.values()
    assert entry.cached_time == harness.now == 5_000


def _count_unwrapping(monkeypatch) -> list[bytes]:
    from msmqwire.crypto import keys

    unwrapped: list[bytes] = []
    original = keys.unwrap

    def unwrap(blob, *args):
        unwrapped.append(blob)
        return original(blob, *args)

    monkeypatch.setattr(keys, "unwrap", unwrap)
    return unwrapped


@pytest.mark.requirement("MQQB-3.1.5.8.3-18")
@pytest.mark.parametrize("other", ["provider", "algorithm", "source", "blob"])
def test_a_cached_key_is_used_if_all_four_are_the_same(other, monkeypatch):
    unwrapped = _count_unwrapping(monkeypatch)
    keys = dict.fromkeys((BASE, ENHANCED, AES), (rsa_key("aes"),))
    harness = secured(security=configuration(exchange_keys=keys))
    sealed = for_us("rc4", recipient=rsa_key("aes").public_key())
    sealed.blob = sealed.wrapped()
    assert verdict(harness, sealed) == TAKEN
    if other == "source":
        sealed.others["source"] = harness.guid()
    elif other == "blob":
        sealed.blob = sealed.wrapped()
    elif other == "provider":
        sealed.privacy = 1
    else:
        sealed.algorithm = RC2
    fields = sealed.fields() if other != "algorithm" else for_us("rc4", blob=sealed.blob).fields()
    if other == "algorithm":
        fields["algorithm"] = RC2
    harness.accept_session().send_message(**fields)
    assert len(unwrapped) == 2


# --- 40-bit keys of the Enhanced provider ---


@pytest.mark.requirement("MQQB-3.1.5.8.3-23", "MQQB-3.1.5.8.3-24", "MQQB-3.1.1.3-11")
@pytest.mark.parametrize("reject", [False, True])
@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("insecure", [False, True])
@pytest.mark.parametrize("asked", [NA, 0])
def test_reduced_rc2_keys_can_be_rejected(asked, insecure, reduced, transactional, reject):
    harness = secured(
        queue={"transactional": transactional},
        reject_enhanced_rc2_using_40_bit_keys=reject,
        send_insecure_nacks=insecure,
    )
    key = bytes(range(1, 6)) + (bytes(11) if reduced else bytes(range(11)))
    sealed = for_us("rc4", algorithm=RC2, session_key=key, others={"tx": (1, 0)} if transactional else {})
    sealed.acks, sealed.admin = asked, direct("adm")
    blob = sealed.wrapped()
    sealed.recipient, sealed.blob, sealed.kind = None, blob, 1 | 0x20
    fields = sealed.fields() | {"privacy": 3, "body": _rc2(key, b"secret body")}
    peer = harness.accept_session()
    peer.send_message(**fields)
    refused = reduced and reject
    assert bodies(harness.find_queue()) == ([] if refused else [b"secret body"])
    assert message_classes(harness.find_queue("adm")) == ([0x8007] if refused and insecure and asked else [])
    finals = [packet.MessageClass for packet in peer.take("FinalAck")]
    assert finals == ([0x8007] if refused and transactional else [])


@pytest.mark.requirement("MQQB-3.1.5.8.3-23")
def test_only_reduced_keys_of_rc2_are_rejected():
    harness = secured(reject_enhanced_rc2_using_40_bit_keys=True)
    assert verdict(harness, for_us("rc4", session_key=bytes(range(1, 6)) + bytes(11))) == TAKEN


def _rc2(key: bytes, body: bytes) -> bytes:
    from Cryptodome.Cipher import ARC2

    padded = body + bytes([8 - len(body) % 8]) * (8 - len(body) % 8)
    return ARC2.new(key, ARC2.MODE_CBC, bytes(8), effective_keylen=128).encrypt(padded)


@pytest.mark.parametrize("cipher", ["rc4", "rc4 base"])
def test_broken_ciphers_can_be_switched_off(cipher):
    make = (lambda: Salted(**vars(for_us(cipher)))) if "base" in cipher else (lambda: for_us(cipher))
    harness = secured()
    assert verdict(harness, make()) == TAKEN
    assert harness.core.context.troubles["legacy rc4"] == 1
    assert verdict(secured(read_rc4=False), make()) == BAD_ENCRYPTION
    assert verdict(secured(read_rc4=False), for_us()) == TAKEN


# --- keys that change, and limits ---


def test_earlier_keys_decrypt_what_was_on_its_way():
    keys = {AES: (rsa_key("new"), rsa_key("aes"))}
    harness = secured(security=configuration(exchange_keys=keys))
    assert verdict(harness, for_us()) == TAKEN
    assert verdict(harness, for_us(recipient=rsa_key("new").public_key())) == TAKEN
    harness.core.protection.configure(configuration(exchange_keys={AES: (rsa_key("new"),)}))
    assert verdict(harness, for_us()) == BAD_ENCRYPTION  # not even with the key from the cache


def test_without_a_key_nothing_is_decrypted():
    assert verdict(secured(security=configuration(exchange_keys={})), for_us()) == BAD_ENCRYPTION


def test_key_unwrapping_per_origin_has_a_time_limit():
    """Unauthenticated senders cannot keep a queue manager unwrapping session keys."""
    harness = secured(security_per_origin_ms=5)
    peer, sent = harness.accept_session(), 0
    while not peer.closed and sent < 1_000:
        peer.send_message(**for_us(acks=NA).fields())  # a new blob each time
        sent += 1
    assert 10 < sent < 100
    known = harness.accept_session()
    again = for_us()
    again.blob = again.wrapped()
    harness.advance(1_000)
    assert verdict(harness, again, known) == TAKEN
    for _ in range(200):  # what the cache has costs nothing
        assert verdict(harness, again, known) == TAKEN


@pytest.mark.parametrize("guessed", ["body", "key"])
def test_guesses_are_few(guessed):
    """A body, or a session key, is found out by thousands of changed messages, if answers tell anything."""
    harness = secured()
    good = for_us()
    good.blob = good.wrapped()
    assert verdict(harness, good) == TAKEN
    peer, sent = harness.accept_session(), 0
    while not peer.closed and sent < 1_000:
        fields = good.fields()
        if guessed == "body":
            fields["body"] = sent.to_bytes(16, "little")
        else:
            fields = for_us(blob=good.blob[:-4] + sent.to_bytes(4, "little")).fields()
        peer.send_message(**fields)
        sent += 1
    assert 10 < sent < 40


# --- what is kept ---


@pytest.mark.requirement("DMPR-3.1.1.12-36")
@pytest.mark.parametrize("recoverable", [False, True])
def test_a_decrypted_message_is_kept_in_clear_and_says_so(recoverable):
    harness = secured(queue={"journaling": True})
    sealed = for_us(signer="alice", recoverable=recoverable)
    assert verdict(harness, sealed) == TAKEN
    if recoverable:
        harness = harness.restarted()
    message = last(harness)
    assert (message.body, message.encrypted, message.decrypted) == (b"secret body", False, True)
    stored = serialization.deserialize(serialization.to_stored(message), stored=True)
    assert (stored.body, stored.encrypted, stored.decrypted) == (b"secret body", False, True)
    assert stored.authentication_level is AuthenticationLevel.SIG20
    assert harness.receive("DIRECT=OS:here\\private$\\orders") == b"secret body"
    journaled = last(harness, harness.find_queue().journal)
    assert (journaled.body, journaled.decrypted) == (b"secret body", True)


def test_a_plain_message_that_claims_a_privacy_level_is_refused():
    harness = secured()
    fields = Sealed(sid=ALICE, acks=NA, admin=direct("adm")).fields()
    harness.accept_session().send_message(**fields | {"privacy": 5})
    assert message_classes(harness.find_queue("adm")) == [0x8007]
