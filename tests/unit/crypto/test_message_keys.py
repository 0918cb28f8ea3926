"""Files with keys and certificates, and the readings by name."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import md5

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import NameOID

from msmqwire.constants import KeyAlgorithm
from msmqwire.crypto.certificates import SenderCertificate, create_self_signed
from msmqwire.crypto.ciphers import SessionKey
from msmqwire.crypto.keys import public_key_blob, read_private_key, read_public_key
from msmqwire.crypto.readings import Readings
from msmqwire.errors import InvalidValue
from tests.support.message_keys import VECTORS, private_key

PEM, DER = Encoding.PEM, Encoding.DER
PKCS1, PKCS8 = PrivateFormat.TraditionalOpenSSL, PrivateFormat.PKCS8
NOW = 1_700_000_000


def certificate(encoding: Encoding = DER) -> bytes:
    der = create_self_signed(private_key(), "sender", NOW, NOW + 9, 5)
    return x509.load_der_x509_certificate(der).public_bytes(encoding)


def public_bytes(encoding: Encoding, form: PublicFormat) -> bytes:
    return private_key().public_key().public_bytes(encoding, form)


def private_bytes(encoding: Encoding, form: PrivateFormat) -> bytes:
    return private_key().private_bytes(encoding, form, NoEncryption())


PUBLIC_FILES = {
    "blob": public_key_blob(private_key()),
    "signature blob": public_key_blob(private_key(), KeyAlgorithm.CALG_RSA_SIGN),
    "hexadecimal": public_key_blob(private_key()).hex().encode(),
    "HEXADECIMAL in lines": public_key_blob(private_key()).hex("\n", 16).upper().encode() + b"\r\n",
    "SPKI PEM": public_bytes(PEM, PublicFormat.SubjectPublicKeyInfo),
    "SPKI DER": public_bytes(DER, PublicFormat.SubjectPublicKeyInfo),
    "PKCS#1 PEM": public_bytes(PEM, PublicFormat.PKCS1),
    "PKCS#1 DER": public_bytes(DER, PublicFormat.PKCS1),
    "certificate PEM": certificate(PEM),
    "certificate DER": certificate(),
    "private PEM": private_bytes(PEM, PKCS8),
    "private DER": private_bytes(DER, PKCS8),
    "private PKCS#1 DER": private_bytes(DER, PKCS1),
}


@pytest.mark.parametrize("name", PUBLIC_FILES)
def test_files_with_a_public_key(name: str) -> None:
    key = read_public_key(PUBLIC_FILES[name])
    assert isinstance(key, RSAPublicKey)
    assert key.public_numbers() == private_key().public_key().public_numbers()


@pytest.mark.parametrize("encoding", [PEM, DER])
@pytest.mark.parametrize("form", [PKCS1, PKCS8])
def test_files_with_a_private_key(encoding: Encoding, form: PrivateFormat) -> None:
    key = read_private_key(private_bytes(encoding, form))
    assert key.private_numbers() == private_key().private_numbers()


@pytest.mark.parametrize("bits", [384, 512])
def test_short_keys_are_read(bits: int) -> None:
    content = (VECTORS / f"rsa-{bits}.pem").read_bytes()
    assert read_private_key(content).key_size == read_public_key(content).key_size == bits


ELLIPTIC = ec.generate_private_key(ec.SECP256R1())
LONG_EXPONENT = RSAPublicNumbers((1 << 40) + 1, (1 << 512) - 1).public_key()
SHORT = RSAPublicNumbers(3, (1 << 383) - 1).public_key()
SPKI = PublicFormat.SubjectPublicKeyInfo
ENCRYPTED = private_key().private_bytes(PEM, PKCS8, BestAvailableEncryption(b"password"))
NO_KEY = {
    "empty": (b"", "neither a PUBLICKEYBLOB nor"),
    "text": (b"hello", "neither a PUBLICKEYBLOB nor"),
    "half a byte": (b"060", "half a byte"),
    "hexadecimal": (b"00ff", "neither a PUBLICKEYBLOB nor"),
    "cut blob": (PUBLIC_FILES["blob"][:-1], r"PUBLICKEYBLOB\.bitLen"),
    "cut hexadecimal": (PUBLIC_FILES["hexadecimal"][:-2], r"PUBLICKEYBLOB\.bitLen"),
    "cut PEM": (PUBLIC_FILES["SPKI PEM"][:99], "neither a PUBLICKEYBLOB nor"),
    "cut certificate": (certificate(PEM)[:99], "no certificates in PEM"),
    "cut DER": (PUBLIC_FILES["SPKI DER"][:-1], "neither a PUBLICKEYBLOB nor"),
    "elliptic": (ELLIPTIC.public_key().public_bytes(PEM, SPKI), "the key is not RSA"),
    "elliptic private": (ELLIPTIC.private_bytes(DER, PKCS8, NoEncryption()), "the key is not RSA"),
    "exponent": (LONG_EXPONENT.public_bytes(DER, SPKI), "a public exponent of more than 32 bits"),
    "short": (SHORT.public_bytes(PEM, SPKI), "a key of 383 bits, not 384 to 16384"),
    "encrypted": (ENCRYPTED, "neither a PUBLICKEYBLOB nor"),
    "too long": (b"0" * 0x20001, "131,073 bytes are not a file"),
}


@pytest.mark.parametrize("name", NO_KEY)
def test_files_without_a_public_key(name: str) -> None:
    content, why = NO_KEY[name]
    with pytest.raises(InvalidValue, match=f"^{why}"):
        read_public_key(content)


@pytest.mark.parametrize(
    "content, why",
    [
        (b"", "not a private key in PEM or DER"),
        (PUBLIC_FILES["SPKI PEM"], "not a private key in PEM or DER"),
        (PUBLIC_FILES["private DER"][:-1], "not a private key in PEM or DER"),
        (ENCRYPTED, "the private key is encrypted"),
        (ELLIPTIC.private_bytes(PEM, PKCS8, NoEncryption()), "the key is not RSA"),
        (b"0" * 0x20001, "131,073 bytes are not a file"),
    ],
    ids=["empty", "public", "cut", "locked", "elliptic", "too long"],
)
def test_files_without_a_private_key(content: bytes, why: str) -> None:
    with pytest.raises(InvalidValue, match=f"^{why}"):
        read_private_key(content)


# -- certificates --------------------------------------------------------------------------------------


def test_a_sender_certificate() -> None:
    read = SenderCertificate.read(certificate())
    assert read.key.public_numbers() == private_key().public_key().public_numbers()
    assert (read.der, read.digest) == (certificate(), md5(certificate()).digest())
    assert (read.subject, read.serial) == ("CN=sender", 5)
    assert (read.not_before, read.not_after) == (NOW, NOW + 9)
    assert [read.is_valid(NOW + second) for second in (-1, 0, 9, 10)] == [False, True, True, False]
    assert (
        SenderCertificate.read_file(certificate(PEM) * 2)
        == SenderCertificate.read_file(certificate())
        == read
    )
    signed = x509.load_der_x509_certificate(certificate())
    signed.verify_directly_issued_by(signed)


def test_certificates_that_are_none() -> None:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sender")])
    times = [datetime.fromtimestamp(second, UTC) for second in (NOW, NOW + 9)]
    builder = x509.CertificateBuilder(name, name, ELLIPTIC.public_key(), 5, *times)
    elliptic = builder.sign(ELLIPTIC, SHA256()).public_bytes(DER)
    weak = x509.CertificateBuilder(name, name, LONG_EXPONENT, 5, *times)
    exponent = weak.sign(private_key(), SHA256()).public_bytes(DER)
    for der, why in (
        (b"", "a certificate that can't be read"),
        (certificate()[:-1], "a certificate that can't be read"),
        (certificate() + b"\0", "a certificate that can't be read"),
        (bytes(0x10000), "a certificate of 65,536 bytes"),
        (elliptic, "the key is not RSA"),
        (exponent, "a public exponent of more than 32 bits"),
    ):
        with pytest.raises(InvalidValue, match=f"^{why}"):
            SenderCertificate.read(der)
    with pytest.raises(InvalidValue, match="no certificates in PEM"):
        SenderCertificate.read_file(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")


@pytest.mark.parametrize(
    "bits, subject, first, last, serial",
    [
        (384, "sender", NOW, NOW + 9, 5),
        (512, "", NOW, NOW + 9, 5),
        (512, "s" * 65, NOW, NOW + 9, 5),
        (512, "sender", NOW + 9, NOW, 5),
        (512, "sender", -(1 << 40), NOW, 5),
        (512, "sender", NOW, 1 << 60, 5),
        (512, "sender", NOW, NOW + 9, 0),
        (512, "sender", NOW, NOW + 9, 1 << 160),
    ],
)
def test_certificates_that_can_not_be_made(
    bits: int, subject: str, first: int, last: int, serial: int
) -> None:
    with pytest.raises(InvalidValue, match="no certificate can be made"):
        create_self_signed(private_key(bits), subject, first, last, serial)


# -- readings ------------------------------------------------------------------------------------------


def test_readings_by_name() -> None:
    switches = Readings.fields()
    assert set(switches) == set(Readings.__dataclass_fields__)
    default = {name: values[0] for name, values in switches.items()}
    assert Readings.of(default) == Readings.of({}) == Readings()
    for name, values in switches.items():
        assert len(values) == len(set(values)) > 1
        assert len({Readings.of({name: value}) for value in values}) == len(values)
    assert Readings.of({"digest_info": "false", "queue_names": "text-with-null"}) == Readings(
        digest_info=False, queue_names="text-with-null"
    )


@pytest.mark.parametrize(
    "name, value, path",
    [("nothing", "true", "Readings"), ("digest_info", "no", "Readings.digest_info"),
     ("queue_names", "little", "Readings.queue_names"), ("fields", "true", "Readings")],
)  # fmt: skip
def test_readings_that_are_unknown(name: str, value: str, path: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        Readings.of({name: value})
    assert caught.value.path == path


def test_what_is_secret_is_not_shown() -> None:
    key = SessionKey(0x6610, bytes(range(32)), 256)
    assert repr(key) == "SessionKey(algorithm=26128, effective_bits=256)"
    assert str(private_key().private_numbers().d) not in repr(private_key())
