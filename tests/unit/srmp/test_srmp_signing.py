"""Signatures are written as in 2.2.7, and what is written can be verified."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA1

from msmqwire.constants import HashAlgorithm
from msmqwire.errors import InvalidValue
from msmqwire.srmp.envelope import parse_envelope
from msmqwire.srmp.signature_keys import is_value_of, make_value
from msmqwire.srmp.signing import sign
from msmqwire.srmp.verifying import verify
from tests.support.srmp.srmp_envelopes import GUID
from tests.support.srmp.srmp_mapping import ARRIVAL
from tests.support.srmp.srmp_signatures import (
    BODY,
    DSA_URI,
    EXTENSION,
    MD5_URI,
    SHA1_URI,
    signed_envelope,
    signed_request,
    signer,
    unsigned_envelope,
)


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.requirement(
    "SRMP-2.2.7-01",
    "SRMP-2.2.7-02",
    "SRMP-2.2.7-03",
    "SRMP-2.2.7.1-01",
    "SRMP-2.2.7.1.1-01",
    "SRMP-2.2.7.1.2-01",
    "SRMP-2.2.7.1.2-02",
    "SRMP-2.2.7.1.2-03",
    "SRMP-2.2.7.1.2.1-01",
    "SRMP-2.2.7.1.2.1-02",
    "SRMP-2.2.7.1.2.2-01",
    "SRMP-2.2.7.1.2.2-02",
    "SRMP-2.2.7.2-01",
    "SRMP-3.1.7.2.4-38",
    "SRMP-3.1.7.2.4-39",
    "SRMP-3.1.7.2.4-40",
    "SRMP-3.1.7.2.4-41",
    "SRMP-3.1.7.2.4-42",
    "SRMP-3.1.7.2.4-44",
)
@pytest.mark.parametrize(
    ("algorithm", "uri", "digest"),
    [
        (HashAlgorithm.CALG_SHA1, SHA1_URI, hashlib.sha1),
        (HashAlgorithm.CALG_MD5, MD5_URI, hashlib.md5),
    ],
)
def test_the_text_of_a_signature(algorithm, uri, digest):
    data = signed_envelope(hash_algorithm=algorithm).decode()
    method = f'<DigestMethod Algorithm="{uri}"></DigestMethod>'
    body, extension = (base64_of(digest(part).digest()) for part in (BODY, EXTENSION))
    assert len(body) == (28 if algorithm == HashAlgorithm.CALG_SHA1 else 24)
    before, after = data.split("</Msmq>")
    assert before == unsigned_envelope().decode().split("</Msmq>")[0]
    assert re.sub("(?<=<SignatureValue>)[A-Za-z0-9+/=]+(?=<)", "*", after) == (
        '<Signature xmlns="http://www.w3.org/2000/02/xmldsig#"><SignedInfo>'
        f'<SignatureMethod Algorithm="{DSA_URI}"></SignatureMethod>'
        f'<Reference URI="cid:body@{GUID}">{method}<DigestValue>{body}</DigestValue></Reference>'
        f'<Reference URI="cid:extension@{GUID}">{method}<DigestValue>{extension}</DigestValue></Reference>'
        "</SignedInfo><SignatureValue>*</SignatureValue></Signature>"
        "</se:Header><se:Body></se:Body></se:Envelope>"
    )


@pytest.mark.requirement("SRMP-2.2.7.2-01", "SRMP-2.2.7.2-02", "SRMP-3.1.7.2.4-44")
@pytest.mark.parametrize(("kind", "size"), [("RSA", 128), ("DSA", 40), ("DSA-256", 64)])
def test_the_value_is_made_over_signed_info_as_it_stands(kind, size):
    """With q of 256 bits DSA has the 64 bytes, 88 characters, of 2.2.7.2."""
    data = signed_envelope(signer(kind))
    signed_info = re.search(b"<SignedInfo>.*</SignedInfo>", data)[0]
    text = re.search(b"<SignatureValue>(.*)</SignatureValue>", data)[1]
    value = base64.b64decode(text)
    assert len(value) == size
    if kind == "RSA":
        signer(kind).key.public_key().verify(value, signed_info, PKCS1v15(), SHA1())
    else:
        half = size // 2
        der = encode_dss_signature(int.from_bytes(value[:half]), int.from_bytes(value[half:]))
        signer(kind).key.public_key().verify(der, signed_info, SHA1())
    assert kind != "DSA-256" or len(text) == 88


@pytest.mark.parametrize("kind", ["RSA", "DSA", "DSA-256"])
@pytest.mark.parametrize("algorithm", [HashAlgorithm.CALG_SHA1, HashAlgorithm.CALG_MD5])
@pytest.mark.parametrize(
    ("body", "extension"), [(BODY, EXTENSION), (BODY, None), (None, EXTENSION), (b"", None)]
)
def test_round_trip(kind, algorithm, body, extension):
    issued = signer(kind)
    verified = verify(
        signed_request(issued, body, extension, hash_algorithm=algorithm), issued.trust, ARRIVAL
    )
    assert (verified.body, verified.extension) == (body, extension)
    assert verified.signer == issued.trust.certificates[0]
    assert verified.signer.subject == f"CN=signer {kind}"


def test_a_short_r_or_s_of_dsa_keeps_its_place():
    """Each begins with a zero byte in one of 256 values."""
    by, seen = signer("DSA").signer, set()
    for number in range(20_000):
        data = str(number).encode()
        value = make_value(by.key, data)
        assert len(value) == 40
        if zero := {place for place in (0, 20) if not value[place]}:
            assert is_value_of(by.certificate.key, data, value)
            seen |= zero
        if len(seen) == 2:
            break
    assert seen == {0, 20}


def test_r_and_s_of_dsa_have_one_form():
    by = signer("DSA").signer
    value = make_value(by.key, BODY)
    assert is_value_of(by.certificate.key, BODY, value)
    for other in (value[:20] + b"\0" + value[20:], b"\0" + value, value + b"\0", value[:-1]):
        assert not is_value_of(by.certificate.key, BODY, other)


@pytest.mark.requirement("SRMP-3.1.7.2.4-43")
@pytest.mark.parametrize("algorithm", [0, *sorted(set(HashAlgorithm) - {0x8003, 0x8004})])
def test_other_hash_algorithms_are_refused(algorithm):
    with pytest.raises(InvalidValue, match="hash algorithm") as caught:
        signed_envelope(hash_algorithm=algorithm)
    assert caught.value.path == "hash_algorithm"


def test_nothing_to_sign_is_refused():
    with pytest.raises(InvalidValue, match="neither body nor extension"):
        signed_envelope(body=None, extension=None)


def test_a_second_signature_is_refused():
    envelope = parse_envelope(signed_envelope())
    with pytest.raises(InvalidValue, match="signed already"):
        sign(envelope, signer().signer, queue_manager=GUID, body=BODY)
