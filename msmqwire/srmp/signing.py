"""Making the Signature of an envelope: [MC-MQSRM] 2.2.7 and 3.1.7.2.4."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msmqwire.constants import HashAlgorithm
from msmqwire.errors import InvalidValue
from msmqwire.srmp.certificates import Signer
from msmqwire.srmp.envelope import Envelope, build_envelope
from msmqwire.srmp.multipart import BODY_ID, EXTENSION_ID
from msmqwire.srmp.signature_element import (
    CID,
    DIGEST_NAMES,
    DIGESTS,
    DSA,
    SIGNATURE_PATH,
    SignatureElement,
)
from msmqwire.srmp.signature_keys import make_value


def sign(
    envelope: Envelope,
    signer: Signer,
    *,
    queue_manager: UUID,
    body: bytes | None = None,
    extension: bytes | None = None,
    hash_algorithm: int = HashAlgorithm.CALG_SHA1,
) -> Envelope:
    """Return the envelope with its Signature, which covers body and extension, and nothing of the envelope.

    Args:
        envelope: without Signature.
        signer: the owner of the key.
        queue_manager: the sender, after which the parts are named, as by `make_request`.
        body: the content of that part; None if there is none.
        extension: likewise.
        hash_algorithm: the hash algorithm of the digests, SHA1 or MD5; the value is always made with SHA1.

    Raises InvalidValue: for another hash (SRMP-3.1.7.2.4-43), for nothing to sign, as a receiver refuses a
    Signature without Reference (SRMP-3.1.5.1.6.1-06), and for an envelope that can't be built.
    """
    if envelope.Signature is not None:
        raise InvalidValue("the envelope is signed already", path=SIGNATURE_PATH)
    name = DIGEST_NAMES.get(hash_algorithm)  # type: ignore[call-overload]
    if name is None:
        raise InvalidValue(f"no signature with hash algorithm {hash_algorithm:#x}", path="hash_algorithm")
    references: list[dict[str, Any]] = [
        {
            "URI": f"{CID}{prefix}{queue_manager}",  # SRMP-2.2.7.1.2-02 and -03
            "DigestMethod": {"Algorithm": name},
            "DigestValue": DIGESTS[name](content),  # SRMP-2.2.7.1.2.2-02, SRMP-3.1.7.2.4-41 and -42
        }
        for prefix, content in ((BODY_ID, body), (EXTENSION_ID, extension))  # SRMP-3.1.7.2.4-40
        if content is not None
    ]
    if not references:
        raise InvalidValue("neither body nor extension, and nothing else can be signed", path="body")
    signed_info = {"SignatureMethod": {"Algorithm": DSA}, "Reference": references}
    unsigned = envelope.replace(Signature={"SignedInfo": signed_info, "SignatureValue": b""})
    element = SignatureElement(build_envelope(unsigned))
    value = make_value(signer.key, element.signed_info)
    return envelope.replace(Signature={"SignedInfo": signed_info, "SignatureValue": value})
