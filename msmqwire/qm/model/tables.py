"""The tables of a queue manager's store."""

from __future__ import annotations

from typing import Final

from msmqwire.service.store.table import StoreTable


class Table(StoreTable):
    """The tables of a queue manager's store."""

    META = "meta"  # by name (bytes): counters and settings
    QUEUE = "queue"  # by number: attributes of queues, outgoing ones too
    MESSAGE = "message"  # by number: the position and state of a recoverable message
    PACKET = "packet"  # by number of the message: its packet
    TRANSACTION = "transaction"  # by Identifier
    OUTGOING = "outgoing"  # by number of the message: the state of its transfer
    SEQUENCE = "sequence"  # by number of the outgoing queue: its transactional sequence
    FORMER_STREAM = "former_stream"  # by stream of SRMP: the outgoing queue whose messages it once numbered
    INCOMING = "incoming"  # by sender and destination: the last transactional message accepted
    HISTORY = "history"  # by message identifier: when a recoverable message was received
    TOKEN = "token"  # by digest of its secret: name and right of a token of the API
    IDEMPOTENCY = "idempotency"  # by hashes of a token and a key: the request that was carried out
    POLICY = "policy"  # by name: pattern, order and properties


INTEGER_KEYS: Final = frozenset({Table.QUEUE, Table.MESSAGE, Table.PACKET, Table.OUTGOING, Table.SEQUENCE})
"""The tables whose keys are integers."""
