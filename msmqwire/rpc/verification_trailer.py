"""The verification trailer after the stub of a request: [MS-RPCE] 2.2.2.13.

A client repeats in it, under its signature, the header fields that the security provider leaves unprotected.
It is little-endian whatever the byte order of the PDU.
"""

from __future__ import annotations

from typing import Final

from msmqwire.errors import AuthenticationFailed, MalformedPacket
from msmqwire.rpc.constants import PduType, SyntaxId
from msmqwire.rpc.pdus import LITTLE_ENDIAN, SYNTAX_ID, syntax_of
from msmqwire.schema import Header, Record, Ref, bit, flags, raw, sub, uint

SIGNATURE: Final = bytes.fromhex("8ae3137102f43671")
TRAILER_MAX: Final = 1024
"""No trailer is looked for further from the end of the stub: its known commands take 88 bytes."""

_ALIGNMENT: Final = 4
_HEADER_SIGNING: Final = 1

COMMAND: Final = Header(
    "SEC_VT",
    "[MS-RPCE] 2.2.2.13",
    (
        flags(
            16,
            "command",
            bit("type", 0, "The type of the command.", width=14),
            bit("SEC_VT_COMMAND_END", 14, "The last one."),
            bit("SEC_VT_MUST_PROCESS_COMMAND", 15, "Who does not know it refuses the request."),
        ),
        uint(16, "length", "Bytes of the content.", unit="bytes"),
        raw("content", Ref("length"), "The data of the command."),
    ),
    "A command of a verification trailer.",
)

BITMASK: Final = Header(
    "rpc_sec_vt_bitmask",
    "[MS-RPCE] 2.2.2.13.2",
    (uint(32, "bits", "1: the client supports header signing."),),
    "Features that the client supports.",
    size=4,
)

PCONTEXT: Final = Header(
    "rpc_sec_vt_pcontext",
    "[MS-RPCE] 2.2.2.13.4",
    (
        sub(SYNTAX_ID, "InterfaceId", meaning="The interface."),
        sub(SYNTAX_ID, "TransferSyntax", meaning="The transfer syntax."),
    ),
    "The presentation context of the request.",
    size=40,
)

HEADER2: Final = Header(
    "rpc_sec_vt_header2",
    "[MS-RPCE] 2.2.2.13.3",
    (
        uint(8, "PTYPE", "Type of the PDU."),
        uint(8, "Reserved1", "0."),
        uint(16, "Reserved2", "0."),
        uint(32, "drep", "Data representation.", default=LITTLE_ENDIAN),
        uint(32, "call_id", "Call."),
        uint(16, "p_cont_id", "Presentation context."),
        uint(16, "opnum", "Method."),
    ),
    "The header of the request.",
    size=16,
)

_SCHEMAS: Final = {1: BITMASK, 2: PCONTEXT, 3: HEADER2}


def split_trailer(stub: bytes) -> tuple[bytes, list[tuple[int, Record]]]:
    """Return a stub without its verification trailer, and the trailer's commands by type; none without one.

    Up to 3 bytes of padding stay after the stub: only its decoder knows its end. Raises MalformedPacket for a
    trailer that does not end with the stub, since what it says goes unchecked otherwise, and for a command
    that does not fit its type; AuthenticationFailed for an unknown one that must be processed.
    """
    start, broken = len(stub), -1
    while (start := stub.rfind(SIGNATURE, max(0, len(stub) - TRAILER_MAX), start)) >= 0:
        if start % _ALIGNMENT == 0:
            commands = _commands(stub, start + len(SIGNATURE))
            if commands is not None:
                return stub[:start], commands
            broken = start
        start += len(SIGNATURE) - 1
    if broken >= 0:
        raise MalformedPacket("the verification trailer does not end with the stub", offset=broken)
    return stub, []


def _commands(stub: bytes, at: int) -> list[tuple[int, Record]] | None:
    """Return the commands from `at` to the end; None if these bytes are not a list of commands."""
    commands: list[tuple[int, Record]] = []
    while True:
        try:
            command, at = COMMAND.read(stub, at)
        except MalformedPacket:
            return None
        word = command.command
        schema = _SCHEMAS.get(word.type)
        if schema is not None:
            commands.append((word.type, schema.parse(command.content)))
        elif word.SEC_VT_MUST_PROCESS_COMMAND:
            raise AuthenticationFailed(f"command {word.type} of the verification trailer is not known")
        if word.SEC_VT_COMMAND_END:
            return commands if at == len(stub) else None


def check_commands(
    commands: list[tuple[int, Record]],
    *,
    interface: SyntaxId,
    transfer_syntax: SyntaxId,
    call_id: int,
    context_id: int,
    opnum: int,
    drep: int,
    header_signing: bool,
) -> None:
    """Compare a trailer with the request that it came in. Raises AuthenticationFailed."""
    for kind, command in commands:
        if kind == 1:
            right = header_signing or not command["bits"] & _HEADER_SIGNING
        elif kind == 2:
            said = syntax_of(command["InterfaceId"]), syntax_of(command["TransferSyntax"])
            right = said == (interface, transfer_syntax)
        else:
            named = [command[name] for name in ("PTYPE", "drep", "call_id", "p_cont_id", "opnum")]
            right = named == [PduType.REQUEST, drep, call_id, context_id, opnum]
        if not right:
            raise AuthenticationFailed(f"the {command.schema.name} of the verification trailer differs")
