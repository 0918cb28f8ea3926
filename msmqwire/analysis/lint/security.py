"""Checks of SecurityHeader and of signatures: [MS-MQMQ] 2.2.20.6, [MS-MQQB] 2.4.2, [MS-DTYP] 2.4.2.2."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from msmqwire.analysis.lint.finding import Finding
from msmqwire.analysis.lint.message import encrypted
from msmqwire.analysis.lint.registry import MESSAGES, SENT, FieldOffsets, Problem, listed, rule, unused, value
from msmqwire.constants import EncryptionAlgorithm
from msmqwire.errors import InvalidValue
from msmqwire.names.printable import counted
from msmqwire.schema import OddPadding, Record

NO_ID, SID, QM_GUID = 0, 1, 2
SID_HEAD, SUB_AUTHORITIES_MAX = 8, 15  # [MS-DTYP] 2.4.2.2
GUID_SIZE: Final = 16
SENDER_CERT_MAX: Final = 0xFFFF  # MQMQ-2.2.20.6-18
SIMPLEBLOB_HEAD: Final = 12
RSA_SIZES: Final = range(48, 2049)  # bytes that a key encrypts
CERTIFICATES_MAX: Final = 64
"""Certificates that are remembered."""
_CIPHERS = frozenset(int(member) for member in EncryptionAlgorithm)
_SIZES = ("SenderIdSize", "EncryptionKeySize", "SignatureSize", "SenderCertSize", "ProviderInfoSize")

value(
    "MQMQ-2.2.20.6-02",
    "ST is not 0, 1 or 2",
    "SecurityHeader.Flags.ST",
    MESSAGES,
    lambda number: number <= QM_GUID,
    "{} is none of 0, 1 and 2",
)


@rule("MQMQ-2.2.20.6-03", "There is a SecurityID, and ST is 0", "SecurityHeader.SenderIdSize", MESSAGES)
def _no_id(packet: Any) -> Problem:
    header = packet.SecurityHeader
    return f"{header.SenderIdSize}, but ST is 0" if header.Flags.ST == NO_ID and header.SenderIdSize else None


def sid_problem(data: bytes) -> str | None:
    """Return why bytes are not a SID in the packet form of [MS-DTYP] 2.4.2.2; None if they are."""
    if len(data) < SID_HEAD:
        return f"{counted(len(data), 'byte', 'are')} not a SID"
    if data[0] != 1:
        return f"revision {data[0]} of a SID is not 1"
    if data[1] > SUB_AUTHORITIES_MAX:
        return f"{data[1]} sub-authorities of a SID are more than 15"
    if len(data) != SID_HEAD + 4 * data[1]:
        expected = f"a SID of {counted(data[1], 'sub-authority')} has {SID_HEAD + 4 * data[1]}"
        return f"{counted(len(data), 'byte')}, but {expected}"
    return None


@rule(
    "MQMQ-2.2.20.6-04",
    "SecurityID is not a SID, and ST is 1",
    "SecurityHeader.SecurityData.SecurityID",
    MESSAGES,
)
def _sid(packet: Any) -> Problem:
    header = packet.SecurityHeader
    return sid_problem(header.SecurityData.SecurityID) if header.Flags.ST == SID else None


@rule(
    "MQMQ-2.2.20.6-05",
    "SecurityID is not a GUID, and ST is 2",
    "SecurityHeader.SecurityData.SecurityID",
    MESSAGES,
)
def _guid(packet: Any) -> Problem:
    header = packet.SecurityHeader
    size = len(header.SecurityData.SecurityID)
    return (
        f"{counted(size, 'byte', 'are')} not a GUID"
        if header.Flags.ST == QM_GUID and size != GUID_SIZE
        else None
    )


value(
    "MQMQ-2.2.20.6-06",
    "AU is set on the wire",
    "SecurityHeader.Flags.AU",
    SENT,
    lambda number: not number,
    "set",
)
value(
    "MQMQ-2.2.20.6-13",
    "AS is not 0 on the wire",
    "SecurityHeader.Flags.AS",
    SENT,
    lambda number: not number,
    "{:#x} is not 0",
)
unused("MQMQ-2.2.20.6-14", "Unused bits are set", "SecurityHeader.Flags", 0xF000, MESSAGES)


@rule(
    "MQMQ-2.2.20.6-07",
    "The body is encrypted, and its key is missing",
    "SecurityHeader.EncryptionKeySize",
    SENT,
)
def _key(packet: Any) -> Problem:
    if encrypted(packet) and not packet.SecurityHeader.SecurityData.EncryptionKey:
        return "EB is set, and there is no key"
    return None


@rule("MQQB-2.4.2-01", "EncryptionKey is not a SIMPLEBLOB", "SecurityHeader.SecurityData.EncryptionKey", SENT)
def _blob(packet: Any) -> Problem:
    key = packet.SecurityHeader.SecurityData.EncryptionKey
    if not key or (len(key) > SIMPLEBLOB_HEAD and key[:4] == b"\x01\x02\0\0" and key[8:12] == b"\0\xa4\0\0"):
        return None
    return f"{key[:SIMPLEBLOB_HEAD].hex()} does not begin one"


@rule(
    "MQQB-2.4.2-02",
    "The session key is for another cipher, or an unknown one",
    "SecurityHeader.SecurityData.EncryptionKey",
    SENT,
)
def _key_cipher(packet: Any) -> Problem:
    key = packet.SecurityHeader.SecurityData.EncryptionKey
    if len(key) <= SIMPLEBLOB_HEAD:
        return None
    kind, used = int.from_bytes(key[4:8], "little"), packet.MessagePropertiesHeader.EncryptionAlgorithm
    if kind not in _CIPHERS:
        return f"{kind:#x} is unknown"
    return f"{kind:#x} is not EncryptionAlgorithm, {used:#x}" if kind != used and used in _CIPHERS else None


@rule(
    "MQQB-2.4.2-03",
    "encryptedKey is not as long as an RSA key",
    "SecurityHeader.SecurityData.EncryptionKey",
    SENT,
)
def _wrapped_size(packet: Any) -> Problem:
    size = len(packet.SecurityHeader.SecurityData.EncryptionKey) - SIMPLEBLOB_HEAD
    if size > 0 and size not in RSA_SIZES:
        return f"{counted(size, 'byte')}, not {RSA_SIZES.start} to {RSA_SIZES.stop - 1}"
    return None


@lru_cache(maxsize=CERTIFICATES_MAX)
def _certified(der: bytes) -> int | str:
    """Return the bytes that a signature of the owner of a certificate has; or why it can't be read."""
    from msmqwire.crypto.certificates import SenderCertificate  # slow to load, and rarely needed

    try:
        return -(-SenderCertificate.read(der).key.key_size // 8)
    except InvalidValue as exc:
        return exc.why


@rule(
    "MQMQ-2.2.20.6-29",
    "SenderCert is not an X.509 certificate of an RSA key",
    "SecurityHeader.SecurityData.SenderCert",
    MESSAGES,
)
def _certificate(packet: Any) -> Problem:
    der = packet.SecurityHeader.SecurityData.SenderCert
    size = _certified(der) if 0 < len(der) <= SENDER_CERT_MAX else 0
    return size if isinstance(size, str) else None


@rule(
    "MQQB-3.1.5.8.3-03",
    "There is a signature without the sender's certificate",
    "SecurityHeader.SenderCertSize",
    MESSAGES,
)
def _signature_alone(packet: Any) -> Problem:
    data = packet.SecurityHeader.SecurityData
    return "0, and there is a signature" if data.Signature and not data.SenderCert else None


@rule(
    "MQQB-3.1.5.8.3-05",
    "There is a signature for several queues without the sender's certificate",
    "MultiQueueFormatHeader.Signature.Signature",
    MESSAGES,
)
def _several_alone(packet: Any) -> Problem:
    signed = packet.MultiQueueFormatHeader.Signature.Signature
    return "there is no SenderCert" if signed and not _sender_cert(packet) else None


def _sender_cert(packet: Any) -> bytes:
    security = packet.SecurityHeader
    return b"" if security is None else security.SecurityData.SenderCert


@rule(
    "MQQB-3.1.7.1.4-03",
    "The signature is not as long as the sender's key",
    "SecurityHeader.SecurityData.Signature",
    MESSAGES,
)
def _signature_size(packet: Any) -> Problem:
    return _wrong_size(packet, packet.SecurityHeader.SecurityData.Signature)


@rule(
    "MQQB-3.1.7.1.4-02",
    "The signature for several queues is not as long as the sender's key",
    "MultiQueueFormatHeader.Signature.Signature",
    MESSAGES,
)
def _several_size(packet: Any) -> Problem:
    return _wrong_size(packet, packet.MultiQueueFormatHeader.Signature.Signature)


def _wrong_size(packet: Any, signature: bytes) -> Problem:
    der = _sender_cert(packet) if signature else b""
    size = _certified(der) if 0 < len(der) <= SENDER_CERT_MAX else 0
    if isinstance(size, int) and size and len(signature) != size:
        return f"{counted(len(signature), 'byte')}, but the key of SenderCert has {size}"
    return None


_WRONG_SIGNATURE: Final = listed(
    "MQQB-3.1.5.8.3-06",
    "The signature is not that of the message (with --key or --cert)",
    "SecurityHeader.SecurityData.Signature",
    MESSAGES,
)


def lint_wrong_signature(packet: Record) -> list[Finding]:
    """Return the finding for a message whose signature was verified, and is not that of its sender."""
    path = _WRONG_SIGNATURE.path
    if not packet.SecurityHeader.SecurityData.Signature:
        path = "MultiQueueFormatHeader.Signature.Signature"
    message = "it is not the signature of this message by the key of SenderCert"
    return [_WRONG_SIGNATURE.at(path, FieldOffsets(packet).of(path), message)]


@rule(
    "MQMQ-2.2.20.6-09",
    "The signature names no provider, and DE is clear",
    "SecurityHeader.ProviderInfoSize",
    MESSAGES,
)
def _provider(packet: Any) -> Problem:
    header = packet.SecurityHeader
    if not header.Flags.DE and header.SecurityData.Signature and header.SecurityData.ProviderInfo is None:
        return "there is a signature, DE is clear, and no provider is named"
    return None


@rule(
    "MQMQ-2.2.20.6-35", "There is a ProviderInfo, and DE is set", "SecurityHeader.ProviderInfoSize", MESSAGES
)
def _default_provider(packet: Any) -> Problem:
    header = packet.SecurityHeader
    if header.Flags.DE and header.SecurityData.ProviderInfo is not None:
        return f"{header.ProviderInfoSize}, but DE is set"
    return None


@rule(
    "MQMQ-2.2.20.6-38",
    "ProviderName is not null-terminated text",
    "SecurityHeader.SecurityData.ProviderInfo.ProviderName",
    MESSAGES,
)
def _provider_name(packet: Any) -> Problem:
    info = packet.SecurityHeader.SecurityData.ProviderInfo
    if info is None or isinstance(info.ProviderName, str):
        return None
    return "no null-terminated UTF-16 text"


@rule(
    "MQMQ-2.2.20.6-11", "AI does not say whether SecurityData is there", "SecurityHeader.Flags.AI", MESSAGES
)
def _ai(packet: Any) -> Problem:
    """A bare SecurityID goes without AI, as Windows sends it: MQMQ-2.2.20.6-12."""
    header = packet.SecurityHeader
    data = header.SecurityData
    more = bool(data.EncryptionKey or data.Signature or data.SenderCert or data.ProviderInfo is not None)
    if header.Flags.AI and not more and not data.SecurityID:
        return "set, but SecurityData is empty"
    return "clear, but there is SecurityData" if more and not header.Flags.AI else None


value(
    "MQMQ-2.2.20.6-18",
    "SenderCertSize is more than 0xFFFF",
    "SecurityHeader.SenderCertSize",
    MESSAGES,
    lambda number: number <= SENDER_CERT_MAX,
    "{:#x} is more than 0xffff",
)


@rule("MQMQ-2.2.20.6-20", "All five sizes of SecurityHeader are 0", "SecurityHeader.SenderIdSize", MESSAGES)
def _empty(packet: Any) -> Problem:
    return "all five sizes are 0" if not any(packet.SecurityHeader[name] for name in _SIZES) else None


@rule(
    "MQMQ-2.2.20.6-21",
    "An item of SecurityData is not padded to 4 bytes",
    "SecurityHeader.SecurityData",
    MESSAGES,
)
def _padding(packet: Any) -> Problem:
    data = packet.SecurityHeader.SecurityData
    for item in ("SecurityID", "EncryptionKey", "Signature", "SenderCert", "ProviderInfo"):
        padding = data[f"{item}Padding"]
        if isinstance(padding, OddPadding):
            return f"SecurityHeader.SecurityData.{item}Padding", f"{counted(len(padding), 'byte')} of padding"
    return None
