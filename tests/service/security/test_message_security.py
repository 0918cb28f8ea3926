"""Messages that are signed and encrypted between two servers, through the public commands."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.qm.secured_servers import BITS, SID, Pair, certificate_of, done, protection, secured_pair
from tests.support.running import ORDERS, called, process

REFUSED = "NACK_BAD_SIGNATURE"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with secured_pair(tmp_path_factory.mktemp("pair")) as pair:
        yield pair


@pytest.fixture
def strict(pair: Pair) -> Iterator[Pair]:
    """The queue there takes signed and encrypted messages only."""
    change = ("queue", "set", ORDERS, "--data", pair.there.data)
    shown = called(*change, "--authenticated", "--privacy", "body").one
    assert (shown["authenticated"], shown["privacy"]) == (True, "body")
    yield pair
    done(*change, "--not-authenticated", "--privacy", "optional")


@pytest.mark.parametrize("version", ["1.0", "2.0", "3.0"])
@pytest.mark.parametrize("hash_name, cipher", [("sha256", "aes128"), ("sha512", "aes192")])
def test_a_folder_signs_with_its_certificate_and_encrypts(
    strict: Pair, version: str, hash_name: str, cipher: str
) -> None:
    strict.sent(
        "--body", "secret", "--sign", "--signature", version, "--hash", hash_name, "--encrypt", cipher,
        "--peer-key", strict.peer_key, "--label", "order",
    )  # fmt: skip
    message = strict.received()
    assert protection(message) == (b"secret", True, version, cipher)
    assert b64decode(message["sender_certificate"]) == strict.cert.read_bytes()
    assert (message["sender"], message["label"]) == (SID, "order")


@pytest.mark.parametrize("cipher", ["aes256", "rc2", "rc4"])
def test_a_program_signs_with_its_files_and_encrypts(strict: Pair, cipher: str) -> None:
    options = () if cipher == "aes256" else ("--legacy",)
    sent = strict.send_directly(
        "--body", "secret", *strict.signing, "--encrypt", cipher, "--peer-key", strict.peer_key, *options
    )
    assert sent.one["identifier"]
    assert protection(strict.received()) == (b"secret", True, "2.0", cipher)


def test_plain_messages_are_plain(pair: Pair) -> None:
    pair.sent("--body", "plain")
    message = pair.received()
    assert protection(message) == (b"plain", False, None, None)
    assert message["sender_certificate"] is None


def test_transactional_messages_are_signed_as_they_are_sent(pair: Pair) -> None:
    ledger = r"private$\ledger"
    created = called("queue", "create", ledger, "--data", pair.there.data, "--transactional").one
    options = ("--transactional", "--encrypt", "aes256", "--peer-key", pair.peer_key)
    pair.sent("--body", "first", "--sign", *options, to=created["format_name"])
    assert protection(pair.received(ledger)) == (b"first", True, "2.0", "aes256")
    pair.sent_directly("--body", "second", *pair.signing, *options, to=created["format_name"])
    assert protection(pair.received(ledger)) == (b"second", True, "2.0", "aes256")


@pytest.mark.requirement("MQQB-3.1.7.1.5-02")
def test_direct_names_take_signatures_but_no_encryption(pair: Pair) -> None:
    direct = rf"DIRECT=TCP:{pair.there.address}\{ORDERS}"
    port = ("--port", str(pair.there.port))
    pair.sent_directly("--body", "direct", *pair.signing, *port, to=direct)
    assert protection(pair.received()) == (b"direct", True, "2.0", None)
    for refused in (
        pair.send_directly("--encrypt", "aes256", *port, to=direct),
        pair.send("--encrypt", "aes256", to=direct),
    ):
        error = refused.error(69)
        assert error["error"] == "a body is encrypted for queues with a PRIVATE= or PUBLIC= name only"
        assert error["name"] == "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"


def test_what_the_queue_does_not_take_is_refused(strict: Pair) -> None:
    ask = ("--ack", "full_reach_queue", "--body", "x")
    unsigned = strict.send_directly(*ask, "--encrypt", "aes256", "--peer-key", strict.peer_key)
    assert (unsigned.status, REFUSED in unsigned.err) == (69, True), unsigned
    plain = strict.send_directly(*ask, *strict.signing)
    assert (plain.status, "NACK_BAD_ENCRYPTION" in plain.err) == (69, True), plain


def test_a_setting_takes_certificates_that_nobody_has_registered(tmp_path: Path) -> None:
    cert, key = certificate_of(tmp_path / "elsewhere", tmp_path)
    (tmp_path / "pair").mkdir()
    with secured_pair(tmp_path / "pair", reject_unknown_certificates=False) as lenient:
        lenient.sent_directly("--body", "who", "--sign", "--cert", cert, "--key", key, "--sid", SID)
        message = lenient.received()
    assert protection(message) == (b"who", False, "2.0", None)
    assert b64decode(message["sender_certificate"]) == cert.read_bytes()


def test_a_certificate_that_nobody_has_registered_is_refused(pair: Pair, tmp_path: Path) -> None:
    cert, key = certificate_of(tmp_path / "elsewhere", tmp_path)
    signing = ("--sign", "--cert", cert, "--key", key, "--sid", SID)
    refused = pair.send_directly("--body", "who", "--ack", "full_reach_queue", *signing)
    assert (refused.status, REFUSED in refused.err) == (69, True), refused
    there = ("--data", pair.there.data)
    done("queue", "set", ORDERS, "--authenticated", *there)
    refused = pair.send_directly("--body", "who", "--ack", "full_reach_queue", *signing)
    assert (refused.status, REFUSED in refused.err) == (69, True), refused
    done("cert", "register", "--cert", cert, "--sid", SID, *there)  # used at once
    pair.sent_directly("--body", "known", *signing)
    assert protection(pair.received()) == (b"known", True, "2.0", None)
    (revoked,) = called("cert", "revoke", "--cert", cert, *there).lines
    assert revoked["revoked"]
    done("queue", "set", ORDERS, "--not-authenticated", *there)
    refused = pair.send_directly("--body", "who", "--ack", "full_reach_queue", *signing)
    assert (refused.status, REFUSED in refused.err) == (69, True), refused
    error = called("cert", "register", "--cert", cert, *there).error(65)
    assert error["error"] == f"{cert}: the certificate is revoked"


def test_a_user_has_the_rights_of_its_groups(pair: Pair) -> None:
    group, there = "S-1-5-21-1-2-3-2001", ("--data", pair.there.data)
    ask = ("--body", "x", "--ack", "full_reach_queue", *pair.signing)
    done("queue", "set", ORDERS, *there, "--deny", f"{group}:send")
    pair.sent_directly(*ask)
    assert protection(pair.received()) == (b"x", True, "2.0", None)
    done("cert", "register", "--cert", pair.cert, "--sid", SID, "--group", group, *there)
    refused = pair.send_directly(*ask)
    assert (refused.status, "NACK_ACCESS_DENIED" in refused.err) == (69, True), refused
    done("queue", "set", ORDERS, *there, "--deny", f"{group}:none")
    pair.sent_directly(*ask)
    assert protection(pair.received()) == (b"x", True, "2.0", None)


def test_open_readings_can_be_switched_at_both_ends(pair: Pair, tmp_path: Path) -> None:
    signed, big = ("--body", "big", *pair.signing, "--ack", "full_reach_queue"), "signature_bytes=big"
    refused = pair.send_directly(*signed, "--reading", big)
    assert (refused.status, REFUSED in refused.err) == (69, True), refused
    there = tmp_path / "there"
    done("cert", "register", "--cert", pair.cert, "--sid", SID, "--data", there)
    with process(
        there, "--queue", ORDERS, "--insecure-nacks", "--reading", big, address="127.0.0.36"
    ) as server:
        to = ("send", rf"DIRECT=TCP:{server.address}\{ORDERS}", "--port", str(server.port), "--timeout", "20")
        refused = called(*to, *signed)
        assert (refused.status, REFUSED in refused.err) == (69, True), refused
        done(*to, *signed, "--reading", big)
        message = called("receive", ORDERS, "--data", there, "--timeout", "20").one
    assert protection(message) == (b"big", True, "2.0", None)


@pytest.mark.parametrize(
    "wrong, why",
    [
        (("--sign", "--reading", "signature_bytes"), "is not NAME=VALUE"),
        (("--sign", "--reading", "signature_bytes=middle"), "there are little and big"),
        (("--reading", "signature_bytes=big"), "it needs --sign"),
    ],
)
def test_wrong_readings_are_wrong_usage(pair: Pair, wrong: tuple[str, ...], why: str) -> None:
    refused = pair.send("--body", "x", *wrong)
    assert (refused.status, why in " ".join(refused.err.replace("│", " ").split())) == (2, True), refused


def test_keys_change_while_servers_run(pair: Pair) -> None:
    """Bodies under the earlier key are still decrypted; those under the new one at once."""
    pair.sent("--body", "earlier", "--encrypt", "aes256", "--peer-key", pair.peer_key)
    assert protection(pair.received()) == (b"earlier", False, None, "aes256")
    there = ("--data", pair.there.data)
    called("key", "create", *there, *BITS)
    pair.sent("--body", "still", "--encrypt", "aes128")
    assert protection(pair.received()) == (b"still", False, None, "aes128")
    before = pair.peer_key.read_text()
    pair.peer_key.write_text(called("key", "show", "--public", *there).out)
    assert pair.peer_key.read_text() != before
    rows = called("key", "list", *there).lines
    assert [row["current"] for row in rows] == [True] * 6 + [False] * 6
    pair.sent("--body", "later", "--encrypt", "aes192", "--peer-key", pair.peer_key)
    assert protection(pair.received()) == (b"later", False, None, "aes192")


def test_encryption_without_a_peer_key_fails_with_the_reason(pair: Pair) -> None:
    refused = pair.send_directly("--body", "x", "--recoverable", "--encrypt", "aes256")
    assert (refused.status, json.loads(refused.out)["outcome"]) == (69, "refused")
    assert "no public key of the queue manager" in json.loads(refused.err)["error"]


def test_legacy_algorithms_must_be_allowed_twice_in_a_folder(pair: Pair) -> None:
    for option in (("--encrypt", "rc2"), ("--encrypt", "rc4"), ("--sign", "--hash", "md5")):
        refused = pair.send("--body", "x", *option)
        assert (refused.status, "--legacy" in refused.err) == (2, True), refused
    error = pair.send("--encrypt", "rc4", "--legacy", "--peer-key", pair.peer_key).error(69)
    assert error["error"] == "rc4 is broken and switched off (send_rc4)"
    error = pair.send("--sign", "--hash", "md5", "--legacy").error(69)
    assert error["error"].endswith("switched off (send_md5)")
    sent = pair.send_directly("--body", "md5", *pair.signing, "--hash", "md5", "--legacy")
    assert sent.one["identifier"]
    assert protection(pair.received()) == (b"md5", True, "2.0", None)


def test_sha1_goes_with_a_warning(pair: Pair) -> None:
    sent = pair.send("--body", "sha1", "--sign", "--hash", "sha1")
    assert sent.status == 0
    assert sent.err.startswith('{"warning": "SHA-1 is broken')
    assert protection(pair.received()) == (b"sha1", True, "2.0", None)
