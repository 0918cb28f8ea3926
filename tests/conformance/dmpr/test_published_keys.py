"""The public keys of a queue manager, in its attributes and in the directory: [MS-MQDMPR] 3.1.3."""

from __future__ import annotations

from math import gcd, lcm
from typing import Any

import pytest

from msmqwire.errors import InvalidValue
from msmqwire.qm.directory.embedded import EmbeddedDirectory
from msmqwire.qm.model.elements import QueueManager
from msmqwire.qm.runtime.new_keys import new_key
from msmqwire.qm.security.published_keys import key_list, keys_of
from tests.support.engine_harness import OWN_ID, EngineHarness
from tests.support.handmade import mqdspublickey, mqdspublickeys
from tests.support.qm.message_security import AES_PROVIDER, BASE, ENHANCED, public_blob, published, rsa_key
from tests.support.qm.secured_harness import configuration

SIGNING = {
    provider: rsa_key(f"sign {provider.name}").public_key() for provider in configuration().exchange_keys
}
ENCRYPTION_LIST = published(base=rsa_key("base"), enhanced=rsa_key("enhanced"), aes=rsa_key("aes"))
SIGNING_LIST = mqdspublickeys(
    [
        mqdspublickey(public_blob(rsa_key(f"sign {name}"), 0x2400), provider, kind)
        for name, provider, kind in (
            ("BASE", BASE, 1),
            ("ENHANCED", ENHANCED, 1),
            ("AES", AES_PROVIDER, 0x18),
        )
    ]
)


def directory(**attributes: Any) -> EmbeddedDirectory:
    embedded = EmbeddedDirectory()
    embedded.create_directory_object(QueueManager(OWN_ID, computer_name="here", **attributes))
    return embedded


def lists_of(manager: Any) -> tuple[bytes, bytes]:
    return manager.public_encryption_key_list, manager.public_signing_key_list


def stored(embedded: EmbeddedDirectory) -> Any:
    return embedded.read_directory("QueueManager", [("Identifier", "EQUALS", OWN_ID)]).object


@pytest.mark.requirement("MQMQ-2.2.1-03", "MQMQ-2.2.1-05")
@pytest.mark.requirement(
    "DMPR-3.1.3-11", "DMPR-3.1.3-12", "DMPR-3.1.3-13", "DMPR-3.1.1.1-23", "DMPR-3.1.1.1-24",
    "MQQB-3.1.7.1.5-05", "MQMQ-2.2.20.6-34",
)  # fmt: skip
def test_the_keys_are_published_at_the_start():
    """One of each provider; what a list of an earlier start says is replaced."""
    embedded = directory(public_encryption_key_list=b"an old list")
    harness = EngineHarness(directory=embedded, security=configuration(signing_keys=SIGNING))
    for manager in (harness.core.queue_manager, stored(embedded)):
        assert lists_of(manager) == (ENCRYPTION_LIST, SIGNING_LIST)
    restarted = harness.restarted(security=configuration())
    assert lists_of(restarted.core.queue_manager) == (ENCRYPTION_LIST, SIGNING_LIST)


def test_without_keys_the_lists_stay_as_they_are():
    embedded = directory(public_encryption_key_list=b"of somebody else")
    EngineHarness(directory=embedded)
    assert lists_of(stored(embedded)) == (b"of somebody else", b"")


def test_other_keys_are_published_at_once():
    embedded = directory()
    harness = EngineHarness(directory=embedded, security=configuration())
    (aes,) = [provider for provider in configuration().exchange_keys if provider.name == "AES"]
    new = configuration(exchange_keys={aes: (rsa_key("new"), rsa_key("aes"))})
    harness.core.protection.configure(new)
    assert stored(embedded).public_encryption_key_list == published(aes=rsa_key("new"))


def test_the_keys_are_published_when_the_directory_is_back():
    embedded = directory(public_encryption_key_list=b"an old list")
    embedded.connected = False
    harness = EngineHarness(directory=embedded, security=configuration())
    embedded.connected = True
    assert stored(embedded).public_encryption_key_list == b"an old list"
    harness.advance(60_000)
    assert stored(embedded).public_encryption_key_list == ENCRYPTION_LIST
    assert harness.core.queue_manager.public_encryption_key_list == ENCRYPTION_LIST


@pytest.mark.requirement("MQQB-3.1.7.1.5.2-01")
def test_published_keys_are_read_again():
    keys = keys_of(ENCRYPTION_LIST)
    assert {provider.name: key for provider, key in keys.items()} == {
        name.upper(): rsa_key(name).public_key() for name in ("base", "enhanced", "aes")
    }
    assert key_list(keys, 0xA400) == ENCRYPTION_LIST
    assert keys_of(b"") == keys_of(ENCRYPTION_LIST[:-1]) == keys_of(b"x") == {}


def test_keys_that_can_not_be_used_are_left_out():
    good, broken = public_blob(rsa_key("aes")), public_blob(rsa_key("aes"))[:-1]
    packed = mqdspublickeys(
        [
            mqdspublickey(broken, BASE),
            mqdspublickey(good, "Another Provider"),
            mqdspublickey(good, AES_PROVIDER, 0x18),
            mqdspublickey(public_blob(rsa_key("base")), AES_PROVIDER, 0x18),
        ]
    )
    assert [*keys_of(packed).values()] == [rsa_key("aes").public_key()]


def test_a_key_that_no_blob_can_hold_is_refused():
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

    numbers = rsa_key("aes").public_key().public_numbers()
    wide = RSAPublicNumbers(2**40 + 1, numbers.n).public_key()
    (aes,) = [provider for provider in configuration().exchange_keys if provider.name == "AES"]
    with pytest.raises(InvalidValue):
        key_list({aes: wide}, 0xA400)


def _is_prime(number: int) -> bool:
    """Miller-Rabin with 40 bases, as many as FIPS 186 has for primes of this size and more."""
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in range(2, 42):
        power = pow(base, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True


@pytest.mark.requirement("DMPR-5.1-02")
@pytest.mark.parametrize("bits", [1024, 2048])
def test_new_keys_are_strong_by_fips_186(bits):
    """The criteria of FIPS 186 5.1 and appendix B.3.1 for the primes and exponents of an RSA key."""
    keys = [new_key(bits).private_numbers() for _ in range(3)]
    for key in keys:
        p, q, d, e, n = key.p, key.q, key.d, key.public_numbers.e, key.public_numbers.n
        assert (p * q, n.bit_length()) == (n, bits)
        assert e % 2 == 1
        assert 2**16 < e < 2**256
        assert _is_prime(p)
        assert _is_prime(q)
        assert gcd(p - 1, e) == gcd(q - 1, e) == 1
        assert all(prime**2 >= 2 ** (bits - 1) for prime in (p, q))  # the root of 2, by 2 ** (bits/2 - 1)
        assert abs(p - q) > 2 ** (bits // 2 - 100)
        assert 2 ** (bits // 2) < d < (p - 1) * (q - 1)  # OpenSSL does not reduce it further
        assert e * d % lcm(p - 1, q - 1) == 1
    primes = [prime for key in keys for prime in (key.p, key.q)]
    assert len(set(primes)) == len(primes)
