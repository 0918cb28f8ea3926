"""MessagePropertiesHeader, the message itself: [MS-MQMQ] 2.2.19.3."""

from typing import Final

from msmqwire.schema import Header, Ref, align, bit, flags, raw, reserved, text, uint

LABEL_LENGTH_MAX: Final = 250  # characters, the null among them: MQMQ-2.2.19.3-07

MESSAGE_PROPERTIES_HEADER: Final = Header(  # MQQB-4.1.7-06, MQQB-4.1.7-07, MQQB-4.1.7-01
    "MessagePropertiesHeader",
    "[MS-MQMQ] 2.2.19.3",
    (
        flags(
            8,
            "Flags",
            bit("PA", 0, "Acknowledge arrival in the queue.", req="MQMQ-2.2.19.3-02"),
            bit("PR", 1, "Acknowledge retrieval by an application.", req="MQMQ-2.2.19.3-03"),
            bit("NA", 2, "Report that it did not arrive.", req="MQMQ-2.2.19.3-04"),
            bit("NR", 3, "Report that it was not retrieved.", req="MQMQ-2.2.19.3-05"),
            *reserved("X4 X5 X6 X7", 4, req="MQMQ-2.2.19.3-06"),
            req="MQMQ-2.2.19.3-01",
        ),
        uint(
            8,
            "LabelLength",
            "Characters of Label with its null; 0 means no label.",
            unit="WCHAR",
            must=range(LABEL_LENGTH_MAX + 1),
            req="MQMQ-2.2.19.3-07",
        ),
        # MQMQ-2.2.19.3-48
        uint(16, "MessageClass", "Class of the message, MQMSG_CLASS_*.", req="MQMQ-2.2.19.3-08"),
        raw(
            "CorrelationID",  # DMPR-3.1.7.1.32-19, MQQB-4.1.7-06
            20,
            "The application's; in an acknowledgement the identifier of the message that it acknowledges.",
            req="MQMQ-2.2.19.3-09",
        ),
        uint(32, "BodyType", "Type of the body, VT_*.", req="MQMQ-2.2.19.3-12"),  # MQMQ-2.2.19.3-48
        uint(32, "ApplicationTag", "The application's.", req="MQMQ-2.2.19.3-13"),  # MQMQ-2.2.19.3-48
        # DMPR-3.1.7.1.32-08
        uint(32, "MessageSize", "Bytes of MessageBody.", unit="bytes", req="MQMQ-2.2.19.3-15"),
        uint(
            32,
            "AllocationBodySize",
            "Bytes set aside for MessageBody, not less than MessageSize.",
            unit="bytes",
            req=("MQMQ-2.2.19.3-16", "MQMQ-2.2.19.3-17"),
        ),
        # MQMQ-2.2.19.3-48
        uint(32, "PrivacyLevel", "0 clear, 1 40 bits, 3 128 bits, 5 AES.", req="MQMQ-2.2.19.3-18"),
        uint(32, "HashAlgorithm", "Hash of the signature.", default=0x800E, req="MQMQ-2.2.19.3-22"),
        uint(32, "EncryptionAlgorithm", "Cipher of the body.", default=0x6610, req="MQMQ-2.2.19.3-32"),
        # DMPR-3.1.7.1.32-09
        uint(32, "ExtensionSize", "Bytes of ExtensionData.", unit="bytes", req="MQMQ-2.2.19.3-41"),
        text(
            "Label",
            Ref("LabelLength", times=2),  # MQMQ-2.2.19.3-48, MQQB-4.1.7-07
            "Label of the message.",
            req=("MQMQ-2.2.19.3-42", "MQMQ-2.2.19.3-43"),
        ),
        # DMPR-3.1.7.1.32-21
        raw("ExtensionData", Ref("ExtensionSize"), "The application's.", req="MQMQ-2.2.19.3-44"),
        # DMPR-3.1.7.1.32-23, MQQB-4.1.7-07
        raw("MessageBody", Ref("MessageSize"), "Body of the message.", req="MQMQ-2.2.19.3-45"),
        raw(
            "MessageBodySlack",
            Ref("AllocationBodySize", over="MessageSize"),
            "Space that AllocationBodySize sets aside beyond the body.",
            req="MQMQ-2.2.19.3-17",
        ),
        align("Padding", req=("MQMQ-2.2.19.3-46", "MQMQ-2.2.19.3-47")),
    ),
    "Properties and body of a message.",
)
