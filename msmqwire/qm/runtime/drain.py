"""The draining of a server before it is stopped: nothing new begins, and what is under way can end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from msmqwire.constants import HResult
from msmqwire.errors import ManagerStopped
from msmqwire.names.printable import counted
from msmqwire.qm.runtime.message_json import flag

_WHY: Final = "the server drains before a stop: it takes nothing new until it is started again"


class Drained(Protocol):
    """A session of a local program."""

    @property
    def held_count(self) -> int:
        """The number of messages that it has received and not ended."""

    def drain(self, *, on: bool) -> None:
        """End its receives that wait, and push no more messages; or resume."""


class DrainedCore(Protocol):
    """The part of a queue manager that drains: see `Core`."""

    @property
    def remote_receives(self) -> int:
        """The number of receives of remote readers that have not ended."""

    def drain(self, *, on: bool) -> None:
        """Take nothing new from peers; or resume."""


class Drain:
    """Whether a queue manager drains, and what is still held. A start forgets it.

    Attributes:
        on: whether it drains.
    """

    def __init__(self, core: DrainedCore) -> None:
        self._core = core
        self._sessions: dict[Drained, None] = {}
        self.on = False

    def add(self, session: Drained) -> None:
        """Note a session that has begun."""
        self._sessions[session] = None
        if self.on:
            session.drain(on=True)

    def remove(self, session: Drained) -> None:
        """Forget a session that has ended: it holds nothing more."""
        self._sessions.pop(session, None)

    def set(self, *, on: bool) -> None:
        """Begin to drain, or resume, in a call of the driver; twice is once."""
        if on is not self.on:
            self.on = on
            self._core.drain(on=on)
            for session in list(self._sessions):
                session.drain(on=on)

    def requested(self, request: Mapping[str, Any]) -> None:
        """Begin to drain, or resume, as a request says by ``on``, if it does, in a call of the driver.

        Raises InvalidValue.
        """
        if request.get("on") is not None:
            self.set(on=flag(request["on"], "on"))

    def check(self) -> None:
        """Raise ManagerStopped for something new."""
        if self.on:
            raise ManagerStopped(_WHY, HResult.MQ_ERROR_OPERATION_CANCELLED)

    @property
    def held(self) -> int:
        """The number of messages that programs here and remote readers have received and not ended."""
        return sum(session.held_count for session in self._sessions) + self._core.remote_receives

    def state(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return {"draining": self.on, "held": self.held}

    @property
    def words(self) -> str:
        """The state in words."""
        if not self.on:
            return "not asked for"
        held = self.held
        return (
            f"{counted(held, 'message', 'are')} held"
            if held
            else "nothing is held: the server can be stopped"
        )
