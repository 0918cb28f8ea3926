"""Stubs in fragments: cut for sending, put together on receipt, [C706] 12.6.4.9 and 12.6.4.10."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msmqwire.errors import MalformedPacket
from msmqwire.rpc.constants import PduType, PfcFlags
from msmqwire.rpc.pdu import wrong_header
from msmqwire.rpc.pdus import COMMON_HEADER, FAULT, LITTLE_ENDIAN
from msmqwire.rpc.security import AUTH_ALIGNMENT, CALL_HEADER_SIZE, OBJECT_SIZE, Security
from msmqwire.schema import Header

_ALIGNMENT: Final = 8
# Plain integers: this is done for every call, and flags of an enum take microseconds.
_FIRST, _LAST, _OBJECT_UUID = map(int, (PfcFlags.FIRST_FRAG, PfcFlags.LAST_FRAG, PfcFlags.OBJECT_UUID))
_DID_NOT_EXECUTE: Final = int(PfcFlags.DID_NOT_EXECUTE)
FAULT_SIZE: Final = 32


def stub_fragments(
    schema: Header,
    fields: Mapping[str, Any],
    stub: bytes,
    *,
    call_id: int,
    flags: int = 0,
    fragment_size: int,
    security: Security | None = None,
) -> list[bytes]:
    """Return the request or response PDUs that carry a stub, each at most `fragment_size` bytes.

    `fields` are those between alloc_hint and the stub; `flags` are set in each. Raises AuthenticationFailed.
    """
    kind = fields["PTYPE"]
    body = {name: value for name, value in fields.items() if name != "PTYPE"}
    head_size = CALL_HEADER_SIZE + (OBJECT_SIZE if flags & _OBJECT_UUID else 0)
    protects = security is not None and security.protects
    room = fragment_size - head_size
    if security is not None and protects:
        room = (room - security.overhead) // AUTH_ALIGNMENT * AUTH_ALIGNMENT
    else:
        room = room // _ALIGNMENT * _ALIGNMENT
    pdus = []
    for start in range(0, len(stub) or 1, room):
        piece = stub[start : start + room]
        edge = (_FIRST if start == 0 else 0) | (_LAST if start + room >= len(stub) else 0)
        hint = len(stub) - start
        if security is None or not protects:
            length = head_size + len(piece)
            pdus.append(_head(schema, kind, body, call_id, flags | edge, length, hint) + piece)
            continue
        padding = -len(piece) % AUTH_ALIGNMENT
        auth_length = security.context.signature_size(security.seals)
        length = head_size + len(piece) + padding + security.overhead
        head = _head(schema, kind, body, call_id, flags | edge, length, hint, auth_length)
        pdus.append(security.protected(head, piece + bytes(padding), padding))
    return pdus


def _head(
    schema: Header,
    kind: int,
    fields: Mapping[str, Any],
    call_id: int,
    flags: int,
    frag_length: int,
    alloc_hint: int,
    auth_length: int = 0,
) -> bytes:
    header = COMMON_HEADER.record(
        rpc_vers=5,
        rpc_vers_minor=0,
        PTYPE=kind,
        pfc_flags=flags,
        packed_drep=LITTLE_ENDIAN,
        frag_length=frag_length,
        auth_length=auth_length,
        call_id=call_id,
    )
    data: bytes = schema.build(schema.record(header=header, alloc_hint=alloc_hint, stub_data=b"", **fields))
    return data


def fault_pdu(call_id: int, context_id: int, status: int, *, executed: bool) -> bytes:
    """Return the fault PDU that answers a call; `executed` is false if the call has done nothing."""
    flags = _FIRST | _LAST | (0 if executed else _DID_NOT_EXECUTE)
    fields = {
        "p_cont_id": context_id,
        "cancel_count": 0,
        "reserved": 0,
        "status": int(status),
        "reserved2": 0,
    }
    return _head(FAULT, int(PduType.FAULT), fields, call_id, flags, FAULT_SIZE, FAULT_SIZE)


class Reassembly:
    """The fragments of one stub, in order and bounded.

    Attributes:
        overflow: whether more bytes came than allowed; they are not kept.
    """

    def __init__(self, stub_max: int) -> None:
        self._stub_max = stub_max
        self._pieces: list[bytes] = []
        self._size = 0
        self.overflow = False

    def add(self, piece: bytes) -> None:
        """Add the stub of the next fragment."""
        self._size += len(piece)
        if self._size > self._stub_max:
            self.overflow = True
            self._pieces.clear()
        if not self.overflow and piece:
            self._pieces.append(piece)

    @property
    def held(self) -> int:
        """The bytes that are kept."""
        return 0 if self.overflow else self._size

    @property
    def stub(self) -> bytes:
        """The whole stub."""
        return b"".join(self._pieces)


def wrong_fragment(why: str) -> MalformedPacket:
    """Return the error of a fragment that must not come now."""
    return wrong_header("pfc_flags", why)
