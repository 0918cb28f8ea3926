"""Strategies for complete records of every structure, and for whole packets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hypothesis import strategies as st

from fuzz.drawing import values
from fuzz.leaves import TEXT, Fixed
from fuzz.partial_values import partial
from msmqwire.analysis.protocols import protocols
from msmqwire.headers.acknowledgements import ACK_LABEL, ORDER_QUEUE_IDENTIFIER, ORDER_QUEUE_NAME
from msmqwire.headers.base import SIGNATURE, VERSION
from msmqwire.packets import (
    CONNECTION_PARAMETERS,
    ESTABLISH_CONNECTION,
    FINAL_ACK,
    ORDER_ACK,
    REMOTE_READ_MESSAGE,
    SESSION_ACK,
    USER_MESSAGE,
    Protocol,
)
from msmqwire.ping import PING
from msmqwire.schema import (
    SCHEMAS,
    Header,
    Packet,
    Record,
)
from msmqwire.schema.references import stands_alone

protocols()  # each declares its structures
SELF_CONTAINED: Final[Mapping[str, Header]] = {
    key: schema for key, schema in SCHEMAS.items() if stands_alone(schema)
}
"""The schemas that can be read by themselves, by key."""
NCP_STRUCTURES: Final = tuple(key for key in SELF_CONTAINED if key.startswith(("Ncp", "NW")))
"""The keys of NetWare's structures among them."""

_BASE: Final = {"BaseHeader.VersionNumber": VERSION, "BaseHeader.Signature": SIGNATURE}
_MESSAGE: Final = {**_BASE, "BaseHeader.Flags.IN": 0}
_CASES: Final = st.sampled_from([str.lower, str.upper, str.title])
_ACKNOWLEDGEMENT: Final = {
    **_BASE,
    "BaseHeader.Flags": 0,
    "UserHeader.Flags.DQ": st.sampled_from([3, 7]),
    "UserHeader.DestinationQueue.PrivateQueueIdentifier": ORDER_QUEUE_IDENTIFIER,
    "UserHeader.DestinationQueue.DirectFormatName": st.builds(
        lambda host, case: host + case(f"\\private$\\{ORDER_QUEUE_NAME}"), TEXT, _CASES
    ),
    "MessagePropertiesHeader.Label": ACK_LABEL,
}
_RECOGNISED: Final[Mapping[Packet, Fixed]] = {
    **{
        schema: {**_BASE, **{path: bits for path, bits in schema.defaults.items() if path.count(".") == 2}}
        for schema in (ESTABLISH_CONNECTION, CONNECTION_PARAMETERS, SESSION_ACK)
    },
    USER_MESSAGE: _MESSAGE,
    REMOTE_READ_MESSAGE: _BASE,
    ORDER_ACK: {**_ACKNOWLEDGEMENT, "MessagePropertiesHeader.MessageClass": 0x00FF},
    FINAL_ACK: {
        **_ACKNOWLEDGEMENT,
        "MessagePropertiesHeader.MessageClass": st.integers(0x4000, 0xFFFF),
    },
    PING: {},
}
SESSION_PACKETS: Final = (
    USER_MESSAGE,
    ORDER_ACK,
    FINAL_ACK,
    SESSION_ACK,
    ESTABLISH_CONNECTION,
    CONNECTION_PARAMETERS,
)


def packet(schema: Packet) -> st.SearchStrategy[Record]:
    """Packets of one kind that `msmqwire.parse` recognises as such."""
    return values(schema, _RECOGNISED[schema])


def partial_packet(schema: Packet) -> st.SearchStrategy[Any]:
    """The same with missing parts that can be completed; no JSON data."""
    return partial(schema, _RECOGNISED[schema], json=False)


def packets() -> st.SearchStrategy[Record]:
    """Session packets of any kind."""
    return st.one_of(*(packet(schema) for schema in SESSION_PACKETS))


def pings() -> st.SearchStrategy[Record]:
    """Ping packets."""
    return packet(PING)


def remote_read_messages() -> st.SearchStrategy[Record]:
    """Messages as a remote reader receives them."""
    return packet(REMOTE_READ_MESSAGE)


def packets_of(protocol: Protocol) -> st.SearchStrategy[Record]:
    """The packets of one protocol of `msmqwire.parse`."""
    return {"session": packets, "ping": pings, "remote_read": remote_read_messages}[protocol]()


def packet_bytes(protocol: Protocol = "session") -> st.SearchStrategy[bytes]:
    """The bytes of well-formed packets."""
    return packets_of(protocol).map(Record.to_bytes)
