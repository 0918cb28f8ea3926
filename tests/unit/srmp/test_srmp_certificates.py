"""Whom a receiver of signed messages believes."""

from __future__ import annotations

import base64

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from msmqwire.errors import InvalidSignature, InvalidValue
from msmqwire.srmp.certificates import CERTIFICATES_MAX, CHAIN_MAX, Certificate, Signer, Trust
from msmqwire.srmp.signature_keys import unusable
from msmqwire.srmp.verifying import verify
from tests.support.srmp.srmp_mapping import ARRIVAL
from tests.support.srmp.srmp_signatures import (
    BODY,
    YEAR,
    Issued,
    ca,
    issue,
    key,
    request_of,
    signed_envelope,
    signed_request,
    signer,
    usage,
)

ROOT_KEY, MIDDLE_KEY, LEAF_KEY = "RSA root", "RSA middle", "RSA leaf"


def root(*extensions: tuple[x509.ExtensionType, bool], **options: object) -> Issued:
    return issue("root", key(ROOT_KEY), None, *(extensions or (ca(),)), **options)


def offering(leaf: Issued, *certificates: Issued) -> bytes:
    """An envelope that this one has signed, with certificates in its KeyInfo."""
    texts = (
        base64.encodebytes(item.certificate.public_bytes(Encoding.DER)).decode() for item in certificates
    )
    inside = "".join(f"<X509Certificate>{text}</X509Certificate>" for text in texts)
    key_info = f"<KeyInfo><X509Data>{inside}</X509Data></KeyInfo></Signature>"
    return signed_envelope(leaf).replace(b"</Signature>", key_info.encode())


def refusal(envelope: bytes, trust: Trust, now: int = ARRIVAL) -> str:
    with pytest.raises(InvalidSignature) as caught:
        verify(request_of(envelope), trust, now)
    assert caught.value.path == "Envelope.Header.Signature.SignatureValue"
    return caught.value.why


# -- the time and the use of a certificate ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "valid"),
    [
        (ARRIVAL - YEAR - 1, False),
        (ARRIVAL - YEAR, True),
        (ARRIVAL + YEAR, True),
        (ARRIVAL + YEAR + 1, False),
        (0, False),
        (0xFFFF_FFFF, False),
    ],
)
def test_a_certificate_counts_while_it_is_valid(now, valid):
    message, trust = signed_request(), signer().trust
    if valid:
        assert verify(message, trust, now).body == BODY
    else:
        assert "not valid at this time" in refusal(signed_envelope(), trust, now)


@pytest.mark.parametrize(
    ("uses", "valid"),
    [
        ({"digital_signature": True}, True),
        ({"content_commitment": True}, True),
        ({"key_encipherment": True}, False),
        ({"key_cert_sign": True}, False),
    ],
)
def test_a_certificate_says_what_it_is_for(uses, valid):
    leaf = issue("leaf", key(LEAF_KEY), None, usage(**uses))
    if valid:
        assert verify(signed_request(leaf), leaf.trust, ARRIVAL).body == BODY
        return
    with pytest.raises(InvalidValue, match="not for signatures"):
        Signer.from_pem(leaf.cert_pem, leaf.key_pem)
    hasty = issue("leaf", key(LEAF_KEY))  # the same key, whose certificate does not say it
    assert "not for signatures" in refusal(signed_envelope(hasty), leaf.trust)


# -- chains -----------------------------------------------------------------------------------------------


def test_a_chain_by_way_of_offered_certificates():
    top = root()
    middle = issue("middle", key(MIDDLE_KEY), top, ca(0), usage(key_cert_sign=True))
    leaf = issue("leaf", key(LEAF_KEY), middle, usage(digital_signature=True))
    verified = verify(request_of(offering(leaf, leaf, middle)), top.trust, ARRIVAL)
    assert verified.signer.der == leaf.certificate.public_bytes(Encoding.DER)
    assert verify(request_of(offering(leaf, middle, leaf)), top.trust, ARRIVAL) == verified
    assert verify(request_of(offering(leaf, leaf)), middle.trust, ARRIVAL).signer == verified.signer
    assert "nor issued by one" in refusal(offering(leaf, leaf), top.trust)  # the one between is missing
    assert "no certificate that is known" in refusal(offering(leaf, middle), top.trust)
    assert "nor issued by one" in refusal(offering(leaf, leaf, middle, top), signer().trust)
    assert "nor issued by one" in refusal(offering(leaf, leaf, middle, top), Trust())


@pytest.mark.parametrize(
    "top",
    [
        root(usage(key_cert_sign=True)),  # no BasicConstraints
        root((x509.BasicConstraints(ca=False, path_length=None), True)),
        root(ca(), usage(digital_signature=True)),
        root(start=ARRIVAL - 9, end=ARRIVAL - 1),
        issue("another name", key(ROOT_KEY), None, ca()),
        issue("root", key(MIDDLE_KEY), None, ca()),
    ],
    ids=["silent", "no authority", "other use", "expired", "other name", "other key"],
)
def test_who_may_not_issue(top):
    leaf = issue("leaf", key(LEAF_KEY), root())
    assert verify(request_of(offering(leaf, leaf)), root().trust, ARRIVAL).body == BODY
    assert "nor issued by one" in refusal(offering(leaf, leaf), top.trust)


def test_a_signer_issues_nothing():
    """Whoever has a trusted certificate for signatures can't make another signer."""
    trusted = signer()
    forged = issue("forged", key(LEAF_KEY), trusted)
    assert "nor issued by one" in refusal(offering(forged, forged), trusted.trust)


def test_an_issuer_below_which_no_other_may_stand():
    top = root(ca(0))
    middle = issue("middle", key(MIDDLE_KEY), top, ca())
    leaf = issue("leaf", key(LEAF_KEY), middle)
    assert "nor issued by one" in refusal(offering(leaf, leaf, middle), top.trust)


def with_sha1(issued: Issued, issuer: Issued) -> Issued:
    """The certificate signed anew with SHA-1, which the library does no more."""
    sha256, sha1 = bytes.fromhex("2a864886f70d01010b"), bytes.fromhex("2a864886f70d010105")
    old = issued.certificate.tbs_certificate_bytes
    new = old.replace(sha256, sha1)
    whole = issued.certificate.public_bytes(Encoding.DER).replace(sha256, sha1)
    value = issuer.key.sign(new, PKCS1v15(), SHA1())
    return Issued(x509.load_der_x509_certificate(whole[: -len(value)] + value), issued.key)


def test_certificates_signed_with_sha1_are_not_followed():
    top = root()
    leaf = with_sha1(issue("leaf", key(LEAF_KEY), top), top)
    assert "nor issued by one" in refusal(offering(leaf, leaf), top.trust)
    assert verify(request_of(offering(leaf)), leaf.trust, ARRIVAL).body == BODY  # trusted by itself


def test_a_circle_ends():
    first = issue("a", key(ROOT_KEY), None, ca())
    others = [issue("a", key(kind), first, ca()) for kind in (MIDDLE_KEY, LEAF_KEY)]
    assert "nor issued by one" in refusal(offering(others[1], *others, first), signer().trust)


def test_a_chain_has_an_end():
    chain = [root()]
    for number in range(CHAIN_MAX + 1):
        chain.append(issue(f"c{number}", key(MIDDLE_KEY), chain[-1], ca()))
    certificates = [Certificate.read(item.certificate.public_bytes(Encoding.DER)) for item in chain]
    trust = Trust(certificates[:1])
    assert trust.why_not(certificates[CHAIN_MAX], certificates, ARRIVAL) == ""
    assert "nor issued" in trust.why_not(certificates[CHAIN_MAX + 1], certificates, ARRIVAL)


# -- what is read -----------------------------------------------------------------------------------------


def test_a_critical_extension_that_is_not_understood():
    permitted = x509.NameConstraints([x509.DNSName("h")], None)
    assert root(ca(), (permitted, False)).trust
    with pytest.raises(InvalidValue, match=r"critical extension 2\.5\.29\.30"):
        _ = root(ca(), (permitted, True)).trust


def test_a_key_of_another_kind_signs_nothing():
    other = issue("ec", ec.generate_private_key(ec.SECP256R1()))
    assert other.trust.certificates[0].key is None
    with pytest.raises(InvalidValue, match="neither RSA nor DSA"):
        Signer.from_pem(other.cert_pem, other.key_pem)
    assert "no certificate that is known" in refusal(signed_envelope(), other.trust)


@pytest.mark.parametrize(
    "data", [b"", b"x", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_no_certificates(data):
    with pytest.raises(InvalidValue, match="no certificates in PEM"):
        Trust.from_pem(data)


def test_a_bundle():
    both = signer().cert_pem + b"\nwhat else stands there\n" + root().cert_pem
    assert [item.subject for item in Trust.from_pem(both).certificates] == ["CN=signer RSA", "CN=root"]
    with pytest.raises(InvalidValue, match=f"more than {CERTIFICATES_MAX}"):
        Trust(signer().trust.certificates * (CERTIFICATES_MAX + 1))


def test_a_certificate_that_can_not_be_read():
    der = signer().certificate.public_bytes(Encoding.DER)
    for data in (b"", der[:-1], der + b"\0", der.replace(b"signer RSA", b"\xff" * 10)):
        with pytest.raises(InvalidValue, match="can't be read"):
            Certificate.read(data)


def test_a_key_and_a_certificate_that_do_not_belong_together():
    with pytest.raises(InvalidValue, match="does not belong"):
        Signer.from_pem(signer("DSA").cert_pem, signer().key_pem)
    with pytest.raises(InvalidValue, match="does not belong"):
        Signer.from_pem(root().cert_pem, signer().key_pem)
    with pytest.raises(InvalidValue, match="not a private key"):
        Signer.from_pem(signer().cert_pem, signer().cert_pem)
    with pytest.raises(InvalidValue, match="no certificates"):
        Signer.from_pem(signer().key_pem, signer().key_pem)


def test_an_encrypted_key():
    encrypted = signer().key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )
    with pytest.raises(InvalidValue, match="encrypted"):
        Signer.from_pem(signer().cert_pem, encrypted)


def test_a_key_that_is_too_long():
    """No key of that size is made here: that would take minutes."""
    long = rsa.RSAPublicNumbers(65537, (1 << 8200) + 1).public_key()
    assert "8201 bits, not 1024 to 8192" in unusable(long)
    assert not unusable(signer().key)
    assert not unusable(key("DSA").public_key())
