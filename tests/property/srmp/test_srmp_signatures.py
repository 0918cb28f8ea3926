"""Signed messages from a hostile peer: only our errors, and only what is signed is verified."""

from __future__ import annotations

import base64
from functools import cache

from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from msmqwire.errors import InvalidSignature, InvalidValue, MalformedPacket
from msmqwire.qm.model.enumerations import AuthenticationLevel
from msmqwire.qm.protocols.srmp.deserializing import deserialize
from msmqwire.qm.protocols.srmp.signatures import authenticate
from msmqwire.srmp.certificates import Certificate, Trust
from msmqwire.srmp.message import parse_message
from msmqwire.srmp.verifying import verify
from tests.support.srmp.srmp_mapping import ARRIVAL
from tests.support.srmp.srmp_signatures import (
    BODY,
    EXTENSION,
    request_of,
    signed_envelope,
    signer,
)

KINDS = ("RSA", "DSA")


@cache
def certificate(kind: str = "RSA") -> bytes:
    return signer(kind).certificate.public_bytes(Encoding.DER)


@cache
def envelope(kind: str) -> bytes:
    key_info = f"<KeyInfo><X509Data><X509Certificate>{base64.b64encode(certificate(kind)).decode()}"
    closing = "</X509Certificate></X509Data></KeyInfo></Signature>"
    return signed_envelope(signer(kind)).replace(b"</Signature>", (key_info + closing).encode())


@cache
def trust() -> Trust:
    return Trust(item for kind in KINDS for item in signer(kind).trust.certificates)


CANONICAL = b'<CanonicalizationMethod Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/>'
WORDS = st.sampled_from(
    [
        b"", b"<", b">", b'"', b"/>", b"<Reference>", b"</SignedInfo>", b"<SignedInfo>", b"cid:body@",
        b"cid:extension@", b"http://www.w3.org/2000/09/xmldsig#", b"<!--", b"-->", b"<![CDATA[", b"]]>",
        b"&#65;", b"AAAA", b"=", b"<Transforms/>", CANONICAL,
        b"xmlns:m='msmq.namespace.xml'", b"body@", b"evil", b"\xff",
    ]
)  # fmt: skip


@st.composite
def changed(draw, data: bytes) -> bytes:
    """The bytes with up to three spans taken out, copied elsewhere, or replaced."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 400)))
        new = draw(WORDS | st.just(data[start:end] * 2) | st.binary(max_size=3))
        at = draw(st.none() | st.integers(0, len(data)))
        data = data[:start] + new + data[end:] if at is None else data[:at] + data[start:end] + data[at:]
    return data


@given(st.data())
def test_what_is_verified_is_what_was_signed(data):
    kind = data.draw(st.sampled_from(KINDS))
    wire = request_of(envelope(kind), BODY, EXTENSION).to_bytes()
    if data.draw(st.booleans()):  # the envelope alone: its length stays right
        text = data.draw(changed(envelope(kind)))
        body, extension = data.draw(st.sampled_from([(BODY, EXTENSION), (b"evil", EXTENSION), (BODY, None)]))
    else:
        text, wire = None, data.draw(changed(wire))
    try:
        received = parse_message(wire) if text is None else request_of(text, body, extension)
        message = deserialize(received, ARRIVAL)
        authenticate(received, message, trust())
    except (MalformedPacket, InvalidSignature, InvalidValue):
        return
    if message.authentication_level is AuthenticationLevel.XML_SIG:
        assert (message.body, message.extension) == (BODY, EXTENSION)
        assert message.sender_certificate == certificate(kind)


@given(st.data())
def test_a_certificate_is_read_or_refused(data):
    kind = data.draw(st.sampled_from(KINDS))
    der = data.draw(changed(certificate(kind)) | st.binary(max_size=200))
    try:
        read = Certificate.read(der)
    except InvalidValue:
        return
    assert Trust([read]).why_not(read, [read], ARRIVAL) in (
        "", "its certificate is not for signatures", "its certificate is not valid at this time"
    )  # fmt: skip
    if read.der != certificate(kind):
        assert trust().why_not(read, [read], ARRIVAL)


@given(st.binary(max_size=300))
def test_any_value(value):
    text = f"<SignatureValue>{base64.b64encode(value).decode()}</SignatureValue>".encode()
    for kind in KINDS:
        data = envelope(kind)
        start, end = data.index(b"<SignatureValue>"), data.index(b"</SignatureValue>") + 17
        try:
            verify(request_of(data[:start] + text + data[end:]), trust(), ARRIVAL)
        except InvalidSignature:
            continue
        raise AssertionError("a made-up value is one")
