"""Structures outside packets: keys, addresses, certificates, identifiers.

[MS-MQMQ] 2.2.1, 2.2.2, 2.2.4, 2.2.5.1, 2.2.8, 2.2.18.1.3, 2.2.18.1.8, 2.2.21 and 2.2.22.
"""

from typing import Final

from msmqwire.schema import Header, Ref, choice, guid, raw, repeat, text, uint

MQDSPUBLICKEY: Final = Header(
    "MQDSPUBLICKEY",
    "[MS-MQMQ] 2.2.1",
    (
        uint(32, "ulKeyLen", "Bytes of aBuf.", unit="bytes", req="MQMQ-2.2.1-01"),
        uint(32, "ulProviderLen", "Bytes of sProviderName with its null.", unit="bytes", req="MQMQ-2.2.1-02"),
        uint(32, "ulProviderType", "1 PROV_RSA_FULL, 0x18 PROV_RSA_AES.", default=1, req="MQMQ-2.2.1-03"),
        text(
            "sProviderName",
            Ref("ulProviderLen"),
            "Name of the provider.",
            strict=True,
            req=("MQMQ-2.2.1-04", "MQMQ-2.2.1-06"),
        ),
        raw("aBuf", Ref("ulKeyLen"), "The key, a PUBLICKEYBLOB.", req="MQMQ-2.2.1-05"),
    ),
    "A public key in the directory.",
)

MQDSPUBLICKEYS: Final = Header(
    "MQDSPUBLICKEYS",
    "[MS-MQMQ] 2.2.2",
    (
        uint(
            32, "ulLen", "Bytes of the whole structure.", unit="bytes", size_of="header", req="MQMQ-2.2.2-01"
        ),
        uint(32, "cNumofKeys", "Keys that follow.", req="MQMQ-2.2.2-02"),
        repeat(
            "aPublicKeys", "cNumofKeys", MQDSPUBLICKEY, "The keys.", req=("MQMQ-2.2.2-03", "MQMQ-2.2.2-04")
        ),
    ),
    "Public keys in the directory.",
)

IP_ADDRESS: Final = Header(
    "IP Address",
    "[MS-MQMQ] 2.2.4.1",
    (raw("IP_Address", 4, "IPv4 address in network order.", req="MQMQ-2.2.4.1-01"),),
    "An IPv4 address.",
    size=4,
)

IPX_ADDRESS: Final = Header(
    "IPX Address",
    "[MS-MQMQ] 2.2.4.2",
    (
        raw("Netnum", 4, meaning="Network.", req="MQMQ-2.2.4.2-01"),
        raw("nodenum", 6, meaning="Node.", req="MQMQ-2.2.4.2-01"),
    ),
    "An IPX address.",
    size=10,
)

FOREIGN_ADDRESS: Final = Header(
    "FOREIGN Address",
    "[MS-MQMQ] 2.2.4",
    (guid("Guid", "GUID of the connected network."),),
    "A connected network.",
    size=16,
)

TA_ADDRESS: Final = Header(
    "TA_ADDRESS",
    "[MS-MQMQ] 2.2.4",
    (
        # MQMQ-2.2.4-05: packed
        uint(16, "AddressLength", "Bytes of Address.", unit="bytes", req=("MQMQ-2.2.4-01", "MQMQ-2.2.4-02")),
        uint(16, "AddressType", "1 IP, 2 IP over RAS, 3 IPX, 5 FOREIGN.", req="MQMQ-2.2.4-03"),
        choice(
            "Address",
            "AddressType",
            {1: IP_ADDRESS, 2: IP_ADDRESS, 3: IPX_ADDRESS, 5: FOREIGN_ADDRESS},
            "The address, by AddressType.",
            within=Ref("AddressLength"),  # MQMQ-2.2.4-05
            req="MQMQ-2.2.4-04",
        ),
    ),
    "A transport address.",
)

SEQUENCE_INFO: Final = Header(
    "SEQUENCE_INFO",
    "[MS-MQMQ] 2.2.5.1",
    (
        # MQMQ-2.2.5-01
        uint(64, "SeqID", "The sequence.", signed=True, req="MQMQ-2.2.5.1-01"),
        uint(32, "SeqNo", "Number of the message in it.", req="MQMQ-2.2.5.1-02"),
        uint(32, "PrevNo", "Number of the message before.", req="MQMQ-2.2.5.1-03"),
    ),
    "Place of a message in a sequence.",
    size=16,
    req=("MQMQ-2.2.5-01",),
)

OBJECTID: Final = Header(
    "OBJECTID",
    "[MS-MQMQ] 2.2.8",
    (
        guid("Lineage", "Group of the object: a queue manager.", req="MQMQ-2.2.8-01"),
        uint(32, "Uniquifier", "Number in the group.", req="MQMQ-2.2.8-02"),
    ),
    "Identifier of an object.",
    size=20,
)

MESSAGE_IDENTIFIER: Final = Header(
    "MessageIdentifier",
    "[MS-MQMQ] 2.2.18.1.3",
    (
        guid("QueueManagerGuid", "Queue manager that sent the message.", req="MQMQ-2.2.18.1.3-01"),
        uint(32, "Ordinal", "Number of the message there.", req="MQMQ-2.2.18.1.3-02"),
    ),
    "Identifier of a message.",
    size=20,
)

XACTUOW: Final = Header(  # MQMQ-2.2.18.1.8-01
    "XACTUOW",
    "[MS-MQMQ] 2.2.18.1.8",
    (raw("rgb", 16, "GUID of the unit of work, as bytes.", req="MQMQ-2.2.18.1.8-01"),),
    "A transactional unit of work.",
    size=16,
)

MQUSERSIGNCERT: Final = Header(
    "MQUSERSIGNCERT",
    "[MS-MQMQ] 2.2.22",
    (
        raw("Digest", 16, "MD5 of Certificate.", req="MQMQ-2.2.22-01"),
        guid("Identifier", "GUID of the certificate.", req="MQMQ-2.2.22-02"),
        uint(32, "CertificateLength", "Bytes of Certificate.", unit="bytes", req="MQMQ-2.2.22-03"),
        raw("Certificate", Ref("CertificateLength"), "X.509 certificate.", req="MQMQ-2.2.22-04"),
    ),
    "A certificate of a user.",
)

MQUSERSIGNCERTS: Final = Header(
    "MQUSERSIGNCERTS",
    "[MS-MQMQ] 2.2.21",
    (
        uint(32, "CertificateCount", "Certificates that follow.", req="MQMQ-2.2.21-01"),
        repeat(
            "Certificates",
            "CertificateCount",
            MQUSERSIGNCERT,
            "The certificates.",
            req=("MQMQ-2.2.21-02", "MQMQ-2.2.21-03"),
        ),
    ),
    "Certificates of a user.",
)
