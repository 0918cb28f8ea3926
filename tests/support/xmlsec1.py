"""xmlsec1 with the namespace of SRMP. Without it, modules that import this one are skipped.

It knows the namespace of 2000/09 only, which is in the signed bytes: SignedInfo declares it. So not the
message is mapped to the other namespace, but xmlsec1: in a copy of its library the names are those that
[MC-MQSRM] 2.2.7 has, with ``dsa`` for the kind of key at hand.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from tests.support.patience import limit

XMLSEC1 = shutil.which("xmlsec1")

if XMLSEC1 is None and os.environ.get("CI") != "true":
    pytest.skip("xmlsec1 is not installed", allow_module_level=True)

_ALGORITHMS = {"RSA": b"rsa-sha1", "DSA": b"dsa-sha1"}


def mapped_library(folder: Path, kind: str) -> Path:
    """A folder with xmlsec1's library, in which `kind` of key is called ``dsa`` in the namespace of SRMP."""
    assert XMLSEC1 is not None, "xmlsec1 is not installed"
    linked = subprocess.run(["ldd", XMLSEC1], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"(libxmlsec1\S*) => (\S+)", linked)
    assert "libxmlsec1.so.1" in dict(names)
    for name, path in names:
        data = Path(path).read_bytes()
        for algorithm in _ALGORITHMS.values():  # the other one gets an unused name
            new = b"dsa" if algorithm == _ALGORITHMS[kind] else b"-"
            end = b"xmldsig#" + algorithm + b"\0"
            data = data.replace(end, (b"xmldsig#" + new).ljust(len(end), b"\0"))
        folder.joinpath(name).write_bytes(data.replace(b"/2000/09/xmldsig#", b"/2000/02/xmldsig#"))
    return folder


class Xmlsec1:
    """xmlsec1 for one key."""

    def __init__(self, folder: Path, kind: str, key: Any) -> None:
        self.folder = folder
        self._environment = {**os.environ, "LD_LIBRARY_PATH": str(mapped_library(folder, kind))}
        private = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        self._private = self._file("private.pem", private)
        self._public = self._file("public.pem", public)

    def verifies(self, envelope: bytes, parts: Mapping[str, bytes]) -> bool:
        """Whether it finds the signature of an envelope right; `parts` are the contents by Content-Id."""
        run = self._run("--verify", "--pubkey-pem", self._public, envelope, parts)
        assert (run.returncode == 0) == (b"OK\n" in run.stdout + run.stderr), run.stderr
        return run.returncode == 0

    def sign(self, template: bytes, parts: Mapping[str, bytes]) -> bytes:
        """The envelope with the digests and the value that it fills in."""
        run = self._run("--sign", "--privkey-pem", self._private, template, parts)
        assert run.returncode == 0, run.stderr
        return run.stdout

    def _file(self, name: str, data: bytes) -> str:
        path = self.folder / name
        path.write_bytes(data)
        return str(path)

    def _run(
        self, command: str, option: str, key: str, envelope: bytes, parts: Mapping[str, bytes]
    ) -> subprocess.CompletedProcess[bytes]:
        maps = [
            argument
            for number, (name, data) in enumerate(parts.items())
            for argument in (f"--url-map:cid:{name}", self._file(f"part{number}", data))
        ]
        arguments = [str(XMLSEC1), command, option, key, *maps, self._file("envelope.xml", envelope)]
        return subprocess.run(
            arguments, env=self._environment, capture_output=True, timeout=limit(60), check=False
        )
