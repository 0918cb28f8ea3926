"""Numbers of DCE/RPC: [C706] 12.6 and appendices E and I, [MS-RPCE] 2.2.1.1, 2.2.2 and 3.3.1.5."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final, NamedTuple
from uuid import UUID

ENDPOINT_MAPPER_PORT: Final = 135
FRAG_LENGTH_MAX: Final = 0xFFFF
"""No PDU is longer: frag_length has 16 bits."""

FRAGMENT_SIZE: Final = 5840
"""The size of fragments that both sides offer, as Windows does over TCP."""

FRAGMENT_SIZE_MIN: Final = 1432
"""MustRecvFragSize of [C706] 12.6.2: less can't be negotiated."""

RPC_PORTS: Final = (2103, 2105, 2107)
"""TCP ports on which queue managers serve RPC: [MS-MQRR] 3.1.4.1, and those of older interfaces."""


class PduType(IntEnum):
    """The connection-oriented types of PDU: [C706] 12.6.3.1."""

    REQUEST = 0
    RESPONSE = 2
    FAULT = 3
    BIND = 11
    BIND_ACK = 12
    BIND_NAK = 13
    ALTER_CONTEXT = 14
    ALTER_CONTEXT_RESP = 15
    AUTH3 = 16
    SHUTDOWN = 17
    CO_CANCEL = 18
    ORPHANED = 19


class PfcFlags(IntFlag):
    """The field pfc_flags: [C706] 12.6.3.1, [MS-RPCE] 2.2.2.3."""

    FIRST_FRAG = 0x01
    LAST_FRAG = 0x02
    PENDING_CANCEL = 0x04
    SUPPORT_HEADER_SIGN = 0x04
    """The same bit in bind, bind_ack, alter_context and alter_context_resp."""
    CONC_MPX = 0x10
    DID_NOT_EXECUTE = 0x20
    MAYBE = 0x40
    OBJECT_UUID = 0x80


WHOLE: Final = PfcFlags.FIRST_FRAG | PfcFlags.LAST_FRAG
"""The flags of a PDU that is not in fragments."""


class AuthType(IntEnum):
    """The security providers: [MS-RPCE] 2.2.1.1.7."""

    NONE = 0
    GSS_NEGOTIATE = 9  # MQRR-1.7-03
    WINNT = 10  # MQRR-1.7-03
    GSS_KERBEROS = 16  # MQRR-1.7-03


class AuthLevel(IntEnum):
    """The authentication levels: [MS-RPCE] 2.2.1.1.8."""

    NONE = 1
    CONNECT = 2
    CALL = 3
    PKT = 4
    PKT_INTEGRITY = 5
    PKT_PRIVACY = 6


class ContextResult(IntEnum):
    """The result for a presentation context: [C706] 12.6.3.1 p_cont_def_result_t, [MS-RPCE] 2.2.2.4."""

    ACCEPTANCE = 0
    USER_REJECTION = 1
    PROVIDER_REJECTION = 2
    NEGOTIATE_ACK = 3


class ProviderReason(IntEnum):
    """Why a presentation context is rejected: [C706] 12.6.3.1 p_provider_reason_t."""

    REASON_NOT_SPECIFIED = 0
    ABSTRACT_SYNTAX_NOT_SUPPORTED = 1
    PROPOSED_TRANSFER_SYNTAXES_NOT_SUPPORTED = 2
    LOCAL_LIMIT_EXCEEDED = 3


class RejectReason(IntEnum):
    """Why an association is refused: [C706] 12.6.3.1 p_reject_reason_t, [MS-RPCE] 2.2.2.5."""

    REASON_NOT_SPECIFIED = 0
    TEMPORARY_CONGESTION = 1
    LOCAL_LIMIT_EXCEEDED = 2
    CALLED_PADDR_UNKNOWN = 3
    PROTOCOL_VERSION_NOT_SUPPORTED = 4
    DEFAULT_CONTEXT_NOT_SUPPORTED = 5
    USER_DATA_NOT_READABLE = 6
    NO_PSAP_AVAILABLE = 7
    AUTHENTICATION_TYPE_NOT_RECOGNIZED = 8
    INVALID_CHECKSUM = 9


class FaultStatus(IntEnum):
    """The statuses of faults that this package gives or names: [C706] appendix E, [MS-RPCE] 2.2.2.11."""

    ACCESS_DENIED = 5  # DMPR-1.8-02
    RPC_S_CALL_FAILED = 1726  # DMPR-1.8-02
    RPC_S_CANNOT_SUPPORT = 1764  # DMPR-1.8-02
    RPC_X_BAD_STUB_DATA = 1783  # DMPR-1.8-02
    RPC_S_SEC_PKG_ERROR = 1825  # DMPR-1.8-02
    NCA_S_COMM_FAILURE = 0x1C010001
    NCA_S_OP_RNG_ERROR = 0x1C010002
    NCA_S_UNK_IF = 0x1C010003
    NCA_S_PROTO_ERROR = 0x1C01000B
    NCA_S_OUT_ARGS_TOO_BIG = 0x1C010013
    NCA_S_SERVER_TOO_BUSY = 0x1C010014
    NCA_S_UNSUPPORTED_TYPE = 0x1C010017
    NCA_S_FAULT_CANCEL = 0x1C00000D
    NCA_S_FAULT_UNSPEC = 0x1C000012
    NCA_S_FAULT_CONTEXT_MISMATCH = 0x1C00001A
    NCA_S_FAULT_REMOTE_NO_MEMORY = 0x1C00001B
    NCA_S_INVALID_PRES_CONTEXT_ID = 0x1C00001C
    WIN32_EPT_S_NOT_REGISTERED = 1753  # DMPR-1.8-02
    EPT_S_NOT_REGISTERED = 0x16C9A0D6


class SyntaxId(NamedTuple):
    """An interface or a transfer syntax: its UUID and version."""

    uuid: UUID
    major: int
    minor: int = 0

    def __str__(self) -> str:
        return f"{self.uuid} {self.major}.{self.minor}"


NDR20: Final = SyntaxId(UUID("8a885d04-1ceb-11c9-9fe8-08002b104860"), 2)  # MQRR-2.2-01
"""The 32-bit transfer syntax: [C706] chapter 14."""

NDR64: Final = SyntaxId(UUID("71710533-beba-4937-8319-b5dbef9ccc36"), 1)  # MQRR-2.2-01
"""The 64-bit transfer syntax: [MS-RPCE] 2.2.5."""


class BindTimeFeatures(IntFlag):
    """The features that a bind negotiates: [MS-RPCE] 2.2.2.14."""

    SECURITY_CONTEXT_MULTIPLEXING = 1
    KEEP_CONNECTION_ON_ORPHAN = 2


BIND_TIME_FEATURES: Final = (
    BindTimeFeatures.SECURITY_CONTEXT_MULTIPLEXING | BindTimeFeatures.KEEP_CONNECTION_ON_ORPHAN
)
"""The features that both ends have here."""

_FEATURES: Final = UUID("6cb71c2c-9812-4540-0000-000000000000").bytes_le[:8]


def bind_time_features(features: int) -> SyntaxId:
    """Return the transfer syntax that offers features: [MS-RPCE] 3.3.1.5.3."""
    return SyntaxId(UUID(bytes_le=_FEATURES + features.to_bytes(8, "little")), 1)


def features_of(syntax: SyntaxId) -> int | None:
    """Return the features that a transfer syntax offers; None if it is a true transfer syntax."""
    data = syntax.uuid.bytes_le
    if data[:8] != _FEATURES or (syntax.major, syntax.minor) != (1, 0):
        return None
    return int.from_bytes(data[8:], "little")


def status_name(status: int) -> str:
    """Return the name of a status, or its number as 0x... if it has none here."""
    try:
        return FaultStatus(status).name
    except ValueError:
        return f"{status:#010x}"
