"""Signed messages of SRMP, with keys and certificates of their own."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from msmqwire.srmp.certificates import Signer, Trust
from msmqwire.srmp.envelope import build_envelope, parse_envelope
from msmqwire.srmp.message import SrmpMessage, parse_message
from msmqwire.srmp.request import make_request
from msmqwire.srmp.signing import sign
from tests.support.srmp.srmp_envelopes import GUID, xml
from tests.support.srmp.srmp_mapping import ARRIVAL, msmq, path, properties

BODY, EXTENSION = b"body \x00--MSMQ", b"an extension"
YEAR = 365 * 86_400
DSA_URI = "http://www.w3.org/2000/02/xmldsig#dsa"
SHA1_URI = "http://www.w3.org/2000/02/xmldsig#sha1"
MD5_URI = "http://www.w3.org/2000/02/xmldsig#md5"


class Issued(NamedTuple):
    """A certificate with its private key."""

    certificate: x509.Certificate
    key: Any

    @property
    def cert_pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    @property
    def signer(self) -> Signer:
        return _signer_of(self)

    @property
    def trust(self) -> Trust:
        return Trust.from_pem(self.cert_pem)


@cache
def _signer_of(issued: Issued) -> Signer:
    return Signer.from_pem(issued.cert_pem, issued.key_pem)


@cache
def key(kind: str) -> Any:
    """The key of that kind, made once: RSA, DSA (q of 160 bits), DSA-256 (q of 256 bits)."""
    if kind.startswith("RSA"):
        return rsa.generate_private_key(65537, 1024)
    return dsa.generate_private_key(2048 if kind == "DSA-256" else 1024)


def issue(
    name: str,
    private: Any,
    issuer: Issued | None = None,
    *extensions: tuple[x509.ExtensionType, bool],
    start: int = ARRIVAL - YEAR,
    end: int = ARRIVAL + YEAR,
) -> Issued:
    """A certificate, signed by itself if there is no issuer."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.fromtimestamp(start, UTC))
        .not_valid_after(datetime.fromtimestamp(end, UTC))
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    return Issued(builder.sign(issuer.key if issuer else private, SHA256()), private)


@cache
def signer(kind: str = "RSA") -> Issued:
    """A certificate that its own key has signed."""
    return issue(f"signer {kind}", key(kind))


def ca(path_length: int | None = None) -> tuple[x509.ExtensionType, bool]:
    return x509.BasicConstraints(ca=True, path_length=path_length), True


def usage(**uses: bool) -> tuple[x509.ExtensionType, bool]:
    names = (
        "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
        "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
    )  # fmt: skip
    return x509.KeyUsage(**{name: uses.get(name, False) for name in names}), True


def unsigned_envelope() -> bytes:
    return xml(path(), properties(), msmq())


def request_of(
    envelope: bytes, body: bytes | None = BODY, extension: bytes | None = EXTENSION
) -> SrmpMessage:
    """The request with this envelope and these parts, as it is read from the wire."""
    made = make_request(
        envelope, "/msmq/q", "h", boundary=7, queue_manager=GUID, body=body, extension=extension
    )
    return parse_message(made.to_bytes())


def signed_envelope(
    issued: Issued | None = None,
    body: bytes | None = BODY,
    extension: bytes | None = EXTENSION,
    **options: Any,
) -> bytes:
    envelope = parse_envelope(unsigned_envelope())
    by = (issued or signer()).signer
    return build_envelope(sign(envelope, by, queue_manager=GUID, body=body, extension=extension, **options))


def signed_request(
    issued: Issued | None = None,
    body: bytes | None = BODY,
    extension: bytes | None = EXTENSION,
    **options: Any,
) -> SrmpMessage:
    """A message that this one has signed, as it is read from the wire."""
    return request_of(signed_envelope(issued, body, extension, **options), body, extension)
