"""Signatures that we make are right for xmlsec1, and those of xmlsec1 for us."""

from __future__ import annotations

import base64
import re

import pytest

from msmqwire.errors import InvalidSignature
from msmqwire.srmp.signature_element import CANONICALIZATIONS, SignatureElement
from msmqwire.srmp.signature_keys import make_value
from msmqwire.srmp.verifying import verify
from tests.support.srmp.srmp_envelopes import GUID
from tests.support.srmp.srmp_mapping import ARRIVAL
from tests.support.srmp.srmp_signatures import BODY, EXTENSION, request_of, signed_envelope, signer
from tests.support.xmlsec1 import Xmlsec1

PARTS = {f"body@{GUID}": BODY, f"extension@{GUID}": EXTENSION}
KINDS = ("RSA", "DSA", "DSA-256")


def absolute(envelope: bytes) -> bytes:
    """The envelope for xmlsec1: to find SignedInfo it goes through all of it, and refuses the one
    namespace that is not absolute, which SignedInfo has nothing to do with."""
    assert envelope.count(b'"msmq.namespace.xml"') == 1
    return envelope.replace(b'"msmq.namespace.xml"', b'"urn:msmq.namespace.xml"')


def with_method(envelope: bytes, method: str) -> bytes:
    """The envelope with a CanonicalizationMethod, which xmlsec1 wants and SRMP does not have."""
    element = f'<CanonicalizationMethod Algorithm="{method}"></CanonicalizationMethod>'
    return envelope.replace(b"<SignatureMethod ", element.encode() + b"<SignatureMethod ")


@pytest.mark.requirement("SRMP-2.2.7-02", "SRMP-2.2.7-03", "SRMP-2.2.7.2-02")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", CANONICALIZATIONS)
def test_ours_is_right_for_xmlsec1(tmp_path, kind, method):
    issued = signer(kind)
    other = Xmlsec1(tmp_path, kind[:3], issued.key)
    envelope = with_method(signed_envelope(issued), method)
    octets = SignatureElement(envelope).canonical_signed_info(CANONICALIZATIONS[method])
    value = base64.b64encode(make_value(issued.signer.key, octets))
    envelope = re.sub(b"(?<=<SignatureValue>)[^<]*", value, envelope)
    assert verify(request_of(envelope), issued.trust, ARRIVAL).body == BODY
    assert other.verifies(absolute(envelope), PARTS)
    assert not other.verifies(absolute(envelope), {**PARTS, f"body@{GUID}": b"evil"})
    assert not other.verifies(absolute(envelope).replace(b"cid:body", b"cid: body"), PARTS)


@pytest.mark.requirement("SRMP-2.2.7-02", "SRMP-2.2.7-03", "SRMP-2.2.7.2-02", "SRMP-3.1.5.1.6.1-20")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", CANONICALIZATIONS)
def test_that_of_xmlsec1_is_right_for_us(tmp_path, kind, method):
    issued = signer(kind)
    other = Xmlsec1(tmp_path, kind[:3], issued.key)
    template = with_method(signed_envelope(issued), method)
    template = re.sub(b"<(DigestValue|SignatureValue)>[^<]*", rb"<\1>", template)
    data = other.sign(absolute(template), PARTS).replace(b'"urn:msmq', b'"msmq')
    assert data.count(b"<DigestValue></DigestValue>") == 0
    verified = verify(request_of(data), issued.trust, ARRIVAL)
    assert (verified.body, verified.extension) == (BODY, EXTENSION)
    with pytest.raises(InvalidSignature, match="another digest"):
        verify(request_of(data, b"evil"), issued.trust, ARRIVAL)
    changed = data.replace(b"<Reference URI=", b"<Reference Id='a' URI=")
    with pytest.raises(InvalidSignature, match="no certificate that is known"):
        verify(request_of(changed), issued.trust, ARRIVAL)
