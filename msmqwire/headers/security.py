"""SecurityHeader, the sender of a message and its protection: [MS-MQMQ] 2.2.20.6.

The five items are located by their sizes alone: the UserMessage of [MS-MQQB] 4.1.7 carries a
SecurityID with Flags.AI clear.
"""

from typing import Final

from msmqwire.schema import REST, Header, Ref, align, bit, flags, maybe, raw, reserved, sub, text, uint

PROVIDER_INFO: Final = Header(
    "ProviderInfo",
    "[MS-MQMQ] 2.2.20.6",
    (
        # DMPR-3.1.7.1.32-24
        uint(
            32,
            "ProviderType",
            "Type of the cryptographic provider, PROV_*.",
            default=1,
            req="MQMQ-2.2.20.6-37",
        ),
        # DMPR-3.1.7.1.32-25
        text("ProviderName", REST, "Name of the provider.", req="MQMQ-2.2.20.6-38"),
    ),
    "The provider that made the signature.",
)

SECURITY_DATA: Final = Header(
    "SecurityData",
    "[MS-MQMQ] 2.2.20.6",
    (
        raw(  # MQMQ-2.2.20.6-40
            "SecurityID",  # DMPR-3.1.7.1.32-28
            Ref("SenderIdSize"),  # MQMQ-2.2.20.6-39
            "SID of the sender (ST 1) or GUID of the queue manager (ST 2).",
            marks="Flags.ST",
            req=("MQMQ-2.2.20.6-04", "MQMQ-2.2.20.6-05"),
        ),
        align("SecurityIDPadding"),
        raw(
            "EncryptionKey",  # DMPR-3.1.7.1.32-27
            Ref("EncryptionKeySize"),  # MQMQ-2.2.20.6-39
            "Symmetric key of the sender, a SIMPLEBLOB.",
            marks="Flags.AI",
            req="MQMQ-2.2.20.6-24",
        ),
        align("EncryptionKeyPadding"),
        # MQMQ-2.2.20.6-39, DMPR-3.1.7.1.32-26
        raw("Signature", Ref("SignatureSize"), "Signature of the message.", marks="Flags.AI"),
        align("SignaturePadding"),
        raw(
            "SenderCert",  # DMPR-3.1.7.1.32-29
            Ref("SenderCertSize"),  # MQMQ-2.2.20.6-39
            "X.509 certificate of the sender.",
            marks="Flags.AI",
            req="MQMQ-2.2.20.6-29",
        ),
        align("SenderCertPadding"),
        maybe(
            "ProviderInfoSize",
            sub(PROVIDER_INFO, within=Ref("ProviderInfoSize")),  # MQMQ-2.2.20.6-39
            marks="Flags.AI",
            req="MQMQ-2.2.20.6-35",
        ),
        align("ProviderInfoPadding"),
    ),
    "The five items, each padded to a multiple of 4 bytes.",
    req=("MQMQ-2.2.20.6-21",),
)

SECURITY_HEADER: Final = Header(  # MQQB-4.1.7-05
    "SecurityHeader",
    "[MS-MQMQ] 2.2.20.6",
    (
        flags(
            16,
            "Flags",
            # MQMQ-2.2.20.6-40
            bit("ST", 0, "Kind of SecurityID: 0 none, 1 SID, 2 GUID.", width=4, req="MQMQ-2.2.20.6-02"),
            bit("AU", 4, "Authenticated; 0 on the wire.", req="MQMQ-2.2.20.6-06"),
            bit("EB", 5, "The body is encrypted.", req="MQMQ-2.2.20.6-07"),
            bit("DE", 6, "The default provider made the signature.", req="MQMQ-2.2.20.6-08"),
            bit("AI", 7, "SecurityData is there.", req=("MQMQ-2.2.20.6-11", "MQMQ-2.2.20.6-12")),
            bit("AS", 8, "Type of the signature; 0 on the wire.", width=4, req="MQMQ-2.2.20.6-13"),
            *reserved("X12 X13 X14 X15", 12, req="MQMQ-2.2.20.6-14"),
            req="MQMQ-2.2.20.6-01",
        ),
        # MQMQ-2.2.20.6-40
        uint(16, "SenderIdSize", "Bytes of SecurityID.", unit="bytes", req="MQMQ-2.2.20.6-15"),
        uint(16, "EncryptionKeySize", "Bytes of EncryptionKey.", unit="bytes", req="MQMQ-2.2.20.6-16"),
        uint(16, "SignatureSize", "Bytes of Signature.", unit="bytes", req="MQMQ-2.2.20.6-17"),
        # MQMQ-2.2.20.6-40, DMPR-3.1.7.1.32-13
        uint(32, "SenderCertSize", "Bytes of SenderCert.", unit="bytes", req="MQMQ-2.2.20.6-18"),
        # DMPR-3.1.7.1.32-14
        uint(32, "ProviderInfoSize", "Bytes of ProviderInfo.", unit="bytes", req="MQMQ-2.2.20.6-19"),
        sub(SECURITY_DATA),
    ),
    "Identity, key, signature and certificate of the sender.",
    req=("MQMQ-2.2.20.6-22",),
)
