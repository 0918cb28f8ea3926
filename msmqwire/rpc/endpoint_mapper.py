"""The endpoint mapper: which port an interface is at, ept_map of [C706] appendix O, [MS-RPCE] 2.2.1.2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from itertools import count, islice
from types import SimpleNamespace
from typing import Any, Final
from uuid import UUID

from msmqwire.errors import MalformedPacket, RpcFault
from msmqwire.rpc.constants import NDR20, FaultStatus, SyntaxId, status_name
from msmqwire.rpc.handles import NULL_HANDLE
from msmqwire.rpc.ndr import (
    SYNTAXES,
    ConformantBytes,
    ConformantVaryingArray,
    Guid,
    Handle,
    Integer,
    Member,
    Pointer,
    Structure,
    Stub,
    Wire,
    build_stub,
    parse_stub,
)
from msmqwire.rpc.presentation import NO_SYNTAXES
from msmqwire.rpc.towers import NO_ADDRESS, Tower, build_tower, parse_tower
from msmqwire.schema import NULL_GUID

ENDPOINT_MAPPER: Final = SyntaxId(UUID("e1af8308-5d1f-11c9-91a4-08002b14a0fa"), 3)
EPT_MAP: Final = 3
ENDPOINT_MAPPER_METHODS: Final = 5
"""ept_insert, ept_delete, ept_lookup, ept_map and ept_lookup_handle_free; only ept_map is served."""

TOWERS_MAX: Final = 500
"""The most towers that may be asked for: range(0, 500)."""

_TOWERS_ASKED: Final = 4
_DWORD: Final = Integer(32)

TWR_T: Final = Structure(
    "twr_t",
    "[C706] appendix N",
    (
        Member("tower_length", _DWORD, "Bytes of the tower."),
        Member("tower_octet_string", ConformantBytes("tower_length"), "The tower."),
    ),
    "A protocol tower.",
)

_ENTRY_HANDLE: Final = Member("entry_handle", Handle(), "Where a long answer goes on.", NULL_HANDLE)

EPT_MAP_REQUEST: Final = Stub(
    "ept_map",
    "[MS-RPCE] 2.2.1.2.5",
    (
        Member("obj", Pointer(Guid()), "Object; not regarded.", None),
        Member("map_tower", Pointer(TWR_T), "The interface that is asked for."),
        _ENTRY_HANDLE,
        Member("max_towers", Integer(32, values=range(TOWERS_MAX + 1)), "Towers to return at most."),
    ),
    "Asks where an interface is reached.",
)


def ept_map_response(max_towers: int) -> Stub:
    """Return the results of ept_map, whose layout the number of towers asked for decides."""
    towers = ConformantVaryingArray(Pointer(TWR_T), max_towers, "num_towers")
    return Stub(
        "ept_map",
        "[MS-RPCE] 2.2.1.2.5",
        (
            _ENTRY_HANDLE,
            Member("num_towers", _DWORD, "Towers."),
            Member("ITowers", towers, "Where the interface is reached.", ()),
            Member("status", _DWORD, "0, or why there are none.", 0),
        ),
        "Where an interface is reached.",
    )


_REFERENTS: Final = (1, 2)
"""The ids of obj and map_tower, which are full pointers ([C706] 14.3.10): numbered through a whole call."""

_RESPONSE: Final = ept_map_response(_TOWERS_ASKED)


def map_request(interface: SyntaxId, transfer_syntax: SyntaxId) -> bytes:
    """Return the stub that asks for the port of an interface, in a call with this transfer syntax."""
    syntax = SYNTAXES[transfer_syntax]
    tower = build_tower(Tower(interface, NDR20))  # in the transfer syntax that every server has
    values = EPT_MAP_REQUEST.value(
        obj=NULL_GUID,
        map_tower={"tower_octet_string": tower},
        max_towers=_TOWERS_ASKED,
        wire=Wire(syntax, referents=_REFERENTS),
    )
    return build_stub(EPT_MAP_REQUEST, values, syntax)


def mapped_port(
    stub: bytes, interface: SyntaxId, transfer_syntax: SyntaxId, *, big_endian: bool = False
) -> int:
    """Return the port in an answer to `map_request`, whose stub has this byte order.

    Raises RpcFault for an interface that is not there, MalformedPacket for an answer without its port.
    """
    answer = parse_stub(_RESPONSE, stub, SYNTAXES[transfer_syntax].ordered(big_endian=big_endian))
    if answer.status:
        raise RpcFault(answer.status, status_name(answer.status))
    for number, item in enumerate(answer.ITowers):
        if item is None:
            continue
        try:
            tower = parse_tower(item.tower_octet_string)
        except MalformedPacket:
            continue  # another protocol than TCP
        if (tower.interface.uuid, tower.interface.major) == (interface.uuid, interface.major):
            if not tower.port:
                raise MalformedPacket("port 0", path=f"ept_map.ITowers[{number}]")
            return tower.port
    raise MalformedPacket("no tower of the interface over TCP", path="ept_map.ITowers")


class EndpointMapper:
    """The answers of an endpoint mapper for a table of interfaces."""

    def __init__(
        self,
        endpoints: Mapping[SyntaxId, int],
        of_interfaces: Mapping[SyntaxId, Sequence[SyntaxId]] = NO_SYNTAXES,
    ) -> None:
        """Take the port of each interface, and the transfer syntaxes of those that do not have all."""
        self._endpoints, self._of_interfaces = endpoints, of_interfaces

    def called(
        self,
        opnum: int,
        stub: bytes,
        transfer_syntax: SyntaxId,
        address: IPv4Address = NO_ADDRESS,
        *,
        big_endian: bool = False,
    ) -> bytes:
        """Return the results of a call, little-endian; `big_endian` is the byte order of its stub.

        `address` is that at which the client has reached the server.

        Raises RpcFault with the status to answer.
        """
        if opnum != EPT_MAP:
            raise _fault(FaultStatus.RPC_S_CANNOT_SUPPORT)
        syntax = SYNTAXES[transfer_syntax]
        try:
            request = parse_stub(EPT_MAP_REQUEST, stub, syntax.ordered(big_endian=big_endian))
        except MalformedPacket as exc:
            raise _fault(FaultStatus.RPC_X_BAD_STUB_DATA) from exc
        towers = self._towers(request, address)[: request.max_towers]
        # Full pointers: the id of one of the request's would mean its target.
        fresh = (number for number in count(len(_REFERENTS) + 1) if number not in request.wire.referents)
        results = SimpleNamespace(
            ITowers=towers,
            status=0 if towers else FaultStatus.EPT_S_NOT_REGISTERED,
            wire=Wire(syntax, referents=tuple(islice(fresh, len(towers)))),
        )
        return build_stub(ept_map_response(request.max_towers), results, syntax)

    def _towers(self, request: Any, address: IPv4Address) -> list[dict[str, bytes]]:
        if request.map_tower is None:
            return []
        try:
            asked = parse_tower(request.map_tower.tower_octet_string)
        except MalformedPacket:
            return []  # another protocol: the interface is not there
        found = []
        for interface, port in self._endpoints.items():
            same = (interface.uuid, interface.major) == (asked.interface.uuid, asked.interface.major)
            syntaxes = self._of_interfaces.get(interface, tuple(SYNTAXES))
            if same and asked.interface.minor <= interface.minor and asked.transfer_syntax in syntaxes:
                tower = build_tower(Tower(interface, asked.transfer_syntax, port, address))
                found.append({"tower_octet_string": tower})
        return found


def _fault(status: FaultStatus) -> RpcFault:
    return RpcFault(status, status.name)
