"""No private key and no session key is in logs, errors, reprs, crash dumps or on the control channel."""

from __future__ import annotations

import faulthandler
import io
import json
import logging
import os
import re
import tempfile
import traceback
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

import msmqwire
from msmqwire.crypto import ciphers
from msmqwire.crypto.ciphers import SessionKey
from msmqwire.qm.runtime import key_ring
from msmqwire.qm.runtime.data_folder import KEYS
from msmqwire.qm.runtime.key_ring import KeyFile
from msmqwire.qm.security import session_keys
from msmqwire.service.control import client as local_module
from msmqwire.service.logs import JsonLines
from tests.support.qm.secured_servers import Pair, protection, secured_pair
from tests.support.running import called

NEEDLE_SIZE = 12
"""Bytes of a secret that may not be anywhere; in hexadecimal, base64 and as Python shows them."""


def spellings(secret: bytes) -> Iterator[bytes]:
    """How a secret may look like, from any of its first bytes on."""
    for start in range(3):
        part = secret[start : start + NEEDLE_SIZE]
        yield part
        yield part[::-1]
        yield part.hex().encode()
        yield part[::-1].hex().encode()
        yield b64encode(part)
        yield repr(part)[2:-1].encode()
        yield json.dumps(part.decode("latin-1"))[1:-1].encode()


def numbers(key: RSAPrivateKey) -> Iterator[bytes]:
    """The secret numbers of a key, as bytes and in decimal."""
    private = key.private_numbers()
    for number in (private.d, private.p, private.q, private.dmp1, private.dmq1, private.iqmp):
        yield number.to_bytes(-(-number.bit_length() // 8))
        yield str(number).encode()


class Secrets:
    """Collects secrets and the places where they may not be."""

    def __init__(self) -> None:
        self.secrets: set[bytes] = set()
        self.places: dict[str, bytes] = {}

    def add_key_file(self, data: Path) -> None:
        ring = KeyFile(data).read()
        for pem in [own.private_key for own in (*ring.keys, *ring.certificates)]:
            lines = pem.split(b"\n")
            self.secrets |= {line[:24] for line in lines[len(lines) // 2 : -2]}  # the first half is public
            key = load_pem_private_key(pem, None)
            assert isinstance(key, RSAPrivateKey)
            for number in numbers(key):
                self.secrets.update(spellings(number))

    def found(self) -> list[tuple[str, bytes]]:
        return [
            (place, secret)
            for place, content in self.places.items()
            for secret in self.secrets
            if secret in content
        ]


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> Secrets:
    """Session keys are collected when they are made or unwrapped."""
    collected = Secrets()
    made: Callable[..., None] = SessionKey.__init__

    def noted(self: SessionKey, *args: Any, **more: Any) -> None:
        made(self, *args, **more)
        collected.secrets.update(spellings(self.key))

    monkeypatch.setattr(ciphers.SessionKey, "__init__", noted)
    return collected


def test_the_search_finds_what_it_should(tmp_path: Path, secrets: Secrets) -> None:
    called("key", "create", "--data", tmp_path, "--bits", "1024")
    secrets.add_key_file(tmp_path)
    key = ciphers.new_session_key(0x6610, 256, os.urandom)
    for number, leaked in enumerate(
        [(tmp_path / KEYS).read_bytes(), key.key, repr(key.key).encode(), b64encode(key.key), key.key[::-1]]
    ):
        secrets.places = {str(number): b"before " + leaked + b" behind"}
        assert secrets.found(), leaked


def test_no_secret_is_in_logs_errors_reprs_or_control_channel(
    tmp_path: Path, secrets: Secrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, wire = io.StringIO(), io.BytesIO()
    handler = logging.StreamHandler(log)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("msmqwire")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.DEBUG)
    _overhear(monkeypatch, wire)
    outputs = []
    try:
        with secured_pair(tmp_path) as pair:
            outputs += _use(pair)
            secrets.places["reprs"] = _reprs(pair).encode()
            secrets.places["trace"] = _traces(pair)
            for data in (pair.here.data, pair.there.data):
                secrets.add_key_file(data)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert len(secrets.secrets) > 100
    secrets.places |= {
        "log": log.getvalue().encode(),
        "control": wire.getvalue(),
        "outputs": "".join(outputs).encode(),
    }
    assert b"legacy rc4" in secrets.places["log"]
    assert b'"op": "keep_peer_keys"' in secrets.places["control"]
    assert b'"signature"' in secrets.places["control"]
    assert all(secrets.places.values())
    assert secrets.found() == []


def _overhear(monkeypatch: pytest.MonkeyPatch, wire: io.BytesIO) -> None:
    """Keep what goes over the control channel, in both directions."""
    call = local_module.Served.call

    def overheard(self: Any, op: str, /, **request: Any) -> dict[str, Any]:
        wire.write(json.dumps({"op": op, **request}).encode())
        answer = call(self, op, **request)
        wire.write(json.dumps(answer).encode())
        return answer

    monkeypatch.setattr(local_module.Served, "call", overheard)


def _use(pair: Pair) -> list[str]:
    """Do everything with keys; return what the commands print, errors too."""
    here, there = ("--data", pair.here.data), ("--data", pair.there.data)
    encrypt = ("--peer-key", pair.peer_key, "--encrypt")
    runs = [
        pair.send("--body", "x", "--sign", *encrypt, "aes256"),
        pair.send_directly("--body", "x", *pair.signing, *encrypt, "rc4", "--legacy"),
        pair.send("--body", "x", "--sign", "--hash", "md5", "--legacy"),
        pair.send_directly("--body", "x", "--sign", "--cert", pair.cert, "--key", pair.cert),
        pair.send_directly("--body", "x", "--sign", "--cert", pair.key, "--key", pair.key),
        called("key", "import", pair.key, *there, "--use", "signature"),
        called("key", "import", pair.cert, *there),
        called("key", "create", *here, "--bits", "1024"),
        *(called("key", command, *there) for command in ("list", "show")),
        called("key", "show", "--public", *there),
        called("cert", "list", *here),
        called("cert", "register", "--cert", pair.key, *there),
    ]
    for body in (b"x", b"x"):
        assert protection(pair.received())[0] == body
    keys = pair.here.data / KEYS
    content = keys.read_text()
    keys.write_text(content.replace("-----BEGIN", "-----BEGUN", 1))
    broken = called("key", "list", *here)
    assert broken.status == 65, broken
    keys.write_text(content[:-10])
    cut = called("cert", "list", *here)
    assert cut.status == 65, cut
    keys.write_text(content)
    pair.sent("--body", "last", "--encrypt", "aes256")  # its session key stays in the caches
    assert protection(pair.received())[0] == b"last"
    return [run.out + run.err for run in (*runs, broken, cut)]


def _reprs(pair: Pair) -> str:
    """The reprs of all that holds keys."""
    core, shown = pair.there.server.driver, []
    assert core is not None
    protected = core.core.protection
    ring = KeyFile(pair.here.data).read()
    signer = msmqwire.load_signer(pair.cert, pair.key)
    caches = [
        list(cache._entries.values())
        for driver in (pair.here.server.driver, pair.there.server.driver)
        if driver is not None
        for cache in (
            driver.core.protection.decryption.receive_symmetric_key_cache,
            driver.core.protection.encryption.send_symmetric_key_cache,
        )
    ]
    assert any(caches)
    for holder in (ring, *ring.keys, *ring.certificates, signer, protected.configuration, *caches):
        shown += [repr(holder), str(holder), f"{holder}"]
    return "\n".join(shown)


def _traces(pair: Pair) -> bytes:
    """The text of a crash: the stacks of all threads, and tracebacks of errors about keys."""
    texts = []
    for wrong in (b"no key", pair.key.read_bytes()[:-40], pair.key.read_bytes().replace(b"M", b"N")):
        pair.peer_key.with_suffix(".wrong").write_bytes(wrong)
        try:
            msmqwire.load_signer(pair.cert, pair.peer_key.with_suffix(".wrong"))
        except msmqwire.MsmqError:
            texts.append(traceback.format_exc())
    with tempfile.TemporaryFile("w+b") as dump:
        faulthandler.dump_traceback(dump)
        dump.seek(0)
        return dump.read() + "".join(texts).encode()


@pytest.mark.parametrize(
    "holder", [key_ring.OwnKey, key_ring.OwnCertificate, session_keys.CachedSymmetricKey]
)
def test_fields_with_keys_are_not_in_reprs(holder: Any) -> None:
    secret = re.compile("private_key|symmetric_key")
    assert [field.name for field in fields(holder) if secret.search(field.name) and field.repr] == []
