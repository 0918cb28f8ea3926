"""Changes of a queue's rights in words, judged by the access check itself."""

from __future__ import annotations

import pytest

from msmqwire.errors import InvalidValue
from msmqwire.headers.security_descriptor import DescriptorParts, build_descriptor
from msmqwire.qm.model.access import access_allowed, default_security
from msmqwire.qm.model.caller import Caller, user_sid
from msmqwire.qm.runtime.queue_access import (
    CHANGES_MAX,
    RIGHTS,
    access_changes,
    access_json,
    changed_access,
)

ANNE, BOB, ANYBODY = r"HOME\anne", r"HOME\bob", ""
DEFAULT = default_security(None, anonymous_may_send=True)
ANNES_SID = "S-1-5-21-" + "-".join(
    str(int.from_bytes(user_sid(ANNE)[at : at + 4], "little")) for at in range(12, 28, 4)
)
"""A user that only a SID names."""


def changed(descriptor: bytes, deny: list[str] | None = None, allow: list[str] | None = None) -> bytes:
    return changed_access(
        descriptor, access_changes(deny or [], "deny"), access_changes(allow or [], "allow")
    )


def may(descriptor: bytes, name: str, right: str) -> bool:
    return access_allowed(descriptor, Caller(name).token, RIGHTS[right][0])


def rights(descriptor: bytes, name: str) -> set[str]:
    return {right for right in ("receive", "peek", "send") if may(descriptor, name, right)}


def test_what_nobody_has_changed() -> None:
    for name in (ANNE, ANYBODY):
        assert rights(DEFAULT, name) == {"receive", "peek", "send"}
    shown = access_json(DEFAULT)
    assert shown["owner"] == "callers"
    assert shown["allow"] == {
        "everyone": ["send", "get_properties", "get_permissions"], "anonymous": ["send"], "callers": ["all"],
    }  # fmt: skip
    assert shown["deny"] == {}


@pytest.mark.requirement("MQRR-2.1-07")
def test_rights_of_users() -> None:
    one = changed(DEFAULT, deny=[rf"{ANNE}:receive"])
    assert rights(one, r"home\ANNE") == {"peek", "send"}
    assert rights(one, BOB) == rights(one, ANYBODY) == {"receive", "peek", "send"}
    two = changed(one, deny=["callers:all"], allow=[rf"{BOB}:peek", "anonymous:receive"])
    assert rights(two, ANNE) == {"send"}
    assert rights(two, BOB) == {"peek", "send"}
    assert rights(two, ANYBODY) == {"receive", "peek", "send"}
    assert access_json(two)["deny"] == {ANNE: ["receive"]}
    assert access_json(two)["allow"] == {
        "everyone": ["send", "get_properties", "get_permissions"], BOB: ["peek"],
        "anonymous": ["receive", "send"],
    }  # fmt: skip
    three = changed(two, allow=[f"{ANNES_SID}:receive"])
    assert rights(three, ANNE) == {"receive", "peek", "send"}
    assert access_json(three)["deny"] == {}
    assert changed(three, allow=[f"{ANNE}:none", f"{BOB}:none", "callers:all", "anonymous:none"]) == changed(
        DEFAULT, allow=["callers:none", "callers:all", "anonymous:none"]
    )


def test_what_is_denied_goes_before_what_anybody_is_allowed() -> None:
    one = changed(DEFAULT, deny=["everyone:send", "anonymous:all"], allow=[f"{BOB}:send"])
    assert rights(one, ANNE) == rights(one, BOB) == {"receive", "peek"}
    assert rights(one, ANYBODY) == set()


def test_a_queue_without_restrictions_gets_them() -> None:
    unrestricted = build_descriptor(DescriptorParts())
    assert access_json(unrestricted) == {
        "owner": None, "allow": {"everyone": ["all"], "anonymous": ["all"]}, "deny": {},
    }  # fmt: skip
    one = changed(unrestricted, deny=[f"{ANNE}:peek"])
    assert rights(one, ANNE) == {"send"}
    assert rights(one, BOB) == rights(one, ANYBODY) == {"receive", "peek", "send"}


def test_a_descriptor_has_an_end() -> None:
    one, two = ([f"HOME\\{'n' * 200}{at + number}:peek" for number in range(CHANGES_MAX)] for at in (0, 100))
    descriptor = changed(DEFAULT, allow=one)
    assert len(access_json(descriptor)["allow"]) == 3 + CHANGES_MAX
    with pytest.raises(InvalidValue, match="too many users"):
        changed(descriptor, allow=two)
