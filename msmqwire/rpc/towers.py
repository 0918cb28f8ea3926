"""Protocol towers, which tell where an interface is reached over TCP: [C706] appendices I and L."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any, Final, NamedTuple
from uuid import UUID

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.rpc.constants import SyntaxId
from msmqwire.schema import Header, Ref, raw, repeat, uint

FLOOR: Final = Header(
    "floor",
    "[C706] appendix L",
    (
        uint(16, "lhs_length", "Bytes of the protocol identifier.", unit="bytes"),
        raw("lhs", Ref("lhs_length"), "The protocol identifier, and its data."),
        uint(16, "rhs_length", "Bytes of the address.", unit="bytes"),
        raw("rhs", Ref("rhs_length"), "The address in this protocol."),
    ),
    "A protocol of a tower.",
)

TOWER: Final = Header(
    "protocol_tower_t",
    "[C706] appendix L",
    (
        uint(16, "floor_count", "Floors."),
        repeat("floors", "floor_count", FLOOR, "Protocols, from the interface down to the network."),
    ),
    "How an interface is reached.",
)

NO_ADDRESS: Final = IPv4Address(0)

_UUID: Final = b"\x0d"
_CONNECTION_ORIENTED: Final = b"\x0b"  # MQRR-2.1-01
_TCP: Final = b"\x07"  # MQRR-2.1-01
_IP: Final = b"\x09"  # MQRR-2.1-01
_SYNTAX_SIZE: Final = 19
_PORT_SIZE: Final = 2
_ADDRESS_SIZE: Final = 4


class Tower(NamedTuple):
    """An interface at a port of TCP; port and address are 0 in a question."""

    interface: SyntaxId
    transfer_syntax: SyntaxId
    port: int = 0
    address: IPv4Address = NO_ADDRESS


def parse_tower(data: bytes) -> Tower:
    """Return the tower in these bytes. Raises MalformedPacket, also for another protocol than TCP."""
    tower: Any = TOWER.parse(data)
    floors = [(floor.lhs, floor.rhs) for floor in tower.floors]
    # MQRR-2.1-01
    if [lhs[:1] for lhs, _ in floors] != [_UUID, _UUID, _CONNECTION_ORIENTED, _TCP, _IP]:
        raise MalformedPacket("no tower of ncacn_ip_tcp", path="protocol_tower_t.floors", offset=2)
    port, address = floors[3][1], floors[4][1]
    if len(port) != _PORT_SIZE or len(address) != _ADDRESS_SIZE:
        raise MalformedPacket("no port or no IPv4 address", path="protocol_tower_t.floors[3]")
    return Tower(
        _syntax(floors[0], 0), _syntax(floors[1], 1), int.from_bytes(port, "big"), IPv4Address(address)
    )


def build_tower(tower: Tower) -> bytes:
    """Return the bytes of a tower. Raises InvalidValue."""
    if not 0 <= tower.port <= 0xFFFF:
        raise InvalidValue(f"{tower.port} is not in 0..65535", path="port")
    floors = [
        *(_floor(syntax) for syntax in (tower.interface, tower.transfer_syntax)),
        {"lhs": _CONNECTION_ORIENTED, "rhs": bytes(2)},
        {"lhs": _TCP, "rhs": tower.port.to_bytes(_PORT_SIZE, "big")},
        {"lhs": _IP, "rhs": tower.address.packed},
    ]
    data: bytes = TOWER.build({"floors": floors})
    return data


def _floor(syntax: SyntaxId) -> dict[str, bytes]:
    lhs = _UUID + syntax.uuid.bytes_le + syntax.major.to_bytes(2, "little")
    return {"lhs": lhs, "rhs": syntax.minor.to_bytes(2, "little")}


def _syntax(floor: tuple[bytes, bytes], number: int) -> SyntaxId:
    lhs, rhs = floor
    if len(lhs) != _SYNTAX_SIZE or len(rhs) != 2:
        raise MalformedPacket("no UUID and version", path=f"protocol_tower_t.floors[{number}]")
    major, minor = int.from_bytes(lhs[17:], "little"), int.from_bytes(rhs, "little")
    return SyntaxId(UUID(bytes_le=lhs[1:17]), major, minor)
