"""Private keys for captures: PEM, DER, what ``key create`` made in a folder, and what is no key."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import msmqwire
from msmqwire.analysis.dissection.message_security import contents_of
from msmqwire.crypto.key_files import KEYS_SIZE_MAX, private_keys
from msmqwire.errors import InvalidValue
from tests.support.installed import library
from tests.support.paths import EXAMPLES
from tests.support.patience import limit
from tests.support.running import called

library("cryptography")

CAPTURE = EXAMPLES / "protected.pcap"
PEM = EXAMPLES / "keys" / "queue-manager.pem"
CERTIFICATE = EXAMPLES / "keys" / "alice.crt"


def bodies(**keys: object) -> list[bytes | None]:
    return [item.body for item in msmqwire.dissect(CAPTURE, **keys) if item.decrypted]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a queue manager, with the key of the capture and later ones."""
    data = tmp_path_factory.mktemp("qm")
    called("key", "import", PEM, "--data", data)
    called("key", "create", "--data", data, "--bits", "1024")
    return data


@pytest.mark.parametrize("name", ["", "keys.json"])
def test_the_keys_of_a_queue_manager_decrypt(folder: Path, name: str) -> None:
    clear = bodies(keys=PEM)
    assert any(clear)
    assert bodies(keys=folder / name) == bodies(keys=str(folder / name)) == clear
    assert bodies() == []
    assert bodies(keys=contents_of(folder / name, of_keys=True)) == clear  # as a job elsewhere has them


def test_each_key_for_encryption_once(folder: Path) -> None:
    keys = private_keys((folder / "keys.json").read_bytes())
    assert [key.key_size for key in keys] == [1024, 2048]  # of two uses and three providers


def test_keys_without_an_end_take_no_time() -> None:
    content = b"-----BEGIN PRIVATE KEY-----\nMIIE-\n" * 20_000
    start = time.process_time()
    with pytest.raises(InvalidValue):
        private_keys(content)
    spent = time.process_time() - start
    assert spent < limit(5)  # a minute, were the rest looked through for each
    key = PEM.read_bytes()
    assert len(private_keys(content + key + key)) == 2


@pytest.mark.parametrize("command", ["dissect", "lint", "fate"])
def test_commands_take_the_folder(folder: Path, command: str) -> None:
    shown = called(command, CAPTURE, "--key", folder, "--json").out
    assert shown == called(command, CAPTURE, "--key", PEM, "--json").out


@pytest.mark.parametrize(
    "content, why",
    [
        (b"", "not a private key in PEM or DER"),
        (b"hello", "not a private key in PEM or DER"),
        (b"{}", "neither a private key in PEM or DER nor a file of key create"),
        (b"{" * 100_000, "neither a private key in PEM or DER nor a file of key create"),
        (b'{"keys": 7}', "neither a private key in PEM or DER nor a file of key create"),
        (b'{"keys": [{"use": "exchange", "private_key": 7}]}', "neither a private key in PEM or DER"),
        (b'{"keys": [{"use": "exchange", "private_key": "x"}]}', "not a private key in PEM or DER"),
        (b'{"keys": [{"use": "signature", "private_key": "x"}]}', "no key for encryption is in this file"),
        (b'{"keys": []}', "no key for encryption is in this file: key create makes one"),
        (b"{" + bytes(KEYS_SIZE_MAX), "are no file with keys"),
        (CERTIFICATE.read_bytes(), "a certificate: it verifies signatures, with --cert"),
        (b"-----BEGIN PUBLIC KEY-----\nAA==\n", "a public key: only the private one decrypts"),
    ],
)
def test_what_is_no_key(content: bytes, why: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        private_keys(content)
    assert why in caught.value.why


def test_errors_name_the_place_and_show_no_key(folder: Path, tmp_path: Path) -> None:
    refused = called("dissect", CAPTURE, "--key", tmp_path)
    assert refused.status == 65
    assert "no keys.json in this folder: key create --data makes the keys" in refused.err
    assert str(tmp_path) in refused.err
    shown = tmp_path / "shown"
    shown.write_text(called("key", "show", "--public", "--data", folder).out)
    refused = called("dissect", CAPTURE, "--key", shown)
    assert refused.status == 65
    assert "public keys, as key show prints them" in refused.err
    assert called("dissect", CAPTURE, "--key", tmp_path / "none").status == 66
    broken = tmp_path / "broken.json"
    ring = json.loads((folder / "keys.json").read_text())
    ring["keys"][0]["private_key"] = ring["keys"][0]["private_key"][:-60]
    broken.write_text(json.dumps(ring))
    refused = called("lint", CAPTURE, "--key", broken)
    assert refused.status == 65
    assert "not a private key in PEM or DER" in refused.err
    assert ring["keys"][0]["private_key"][40:80] not in refused.err
