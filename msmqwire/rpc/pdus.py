"""The PDUs of connection-oriented DCE/RPC as schemas: [C706] 12.6.4, [MS-RPCE] 2.2.2.

A schema has the common header and the body of a PDU. The authentication verifier after them is a schema of
its own, since the header gives its beginning by counting from the end: `parse_pdu` and `build_pdu` put both
together.
"""

from __future__ import annotations

from typing import Final

from msmqwire.rpc.constants import FRAGMENT_SIZE, AuthLevel, AuthType, PduType, SyntaxId
from msmqwire.schema import (
    REST,
    Header,
    Record,
    Ref,
    align,
    bit,
    field_offset,
    flags,
    guid,
    maybe,
    raw,
    repeat,
    sub,
    uint,
)

COMMON_HEADER_SIZE: Final = 16
SEC_TRAILER_SIZE: Final = 8
RPC_VERSION: Final = 5
LITTLE_ENDIAN: Final = 0x10
"""packed_drep: little-endian integers, ASCII, IEEE floating point."""
BIG_ENDIAN: Final = 0
"""packed_drep: the same with big-endian integers."""

COMMON_HEADER: Final = Header(
    "rpcconn_common_hdr_t",
    "[C706] 12.6.3.1",
    (
        uint(8, "rpc_vers", "Major version.", default=RPC_VERSION, must=frozenset({RPC_VERSION})),
        uint(8, "rpc_vers_minor", "Minor version.", must=frozenset({0, 1})),
        uint(8, "PTYPE", "Type of the PDU."),
        flags(
            8,
            "pfc_flags",
            bit("PFC_FIRST_FRAG", 0, "First fragment.", default=1),
            bit("PFC_LAST_FRAG", 1, "Last fragment.", default=1),
            bit("PFC_PENDING_CANCEL", 2, "A cancel is pending; in a bind, headers can be signed."),
            bit("PFC_RESERVED_1", 3, "0."),
            bit("PFC_CONC_MPX", 4, "Several calls may be outstanding."),
            bit("PFC_DID_NOT_EXECUTE", 5, "The call was not executed."),
            bit("PFC_MAYBE", 6, "No response is wanted."),
            bit("PFC_OBJECT_UUID", 7, "An object UUID is present."),
        ),
        uint(
            32,
            "packed_drep",
            "Data representation: 0x10 for little-endian integers, 0 for big-endian ones.",
            default=LITTLE_ENDIAN,
            must=frozenset({LITTLE_ENDIAN, BIG_ENDIAN}),
        ),
        uint(16, "frag_length", "Bytes of the PDU.", unit="bytes"),
        uint(16, "auth_length", "Bytes of auth_value.", unit="bytes"),
        uint(32, "call_id", "Call."),
    ),
    "The header that every PDU begins with.",
    size=COMMON_HEADER_SIZE,
)

DREP_OFFSET: Final = field_offset(COMMON_HEADER, "packed_drep")

SYNTAX_ID: Final = Header(
    "p_syntax_id_t",
    "[C706] 12.6.3.1",
    (
        guid("if_uuid", "UUID of the interface or transfer syntax."),
        uint(16, "major", "Major version."),
        uint(16, "minor", "Minor version."),
    ),
    "An interface or a transfer syntax.",
    size=20,
)

CONTEXT_ELEMENT: Final = Header(
    "p_cont_elem_t",
    "[C706] 12.6.3.1",
    (
        uint(16, "p_cont_id", "Presentation context."),
        uint(8, "n_transfer_syn", "Transfer syntaxes."),
        uint(8, "reserved", "0."),
        sub(SYNTAX_ID, "abstract_syntax", meaning="The interface."),
        repeat("transfer_syntaxes", "n_transfer_syn", SYNTAX_ID, "Proposed transfer syntaxes."),
    ),
    "A proposed presentation context.",
)

RESULT: Final = Header(
    "p_result_t",
    "[C706] 12.6.3.1",
    (
        uint(16, "result", "The result."),
        uint(16, "reason", "Why it is rejected; the features for negotiate_ack."),
        sub(SYNTAX_ID, "transfer_syntax", meaning="The chosen transfer syntax."),
    ),
    "The answer to a proposed presentation context.",
    size=24,
)

VERSION: Final = Header(
    "version_t",
    "[C706] 12.6.3.1",
    (uint(8, "major", "Major version.", default=5), uint(8, "minor", "Minor version.")),
    "A version of the protocol.",
    size=2,
)

_FRAGMENTS: Final = (
    uint(16, "max_xmit_frag", "Largest fragment sent.", unit="bytes", default=FRAGMENT_SIZE),
    uint(16, "max_recv_frag", "Largest fragment received.", unit="bytes", default=FRAGMENT_SIZE),
    uint(32, "assoc_group_id", "Association group, 0 for a new one."),
)


def _pdu(name: str, section: str, meaning: str, *parts: object) -> Header:
    return Header(name, section, (sub(COMMON_HEADER, "header"), *parts), meaning)  # type: ignore[arg-type]


def _contexts(name: str, meaning: str) -> Header:
    return _pdu(
        name,
        "[C706] 12.6.4.1, 12.6.4.3",
        meaning,
        *_FRAGMENTS,
        uint(8, "n_context_elem", "Presentation contexts."),
        uint(8, "reserved", "0."),
        uint(16, "reserved2", "0."),
        repeat("p_context_elem", "n_context_elem", CONTEXT_ELEMENT, "Proposed presentation contexts."),
        raw("rest", REST, "Ignored: some clients repeat the list."),
    )


def _results(name: str, meaning: str) -> Header:
    return _pdu(
        name,
        "[C706] 12.6.4.2, 12.6.4.4",
        meaning,
        *_FRAGMENTS,
        uint(16, "port_spec_length", "Bytes of port_spec.", unit="bytes"),
        raw("port_spec", Ref("port_spec_length"), "Secondary address: the port as text with its null."),
        align("pad2"),
        uint(8, "n_results", "Results."),
        uint(8, "reserved", "0."),
        uint(16, "reserved2", "0."),
        repeat("p_results", "n_results", RESULT, "The answers, in the order of the contexts."),
    )


BIND: Final = _contexts("bind", "Begins an association.")
ALTER_CONTEXT: Final = _contexts("alter_context", "Adds presentation or security contexts.")
BIND_ACK: Final = _results("bind_ack", "Answers a bind.")
ALTER_CONTEXT_RESP: Final = _results("alter_context_resp", "Answers an alter_context.")

BIND_NAK: Final = _pdu(
    "bind_nak",
    "[C706] 12.6.4.5, [MS-RPCE] 2.2.2.9",
    "Refuses an association.",
    uint(16, "provider_reject_reason", "Why."),
    uint(8, "n_protocols", "Versions."),
    repeat("p_protocols", "n_protocols", VERSION, "The versions that the server speaks."),
    raw("rest", REST, "Padding and extended error information."),
)

AUTH3: Final = _pdu(
    "rpc_auth_3",
    "[MS-RPCE] 2.2.2.5",
    "The third leg of a handshake; it has no answer.",
    raw("pad", REST, "Anything: 4 bytes.", default=bytes(4)),
)

REQUEST: Final = _pdu(
    "request",
    "[C706] 12.6.4.9",
    "A call, or a fragment of one.",
    uint(32, "alloc_hint", "Bytes of the stub from here on, 0 for unknown.", unit="bytes"),
    uint(16, "p_cont_id", "Presentation context."),
    uint(16, "opnum", "Method."),
    maybe("header.pfc_flags.PFC_OBJECT_UUID", guid("object", "Object.")),
    raw("stub_data", REST, "Arguments."),
)

RESPONSE: Final = _pdu(
    "response",
    "[C706] 12.6.4.10",
    "An answer, or a fragment of one.",
    uint(32, "alloc_hint", "Bytes of the stub from here on, 0 for unknown.", unit="bytes"),
    uint(16, "p_cont_id", "Presentation context."),
    uint(8, "cancel_count", "Cancels received."),
    uint(8, "reserved", "0."),
    raw("stub_data", REST, "Results."),
)

FAULT: Final = _pdu(
    "fault",
    "[C706] 12.6.4.7",
    "A call that failed.",
    uint(32, "alloc_hint", "Bytes of the stub from here on, 0 for unknown.", unit="bytes"),
    uint(16, "p_cont_id", "Presentation context."),
    uint(8, "cancel_count", "Cancels received."),
    uint(8, "reserved", "1 with extended error information."),
    uint(32, "status", "Why."),
    uint(32, "reserved2", "0."),
    raw("stub_data", REST, "Extended error information."),
)

SHUTDOWN: Final = _pdu(
    "shutdown", "[C706] 12.6.4.11", "A server asks for the end.", raw("rest", REST, "Nothing.")
)
CO_CANCEL: Final = _pdu("co_cancel", "[C706] 12.6.4.6", "Cancels a call.", raw("rest", REST, "Nothing."))
ORPHANED: Final = _pdu("orphaned", "[C706] 12.6.4.8", "Abandons a call.", raw("rest", REST, "Nothing."))

SEC_TRAILER: Final = Header(
    "sec_trailer",
    "[MS-RPCE] 2.2.2.11",
    (
        uint(8, "auth_type", "Security provider.", default=AuthType.WINNT),
        uint(8, "auth_level", "Authentication level.", default=AuthLevel.CONNECT),
        uint(8, "auth_pad_length", "Padding before it.", unit="bytes"),
        uint(8, "auth_reserved", "0."),
        uint(32, "auth_context_id", "Security context."),
        raw("auth_value", REST, "Token or signature."),
    ),
    "The authentication verifier at the end of a PDU.",
)

PDUS: Final = {
    PduType.REQUEST: REQUEST,
    PduType.RESPONSE: RESPONSE,
    PduType.FAULT: FAULT,
    PduType.BIND: BIND,
    PduType.BIND_ACK: BIND_ACK,
    PduType.BIND_NAK: BIND_NAK,
    PduType.ALTER_CONTEXT: ALTER_CONTEXT,
    PduType.ALTER_CONTEXT_RESP: ALTER_CONTEXT_RESP,
    PduType.AUTH3: AUTH3,
    PduType.SHUTDOWN: SHUTDOWN,
    PduType.CO_CANCEL: CO_CANCEL,
    PduType.ORPHANED: ORPHANED,
}
"""The schemas of the PDUs by their type."""


def syntax_fields(syntax: SyntaxId) -> dict[str, object]:
    """Return the fields of `SYNTAX_ID`."""
    return {"if_uuid": syntax.uuid, "major": syntax.major, "minor": syntax.minor}


def syntax_of(record: Record) -> SyntaxId:
    """Return the value of a `SYNTAX_ID`."""
    return SyntaxId(record["if_uuid"], record["major"], record["minor"])
