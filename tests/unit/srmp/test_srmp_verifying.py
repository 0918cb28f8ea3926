"""Signatures that prove nothing, or not all, are refused: [MC-MQSRM] 3.1.5.1.6.1."""

from __future__ import annotations

import base64
import re
from dataclasses import replace

import pytest

from msmqwire.errors import InvalidSignature, MalformedPacket
from msmqwire.srmp.certificates import Trust
from msmqwire.srmp.envelope import build_envelope, parse_envelope
from msmqwire.srmp.fields import Field
from msmqwire.srmp.message import SrmpMessage, parse_message
from msmqwire.srmp.multipart import CONTENT_ID, payload_part
from msmqwire.srmp.signature_element import CANONICALIZATIONS, SignatureElement
from msmqwire.srmp.signature_keys import make_value
from msmqwire.srmp.signing import sign
from msmqwire.srmp.verifying import OFFERED_MAX, verify
from tests.support.srmp.srmp_envelopes import GUID, SIGNATURE, SOAP
from tests.support.srmp.srmp_mapping import ARRIVAL
from tests.support.srmp.srmp_signatures import (
    BODY,
    DSA_URI,
    EXTENSION,
    MD5_URI,
    SHA1_URI,
    request_of,
    signed_envelope,
    signed_request,
    signer,
    unsigned_envelope,
)

PATH = "Envelope.Header.Signature"
INFO = f"{PATH}.SignedInfo"
XMLDSIG = "http://www.w3.org/2000/02/xmldsig#"
OTHER_GUID = "dc1cd9a6-8130-4504-88d2-851707fe4632"
KINDS = ("RSA", "DSA")


def refused(message: SrmpMessage, trust: Trust | None = None) -> InvalidSignature:
    with pytest.raises(InvalidSignature) as caught:
        verify(message, trust or signer().trust, ARRIVAL)
    return caught.value


def edited(old: str, new: str, data: bytes | None = None) -> bytes:
    data = data or signed_envelope()
    assert old.encode() in data
    return data.replace(old.encode(), new.encode(), 1)


def signed_anew(text: str, form: bool | None = None) -> bytes:
    """An envelope whose SignatureValue is right for the SignedInfo that this text has."""
    text = re.sub("<SignatureValue>.*</SignatureValue>", "<SignatureValue>*</SignatureValue>", text)
    element = SignatureElement(text.replace("*", "").encode())
    octets = element.signed_info if form is None else element.canonical_signed_info(form)
    value = make_value(signer().signer.key, octets)
    return text.replace("*", base64.b64encode(value).decode()).encode()


def references(*uris: str, digest: str = "", algorithm: str = SHA1_URI) -> bytes:
    """An envelope that is signed with these references; each has the digest of its part, or `digest`."""
    digests = re.findall("<DigestValue>(.*?)</DigestValue>", signed_envelope().decode())
    text = "".join(
        f'<Reference URI="{uri}"><DigestMethod Algorithm="{algorithm}"></DigestMethod>'
        f"<DigestValue>{digest or digests['extension' in uri]}</DigestValue></Reference>"
        for uri in uris
    )
    whole = re.sub("<Reference.*</Reference>", text, signed_envelope().decode())
    return signed_anew(whole)


BODY_URI, EXTENSION_URI = f"cid:body@{GUID}", f"cid:extension@{GUID}"


# -- tampering --------------------------------------------------------------------------------------------


@pytest.mark.requirement("SRMP-3.1.5.1.6.1-20")
@pytest.mark.parametrize("kind", KINDS)
def test_no_bit_of_the_signature_can_be_changed(kind):
    issued = signer(kind)
    data = signed_envelope(issued)
    start, end = data.index(b"<Signature "), data.index(b"</Signature>") + 12
    last = data.index(b"</SignatureValue>") - data[:end].count(b"=</SignatureValue>") - 1
    original = verify(request_of(data), issued.trust, ARRIVAL)
    for at in range(start, end):
        changed = bytearray(data)
        changed[at] ^= 1 << at % 7
        try:
            again = verify(request_of(bytes(changed)), issued.trust, ARRIVAL)
        except (InvalidSignature, MalformedPacket):
            continue
        # Only the last character of the value has bits that base64 does not use.
        assert last - 1 <= at <= last
        assert again == original


@pytest.mark.requirement(
    "SRMP-3.1.5.1.6.1-15", "SRMP-3.1.5.1.6.1-16", "SRMP-3.1.5.1.6.1-17", "SRMP-3.1.5.1.6.1-18"
)
@pytest.mark.parametrize("algorithm", [0x8003, 0x8004])
@pytest.mark.parametrize(
    ("body", "extension", "number"),
    [(BODY + b"!", EXTENSION, 0), (BODY, EXTENSION[:-1], 1), (EXTENSION, BODY, 0)],
)
def test_changed_parts_are_refused(algorithm, body, extension, number):
    exc = refused(request_of(signed_envelope(hash_algorithm=algorithm), body, extension))
    assert exc.path == f"{INFO}.Reference[{number}].DigestValue"


@pytest.mark.requirement("SRMP-3.1.5.1.6.1-20")
def test_digests_that_fit_the_changed_part_are_refused():
    forged = b"forged"
    envelope = signed_envelope(body=forged)
    value = re.search("<SignatureValue>.*</SignatureValue>", signed_envelope().decode())[0]
    with_old_value = re.sub("<SignatureValue>.*</SignatureValue>", value, envelope.decode()).encode()
    assert refused(request_of(with_old_value, forged)).path == f"{PATH}.SignatureValue"


@pytest.mark.requirement("SRMP-3.1.5.1.6.1-20")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "value", [b"", b"\0", bytes(40), b"\xff" * 40, bytes(39), bytes(128), b"\xff" * 9000]
)
def test_values_that_are_none(kind, value):
    issued = signer(kind)
    text = f"<SignatureValue>{base64.b64encode(value).decode()}</SignatureValue>"
    data = re.sub("<SignatureValue>.*</SignatureValue>", text, signed_envelope(issued).decode()).encode()
    assert refused(request_of(data), issued.trust).path == f"{PATH}.SignatureValue"


def test_the_envelope_is_not_signed():
    """As the specification has it: no reference of it can cover the header."""
    data = edited("MSMQ:l</action>", "MSMQ:another label</action>")
    assert verify(request_of(data), signer().trust, ARRIVAL).body == BODY


# -- what Signature says ----------------------------------------------------------------------------------


@pytest.mark.requirement("SRMP-3.1.5.1.6.1-05", "SRMP-2.2.7-02")
@pytest.mark.parametrize(
    "uri",
    [
        DSA_URI.replace("/02/", "/09/"),
        "http://www.w3.org/2000/09/xmldsig#dsa-sha1",
        f"{XMLDSIG}rsa-sha1",
        DSA_URI.upper(),
        f" {DSA_URI}",
        "",
    ],
)
def test_another_signature_method(uri):
    exc = refused(request_of(signed_anew(edited(f'"{DSA_URI}"', f'"{uri}"').decode())))
    assert (exc.path, "SRMP-3.1.5.1.6.1-05" in exc.why) == (f"{INFO}.SignatureMethod", True)


@pytest.mark.requirement("SRMP-3.1.5.1.6.1-13")
@pytest.mark.parametrize(
    "uri",
    [SHA1_URI.replace("/02/", "/09/"), f"{XMLDSIG}sha256", "http://www.w3.org/2001/04/xmlenc#sha256", ""],
)
def test_another_digest_method(uri):
    exc = refused(request_of(references(BODY_URI, EXTENSION_URI, algorithm=uri)))
    assert exc.path == f"{INFO}.Reference[0].DigestMethod"


@pytest.mark.requirement("SRMP-3.1.5.1.6.1-13", "SRMP-3.1.5.1.6.1-15", "SRMP-3.1.5.1.6.1-16")
@pytest.mark.parametrize(("uri", "characters"), [(SHA1_URI, 28), (MD5_URI, 24)])
def test_a_digest_counts_by_its_own_method(uri, characters):
    """A digest of the other method, or a part of one, is none."""
    data = signed_envelope(hash_algorithm=0x8004 if uri == SHA1_URI else 0x8003, extension=None)
    digest = re.search(b"<DigestValue>(.*)</DigestValue>", data)[1].decode()
    assert len(digest) == characters
    verify(request_of(data, extension=None), signer().trust, ARRIVAL)
    other = MD5_URI if uri == SHA1_URI else SHA1_URI
    assert refused(request_of(signed_anew(edited(uri, other, data).decode()), extension=None))
    assert refused(request_of(signed_anew(edited(digest, digest[:20], data).decode()), extension=None))
    assert refused(request_of(signed_anew(edited(digest, "", data).decode()), extension=None))


@pytest.mark.requirement(
    "SRMP-3.1.5.1.6.1-03",
    "SRMP-3.1.5.1.6.1-04",
    "SRMP-3.1.5.1.6.1-12",
    "SRMP-3.1.5.1.6.1-14",
    "SRMP-3.1.5.1.6.1-19",
)
@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("SignedInfo", INFO),
        ("SignatureMethod", f"{INFO}.SignatureMethod"),
        ("DigestMethod", f"{INFO}.Reference[0].DigestMethod"),
        ("DigestValue", f"{INFO}.Reference[0].DigestValue"),
        ("SignatureValue", f"{PATH}.SignatureValue"),
    ],
)
def test_a_missing_element(name, path):
    data = re.sub(f"<{name}[ >].*?</{name}>", "", signed_envelope().decode(), count=1).encode()
    with pytest.raises(MalformedPacket) as caught:
        request_of(data)
    assert caught.value.path == path


@pytest.mark.requirement("SRMP-3.1.5.1.6.1-06", "SRMP-3.1.5.1.6.1-07")
def test_the_number_of_references():
    exc = refused(request_of(references(), None, None))
    assert (exc.path, "SRMP-3.1.5.1.6.1-06" in exc.why) == (INFO, True)
    with pytest.raises(MalformedPacket) as caught:
        request_of(references(BODY_URI, EXTENSION_URI, BODY_URI))
    assert caught.value.path == f"{INFO}.Reference[2]"


@pytest.mark.requirement("SRMP-3.1.5.1.6.1-08", "SRMP-3.1.5.1.6.1-09")
@pytest.mark.parametrize(
    ("uris", "parts", "number"),
    [
        ((BODY_URI, EXTENSION_URI), {"body": None}, 0),
        ((BODY_URI, EXTENSION_URI), {"extension": None}, 1),
        ((BODY_URI,), {"body": None, "extension": None}, 0),
        ((EXTENSION_URI,), {"extension": None}, 0),
        ((f"cid:body@{OTHER_GUID}", EXTENSION_URI), {}, 0),
    ],
)
def test_a_reference_to_no_part(uris, parts, number):
    exc = refused(request_of(references(*uris), **parts))
    assert exc.path == f"{INFO}.Reference[{number}].URI"
    assert "no such part (SRMP-3.1.5.1.6.1-0" in exc.why


@pytest.mark.requirement("SRMP-3.1.5.1.6.1-10", "SRMP-3.1.5.1.6.1-11")
@pytest.mark.parametrize(("uri", "requirement"), [(BODY_URI, "-10"), (EXTENSION_URI, "-11")])
def test_two_references_to_one_part(uri, requirement):
    exc = refused(request_of(references(uri, uri)))
    assert (exc.path, f"SRMP-3.1.5.1.6.1{requirement}" in exc.why) == (f"{INFO}.Reference[1].URI", True)


@pytest.mark.parametrize(
    "uri",
    [
        "http://evil/body",
        "file:///etc/passwd",
        "",
        "#body",
        "#xpointer(/)",
        f"http://h/?cid:body@{GUID}",
        f"body@{GUID}",
        "cid:envelope@x",
    ],
)
def test_nothing_outside_the_message_is_followed(uri):
    exc = refused(request_of(references(uri)))
    assert (exc.path, "neither of the body" in exc.why) == (f"{INFO}.Reference[0].URI", True)


# -- wrapping: what is used is what is signed -------------------------------------------------------------


@pytest.mark.requirement("SRMP-2.2.7.1.2-02", "SRMP-2.2.7.1.2-03")
@pytest.mark.parametrize(
    ("signed", "number", "requirement"),
    [
        ({"body": BODY, "extension": None}, 2, "SRMP-2.2.7.1.2-03"),
        ({"body": None, "extension": EXTENSION}, 1, "SRMP-2.2.7.1.2-02"),
    ],
)
def test_an_added_part_is_not_signed(signed, number, requirement):
    exc = refused(request_of(signed_envelope(**signed)))
    assert (exc.path, requirement in exc.why) == (f"Multipart.Parts[{number}]", True)


def with_part(content: bytes, content_id: str, at: int) -> SrmpMessage:
    message = signed_request()
    prefix, _, guid = content_id.partition("@")
    part = payload_part(content, f"{prefix}@", guid)
    parts = list(message.content.parts)
    parts.insert(at, part)
    return replace(message, content=replace(message.content, parts=tuple(parts)))


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("guid", [str(GUID), OTHER_GUID, str(GUID).upper()])
def test_a_second_body_beside_the_signed_one(at, guid):
    """Refused when it is read, and by the signature in a message that was made otherwise."""
    message = with_part(b"evil", f"body@{guid}", at)
    assert refused(message)
    entity = message.content.to_bytes()
    fields = tuple(
        Field(field.name, str(len(entity))) if field.name == "Content-Length" else field
        for field in message.fields
    )
    with pytest.raises(MalformedPacket, match="a second part body@"):
        parse_message(replace(message, fields=fields).to_bytes())


def test_a_part_that_is_neither_body_nor_extension():
    assert refused(with_part(b"evil", "attachment@x", 1)).path == "Multipart.Parts[1]"


def test_the_signed_body_under_another_name():
    """The signed bytes become another part, and the body that would be used is not signed."""
    message = signed_request()
    envelope, body, extension = message.content.parts
    renamed = replace(body, fields=tuple(
        Field(CONTENT_ID, f"kept@{GUID}") if field.name == CONTENT_ID else field for field in body.fields
    ))  # fmt: skip
    evil = payload_part(b"evil", "body@", GUID)
    parts = (envelope, renamed, evil, extension)
    assert refused(replace(message, content=replace(message.content, parts=parts)))


SIGNATURE_OF = re.compile("<Signature .*</Signature>")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<se:Body></se:Body>", "<se:Body>{}</se:Body>"),
        ("</Msmq>", "{}</Msmq>"),
        ("</se:Header>", '<wrap xmlns="urn:w">{}</wrap></se:Header>'),
        ("</se:Envelope>", "{}</se:Envelope>"),
    ],
    ids=["Body", "Msmq", "header block", "behind the Body"],
)
@pytest.mark.parametrize("own", [False, True], ids=["alone", "beside a false one"])
def test_a_signature_at_another_place_does_not_count(old, new, own):
    """Only the child of Header is verified: with none there the message is unsigned."""
    text = signed_envelope().decode()
    signature = SIGNATURE_OF.search(text)[0]
    text = text.replace(signature, SIGNATURE if own else "", 1)
    assert text.count(old) == 1
    exc = refused(request_of(text.replace(old, new.format(signature)).encode()))
    assert exc.path.startswith(PATH)


@pytest.mark.parametrize("first", [True, False])
def test_two_signatures(first):
    text = signed_envelope().decode()
    right = SIGNATURE_OF.search(text)[0]
    both = right + SIGNATURE if first else SIGNATURE + right
    with pytest.raises(MalformedPacket, match="more than 1"):
        request_of(text.replace(right, both).encode())


def test_a_second_signed_info():
    """One that is signed stands beside one that would be used."""
    text = signed_envelope().decode()
    signed_info = re.search("<SignedInfo>.*</SignedInfo>", text)[0]
    false = re.search("<SignedInfo>.*</SignedInfo>", signed_envelope(body=b"evil").decode())[0]
    for both in (signed_info + false, false + signed_info):
        with pytest.raises(MalformedPacket, match="more than 1"):
            request_of(text.replace(signed_info, both).encode(), b"evil")
    hidden = f"<Object>{signed_info}</Object>"
    exc = refused(request_of(text.replace(signed_info, false + hidden).encode(), b"evil"))
    assert (exc.path, "not understood" in exc.why) == (PATH, True)


@pytest.mark.parametrize(
    ("before", "inserted", "path"),
    [
        ("<DigestMethod ", "<Transforms><Transform Algorithm='urn:t'/></Transforms>", f"{INFO}.Reference[0]"),
        ("<SignatureMethod ", "<CanonicalizationMethod Algorithm='urn:c'/>", INFO),
        ("<SignatureMethod ", "<CanonicalizationMethod Algorithm='{c14n}'>a</CanonicalizationMethod>", INFO),
        ("<SignatureMethod ", 2 * "<CanonicalizationMethod Algorithm='{c14n}'/>", INFO),
        ("<SignedInfo>", "<CanonicalizationMethod Algorithm='{c14n}'/>", PATH),
        ("</SignedInfo>", "<KeyInfo></KeyInfo>", INFO),
        ("</Signature>", "<KeyInfo></KeyInfo><KeyInfo></KeyInfo>", PATH),
        ("</Signature>", "<Object></Object>", PATH),
        ("</Signature>", "<KeyInfo xmlns='urn:other'></KeyInfo>", PATH),
    ],
)  # fmt: skip
def test_elements_that_could_change_what_is_signed(before, inserted, path):
    inserted = inserted.replace("{c14n}", next(iter(CANONICALIZATIONS)))
    exc = refused(request_of(signed_anew(edited(before, inserted + before).decode())))
    assert (exc.path, "not understood" in exc.why) == (path, True)


@pytest.mark.requirement("SRMP-2.2.7-02")
@pytest.mark.parametrize("namespace", ["http://www.w3.org/2000/09/xmldsig#", "urn:x", XMLDSIG.upper()])
def test_another_namespace_is_no_signature(namespace):
    data = edited(f'<Signature xmlns="{XMLDSIG}"', f'<Signature xmlns="{namespace}"')
    assert refused(request_of(data)).path == PATH


@pytest.mark.requirement("SRMP-3.1.5.1.6.1-02")
def test_no_signature():
    for message in (
        request_of(unsigned_envelope()),
        parse_message(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ):
        exc = refused(message)
        assert (exc.path, "SRMP-3.1.5.1.6.1-02" in exc.why) == (PATH, True)


# -- other forms that are taken ---------------------------------------------------------------------------


def test_prefixes_and_white_space_of_a_peer():
    text = SIGNATURE_OF.search(signed_envelope().decode())[0]
    peers = re.sub("<(/?)(?=[A-Z])", r"<\1d:", text).replace("xmlns=", "xmlns:d=").replace("><", ">\r\n <")
    whole = signed_envelope().decode().replace(text, peers)
    assert verify(request_of(signed_anew_with_prefix(whole)), signer().trust, ARRIVAL).body == BODY


def signed_anew_with_prefix(text: str) -> bytes:
    text = re.sub("(?s)(<d:SignatureValue>).*(</d:SignatureValue>)", r"\1*\2", text)
    signed_info = re.search("(?s)<d:SignedInfo>.*</d:SignedInfo>", text)[0].encode()
    value = make_value(signer().signer.key, signed_info)
    return text.replace("*", base64.encodebytes(value).decode()).encode()


@pytest.mark.parametrize(("method", "exclusive"), CANONICALIZATIONS.items())
def test_a_canonical_form(method, exclusive):
    inserted = f"<CanonicalizationMethod\n Algorithm = '{method}'/>"
    data = signed_anew(edited("<SignatureMethod ", f"{inserted}<SignatureMethod ").decode(), exclusive)
    assert verify(request_of(data), signer().trust, ARRIVAL).extension == EXTENSION
    # As written otherwise, it is the same; with another digest it is not.
    rewritten = data.replace(inserted.encode(), f'<CanonicalizationMethod Algorithm="{method}" />'.encode())
    assert verify(request_of(rewritten), signer().trust, ARRIVAL).body == BODY
    assert refused(request_of(signed_anew(data.decode())))  # over the bytes as they are


@pytest.mark.parametrize("namespace", ["msmq.namespace.xml", "urn:a b", "http://[", "%"])
@pytest.mark.parametrize("method", CANONICALIZATIONS)
def test_a_namespace_that_has_no_canonical_form(method, namespace):
    data = edited("<SignatureMethod ", f'<CanonicalizationMethod Algorithm="{method}"/><SignatureMethod ')
    exc = refused(request_of(data.replace(b"<se:Envelope ", f'<se:Envelope xmlns:m="{namespace}" '.encode())))
    assert exc.path in (INFO, f"{PATH}.SignatureValue")
    assert "no canonical form" in exc.why or CANONICALIZATIONS[method]


def test_the_namespaces_of_a_canonical_form():
    """Those of its place, the inner before the outer; lxml alone adds others: see `SignatureElement`."""
    text = signed_envelope(extension=None).decode()
    text = text.replace("<se:Envelope ", '<se:Envelope xmlns:ns0="urn:0" xmlns:p="urn:1" ')
    text = text.replace("<SignedInfo>", '<SignedInfo Id="i" xmlns:p="urn:2"> <!-- out -->')
    inside = re.search("<SignatureMethod.*</Reference>", text)[0]
    element = SignatureElement(text.encode())
    start = f'<SignedInfo xmlns="{XMLDSIG}"'
    spaces = f'xmlns:ns0="urn:0" xmlns:p="urn:2" xmlns:se="{SOAP}"'
    inclusive = f'{start} {spaces} Id="i"> {inside}</SignedInfo>'
    assert element.canonical_signed_info(False).decode() == inclusive
    assert element.canonical_signed_info(True).decode() == f'{start} Id="i"> {inside}</SignedInfo>'


# -- signers ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("SRMP-3.1.5.1.6.1-21")
def test_who_has_signed_is_found_among_all_who_are_trusted():
    trust = Trust([signer(kind).trust.certificates[0] for kind in ("RSA", "DSA", "DSA-256")])
    for kind in ("RSA", "DSA", "DSA-256"):
        assert verify(signed_request(signer(kind)), trust, ARRIVAL).signer.subject == f"CN=signer {kind}"


@pytest.mark.requirement("SRMP-3.1.5.1.6.1-21")
@pytest.mark.parametrize("trust", [Trust(), signer("DSA").trust, signer("RSA other").trust])
def test_nobody_who_is_trusted(trust):
    exc = refused(signed_request(), trust)
    assert (exc.path, "no certificate that is known" in exc.why) == (f"{PATH}.SignatureValue", True)


@pytest.mark.parametrize(
    ("inside", "why"),
    [
        ("<X509Data><X509Certificate>AAAA</X509Certificate></X509Data>", "not a certificate"),
        ("<X509Data><X509Certificate>!</X509Certificate></X509Data>", "not a certificate"),
        ("<X509Data><X509Certificate/></X509Data>", "not a certificate"),
        (f"<X509Data><X509Certificate>{'A' * 16_388}</X509Certificate></X509Data>", "16,388 characters"),
        ((OFFERED_MAX + 1) * "<X509Data><X509Certificate>AAAA</X509Certificate></X509Data>", "more than"),
    ],
)
def test_a_key_info_that_is_none(inside, why):
    exc = refused(request_of(edited("</Signature>", f"<KeyInfo>{inside}</KeyInfo></Signature>")))
    assert (exc.path, why in exc.why) == (f"{PATH}.KeyInfo", True)


def test_a_signed_envelope_is_kept_when_it_is_built_again():
    envelope = parse_envelope(signed_envelope())
    again = build_envelope(
        sign(envelope.replace(Signature=None), signer().signer, queue_manager=GUID, body=BODY)
    )
    assert verify(request_of(again, extension=None), signer().trust, ARRIVAL).extension is None
