"""Types of transport addresses: [MS-MQMQ] 2.2.4, [MS-MQRR] 2.2.5.1."""

from __future__ import annotations

from enum import IntEnum


class AddressType(IntEnum):
    """TA_ADDRESS.AddressType. IPV6_ADDRESS_TYPE occurs only in remotely read messages."""

    IP_ADDRESS_TYPE = 0x0001
    IP_RAS_ADDRESS_TYPE = 0x0002
    IPX_ADDRESS_TYPE = 0x0003
    FOREIGN_ADDRESS_TYPE = 0x0005
    IPV6_ADDRESS_TYPE = 0x0006


ADDRESS_LENGTH = {
    AddressType.IP_ADDRESS_TYPE: 4,
    AddressType.IP_RAS_ADDRESS_TYPE: 4,
    AddressType.IPX_ADDRESS_TYPE: 10,
    AddressType.FOREIGN_ADDRESS_TYPE: 16,
}
"""The size of TA_ADDRESS.Address in bytes by type; a TA_ADDRESS never holds IPv6."""
