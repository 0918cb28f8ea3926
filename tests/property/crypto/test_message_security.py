"""Message security: round trips, flipped bits, and hostile keys, blobs and certificates."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import msmqwire
from msmqwire.constants import EncryptionAlgorithm, HashAlgorithm, KeyAlgorithm
from msmqwire.crypto.certificates import SenderCertificate, create_self_signed
from msmqwire.crypto.ciphers import SessionKey, decrypt, encrypt, key_bits, new_session_key, provider_of
from msmqwire.crypto.keys import (
    public_key_blob,
    public_key_of,
    read_private_key,
    read_public_key,
    unwrap,
    wrap,
)
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.crypto.signatures import sign, signature_version
from msmqwire.crypto.signed_fields import SignatureVersion
from msmqwire.errors import (
    DecryptionFailed,
    InvalidName,
    InvalidValue,
    MalformedPacket,
    UnsupportedAlgorithm,
)
from msmqwire.packets import USER_MESSAGE
from msmqwire.schema import Align, Fill, Record
from msmqwire.schema.layout import layout
from tests.support import handmade
from tests.support.message_keys import VECTORS, private_key, with_signature

V1, V2, V3 = SignatureVersion
READINGS = st.fixed_dictionaries(
    {name: st.sampled_from(values) for name, values in Readings.fields().items()}
).map(Readings.of)
BYTES = st.binary(max_size=40)
GUIDS = st.binary(min_size=16, max_size=16)
U32 = st.integers(0, 0xFFFFFFFF)
LETTERS = st.text("abcÄ€", min_size=1, max_size=9)


# -- round trips ---------------------------------------------------------------------------------------


ALGORITHMS = [(a, bits) for a in (0x6602, 0x6801) for bits in (40, 128)] + [
    (0x660E, 128),
    (0x660F, 192),
    (0x6610, 256),
]


@given(st.sampled_from(ALGORITHMS), st.binary(max_size=99), READINGS, st.binary(min_size=32, max_size=32))
def test_any_body_comes_back(kind: tuple[int, int], body: bytes, readings: Readings, seed: bytes) -> None:
    key = new_session_key(*kind, lambda size: seed[:size], readings)
    private = private_key(512)
    received = unwrap(wrap(key, private.public_key()), private, readings, kind[0], provider_of(*kind))
    assert received == key
    assert decrypt(received, encrypt(key, body)) == body


# -- flipped bits --------------------------------------------------------------------------------------

ALL, SINCE_2 = {V1, V2, V3}, {V2, V3}
COVERED = {  # by the beginning of a path: the versions whose signatures cover the field, [MS-MQMQ] 2.5
    "MessagePropertiesHeader.CorrelationID": ALL, "MessagePropertiesHeader.ApplicationTag": ALL,
    "MessagePropertiesHeader.MessageBody": ALL, "MessagePropertiesHeader.Label": ALL,
    "UserHeader.ResponseQueue.": ALL, "UserHeader.AdminQueue.": ALL,
    "UserHeader.SourceQueueManager": SINCE_2, "MessagePropertiesHeader.MessageClass": SINCE_2,
    "MessagePropertiesHeader.BodyType": SINCE_2, "UserHeader.ConnectorType": SINCE_2,
    "UserHeader.DestinationQueue.": {V2}, "MessagePropertiesHeader.ExtensionData": {V3},
    "MultiQueueFormatHeader.Destination.FormatNameList": {V3},
}  # fmt: skip
COVERED_BITS = {
    "BaseHeader.Flags": 0x7, "UserHeader.Flags": 0x360, "MessagePropertiesHeader.Flags": 0x0F,
}  # fmt: skip
FREE_BITS = {
    "BaseHeader.Flags": 0xFF00,
    "UserHeader.Flags": 0x0100_009F,
    "MessagePropertiesHeader.Flags": 0xF0,
}
FREE = (
    "BaseHeader.Reserved", "BaseHeader.TimeToReachQueue", "UserHeader.QueueManagerAddress",
    "UserHeader.TimeToBeReceived", "UserHeader.SentTime", "UserHeader.MessageID",
    "TransactionHeader.TxSequenceID", "TransactionHeader.TxSequenceNumber",
    "MessagePropertiesHeader.PrivacyLevel", "MessagePropertiesHeader.EncryptionAlgorithm",
    "SecurityHeader.SecurityData.SecurityID", "SecurityHeader.SecurityData.EncryptionKey",
    "SecurityHeader.SecurityData.SenderCert",
)  # fmt: skip
# Fields that lead to others. What a change of them does depends on what it then finds there.
STRUCTURE = (".Count", ".FormatType", "MessagePropertiesHeader.MessageBodySlack")


def bits_of_fields(message: Record, version: SignatureVersion) -> Iterator[tuple[str, bool, int, int]]:
    """The fields of a packet: path, whether the signature covers these bits, offset in bits, mask."""
    for field in layout(message):
        path, everything = field.path, (1 << 8 * field.size) - 1
        if isinstance(field.node, Align | Fill):
            signed, free = 0, everything
        elif path in COVERED_BITS:
            signed, free = COVERED_BITS[path], FREE_BITS[path]
            if version is V1:
                signed, free = 0, signed | free
        elif path.endswith(STRUCTURE):
            continue
        else:
            versions = next((found for start, found in COVERED.items() if path.startswith(start)), None)
            if versions is None and not path.startswith(FREE):
                continue
            if version in (versions or ()):
                signed, free = everything, 0
            else:
                # A letter of a name that is changed may be none any more: such packets are refused.
                signed, free = 0, 0 if path.endswith(".DirectFormatName") else everything
        for covered, mask in ((True, signed), (False, free)):
            if mask:
                yield path, covered, 8 * field.offset, mask


QUEUES = [
    (0, b""), (2, handmade.private_id(5)), (5, handmade.SERVER),
    (6, handmade.private_name(handmade.SERVER, 7)),
    (7, handmade.direct_name("TCP:10.0.0.1\\private$\\orders", fill=b"\xee")),
]  # fmt: skip
ELEMENTS = [
    handmade.mqf_public(handmade.SERVER), handmade.mqf_private(handmade.SERVER, 7),
    handmade.mqf_list(handmade.CLIENT), handmade.mqf_direct("OS:a\\b"),
]  # fmt: skip


@st.composite
def messages(draw: Any) -> Record:
    """A message with each field that a signature covers, and some that it does not."""
    user = handmade.user_header(
        flags=handmade.MP | draw(st.sampled_from([0, 0x20, 0x100, 0x300])),
        destination=draw(st.sampled_from([(3, handmade.private_id(9)), *QUEUES[2:3], QUEUES[4]])),
        admin=draw(st.sampled_from(QUEUES)),
        response=draw(st.sampled_from(QUEUES)),
        connector_type=draw(st.none() | GUIDS),
    )
    properties = handmade.properties_header(
        flags=draw(st.integers(0, 15)),
        label=draw(st.none() | LETTERS),
        correlation_id=draw(st.binary(min_size=20, max_size=20)),
        body=draw(BYTES),
        extension=draw(BYTES),
        fill=b"\xee",
    )
    lists = [draw(st.lists(st.sampled_from(ELEMENTS), max_size=3)) for _ in range(3)]
    security = handmade.security_header(
        flags=0x81, security_id=b"S" * 12, encryption_key=b"key", certificate=b"certificate", fill=b"\xee"
    )
    return msmqwire.parse(
        handmade.user_message(
            user=user,
            properties=properties,
            security=security,
            transaction=draw(st.sampled_from([b"", handmade.transaction_header()])),
            multi_queue=handmade.multi_queue_format_header(*lists, fill=b"\xee"),
        )
    )


@given(messages(), st.sampled_from(SignatureVersion), st.sampled_from(HashAlgorithm), READINGS)
def test_any_message_is_signed_and_verified(
    message: Record, version: SignatureVersion, algorithm: HashAlgorithm, readings: Readings
) -> None:
    signature = sign(message, version, private_key(), algorithm, readings)
    signed = with_signature(message, signature, algorithm, multiple=version is V3)
    assert signature_version(signed, private_key().public_key(), readings) is version
    assert signature_version(signed, private_key(1024, 1).public_key(), readings) is None


@pytest.mark.requirement("MQMQ-2.5-02", "MQMQ-2.5.1-01", "MQMQ-2.5.2-01", "MQMQ-2.5.3-01")
@pytest.mark.parametrize("version", SignatureVersion, ids=lambda version: version.text)
@given(message=messages(), where=st.integers(0, 1 << 32))
def test_one_flipped_bit(version: SignatureVersion, message: Record, where: int) -> None:
    """One bit of each field at a time: covered ones end the signature, a 1.0 one too; others do nothing."""
    algorithm, public = HashAlgorithm.CALG_SHA_256, private_key(512).public_key()
    signature = sign(message, version, private_key(512), algorithm)
    signed = with_signature(message, signature, algorithm, multiple=version is V3)
    data = int.from_bytes(signed.to_bytes(), "little")
    size = signed.BaseHeader.PacketSize
    for path, covered, first, mask in bits_of_fields(signed, version):
        choice = [number for number in range(mask.bit_length()) if mask >> number & 1]
        flipped = data ^ 1 << first + choice[where % len(choice)]
        try:
            found = signature_version(USER_MESSAGE.parse(flipped.to_bytes(size, "little")), public)
        except MalformedPacket:
            assert covered, path
            continue
        assert found is (None if covered else version), path


@given(messages(), st.integers(0, 511), st.sampled_from(["signature", "hash"]))
def test_a_flipped_bit_of_the_signature_or_the_hash(message: Record, bit: int, what: str) -> None:
    algorithm = int(HashAlgorithm.CALG_SHA_256)
    signature = sign(message, V2, private_key(512), algorithm)
    if what == "hash":
        algorithm ^= 1 << bit % 32
    else:
        changed = bytearray(signature)
        changed[bit // 8] ^= 1 << bit % 8
        signature = bytes(changed)
    try:
        found = signature_version(
            with_signature(message, signature, algorithm), private_key(512).public_key()
        )
    except UnsupportedAlgorithm:
        assert what == "hash"
        return
    assert found is None


# -- hostile keys, blobs and certificates --------------------------------------------------------------

BLOB = public_key_blob(private_key(512))
SIMPLE = wrap(SessionKey(0x6801, b"k" * 16, 128), private_key(512).public_key())
CERTIFICATE = create_self_signed(private_key(512), "sender", 0, 1 << 31, 5)
PRIVATE = (VECTORS / "rsa-512.pem").read_bytes()
FILES = [BLOB, BLOB.hex().encode(), CERTIFICATE, PRIVATE]


@st.composite
def mutated(draw: Any, originals: list[bytes]) -> bytes:
    """One of these with up to three stretches changed, or any bytes."""
    data = draw(st.sampled_from(originals) | st.binary(max_size=90))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 9)))
        data = data[:start] + draw(st.binary(max_size=9)) + data[end:]
    return data


@given(mutated(FILES))
def test_hostile_files(content: bytes) -> None:
    for read in (read_public_key, read_private_key, SenderCertificate.read, SenderCertificate.read_file):
        with suppress(InvalidValue):
            read(content)


MESSAGE = with_signature(
    msmqwire.parse(
        handmade.user_message(security=handmade.security_header(flags=0x81, security_id=b"S" * 12))
    ),
    bytes(64),
    HashAlgorithm.CALG_SHA_256,
)


WIRES = [
    with_signature(
        MESSAGE, sign(MESSAGE, V2, private_key(512), HashAlgorithm.CALG_SHA_256), 0x800C
    ).to_bytes(),
    handmade.user_message(
        multi_queue=handmade.multi_queue_format_header(ELEMENTS, ELEMENTS, ELEMENTS, signature=b"\1" * 64),
        properties=handmade.properties_header(label="label", body=b"body", hash_algorithm=0x800C),
    ),
]


@given(mutated(WIRES), READINGS)
def test_hostile_packets(data: bytes, readings: Readings) -> None:
    """Signed and verified, or refused by one of our errors."""
    try:
        message = msmqwire.parse(data[:8] + len(data).to_bytes(4, "little") + data[12:])
    except MalformedPacket:
        return
    with suppress(UnsupportedAlgorithm):
        signature_version(message, private_key(512).public_key(), readings)
    for version in SignatureVersion:
        with suppress(InvalidName, InvalidValue):
            sign(message, version, private_key(512), HashAlgorithm.CALG_SHA_256, readings)


@given(
    st.integers(380, 600) | st.sampled_from([1024, 2048, 16384, 16392]),
    st.integers(0, 1 << 600),
    st.sampled_from([0, 1, 2, 3, 65537, 0xFFFFFFFF]) | U32,
)
@example(16384, 0, 0xFFFFFFFF)
def test_hostile_moduli_and_exponents(size: int, number: int, exponent: int) -> None:
    modulus = number % (1 << size - 1) | 1 << size - 1
    blob = handmade.publickeyblob(modulus.to_bytes((size + 7) // 8, "little"), bits=size, exponent=exponent)
    try:
        key = public_key_of(blob)
    except MalformedPacket:
        assert not 384 <= size <= 16384 or not modulus & 1 or not exponent & 1 or exponent == 1
        return
    assert public_key_blob(key, KeyAlgorithm.CALG_RSA_KEYX) == blob
    signature = number.to_bytes(76, "little")[:64].ljust((size + 7) // 8, b"\0")
    assert signature_version(with_signature(MESSAGE, signature, HashAlgorithm.CALG_SHA_256), key) is None
    with suppress(InvalidValue):
        wrap(SessionKey(0x6801, b"k" * 16, 128), key)


@given(mutated([BLOB]))
def test_hostile_public_key_blobs(blob: bytes) -> None:
    try:
        key = public_key_of(blob)
    except MalformedPacket:
        return
    assert public_key_blob(key, KeyAlgorithm(int.from_bytes(blob[4:8], "little"))) == blob


PAIRS = [
    (algorithm, provider)
    for algorithm, provider in itertools.product(
        EncryptionAlgorithm, {provider_of(*kind) for kind in ALGORITHMS}
    )
    if key_bits(algorithm, provider)
]


@given(mutated([SIMPLE]), st.sampled_from(PAIRS), st.binary(max_size=40), READINGS)
def test_hostile_session_keys(blob: bytes, pair: Any, body: bytes, readings: Readings) -> None:
    key = unwrap(blob, private_key(512), readings, *pair)
    if key.usable:
        assert (key.key, key.algorithm) == (b"k" * 16, 0x6801)
        assert blob.rstrip(b"\0") == SIMPLE.rstrip(b"\0")
        return
    with pytest.raises(DecryptionFailed):
        decrypt(key, body)


@given(st.sampled_from(ALGORITHMS), st.binary(max_size=64))
def test_hostile_bodies(kind: tuple[int, int], body: bytes) -> None:
    key = new_session_key(*kind, lambda size: b"k" * size, DEFAULT)
    try:
        clear = decrypt(key, body)
    except DecryptionFailed:
        return
    assert encrypt(key, clear) == body
