"""Remote read of a queue manager, and its endpoint mapper: a `Carrier`.

pyspnego, of the extra ``[qm]``, is imported only by a queue manager that has users.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from errno import EADDRINUSE
from functools import partial
from typing import Final

from msmqwire.qm.model.effects import RpcAnswer, RpcFault
from msmqwire.qm.model.enumerations import ManageAccess
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.limits import Limits, RpcTraffic
from msmqwire.qm.runtime.rpc.listener import Acceptors, RpcListener
from msmqwire.qm.runtime.rpc.logins import LoginAttempts
from msmqwire.qm.runtime.rpc.management import ManagementCalls
from msmqwire.qm.runtime.rpc.services import MapperListener, RemoteReadListener
from msmqwire.remote_read.constants import PORT_STEP
from msmqwire.rpc.constants import AuthLevel
from msmqwire.service.carrier import Performers
from msmqwire.service.descriptors import OpenConnections
from msmqwire.service.endpoints import Endpoint

PENDING_S: Final = 300  # MQRR-3.1.2.2-02
"""Seconds of the Pending Request Cleanup Timer: [MS-MQRR] 3.1.2.2."""
_PORT_MAX: Final = 0xFFFF


@dataclass(frozen=True, slots=True)
class RpcOptions:
    r"""The options of the server of remote readers.

    Attributes:
        listen: address and TCP port; the system chooses a free port for 0.
        next_port: whether a later port is used if the port is taken.
        endpoint_mapper: address and TCP port of the endpoint mapper; None for none.
        users: passwords, or NT hashes after ``$NT$``, by ``DOMAIN\user``.
        level: the least authentication level of callers; with NONE anonymous callers are admitted.
        manage: the callers that may ask about the queue manager and its queues, and act on them.
        pending_s: seconds after which a message that was received and not ended returns to its queue.
    """

    listen: Endpoint
    next_port: bool = False
    endpoint_mapper: Endpoint | None = None
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    level: AuthLevel = AuthLevel.PKT_PRIVACY
    manage: ManageAccess = ManageAccess.NONE
    pending_s: int = PENDING_S


class RpcNetwork:
    """Listens for remote readers.

    Attributes:
        traffic, mapper_traffic: counters.
        management: carries out the calls of administrators.
        listen, endpoint_mapper: its addresses, with the ports that the system has chosen.
    """

    def __init__(
        self, driver: EngineDriver, options: RpcOptions, limits: Limits, open_connections: OpenConnections
    ) -> None:
        """Raises InvalidValue for users, ModuleNotFoundError without pyspnego if there are any."""
        self._driver, self._limits, self._open_connections = driver, limits, open_connections
        self._options = options
        self.traffic, self.mapper_traffic = RpcTraffic(), RpcTraffic()
        self.listen, self.endpoint_mapper = options.listen, options.endpoint_mapper
        attempts = LoginAttempts(limits, self.traffic)
        self._acceptors = None if not options.users else _acceptors(options.users, attempts)
        known = {name.upper() for name in options.users}
        anonymous = options.level is AuthLevel.NONE

        def is_known(name: str) -> bool:
            return anonymous or name.upper() in known

        self.management = ManagementCalls(driver, options.manage, users=known, may_call=is_known)
        self._queues = RemoteReadListener(
            driver,
            limits,
            self.traffic,
            open_connections,
            security=self._acceptors,
            minimum_level=options.level,
            is_known=is_known,
            manager=self.management,
        )
        driver.flush_by(self._queues.flush)
        self._mapper: MapperListener | None = None

    async def bind(self) -> None:
        """Listen, so that connections wait for `accept`. Raises OSError."""
        address, port = self._options.listen
        while True:
            try:
                self.listen = address, await self._queues.bind(address, port)  # MQRR-2.1-01, MQRR-3.1.3-01
                break
            except OSError as exc:
                port += PORT_STEP  # MQRR-3.1.4.1-05
                if not self._options.next_port or exc.errno != EADDRINUSE or port > _PORT_MAX:
                    raise
        self._driver.core.remote_read.port = self.listen[1]  # MQRR-2.1-03, MQRR-3.1.4.1-02
        if self._options.endpoint_mapper is not None:
            self._mapper = MapperListener(  # MQRR-2.1-02
                self.listen[1],
                self._limits,
                self.mapper_traffic,
                self._open_connections,
                security=self._acceptors,
                is_known=self._driver.is_known,
            )
            address, port = self._options.endpoint_mapper
            self.endpoint_mapper = address, await self._mapper.bind(address, port)

    @property
    def performers(self) -> Performers:
        return {RpcAnswer: self._queues.answer, RpcFault: self._queues.fault}

    @property
    def _listeners(self) -> list[RpcListener]:
        return [self._queues] if self._mapper is None else [self._queues, self._mapper]

    def accept(self) -> None:
        """Begin to accept calls."""
        for listener in self._listeners:
            listener.accept()

    def stop_listening(self) -> None:
        """Accept no more connections and calls."""
        for listener in self._listeners:
            listener.stop_listening()

    async def finish(self) -> None:
        """Calls under way end with the queue manager."""

    def abort(self) -> None:
        """End all connections at once."""
        for listener in self._listeners:
            listener.abort()

    async def close(self) -> None:
        """End all connections: see `msmqwire.service.listener.Listener.close`."""
        for listener in self._listeners:
            await listener.close()


def _acceptors(users: Mapping[str, str], attempts: LoginAttempts) -> Acceptors:
    from msmqwire.qm.runtime.rpc.ntlm import RpcUsers
    from msmqwire.qm.runtime.rpc.security import acceptors

    return partial(acceptors, RpcUsers(users), attempts)
