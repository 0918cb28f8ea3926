"""Outcomes of messages, for programs without asyncio."""

from __future__ import annotations

from msmqwire.qm.client.sent import Acknowledgement, Outcome, Sent
from msmqwire.service.loop_thread import SyncConnection


class SyncSent:
    """The outcome of a message that was sent: `msmqwire.qm.client.sent.Sent` without ``await``."""

    def __init__(self, connection: SyncConnection, sent: Sent) -> None:
        self._connection, self._sent = connection, sent

    def __repr__(self) -> str:
        return repr(self._sent)

    @property
    def identifier(self) -> str:
        r"""Its identifier, ``guid\number``."""
        return self._sent.identifier

    @property
    def acknowledgements(self) -> list[Acknowledgement]:
        """The acknowledgements received, in order of arrival."""
        return list(self._sent.acknowledgements)

    def transferred(self, timeout: float | None = None) -> None:
        """See `Sent.transferred`."""
        self._connection.run_if_known(self._sent.transferred(timeout))

    @property
    def transmitted(self) -> bool:
        """See `Sent.transmitted`."""
        return self._sent.transmitted

    def outcome(self, timeout: float | None = None, *, confirm: float | None = None) -> Outcome:
        """See `Sent.outcome`."""
        return self._connection.run_if_known(self._sent.outcome(timeout, confirm=confirm))

    def arrived(self, timeout: float | None = None) -> Acknowledgement:
        """See `Sent.arrived`."""
        return self._connection.run_if_known(self._sent.arrived(timeout))

    def received(self, timeout: float | None = None) -> Acknowledgement:
        """See `Sent.received`."""
        return self._connection.run_if_known(self._sent.received(timeout))

    def acknowledged(self, *classes: int, timeout: float | None = None) -> Acknowledgement:
        """See `Sent.acknowledged`."""
        return self._connection.run_if_known(self._sent.acknowledged(*classes, timeout=timeout))
