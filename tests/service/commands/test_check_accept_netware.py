"""``msmqwire check --accept`` on a NetWare queue service: what was whole is served again."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from msmqwire.ncp.constants import JobControlFlags
from msmqwire.netware.model.job import Job
from msmqwire.netware.runtime.administration import attach
from msmqwire.netware.runtime.folder import STORE
from msmqwire.netware.store import rows
from msmqwire.netware.store.tables import NetwareTable, job_key, open_store
from msmqwire.service.store.changes import Changes
from tests.support.qm.damages import DAMAGES, damaged, whole_rows
from tests.support.qm.stores import change
from tests.support.running import called

JOBS = 30
JOB = Job(
    client_station=1,
    client_task=2,
    client_id=1,
    target_server_id=0xFFFFFFFF,
    target_execution_time=b"\xff" * 6,
    job_entry_time=bytes((89, 1, 2, 3, 4, 5)),
    job_number=1,
    job_type=3,
    job_control_flags=JobControlFlags(0),
    job_file_name="Q_0001.001",
    job_description=b"a job".ljust(50, b"\0"),
    queue_record=bytes(152),
)


@pytest.fixture
def folder(tmp_path: Path) -> tuple[Path, int, bytes]:
    """A folder with a queue of 30 jobs, the ID of the queue, and the store when it had none."""
    data = tmp_path / "data"
    with attach(data, create=True) as local:
        local.call("queue_create", name="LASER", type="print", path="SYS:SYSTEM")
    older = (data / STORE).read_bytes()
    with open_store(data / STORE, create=False) as store:
        ((queue, _),) = store.rows(NetwareTable.QUEUE)
        assert isinstance(queue, int)
        changes = Changes()
        for number in range(1, JOBS + 1):
            job = replace(JOB, job_number=number)
            changes.put(NetwareTable.JOB, job_key(queue, number), rows.write_job(job))
        changes.put(NetwareTable.ORDER, queue, rows.write_order(list(range(1, JOBS + 1))))
        store.commit(changes)
    assert (called("check", data).status, jobs(data)) == (0, {queue: list(range(1, JOBS + 1))})
    return data, queue, older


def jobs(data: Path) -> dict[Any, list[int]]:
    """The numbers of the jobs of each queue, in order, after a start."""
    with attach(data):
        pass
    with open_store(data / STORE, create=False) as store:
        return {queue: list(rows.read_order(row)) for queue, row in store.rows(NetwareTable.ORDER)}


def accepted(data: Path) -> list[Any]:
    run = called("check", data, "--accept", "--yes")
    assert (run.status, run.err, run.lines[-1]["faults"]) == (0, "", 0), run
    return run.lines


def test_a_lost_job_leaves_the_others(folder: tuple[Path, int, bytes]) -> None:
    data, queue, _ = folder
    change(data / STORE, f"UPDATE job SET content = x'00' WHERE key = {job_key(queue, 3)}")
    assert "job 3 of LASER" in [line.get("name") for line in accepted(data)]
    assert jobs(data) == {queue: [number for number in range(1, JOBS + 1) if number != 3]}


@pytest.mark.parametrize(
    "lost, name",
    [
        (("queue",), "LASER"),
        (("object",), None),
        (("queue", "object"), None),
        (("queue", "job_order"), "LASER"),
        (("job_order",), "LASER"),
    ],
)
def test_a_lost_queue_is_made_again(
    folder: tuple[Path, int, bytes], lost: tuple[str], name: str | None
) -> None:
    data, queue, _ = folder
    change(data / STORE, *(f"DELETE FROM {table} WHERE key = {queue}" for table in lost))
    accepted(data)
    assert jobs(data) == {queue: list(range(1, JOBS + 1))}
    with attach(data) as local:
        names = [found["queue"] for found in local.call("queue_list")["queues"]]
    assert names == [name or f"RECOVERED_{queue:X}"]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", DAMAGES)
def test_jobs_that_were_whole_are_kept(
    folder: tuple[Path, int, bytes], kind: str, seed: int, tmp_path: Path
) -> None:
    data, queue, older = folder
    intact = (data / STORE).read_bytes()
    damage = damaged(kind, intact, older, random.Random(f"{kind} {seed}"))
    (data / STORE).write_bytes(damage)
    (tmp_path / "intact").write_bytes(intact)
    (tmp_path / "damage").write_bytes(damage)
    run = called("check", data, "--accept", "--yes")
    if run.status:
        assert "nothing of it can be read" in run.error(65)["error"]
        assert (data / STORE).read_bytes() == damage != intact
        return
    assert called("check", data).lines[-1]["faults"] == 0
    lost = {line["name"] for line in run.lines if line.get("what") == "job"}
    kept = jobs(data).get(queue, [])
    numbers = {job_key(queue, number): number for number in range(1, JOBS + 1)}
    whole = whole_rows(tmp_path / "damage", tmp_path / "intact", numbers, "job")
    assert {numbers[key] for key in whole} <= set(kept)
    assert not {f"job {number} of LASER" for number in kept} & lost
