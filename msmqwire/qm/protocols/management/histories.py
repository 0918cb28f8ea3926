"""The properties that are tables: [MS-MQMR] 3.1.4.1, [MS-MQMQ] 2.3.12.24 and 2.3.12.25."""

from __future__ import annotations

from heapq import nlargest
from typing import Any, Final

from msmqwire.constants import CONNECTION_HISTORY_VECTORS, SOURCE_INFO_VECTORS
from msmqwire.errors import InvalidValue
from msmqwire.qm.model.address import address_text
from msmqwire.qm.model.elements import (
    ConnectionHistory,
    IncomingTransactionalTransferInfo,
    OutgoingQueue,
    Queue,
)
from msmqwire.qm.model.enumerations import ConnectionStatus
from msmqwire.qm.protocols.management.variants import COUNT_MAX, VARIANTS, signed, texts, vector

SOURCES_MAX: Final = 4096
"""The senders of a queue in an answer, the last ones: peers can make any number of them."""
_FAILURE: Final = 0x80000000
_S: Final = ConnectionStatus
STATUSES: Final = {  # MQMR-2.2.3.2-26
    _S.IN_PROCESS: 0,
    _S.ESTABLISH_PACKET_RECEIVED: 1,
    _S.ESTABLISHED: 2,
    _S.UNKNOWN_FAILURE: _FAILURE,
    _S.PING_FAILURE: _FAILURE | 1,
    _S.SOCKET_CREATE_FAILURE: _FAILURE | 2,
    _S.SOCKET_BIND_FAILURE: _FAILURE | 3,
    _S.SOCKET_CONNECT_FAILURE: _FAILURE | 4,
    _S.TCP_NOT_ENABLED: _FAILURE | 5,
    _S.SOCKET_SEND_FAILURE: _FAILURE | 6,
    _S.CONNECTION_NOT_READY: _FAILURE | 7,
    _S.DNS_FAILURE: _FAILURE | 8,
    _S.CERTIFICATE_VALIDATION_FAILURE: _FAILURE | 9,
    _S.CONNECTION_LIMIT_REACHED: _FAILURE | 10,
    _S.CONNECTION_REFUSED: _FAILURE | 11,
    _S.ROUTING_DATA_NOT_AVAILABLE: _FAILURE | 12,
    _S.LOW_RESOURCE: _FAILURE | 13,
}
"""The numbers of ConnectionHistory.Status."""


def connection_history(queue: OutgoingQueue) -> Any:
    """Return the states of the connections of a queue, the oldest first: MQMR-3.1.4.1-60."""
    entries = list(queue.connection_history)
    columns: tuple[list[Any], ...] = (
        [STATUSES[entry.status] for entry in entries],
        [signed(entry.time) for entry in entries],
        [signed(entry.error) for entry in entries],
        [texts(_addresses(entry)) for entry in entries],  # MQMR-3.1.4.1-61
    )
    return _table(CONNECTION_HISTORY_VECTORS, columns)


def _addresses(entry: ConnectionHistory) -> list[str]:
    return [_address(address) for address in entry.addresses]


def _address(address: str) -> str:
    """Return an address as in NextHops; a text that is none stays what it is."""
    try:
        return address_text(address)
    except InvalidValue:
        return address


def source_info(queue: Queue) -> Any:
    """Return the transactional senders to a queue: MQMR-3.1.4.1-59, at most `SOURCES_MAX`."""
    infos = list(queue.incoming.values())
    if len(infos) > SOURCES_MAX:
        infos = nlargest(SOURCES_MAX, infos, key=_last_access)
    columns: tuple[list[Any], ...] = (
        [str(info.format_name) for info in infos],
        [info.sender_identifier for info in infos],
        [info.sequence_identifier.time_stamp << 32 | info.sequence_identifier.ordinal for info in infos],
        [info.sequence_number & COUNT_MAX for info in infos],
        [signed(info.last_access_time) for info in infos],
        [min(info.reject_count, COUNT_MAX) for info in infos],
    )
    return _table(SOURCE_INFO_VECTORS, columns)


def _last_access(info: IncomingTransactionalTransferInfo) -> int:
    return info.last_access_time


def _table(types: tuple[int, ...], columns: tuple[list[Any], ...]) -> Any:
    """Return parallel vectors, one entry in each for a row."""
    return vector(VARIANTS, [vector(vt, column) for vt, column in zip(types, columns, strict=True)])
