"""Messages that programs have signed and encrypted.

The program signs them, since only its user has the key; the queue manager that sends them encrypts them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from msmqwire.constants import HashAlgorithm
from msmqwire.errors import InvalidValue
from msmqwire.names import DistributionListName, FormatName, MultipleElementName, PrivateName
from msmqwire.qm.model.enumerations import AuthenticationLevel
from msmqwire.qm.model.message import Message
from msmqwire.qm.runtime.key_ring import PeerKeys
from msmqwire.qm.runtime.message_protection import CIPHERS, HASHES, LEGACY, VERSIONS, set_cipher
from msmqwire.qm.runtime.peer_keys import read_peer_keys
from msmqwire.qm.security.signing import Signer, signed
from msmqwire.service.credential_files import read_file

PROPERTIES: Final = ("sign", "signature", "hash", "encrypt", "peer_key", "legacy")
"""The properties of a message that are about its protection: see `Properties`."""
_HASH: Final = "sha512"


@dataclass(frozen=True, slots=True)
class Protecting:
    """The protection of a message.

    Attributes:
        signer: the signer; None for no signature.
        version: the version of the signature; None for the one that fits the destination.
        hash_algorithm: the hash of the signature.
        cipher: the cipher of the body, of `CIPHERS`; empty for none.
        peer_keys: the keys of the queue manager of its queue; None if they are known otherwise.
    """

    signer: Signer | None
    version: AuthenticationLevel | None
    hash_algorithm: HashAlgorithm
    cipher: str
    peer_keys: PeerKeys | None

    def protect(
        self, message: Message, name: FormatName, queue_manager: UUID, *, transactional: bool
    ) -> None:
        """Sign a message to a name, and ask for its encryption.

        `queue_manager` is the identifier of its sender.

        Raises InvalidValue and InvalidName.
        """
        if self.cipher:
            set_cipher(message, self.cipher)
        if self.signer is None:
            return
        several = isinstance(name, MultipleElementName | DistributionListName)
        default = AuthenticationLevel.SIG30 if several else AuthenticationLevel.SIG20
        message.destination = name
        signed(
            message,
            self.signer,
            queue_manager=queue_manager,
            version=self.version or default,
            hash_algorithm=self.hash_algorithm,
            transactional=transactional,
        )


def protecting_of(properties: Mapping[str, Any]) -> Protecting | None:
    """Return the protection that the properties of a message ask for, None for none.

    Raises InvalidValue with the name of the property; also for a broken algorithm without ``legacy``.
    """
    if properties.keys().isdisjoint(PROPERTIES):
        return None
    given = {name: properties[name] for name in PROPERTIES if properties.get(name) is not None}
    legacy = given.pop("legacy", False)
    if not isinstance(legacy, bool):
        raise InvalidValue(f"{legacy!r:.100} is neither true nor false", path="legacy")
    signer = given.get("sign")
    if signer is not None and not isinstance(signer, Signer):
        raise InvalidValue(f"{type(signer).__name__} is not a Signer", path="sign")
    for name, needed in (("signature", "sign"), ("hash", "sign"), ("peer_key", "encrypt")):
        if name in given and needed not in given:
            raise InvalidValue(f"it is nothing without {needed}", path=name)
    if not given:
        return None
    check_names(given, legacy=legacy)
    peer_keys = read_peer_keys(_content(given["peer_key"])) if "peer_key" in given else None
    return Protecting(
        signer,
        VERSIONS[given["signature"]] if "signature" in given else None,
        HASHES[given.get("hash", _HASH)],
        given.get("encrypt", ""),
        peer_keys,
    )


def check_names(given: Mapping[str, Any], *, legacy: bool) -> None:
    """Check ``signature``, ``hash`` and ``encrypt``, as far as they are given.

    Raises InvalidValue for unknown names, and for broken ones unless `legacy` allows them.
    """
    for name, known in (("signature", VERSIONS), ("hash", HASHES), ("encrypt", CIPHERS)):
        value = given.get(name)
        if value is None:
            continue
        if not isinstance(value, str) or value not in known:
            raise InvalidValue(f"{value!r:.100} is none of {', '.join(known)}", path=name)
        if value in LEGACY and not legacy:
            raise InvalidValue(f"{value} is broken; legacy allows it all the same", path=name)


def peer_of(name: FormatName) -> UUID:
    """Return the queue manager that ``peer_key`` belongs to. Raises InvalidValue if the name has none."""
    names = name.elements if isinstance(name, MultipleElementName) else (name,)
    peers = {element.guid if isinstance(element, PrivateName) else None for element in names}
    peer = peers.pop()
    if peers or peer is None:
        raise InvalidValue("only a name PRIVATE= identifies the owner of the key", path="peer_key")
    return peer


def _content(key: object) -> bytes:
    """Return the content of a file with a key; bytes are the content itself. Raises InvalidValue."""
    if isinstance(key, bytes):
        return key
    if not isinstance(key, str | os.PathLike):
        raise InvalidValue("neither the name of a file nor the content of one", path="peer_key")
    try:
        return read_file(key)
    except InvalidValue as exc:
        raise InvalidValue(exc.why, path="peer_key") from None
