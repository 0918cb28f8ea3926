"""Users that submit jobs, queue servers and an operator, each over connections that break."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from msmqwire.errors import NcpRefused
from msmqwire.ncp.constants import ANY_SERVER, AT_ONCE, CompletionCode, JobControlFlags
from msmqwire.ncp.job_structures import file_handle
from msmqwire.netware.client.job import request_fields
from msmqwire.netware.model import times
from msmqwire.netware.model.job import JobRequest
from msmqwire.netware.sim.client import Client, ClientLost
from msmqwire.netware.sim.host import ServerHost
from msmqwire.netware.sim.ledger import LIVE, Asked, JobLedger, KnownJob, LedgerState
from msmqwire.netware.sim.violation import JobInvariant
from msmqwire.schema import Record
from msmqwire.service.virtual.violation import Violation

AFTERMATH_S: Final = 10.0
"""Seconds after which a connection that has ended has no more effects."""
LATEST_S: Final = 30
"""The most seconds until the time of a job."""
_READ_SIZE: Final = 37
_HALTED: Final = CompletionCode.ERR_Q_HALTED
_FULL: Final = CompletionCode.ERR_Q_FULL
_CHANGEABLE: Final = (
    JobControlFlags.NWCF_SERVICE_AUTO_START, JobControlFlags.NWCF_SERVICE_RESTART,
    JobControlFlags.NWCF_SERVICE_RESTART, JobControlFlags.NWCF_USER_HOLD,
)  # fmt: skip


class Scene:
    """The state that all actors share.

    Attributes:
        chance: the random source of the run.
        ledger: the ledger of replies.
        counts: the count of each kind of event.
        host: the present server; None while it is down.
        is_busy: whether the actors continue.
        queues: the IDs of the queues.
        servers: the object IDs of the queue servers, by name.
        refused_at: the time of the last refusal of the disk.
    """

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.ledger = chance, JobLedger()
        self.counts: Counter[str] = Counter()
        self.host: ServerHost | None = None
        self.is_busy = True
        self.queues: list[int] = []
        self.servers: dict[str, int] = {}
        self.refused_at = -AFTERMATH_S

    def after(self, what: Callable[[KnownJob, Asked], None], job: KnownJob, asked: Asked) -> None:
        """Call a function when all effects of an ended connection are over."""
        asyncio.get_running_loop().call_later(AFTERMATH_S, what, job, asked)

    async def pause(self, most: float) -> None:
        """Do nothing for a while."""
        await asyncio.sleep(self.chance.random() * most)


class Actor:
    """An actor with a login; its connection is made anew each time it breaks."""

    kind = 1

    def __init__(self, scene: Scene, name: str) -> None:
        self.scene, self.name = scene, name
        self.chance, self.ledger, self.counts = scene.chance, scene.ledger, scene.counts

    async def run(self) -> None:
        """Work until the scene is not busy any more."""
        while self.scene.is_busy:
            try:
                async with self.connected() as client:
                    while self.scene.is_busy:
                        await self.step(client)
                        await self.scene.pause(1.5)
            except ClientLost:
                self.counts["connections lost"] += 1
                await self.scene.pause(3.0)

    async def step(self, client: Client) -> None:
        """Do one thing. Raises ClientLost."""
        raise NotImplementedError

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Client]:
        """Connect and log in for the block. Raises ClientLost."""
        host = self.scene.host
        if host is None:
            raise ClientLost("the server is down")
        client = Client(host, self.chance)
        try:
            await client.attach()
            await self.ask(client, "LoginObject", ObjectType=self.kind, ObjectName=self.name, Password="")
            await self.ready(client)
            yield client
            await client.leave()
        finally:
            client.stream.cut()

    async def ready(self, client: Client) -> None:
        """Prepare a new connection. Raises ClientLost."""

    async def ask(
        self, client: Client, name: str, allowed: Collection[int] = (), **fields: Any
    ) -> Record | None:
        """Call; return the data of the reply, or None if it was refused by one of the allowed codes.

        Raises ClientLost, and Violation for any other refusal.
        """
        self.counts["calls"] += 1
        try:
            return await client.call(name, **fields)
        except NcpRefused as exc:
            if exc.code in allowed:
                return None
            self.disk_refused(client)
            raise Violation(JobInvariant.REFUSED, f"{exc} is refused with {exc.code:#04x}") from exc

    def disk_refused(self, client: Client) -> None:
        """Raise Lost if the disk refuses, which ends all connections."""
        if asyncio.get_running_loop().time() - self.scene.refused_at < AFTERMATH_S:
            client.stream.cut()
            raise ClientLost("the disk refuses")

    async def act(
        self, client: Client, job: KnownJob, sources: Collection[LedgerState],
        target: LedgerState | None, name: str, *, invariant: JobInvariant = JobInvariant.TRUTHFUL,
        allowed: Collection[int] = (), **fields: Any,
    ) -> Record | None:  # fmt: skip
        """Make a call that moves a job from some states to another, or requires them; None if it is refused.

        Raises ClientLost, and Violation for a refusal that the state of the job does not explain.
        """
        asked = self.ledger.ask(job, sources, target)
        self.counts["calls"] += 1
        try:
            reply = await client.call(name, **fields)
        except ClientLost:
            self.scene.after(self.ledger.forget, job, asked)
            raise
        except NcpRefused as exc:
            self.ledger.forget(job, asked)
            if exc.code not in allowed and not self.ledger.may_refuse(job, asked):
                self.disk_refused(client)
                details = f"{name} of {job} is refused with {exc.code:#04x}"
                raise Violation(JobInvariant.REFUSED, details) from exc
            return None
        self.ledger.tell(job, asked, invariant)
        return reply

    @contextmanager
    def holding(
        self, client: Client, job: KnownJob, source: LedgerState, target: LedgerState
    ) -> Iterator[None]:
        """If the connection ends in the block, a job that it keeps in one state goes to the other."""

        def lost() -> None:
            if not client.host.power.is_on:
                return  # the server was killed: the ledger handles it
            self.scene.after(over, job, self.ledger.ask(job, {source}, target))

        def over(job: KnownJob, asked: Asked) -> None:
            if source is LedgerState.TAKEN and job.taker is not client:
                self.ledger.forget(job, asked)
            else:
                self.ledger.settle(job, asked)

        client.when_lost = lost
        yield
        client.when_lost = None


class JobUser(Actor):
    """Submits jobs."""

    async def step(self, client: Client) -> None:
        job = self.ledger.add(self._request())
        queue = self.chance.choice(self.scene.queues)
        with self.holding(client, job, LedgerState.OPEN, job.when_submission_fails):
            await self._submit(client, job, queue)

    def _request(self) -> JobRequest:
        chance, host = self.chance, self.scene.host
        flags = sum({flag for flag in _CHANGEABLE if chance.random() < 0.3})
        at = AT_ONCE
        if host is not None and chance.random() < 0.2:
            at = times.to_bytes(host.now() + timedelta(seconds=chance.randrange(LATEST_S)))
        servers = (ANY_SERVER, ANY_SERVER, ANY_SERVER, *self.scene.servers.values())
        return JobRequest(
            target_server_id=chance.choice(servers),
            target_execution_time=at,
            job_type=chance.randrange(3),
            job_control_flags=flags | chance.choice((0, 0x0300)),
            queue_record=self.ledger.next_record(),
        )

    async def _submit(self, client: Client, job: KnownJob, queue: int) -> None:
        created = await self.act(
            client, job, {LedgerState.ABSENT}, LedgerState.OPEN, "CreateQueueJobAndFile",
            allowed=(_FULL, _HALTED), QueueID=queue, Job=request_fields(job.request),
        )  # fmt: skip
        if created is None:
            return
        self.counts["jobs"] += 1
        head = created.Job
        if int(head.jobControlFlags) != job.request.job_control_flags | JobControlFlags.NWCF_ENTRY_OPEN:
            raise Violation(JobInvariant.TRUTHFUL, f"{job} was created with {int(head.jobControlFlags):#06x}")
        handle, number = file_handle(head.jobFileHandle), head.jobNumber
        for part in range(self.chance.randrange(4)):
            data = f"<{job.id}.{part}>".encode() * self.chance.randrange(1, 8)
            job.asked_body += data
            written = await self.act(
                client, job, {LedgerState.OPEN}, None, "WriteFile",
                FileHandle=handle, FileOffset=len(job.body), ByteCount=len(data), Data=data,
            )  # fmt: skip
            if written is None:
                return
            job.body = job.asked_body
            await self.scene.pause(0.2)
        match self.chance.choice(("start",) * 6 + ("remove", "cut")):
            case "start":
                call = "CloseFileAndStartQueueJob"
                started = await self.act(
                    client, job, {LedgerState.OPEN}, LedgerState.QUEUED, call, QueueID=queue, JobNumber=number
                )
                job.is_whole = started is not None
                self.counts["jobs started"] += job.is_whole
            case "remove":
                await self.act(
                    client, job, LIVE, LedgerState.GONE, "RemoveJobFromQueue", QueueID=queue, JobNumber=number
                )
            case _:
                client.stream.cut()
                raise ClientLost("by itself")


class QueueServer(Actor):
    """Services jobs."""

    kind = 7

    async def ready(self, client: Client) -> None:
        for queue in self.scene.queues:
            call = "AttachQueueServerToQueue"
            while await self.ask(client, call, (_HALTED,), QueueID=queue) is None and self.scene.is_busy:
                await self.scene.pause(2.0)

    async def step(self, client: Client) -> None:
        queue = self.chance.choice(self.scene.queues)
        taken = await self.take(client, queue)
        if taken is None:
            return
        job, number, handle = taken
        with self.holding(client, job, LedgerState.TAKEN, job.when_service_fails):
            await self._service(client, job, {"QueueID": queue, "JobNumber": number}, handle)

    async def take(self, client: Client, queue: int) -> tuple[KnownJob, int, bytes] | None:
        """Ask for a job; return it with its number and file handle, or None. Raises ClientLost."""
        since, none = self.ledger.step, (CompletionCode.ERR_NO_Q_JOB, _HALTED)
        service = object()
        self.ledger.services.add(service)
        try:
            reply = await self.ask(client, "ServiceQueueJob", none, QueueID=queue)
            if reply is None:
                self.ledger.service_ended(service)
                return None
            number = reply.Job.jobNumber
            gone = (CompletionCode.ERR_NO_Q_JOB,)  # removed meanwhile
            entry = await self.ask(client, "ReadQueueJobEntry", gone, QueueID=queue, JobNumber=number)
        except ClientLost:
            self.ledger.service_was_lost()
            asyncio.get_running_loop().call_later(AFTERMATH_S, self.ledger.service_ended, service)
            raise
        self.ledger.service_ended(service)
        if entry is None:
            return None
        job = self.ledger.of_record(entry.Job.queueRecord)
        self.ledger.given(job, client, since)
        self._check(job, entry.Job)
        self.counts["jobs taken"] += 1
        return job, number, file_handle(reply.Job.jobFileHandle)

    def _check(self, job: KnownJob, entry: Record) -> None:
        """Check that this server may have a job now. Raises Violation."""
        host, at = self.scene.host, job.request.target_execution_time
        if host is not None and at != AT_ONCE and times.from_bytes(at) > host.now():
            raise Violation(JobInvariant.ELIGIBLE, f"{job} was given out before its time")
        own = self.scene.servers[self.name]
        if job.request.target_server_id not in (ANY_SERVER, own):
            raise Violation(JobInvariant.ELIGIBLE, f"{job} is for another server")
        if entry.servicingServerIDNumber != own and job.states <= {LedgerState.TAKEN}:
            raise Violation(JobInvariant.ONE_SERVER, f"{job} is said to be in service at {entry!r}")

    async def _service(self, client: Client, job: KnownJob, what: dict[str, Any], handle: bytes) -> None:
        data = await self.read(client, job, handle)
        if data is None:
            return
        self.ledger.check_body(job, data)
        await self.scene.pause(2.0)
        match self.chance.choice(("finish",) * 5 + ("abort", "cut", "rights")):
            case "abort":
                call, target, name = "AbortServicingQueueJob", job.when_service_fails, "jobs aborted"
            case "cut":
                client.stream.cut()
                raise ClientLost("by itself")
            case "rights":
                await self.act(client, job, {LedgerState.TAKEN}, None, "ChangeToClientRights", **what)
                call, target, name = "FinishServicingQueueJob", LedgerState.GONE, "jobs finished"
            case _:
                call, target, name = "FinishServicingQueueJob", LedgerState.GONE, "jobs finished"
        done = await self.act(
            client, job, {LedgerState.TAKEN}, target, call, invariant=JobInvariant.ONE_SERVER, **what
        )
        self.counts[name] += done is not None

    async def read(self, client: Client, job: KnownJob, handle: bytes) -> bytes | None:
        """Read the file of a job; None if the job was removed meanwhile. Raises ClientLost."""
        data = b""
        while True:
            reply = await self.act(
                client, job, {LedgerState.TAKEN}, None, "ReadFile",
                FileHandle=handle, FileOffset=len(data), ByteCount=_READ_SIZE,
            )  # fmt: skip
            if reply is None:
                return None
            piece: bytes = reply.Data[len(data) % 2 :]
            data += piece
            if len(piece) < _READ_SIZE:
                return data


class QueueOperator(Actor):
    """Looks at the queues, holds, moves and removes jobs, and halts queues for a while."""

    async def ready(self, client: Client) -> None:
        for queue in self.scene.queues:
            await self.set_status(client, queue, 0)

    async def set_status(self, client: Client, queue: int, status: int) -> None:
        """Set the status of a queue. Raises ClientLost."""
        await self.ask(client, "SetQueueCurrentStatus", QueueID=queue, QueueStatus=status)

    async def listed(self, client: Client, queue: int) -> list[int]:
        """Return the numbers of all jobs, as they are listed in parts. Raises ClientLost."""
        numbers: list[int] = []
        while True:
            reply = await self.ask(client, "GetQueueJobList", QueueID=queue, StartPosition=len(numbers) + 1)
            assert reply is not None
            numbers += [one.JobNumber for one in reply.JobNumbers]
            if len(numbers) >= reply.TotalJobs or not reply.JobNumbers:
                return numbers

    async def step(self, client: Client) -> None:
        queue = self.chance.choice(self.scene.queues)
        if self.chance.random() < 0.1:
            await self.set_status(client, queue, self.chance.choice((1, 2, 4)))
            await self.scene.pause(5.0)
            await self.set_status(client, queue, 0)
        numbers = await self.listed(client, queue)
        if not numbers:
            return
        what: dict[str, Any] = {"QueueID": queue, "JobNumber": self.chance.choice(numbers)}
        gone = (CompletionCode.ERR_NO_Q_JOB,)
        entry = await self.ask(client, "ReadQueueJobEntry", gone, **what)
        if entry is None:
            return
        job = self.ledger.of_record(entry.Job.queueRecord)
        deeds: tuple[Callable[..., Awaitable[None]], ...] = (
            self._remove, self.hold, self.hold, self.hold, self._place, self._place, self._move,
        )  # fmt: skip
        await self.chance.choice(deeds)(client, job, what, entry.Job)

    async def _remove(self, client: Client, job: KnownJob, what: dict[str, Any], _entry: Record) -> None:
        removed = await self.act(client, job, LIVE, LedgerState.GONE, "RemoveJobFromQueue", **what)
        self.counts["jobs removed"] += removed is not None

    async def hold(self, client: Client, job: KnownJob, what: dict[str, Any], entry: Record) -> None:
        """Hold a job, or release one that is held. Raises ClientLost."""
        holds = JobControlFlags.NWCF_USER_HOLD | JobControlFlags.NWCF_OPERATOR_HOLD
        flags = int(entry.jobControlFlags)
        held = not flags & holds
        flags = flags | self.chance.choice(list(holds)) if held else flags & ~int(holds)
        self.ledger.hold(job, held, confirmed=False)
        fields = request_fields(replace(job.request, job_control_flags=flags), what["JobNumber"])
        changed = await self.act(
            client, job, {LedgerState.OPEN, LedgerState.QUEUED}, None,
            "ChangeQueueJobEntry", QueueID=what["QueueID"], Job=fields,
        )  # fmt: skip
        if changed is not None:
            self.ledger.hold(job, held)
            self.counts["jobs held" if held else "jobs released"] += 1

    async def _place(self, client: Client, job: KnownJob, what: dict[str, Any], _entry: Record) -> None:
        await self.act(
            client, job, LIVE, None, "ChangeQueueJobPosition",
            **what, NewPosition=self.chance.randrange(1, 12),
        )  # fmt: skip

    async def _move(self, client: Client, job: KnownJob, what: dict[str, Any], _entry: Record) -> None:
        other = self.chance.choice([queue for queue in self.scene.queues if queue != what["QueueID"]])
        moved = await self.act(
            client, job, {LedgerState.QUEUED}, None, "MoveQueueJobFromSrcQToDstQ",
            allowed=(_FULL, _HALTED), **what, DestinationQueueID=other,
        )  # fmt: skip
        self.counts["jobs moved"] += moved is not None
