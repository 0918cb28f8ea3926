"""``msmqwire key`` and ``msmqwire cert``: the files of a folder, and what the commands refuse."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from ssl import PEM_cert_to_DER_cert
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from msmqwire.qm.model.caller import user_sid
from msmqwire.qm.model.directory_objects import User
from msmqwire.qm.runtime.data_folder import DIRECTORY, KEYS
from msmqwire.qm.runtime.key_ring import KeyFile
from msmqwire.qm.runtime.message_signers import account_name
from msmqwire.qm.runtime.named_values import named_values
from msmqwire.qm.runtime.server import Server
from msmqwire.qm.runtime.user_certificates import open_users, registered_certificates
from tests.support.qm.message_security import public_blob
from tests.support.qm.secured_servers import BITS, SID, certificate_of, done
from tests.support.running import ORDERS, called, command, options, served

PEER = "5f9a1f6e-31c5-4f0c-9d1d-0a7b8f2c6d01"
PROVIDERS = ["aes", "enhanced", "base"]
PRIVATE = generate_private_key(65537, 1024)
PEM = PRIVATE.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
DER = PRIVATE.private_bytes(Encoding.DER, PrivateFormat.TraditionalOpenSSL, NoEncryption())
LOCKED = PRIVATE.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
PUBLIC = PRIVATE.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "alpha"


def written(folder: Path, content: bytes) -> Path:
    file = folder / "file"
    file.write_bytes(content)
    return file


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def test_keys_of_a_folder_that_has_no_queue_manager_yet(data: Path) -> None:
    created = called("key", "create", "--data", data, *BITS).lines
    assert [(row["provider"], row["use"]) for row in created] == [
        (provider, use) for use in ("exchange", "signature") for provider in PROVIDERS
    ]
    assert {row["bits"] for row in created} == {1024}
    assert called("key", "list", "--data", data).lines == created
    assert (mode(data), mode(data / KEYS)) == (0o700, 0o600)
    lines = [line.split() for line in called("key", "show", "--public", "--data", data).out.splitlines()]
    assert [line[:2] for line in lines] == [[row["provider"], row["use"]] for row in created]
    ring = KeyFile(data).read()
    for line, own in zip(lines, ring.keys, strict=True):
        from msmqwire.crypto.keys import read_private_key

        kind = {"exchange": 0xA400, "signature": 0x2400}[line[1]]
        assert bytes.fromhex(line[2]) == public_blob(read_private_key(own.private_key), kind)
    one = called("key", "create", "--data", data, *BITS, "--provider", "base").lines
    assert [(row["provider"], row["current"]) for row in one] == [("base", True)] * 2
    listed = called("key", "list", "--data", data).lines
    assert [row["current"] for row in listed if row["provider"] == "base"] == [True, True, False, False]


@pytest.mark.parametrize("content", [PEM, DER], ids=["PEM", "DER"])
def test_a_private_key_is_taken_over(data: Path, content: bytes) -> None:
    file = written(data.parent, content)
    rows = called("key", "import", file, "--data", data, "--use", "signature", "--provider", "aes").lines
    assert [(row["provider"], row["use"], row["bits"]) for row in rows] == [("aes", "signature", 1024)]
    shown = called("key", "show", "--public", "--data", data).out
    assert shown == f"aes signature {public_blob(PRIVATE, 0x2400).hex()}\n"
    assert mode(data / KEYS) == 0o600


@pytest.mark.parametrize(
    "content",
    [public_blob(PRIVATE), public_blob(PRIVATE).hex().encode() + b"\n", PUBLIC, PEM],
    ids=["blob", "hex", "PEM", "private"],
)
def test_the_key_of_another_queue_manager_is_taken_over(data: Path, content: bytes) -> None:
    file = written(data.parent, content)
    rows = called("key", "import", file, "--peer", PEER, "--data", data).lines
    assert [(row["peer"], row["provider"], row["use"]) for row in rows] == [
        (PEER, provider, "exchange") for provider in PROVIDERS
    ]
    assert set(KeyFile(data).read().peers[UUID(PEER)].values()) == {public_blob(PRIVATE)}


def test_what_show_has_printed_has_its_providers(data: Path) -> None:
    text = (
        f"base exchange {public_blob(PRIVATE).hex()}\nbase signature {public_blob(PRIVATE, 0x2400).hex()}\n"
    )
    file = written(data.parent, text.encode())
    (row,) = called("key", "import", file, "--peer", PEER, "--data", data).lines
    assert row["provider"] == "base"


@pytest.mark.parametrize(
    "content",
    [b"", b"nonsense", LOCKED, PUBLIC, b"0" * 300_000],
    ids=["empty", "nonsense", "locked", "public", "too long"],
)
def test_a_wrong_private_key_is_refused_and_changes_nothing(data: Path, content: bytes) -> None:
    file = written(data.parent, content)
    assert called("key", "import", file, "--data", data).error(65)
    assert not (data / KEYS).exists()


@pytest.mark.parametrize(
    "arguments, status",
    [
        (("key", "list"), 66),
        (("key", "show"), 2),
        (("key", "show", "--public"), 66),
        (("key", "create", "--bits", "512"), 2),
        (("key", "create", "--provider", "des"), 2),
        (("key", "import", "/nothing/here"), 66),
        (("key", "import", "/nothing/here", "--peer", "x"), 2),
        (("key", "import", "/nothing/here", "--peer", PEER, "--provider", "aes"), 2),
        (("cert", "list"), 66),
        (("cert", "create", "--sid", "S-2"), 65),
        (("cert", "create", "--days", "0"), 2),
        (("cert", "register", "--cert", "/nothing/here"), 66),
        (("cert", "revoke"), 2),
        (("cert", "revoke", "--digest", "00"), 2),
        (("cert", "revoke", "--cert", "/nothing/here"), 66),
        (("send", "PRIVATE=" + PEER + "\\1", "--sign"), 65),
    ],
)
def test_wrong_usage_and_missing_files(data: Path, arguments: tuple[str, ...], status: int) -> None:
    if arguments[0] == "send":
        called("queue", "create", ORDERS, "--data", data)
        assert "has no certificate to sign with" in called(*arguments, "--data", data).error(65)["error"]
        return
    run = called(*arguments, "--data", data)
    assert (run.status, run.out) == (status, "")
    assert run.err


@pytest.mark.parametrize(
    "options, hint",
    [
        (("--sign",), "--cert"),
        (("--sign", "--cert", "x"), "--key"),
        (("--signature", "2.0"), "--signature"),
        (("--signature", "4.0", "--sign"), "--signature"),
        (("--hash", "sha384", "--sign"), "--hash"),
        (("--sid", SID), "--sid"),
        (("--peer-key", "x"), "--peer-key"),
        (("--encrypt", "des"), "--encrypt"),
        (("--encrypt", "rc4"), "--legacy"),
        (("--hash", "md5"), "--legacy"),
    ],
)
def test_options_of_send_that_do_not_go_together(options: tuple[str, ...], hint: str) -> None:
    run = called("send", r"DIRECT=OS:x\private$\y", *options)
    assert (run.status, run.out) == (2, "")
    assert hint in run.err


def test_certificates(data: Path) -> None:
    pem = data.parent / "own.pem"
    own = done("cert", "create", "--data", data, "--out", pem, *BITS)
    assert PEM_cert_to_DER_cert(pem.read_text()) == KeyFile(data).read().certificates[0].certificate
    assert own["subject"].startswith("CN=")
    assert (own["key"], own["revoked"]) == (True, False)
    assert mode(data / KEYS) == mode(data / DIRECTORY) == 0o600
    cert, _ = certificate_of(data.parent / "other", data.parent)
    other = done("cert", "register", "--cert", cert, "--sid", SID, "--data", data)
    assert (other["sid"], other["key"], other["revoked"]) == (SID, False, False)
    assert done("cert", "register", "--cert", cert, "--sid", SID, "--data", data) == other
    assert called("cert", "list", "--data", data).lines == [own, other]
    directory = open_users(data)
    assert directory is not None
    users = list(registered_certificates(directory))
    directory.close()
    assert users[0].sid == user_sid(account_name())
    assert users[1].certificate == cert.read_bytes()
    (revoked,) = called("cert", "revoke", "--digest", own["digest"], "--data", data).lines
    assert revoked == own | {"revoked": True}
    unknown = "00" * 16
    (row,) = called("cert", "revoke", "--digest", unknown, "--data", data).lines
    assert (row["digest"], row["sid"], row["revoked"]) == (unknown, None, True)
    assert [row["revoked"] for row in called("cert", "list", "--data", data).lines] == [True, False, True]


@pytest.fixture
def wide(data: Path) -> Path:
    called("queue", "create", ORDERS, "--data", data)
    called("key", "create", "--data", data, *BITS)
    (data / KEYS).chmod(0o640)
    return data


def test_a_file_of_keys_that_others_may_read_is_refused(wide: Path) -> None:
    file = wide / KEYS
    why = f"{file} has the mode 0640: other users may use it; use chmod 600 {file}"
    for arguments in (("key", "list"), ("key", "create"), ("queue", "list"), ("cert", "list")):
        assert called(*arguments, "--data", wide).error(65)["error"] == why
    assert (
        command("serve", "--data", wide, "--listen", "127.0.0.35:0", "--ping", "off").error(65)["error"]
        == why
    )


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"version": 2}', b"\xff", b"[" * 100_000, b'{"version": 1, "keys": [1]}']
)
def test_a_damaged_file_of_keys_is_refused(data: Path, content: bytes) -> None:
    called("key", "create", "--data", data, *BITS)
    (data / KEYS).write_bytes(content)
    assert called("key", "list", "--data", data).error(65)["path"] == KEYS
    assert called("key", "create", "--data", data).error(65)["path"] == KEYS
    assert (data / KEYS).read_bytes() == content


def test_a_server_keeps_its_keys_if_new_ones_are_unreadable(data: Path) -> None:
    called("key", "create", "--data", data, *BITS)
    with served(options(data, ORDERS)) as server:
        before = server.do(lambda server: server.driver and server.driver.core.protection.configuration)
        content = (data / KEYS).read_text()
        damaged = json.loads(content)
        damaged["keys"][0]["private_key"] = "-----BEGIN PRIVATE KEY-----\nnonsense"
        (data / KEYS).write_text(json.dumps(damaged))
        with pytest.raises(AssertionError):
            called("cert", "create", "--data", data, *BITS).lines  # noqa: B018
        after = server.do(lambda server: server.driver and server.driver.core.protection.configuration)
        assert after is before
        (data / KEYS).write_text(content)
        assert done("cert", "create", "--data", data, *BITS)["key"]
        known = server.do(_users_of)  # of a directory that was not there when the server started
        assert known is not None
        assert known.certificates


def _users_of(server: Server) -> User | None:
    """What the queue manager knows of the account that runs the tests."""
    assert server.driver is not None
    return server.driver.core.identities.user(user_sid(account_name()))


def test_every_switch_of_message_security_has_a_name_for_serve() -> None:
    """The specification's names are in the text that ``docs/settings.md`` is made of."""
    values = named_values()
    for name, term in {
        "send_insecure_nacks": "SendInsecureNacks",
        "reject_enhanced_rc2_using_40_bit_keys": "RejectEnhancedRC2Using40BitKeys",
        "send_enhanced_rc2_using_40_bit_keys": "SendEnhancedRC2Using40BitKeys",
        "user_cert_cache_size": "UserCertCacheSize",
        "user_cert_lifetime_ms": "UserCertLifetime",
        "receive_symmetric_key_cache_size": "ReceiveSymmetricKeyCacheSize",
        "send_symmetric_key_cache_size": "SendSymmetricKeyCacheSize",
        "symmetric_key_short_lifetime_ms": "SymmetricKeyShortLifetime",
    }.items():
        assert term in values[name].meaning
    for verb in ("send", "read"):
        for algorithm in ("md2", "md4", "md5", "sha1", "rc2", "rc4"):
            assert values[f"{verb}_{algorithm}"].kind is bool
