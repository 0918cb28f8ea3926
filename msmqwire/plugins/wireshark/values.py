"""The display of a field's numbers in Wireshark: names of values, units, times."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from msmqwire.constants import (
    EncryptionAlgorithm,
    HashAlgorithm,
    MessageClass,
    PrivacyLevel,
    ProviderType,
    VarEnum,
)
from msmqwire.packets import (
    CONNECTION_PARAMETERS,
    ESTABLISH_CONNECTION,
    FINAL_ACK,
    ORDER_ACK,
    SESSION_ACK,
    USER_MESSAGE,
)
from msmqwire.schema import Choice, Header, Packet
from msmqwire.schema.nodes import inner_headers

SESSION_PACKETS: Final = (
    USER_MESSAGE,
    ORDER_ACK,
    FINAL_ACK,
    SESSION_ACK,
    ESTABLISH_CONNECTION,
    CONNECTION_PARAMETERS,
)
TIMES: Final = frozenset({"UserHeader.SentTime"})
"""The fields that are seconds since 1970-01-01 UTC."""


def _members(enumeration: type[IntEnum]) -> dict[int, str]:
    return {int(member): member.name for member in enumeration}


_NAMED: Final[Mapping[str, Mapping[int, str]]] = {
    "MessagePropertiesHeader.MessageClass": _members(MessageClass),
    "MessagePropertiesHeader.BodyType": _members(VarEnum),
    "MessagePropertiesHeader.PrivacyLevel": _members(PrivacyLevel),
    "MessagePropertiesHeader.HashAlgorithm": _members(HashAlgorithm),
    "MessagePropertiesHeader.EncryptionAlgorithm": _members(EncryptionAlgorithm),
    "SecurityHeader.SecurityData.ProviderInfo.ProviderType": _members(ProviderType),
    "UserHeader.Flags.DM": {0: "express", 1: "recoverable"},
    "SecurityHeader.Flags.ST": {0: "no SecurityID", 1: "SID", 2: "GUID of the queue manager"},
    "InternalHeader.Flags.PT": {
        schema.defaults["InternalHeader.Flags.PT"]: schema.name
        for schema in (SESSION_ACK, ESTABLISH_CONNECTION, CONNECTION_PARAMETERS)
    },
}


def value_names() -> dict[str, Mapping[int, str]]:
    """Return the names of values by the path of their field; a field that chooses a structure names it."""
    names: dict[str, Mapping[int, str]] = dict(_NAMED)
    for packet in SESSION_PACKETS:
        _choices(packet, "", names)
    return names


def _choices(header: Header, path: str, names: dict[str, Mapping[int, str]]) -> None:
    prefix = "" if isinstance(header, Packet) else f"{path}."
    for part in header.parts:
        if isinstance(part, Choice):
            names[prefix + part.by] = {n: arm.name if arm else "none" for n, arm in part.arms.items()}
        for inner in inner_headers(part):
            _choices(inner, prefix + part.name, names)
