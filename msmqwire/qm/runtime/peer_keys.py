"""The public keys of other queue managers, for the encryption of bodies: in files and in requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from msmqwire.constants import CryptographicProvider
from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.qm.runtime.key_ring import PROVIDERS, SHORT_NAMES, KeyUse, PeerKeys

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

_COLUMNS: Final = 3


def public_keys(keys: PeerKeys) -> Mapping[CryptographicProvider, RSAPublicKey]:
    """Return the keys of PUBLICKEYBLOBs. Raises InvalidValue."""
    from msmqwire.crypto.keys import public_key_of

    try:
        return {provider: public_key_of(blob) for provider, blob in keys.items()}
    except MalformedPacket as exc:
        raise InvalidValue(exc.why, path=exc.path, offset=exc.offset) from None


def read_peer_keys(content: bytes) -> PeerKeys:
    """Return the keys for encryption in a file of another queue manager.

    That is the output of ``msmqwire key show --public`` there, or a single key, for all providers: a
    PUBLICKEYBLOB, also in hexadecimal, or a certificate or key in PEM or DER. Raises InvalidValue.
    """
    from msmqwire.crypto.keys import public_key_blob, read_public_key

    shown = _shown_keys(content)
    if shown is not None:
        return {name: public_key_blob(read_public_key(blob)) for name, blob in shown.items()}
    blob = public_key_blob(read_public_key(content))
    return dict.fromkeys(PROVIDERS.values(), blob)


def _shown_keys(content: bytes) -> dict[CryptographicProvider, bytes] | None:
    """Return the keys for encryption in lines of ``key show --public``, None for other lines."""
    keys: dict[CryptographicProvider, bytes] = {}
    for line in filter(None, content.split(b"\n")):
        columns = line.split()
        provider = PROVIDERS.get(columns[0].decode("latin-1")) if columns else None
        if provider is None or len(columns) != _COLUMNS:
            return None
        if columns[1] == KeyUse.EXCHANGE.value.encode():
            keys.setdefault(provider, columns[2])
    return keys or None


def peer_keys_request(identifier: UUID, keys: PeerKeys) -> dict[str, Any]:
    """Return the fields of a request to keep the keys of a queue manager."""
    return {
        "queue_manager": str(identifier),
        "keys": {SHORT_NAMES[provider]: blob.hex() for provider, blob in keys.items()},
    }


def peer_keys_from(request: Mapping[str, Any]) -> tuple[UUID, PeerKeys]:
    """Return the keys that `peer_keys_request` has written. Raises InvalidValue."""
    try:
        identifier = UUID(request["queue_manager"])
        keys = {PROVIDERS[name]: bytes.fromhex(blob) for name, blob in request["keys"].items()}
    except (KeyError, ValueError, TypeError, AttributeError):
        raise InvalidValue("not a queue manager and its keys", path="keys") from None
    return identifier, keys
