"""The data of the queue calls, NCP function 23, subfunctions 100 to 138.

Object ids and numbers of the old calls are big-endian; most numbers of the newer ones are little-endian.
Where public descriptions disagree, the layouts are those that work with real servers.
"""

from __future__ import annotations

from typing import Final

from msmqwire.ncp.calls import Call
from msmqwire.ncp.constants import ANY_JOB_TYPE, QUEUE_SERVERS_MAX, SERVER_STATUS_SIZE
from msmqwire.ncp.job_structures import NEW_JOB, NEW_JOB_HEAD, OLD_JOB, OLD_JOB_HEAD
from msmqwire.schema import Flags, Header, Part, Ref, bit, flags, oem_text, raw, repeat, reserved, sub, uint

_SECTION: Final = "NCP function 23, queue services"


def _structure(name: str, *parts: Part, meaning: str = "", variant: str = "") -> Header:
    return Header(f"Ncp{name}", _SECTION, parts, meaning, variant=variant)


def _queue_id(name: str = "QueueID", meaning: str = "The object id of the queue.") -> Part:
    return uint(32, name, meaning, big_endian=True)


def _status(bits: int) -> Flags:
    return flags(
        bits,
        "QueueStatus",
        bit("CantAddJobs", 0, "No jobs may be added."),
        bit("ServersCantAttach", 1, "No more queue servers may attach."),
        bit("CantServiceJobs", 2, "Queue servers get no jobs."),
        reserved(" ".join(f"X{number}" for number in range(3, bits)), 3),
    )


_QUEUE: Final = _queue_id()
_OLD_NUMBER: Final = uint(16, "JobNumber", "The number of the job.", big_endian=True)
_NUMBER: Final = uint(32, "JobNumber", "The number of the job; clients copy it unchanged.")
_SERVER: Final = uint(32, "ServerID", "The object id of a queue server.", big_endian=True)
_START: Final = uint(32, "StartPosition", "The position in the queue of the first job wanted; 1 is its head.")
_FILE_SIZE: Final = uint(32, "FileSize", "Bytes of data in the job's file.", unit="bytes", big_endian=True)
_RECORD: Final = raw("ServerStatusRecord", SERVER_STATUS_SIZE, "Defined by the queue server.")

_OLD_NUMBERS: Final = _structure("OldJobNumber", _OLD_NUMBER)
JOB_NUMBERS: Final = _structure("JobNumber", _NUMBER)
_SERVER_IDS: Final = _structure("ServerID", _SERVER)

EMPTY: Final = _structure("Empty", meaning="No data.")
QUEUE: Final = _structure("Queue", _QUEUE, meaning="A queue.")
OLD_JOB_OF_QUEUE: Final = _structure("OldJobOfQueue", _QUEUE, _OLD_NUMBER, meaning="A job by its number.")
JOB_OF_QUEUE: Final = _structure("JobOfQueue", _QUEUE, _NUMBER, meaning="A job by its number.")
CREATE_QUEUE: Final = _structure(
    "CreateQueue",
    uint(16, "QueueType", "The object type of the queue.", big_endian=True),
    uint(8, "QueueNameLength"),
    oem_text("QueueName", Ref("QueueNameLength"), "The name of the queue."),
    uint(8, "DirectoryHandle", "0: the path is complete."),
    uint(8, "PathLength"),
    oem_text("Path", Ref("PathLength"), "Where QMS makes the queue directory."),
    meaning="A queue to be created.",
)
OLD_STATUS: Final = _structure("OldQueueStatus", _QUEUE, _status(8), meaning="The status of a queue.")
STATUS: Final = _structure("QueueStatus", _QUEUE, _status(32), meaning="The status of a queue.")
OLD_CURRENT_STATUS: Final = _structure(
    "OldQueueCurrentStatus",
    _QUEUE,
    _status(8),
    uint(8, "JobCount", "Jobs in the queue."),
    uint(8, "ServerCount", "Queue servers attached."),
    repeat("ServerIDs", "ServerCount", _SERVER_IDS, "The queue servers attached."),
    repeat("ServerStations", "ServerCount", _structure("OldStation", uint(8, "ServerStation"))),
    meaning="The status of a queue and the queue servers attached to it.",
)
OLD_STATUS_IN_SLOTS: Final = _structure(
    "OldQueueCurrentStatus",
    _QUEUE,
    _status(8),
    uint(8, "JobCount", "Jobs in the queue."),
    uint(8, "ServerCount", "Slots in use."),
    *(
        uint(32, f"ServerID{slot}", "The object id of a queue server.", big_endian=True)
        for slot in range(1, QUEUE_SERVERS_MAX + 1)
    ),
    *(uint(8, f"ServerStation{slot}") for slot in range(1, QUEUE_SERVERS_MAX + 1)),
    meaning="The status of a queue with room for all queue servers.",
    variant="Slots",
)
CURRENT_STATUS: Final = _structure(
    "QueueCurrentStatus",
    _QUEUE,
    _status(32),
    uint(32, "JobCount", "Jobs in the queue."),
    uint(32, "ServerCount", "Queue servers attached."),
    repeat("ServerIDs", "ServerCount", _SERVER_IDS, "The queue servers attached."),
    repeat("ServerStations", "ServerCount", _structure("Station", uint(32, "ServerStation"))),
    meaning="The status of a queue and the queue servers attached to it.",
)
OLD_JOB_IN_QUEUE: Final = _structure("OldQueueAndJob", _QUEUE, sub(OLD_JOB, "Job"), meaning="A job.")
JOB_IN_QUEUE: Final = _structure("QueueAndJob", _QUEUE, sub(NEW_JOB, "Job"), meaning="A job.")
JOB_ALONE: Final = _structure("Job", sub(NEW_JOB, "Job"), meaning="A job.")
OLD_JOB_ALONE: Final = _structure("OldJob", sub(OLD_JOB, "Job"), meaning="A job.")
JOB_HEAD: Final = _structure("JobHead", sub(NEW_JOB_HEAD, "Job"), meaning="A job without its description.")
OLD_HEAD: Final = _structure("OldJobHead", sub(OLD_JOB_HEAD, "Job"), meaning="A job without its description.")
OLD_LIST: Final = _structure(
    "OldJobList",
    uint(16, "JobCount", "Numbers that follow.", big_endian=True),
    repeat("JobNumbers", "JobCount", _OLD_NUMBERS, "The jobs in the order of the queue."),
    meaning="The jobs of a queue.",
)
LIST: Final = _structure(
    "JobList",
    uint(32, "TotalJobs", "Jobs in the queue."),
    uint(32, "JobCount", "Numbers that follow, at most 125."),
    repeat("JobNumbers", "JobCount", JOB_NUMBERS, "Jobs in the order of the queue."),
    meaning="Jobs of a queue.",
)
START: Final = _structure("JobListStart", _QUEUE, _START, meaning="From where jobs are listed.")
NEW_POSITION: Final = _structure(
    "NewPosition",
    _QUEUE,
    _OLD_NUMBER,
    uint(8, "NewPosition", "1 to 250."),
    meaning="A job and its new place in the queue.",
)
PRIORITY: Final = _structure(
    "JobPriority",
    _QUEUE,
    _NUMBER,
    uint(32, "Priority", "The new position; 1 is the head of the queue."),
    meaning="A job and its new place in the queue.",
)


def _service(name: str) -> Header:
    kind = uint(
        16, "ServiceType", "The type of job wanted; 0xFFFF: any.", default=ANY_JOB_TYPE, big_endian=True
    )
    return _structure(name, _QUEUE, kind, meaning="A request for a job.")


OLD_SERVICE: Final = _service("OldServiceType")
SERVICE: Final = _service("ServiceType")
OLD_CHARGE: Final = _structure(
    "OldJobCharge", _QUEUE, _OLD_NUMBER, uint(32, "Charge", "For accounting.", big_endian=True)
)
OLD_SHORT_CHARGE: Final = _structure(
    "OldJobCharge",
    _QUEUE,
    _OLD_NUMBER,
    uint(16, "Charge", "For accounting.", big_endian=True),
    variant="Short",
)
CHARGE: Final = _structure(
    "JobCharge", _QUEUE, _NUMBER, uint(32, "Charge", "For accounting.", big_endian=True)
)
OLD_SERVER: Final = _structure("OldQueueServer", _QUEUE, _SERVER, uint(8, "ServerStation"))
SERVER: Final = _structure("QueueServer", _QUEUE, _SERVER, uint(32, "ServerStation"))
SERVER_STATUS: Final = _structure("ServerStatus", _RECORD, meaning="The status that a queue server reports.")
SET_SERVER_STATUS: Final = _structure("SetServerStatus", _QUEUE, _RECORD)
OLD_FILE_SIZE: Final = _structure("OldJobFileSize", _QUEUE, _OLD_NUMBER, _FILE_SIZE)
FILE_SIZE: Final = _structure("JobFileSize", _QUEUE, _NUMBER, _FILE_SIZE)
MOVE: Final = _structure(
    "MoveJob", _QUEUE, _NUMBER, _queue_id("DestinationQueueID", "The queue that the job goes to.")
)
MOVED: Final = _structure("MovedJob", _NUMBER, meaning="The number of the job in its new queue.")
FORMS: Final = _structure(
    "JobForms",
    _QUEUE,
    _START,
    uint(32, "FormCount", "Job types that follow."),
    repeat("Forms", "FormCount", _structure("Form", uint(16, "Form", "A job type."))),
    meaning="The job types that are wanted.",
)

QUEUE_CALLS: Final = (
    Call(100, "CreateQueue", CREATE_QUEUE, QUEUE),
    Call(101, "DestroyQueue", QUEUE, EMPTY),
    Call(
        102,
        "ReadQueueCurrentStatusOld",
        QUEUE,
        OLD_CURRENT_STATUS,
        other_replies=(OLD_STATUS_IN_SLOTS,),
    ),
    Call(103, "SetQueueCurrentStatusOld", OLD_STATUS, EMPTY),
    Call(104, "CreateQueueJobAndFileOld", OLD_JOB_IN_QUEUE, OLD_HEAD),
    Call(105, "CloseFileAndStartQueueJobOld", OLD_JOB_OF_QUEUE, EMPTY),
    Call(106, "RemoveJobFromQueueOld", OLD_JOB_OF_QUEUE, EMPTY),
    Call(107, "GetQueueJobListOld", QUEUE, OLD_LIST),
    Call(108, "ReadQueueJobEntryOld", OLD_JOB_OF_QUEUE, OLD_JOB_ALONE),
    Call(109, "ChangeQueueJobEntryOld", OLD_JOB_IN_QUEUE, EMPTY, others=(OLD_JOB_ALONE,)),
    Call(110, "ChangeQueueJobPosition", NEW_POSITION, EMPTY),
    Call(111, "AttachQueueServerToQueue", QUEUE, EMPTY),
    Call(112, "DetachQueueServerFromQueue", QUEUE, EMPTY),
    Call(113, "ServiceQueueJobOld", OLD_SERVICE, OLD_HEAD),
    Call(114, "FinishServicingQueueJobOld", OLD_CHARGE, EMPTY, others=(OLD_SHORT_CHARGE,)),
    Call(115, "AbortServicingQueueJobOld", OLD_JOB_OF_QUEUE, EMPTY),
    Call(116, "ChangeToClientRightsOld", OLD_JOB_OF_QUEUE, EMPTY),
    Call(117, "RestoreQueueServerRights", EMPTY, EMPTY),
    Call(118, "ReadQueueServerCurrentStatusOld", OLD_SERVER, SERVER_STATUS),
    Call(119, "SetQueueServerCurrentStatus", SET_SERVER_STATUS, EMPTY),
    Call(120, "GetQueueJobFileSizeOld", OLD_JOB_OF_QUEUE, OLD_FILE_SIZE),
    Call(121, "CreateQueueJobAndFile", JOB_IN_QUEUE, JOB_HEAD),
    Call(122, "ReadQueueJobEntry", JOB_OF_QUEUE, JOB_ALONE),
    Call(123, "ChangeQueueJobEntry", JOB_IN_QUEUE, EMPTY, others=(OLD_JOB_IN_QUEUE,)),
    Call(124, "ServiceQueueJob", SERVICE, JOB_HEAD),
    Call(125, "ReadQueueCurrentStatus", QUEUE, CURRENT_STATUS),
    Call(126, "SetQueueCurrentStatus", STATUS, EMPTY, others=(OLD_STATUS,)),
    Call(127, "CloseFileAndStartQueueJob", JOB_OF_QUEUE, EMPTY),
    Call(128, "RemoveJobFromQueue", JOB_OF_QUEUE, EMPTY),
    Call(129, "GetQueueJobList", START, LIST),
    Call(130, "ChangeJobPriority", PRIORITY, EMPTY),
    Call(131, "FinishServicingQueueJob", CHARGE, EMPTY),
    Call(132, "AbortServicingQueueJob", JOB_OF_QUEUE, EMPTY),
    Call(133, "ChangeToClientRights", JOB_OF_QUEUE, EMPTY),
    Call(134, "ReadQueueServerCurrentStatus", SERVER, SERVER_STATUS),
    Call(135, "GetQueueJobFileSize", JOB_OF_QUEUE, FILE_SIZE),
    Call(136, "MoveQueueJobFromSrcQToDstQ", MOVE, MOVED),
    Call(137, "GetQueueJobsFromFormList", FORMS, LIST),
    Call(138, "ServiceQueueJobByFormList", FORMS, JOB_HEAD),
)
