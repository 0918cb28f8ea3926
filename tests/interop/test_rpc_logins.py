"""Attempts at passwords: who may try, and for how long not."""

from __future__ import annotations

import pytest

from msmqwire.qm.runtime.limits import Limits, RpcTraffic
from msmqwire.qm.runtime.rpc import logins as rpc_logins
from msmqwire.qm.runtime.rpc.logins import LoginAttempts
from msmqwire.qm.runtime.rpc.security import acceptors
from msmqwire.rpc.constants import AuthLevel, AuthType
from tests.support.rpc.rpc_pair import PASSWORD, USER, Pair
from tests.support.rpc.rpc_server import ECHO
from tests.support.rpc.rpc_users import USERS

HERE, THERE = "10.0.0.7", "10.0.0.8"
LIMITS = Limits(rpc_logins_per_user=2, rpc_logins_per_peer=3, rpc_logins_s=60)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lets_in(
    attempts: LoginAttempts, address: str, password: str, user: str = USER, **options: object
) -> bool:
    """Whether a call can be made with a password."""
    pair = Pair(
        AuthLevel.PKT_PRIVACY,
        user=user,
        password=password,
        acceptor=acceptors(USERS, attempts, address),
        **options,
    )
    if pair.client.bound:  # SPNEGO has an answer to a wrong password
        pair.client.call(ECHO, b"")
        pair.exchange()
    return not pair.server.closed


@pytest.mark.parametrize("auth_type", [AuthType.WINNT, AuthType.GSS_NEGOTIATE])
def test_wrong_passwords_block_the_right_one_for_a_while(clock: Clock, auth_type: AuthType) -> None:
    attempts = LoginAttempts(LIMITS, traffic := RpcTraffic(), clock)
    for _ in range(2):
        assert not lets_in(attempts, HERE, "wrong", auth_type=auth_type)
    assert not lets_in(attempts, HERE, PASSWORD, auth_type=auth_type)
    assert (traffic.logins_failed, traffic.logins_refused) == (2, 1)
    assert lets_in(attempts, THERE, PASSWORD, auth_type=auth_type)
    clock.now += 29.9
    assert not lets_in(attempts, HERE, PASSWORD, auth_type=auth_type)
    clock.now += 0.2
    assert lets_in(attempts, HERE, PASSWORD, auth_type=auth_type)
    assert not lets_in(attempts, HERE, "wrong", auth_type=auth_type)
    assert lets_in(attempts, HERE, PASSWORD, auth_type=auth_type)  # the first failures are forgiven


def test_one_network_counts_as_one(clock: Clock) -> None:
    attempts = LoginAttempts(LIMITS, clock=clock)
    for host in range(2):
        assert not lets_in(attempts, f"2001:db8:0:1::{host + 1}", "wrong")
    assert not attempts.allows("2001:db8:0:1:ffff::9", USER)
    assert attempts.allows("2001:db8:0:2::1", USER)


def test_other_users_of_an_origin_may_try_up_to_its_limit(clock: Clock) -> None:
    attempts = LoginAttempts(LIMITS, clock=clock)
    for _ in range(2):
        attempts.failed(HERE, USER, USER)
    assert attempts.allows(HERE, r"LAB\bob")
    assert not lets_in(attempts, HERE, PASSWORD, user=r"LAB\nobody")
    assert not attempts.allows(HERE, r"LAB\bob")
    assert not attempts.allows(HERE, None)
    attempts.succeeded(HERE, r"LAB\bob")
    assert not attempts.allows(HERE, r"LAB\bob")
    clock.now += 20.1
    assert attempts.allows(HERE, r"LAB\bob")


def test_what_is_remembered_has_an_end(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc_logins, "KEYS_MAX", 4)
    attempts = LoginAttempts(LIMITS, clock=clock)
    for number in range(100):
        attempts.failed(HERE, None, f"LAB\\{number}")
    assert len(attempts) == 1
    for number in range(5):
        attempts.failed(f"10.0.1.{number}", None, "")
    assert len(attempts) == 4
    assert attempts.allows(HERE, None)  # forgotten
