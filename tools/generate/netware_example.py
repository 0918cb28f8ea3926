"""The capture of NetWare's queue services in examples/: a queue, and the life of a print job in it."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.ncp.job_structures import file_handle
from tests.support.capture.netware_captures import NcpTalk
from tests.support.captures import Frame, merged

START_NS: Final = 1_772_366_400_000_001_000  # 2026-03-01T12:00:00.000001Z
STEP_NS: Final = 187_000
SERVER: Final = "10.0.0.2"
ALICE, LASER = 0x0200_0007, 0x0300_0009
QUEUE: Final = 0x0500_000B
USER, GROUP, PRINT_QUEUE, PRINT_SERVER = 0x0001, 0x0002, 0x0003, 0x0007
NO_RIGHTS: Final = 0xD3
NO_JOB: Final = 0xD5
JOB: Final = 1
HANDLE: Final = bytes.fromhex("01007a31")
FILE_HANDLE: Final = file_handle(HANDLE)
ENTERED: Final = {"Year": 26, "Month": 3, "Day": 1, "Hour": 12, "Minute": 0, "Second": 1}
HEAD: Final = {
    "clientStation": 2,
    "clientTask": 1,
    "clientID": ALICE,
    "jobEntryTime": ENTERED,
    "jobNumber": JOB,
    "jobPosition": 1,
    "jobFileName": "Q$000B.001",
    "jobFileHandle": HANDLE,
}
FLAGS: Final = {"NWCF_SERVICE_AUTO_START": 1, "NWCF_SERVICE_RESTART": 1}
ASKED: Final = {"jobType": 1, "jobControlFlags": FLAGS}
OPEN: Final = {"jobControlFlags": {**FLAGS, "NWCF_ENTRY_OPEN": 1}}
RECORD: Final = (
    bytes([1, 8, 0, 1, 0, 0, 0, 66, 0, 80]) + b"LETTER".ljust(22, b"\0") + b"ALICE".ljust(13, b"\0")
)
"""The form of a print job: one copy, 66 lines of 80 characters, a form and a banner; zeroes follow."""
TEXT: Final = {"jobDescription": "Quarterly report", "queueRecord": RECORD.ljust(152, b"\0")}
DOCUMENT: Final = b"".join(b"%04d  The quick brown fox jumps over the lazy dog.\r\n" % n for n in range(40))
PART: Final = 1536
"""Bytes of the document in one call."""


def talks() -> list[NcpTalk]:
    """Return the traffic of four connections, one after the other."""
    return [_supervisor(), _user(), _operator(), _print_server()]


def frames() -> list[Frame]:
    """Return the frames of all connections."""
    return merged(*(talk.conversation.frames for talk in talks()))


def _talk(connection: int, at: float) -> NcpTalk:
    """A connection of another host, `at` seconds after the start."""
    start = START_NS + round(at * 1e9)
    client = f"10.0.0.{10 + connection}", 1024 + connection
    return NcpTalk(connection, client, SERVER, start_ns=start, step_ns=STEP_NS)


def _login(talk: NcpTalk, kind: int, name: str) -> NcpTalk:
    return talk.call("LoginObject", {"ObjectType": kind, "ObjectName": name})


def _supervisor() -> NcpTalk:
    """A supervisor makes a queue, and lets everyone use it and a print server service it."""
    talk = _login(_talk(1, 0.0), USER, "SUPERVISOR")
    queue = {"QueueType": PRINT_QUEUE, "QueueName": "REPORTS", "Path": "SYS:SYSTEM"}
    talk.call("CreateQueue", queue, {"QueueID": QUEUE})
    for name, kind, member in (
        ("Q_USERS", GROUP, "EVERYONE"),
        ("Q_OPERATORS", USER, "SUPERVISOR"),
        ("Q_SERVERS", PRINT_SERVER, "LASER"),
    ):
        to_set = {"ObjectType": PRINT_QUEUE, "ObjectName": "REPORTS", "PropertyName": name}
        talk.call("AddBinderyObjectToSet", {**to_set, "MemberType": kind, "MemberName": member})
    return talk.call("Logout").destroy()


def _user() -> NcpTalk:
    """A user finds the queue and submits a job; a user can't change the order of jobs."""
    talk = _login(_talk(2, 1.0), USER, "ALICE")
    wanted = {"ObjectType": PRINT_QUEUE, "ObjectName": "REPORTS"}
    talk.call("GetBinderyObjectID", wanted, {"ObjectID": QUEUE, **wanted})
    talk.call(
        "CreateQueueJobAndFile",
        {"QueueID": QUEUE, "Job": {**ASKED, **TEXT}},
        {"Job": {**HEAD, **ASKED, **OPEN}},
    )
    for at in range(0, len(DOCUMENT), PART):
        talk.call(
            "WriteFile", {"FileHandle": FILE_HANDLE, "FileOffset": at, "Data": DOCUMENT[at : at + PART]}
        )
    job = {"QueueID": QUEUE, "JobNumber": JOB}
    talk.call("CloseFileAndStartQueueJob", job)
    talk.call("ReadQueueJobEntry", job, {"Job": {**HEAD, **ASKED, **TEXT}})
    talk.call("ChangeQueueJobPosition", {**job, "NewPosition": 1}, completion=NO_RIGHTS)
    return talk.destroy()


def _operator() -> NcpTalk:
    """An operator looks at the queue."""
    talk = _login(_talk(3, 2.0), USER, "SUPERVISOR")
    talk.call("ReadQueueCurrentStatus", {"QueueID": QUEUE}, {"QueueID": QUEUE, "JobCount": 1})
    talk.call("GetQueueJobList", {"QueueID": QUEUE, "StartPosition": 1}, _listed(1))
    return talk.destroy()


def _print_server() -> NcpTalk:
    """A print server prints the job; then there is none left."""
    talk = _login(_talk(4, 3.0), PRINT_SERVER, "LASER")
    queue, job = {"QueueID": QUEUE}, {"QueueID": QUEUE, "JobNumber": JOB}
    talk.call("AttachQueueServerToQueue", queue)
    talk.call(
        "SetQueueServerCurrentStatus", {**queue, "ServerStatusRecord": b"\0\0\0\x02ready".ljust(64, b"\0")}
    )
    attached = {"JobCount": 1, "ServerIDs": [{"ServerID": LASER}], "ServerStations": [{"ServerStation": 4}]}
    talk.call("ReadQueueCurrentStatus", queue, {**queue, **attached})
    talk.call("GetQueueJobList", {**queue, "StartPosition": 1}, _listed(1))
    talk.call("ReadQueueJobEntry", job, {"Job": {**HEAD, **ASKED, **TEXT}})
    talk.call("GetQueueJobFileSize", job, {**job, "FileSize": len(DOCUMENT)})
    served = {"servicingServerStation": 4, "servicingServerTaskNumber": 1, "servicingServerIDNumber": LASER}
    talk.call("ServiceQueueJob", {**queue, "ServiceType": 0xFFFF}, {"Job": {**HEAD, **ASKED, **served}})
    for at in range(0, len(DOCUMENT), PART):
        data = DOCUMENT[at : at + PART]
        read = {"FileHandle": FILE_HANDLE, "FileOffset": at, "ByteCount": PART}
        talk.call("ReadFile", read, {"ByteCount": len(data), "Data": data})
    talk.wait(400_000_000).call("FinishServicingQueueJob", job)
    talk.call("ServiceQueueJob", queue, completion=NO_JOB)
    talk.call("DetachQueueServerFromQueue", queue)
    return talk.destroy()


def _listed(*jobs: int) -> dict[str, Any]:
    return {"TotalJobs": len(jobs), "JobNumbers": [{"JobNumber": job} for job in jobs]}
