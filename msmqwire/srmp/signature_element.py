"""The Signature of an envelope in its bytes, and the names of its algorithms: [MC-MQSRM] 2.2.7."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final

from msmqwire.constants import HashAlgorithm
from msmqwire.errors import InvalidSignature
from msmqwire.srmp.reading import read_document
from msmqwire.srmp.scan import scan
from msmqwire.srmp.schema_names import SIGNATURE
from msmqwire.srmp.xml_reader import in_own_thread

SIGNATURE_PATH: Final = "Envelope.Header.Signature"
SIGNED_INFO_PATH: Final = f"{SIGNATURE_PATH}.SignedInfo"
KEY_INFO: Final = "KeyInfo"
CID: Final = "cid:"
DSA: Final = f"{SIGNATURE}dsa"
"""The only name of SignatureMethod, whatever the key is: SRMP-3.1.5.1.6.1-05, SRMP-2.2.7.2-02."""
DIGEST_NAMES: Final = {
    HashAlgorithm.CALG_SHA1: f"{SIGNATURE}sha1",
    HashAlgorithm.CALG_MD5: f"{SIGNATURE}md5",
}
"""The names of DigestMethod: SRMP-2.2.7.1.2.1-02."""
DIGESTS: Final[dict[str, Callable[[bytes], bytes]]] = {
    DIGEST_NAMES[HashAlgorithm.CALG_SHA1]: lambda data: hashlib.sha1(data, usedforsecurity=False).digest(),
    DIGEST_NAMES[HashAlgorithm.CALG_MD5]: lambda data: hashlib.md5(data, usedforsecurity=False).digest(),
}
CANONICALIZATIONS: Final = {
    "http://www.w3.org/TR/2001/REC-xml-c14n-20010315": False,
    "http://www.w3.org/2001/10/xml-exc-c14n#": True,
}
"""The methods of [XMLDSig] without comments, and whether they are exclusive."""


class SignatureElement:
    """The Signature in an envelope that `parse_envelope` accepts, and which has one."""

    def __init__(self, envelope: bytes) -> None:
        root, places = read_document(envelope)
        header = root[0]  # it stands first, and its elements once: SRMP-2.2.2-06
        self._node = header.find(_tag("Signature"))
        self._signed_info = self._node.find(_tag("SignedInfo"))
        number = next(n for n, node in enumerate(root.iter()) if node is self._signed_info)
        place = (places or scan(envelope))[number]
        self._bytes = envelope[place.start : place.end]

    @property
    def signed_info(self) -> bytes:
        """SignedInfo as it is written: the data signed by default (SRMP-3.1.7.2.4-44)."""
        return self._bytes

    def canonical_signed_info(self, exclusive: bool) -> bytes:
        """Return SignedInfo in a canonical form. Raises InvalidSignature where it has none.

        It has none where a namespace is to be declared in it that is not absolute, as that of Msmq.
        """
        from lxml import etree

        try:
            return in_own_thread(lambda: self._canonical(exclusive))
        except (etree.LxmlError, ValueError) as exc:  # ValueError: a namespace that is not a URI
            raise InvalidSignature(f"no canonical form: {exc}"[:200], path=SIGNED_INFO_PATH) from None

    def _canonical(self, exclusive: bool) -> bytes:
        """Return the same of a document of its own, with the namespaces of its place.

        Inside a larger one lxml also applies those default namespaces that are hidden there, and writes
        xmlns="" against them.
        """
        from lxml import etree

        apart = etree.Element(self._signed_info.tag, self._signed_info.attrib, self._signed_info.nsmap)
        apart.text = self._signed_info.text
        apart.extend(deepcopy(list(self._signed_info)))
        return bytes(etree.tostring(apart, method="c14n", exclusive=exclusive))

    def certificates(self) -> list[str]:
        """Return the base64 of the certificates in KeyInfo, without white space."""
        path = "/".join(map(_tag, (KEY_INFO, "X509Data", "X509Certificate")))
        nodes: list[Any] = self._node.findall(path)
        return ["".join((node.text or "").split()) for node in nodes]


def _tag(name: str) -> str:
    return f"{{{SIGNATURE}}}{name}"
