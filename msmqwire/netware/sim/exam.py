"""The examination when all faults are over, and the service of the remaining jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from msmqwire.ncp.constants import ANY_SERVER, JobControlFlags
from msmqwire.netware.rules.service import QueueService
from msmqwire.netware.sim.actors import LATEST_S, QueueOperator, QueueServer
from msmqwire.netware.sim.client import Client
from msmqwire.netware.sim.ledger import KnownJob, LedgerState
from msmqwire.netware.sim.violation import JobInvariant
from msmqwire.service.virtual.violation import Violation

_HOLDS: Final = JobControlFlags.NWCF_USER_HOLD | JobControlFlags.NWCF_OPERATOR_HOLD
Left = dict[int, list[int]]
"""The IDs of the jobs in each queue, in order."""


class Examiner(QueueOperator):
    """An operator while all other actors rest."""

    async def look(self, service: QueueService, *, reorder: bool = False) -> Left:
        """Look at all jobs, and release them; return their order, after one change of it if requested.

        Raises Violation and ClientLost.
        """
        left: Left = {}
        async with self.connected() as client:
            for queue in self.scene.queues:
                if service.queue_table[queue].servers:
                    raise Violation(JobInvariant.FLAGS, "a server is attached whose connection has ended")
                if reorder:
                    await self._reorder(client, queue)
                left[queue] = [job.id for job in await self._jobs(client, queue)]
        found = [job for jobs in left.values() for job in jobs]
        if len(found) != len(set(found)):
            raise Violation(JobInvariant.ONE_SERVER, f"a job is there twice: {left}")
        self.ledger.check_present(found)
        return left

    async def _jobs(self, client: Client, queue: int) -> list[KnownJob]:
        """Return the jobs of a queue, and release them: none may be open, in service or misplaced."""
        jobs = []
        for place, number in enumerate(await self.listed(client, queue), 1):
            what: dict[str, Any] = {"QueueID": queue, "JobNumber": number}
            reply = await self.ask(client, "ReadQueueJobEntry", **what)
            assert reply is not None
            entry = reply.Job
            job = self.ledger.of_record(entry.queueRecord)
            jobs.append(job)
            if (entry.jobPosition, entry.jobNumber) != (place, number):
                raise Violation(JobInvariant.ORDER, f"{job} is listed at {place}: {entry!r}")
            flags = int(entry.jobControlFlags)
            if flags & JobControlFlags.NWCF_ENTRY_OPEN or entry.servicingServerIDNumber:
                raise Violation(JobInvariant.FLAGS, f"{job} has outlived its connection: {entry!r}")
            if (flags ^ job.request.job_control_flags) & ~int(_HOLDS):
                raise Violation(JobInvariant.TRUTHFUL, f"{job} has {flags:#06x}")
            if (entry.targetServerID, entry.jobType) != (job.request.target_server_id, job.request.job_type):
                raise Violation(JobInvariant.TRUTHFUL, f"{job} was changed: {entry!r}")
            if flags & _HOLDS:
                await self.hold(client, job, what, entry)
        return jobs

    async def _reorder(self, client: Client, queue: int) -> None:
        """Change the place of a job, and check the order. Raises Violation."""
        numbers = await self.listed(client, queue)
        if not numbers:
            return
        number, place = self.chance.choice(numbers), self.chance.randrange(1, len(numbers) + 3)
        await self.ask(client, "ChangeQueueJobPosition", QueueID=queue, JobNumber=number, NewPosition=place)
        numbers.remove(number)
        numbers.insert(place - 1, number)
        if await self.listed(client, queue) != numbers:
            raise Violation(
                JobInvariant.ORDER, f"job {number} was given the place {place}, and does not have it"
            )

    async def drain(self, servers: Iterable[str]) -> None:
        """Have all jobs serviced in order. Raises Violation."""
        await asyncio.sleep(LATEST_S)
        left: Left = {}
        async with self.connected() as client:
            for queue in self.scene.queues:
                left[queue] = [job.id for job in await self._jobs(client, queue)]
        for name in servers:
            server = _Drainer(self.scene, name)
            async with server.connected() as client:
                for queue in self.scene.queues:
                    await server.drain(client, queue, left[queue])
        for queue, jobs in left.items():
            if jobs:
                raise Violation(JobInvariant.KEPT, f"{jobs} are not serviced in queue {queue}")


class _Drainer(QueueServer):
    """A queue server that knows the jobs it has to get."""

    async def drain(self, client: Client, queue: int, left: list[int]) -> None:
        """Finish the jobs of a queue that this server may service, which are taken out of `left`."""
        own = self.scene.servers[self.name]
        wanted = [
            job_id for job_id in left
            if self.ledger.jobs[job_id].request.target_server_id in (ANY_SERVER, own)
        ]  # fmt: skip
        for job_id in wanted:
            taken = await self.take(client, queue)
            if taken is None or taken[0].id != job_id:
                raise Violation(JobInvariant.ORDER, f"{taken and taken[0]} was given out, not job {job_id}")
            job, number, handle = taken
            data = await self.read(client, job, handle)
            self.ledger.check_body(job, data or b"")
            await self.act(
                client, job, {LedgerState.TAKEN}, LedgerState.GONE, "FinishServicingQueueJob",
                invariant=JobInvariant.ONE_SERVER, QueueID=queue, JobNumber=number,
            )  # fmt: skip
            left.remove(job_id)
        if await self.take(client, queue) is not None:
            raise Violation(JobInvariant.KEPT, "there is one more job than there should be")
