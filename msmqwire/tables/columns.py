"""The columns of a decoded capture.

Each column names the field that it shows by its path in a packet, so that its offset, width and mask follow
from the schema. Protocols that join register their columns: `msmqwire.analysis.protocols`. Values that a kind
of packet does not have are null. Unsigned integers are in the next larger signed type, because Spark and many
databases have no unsigned ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from msmqwire.analysis.protocols import protocols
from msmqwire.constants import class_name
from msmqwire.errors import InvalidArgument
from msmqwire.headers.queue_names import admin_queue, destination, response_queue, text
from msmqwire.names.nearest import unknown_name
from msmqwire.tables.arrow import values

TIME: Final = pa.timestamp("ns", tz="UTC")
SECONDS: Final = pa.timestamp("s", tz="UTC")
BOOL: Final = pa.bool_()
INT32: Final = pa.int32()
INT64: Final = pa.int64()
TEXT: Final = pa.string()
BINARY: Final = pa.binary()
TEXTS: Final = pa.map_(TEXT, TEXT)
_TYPES: Final = {
    "BOOL": BOOL, "INT32": INT32, "INT64": INT64, "TEXT": TEXT, "BINARY": BINARY, "SECONDS": SECONDS,
}  # fmt: skip
"""The types that protocols give their columns, by name."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        name: snake_case.
        group: the part of a packet to which it belongs.
        type: its Arrow type.
        meaning: one line, with the unit if it has one.
        paths: the fields it shows; the first that the packet has is used. Empty for values that are not in
            the packet itself, or need more than it.
        convert: converts the field's value; None if the column has the value itself.
    """

    name: str
    group: str
    type: Any
    meaning: str
    paths: tuple[str, ...] = ()
    convert: Callable[[Any], Any] | None = None


def _where(name: str, kind: Any, meaning: str) -> Column:
    return Column(name, "where", kind, meaning)


def _group(group: str, prefix: str, *columns: tuple[Any, ...]) -> tuple[Column, ...]:
    """Return the columns of one header: name, type, path below `prefix`, meaning, conversion."""
    return tuple(
        Column(name, group, kind, meaning, (f"{prefix}.{path}" if prefix else path,), *more)
        for name, kind, path, meaning, *more in columns
    )


def _of_generic_reader(group: str, *columns: tuple[str, Any, str]) -> tuple[Column, ...]:
    """Return columns of packets that the generic reader reads: name, type, meaning."""
    return tuple(Column(name, group, kind, meaning) for name, kind, meaning in columns)


def _of_protocols() -> Iterator[Column]:
    """Yield the columns that protocols have registered."""
    for protocol in protocols():
        for group, columns in protocol.columns.groups.items():
            for name, kind, meaning in columns:
                yield Column(name, group, _TYPES[kind], meaning)


TUNNEL: Final = ("tunnel", "tunnel_src", "tunnel_dst", "tunnel_id")
"""The columns that say in which tunnels a frame was."""
PAIR_GROUP: Final = "pair"
"""The columns that pair answers with requests: the generic reader finds the pairs, not a packet."""
CONTENT_GROUP: Final = "content"
"""The columns of the contents of a body: made of other columns, and on request only."""
GENERIC_GROUPS: Final = (
    *(group for protocol in protocols() for group in protocol.columns.groups),
    PAIR_GROUP,
)
"""The columns that only packets of the generic reader have."""
LATER_GROUPS: Final = frozenset(
    group for protocol in protocols() if protocol.columns.is_later for group in protocol.columns.groups
)
"""The groups of columns that lakes did not have before they were tables."""
FINDING_IDS: Final = "finding_ids"
"""The column of findings: on request only, and only for captures that are read from their beginning."""

WHERE: Final = (
    _where("time", TIME, "When the frame was captured that completed the packet; null if that is unknown."),
    _where("file", TEXT, "The capture file of that frame."),
    _where("frame", INT64, "The number of that frame in its file, from 1."),
    _where("transport", TEXT, "tcp, udp, or pgm for IP protocol 113."),
    _where("stream", INT64, "The TCP connection, from 0; null without TCP."),
    _where("src", TEXT, "Address of the sender."),
    _where("src_port", INT32, "Port of the sender."),
    _where("dst", TEXT, "Address of the receiver."),
    _where("dst_port", INT32, "Port of the receiver."),
    _where("tunnel", TEXT, "Tunnels around it, from outside in: gre=7 vxlan=5001; null without any."),
    _where("tunnel_src", TEXT, "Address of the sender in the IP header next outside."),
    _where("tunnel_dst", TEXT, "Address of the receiver there."),
    _where("tunnel_id", INT64, "Innermost number of the tunnels: a network, key, label or session."),
    _where("kind", TEXT, "Name of the packet, Malformed or Skipped."),
    _where("size", INT64, "Bytes on the stream."),
    _where("error", TEXT, "Why a packet can't be read, or bytes were skipped."),
    _where("error_path", TEXT, "The field that can't be read."),
    _where("error_offset", INT64, "The byte of the packet at which reading stopped."),
    _where("raw", BINARY, "The bytes of the packet; on request only."),
)

_USER: Final = "UserHeader"
_TRANSACTION: Final = "TransactionHeader"
_SECURITY: Final = "SecurityHeader"
_PROPERTIES: Final = "MessagePropertiesHeader"
_ESTABLISH: Final = "EstablishConnectionHeader"
_PARAMETERS: Final = "ConnectionParametersHeader"

COLUMNS: Final[tuple[Column, ...]] = (
    *WHERE,
    *_group(
        "base",
        "BaseHeader",
        ("priority", INT32, "Flags.PR", "Priority, 0 to 7."),
        ("internal", BOOL, "Flags.IN", "An internal packet."),
        ("session_header", BOOL, "Flags.SH", "A SessionHeader is in the packet."),
        ("debug_header", BOOL, "Flags.DH", "A DebugHeader is in the packet."),
        ("trace", BOOL, "Flags.TR", "Tracing is on."),
        ("time_to_reach_queue", INT64, "TimeToReachQueue", "Seconds; 4294967295 means no limit."),
    ),
    *_group(
        "user",
        _USER,
        ("source_qm", TEXT, "SourceQueueManager", "Queue manager that sent it first.", str),
        ("destination_qm", TEXT, "QueueManagerAddress", "Queue manager it goes to.", str),
        ("time_to_be_received", INT64, "TimeToBeReceived", "Seconds; 4294967295 is never."),
        ("sent_time", SECONDS, "SentTime", "When it was sent."),
        ("message_id", INT64, "MessageID", "Number of the message at its sender."),
        ("hop_count", INT32, "Flags.RC", "Routing servers passed."),
        ("recoverable", BOOL, "Flags.DM", "Recoverable delivery.", bool),
        ("journal_negative", BOOL, "Flags.JN", "Negative source journaling."),
        ("journal_positive", BOOL, "Flags.JP", "Positive source journaling."),
    ),
    Column("destination", "user", TEXT, "Destination as a format name.", (_USER,), destination),
    Column("admin_queue", "user", TEXT, "Administration queue as a format name.", (_USER,), admin_queue),
    Column("response_queue", "user", TEXT, "Response queue as a format name.", (_USER,), response_queue),
    *_group("user", _USER, ("connector_type", TEXT, "ConnectorType", "The application's GUID.", str)),
    *_group(
        "transaction",
        _TRANSACTION,
        ("tx_sequence_ordinal", INT64, "TxSequenceID.Ordinal", "Low half of the sequence."),
        ("tx_sequence_timestamp", INT64, "TxSequenceID.TimeStamp", "High half of the sequence."),
        ("tx_number", INT64, "TxSequenceNumber", "Place in the sequence, from 1."),
        ("tx_previous", INT64, "PreviousTxSequenceNumber", "Number of the message before it."),
        ("tx_first", BOOL, "Flags.FM", "First message of the transaction."),
        ("tx_last", BOOL, "Flags.LM", "Last message of the transaction."),
        ("tx_id", INT32, "Flags.ID", "Number of the transaction."),
        ("final_ack_wanted", BOOL, "Flags.FA", "A FinalAck is asked for."),
    ),
    *_group(
        "security",
        _SECURITY,
        ("sender_id_type", INT32, "Flags.ST", "0 none, 1 SID, 2 GUID of the queue manager."),
    ),
    Column("sender_id", "security", TEXT, "SID or GUID as text, else hex.", (_SECURITY,), values.sender_id),
    *_group(
        "security",
        _SECURITY,
        ("encrypted", BOOL, "Flags.EB", "The body is encrypted."),
        ("signed", BOOL, "SignatureSize", "There is a signature.", bool),
        ("sender_cert", BINARY, "SecurityData.SenderCert", "X.509 certificate.", values.unless_empty),
        (
            "provider",
            TEXT,
            "SecurityData.ProviderInfo.ProviderName",
            "Cryptographic provider.",
            text,
        ),
    ),
    Column(
        "signature_status",
        "security",
        TEXT,
        "none, valid, invalid, unknown_sender or unsupported: the status of the signature.",
    ),
    Column("decrypted", "security", BOOL, "The body was encrypted, and a key given decrypts it."),
    *_group(
        "properties",
        _PROPERTIES,
        ("ack_flags", INT32, "Flags", "Acknowledgements asked for: 1 PA, 2 PR, 4 NA, 8 NR.", int),
        ("label", TEXT, "Label", "Label.", text),
        ("message_class", INT32, "MessageClass", "Message class."),
        ("class_name", TEXT, "MessageClass", "Name of the class.", class_name),
        ("correlation_id", BINARY, "CorrelationID", "Correlation identifier."),
        ("body_type", INT64, "BodyType", "Type of the body, VT_*."),
        ("app_tag", INT64, "ApplicationTag", "The application's."),
        ("body_size", INT64, "MessageSize", "Bytes of the body."),
        ("privacy_level", INT64, "PrivacyLevel", "0 clear, 1 40 bits, 3 128 bits, 5 AES."),
        ("hash_algorithm", INT64, "HashAlgorithm", "Hash of the signature."),
        ("encryption_algorithm", INT64, "EncryptionAlgorithm", "Cipher of the body."),
        ("extension", BINARY, "ExtensionData", "The application's."),
        ("body", BINARY, "MessageBody", "The body, up to the limit asked for."),
    ),
    *_of_generic_reader(
        CONTENT_GROUP,
        (
            "body_format",
            TEXT,
            "Format of the body, such as text, json, xml, activex and nrbf; on request only.",
        ),
        ("body_text", TEXT, "The value of the body in one line, for people; on request only."),
        ("headers", TEXTS, "Headers of NServiceBus or Rebus in the extension; on request only."),
    ),
    *_group(
        "session",
        "SessionHeader",
        ("ack_sequence", INT32, "AckSequenceNumber", "Messages received."),
        ("recoverable_ack_sequence", INT32, "RecoverableMsgAckSeqNumber", "Lowest one stored."),
        ("recoverable_ack_flags", INT64, "RecoverableMsgAckFlags", "Those stored from it on, by bits."),
        ("user_sequence", INT32, "UserMsgSequenceNumber", "Messages sent."),
        ("recoverable_sequence", INT32, "RecoverableMsgSeqNumber", "Recoverable messages sent."),
    ),
    Column(
        "window_size",
        "session",
        INT32,
        "Messages that may be unacknowledged.",
        ("SessionHeader.WindowSize", f"{_PARAMETERS}.WindowSize"),
    ),
    *_group("internal", "InternalHeader", ("refused", BOOL, "Flags.CS", "The connection is refused.")),
    *_group(
        "internal",
        _ESTABLISH,
        ("client_guid", TEXT, "ClientGuid", "The initiator.", str),
        ("server_guid", TEXT, "ServerGuid", "The acceptor.", str),
        ("timestamp_ms", INT64, "TimeStamp", "Milliseconds since the initiator's system started."),
        ("os_flags", INT32, "OperatingSystem", "OperatingSystem flags.", int),
    ),
    *_group(
        "internal",
        _PARAMETERS,
        ("recoverable_ack_timeout_ms", INT64, "RecoverableAckTimeout", "Milliseconds."),
        ("ack_timeout_ms", INT64, "AckTimeout", "Milliseconds."),
    ),
    *_group(
        "ping",
        "",
        ("ping_cookie", INT64, "Cookie", "Tells which request a response answers."),
        ("ping_refused", BOOL, "Flags.RF", "A session would be refused."),
        ("qm_guid", TEXT, "QMGuid", "Queue manager that made the packet.", str),
    ),
    *_of_protocols(),
    *_of_generic_reader(
        PAIR_GROUP,
        ("exchange", INT64, "Number of a request in its connection, from 0, and of the answer to it."),
        ("one_sided", BOOL, "Of HTTP: nothing that the other side sent was captured up to here."),
    ),
    *_of_generic_reader(
        "findings",
        (FINDING_IDS, TEXT, "The ids of its findings, each once; null without any; on request only."),
    ),
)

ON_REQUEST: Final = frozenset(
    {"raw", FINDING_IDS, *(column.name for column in COLUMNS if column.group == CONTENT_GROUP)}
)
"""The columns that are there only when they are asked for."""
USUAL: Final = tuple(column for column in COLUMNS if column.name not in ON_REQUEST)
"""All other columns."""
UNJUDGED: Final = tuple(column for column in COLUMNS if column.name != FINDING_IDS)
"""The columns of packets that are not judged."""
BY_NAME: Final = {column.name: column for column in COLUMNS}
"""The columns by name."""
SEE: Final = "docs/columns.md lists all"
"""The page that lists all columns."""
EXAMINED: Final = frozenset({"signature_status", "decrypted"})
"""The columns with the findings of `msmqwire.analysis.dissection.message_security`."""
OF_BODY: Final = frozenset({"body", "body_size"})
"""The columns that are about the body in clear, where it was decrypted."""


def unknown_column(name: object, path: str = "columns", known: Iterable[str] = BY_NAME) -> InvalidArgument:
    """Return the error for a name that no column has, among all or some of them."""
    return unknown_name(name, known, "column", path=path, see=SEE)


def refuse_findings(names: Iterable[str], path: str = "columns") -> None:
    """Raise InvalidArgument for a column of findings, of readers that begin anywhere in a capture."""
    if FINDING_IDS in names:
        raise InvalidArgument(
            f"sessions are judged from the beginning of a capture, and its parts begin anywhere:"
            f" leave out {FINDING_IDS}",
            path=path,
        )


def arrow_schema(columns: list[Column] | tuple[Column, ...] = COLUMNS) -> Any:
    """Return the Arrow schema of some columns, with their meanings as field metadata."""
    return pa.schema(
        [pa.field(c.name, c.type, metadata={"comment": c.meaning, "group": c.group}) for c in columns]
    )
