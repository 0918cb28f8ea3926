"""Signatures, encryption and senders: the importance of each finding and advice about it."""

from __future__ import annotations

from typing import Final

from tools.pages.findings.advice import SENDER, SIGNATURE

_ENCRYPTED_DO: Final = (
    "Check the sender's encryption settings and the key that it was given for this receiver; send one "
    "message without encryption to see that all else works."
)

TEXTS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "MQMQ-2.2.19.3-30|MQQB-3.1.7.1.5-06",
        "The algorithm is broken or weak: who can read and change the traffic can, with effort, forge the "
        "signature or read the body. Older versions of Windows use it by default.",
        "Choose SHA-512 and AES where the sender lets you (`HashAlgorithm`, `EncryptionAlgorithm`), or "
        "update it.",
    ),
    (
        "MQQB-3.1.5.8.3-06",
        "The message was changed on its way, or was signed with another key than that of the certificate in "
        "it. The receiver refuses it with NACK_BAD_SIGNATURE.",
        SIGNATURE,
    ),
    (
        "MQMQ-2.2.19.3-29|MQQB-3.1.5.8.3-0[35]|MQQB-3.1.7.1.4.*|MQMQ-2.2.20.6-(09|18|29|35|37)",
        "The receiver can't verify the signature: it refuses the message, or takes it as one without a "
        "sender.",
        SIGNATURE,
    ),
    (
        "MQMQ-2.2.19.3-(19|38|39|40)|MQQB-3.1.5.8.3-16|MQQB-3.1.7.1.5-01|MQMQ-2.2.20.6-07|MQQB-2.4.2.*",
        "The receiver can't decrypt the body, or believes that it is encrypted when it is not: it refuses "
        "the message, or a third party on the way can read data that was meant to be secret.",
        _ENCRYPTED_DO,
    ),
    (
        "MQMQ-2.2.20.6-(06|13)",
        "The receiver sets this once it has verified the signature. One that takes it from the packet holds "
        "a forged message to be authenticated.",
        "Treat the sender as hostile unless you know the program that built the packet; verify the signature "
        "with `--cert`.",
    ),
    (
        "MQMQ-2.2.20.6-.*",
        "The receiver can't tell who sent the message: access to the queue is judged for an unknown sender, "
        "or the message is refused.",
        SENDER,
    ),
)
