"""The public keys of queue managers in the directory: [MS-MQMQ] 2.2.1 and 2.2.2, [MS-MQQB] 3.1.7.1.5.2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msmqwire.constants import CryptographicProvider, KeyAlgorithm, ProviderType
from msmqwire.errors import MalformedPacket
from msmqwire.headers import MQDSPUBLICKEYS

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

PROVIDER_TYPES: Final[Mapping[CryptographicProvider, ProviderType]] = {
    CryptographicProvider.BASE: ProviderType.PROV_RSA_FULL,
    CryptographicProvider.ENHANCED: ProviderType.PROV_RSA_FULL,
    CryptographicProvider.AES: ProviderType.PROV_RSA_AES,
}
"""The type of each provider."""
# Windows NT to Server 2003 write the names without the v: note 66 of [MS-MQQB].
_PROVIDERS: Final = {str(provider).replace(" v", " "): provider for provider in CryptographicProvider}


def key_list(keys: Mapping[CryptographicProvider, RSAPublicKey], kind: KeyAlgorithm) -> bytes:
    """Return the MQDSPUBLICKEYS of keys: DMPR-3.1.3-11 to -13. Raises InvalidValue."""
    from msmqwire.crypto.keys import public_key_blob

    return MQDSPUBLICKEYS.build(
        {
            "aPublicKeys": [
                {
                    "ulProviderType": PROVIDER_TYPES[provider],
                    "sProviderName": str(provider),
                    "aBuf": public_key_blob(keys[provider], kind),
                }
                for provider in CryptographicProvider
                if provider in keys
            ]
        }
    )


def keys_of(published: bytes) -> dict[CryptographicProvider, RSAPublicKey]:
    """Return the keys of an MQDSPUBLICKEYS by provider, without unreadable and unusable ones.

    Of several keys of a provider the first counts.
    """
    from msmqwire.crypto.keys import public_key_of

    keys: dict[CryptographicProvider, RSAPublicKey] = {}
    try:
        entries = MQDSPUBLICKEYS.parse(published).aPublicKeys if published else []
    except MalformedPacket:
        return keys
    for entry in entries:
        provider = _PROVIDERS.get(str(entry.sProviderName).replace(" v", " "))
        if provider is None or provider in keys:
            continue
        try:
            keys[provider] = public_key_of(entry.aBuf)  # MQQB-3.1.7.1.5.2-01
        except MalformedPacket:
            continue
    return keys
