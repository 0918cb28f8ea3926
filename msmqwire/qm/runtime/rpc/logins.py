"""Attempts at passwords, limited in rate by their origin and by their user."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from msmqwire.names.origins import origin_of
from msmqwire.qm.runtime.limits import LIMITS, Limits, RpcTraffic
from msmqwire.service.logs import log

KEYS_MAX: Final = 10_000
"""Limit of remembered origins, and users tried from an origin; the least recently failed are forgotten."""
_NAME_MAX: Final = 100


class LoginAttempts:
    """The limits on attempts at passwords.

    Each origin, and each user tried from an origin, may fail some times at once; a failure is forgiven after
    its share of `Limits.rpc_logins_s`. Until then every attempt is refused unseen, the right password
    included: otherwise it could be found out. No user is refused for attempts from another address.
    """

    def __init__(
        self,
        limits: Limits = LIMITS,
        traffic: RpcTraffic | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`traffic` counts failures and refusals; `clock` returns seconds."""
        self._per_user, self._per_peer = limits.rpc_logins_per_user, limits.rpc_logins_per_peer
        self._seconds, self._clock = limits.rpc_logins_s, clock
        self._traffic = RpcTraffic() if traffic is None else traffic
        # By origin and user (empty for all users): failures not forgiven, and the time of that count.
        self._failures: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._failures)

    def allows(self, address: str, user: str | None) -> bool:
        """Return whether a password may be tried from an address; `user` is None for an unknown user."""
        keys = self._keys(address, user)
        if all(self._left(key) + 1 <= limit for key, limit in keys):
            return True
        self._traffic.logins_refused += 1
        log.warning("too many wrong passwords: an attempt is refused", extra={"peer": address})
        return False

    def failed(self, address: str, user: str | None, claimed: str) -> None:
        """Note a wrong password, or an unknown user `claimed`."""
        self._traffic.logins_failed += 1
        extra = {"peer": address, "user": claimed[:_NAME_MAX]}
        log.warning("an unknown user or a wrong password", extra=extra)
        now = self._clock()
        for key, _ in self._keys(address, user):
            self._failures[key] = self._left(key) + 1, now
            self._failures.move_to_end(key)
        while len(self._failures) > KEYS_MAX:
            self._failures.popitem(last=False)

    def succeeded(self, address: str, user: str) -> None:
        """Forgive the failures of a user from there; the origin's failures stay, as it may try other
        users.
        """
        self._failures.pop((origin_of(address), user), None)

    def _keys(self, address: str, user: str | None) -> list[tuple[tuple[str, str], int]]:
        """Return the keys under which an attempt counts, with the limit of each.

        An unknown user has no key, so that invented names take no memory.
        """
        origin = origin_of(address)
        keys = [((origin, ""), self._per_peer)]
        return keys if user is None else [*keys, ((origin, user), self._per_user)]

    def _left(self, key: tuple[str, str]) -> float:
        """Return the failures that are not forgiven yet."""
        count, when = self._failures.get(key, (0.0, 0.0))
        limit = self._per_user if key[1] else self._per_peer
        return max(0.0, count - (self._clock() - when) * limit / self._seconds)
