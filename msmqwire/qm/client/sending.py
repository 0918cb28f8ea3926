"""The interface of a queue that programs send to, for all ways to send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from msmqwire.constants import HResult
from msmqwire.errors import InvalidValue, QueueError
from msmqwire.qm.client.sent import Sent

if TYPE_CHECKING:
    from msmqwire.qm.client.properties import Properties


class Unit(Protocol):
    """A transaction that is under way.

    Attributes:
        identifier: its GUID.
    """

    identifier: UUID

    async def commit(self) -> None:
        """Commit the transaction. Raises QueueError if the commit is refused: nothing has been done."""

    async def abort(self) -> None:
        """Undo the transaction."""


class Sending(Protocol):
    """A queue, for sending.

    Attributes:
        format_name: its format name.
    """

    format_name: str

    async def send(self, body: bytes | str, properties: Properties) -> Sent:
        """Send a message that is not transactional; see `Queue.send`."""

    async def begin(self) -> Unit:
        """Begin a transaction."""

    def add(self, unit: Unit, body: bytes | str, properties: Properties) -> Sent:
        """Add a message to a transaction. Raises InvalidValue for a transaction of another queue manager."""


class ReadOnlySending:
    """A journal or a dead-letter queue: programs can't send to it."""

    def __init__(self, format_name: str) -> None:
        self.format_name = format_name

    async def send(self, body: bytes | str, properties: Properties) -> Sent:
        raise self._refused()

    async def begin(self) -> Unit:
        raise self._refused()

    def add(self, unit: Unit, body: bytes | str, properties: Properties) -> Sent:
        raise self._refused()

    def _refused(self) -> QueueError:
        code = HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION
        return QueueError(f"{self.format_name}: it can be read only", code)


def of_another() -> InvalidValue:
    """Return the exception for a transaction that was begun in another queue manager."""
    return InvalidValue("it was begun in another queue manager", path="transaction")
