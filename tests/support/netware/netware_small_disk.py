"""A queue service on a small disk that is filled and drained; run in a separate mount namespace.

    unshare -m python -m tests.support.netware.netware_small_disk FOLDER    (as root; else `unshare -rm`)

mounts a file system of 8 MiB on FOLDER and prints the events there as one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

from msmqwire.errors import NcpRefused
from msmqwire.ncp.constants import CompletionCode
from msmqwire.netware.runtime import driver as driver_module
from tests.support.netware.netware_folder import DrivenFolder
from tests.support.running import PATIENCE_S

SIZE_MIB = 8
MIN_FREE = 2 << 20
LOOK_S = 0.05
DATA = bytes(100_000)


def fill(driven: DrivenFolder) -> list[int]:
    """Submit jobs until the disk takes no more; return their numbers. The last one stays open."""
    alice = driven.connect("ALICE")
    alice.has_proved = True  # it may take the whole room
    submitted: list[int] = []
    try:
        while True:
            job = driven.open_job(alice)
            driven.write(alice, job, DATA)
            driven.start(alice, job)
            submitted.append(job.job_number)
            driven.await_(asyncio.sleep(LOOK_S / 10))  # the disk is looked at from time to time
    except NcpRefused as exc:
        if exc.code != CompletionCode.OUT_OF_DISK_SPACE:
            raise
    driven.do(lambda s: s.connection_lost(alice))
    return submitted


def drain(driven: DrivenFolder) -> list[int]:
    """Service all jobs; return their numbers."""
    server = driven.server()
    finished: list[int] = []
    try:
        while True:
            job = driven.take_job(server)
            assert driven.read(server, job, 90_000) == DATA[90_000:]
            driven.do(lambda s, job=job: s.servicing.finish(server, driven.queue_id, job.job_number))
            finished.append(job.job_number)
    except NcpRefused as exc:
        if exc.code != CompletionCode.ERR_NO_Q_JOB:
            raise
    driven.do(lambda s: s.connection_lost(server))
    return finished


def accepted(driven: DrivenFolder) -> bool:
    """Wait until jobs are taken again."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if driven.do(lambda s: s.files.has_room):
            return True
        driven.await_(asyncio.sleep(LOOK_S))  # the timer of the driver runs in this loop alone
    return False


def main(folder: Path) -> dict[str, object]:
    """Fill and drain twice, then once with nothing left on the disk."""
    size = f"size={SIZE_MIB}m"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "none", folder], check=True, timeout=PATIENCE_S)
    report: dict[str, object] = {}
    driver_module.ROOM_S = LOOK_S  # type: ignore[misc]
    with DrivenFolder(folder / "data", min_free=MIN_FREE) as driven:
        restarts: list[int] = []
        driven.driver.on_restart = lambda: restarts.append(1)
        for turn in ("first", "second"):
            submitted = fill(driven)
            report[f"{turn} submitted"] = len(submitted)
            report[f"{turn} finished"] = drain(driven) == submitted
            report[f"{turn} taken again"] = accepted(driven)
        submitted = fill(driven)
        with (folder / "filler").open("wb") as file:  # of somebody else, up to the last byte
            try:
                while True:
                    file.write(bytes(4096))
                    file.flush()
            except OSError:
                report["finished on a full disk"] = drain(driven) == submitted
        report["restarts"] = len(restarts)
        driven.check_shown()
        report["files"] = driven.files()
    return report


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
