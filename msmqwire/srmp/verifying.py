"""Checking the Signature of a message: [MC-MQSRM] 3.1.5.1.6.1.

A message that the specification says to disregard raises InvalidSignature here, or, for a missing element,
MalformedPacket already when the envelope is read. Beyond the text, all that the signature does not cover of
the parts is refused, and every element in Signature that is not understood: it could change the signed parts.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from hmac import compare_digest
from typing import Final

from msmqwire.errors import InvalidSignature, InvalidValue
from msmqwire.names.printable import counted
from msmqwire.srmp.certificates import Certificate, Trust
from msmqwire.srmp.content import Content
from msmqwire.srmp.envelope import Envelope
from msmqwire.srmp.message import SrmpMessage
from msmqwire.srmp.multipart import BODY_ID, EXTENSION_ID, PARTS, Part
from msmqwire.srmp.schema_names import SIGNATURE
from msmqwire.srmp.signature_element import (
    CANONICALIZATIONS,
    CID,
    DIGESTS,
    DSA,
    KEY_INFO,
    SIGNATURE_PATH,
    SIGNED_INFO_PATH,
    SignatureElement,
)
from msmqwire.srmp.signature_keys import is_value_of

OFFERED_MAX: Final = 4
"""The most certificates in KeyInfo: few enough that the chains among them are soon tried."""
OFFERED_SIZE_MAX: Final = 16_384
"""Characters of one of them, in base64."""

_METHOD_PATH: Final = f"{SIGNED_INFO_PATH}.SignatureMethod"
_VALUE_PATH: Final = f"{SIGNATURE_PATH}.SignatureValue"
_KEY_INFO_PATH: Final = f"{SIGNATURE_PATH}.{KEY_INFO}"
# As `UndeclaredElement.xml` has them.
_KEY_INFO_START: Final = f'<{KEY_INFO} xmlns="{SIGNATURE}"'
_CANONICALIZATIONS: Final = {
    f'<CanonicalizationMethod xmlns="{SIGNATURE}" Algorithm="{name}"></CanonicalizationMethod>': exclusive
    for name, exclusive in CANONICALIZATIONS.items()
}
_NO_PART: Final = {BODY_ID: "SRMP-3.1.5.1.6.1-08", EXTENSION_ID: "SRMP-3.1.5.1.6.1-09"}
_TWICE: Final = {BODY_ID: "SRMP-3.1.5.1.6.1-10", EXTENSION_ID: "SRMP-3.1.5.1.6.1-11"}
_UNCOVERED: Final = {BODY_ID: "SRMP-2.2.7.1.2-02", EXTENSION_ID: "SRMP-2.2.7.1.2-03"}


@dataclass(frozen=True)
class Verified:
    """The signer that a signature proves: these bytes come from its owner. Nothing of the envelope is proved.

    Attributes:
        signer: the owner of the key that made the signature.
        body: the content of the part that is signed; None if there is none in the message.
        extension: likewise.
    """

    signer: Certificate
    body: bytes | None
    extension: bytes | None


def verify(message: SrmpMessage, trust: Trust, now: int) -> Verified:
    """Return the signer that the Signature of a message proves, at a time in seconds since 1970-01-01 UTC.

    SignedInfo is taken as it is written, as no method of canonicalization is defined (SRMP-2.2.7-03); with
    a CanonicalizationMethod, which [XMLDSig] wants, in that form. A certificate comes from `trust`, or from
    KeyInfo if one of `trust` has issued it.

    Raises InvalidSignature with the path; MalformedPacket for a message whose envelope can't be parsed.
    """
    data, envelope = message.envelope_bytes, message.envelope
    if data is None or envelope is None or envelope.Signature is None:  # SRMP-3.1.5.1.6.1-02
        raise InvalidSignature("no Signature (SRMP-3.1.5.1.6.1-02)", path=SIGNATURE_PATH)
    signature: Content = envelope.Signature
    if signature.SignedInfo.SignatureMethod.Algorithm != DSA:
        raise InvalidSignature("another algorithm (SRMP-3.1.5.1.6.1-05)", path=_METHOD_PATH)
    form, has_key_info = _beside(envelope)
    covered = _covered(message, signature.SignedInfo.Reference)
    element = SignatureElement(data)
    signed = element.signed_info if form is None else element.canonical_signed_info(form)
    offered = _offered(element) if has_key_info else []
    signer = _signer(signed, signature.SignatureValue, trust, offered, now)
    return Verified(signer, covered.get(BODY_ID), covered.get(EXTENSION_ID))


def _beside(envelope: Envelope) -> tuple[bool | None, bool]:
    """Return the canonical form by which SignedInfo is signed, if any, and whether there is KeyInfo.

    Raises InvalidSignature for any other element that 2.2.7 does not have.
    """
    form: bool | None = None
    has_key_info = False
    for kept in envelope.kept:
        if kept.path != SIGNATURE_PATH and not kept.path.startswith(f"{SIGNATURE_PATH}."):
            continue
        if kept.path == SIGNED_INFO_PATH and form is None and kept.xml in _CANONICALIZATIONS:
            form = _CANONICALIZATIONS[kept.xml]
        elif kept.path == SIGNATURE_PATH and not has_key_info and kept.xml.startswith(_KEY_INFO_START):
            has_key_info = True
        else:
            raise InvalidSignature(f"{kept.xml[:80]!r} is not understood", path=kept.path)
    return form, has_key_info


def _covered(message: SrmpMessage, references: Sequence[Content]) -> dict[str, bytes]:
    """Return the contents that are signed, by the start of their Content-Id.

    Raises InvalidSignature unless each Reference names one part, and all parts but the envelope are named.
    """
    if not references:
        raise InvalidSignature("no Reference (SRMP-3.1.5.1.6.1-06)", path=SIGNED_INFO_PATH)
    content = message.content
    parts = () if isinstance(content, bytes) else content.parts
    envelope_number = None if isinstance(content, bytes) else content.envelope_number
    covered: dict[str, bytes] = {}
    numbers = {envelope_number}
    for index, reference in enumerate(references):
        path = f"{SIGNED_INFO_PATH}.Reference[{index}]"
        uri = reference.URI.lower()
        prefix = next((prefix for prefix in _NO_PART if uri.startswith(CID + prefix)), None)
        if prefix is None:
            raise InvalidSignature("it is neither of the body nor of the extension", path=f"{path}.URI")
        if prefix in covered:
            raise InvalidSignature(f"a second one of {prefix} ({_TWICE[prefix]})", path=f"{path}.URI")
        named = next((n for n, part in enumerate(parts) if CID + part.content_id == uri), None)
        if named is None:
            raise InvalidSignature(f"no such part ({_NO_PART[prefix]})", path=f"{path}.URI")
        _check_digest(parts[named], reference, path)
        covered[prefix] = parts[named].content
        numbers.add(named)
    for number, part in enumerate(parts):
        if number not in numbers:
            requirement = next(
                (r for prefix, r in _UNCOVERED.items() if part.has_id(prefix)), "SRMP-2.2.7-03"
            )
            raise InvalidSignature(f"it is not signed ({requirement})", path=f"{PARTS}[{number}]")
    return covered


def _check_digest(part: Part, reference: Content, path: str) -> None:
    digest = DIGESTS.get(reference.DigestMethod.Algorithm)
    if digest is None:
        raise InvalidSignature("another algorithm (SRMP-3.1.5.1.6.1-13)", path=f"{path}.DigestMethod")
    if not compare_digest(digest(part.content), reference.DigestValue):
        raise InvalidSignature(
            "the part has another digest (SRMP-3.1.5.1.6.1-16)", path=f"{path}.DigestValue"
        )


def _offered(element: SignatureElement) -> list[Certificate]:
    """Return the certificates of KeyInfo, which prove nothing yet. Raises InvalidSignature."""
    texts = element.certificates()
    if len(texts) > OFFERED_MAX:
        raise InvalidSignature(f"more than {OFFERED_MAX} certificates", path=_KEY_INFO_PATH)
    certificates = []
    for text in texts:
        if len(text) > OFFERED_SIZE_MAX:
            raise InvalidSignature(f"a certificate of {counted(len(text), 'character')}", path=_KEY_INFO_PATH)
        try:
            certificates.append(Certificate.read(base64.b64decode(text, validate=True)))
        except (InvalidValue, binascii.Error, ValueError) as exc:
            raise InvalidSignature(f"not a certificate: {exc}"[:200], path=_KEY_INFO_PATH) from None
    return certificates


def _signer(
    signed: bytes, value: bytes, trust: Trust, offered: Sequence[Certificate], now: int
) -> Certificate:
    """Return the signer. Raises InvalidSignature if it is not a trusted one."""
    why = "no certificate that is known verifies it"
    for certificate in (*trust.certificates, *offered):
        if certificate.key is not None and is_value_of(certificate.key, signed, value):
            doubt = trust.why_not(certificate, offered, now)
            if not doubt:
                return certificate
            why = f"{certificate.subject[:100]}: {doubt}"
    raise InvalidSignature(f"{why} (SRMP-3.1.5.1.6.1-20)", path=_VALUE_PATH)
