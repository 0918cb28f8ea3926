"""Certificates for tests of TLS, and the authority that issues them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PEM = serialization.Encoding.PEM
PKCS8 = serialization.PrivateFormat.PKCS8


class Certificates:
    """An authority and its certificates, in files of a folder.

    Attributes:
        authority: the file with its certificate.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._key = folder, ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        certificate = self._certificate(self._name, self._key.public_key(), None)
        self.authority = self._write("authority", certificate.public_bytes(PEM))

    def issue(self, name: str) -> tuple[Path, Path]:
        """Return the files with the certificate of a host and with its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._certificate(subject, key.public_key(), name)
        secret = key.private_bytes(PEM, PKCS8, serialization.NoEncryption())
        return self._write(name, certificate.public_bytes(PEM)), self._write(f"{name}-key", secret)

    def encrypt(self, key: Path) -> Path:
        """Return a file with a key that needs a password."""
        loaded = serialization.load_pem_private_key(key.read_bytes(), None)
        secret = loaded.private_bytes(PEM, PKCS8, serialization.BestAvailableEncryption(b"secret"))
        return self._write("encrypted", secret)

    def _certificate(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, host: str | None
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=host is None, path_length=None), critical=True)
        )
        if host is not None:
            names = x509.SubjectAlternativeName([x509.DNSName(host)])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def _write(self, name: str, content: bytes) -> Path:
        file = self._folder / f"{name}.pem"
        file.write_bytes(content)
        return file
