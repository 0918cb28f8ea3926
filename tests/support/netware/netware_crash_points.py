"""A queue service killed at each of its writes in turn; run as a program, for it forks.

    python -m tests.support.netware.netware_crash_points FOLDER FIRST STEP

See `tests.support.qm.crash_points`. The life of jobs is checked: none that was acknowledged as submitted is
lost, none that was acknowledged as finished comes back, positions are 1 to n, no file is there that no row
has.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from msmqwire.ncp.constants import JobControlFlags, ObjectType
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.job import JobRequest
from msmqwire.netware.rules.service import QueueService
from msmqwire.netware.runtime.driver import ServiceDriver
from msmqwire.netware.runtime.folder import NetwareFolder
from msmqwire.netware.store.volumes import Volumes
from msmqwire.service.store import Store
from tests.support.netware.netware_folder import ADMIN, NOON, structures
from tests.support.qm.crash_points import main

FIRST, SECOND = 4, 5
"""The IDs of the queues, which follow SUPERVISOR, a user and a queue server."""
_AUTO: Final = JobControlFlags.NWCF_SERVICE_AUTO_START
_RESTART: Final = JobControlFlags.NWCF_SERVICE_RESTART


async def live(data: Path, told: Callable[[str], None]) -> None:
    """The life of two queues; `told` is called with each answer."""
    folder = NetwareFolder(data)
    with folder.open_store(create=True) as store:
        driver = ServiceDriver(store, folder.open_volumes())
        await driver.start()

        def people(service: QueueService) -> tuple[int, int]:
            user = service.bindery.create_object(ADMIN, "ALICE", ObjectType.NWOT_USER).id
            return user, service.bindery.create_object(ADMIN, "PS1", ObjectType.NWOT_PRINT_SERVER).id

        def queues(service: QueueService) -> None:
            for name in ("FIRST", "SECOND"):
                queue = service.queues.create(ADMIN, name, ObjectType.NWOT_PRINT_QUEUE, "SYS:SYSTEM")
                for set_name, member in (("Q_USERS", user), ("Q_OPERATORS", user), ("Q_SERVERS", server)):
                    service.properties.add_member(ADMIN, queue, set_name, member)

        user, server = await driver.run(people)
        await driver.run(queues)
        told("queues")
        alice, printer = Caller(1, object_id=user), Caller(2, object_id=server)

        async def opened(text: bytes, flags: int) -> int:
            request = JobRequest(job_control_flags=flags)
            job = await driver.run(lambda s: s.jobs.create(alice, FIRST, request, NOON))
            access = await driver.run(lambda s: s.files.write(alice, job.job_file_handle, 0, len(text)))
            await driver.write_file(access.file, 0, text)
            return job.job_number

        async def submit(text: bytes, flags: int = _RESTART) -> None:
            number = await opened(text, flags)
            await driver.run(lambda s: s.jobs.close_and_start(alice, FIRST, number))
            told(f"{text.decode()} submitted")

        async def in_service() -> int:
            job = await driver.run(lambda s: s.servicing.service(printer, FIRST, now=NOON))
            return job.job_number

        await asyncio.gather(submit(b"one"), submit(b"two"), submit(b"three"))
        await opened(b"open", _AUTO)
        told("opened")
        await opened(b"dropped", 0)
        await driver.run(lambda s: s.servicing.attach(printer, FIRST))
        number = await in_service()
        told("finishing")
        await driver.run(lambda s: s.servicing.finish(printer, FIRST, number))
        told("one finished")
        told("moving")
        await driver.run(lambda s: s.jobs.move(alice, FIRST, 2, SECOND))
        told("two moved")
        await in_service()
        told("destroying")
        await driver.run(lambda s: s.queues.destroy(ADMIN, SECOND))
        told("second destroyed")
        await driver.close()
        told("closed")


def wrong(data: Path, told: set[str]) -> str:
    """The differences from the answers; empty if all is well."""
    folder = NetwareFolder(data)
    with folder.open_store(create=True) as store:
        return asyncio.run(_wrong(store, folder.open_volumes(), data, told))


async def _wrong(store: Store, volumes: Volumes, data: Path, told: set[str]) -> str:
    driver = ServiceDriver(store, volumes)
    await driver.start()
    service = await driver.run(lambda s: s)
    queues = service.queue_table
    try:
        if "queues" in told and not queues.keys() >= ({FIRST} if "destroying" in told else {FIRST, SECOND}):
            return f"the queues are gone: {list(queues)}"
        if "second destroyed" in told and SECOND in queues:
            return "a queue has come back"
        found: dict[str, Any] = {}
        directories = {path.name for path in (data / "volumes" / "SYS").glob("SYSTEM/*")}
        if directories != {f"{queue_id:06X}" for queue_id in queues}:
            return f"directories: {directories}"
        for queue_id, queue in queues.items():
            directory, stem = data / "volumes/SYS/SYSTEM" / f"{queue_id:06X}", f"Q${queue_id:04X}"
            shown = structures((directory / f"{stem}.SYS").read_bytes())
            if [(job.job_number, job.job_position) for job in shown] != [
                (number, place) for place, number in enumerate(queue.order, 1)
            ]:
                return f"the system file: {shown}"
            names = {f"{stem}.SYS", f"{stem}.SRV", *(job.job_file_name for job in queue.jobs.values())}
            if {path.name for path in directory.iterdir()} != names:
                return f"files: {sorted(path.name for path in directory.iterdir())}"
            for job in queue.jobs.values():
                content = (directory / job.job_file_name).read_bytes()
                if structures(content[:256]) != [one for one in shown if one.job_number == job.job_number]:
                    return f"the head of job {job.job_number}"
                if job.in_service or job.is_open:
                    return f"job {job.job_number} has outlived its connection"
                found.setdefault(content[256:].decode(), []).append(queue_id)
        return _jobs_wrong(found, told)
    finally:
        await driver.close()


def _jobs_wrong(found: dict[str, list[int]], told: set[str]) -> str:
    if any(len(places) > 1 for places in found.values()):
        return f"a job is there twice: {found}"
    if "dropped" in found:
        return "an open job without automatic start is there after its connection"
    for job, until in (("one", "finishing"), ("two", "destroying"), ("three", "")):
        if f"{job} submitted" in told and job not in found and until not in told:
            return f"the job {job} is lost"
    if "opened" in told and "open" not in found:
        return "an open job with automatic start is lost"
    if "one finished" in told and "one" in found:
        return "a job that was finished is back"
    if found.get("two", [FIRST]) != [FIRST] and "moving" not in told:
        return "a job has moved by itself"
    if "two moved" in told and found.get("two", [SECOND]) != [SECOND]:
        return "a job that was moved is back"
    return ""


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), live, wrong)))
