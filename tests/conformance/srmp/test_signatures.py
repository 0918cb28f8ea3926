"""Signatures of messages of the queue manager: [MC-MQSRM] 3.1.5.1.6.1 and 3.1.7.2.4."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from msmqwire.constants import HashAlgorithm
from msmqwire.errors import InvalidSignature, InvalidValue
from msmqwire.names import parse_format_name
from msmqwire.qm.model.enumerations import AuthenticationLevel
from msmqwire.qm.model.message import Message, ObjectId
from msmqwire.qm.protocols.srmp.deserializing import deserialize
from msmqwire.qm.protocols.srmp.serializing import serialize
from msmqwire.qm.protocols.srmp.signatures import authenticate, signed
from msmqwire.qm.rules.serialization import from_stored, to_stored
from msmqwire.srmp.certificates import Trust
from msmqwire.srmp.envelope import build_envelope, parse_envelope
from tests.support.srmp.srmp_envelopes import GUID
from tests.support.srmp.srmp_mapping import ARRIVAL, SENT
from tests.support.srmp.srmp_signatures import (
    BODY,
    EXTENSION,
    MD5_URI,
    SHA1_URI,
    YEAR,
    request_of,
    signed_envelope,
    signed_request,
    signer,
    unsigned_envelope,
)

XML_SIG = AuthenticationLevel.XML_SIG


def outgoing(**attributes: object) -> Message:
    given = {
        "identifier": ObjectId(GUID, 7),
        "source_machine_identifier": GUID,
        "sent_time": SENT,
        "destination": parse_format_name("DIRECT=http://h/msmq/q"),
        "body": BODY,
        "extension": EXTENSION,
    }
    return Message(**{**given, **attributes})


def sent(message: Message, by: object = None):
    parts = serialize(message, queue_manager=GUID)
    return signed(parts, message, by, queue_manager=GUID)


# -- receiving --------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "SRMP-3.1.5.1.6.1-01", "SRMP-3.1.5.1.6.1-21", "SRMP-3.1.5.1.1-47", "DMPR-3.1.1.12-16"
)
@pytest.mark.parametrize("kind", ["RSA", "DSA"])
def test_a_verified_message(kind):
    issued = signer(kind)
    received = signed_request(issued)
    message = deserialize(received, ARRIVAL)
    assert message.authentication_level is AuthenticationLevel.NONE
    authenticate(received, message, issued.trust, required=True)
    assert message.authentication_level is XML_SIG
    assert message.sender_certificate == issued.certificate.public_bytes(Encoding.DER)
    assert message.signature == b""
    value = base64.b64encode(received.envelope.Signature.SignatureValue).decode()
    assert f"<SignatureValue>{value}</SignatureValue>" in message.soap_envelope
    again = from_stored(to_stored(message), GUID)
    for attribute in ("authentication_level", "sender_certificate", "body", "extension", "soap_envelope"):
        assert getattr(again, attribute) == getattr(message, attribute)


@pytest.mark.requirement("SRMP-3.1.5.1.6.1-01", "SRMP-3.1.5.1.6.1-02", "SRMP-3.1.5.1.1-47")
def test_a_message_without_signature():
    received = request_of(unsigned_envelope())
    message = deserialize(received, ARRIVAL)
    authenticate(received, message, signer().trust)
    assert message.authentication_level is AuthenticationLevel.NONE
    assert message.sender_certificate == b""
    with pytest.raises(InvalidSignature, match=r"SRMP-3\.1\.5\.1\.6\.1-02"):
        authenticate(received, message, signer().trust, required=True)


@pytest.mark.requirement("SRMP-3.1.5.1.6.1-01", "SRMP-3.1.5.1.6.1-20")
@pytest.mark.parametrize(
    ("received", "arrival", "trust"),
    [
        (signed_request(), ARRIVAL, Trust()),
        (signed_request(), ARRIVAL, signer("DSA").trust),
        (signed_request(), ARRIVAL + 2 * YEAR, signer().trust),
        (request_of(signed_envelope(), b"evil"), ARRIVAL, signer().trust),
    ],
    ids=["nobody trusted", "another", "expired", "changed"],
)
def test_a_message_that_is_disregarded(received, arrival, trust):
    message = deserialize(received, arrival)
    with pytest.raises(InvalidSignature):
        authenticate(received, message, trust)
    assert message.authentication_level is AuthenticationLevel.NONE
    assert message.sender_certificate == b""


@pytest.mark.requirement("DMPR-3.1.1.12-16")
@pytest.mark.parametrize("attribute", ["body", "extension"])
def test_the_message_must_be_the_one_that_is_signed(attribute):
    received = signed_request()
    message = deserialize(received, ARRIVAL).copy(**{attribute: b"evil"})
    with pytest.raises(InvalidSignature, match="another body or extension"):
        authenticate(received, message, signer().trust)


# -- sending ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.1.12-16")
@pytest.mark.requirement("SRMP-3.1.7.2.4-37", "SRMP-3.1.7.2.4-39", "SRMP-3.1.7.2.4-40")
@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize(("body", "extension"), [(BODY, EXTENSION), (BODY, b""), (b"", EXTENSION)])
@pytest.mark.requirement("SRMP-3.1.5.1.1-07")
def test_a_signed_message_comes_back_as_it_was(asked, body, extension):
    """Asked for by the message, or by a signer that is configured for all."""
    level = XML_SIG if asked else AuthenticationLevel.NONE
    message = outgoing(authentication_level=level, body=body, extension=extension)
    parts = sent(message, signer("DSA").signer)
    data = build_envelope(parts.envelope)
    assert data.index(b"</Msmq><Signature xmlns=") < data.index(b"</Signature></se:Header>")
    uris = [reference.URI for reference in parts.envelope.Signature.SignedInfo.Reference]
    keywords = [word for word, part in (("body", body), ("extension", extension)) if part]
    assert uris == [f"cid:{word}@{GUID}" for word in keywords]
    received = request_of(data, parts.body, parts.extension)
    arrived = deserialize(received, ARRIVAL)
    authenticate(received, arrived, signer("DSA").trust, required=True)
    assert (arrived.body, arrived.extension, arrived.label) == (body, extension, message.label)
    assert arrived.authentication_level is XML_SIG


@pytest.mark.requirement("SRMP-3.1.7.2.4-37")
@pytest.mark.parametrize("level", [AuthenticationLevel.NONE, AuthenticationLevel.SIG20])
def test_no_signature_that_nobody_asks_for(level):
    message = outgoing(authentication_level=level)
    assert sent(message) == serialize(message, queue_manager=GUID)
    assert parse_envelope(build_envelope(sent(message).envelope)).Signature is None


@pytest.mark.requirement("SRMP-3.1.7.2.4-37")
def test_nothing_to_sign():
    empty = outgoing(body=b"", extension=b"")
    assert sent(empty, signer().signer).envelope.Signature is None
    with pytest.raises(InvalidValue, match="neither body nor extension"):
        sent(outgoing(body=b"", extension=b"", authentication_level=XML_SIG), signer().signer)


def test_a_signature_without_a_key():
    with pytest.raises(InvalidValue, match="no key is configured") as caught:
        sent(outgoing(authentication_level=XML_SIG))
    assert caught.value.path == "authentication_level"


@pytest.mark.requirement("SRMP-3.1.7.2.4-41", "SRMP-3.1.7.2.4-42", "SRMP-3.1.7.2.4-43")
@pytest.mark.requirement("SRMP-2.2.7.1.2.1-02")
def test_the_hash_algorithm_of_the_message():
    for algorithm, uri in ((HashAlgorithm.CALG_SHA1, SHA1_URI), (HashAlgorithm.CALG_MD5, MD5_URI)):
        parts = sent(outgoing(hash_algorithm=algorithm), signer().signer)
        methods = {item.DigestMethod.Algorithm for item in parts.envelope.Signature.SignedInfo.Reference}
        assert methods == {uri}
    (reference, _) = sent(outgoing(), signer().signer).envelope.Signature.SignedInfo.Reference
    assert reference.DigestMethod.Algorithm == SHA1_URI, "by default"
    with pytest.raises(InvalidValue, match="hash algorithm"):
        sent(outgoing(hash_algorithm=HashAlgorithm.CALG_SHA_512), signer().signer)
