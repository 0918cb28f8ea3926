"""A transaction of a program: its messages are sent, received and moved when its block is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msmqwire.errors import InvalidValue
from msmqwire.qm.client.sending import Sending, Unit
from msmqwire.qm.client.sent import Sent

if TYPE_CHECKING:
    from typing import Unpack

    from msmqwire.qm.client.properties import Properties


class Transactional:
    """A transaction, whose messages are sent, received and moved when its block is left.

    `Queue.transaction` begins it. `Queue.send`, `Queue.receive`, `Queue.receive_by_lookup`, `Queue.move` and
    `Cursor.receive` take it as ``transaction``, for any queue of the same queue manager. Once the block was
    left, using it raises InvalidValue.

    Attributes:
        ended: whether the block was left.
    """

    def __init__(self, sending: Sending, unit: Unit) -> None:
        self._sending, self._unit = sending, unit
        self.ended = False

    @property
    def unit(self) -> Unit:
        """The transaction of the queue manager. Raises InvalidValue once it has ended."""
        if self.ended:
            raise InvalidValue("it has ended: begin another one", path="transaction")
        return self._unit

    def send(self, body: bytes | str = b"", **properties: Unpack[Properties]) -> Sent:
        """Add a message to the queue with which the transaction was begun.

        Args:
            body: bytes, or a text, which is sent as UTF-16 with the body type VT_BSTR.
            properties: see `Properties`.

        Returns:
            An object that follows its delivery. For a queue of `attach` it has no identifier before the
            commit.

        Raises:
            InvalidValue, InvalidName: a property is wrong, its name is the path; or the transaction has
                ended, with the path ``transaction``.
            TransactionAborted: the queue manager was lost since the transaction was begun.
        """
        return self._sending.add(self.unit, body, properties)
