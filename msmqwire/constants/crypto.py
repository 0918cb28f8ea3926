"""Numbers of algorithms, privacy levels and cryptographic providers: [MS-MQMQ] 2.2.1, 2.2.19.3, 2.2.20.6.

Where the specification has only numbers with descriptions, the members have the names of the platform's
headers (wincrypt.h, mq.h).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Final


class HashAlgorithm(IntEnum):
    """MessagePropertiesHeader.HashAlgorithm; [MS-MQMQ] 2.2.19.3."""

    CALG_MD2 = 0x8001  # MQMQ-2.2.19.3-23
    CALG_MD4 = 0x8002  # MQMQ-2.2.19.3-24
    CALG_MD5 = 0x8003  # MQMQ-2.2.19.3-25
    CALG_SHA1 = 0x8004  # MQMQ-2.2.19.3-26
    CALG_SHA_256 = 0x800C  # MQMQ-2.2.19.3-27
    # The default of signatures: DMPR-5.1-01, MQMQ-2.2.19.3-30, MQQB-1.3.2.2-01
    CALG_SHA_512 = 0x800E  # MQMQ-2.2.19.3-28


class EncryptionAlgorithm(IntEnum):
    """MessagePropertiesHeader.EncryptionAlgorithm; [MS-MQMQ] 2.2.19.3."""

    CALG_RC2 = 0x6602  # MQMQ-2.2.19.3-33
    CALG_AES_128 = 0x660E  # MQMQ-2.2.19.3-34
    CALG_AES_192 = 0x660F  # MQMQ-2.2.19.3-35
    CALG_AES_256 = 0x6610  # MQMQ-2.2.19.3-36
    CALG_RC4 = 0x6801  # MQMQ-2.2.19.3-37


class KeyAlgorithm(IntEnum):
    """The key type of a public key blob; [MS-MQMQ] 2.2.1 and 2.2.20.6."""

    CALG_RSA_SIGN = 0x2400
    CALG_RSA_KEYX = 0xA400


class PrivacyLevel(IntEnum):
    """MessagePropertiesHeader.PrivacyLevel: how the body is encrypted; [MS-MQMQ] 2.2.19.3."""

    MQMSG_PRIV_LEVEL_NONE = 0
    MQMSG_PRIV_LEVEL_BODY_BASE = 1  # 40-bit keys
    MQMSG_PRIV_LEVEL_BODY_ENHANCED = 3  # 128-bit keys
    MQMSG_PRIV_LEVEL_BODY_AES = 5


CIPHERS_OF_LEVEL: Final[Mapping[int, frozenset[int]]] = MappingProxyType(
    {
        PrivacyLevel.MQMSG_PRIV_LEVEL_BODY_BASE: frozenset(
            {EncryptionAlgorithm.CALG_RC2, EncryptionAlgorithm.CALG_RC4}
        ),
        PrivacyLevel.MQMSG_PRIV_LEVEL_BODY_ENHANCED: frozenset(
            {EncryptionAlgorithm.CALG_RC2, EncryptionAlgorithm.CALG_RC4}
        ),
        PrivacyLevel.MQMSG_PRIV_LEVEL_BODY_AES: frozenset(
            {
                EncryptionAlgorithm.CALG_AES_128,
                EncryptionAlgorithm.CALG_AES_192,
                EncryptionAlgorithm.CALG_AES_256,
            }
        ),
    }
)
"""The ciphers that a PrivacyLevel allows; [MS-MQMQ] 2.2.19.3."""


class ProviderType(IntEnum):
    """The type of a cryptographic provider, ulProviderType of MQDSPUBLICKEY; [MS-MQMQ] 2.2.1."""

    PROV_RSA_FULL = 0x01
    PROV_RSA_AES = 0x18


class CryptographicProvider(StrEnum):
    """The providers of the keys that bodies are encrypted with; [MS-MQQB] 3.1.5.8.3 and 3.1.7.1.5."""

    BASE = "Microsoft Base Cryptographic Provider v1.0"
    ENHANCED = "Microsoft Enhanced Cryptographic Provider v1.0"
    AES = "Microsoft Enhanced RSA and AES Cryptographic Provider"


# MQQB-3.1.5.8.3-15 to -17
PROVIDER_OF_LEVEL: Final[Mapping[int, CryptographicProvider]] = MappingProxyType(
    {
        PrivacyLevel.MQMSG_PRIV_LEVEL_BODY_BASE: CryptographicProvider.BASE,
        PrivacyLevel.MQMSG_PRIV_LEVEL_BODY_ENHANCED: CryptographicProvider.ENHANCED,
        PrivacyLevel.MQMSG_PRIV_LEVEL_BODY_AES: CryptographicProvider.AES,
    }
)
"""The provider that a PrivacyLevel selects; [MS-MQQB] 3.1.5.8.3."""
