"""Signatures and ciphers in requests of the control channel: whatever is wrong is told as such."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmqwire.errors import InvalidValue
from msmqwire.names import parse_format_name
from msmqwire.qm.model.enumerations import AuthenticationLevel
from msmqwire.qm.model.message import Message
from msmqwire.qm.runtime.message_protection import protect, protection_request
from msmqwire.qm.runtime.peer_keys import peer_keys_from

ONE = parse_format_name(r"DIRECT=OS:a\private$\b")
SEVERAL = parse_format_name(r"DIRECT=OS:a\private$\b,DIRECT=OS:a\private$\c")
SID = b64encode(bytes.fromhex("010100000000000507000000")).decode()
RIGHT: dict[str, Any] = {"version": "2.0", "hash": 0x800E, "sid": SID, "certificate": "Yw==", "value": "cw=="}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def test_a_request_says_what_the_message_has() -> None:
    message = Message()
    protect(message, {"signature": RIGHT, "encrypt": "aes192"}, ONE, transactional=True)
    assert (message.signature, message.sender_certificate) == (b"s", b"c")
    assert (message.authentication_level, message.priority) == (AuthenticationLevel.SIG20, 0)
    assert protection_request(message) == {"signature": RIGHT, "encrypt": "aes192"}
    several = Message()
    protect(several, {"signature": RIGHT | {"version": "3.0"}}, SEVERAL, transactional=False)
    assert (several.multiple_destination_signature, several.signature) == (b"s", b"")
    assert len(several.destinations) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        "x", [], {}, RIGHT | {"more": 1}, RIGHT | {"version": []}, RIGHT | {"version": "2"},
        RIGHT | {"hash": {}}, RIGHT | {"hash": True},
        RIGHT | {"hash": 0x800D}, RIGHT | {"hash": 32782.0}, RIGHT | {"sid": "AA=="},
        RIGHT | {"value": None},
        RIGHT | {"value": "é"}, RIGHT | {"certificate": "!"},
    ],
)  # fmt: skip
def test_a_wrong_signature_is_an_invalid_value(wrong: object) -> None:
    with pytest.raises(InvalidValue) as error:
        protect(Message(), {"signature": wrong}, ONE, transactional=False)
    assert error.value.path == "signature"


def test_a_signature_for_one_queue_does_not_go_to_several() -> None:
    with pytest.raises(InvalidValue, match=r"has a signature 3\.0"):
        protect(Message(), {"signature": RIGHT}, SEVERAL, transactional=False)


@settings(max_examples=30)
@given(JSON, JSON, st.sampled_from(sorted(RIGHT)))
def test_nothing_else_is_raised(one: object, other: object, name: str) -> None:
    for request in ({"signature": one}, {"encrypt": one}, {"signature": RIGHT | {name: other}}):
        try:
            protect(Message(), request, ONE, transactional=False)
        except InvalidValue as error:
            assert error.path in ("signature", "encrypt")  # noqa: PT017
    for request in ({"queue_manager": one, "keys": other}, {"keys": one}):
        with pytest.raises(InvalidValue):
            peer_keys_from(request)
