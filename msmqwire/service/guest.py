"""The guest of a driver: the rules of a service, without I/O, clock or randomness."""

from __future__ import annotations

from typing import Any, Protocol


class Pending(Protocol):
    """Changes that are not durable yet; false if there are none."""

    def __bool__(self) -> bool: ...

    def add(self, later: Any) -> None:
        """Apply the changes of later calls on top."""

    def joins(self, later: Any) -> bool:
        """Return whether later changes can be committed together with these."""


class Guest(Protocol):
    """The rules of a service, for its driver.

    Each call into them changes rows and asks for effects. No effect may be carried out before the changes
    taken with it, and all earlier ones, are durable.

    Attributes:
        deadline: the time of the next call of `at`, in milliseconds of the driver's clock; None for no timer.
        arrivals: a number that grows with each change that a client may wait for, such as the arrival of a
            message: see `Driver.defer_commit`.
    """

    @property
    def deadline(self) -> int | None: ...

    @property
    def arrivals(self) -> int: ...

    def at(self, now_ms: int, utc: int) -> None:
        """Set the time: milliseconds of the driver's clock, seconds since 1970 UTC. Due timers expire."""

    def take(self) -> tuple[Any, list[Any]]:
        """Take the changes since the last time, which are `Pending`, and the effects that follow them."""

    def committed(self) -> None:
        """Take note that all changes taken so far are durable."""

    def throttle(self, *, on: bool) -> None:
        """Stop accepting new messages while the disk refuses commits or is almost full, or resume."""

    def acknowledge_received(self) -> None:
        """Acknowledge everything received so far without waiting for more: `stop` follows."""

    def stop(self) -> None:
        """End in good order: the last changes and effects are taken afterwards."""


class Committer(Protocol):
    """The store of a guest's changes: a `Store`, or an object built on one."""

    def commit(self, changes: Any) -> None:
        """Make changes durable, all or none. Raises StoreError; after StoreRefused it may be retried."""
