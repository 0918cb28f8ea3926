"""openssl reads what we make and makes what we read: bodies, session keys, signatures, keys, certificates."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

import msmqwire
from msmqwire.constants import CryptographicProvider, HashAlgorithm, KeyAlgorithm
from msmqwire.crypto.certificates import SenderCertificate, create_self_signed
from msmqwire.crypto.ciphers import SessionKey, decrypt, encrypt
from msmqwire.crypto.hashes import digest
from msmqwire.crypto.keys import (
    public_key_blob,
    public_key_of,
    read_private_key,
    read_public_key,
    unwrap,
    wrap,
)
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.crypto.signatures import sign, signature_version
from msmqwire.crypto.signed_fields import SignatureVersion, signed_fields
from msmqwire.errors import DecryptionFailed
from msmqwire.schema import Record
from tests.support import handmade
from tests.support.message_keys import private_key, with_signature
from tests.support.openssl import OpenSSL

BASE, ENHANCED, AES = CryptographicProvider
BODY = bytes(range(256)) * 4 + b"the end"


@pytest.fixture
def openssl(tmp_path: Path) -> OpenSSL:
    return OpenSSL(tmp_path)


def pem(key: RSAPrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def public_pem(key: RSAPrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


CIPHERS = [
    ("-rc2-40-cbc", SessionKey(0x6602, b"12345", 40)),
    ("-rc2-cbc", SessionKey(0x6602, bytes(range(16)), 128)),
    ("-rc2-cbc", SessionKey(0x6602, b"12345" + bytes(11), 128)),
    ("-rc4-40", SessionKey(0x6801, b"12345", 40)),
    ("-rc4", SessionKey(0x6801, b"12345", 40, bytes(11))),
    ("-rc4", SessionKey(0x6801, bytes(range(16)), 128)),
    ("-aes-128-cbc", SessionKey(0x660E, bytes(range(16)), 128)),
    ("-aes-192-cbc", SessionKey(0x660F, bytes(range(24)), 192)),
    ("-aes-256-cbc", SessionKey(0x6610, bytes(range(32)), 256)),
]


@pytest.mark.requirement("MQMQ-2.2.19.3-40")
@pytest.mark.parametrize(
    "cipher, key", CIPHERS, ids=[f"{cipher[1:]}-{len(key.salt)}" for cipher, key in CIPHERS]
)
def test_bodies(openssl: OpenSSL, cipher: str, key: SessionKey) -> None:
    vector = () if "rc4" in cipher else ("-iv", "0" * 32)
    options = (cipher, "-K", (key.key + key.salt).hex(), *vector)
    assert openssl.run("enc", "-d", *options, stdin=encrypt(key, BODY)) == BODY
    theirs = openssl.run("enc", *options, stdin=BODY)
    assert theirs == encrypt(key, BODY)
    assert decrypt(key, theirs) == BODY
    if vector:
        broken = theirs[:-1] + bytes([theirs[-1] ^ 1])
        assert openssl.try_to_run("enc", "-d", *options, stdin=broken).returncode
        with pytest.raises(DecryptionFailed):
            decrypt(key, broken)


@pytest.mark.requirement("MQQB-2.4.2-03", "MQQB-2.4.1-05")
@pytest.mark.parametrize("bits", [512, 1024, 2048])
def test_session_keys(openssl: OpenSSL, bits: int) -> None:
    private = private_key(bits)
    key = SessionKey(0x6610, bytes(range(32)), 256)
    options = ("-pkeyopt", "rsa_padding_mode:pkcs1")
    file = openssl.file("key.pem", pem(private))
    blob = wrap(key, private.public_key())
    assert openssl.run("pkeyutl", "-decrypt", "-inkey", file, *options, stdin=blob[:11:-1]) == key.key
    file = openssl.file("public.pem", public_pem(private))
    theirs = openssl.run("pkeyutl", "-encrypt", "-pubin", "-inkey", file, *options, stdin=key.key)
    assert unwrap(blob[:12] + theirs[::-1], private, DEFAULT, 0x6610, AES) == key


def message() -> Record:
    security = handmade.security_header(flags=0x82, security_id=handmade.CLIENT)
    return msmqwire.parse(
        handmade.user_message(properties=handmade.properties_header(body=BODY), security=security)
    )


@pytest.mark.requirement("MQMQ-2.2.20.6-28")
@pytest.mark.parametrize(
    "name, bits",
    [
        ("md5", 512),
        ("sha1", 512),
        ("sha256", 512),
        ("md5", 1024),
        ("sha1", 1024),
        ("sha256", 1024),
        ("sha512", 1024),
    ],
)
def test_signatures(openssl: OpenSSL, name: str, bits: int) -> None:
    names = {"md5": "MD5", "sha1": "SHA1", "sha256": "SHA_256", "sha512": "SHA_512"}
    algorithm = HashAlgorithm[f"CALG_{names[name]}"]
    covered = signed_fields(message(), SignatureVersion.MSMQ_2_0)
    signature = sign(message(), SignatureVersion.MSMQ_2_0, private_key(bits), algorithm)
    signed = openssl.file("signed", covered)
    public = openssl.file("public.pem", public_pem(private_key(bits)))
    ours = openssl.file("signature", signature[::-1])
    verified = openssl.run("dgst", f"-{name}", "-verify", public, "-signature", ours, signed)
    assert verified == b"Verified OK\n"
    private = openssl.file("private.pem", pem(private_key(bits)))
    theirs = openssl.run("dgst", f"-{name}", "-sign", private, signed)
    assert theirs == signature[::-1]
    packet = with_signature(message(), theirs[::-1], algorithm)
    assert signature_version(packet, private_key(bits).public_key()) is SignatureVersion.MSMQ_2_0


@pytest.mark.parametrize("info", [True, False], ids=["DigestInfo", "bare hash"])
@pytest.mark.parametrize(
    "algorithm, oid", [(HashAlgorithm.CALG_MD2, 0x02), (HashAlgorithm.CALG_MD4, 0x04)], ids=["md2", "md4"]
)
def test_signatures_as_blocks(openssl: OpenSSL, algorithm: HashAlgorithm, oid: int, info: bool) -> None:
    """openssl has no MD2, and for MD4 a wrong identifier (1.2.840.113549.2.3): so its block is compared."""
    readings = Readings(digest_info=info)
    covered = signed_fields(message(), SignatureVersion.MSMQ_1_0)
    hashed = digest(algorithm, covered)
    if algorithm is HashAlgorithm.CALG_MD4:
        assert openssl.run("dgst", "-md4", "-binary", stdin=covered) == hashed
    head = bytes.fromhex(f"3020300C06082A864886F70D02{oid:02X}05000410") if info else b""
    signature = sign(message(), SignatureVersion.MSMQ_1_0, private_key(), algorithm, readings)
    public = openssl.file("public.pem", public_pem(private_key()))
    found = openssl.run("pkeyutl", "-verifyrecover", "-pubin", "-inkey", public, stdin=signature[::-1])
    assert found == head + hashed
    private = openssl.file("private.pem", pem(private_key()))
    theirs = openssl.run("pkeyutl", "-sign", "-inkey", private, stdin=head + hashed)
    packet = with_signature(message(), theirs[::-1], algorithm)
    version = signature_version(packet, private_key().public_key(), readings)
    assert version is SignatureVersion.MSMQ_1_0


@pytest.mark.requirement("MQQB-2.4.1-01", "MQQB-2.4.1-02", "MQQB-2.4.1-03", "MQQB-2.4.1-04")
@pytest.mark.parametrize("bits", [512, 1024])
def test_public_keys(openssl: OpenSSL, bits: int) -> None:
    """openssl has the blobs of CryptoAPI as the format MSBLOB."""
    private = openssl.file("private.pem", pem(private_key(bits)))
    theirs = openssl.run("rsa", "-in", private, "-pubout", "-outform", "MSBLOB")
    assert theirs == public_key_blob(private_key(bits), KeyAlgorithm(int.from_bytes(theirs[4:8], "little")))
    assert public_key_of(theirs).public_numbers() == private_key(bits).public_key().public_numbers()
    ours = openssl.file("ours.blob", public_key_blob(private_key(bits)))
    assert openssl.run("rsa", "-pubin", "-inform", "MSBLOB", "-in", ours) == public_pem(private_key(bits))


def test_keys_and_certificates(openssl: OpenSSL) -> None:
    key_file = openssl.file("key.pem", openssl.run("genrsa", "512"))
    key = read_private_key(Path(key_file).read_bytes())
    assert key.key_size == 512
    for form in ("PEM", "DER"):
        content = openssl.run("pkey", "-in", key_file, "-outform", form)
        assert read_private_key(content).private_numbers() == key.private_numbers()
        content = openssl.run("rsa", "-in", key_file, "-pubout", "-outform", form)
        assert read_public_key(content).public_numbers() == key.public_key().public_numbers()
    request = ("-x509", "-key", key_file, "-subj", "/CN=sender", "-days", "2", "-set_serial", "77")
    for form in ("PEM", "DER"):
        certificate = SenderCertificate.read_file(openssl.run("req", *request, "-outform", form))
        assert certificate.key.public_numbers() == key.public_key().public_numbers()
        assert (certificate.subject, certificate.serial) == ("CN=sender", 77)
        assert certificate.not_after - certificate.not_before == 2 * 86400


def test_certificates_of_ours(openssl: OpenSSL) -> None:
    der = create_self_signed(private_key(1024), "Jürgen", 0, 0x7FFFFFFF, 4711)
    file = openssl.file("certificate.der", der)
    shown = openssl.run(
        "x509",
        "-in",
        file,
        "-inform",
        "DER",
        "-noout",
        "-pubkey",
        "-serial",
        "-dates",
        "-fingerprint",
        "-md5",
    )
    assert shown.startswith(public_pem(private_key(1024)))
    assert b"serial=1267\n" in shown
    assert b"notBefore=Jan  1 00:00:00 1970 GMT\nnotAfter=Jan 19 03:14:07 2038 GMT\n" in shown
    fingerprint = shown.rpartition(b"=")[2].replace(b":", b"").decode()
    assert bytes.fromhex(fingerprint) == SenderCertificate.read(der).digest
    authority = openssl.file(
        "certificate.pem", openssl.run("x509", "-in", file, "-inform", "DER", "-outform", "PEM")
    )
    assert b": OK" in openssl.run("verify", "-CAfile", authority, authority)
