"""The files of `--http-sign-cert`, `--http-sign-key` and `--http-trust`."""

from __future__ import annotations

import pytest

from msmqwire.errors import InvalidValue
from msmqwire.qm.runtime.http.signature_files import load_signer, load_trust
from msmqwire.service.credential_files import FILE_SIZE_MAX
from tests.support.srmp.srmp_signatures import signer


@pytest.mark.parametrize("kind", ["RSA", "DSA"])
def test_load(tmp_path, kind):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.write_bytes(signer(kind).cert_pem)
    key.write_bytes(signer(kind).key_pem)
    loaded = load_signer(cert, key)
    assert loaded.key.private_numbers() == signer(kind).key.private_numbers()
    assert load_trust(cert).certificates == (loaded.certificate,)
    both = tmp_path / "both.pem"
    both.write_bytes(key.read_bytes() + cert.read_bytes())
    assert load_signer(both, both).certificate == loaded.certificate


def test_what_is_wrong_is_said_with_the_file(tmp_path):
    cert, key, empty, large = (tmp_path / name for name in ("cert", "key", "empty", "large"))
    cert.write_bytes(signer().cert_pem)
    key.write_bytes(signer("DSA").key_pem)
    empty.write_bytes(b"")
    large.write_bytes(b"\n" * (FILE_SIZE_MAX + 1))
    for load, arguments, text in (
        (load_trust, (tmp_path / "none",), f"{tmp_path / 'none'}: No such file or directory"),
        (load_trust, (tmp_path,), f"{tmp_path}: Is a directory"),
        (load_trust, (empty,), f"{empty}: no certificates in PEM"),
        (load_trust, (large,), f"{large}: more than {FILE_SIZE_MAX} bytes"),
        (load_signer, (cert, tmp_path / "none"), f"{tmp_path / 'none'}: No such file or directory"),
        (load_signer, (cert, key), f"{cert} and {key}: the private key does not belong to the certificate"),
        (load_signer, (cert, empty), f"{cert} and {empty}: not a private key in PEM or DER"),
    ):
        with pytest.raises(InvalidValue) as caught:
            load(*arguments)
        assert str(caught.value) == text
