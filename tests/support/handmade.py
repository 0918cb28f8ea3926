"""The structures of the packets written by hand from the specifications, with `struct` alone.

A second opinion for tests: it shares no code with the library, fills in only sizes, and follows the text of
[MS-MQMQ], [MS-MQQB] and [MS-MQRR]. A test passes in all wrong values.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

INFINITE = 0xFFFFFFFF
NULL_GUID = bytes(16)
CLIENT = bytes.fromhex("D1587355509195954997B6E611EA26C6")  # the queue managers of [MS-MQQB] chapter 4
SERVER = bytes.fromhex("0789CD434C39118F44459078909EA0FC")

# BaseHeader.Flags
IN, BASE_SH, DH, TR = 0x0008, 0x0010, 0x0020, 0x0100
# UserHeader.Flags
SH, TH, MP, CQ, MQ, AH, HH = 0x80000, 0x100000, 0x200000, 0x400000, 0x800000, 0x2000000, 0x10000000

# --- pieces ---


def guid(text: str) -> bytes:
    """The packet form of [MS-DTYP] 2.3.4: three little-endian integers and eight bytes as they are."""
    first, second, third, fourth, fifth = text.split("-")
    return struct.pack("<LHH", int(first, 16), int(second, 16), int(third, 16)) + bytes.fromhex(
        fourth + fifth
    )


def wide(text: str) -> bytes:
    """A null-terminated string of little-endian WCHARs."""
    return text.encode("utf-16-le") + b"\0\0"


def padding(size: int, fill: bytes = b"\0", to: int = 4) -> bytes:
    """The padding from `size` to the next boundary."""
    return fill * (-size % to)


def padded(data: bytes, fill: bytes = b"\0", to: int = 4) -> bytes:
    return data + padding(len(data), fill, to)


# --- headers of all packets: [MS-MQMQ] 2.2.19 ---


def base_header(
    size: int,
    flags: int = 3,
    *,
    version: int = 0x10,
    reserved: int = 0,
    signature: int = 0x524F494C,
    time_to_reach_queue: int = INFINITE,
) -> bytes:
    """[MS-MQMQ] 2.2.19.1."""
    return struct.pack("<BBHLLL", version, reserved, flags, signature, size, time_to_reach_queue)


def private_id(number: int) -> bytes:
    """PrivateQueueFormatNameId: [MS-MQMQ] 2.2.18.1.5.1."""
    return struct.pack("<L", number)


def direct_name(text: str, fill: bytes = b"\0") -> bytes:
    """DirectQueueFormatName: [MS-MQMQ] 2.2.18.1.5.2."""
    name = wide(text)
    return padded(struct.pack("<H", len(name)) + name, fill)


def private_name(host: bytes, number: int) -> bytes:
    """PrivateQueueFormatName: [MS-MQMQ] 2.2.18.1.7.2."""
    return host + struct.pack("<L", number)


def user_header(
    *,
    source: bytes = CLIENT,
    address: bytes = NULL_GUID,
    time_to_be_received: int = INFINITE,
    sent_time: int = 0x441105E6,
    message_id: int = 1,
    flags: int = MP,
    destination: tuple[int, bytes] = (3, private_id(9)),
    admin: tuple[int, bytes] = (0, b""),
    response: tuple[int, bytes] = (0, b""),
    connector_type: bytes | None = None,
) -> bytes:
    """[MS-MQMQ] 2.2.19.2; a queue is its DQ, AQ or RQ with the bytes of its name."""
    flags |= destination[0] << 10 | admin[0] << 13 | response[0] << 16 | (0 if connector_type is None else CQ)
    fixed = struct.pack("<16s16sLLLL", source, address, time_to_be_received, sent_time, message_id, flags)
    return fixed + destination[1] + admin[1] + response[1] + (connector_type or b"")


def properties_header(
    *,
    flags: int = 0,
    label: str | None = None,
    label_length: int | None = None,
    message_class: int = 0,
    correlation_id: bytes = bytes(20),
    body_type: int = 0,
    application_tag: int = 0,
    body: bytes = b"",
    message_size: int | None = None,
    allocation_body_size: int | None = None,
    privacy_level: int = 0,
    hash_algorithm: int = 0x800E,
    encryption_algorithm: int = 0x6610,
    extension: bytes = b"",
    extension_size: int | None = None,
    slack: bytes = b"",
    fill: bytes = b"\0",
) -> bytes:
    """[MS-MQMQ] 2.2.19.3."""
    text = b"" if label is None else wide(label)
    fixed = struct.pack(
        "<BBH20sLLLLLLLL",
        flags,
        len(text) // 2 if label_length is None else label_length,
        message_class,
        correlation_id,
        body_type,
        application_tag,
        len(body) if message_size is None else message_size,
        len(body) + len(slack) if allocation_body_size is None else allocation_body_size,
        privacy_level,
        hash_algorithm,
        encryption_algorithm,
        len(extension) if extension_size is None else extension_size,
    )
    return padded(fixed + text + extension + body + slack, fill)


# --- headers of a message: [MS-MQMQ] 2.2.20 ---


def transaction_header(
    *,
    flags: int = 0,
    ordinal: int = 1,
    time_stamp: int = 2,
    number: int = 1,
    previous: int = 0,
    connector: bytes | None = None,
) -> bytes:
    """[MS-MQMQ] 2.2.20.5."""
    fixed = struct.pack("<LLLLL", flags, ordinal, time_stamp, number, previous)
    return fixed + (connector or b"")


def provider_info(kind: int, name: str) -> bytes:
    """ProviderInfo of [MS-MQMQ] 2.2.20.6."""
    return struct.pack("<L", kind) + wide(name)


def security_header(
    *,
    flags: int = 0,
    security_id: bytes = b"",
    encryption_key: bytes = b"",
    signature: bytes = b"",
    certificate: bytes = b"",
    provider: bytes = b"",
    sizes: Sequence[int] | None = None,
    fill: bytes = b"\0",
) -> bytes:
    """[MS-MQMQ] 2.2.20.6."""
    items = (security_id, encryption_key, signature, certificate, provider)
    head = struct.pack("<HHHHLL", flags, *(sizes or map(len, items)))
    return head + b"".join(padded(item, fill) for item in items)


def debug_header(queue: bytes | None = None, *, flags: int | None = None, reserved: int = 0) -> bytes:
    """[MS-MQMQ] 2.2.20.8."""
    return struct.pack("<HH", (queue is not None) if flags is None else flags, reserved) + (queue or b"")


def soap_header(
    header: str = "h",
    body: str = "b",
    *,
    header_id: int = 0x0320,
    body_id: int = 0x0384,
    reserved: int = 0,
    reserved1: int = 0,
    aligned: bool = True,
    fill: bytes = b"\0",
) -> bytes:
    """[MS-MQMQ] 2.2.20.7; whether the second half is aligned is open in the text."""
    first = struct.pack("<HHL", header_id, reserved, len(header) + 1) + wide(header)
    first = padded(first, fill) if aligned else first
    return padded(first + struct.pack("<HHL", body_id, reserved1, len(body) + 1) + wide(body), fill)


def mqf_element(kind: int, name: bytes) -> tuple[int, bytes]:
    """An MQFFormatNameElement, to be put into a list: [MS-MQMQ] 2.2.18.1.4."""
    return kind, name


def mqf_public(queue: bytes) -> tuple[int, bytes]:
    return 1, queue


def mqf_private(host: bytes, number: int) -> tuple[int, bytes]:
    return 2, host + struct.pack("<L", number)


def mqf_direct(text: str) -> tuple[int, bytes]:
    return 3, wide(text)


def mqf_list(identifier: bytes) -> tuple[int, bytes]:
    return 6, identifier


def mqf_address_header(
    header_id: int,
    elements: Sequence[tuple[int, bytes]] = (),
    *,
    reserved: int = 0,
    size: int | None = None,
    count: int | None = None,
    rounded: bool = True,
    fill: bytes = b"\0",
) -> bytes:
    """[MS-MQMQ] 2.2.20.2. GUIDs stand on 4-byte boundaries of this header, strings on 2-byte ones."""
    at, names = 12, b""
    for kind, name in elements:
        element = struct.pack("<H", kind)
        element += padding(at + len(element), fill, 2 if kind == 3 else 4) + name
        at, names = at + len(element), names + element
    end = padding(at, fill)
    told = at + len(end) * rounded if size is None else size
    return (
        struct.pack("<LHHL", told, header_id, reserved, len(elements) if count is None else count)
        + names
        + end
    )


def mqf_signature_header(
    signature: bytes = b"",
    *,
    header_id: int = 0x015E,
    reserved: int = 0,
    size: int | None = None,
    fill: bytes = b"\0",
) -> bytes:
    """[MS-MQMQ] 2.2.20.3, its end padded like that of every header."""
    told = len(signature) if size is None else size
    return padded(struct.pack("<HHL", header_id, reserved, told) + signature, fill)


def multi_queue_format_header(
    destination: Sequence[tuple[int, bytes]] = (),
    admin: Sequence[tuple[int, bytes]] = (),
    response: Sequence[tuple[int, bytes]] = (),
    signature: bytes = b"",
    fill: bytes = b"\0",
) -> bytes:
    """[MS-MQMQ] 2.2.20.1."""
    lists = ((0x0064, destination), (0x00C8, admin), (0x012C, response))
    parts = [mqf_address_header(number, elements, fill=fill) for number, elements in lists]
    return b"".join(parts) + mqf_signature_header(signature, fill=fill)


def session_header(
    *,
    ack: int = 0,
    recoverable_ack: int = 0,
    recoverable_flags: int = 0,
    sent: int = 0,
    recoverable_sent: int = 0,
    window: int = 64,
    reserved: int = 0,
) -> bytes:
    """[MS-MQMQ] 2.2.20.4."""
    return struct.pack(
        "<HHLHHHH", ack, recoverable_ack, recoverable_flags, sent, recoverable_sent, window, reserved
    )


def user_message(
    *,
    user: bytes | None = None,
    transaction: bytes = b"",
    security: bytes = b"",
    properties: bytes | None = None,
    debug: bytes = b"",
    srmp: bytes = b"",
    compound: bytes = b"",
    soap: bytes = b"",
    multi_queue: bytes = b"",
    trailing: bytes = b"",
    session: bytes = b"",
    flags: int = 3,
    user_flags: int = MP,
    size: int | None = None,
    reserved: int = 0,
    time_to_reach_queue: int = INFINITE,
) -> bytes:
    """[MS-MQMQ] 2.2.20: the bits follow from the headers passed, PacketSize from all but the last.

    `trailing` are bytes after the last header that PacketSize counts.
    """
    flags |= (DH if debug else 0) | (BASE_SH if session else 0)
    told = (TH if transaction else 0) | (SH if security else 0) | (MQ if multi_queue else 0)
    told |= (HH if soap else 0) | (AH if srmp or compound else 0) | user_flags
    user = user_header() if user is None else user
    user = user[:44] + struct.pack("<L", struct.unpack_from("<L", user, 44)[0] | told) + user[48:]
    properties = properties_header() if properties is None else properties
    counted = (
        user + transaction + security + properties + debug + srmp + compound + soap + multi_queue + trailing
    )
    told_size = 16 + len(counted) if size is None else size
    base = base_header(told_size, flags, reserved=reserved, time_to_reach_queue=time_to_reach_queue)
    return base + counted + session


# --- internal packets and acknowledgements: [MS-MQQB] 2.2 ---


def internal_header(flags: int, *, reserved: int = 0) -> bytes:
    """[MS-MQQB] 2.2.1."""
    return struct.pack("<HH", reserved, flags)


def establish_connection_header(
    *,
    client: bytes = CLIENT,
    server: bytes = SERVER,
    time_stamp: int = 0,
    operating_system: int = 0x0310,
    reserved: int = 0,
    fill: bytes = b"\x5a" * 512,
) -> bytes:
    """[MS-MQQB] 2.2.3.1."""
    return struct.pack("<16s16sLHH512s", client, server, time_stamp, operating_system, reserved, fill)


def connection_parameters_header(
    *, recoverable_ack_timeout: int = 500, ack_timeout: int = 120_000, reserved: int = 0, window: int = 64
) -> bytes:
    """[MS-MQQB] 2.2.2.1."""
    return struct.pack("<LLHH", recoverable_ack_timeout, ack_timeout, reserved, window)


def establish_connection(header: bytes | None = None, *, flags: int = 3 | IN, internal: int = 2) -> bytes:
    """[MS-MQQB] 2.2.3."""
    header = establish_connection_header() if header is None else header
    return base_header(572, flags) + internal_header(internal) + header


def connection_parameters(header: bytes | None = None, *, flags: int = 3 | IN, internal: int = 3) -> bytes:
    """[MS-MQQB] 2.2.2."""
    header = connection_parameters_header() if header is None else header
    return base_header(32, flags) + internal_header(internal) + header


def session_ack(header: bytes | None = None, *, flags: int = 3 | IN | BASE_SH, internal: int = 1) -> bytes:
    """[MS-MQQB] 2.2.6; here PacketSize counts the SessionHeader."""
    header = session_header() if header is None else header
    return base_header(36, flags) + internal_header(internal) + header


def order_ack_body(
    *, ordinal: int = 1, time_stamp: int = 2, number: int = 1, previous: int = 0, reserved: bytes = bytes(20)
) -> bytes:
    """[MS-MQQB] 2.2.4.1."""
    return struct.pack("<LLLL20s", ordinal, time_stamp, number, previous, reserved)


def final_ack_body(
    *,
    ordinal: int = 1,
    time_stamp: int = 2,
    number: int = 1,
    previous: int = 0,
    source: bytes = CLIENT,
    message_id: int = 1,
) -> bytes:
    """[MS-MQQB] 2.2.5.1."""
    return struct.pack("<LLLL16sL", ordinal, time_stamp, number, previous, source, message_id)


def order_ack(
    body: bytes | None = None,
    *,
    destination: tuple[int, bytes] = (3, private_id(4)),
    flags: int = 0,
    user_flags: int = 0,
    label: str = "QM Ordering Ack",
    message_class: int = 0x00FF,
) -> bytes:
    """[MS-MQQB] 2.2.4."""
    properties = properties_header(
        label=label, message_class=message_class, body=order_ack_body() if body is None else body
    )
    return user_message(
        user=user_header(destination=destination),
        properties=properties,
        flags=flags,
        user_flags=user_flags | MP,
    )


def final_ack(
    body: bytes | None = None,
    *,
    destination: tuple[int, bytes] = (3, private_id(4)),
    flags: int = 0,
    user_flags: int = 0x20,
    label: str = "QM Ordering Ack",
    message_class: int = 0x4000,
) -> bytes:
    """[MS-MQQB] 2.2.5; DM is 1."""
    return order_ack(
        final_ack_body() if body is None else body,
        destination=destination,
        flags=flags,
        user_flags=user_flags,
        label=label,
        message_class=message_class,
    )


def ping(*, flags: int = 0, signature: int = 0x5548, cookie: int = 0, queue_manager: bytes = CLIENT) -> bytes:
    """[MS-MQQB] 2.2.7."""
    return struct.pack("<HHL16s", flags, signature, cookie, queue_manager)


# --- headers of a remotely read message: [MS-MQRR] 2.2.5 ---


def srmp_envelope_header(
    text: str = "<e/>",
    *,
    header_id: int = 0,
    reserved: int = 0,
    length: int | None = None,
    fill: bytes = b"\0",
) -> bytes:
    """[MS-MQRR] 2.2.5.1.2.1; the length counts WCHARs, as those of the SoapHeader do."""
    data = wide(text)
    told = len(data) // 2 if length is None else length
    return padded(struct.pack("<HHL", header_id, reserved, told) + data, fill)


def compound_message_header(
    data: bytes = b"POST",
    *,
    header_id: int = 0,
    reserved: int = 0,
    size: int | None = None,
    body_size: int = 0,
    body_offset: int = 0,
    fill: bytes = b"\0",
) -> bytes:
    """[MS-MQRR] 2.2.5.1.2.2."""
    told = len(data) if size is None else size
    return padded(struct.pack("<HHLLL", header_id, reserved, told, body_size, body_offset) + data, fill)


def extension_header(remaining: int, flags: int, *, size: int = 12, reserved: bytes = bytes(3)) -> bytes:
    """[MS-MQRR] 2.2.5.2."""
    return struct.pack("<LLB3s", size, remaining, flags, reserved)


def subqueue_header(
    *,
    size: int = 148,
    word: int = 0,
    abort_counter: int = 0,
    move_counter: int = 0,
    last_move_time: int = 0,
    name: str = "",
    target: str = "",
) -> bytes:
    """[MS-MQRR] 2.2.5.3; the word holds TM, AcknowledgementClass and Reserved."""
    counters = struct.pack("<LLLLL", size, word, abort_counter, move_counter, last_move_time)
    return counters + name.encode("utf-16-le").ljust(64, b"\0") + target.encode("utf-16-le").ljust(64, b"\0")


def dead_letter_header(path: str, *, size: int | None = None, fill: bytes = b"\0") -> bytes:
    """[MS-MQRR] 2.2.5.4; HeaderSize counts the padding."""
    name = padded(wide(path), fill)
    return struct.pack("<L", 4 + len(name) if size is None else size) + name


def extended_address_header(
    address: bytes = b"", *, size: int = 28, length: int | None = None, kind: int = 0, scope: int = 0
) -> bytes:
    """[MS-MQRR] 2.2.5.5."""
    told = len(address) if length is None else length
    return struct.pack("<LHHL16s", size, told, kind, scope, address)


def remote_read_message(
    message: bytes | None = None,
    *,
    subqueue: bytes | None = None,
    dead_letter: bytes = b"",
    address: bytes | None = None,
    flags: int = 0,
) -> bytes:
    """[MS-MQRR] 2.2.5: a message followed by the four headers; SQ and EA are always set."""
    subqueue = subqueue_header() if subqueue is None else subqueue
    address = extended_address_header() if address is None else address
    behind = subqueue + dead_letter + address
    flags |= 0x02 | 0x10 | (0x01 if dead_letter else 0)
    message = user_message() if message is None else message
    return message + extension_header(len(behind), flags) + behind


def source_address(*, length: int, kind: int, scope: int = 0, address: bytes) -> bytes:
    """The fields that overlay QueueManagerAddress: [MS-MQRR] 2.2.5.1."""
    return struct.pack("<HHL8s", length, kind, scope, address)


# --- structures outside packets ---


def publickeyblob(
    modulus: bytes, *, key_type: int = 0xA400, exponent: int = 65537, bits: int | None = None
) -> bytes:
    """[MS-MQQB] 2.4.1; the modulus has its least significant byte first."""
    head = b"\x06\x02\x00\x00" + struct.pack("<L", key_type) + b"RSA1"
    return head + struct.pack("<LL", 8 * len(modulus) if bits is None else bits, exponent) + modulus


def simpleblob(key: bytes, algorithm: int = 0x6610) -> bytes:
    """[MS-MQQB] 2.4.2."""
    return b"\x01\x02\x00\x00" + struct.pack("<L", algorithm) + b"\x00\xa4\x00\x00" + key


def mqdspublickey(key: bytes, provider: str, kind: int = 1) -> bytes:
    """[MS-MQMQ] 2.2.1."""
    name = wide(provider)
    return struct.pack("<LLL", len(key), len(name), kind) + name + key


def mqdspublickeys(keys: Sequence[bytes], *, length: int | None = None, count: int | None = None) -> bytes:
    """[MS-MQMQ] 2.2.2."""
    packed = b"".join(keys)
    told = 8 + len(packed) if length is None else length
    return struct.pack("<LL", told, len(keys) if count is None else count) + packed


def ta_address(kind: int, address: bytes, *, length: int | None = None) -> bytes:
    """[MS-MQMQ] 2.2.4."""
    return struct.pack("<HH", len(address) if length is None else length, kind) + address


def sequence_info(sequence: int, number: int, previous: int) -> bytes:
    """[MS-MQMQ] 2.2.5.1."""
    return struct.pack("<qLL", sequence, number, previous)


def objectid(lineage: bytes, uniquifier: int) -> bytes:
    """[MS-MQMQ] 2.2.8."""
    return struct.pack("<16sL", lineage, uniquifier)


def mqusersigncert(
    certificate: bytes, *, digest: bytes, identifier: bytes, length: int | None = None
) -> bytes:
    """[MS-MQMQ] 2.2.22."""
    told = len(certificate) if length is None else length
    return struct.pack("<16s16sL", digest, identifier, told) + certificate


def mqusersigncerts(certificates: Sequence[bytes], *, count: int | None = None) -> bytes:
    """[MS-MQMQ] 2.2.21."""
    return struct.pack("<L", len(certificates) if count is None else count) + b"".join(certificates)
