"""One run: the server's lives, the faults, its clients, and the invariants at the end."""

from __future__ import annotations

import asyncio
import random
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from msmqwire.ncp.constants import SUPERVISOR_ID, ObjectType
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.rules.service import QueueService
from msmqwire.netware.sim.actors import AFTERMATH_S, Actor, JobUser, QueueOperator, QueueServer, Scene
from msmqwire.netware.sim.disk import Disk, Effect
from msmqwire.netware.sim.exam import Examiner
from msmqwire.netware.sim.host import ServerHost
from msmqwire.netware.sim.recovery import check_files, check_recovery
from msmqwire.netware.sim.violation import JobInvariant
from msmqwire.netware.store.contents import read_contents
from msmqwire.service.virtual.loop import Stuck, VirtualLoop
from msmqwire.service.virtual.violation import Violation

BUSY_S: Final = 25.0
"""Seconds in which there are faults."""
ENDS_S: Final = 600.0
"""Seconds afterwards in which everything has to end."""
FAULT_EVERY_S: Final = 6.0
_THREAD_S: Final = 0.02
"""The most seconds that a thread waits before and after its work."""
_OURS: Final = "sim "
_USERS: Final = ("ALICE", "BOB")
_SERVERS: Final = ("PS1", "PS2")
_OPERATOR: Final = "OPER"


@dataclass(frozen=True, slots=True)
class NetwareOutcome:
    """The outcome of a run.

    Attributes:
        seed: the seed of the run.
        violation: the invariant that did not hold; None if all did.
        counts: the count of each kind of event.
    """

    seed: int
    violation: Violation | None
    counts: Counter[str]


class NetwareWorld:
    """A disk, the server on it, and its clients, in virtual time."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._seed = seed
        self.disk = Disk()
        self.scene = Scene(self._chance)
        self._host: ServerHost | None = None
        self._fault: BaseException | None = None
        self._failed: asyncio.Future[None]

    def run(self) -> NetwareOutcome:
        """Run to the end."""
        loop = VirtualLoop(lambda: (self._moment(), self._moment()))
        loop.set_exception_handler(self._unforeseen)
        violation = None
        try:
            loop.run_until_complete(loop.create_task(self._main(), name=_OURS + "main"))
        except Violation as violated:
            violation = violated
        except Stuck as stuck:
            violation = Violation(JobInvariant.ENDS, str(stuck))
        except Exception as error:  # neither the server nor the clients may raise
            violation = _as_violation(error)
        finally:
            self.scene.counts["virtual seconds"] += int(loop.time())
            loop.set_exception_handler(lambda *_: None)
            _cancel_all(loop)
            loop.close()
        return NetwareOutcome(self._seed, violation, self.scene.counts)

    def _moment(self) -> float:
        return self._chance.random() * _THREAD_S

    def _unforeseen(self, loop: Any, context: dict[str, Any]) -> None:
        """An exception was raised outside of all handlers."""
        error = context.get("exception")
        if error is not None and not self._failed.done():
            self._failed.set_exception(error)

    async def _main(self) -> None:
        self._failed = asyncio.get_running_loop().create_future()
        await self._boot()
        await self._prepare()
        actors: list[Actor] = [
            *(JobUser(self.scene, name) for name in _USERS),
            *(QueueServer(self.scene, name) for name in _SERVERS),
            QueueOperator(self.scene, _OPERATOR),
        ]
        tasks = [self._task(actor.run(), actor.name) for actor in actors]
        tasks.append(self._task(self._faults(), "faults"))
        await self._all(tasks)
        await self._all([self._task(self._examine(), "exam")])

    def _task(self, work: Any, name: str) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(work, name=_OURS + name)

    async def _all(self, tasks: list[asyncio.Task[None]]) -> None:
        """Wait until all are done. Raises the exception of one of them, and Violation if they don't end."""
        waiting: set[asyncio.Future[None]] = {*tasks, self._failed}
        limit = asyncio.get_running_loop().time() + BUSY_S + ENDS_S
        while len(waiting) > 1:
            left = limit - asyncio.get_running_loop().time()
            done, waiting = await asyncio.wait(waiting, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                raise Violation(JobInvariant.ENDS, f"{len(waiting) - 1} do not end")
            for task in done:
                await task

    # -- the server -----------------------------------------------------------------------------------------

    async def _boot(self) -> None:
        """Start the server, repeatedly if it is killed meanwhile."""
        while True:
            host = self._host = ServerHost(self.disk, self._chance, self._killed, self._refused)
            if self.scene.queues and self.scene.is_busy and self._chance.random() < 0.1:
                host.power.kill_in = self._chance.randrange(6)
            before = read_contents(self.disk.rows)
            if await host.boot():
                check_recovery(before, await host.service(), self.disk)
                host.open()
                self.scene.host = host
                return
            self._bury()

    def _killed(self) -> None:
        self.scene.host = None
        self.scene.counts["kills"] += 1
        self.scene.ledger.connections_lost()

    def _refused(self) -> None:
        """The disk has refused: the service may be built anew."""
        loop = asyncio.get_running_loop()
        self.scene.counts["refusals of the disk"] += 1
        self.scene.refused_at = loop.time()
        for job, asked in self.scene.ledger.may_restart():
            self.scene.after(self.scene.ledger.forget, job, asked)

    def _bury(self) -> None:
        """End all work of a dead server, and lose unsynced changes."""
        for task in asyncio.all_tasks():
            if not task.get_name().startswith(_OURS) and task is not asyncio.current_task():
                task.cancel()
        self.disk.crash(self._chance)

    async def _restart(self) -> None:
        assert self._host is not None
        await self._host.died
        self._bury()
        await self.scene.pause(2.0)
        await self._boot()

    async def _prepare(self) -> None:
        """Create objects and queues, before there are faults."""
        admin, scene = Caller(0, object_id=SUPERVISOR_ID), self.scene

        def create(service: QueueService) -> None:
            users = [service.bindery.create_object(admin, name, ObjectType.NWOT_USER).id for name in _USERS]
            operator = service.bindery.create_object(admin, _OPERATOR, ObjectType.NWOT_USER).id
            for name in _SERVERS:
                server = service.bindery.create_object(admin, name, ObjectType.NWOT_PRINT_SERVER)
                scene.servers[name] = server.id
            for name in ("FIRST", "SECOND"):
                queue = service.queues.create(admin, name, ObjectType.NWOT_PRINT_QUEUE, "SYS:SYSTEM")
                scene.queues.append(queue)
                for member in users:
                    service.properties.add_member(admin, queue, "Q_USERS", member)
                service.properties.add_member(admin, queue, "Q_OPERATORS", operator)
                for member in scene.servers.values():
                    service.properties.add_member(admin, queue, "Q_SERVERS", member)

        assert self._host is not None
        await self._host.driver.run(create)

    # -- faults and the end ---------------------------------------------------------------------------------

    async def _faults(self) -> None:
        """Kill the server, break connections and make the disk refuse, until the time is over."""
        loop, chance = asyncio.get_running_loop(), self._chance
        while loop.time() < BUSY_S:
            assert self._host is not None
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._host.died), chance.random() * FAULT_EVERY_S)
            power = self._host.power
            if not power.is_on:
                await self._restart()
                continue
            match chance.choice(
                ("cut", "cut", "cut", "kill in", "kill in", "kill after", "kill after", "kill", "refuse")
            ):
                case "cut":
                    self._host.cut_one()
                case "kill in":
                    power.kill_in = chance.randrange(12)
                case "kill after":
                    power.kill_after = chance.choice(list(Effect))
                case "kill":
                    power.kill()
                case "refuse":
                    power.refuse_in = chance.randrange(8)
        self.scene.is_busy = False
        assert self._host is not None
        power = self._host.power
        power.kill_in = power.kill_after = power.refuse_in = None
        if not power.is_on:
            await self._restart()

    async def _examine(self) -> None:
        """Examine the remaining jobs, kill the server once more, and have the jobs serviced."""
        await asyncio.sleep(2 * AFTERMATH_S)
        assert self._host is not None
        examiner = Examiner(self.scene, _OPERATOR)
        service = await self._host.service()
        check_files(service, self.disk)
        left = await examiner.look(service, reorder=True)
        self._host.power.kill()
        await self._restart()
        if await examiner.look(await self._host.service()) != left:
            raise Violation(JobInvariant.ORDER, f"a restart has changed {left}")
        await examiner.drain(_SERVERS)
        await asyncio.sleep(1.0)
        if self.disk.files:
            raise Violation(JobInvariant.FILES, f"there are still {[*self.disk.files]}")


def _as_violation(error: Exception) -> Violation:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
    violation = Violation(JobInvariant.NO_ERRORS, f"{type(error).__name__}: {error} ({where})")
    violation.__cause__ = error
    return violation


def _cancel_all(loop: Any) -> None:
    """End the tasks that still wait."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
