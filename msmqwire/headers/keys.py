"""RSA keys and session keys in messages: [MS-MQQB] 2.4.1 and 2.4.2."""

from typing import Final

from msmqwire.schema import REST, Header, Ref, raw, uint

CALG_RSA_KEYX: Final = 0xA400
CALG_RSA_SIGN: Final = 0x2400

PUBLICKEYBLOB: Final = Header(
    "PUBLICKEYBLOB",
    "[MS-MQQB] 2.4.1",
    (
        uint(8, "bType", "0x06, a public key.", default=0x06, req="MQQB-2.4.1-01"),
        uint(8, "bVersion", meaning="0x02.", default=0x02),
        uint(16, "reserved", meaning="0."),
        uint(
            32,
            "aiKeyAlg",
            "0xA400 key exchange, 0x2400 signature.",
            default=CALG_RSA_KEYX,
            req="MQMQ-2.2.20.6-31",
        ),
        uint(32, "magic", 'RSA1, "52 53 41 31".', default=0x31415352),
        uint(32, "bitLen", "Bits of the modulus.", unit="bits", req="MQQB-2.4.1-02"),
        uint(32, "pubExp", "Public exponent.", default=65537, req="MQQB-2.4.1-03"),
        # MQQB-2.4.1-02
        raw("modulus", Ref("bitLen", per=8), "Modulus, least significant byte first.", req="MQQB-2.4.1-04"),
    ),
    "An RSA public key.",
    req=("MQMQ-2.2.20.6-30",),
)

SIMPLEBLOB: Final = Header(
    "SIMPLEBLOB",
    "[MS-MQQB] 2.4.2",
    (
        uint(8, "bType", "0x01, a session key.", default=0x01, req="MQQB-2.4.2-01"),
        uint(8, "bVersion", "0x02.", default=0x02),
        uint(16, "reserved", "0."),
        uint(32, "sessionKeyAlgorithm", "Cipher of the session key.", default=0x6610, req="MQQB-2.4.2-02"),
        uint(32, "aiKeyAlg", "0xA400: encrypted with an RSA key.", default=CALG_RSA_KEYX),
        raw("encryptedKey", REST, "The key, encrypted, least significant byte first.", req="MQQB-2.4.2-03"),
    ),
    "A session key, encrypted with an RSA key.",
)
