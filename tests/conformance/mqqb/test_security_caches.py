"""Caches of certificates and session keys: [MS-MQQB] 3.1.1.3, 3.1.2.10 to .13, 3.1.3.1, 3.1.6.10 to .13."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from msmqwire.constants import CryptographicProvider
from msmqwire.names import PrivateName
from msmqwire.qm.model.directory_objects import User
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.rules.expiring_cache import ExpiringCache
from tests.support.engine_harness import START_UTC, THIRD_ID, EngineHarness
from tests.support.qm.message_security import DAY, Sealed, certificate, rsa_key, user_certificates
from tests.support.qm.secured_harness import ALICE, TAKEN, configuration, recorder, secured, verdict

CERTIFICATES = [certificate("alice", START_UTC - DAY, START_UTC + 10 * DAY + number) for number in range(8)]


def receive_certificate(harness: EngineHarness, number: int, address: str = "10.0.0.2") -> None:
    peer = harness.accept_session(address=address)
    assert (
        verdict(harness, Sealed(signer="alice", sid=ALICE, certificate=CERTIFICATES[number]), peer) == TAKEN
    )


def receive_key(harness: EngineHarness, number: int, address: str = "10.0.0.2") -> None:
    sealed = Sealed(recipient=rsa_key("aes").public_key(), session_key=bytes([number]) * 32, kind=0)
    assert verdict(harness, sealed, harness.accept_session(address=address)) == TAKEN


def send_with(provider: CryptographicProvider) -> Callable[..., None]:
    level = 5 if provider is CryptographicProvider.AES else 1

    def send(harness: EngineHarness, number: int) -> None:
        protection, destination = harness.core.protection, UUID(int=number + 1)
        message = Message(body=b"x", destination=PrivateName(destination, 1), privacy_level=level)
        protection.encryption.encrypted(message, destination, {}, protection.configuration)
        harness.run()

    return send


class Kind:
    """One of the caches.

    Attributes:
        add: makes an entry of that number, by the message that needs it.
        timer, size, lifetime: the Cleanup Timer, and the settings.
    """

    def __init__(
        self, add: Callable[..., None], cache: str, timer: Timer, size: str, lifetime: str, default: int
    ) -> None:
        self.add, self._cache, self.timer = add, cache, timer
        self.size, self.lifetime, self.default = size, lifetime, default

    def cache(self, harness: EngineHarness) -> ExpiringCache[Any, Any]:
        part, name = self._cache.split(".")
        cache = getattr(getattr(harness.core.protection, part), name)
        assert isinstance(cache, ExpiringCache)
        return cache

    def harness(self, **options: Any) -> EngineHarness:
        keys = {
            UUID(int=number + 1): {provider: rsa_key(provider.name.lower()).public_key()}
            for provider in (CryptographicProvider.AES, CryptographicProvider.BASE)
            for number in range(100)
            if (provider is CryptographicProvider.BASE) == ("base" in self._cache)
        }
        harness = secured(
            users=False, security=configuration(peer_keys=keys), send_rc4=True, security_total_ms=100_000,
            security_per_origin_ms=100_000, **options,
        )  # fmt: skip
        user = User(THIRD_ID, security_identifier=ALICE, certificates=user_certificates(*CERTIFICATES))
        recorder(harness).publish(user)
        return harness


KINDS = {
    "user certificates": Kind(
        receive_certificate, "authentication.user_cert_cache", Timer.USER_CERT_CACHE_CLEANUP,
        "user_cert_cache_size", "user_cert_lifetime_ms", 1_200_000,
    ),
    "received keys": Kind(
        receive_key, "decryption.receive_symmetric_key_cache", Timer.RECEIVE_SYMMETRIC_KEY_CACHE_CLEANUP,
        "receive_symmetric_key_cache_size", "symmetric_key_short_lifetime_ms", 600_000,
    ),
    "sent keys": Kind(
        send_with(CryptographicProvider.AES), "encryption.send_symmetric_key_cache",
        Timer.SEND_SYMMETRIC_KEY_CACHE_CLEANUP, "send_symmetric_key_cache_size",
        "symmetric_key_short_lifetime_ms", 600_000,
    ),
    "sent base keys": Kind(
        send_with(CryptographicProvider.BASE), "encryption.send_base_symmetric_key_cache",
        Timer.SEND_BASE_SYMMETRIC_KEY_CACHE_CLEANUP, "send_symmetric_key_cache_size",
        "symmetric_key_short_lifetime_ms", 600_000,
    ),
}  # fmt: skip


def of(name: str, *ids: str) -> Any:
    return pytest.param(KINDS[name], marks=pytest.mark.requirement(*ids), id=name)


@pytest.mark.requirement("MQQB-3.1.5.8.3-11", "MQQB-3.1.5.8.3-21", "MQQB-3.1.7.1.5-17")
@pytest.mark.requirement("MQQB-3.1.1.3-01", "MQQB-3.1.1.3-02", "MQQB-3.1.1.3-04")
@pytest.mark.requirement(
    "MQQB-3.1.3.1-04", "MQQB-3.1.3.1-05", "MQQB-3.1.3.1-07", "MQQB-3.1.3.1-09", "MQQB-3.1.3.1-10",
    "MQQB-3.1.3.1-11", "MQQB-3.1.3.1-12", "MQQB-3.1.3.1-13", "MQQB-3.1.3.1-14", "MQQB-3.1.1.3-06",
)  # fmt: skip
def test_defaults():
    settings = Settings()
    assert (settings.user_cert_cache_size, settings.user_cert_lifetime_ms) == (53, 1_200_000)
    assert settings.receive_symmetric_key_cache_size == 127
    assert settings.send_symmetric_key_cache_size == 53
    assert settings.symmetric_key_short_lifetime_ms == 600_000
    assert settings.symmetric_key_long_lifetime_ms == 43_200_000
    preferred = (
        settings.preferred_advanced_algorithm, settings.preferred_enhanced_algorithm,
        settings.preferred_base_algorithm,
    )  # fmt: skip
    assert [cipher.algorithm for cipher in preferred] == [0x6610, 0x6801, 0x6801]
    assert not settings.send_enhanced_rc2_using_40_bit_keys
    assert not settings.reject_enhanced_rc2_using_40_bit_keys


@pytest.mark.parametrize(
    "kind",
    [
        of("user certificates", "MQQB-3.1.5.8.3-11", "MQQB-3.1.1.3-01", "MQQB-3.1.1.3.4-03"),
        of("received keys", "MQQB-3.1.5.8.3-21", "MQQB-3.1.1.3-02", "MQQB-3.1.1.3.3-06"),
        of("sent keys", "MQQB-3.1.7.1.5-17", "MQQB-3.1.1.3-04"),
        of("sent base keys", "MQQB-3.1.7.1.5-17", "MQQB-3.1.1.3-05"),
    ],
)
@pytest.mark.parametrize("size", [4, 5])
def test_the_oldest_half_makes_room(kind, size):
    harness = kind.harness(**{kind.size: size})
    cache = kind.cache(harness)
    for number in range(size):
        kind.add(harness, number)
        harness.advance(1_000)
    assert len(cache) == size
    oldest = list(cache._entries)[: size // 2]
    kind.add(harness, size)
    assert len(cache) == size - size // 2 + 1
    assert all(cache.get(key) is None for key in oldest)


@pytest.mark.parametrize(
    "kind", [of("user certificates", "MQQB-3.1.5.8.3-11"), of("received keys", "MQQB-3.1.5.8.3-21")]
)
def test_whoever_fills_a_cache_loses_its_own_entries(kind):
    harness = kind.harness(**{kind.size: 4})
    cache = kind.cache(harness)
    kind.add(harness, 0, address="10.0.0.3")
    (honest,) = list(cache._entries)
    for number in range(1, 7):
        kind.add(harness, number)
    assert cache.get(honest) is not None
    assert len(cache) <= 4


@pytest.mark.parametrize(
    "kind",
    [
        of(
            "user certificates",
            "MQQB-3.1.5.8.3-12",
            "MQQB-3.1.6.13-01",
            "MQQB-3.1.6.13-02",
            "MQQB-3.1.2.13-01",
            "MQQB-3.1.1.3-01",
            "MQQB-3.1.1.3.4-03",
        ),
        of(
            "received keys", "MQQB-3.1.5.8.3-22", "MQQB-3.1.6.10-01", "MQQB-3.1.6.10-02", "MQQB-3.1.2.10-01",
            "MQQB-3.1.1.3.3-06",
        ),
        of("sent keys", "MQQB-3.1.7.1.5-18", "MQQB-3.1.6.11-01", "MQQB-3.1.6.11-02", "MQQB-3.1.2.11-01"),
        of("sent base keys", "MQQB-3.1.6.12-01", "MQQB-3.1.6.12-02", "MQQB-3.1.2.12-01"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("lifetime", [None, 100_000])
def test_old_entries_are_removed_by_a_timer(kind, lifetime):
    harness = kind.harness(**{kind.lifetime: lifetime} if lifetime else {})
    cache, limit = kind.cache(harness), lifetime or kind.default
    assert harness.time_left(kind.timer) is None
    kind.add(harness, 0)
    assert harness.time_left(kind.timer) == limit
    harness.advance(40_000)
    kind.add(harness, 1)
    assert harness.time_left(kind.timer) == limit - 40_000  # it runs already
    harness.advance(limit - 40_000)  # the first is as old as it may be, and not older
    assert len(cache) == 2
    assert harness.time_left(kind.timer) == 60_000
    harness.advance(60_000)
    assert len(cache) == 0  # both are too old now
    assert harness.time_left(kind.timer) is None
    kind.add(harness, 2)
    harness.advance(limit // 2)
    kind.add(harness, 3)
    assert harness.time_left(kind.timer) == limit - limit // 2
    harness.advance(limit - limit // 2 + 60_000)
    if limit // 2 > 60_000:
        assert len(cache) == 1
        assert harness.time_left(kind.timer) == limit + 60_000 - (limit - limit // 2 + 60_000)


@pytest.mark.requirement("MQQB-3.1.1.3-01", "MQQB-3.1.1.3-02", "MQQB-3.1.1.3-04", "MQQB-3.1.1.3-05")
@pytest.mark.requirement("MQQB-3.1.3.1-03", "MQQB-3.1.3.1-06", "MQQB-3.1.3.1-08")
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_caches_are_empty_at_the_start(kind):
    harness = kind.harness()
    kind.add(harness, 0)
    assert len(kind.cache(harness)) == 1
    assert harness.time_left(kind.timer) is not None
    restarted = harness.restarted()
    assert len(kind.cache(restarted)) == 0
    assert restarted.time_left(kind.timer) is None


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_other_keys_empty_the_caches(kind):
    harness = kind.harness()
    kind.add(harness, 0)
    harness.core.protection.configure(harness.core.protection.configuration)
    assert len(kind.cache(harness)) == 0
    assert harness.time_left(kind.timer) is None


@pytest.mark.requirement("MQQB-3.1.1.3-06", "MQQB-3.1.3.1-11")
@pytest.mark.parametrize(
    ("name", "lifetime"),
    [
        ("received keys", 600_000),
        pytest.param("sent keys", 43_200_000, marks=pytest.mark.requirement("MQQB-3.1.7.1.5-18")),
        pytest.param("sent base keys", 600_000, marks=pytest.mark.requirement("MQQB-3.1.7.1.5-18")),
    ],
)
def test_only_sent_keys_can_have_the_long_lifetime(name, lifetime):
    kind = KINDS[name]
    harness = kind.harness(long_lived_keys=True)
    cache = kind.cache(harness)
    kind.add(harness, 0)
    assert harness.time_left(kind.timer) == lifetime
    harness.advance(lifetime)
    assert len(cache) == 1
    harness.advance(60_000)
    assert len(cache) == 0


@pytest.mark.requirement("MQQB-3.1.1.3-06")
@pytest.mark.parametrize("name", ["received keys", "sent keys", "sent base keys"])
def test_each_lifetime_can_be_set_and_is_in_milliseconds(name):
    kind, lifetimes = KINDS[name], {"symmetric_key_short_lifetime_ms": 70_000}
    harness = kind.harness(**lifetimes, symmetric_key_long_lifetime_ms=90_000, long_lived_keys=True)
    kind.add(harness, 0)
    assert harness.time_left(kind.timer) == (90_000 if name == "sent keys" else 70_000)
