"""Checks of UserHeader, MessagePropertiesHeader and TransactionHeader.

[MS-MQMQ] 2.2.19.2, 2.2.19.3 and 2.2.20.5.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.analysis.lint.registry import MESSAGES, REMOTE, SENT, USER, Problem, rule, unused, value
from msmqwire.constants import (
    CIPHERS_OF_LEVEL,
    EncryptionAlgorithm,
    HashAlgorithm,
    PrivacyLevel,
    VarEnum,
    is_legal_class,
)
from msmqwire.headers.properties import LABEL_LENGTH_MAX
from msmqwire.names.header_names import AT_DESTINATION, DIRECT, PUBLIC
from msmqwire.names.printable import counted
from msmqwire.schema import NULL_GUID, OddPadding

HOPS_MAX: Final = 0x1D
_NOT_DIRECT: Final = (AT_DESTINATION, PUBLIC)

_VECTOR, _ARRAY, _VARIANT = int(VarEnum.VT_VECTOR), int(VarEnum.VT_ARRAY), int(VarEnum.VT_VARIANT)
_BY_REFERENCE: Final = 0x4000
_MODIFIERS: Final = _VECTOR | _ARRAY | _BY_REFERENCE
# Types of a VARIANT in [MS-OAUT] 2.2.7 and of a PROPVARIANT, which COM and System.Messaging send, beyond the
# list of [MS-MQMQ] 2.2.12. The last are VT_RECORD and VT_VERSIONED_STREAM.
_TYPES: Final = frozenset(int(kind) for kind in VarEnum) - {_VECTOR, _ARRAY} | {36, 73}
_TYPES_OF_SENDERS: Final = frozenset({0x0300})
"""Types of no VARIANT: VT_BINARY_OBJECT of BinaryMessageFormatter in System.Messaging."""
_HASHES = frozenset(int(member) for member in HashAlgorithm)
_CIPHERS = frozenset(int(member) for member in EncryptionAlgorithm)
_BLOCKS: Final = {
    EncryptionAlgorithm.CALG_RC2: 8,
    EncryptionAlgorithm.CALG_AES_128: 16,
    EncryptionAlgorithm.CALG_AES_192: 16,
    EncryptionAlgorithm.CALG_AES_256: 16,
}
_PRIVACY = frozenset(int(member) for member in PrivacyLevel)

# -- UserHeader ----------------------------------------------------------------------------------


@rule(
    "MQMQ-2.2.19.2-03",
    "QueueManagerAddress does not go with the form of the destination",
    "UserHeader.QueueManagerAddress",
    SENT,
)
def _address(packet: Any) -> Problem:
    user = packet.UserHeader
    null, kind = user.QueueManagerAddress == NULL_GUID, user.Flags.DQ
    if kind in _NOT_DIRECT and null:
        return f"null, but DQ is {kind}"
    if kind == DIRECT and not null:
        return f"{user.QueueManagerAddress}, but the destination is a direct name"
    return None


value(
    "MQMQ-2.2.19.2-10",
    "RC is more than 0x1D",
    "UserHeader.Flags.RC",
    MESSAGES,
    lambda number: number <= HOPS_MAX,
    "{:#04x} is more than 0x1d",
)
value(
    "MQMQ-2.2.19.2-11",
    "DM is neither express nor recoverable",
    "UserHeader.Flags.DM",
    MESSAGES,
    lambda number: number <= 1,
    "{} is neither express nor recoverable",
)
for _id, _mask in (
    ("MQMQ-2.2.19.2-14", 0x0000_0080),
    ("MQMQ-2.2.19.2-37", 0x0100_0000),
    ("MQMQ-2.2.19.2-40", 0x0C00_0000),
    ("MQMQ-2.2.19.2-42", 0xE000_0000),
):
    unused(_id, "Reserved bits are set", "UserHeader.Flags", _mask, MESSAGES, "SHOULD")
value(
    "MQMQ-2.2.19.2-22",
    "DQ is not 0, 3, 5 or 7",
    "UserHeader.Flags.DQ",
    MESSAGES,
    lambda number: number in (0, 3, 5, 7),
    "{} closes the session",
)
value(
    "MQMQ-2.2.19.2-24",
    "AQ is 1 or 4",
    "UserHeader.Flags.AQ",
    MESSAGES,
    lambda number: number not in (1, 4),
    "{} closes the session",
)


@rule(
    "MQMQ-2.2.19.2-26",
    "Acknowledgements are asked for without an administration queue, or the reverse",
    "UserHeader.Flags.AQ",
    USER | REMOTE,
    "NOTE",  # Windows asks without a queue: the message of [MS-MQQB] 4.1.7
)
def _admin_queue(packet: Any) -> Problem:
    requested, kind = int(packet.MessagePropertiesHeader.Flags) & 0x0F, packet.UserHeader.Flags.AQ
    if requested and not kind:
        return f"acknowledgements are asked for ({requested:#04x}), but there is no administration queue"
    if kind and not requested:
        return "there is an administration queue, but no acknowledgement is asked for"
    return None


@rule("MQMQ-2.2.19.2-30", "RQ is 4 without an administration queue", "UserHeader.Flags.RQ", MESSAGES)
def _response_queue(packet: Any) -> Problem:
    flags = packet.UserHeader.Flags
    alone = flags.RQ == 4 and not flags.AQ  # MQMQ-2.2.19.2-30
    return "4, but there is no administration queue" if alone else None


@rule("MQMQ-2.2.19.2-33", "A transactional message is express", "UserHeader.Flags.DM", MESSAGES)
def _express(packet: Any) -> Problem:
    flags = packet.UserHeader.Flags
    return "express, but TH is set" if flags.TH and flags.DM == 0 else None


value(
    "MQMQ-2.2.19.2-34", "A message has MP clear", "UserHeader.Flags.MP", MESSAGES, bool, "clear in a message"
)
value(
    "MQMQ-2.2.19.2-39",
    "AH is set in a message that did not come over HTTP",
    "UserHeader.Flags.AH",
    SENT,
    lambda number: not number,
    "set in a message that did not come over HTTP",
)

# -- MessagePropertiesHeader ---------------------------------------------------------------------

unused("MQMQ-2.2.19.3-06", "Unused bits are set", "MessagePropertiesHeader.Flags", 0xF0, MESSAGES)
value(
    "MQMQ-2.2.19.3-07",
    "LabelLength is more than 250",
    "MessagePropertiesHeader.LabelLength",
    MESSAGES,
    lambda number: number <= LABEL_LENGTH_MAX,
    "{} is more than 250",
)
value(
    "MQMQ-2.2.18.1.6-22",
    "MessageClass has bits of 0x1E00",
    "MessagePropertiesHeader.MessageClass",
    MESSAGES,
    is_legal_class,
    "{:#06x} has bits of 0x1e00",
)


def _is_body_type(kind: int) -> bool:
    if kind & _VECTOR and kind & _ARRAY:
        return False
    return kind & ~_MODIFIERS in _TYPES or kind in _TYPES_OF_SENDERS


value(
    "MQMQ-2.2.19.3-12",
    "BodyType is not a VARIANT type",
    "MessagePropertiesHeader.BodyType",
    MESSAGES,
    _is_body_type,
    "BodyType {:#06x} is not a VARIANT type",
    "NOTE",
)
value(
    "MQMQ-2.2.12-06",
    "BodyType is VT_VARIANT alone",
    "MessagePropertiesHeader.BodyType",
    MESSAGES,
    lambda number: number != _VARIANT,
    "VT_VARIANT without VT_VECTOR or VT_ARRAY",
    "NOTE",
)


@rule(
    "MQMQ-2.2.19.3-16",
    "AllocationBodySize is less than MessageSize",
    "MessagePropertiesHeader.AllocationBodySize",
    MESSAGES,
)
def _allocation(packet: Any) -> Problem:
    header = packet.MessagePropertiesHeader
    if header.AllocationBodySize < header.MessageSize:
        return f"{header.AllocationBodySize} is less than MessageSize, {header.MessageSize}"
    return None


value(
    "MQMQ-2.2.19.3-19",
    "PrivacyLevel is not 0, 1, 3 or 5",
    "MessagePropertiesHeader.PrivacyLevel",
    MESSAGES,
    lambda number: number in _PRIVACY,
    "{} is none of 0, 1, 3 and 5",
)


def signed(packet: Any) -> bool:
    """Return whether the message has a signature, its own or one of a multiple-element name."""
    security, several = packet.SecurityHeader, packet.MultiQueueFormatHeader
    if security is not None and security.SecurityData.Signature:
        return True
    return several is not None and bool(several.Signature.Signature)


@rule(
    "MQMQ-2.2.19.3-29",
    "The hash of the signature is unknown",
    "MessagePropertiesHeader.HashAlgorithm",
    MESSAGES,
)
def _hash(packet: Any) -> Problem:
    kind = packet.MessagePropertiesHeader.HashAlgorithm
    wrong = kind not in _HASHES and signed(packet)
    return f"{kind:#x} is unknown, and there is a signature" if wrong else None


@rule(
    "MQMQ-2.2.19.3-30",
    "The hash of the signature is weaker than SHA-512",
    "MessagePropertiesHeader.HashAlgorithm",
    MESSAGES,
    "SHOULD",
)
def _old_hash(packet: Any) -> Problem:
    kind = packet.MessagePropertiesHeader.HashAlgorithm
    if kind in _HASHES and kind != HashAlgorithm.CALG_SHA_512 and signed(packet):
        return f"{HashAlgorithm(kind).name} under the signature"
    return None


def encrypted(packet: Any) -> bool:
    """Return whether the body is marked as encrypted."""
    return packet.SecurityHeader is not None and bool(packet.SecurityHeader.Flags.EB)


@rule(
    "MQMQ-2.2.19.3-38",
    "The cipher of the encrypted body is unknown",
    "MessagePropertiesHeader.EncryptionAlgorithm",
    MESSAGES,
)
def _cipher(packet: Any) -> Problem:
    kind = packet.MessagePropertiesHeader.EncryptionAlgorithm
    return f"{kind:#x} is unknown, and EB is set" if kind not in _CIPHERS and encrypted(packet) else None


@rule(
    "MQMQ-2.2.19.3-39",
    "The cipher is not one of PrivacyLevel",
    "MessagePropertiesHeader.EncryptionAlgorithm",
    MESSAGES,
)
def _cipher_fits(packet: Any) -> Problem:
    header = packet.MessagePropertiesHeader
    kind, level = header.EncryptionAlgorithm, header.PrivacyLevel
    if level in CIPHERS_OF_LEVEL and kind in _CIPHERS and kind not in CIPHERS_OF_LEVEL[level]:
        return f"{EncryptionAlgorithm(kind).name} with PrivacyLevel {level}"
    return None


@rule(
    "MQMQ-2.2.19.3-40",
    "The encrypted body is not whole blocks",
    "MessagePropertiesHeader.MessageBody",
    SENT,
)
def _blocks(packet: Any) -> Problem:
    header = packet.MessagePropertiesHeader
    block, size = _BLOCKS.get(header.EncryptionAlgorithm, 0), len(header.MessageBody)
    if block and encrypted(packet) and (size == 0 or size % block):
        return f"{counted(size, 'byte', 'are')} not one or more blocks of {block}"
    return None


@rule(
    "MQQB-3.1.7.1.5-06",
    "The body is encrypted with a broken cipher",
    "MessagePropertiesHeader.EncryptionAlgorithm",
    SENT,
    "SHOULD",
)
def _old_cipher(packet: Any) -> Problem:
    kind = packet.MessagePropertiesHeader.EncryptionAlgorithm
    broken = kind in (EncryptionAlgorithm.CALG_RC2, EncryptionAlgorithm.CALG_RC4) and encrypted(packet)
    return f"{EncryptionAlgorithm(kind).name} encrypts the body, and is broken" if broken else None


@rule(
    "MQQB-3.1.5.8.3-16",
    "The body is encrypted, and PrivacyLevel says that it is not",
    "MessagePropertiesHeader.PrivacyLevel",
    SENT,
)
def _encrypted_level(packet: Any) -> Problem:
    level = packet.MessagePropertiesHeader.PrivacyLevel
    return f"{level}, and EB is set" if encrypted(packet) and level not in CIPHERS_OF_LEVEL else None


@rule(
    "MQQB-3.1.7.1.5-01",
    "PrivacyLevel says that the body is encrypted, and it is not",
    "MessagePropertiesHeader.PrivacyLevel",
    SENT,
)
def _clear_level(packet: Any) -> Problem:
    level = packet.MessagePropertiesHeader.PrivacyLevel
    wrong = level in CIPHERS_OF_LEVEL and not encrypted(packet)
    return f"{level}, but the body is not encrypted" if wrong else None


@rule(
    "MQMQ-2.2.19.3-43",
    "The label has no null at its end, or one inside",
    "MessagePropertiesHeader.Label",
    MESSAGES,
)
def _label(packet: Any) -> Problem:
    label = packet.MessagePropertiesHeader.Label
    return _text_problem(label) if isinstance(label, bytes) else None


def _text_problem(data: bytes) -> str | None:
    """Return why bytes are not WCHARs ending on their only null; lone surrogates are allowed."""
    units = [data[at : at + 2] for at in range(0, len(data), 2)]
    if units[-1] != b"\0\0":
        return "no null character ends it"
    return "a null character inside" if b"\0\0" in units[:-1] else None


@rule(
    "MQMQ-2.2.19.3-46",
    "MessagePropertiesHeader is not padded to 4 bytes",
    "MessagePropertiesHeader.Padding",
    MESSAGES,
)
def _padding(packet: Any) -> Problem:
    padding = packet.MessagePropertiesHeader.Padding
    return f"{counted(len(padding), 'byte')} of padding" if isinstance(padding, OddPadding) else None


@rule(
    "MQMQ-2.2.18.1.5.2-03",
    "A direct name is not padded to 4 bytes",
    "UserHeader.DestinationQueue.Padding",
    MESSAGES,
)
def _name_padding(packet: Any) -> Problem:
    for name in ("DestinationQueue", "AdminQueue", "ResponseQueue"):
        queue = packet.UserHeader[name]
        if queue is not None and isinstance(queue.get("Padding"), OddPadding):
            return f"UserHeader.{name}.Padding", f"{counted(len(queue.Padding), 'byte')} of padding"
    return None


# -- TransactionHeader ---------------------------------------------------------------------------

unused("MQMQ-2.2.20.5-11", "Unused bits are set", "TransactionHeader.Flags", 0xFF00_0000, MESSAGES)
value(
    "MQMQ-2.2.20.5-13",
    "TxSequenceNumber is 0",
    "TransactionHeader.TxSequenceNumber",
    MESSAGES,
    bool,
    "0 is not valid",
)


@rule(
    "MQMQ-2.2.20.5-14",
    "PreviousTxSequenceNumber is not before TxSequenceNumber",
    "TransactionHeader.PreviousTxSequenceNumber",
    MESSAGES,
)
def _previous(packet: Any) -> Problem:
    header = packet.TransactionHeader
    number, previous = header.TxSequenceNumber, header.PreviousTxSequenceNumber
    return f"{previous} is not before {number}" if number and previous >= number else None
