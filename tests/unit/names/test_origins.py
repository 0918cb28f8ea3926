"""Origins of peers: the addresses that limits count as one."""

from __future__ import annotations

import pytest

from msmqwire.names.origins import LOOPBACK_ORIGIN, UNKNOWN_ORIGIN, origin_of, speaker_of
from tests.support.many_computers import many_computers


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::2:0:0:2", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("beta", "beta"),
        ("", UNKNOWN_ORIGIN),
        ("126.255.255.255", "126.255.255.255"),
        ("128.0.0.0", "128.0.0.0"),
    ],
)
def test_an_origin_is_an_address_or_a_network(address: str, origin: str) -> None:
    assert origin_of(address) == origin


@pytest.mark.parametrize("address", ["127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.9"])
def test_the_loopback_is_one_origin(address: str) -> None:
    assert origin_of(address) == LOOPBACK_ORIGIN


def test_a_test_may_tell_addresses_of_the_loopback_apart() -> None:
    with many_computers():
        assert origin_of("127.0.0.9") == "127.0.0.9"
    assert origin_of("127.0.0.9") == LOOPBACK_ORIGIN


@pytest.mark.parametrize(
    ("address", "speaker"),
    [
        ("127.0.0.9", "127.0.0.9"),
        ("::1", "::1"),
        ("10.0.0.1", "10.0.0.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("", ""),
    ],
)
def test_a_peer_of_the_loopback_speaks_for_its_address(address: str, speaker: str) -> None:
    assert speaker_of(address) == speaker
