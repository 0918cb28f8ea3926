"""Findings about the Signature of an SRMP message that need no key: [MC-MQSRM] 3.1.5.1.6.1.

Receivers drop the message. Elements that are missing are not found here: no envelope is read without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from hmac import compare_digest
from typing import Final

from msmqwire.analysis.lint.registry import Check, listed
from msmqwire.analysis.lint.srmp_bodies import SRMP
from msmqwire.analysis.lint.srmp_rules import Broken
from msmqwire.constants import HashAlgorithm
from msmqwire.srmp.message import SrmpMessage
from msmqwire.srmp.multipart import BODY_ID, EXTENSION_ID
from msmqwire.srmp.signature_element import CID, DIGEST_NAMES, DIGESTS, DSA, SIGNED_INFO_PATH

_SHA1: Final = DIGEST_NAMES[HashAlgorithm.CALG_SHA1]
_MD5: Final = DIGEST_NAMES[HashAlgorithm.CALG_MD5]


def _rule(id: str, title: str, path: str = "") -> Check:
    return listed(id, title, path, SRMP)


METHOD: Final = _rule(
    "SRMP-3.1.5.1.6.1-05",
    "SignatureMethod is not that of the specification",
    f"{SIGNED_INFO_PATH}.SignatureMethod",
)
NO_REFERENCE: Final = _rule("SRMP-3.1.5.1.6.1-06", "SignedInfo has no Reference", SIGNED_INFO_PATH)
DIGEST_METHOD: Final = _rule("SRMP-3.1.5.1.6.1-13", "DigestMethod is not SHA-1 or MD5")
_NO_PART: Final = {
    BODY_ID: _rule("SRMP-3.1.5.1.6.1-08", "A Reference names a body that is not there"),
    EXTENSION_ID: _rule("SRMP-3.1.5.1.6.1-09", "A Reference names an extension that is not there"),
}
_TWICE: Final = {
    BODY_ID: _rule("SRMP-3.1.5.1.6.1-10", "Two References name the body"),
    EXTENSION_ID: _rule("SRMP-3.1.5.1.6.1-11", "Two References name the extension"),
}
_NOT_SIGNED: Final = {
    BODY_ID: _rule("SRMP-2.2.7.1.2-02", "No Reference names the body", SIGNED_INFO_PATH),
    EXTENSION_ID: _rule("SRMP-2.2.7.1.2-03", "No Reference names the extension", SIGNED_INFO_PATH),
}
_WRONG_DIGEST: Final = {
    (_MD5, BODY_ID): _rule("SRMP-3.1.5.1.6.1-15", "The MD5 of the body is wrong"),
    (_SHA1, BODY_ID): _rule("SRMP-3.1.5.1.6.1-16", "The SHA-1 of the body is wrong"),
    (_MD5, EXTENSION_ID): _rule("SRMP-3.1.5.1.6.1-17", "The MD5 of the extension is wrong"),
    (_SHA1, EXTENSION_ID): _rule("SRMP-3.1.5.1.6.1-18", "The SHA-1 of the extension is wrong"),
}


def broken_signature(message: SrmpMessage) -> Iterator[Broken]:
    """Yield the rules that the Signature of a message breaks; none if it has no Signature."""
    envelope = message.envelope
    if envelope is None or envelope.Signature is None:
        return
    info = envelope.Signature.SignedInfo
    if info.SignatureMethod.Algorithm != DSA:
        yield METHOD, METHOD.path, f"{info.SignatureMethod.Algorithm:.200} is not {DSA}"
    if not info.Reference:
        yield NO_REFERENCE, NO_REFERENCE.path, "nothing is signed"
    contents = {BODY_ID: message.body, EXTENSION_ID: message.extension}
    named: set[str] = set()
    for number, reference in enumerate(info.Reference):
        path = f"{SIGNED_INFO_PATH}.Reference[{number}]"
        algorithm = reference.DigestMethod.Algorithm
        digest = DIGESTS.get(algorithm)
        if digest is None:
            yield DIGEST_METHOD, f"{path}.DigestMethod", f"{algorithm:.200} is neither SHA-1 nor MD5"
        for prefix, content in contents.items():
            if not reference.URI.lower().startswith(f"{CID}{prefix}"):
                continue
            if prefix in named:
                yield _TWICE[prefix], path, f"a second one of {reference.URI:.80}"
            named.add(prefix)
            if content is None:
                yield _NO_PART[prefix], path, f"no part {prefix}"
            elif digest is not None and not compare_digest(digest(content), reference.DigestValue):
                yield _WRONG_DIGEST[algorithm, prefix], f"{path}.DigestValue", "the part has another digest"
    for prefix, content in contents.items():
        if content is not None and prefix not in named:
            yield _NOT_SIGNED[prefix], _NOT_SIGNED[prefix].path, f"no Reference to the part {prefix}"
