"""What lint finds in captured packets of NCP: values, the order of calls, byte orders, attacks."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from msmqwire.analysis.dissection import Item, dissect
from msmqwire.analysis.lint import checks, ncp_readings
from msmqwire.analysis.lint.ncp_attacks import NCP
from msmqwire.analysis.lint.ncp_session import JOBS_FOLLOWED_MAX
from msmqwire.ncp.packets import CALLS
from msmqwire.ncp.readings import Readings
from tests.support import captures as c
from tests.support.capture.netware_captures import NcpTalk, reply_unit, request_unit
from tests.support.codec_checks import proving

QUEUE, LASER = 0x0500_000B, 0x0300_0009
TIME = {"Year": 26, "Month": 3, "Day": 1, "Hour": 24, "Minute": 0, "Second": 1}
ASKED = {"jobType": 3, "jobDescription": "report"}
HEAD = {"jobNumber": 1, "jobPosition": 1, "jobEntryTime": TIME, "jobType": 3, "jobFileName": "Q$000B.001"}
OPEN = {**HEAD, "jobControlFlags": {"NWCF_ENTRY_OPEN": 1}}
SERVED = {**HEAD, "servicingServerIDNumber": LASER}
OF_QUEUE = {"QueueID": QUEUE}
JOB = {**OF_QUEUE, "JobNumber": 1}
CREATE, READ, SERVICE = "CreateQueueJobAndFile", "ReadQueueJobEntry", "ServiceQueueJob"
START, FINISH = "CloseFileAndStartQueueJob", "FinishServicingQueueJob"
ATTACH = ("AttachQueueServerToQueue", OF_QUEUE)
Call = tuple[Any, ...]


def items(talk: NcpTalk, **options: Any) -> list[Item]:
    return list(dissect(io.BytesIO(c.pcap_bytes(talk.conversation.frames)), **options))


def talked(*calls: Call) -> NcpTalk:
    talk = NcpTalk(7)
    for call in calls:
        talk.call(*call)
    return talk


def found(talk: NcpTalk, **options: Any) -> list[tuple[str, str, str]]:
    """Id, field and kind of packet of each finding; its offset is that of the field."""
    result = []
    for item in items(talk, **options):
        for finding in item.findings:
            assert 0 <= finding.offset < len(item.raw)
            result.append((finding.id, finding.path, item.kind))
    return result


def create(**changed: Any) -> Call:
    return CREATE, {**OF_QUEUE, "Job": {**ASKED, **changed}}, {"Job": {**OPEN, **answered(changed)}}


def answered(changed: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in changed.items() if name in ("jobType", "targetExecutionTime")}


def read(**changed: Any) -> Call:
    return READ, JOB, {"Job": {**HEAD, **changed}}


def service(**changed: Any) -> Call:
    return SERVICE, {**OF_QUEUE, "ServiceType": 3}, {"Job": {**SERVED, **changed}}


def of_property(name: str, flags: int) -> Call:
    fields = {"ObjectType": 3, "ObjectName": "REPORTS", "PropertyName": name, "PropertyFlags": flags}
    return "CreateProperty", fields


def new_queue(**changed: Any) -> Call:
    fields = {"QueueType": 3, "QueueName": "REPORTS", "Path": "SYS:SYSTEM", **changed}
    return "CreateQueue", fields, OF_QUEUE


def listed(*numbers: int, total: int | None = None) -> Call:
    fields = {"JobNumbers": [{"JobNumber": number} for number in numbers]}
    fields["TotalJobs"] = len(numbers) if total is None else total
    return "GetQueueJobList", {**OF_QUEUE, "StartPosition": 1}, fields


FAR = {**TIME, "Month": 13}
ONE_PACKET: list[tuple[str, str, str, Call]] = [
    ("QMS-flags-11", "NcpQueueAndJob.Job.jobControlFlags", "request", create(jobControlFlags=0x8001)),
    ("QMS-flags-11", "NcpJob.Job.jobControlFlags", "reply", read(jobControlFlags=0x04)),
    ("QMS-jobfields-29", "NcpQueueAndJob.Job.jobType", "request",
     (CREATE, {**OF_QUEUE, "Job": {**ASKED, "jobType": 0xFFFF}}, None)),
    ("QMS-jobfields-38", "NcpQueueAndJob.Job.jobDescription", "request", create(jobDescription=b"x" * 50)),
    ("QMS-jobfields-38", "NcpQueueAndJob.Job.jobDescription", "request", create(jobDescription="é")),
    ("QMS-jobfields-25", "NcpJob.Job.jobEntryTime.Month", "reply", read(jobEntryTime=FAR)),
    ("QMS-jobfields-25", "NcpJob.Job.targetExecutionTime.Hour", "reply",
     read(targetExecutionTime={**TIME, "Hour": 25})),
    ("QMS-jobfields-32", "NcpJob.Job.jobPosition", "reply", read(jobPosition=0)),
    ("QMS-jobfields-28", "NcpJob.Job.jobNumber", "reply", read(jobNumber=2)),
    ("QMS-jobfields-36", "NcpJob.Job.servicingServerIDNumber", "reply",
     read(jobControlFlags=0x20, servicingServerIDNumber=LASER)),
    ("QMS-submit-04", "NcpJobHead.Job.jobControlFlags", "reply",
     (*create()[:2], {"Job": HEAD})),
    ("QMS-jobfields-19", "NcpJobHead.Job.jobType", "reply", (*create()[:2], {"Job": {**OPEN, "jobType": 4}})),
    ("QMS-ext-08", "NcpJob.Job.jobPosition", "reply", read(jobPosition=251)),
    ("QMS-ext-08", "NcpJobList.TotalJobs", "reply", listed(1, total=251)),
    ("QMS-ext-08", "NcpJobList.JobNumbers[1].JobNumber", "reply", listed(1, 1000)),
    ("QMS-monitor-20", "NcpJobList.JobNumbers[2].JobNumber", "reply", listed(1, 2, 1)),
    ("QMS-monitor-20", "NcpJobList.JobCount", "reply", listed(1, 2, total=1)),
    ("QMS-ext-07", "NcpNewPosition.NewPosition", "request",
     ("ChangeQueueJobPosition", {**JOB, "NewPosition": 0})),
    ("QMS-ext-07", "NcpJobPriority.Priority", "request", ("ChangeJobPriority", {**JOB, "Priority": 251})),
    ("QMS-qobject-05", "NcpCreateQueue.QueueType", "request", new_queue(QueueType=0xFFFF)),
    ("QMS-qdir-04", "NcpCreateQueue.PathLength", "request", new_queue(Path="")),
    ("QMS-qdir-09", "NcpCreateQueue.PathLength", "request", new_queue(Path="P" * 128)),
    ("QMS-qprops-02", "NcpCreateProperty.PropertyName", "request", of_property("Q_DIRECTOR", 0)),
    ("QMS-qdir-10", "NcpCreateProperty.PropertyFlags", "request", of_property("Q_DIRECTORY", 2)),
    ("QMS-createq-06", "NcpCreateProperty.PropertyFlags", "request", of_property("Q_USERS", 0)),
]  # fmt: skip
OF_CLIENTS = ("QMS-jobfields-29", "QMS-jobfields-38", "QMS-qobject-05", "QMS-qdir-04", "QMS-qprops-02")
"""Rows about what clients send."""


@pytest.mark.parametrize(
    "id, path, side, call",
    [
        pytest.param(*case, marks=[pytest.mark.requirement(case[0])] if case[0] in OF_CLIENTS else [])
        for case in ONE_PACKET
    ],
)
def test_one_exchange(id, path, side, call):
    completion = {"completion": 0xD3} if len(call) > 2 and call[2] is None else {}
    talk = NcpTalk(7)
    talk.call(*call, **completion)
    assert found(talk) == [(id, path, f"{call[0]} {side}")]


ADVISED = ("flags-11", "jobfields-29", *(f"ext-{number:02}" for number in (3, 5, 7, 8, 16)))


@pytest.mark.parametrize("id", [proving(f"QMS-{name}", ids=f"QMS-{name}") for name in ADVISED])
def test_what_is_only_advised_is_no_violation(id):
    assert [check.severity for check in checks() if check.id == id] == ["SHOULD"]


def test_what_is_right_has_no_findings():
    removed = ("RemoveJobFromQueue", JOB)
    talk = talked(
        new_queue(), create(targetExecutionTime=TIME), (START, JOB), read(), listed(1),
        of_property("Q_USERS", 2),
        ("ChangeQueueJobPosition", {**JOB, "NewPosition": 250}), ATTACH, service(),
        ("ChangeToClientRights", JOB), ("RestoreQueueServerRights",), (FINISH, JOB), create(), removed,
        listed(),
    )  # fmt: skip
    assert found(talk) == []


BAR = "NcpJobHead.Job.jobControlFlags"
HANDED_OUT = [
    ("QMS-manage-15", "NcpJobHead.Job.servicingServerIDNumber", {"servicingServerIDNumber": 0}),
    ("QMS-manage-07", "NcpJobHead.Job.targetServerID", {"targetServerID": LASER + 1}),
    ("QMS-manage-10", "NcpJobHead.Job.jobType", {"jobType": 4}),
    ("QMS-manage-12", BAR, {"jobControlFlags": 0x40}),
    ("QMS-manage-13", BAR, {"jobControlFlags": 0x80}),
]


@pytest.mark.parametrize(
    "id, path, changed",
    [pytest.param(*case, marks=[pytest.mark.requirement(case[0])] * (case[1] == BAR)) for case in HANDED_OUT],
)
def test_a_job_that_could_not_be_handed_out(id, path, changed):
    assert found(talked(ATTACH, service(**changed))) == [(id, path, f"{SERVICE} reply")]


@pytest.mark.requirement("QMS-manage-11")
def test_a_job_that_is_open_is_handed_out():
    ids = {id for id, _, _ in found(talked(ATTACH, service(jobControlFlags=0x20)))}
    assert ids == {"QMS-manage-11", "QMS-jobfields-36"}


COMPLETION = "NcpReplyHeader.CompletionCode"
ORDERS = [
    ("QMS-submit-11", COMPLETION, [(START, JOB)]),
    ("QMS-submit-12", COMPLETION, [create(), (START, JOB), (START, JOB)]),
    ("QMS-service-07", "NcpJobHead.Job", [service()]),
    ("QMS-service-07", "NcpJobHead.Job",
     [ATTACH, ("DetachQueueServerFromQueue", OF_QUEUE), service()]),
    ("QMS-manage-09", "NcpJobHead.Job.jobNumber", [ATTACH, service(), service()]),
    ("QMS-ext-03", COMPLETION, [ATTACH, (FINISH, JOB)]),
    ("QMS-ext-03", COMPLETION, [ATTACH, service(), (FINISH, JOB), ("AbortServicingQueueJob", JOB)]),
    ("QMS-ext-05", COMPLETION,
     [ATTACH, service(), ("ChangeQueueJobEntry", {**OF_QUEUE, "Job": {**ASKED, "jobNumber": 1}})]),
    ("QMS-ext-16", COMPLETION, [ATTACH, ("ChangeToClientRights", JOB)]),
]  # fmt: skip


@pytest.mark.parametrize("id, path, calls", ORDERS)
def test_the_order_of_calls(id, path, calls):
    assert found(talked(*calls)) == [(id, path, f"{calls[-1][0]} reply")]


def test_calls_are_not_judged_by_what_is_not_in_the_capture():
    talk = talked(create(), (START, JOB), (FINISH, JOB), service())
    frames = talk.conversation.frames
    assert found(talk)
    talk.conversation.frames = frames[4:]
    assert found(talk) == []
    talk.conversation.frames = [frame for frame in frames if b"report" not in frame.data]
    assert found(talk) == []


def test_more_jobs_than_are_followed():
    calls = [
        (CREATE, create()[1], {"Job": {**OPEN, "jobNumber": number % 999 + 1}})
        for number in range(JOBS_FOLLOWED_MAX + 2)
    ]
    assert found(talked(*calls, (START, JOB))) == []


BIG_QUEUE = 0x0B00_0005
NAMED = ("GetBinderyObjectID", {"ObjectType": 3, "ObjectName": "REPORTS"}, {"ObjectID": QUEUE})
LIST = "GetQueueJobList"
READINGS = [
    ("QUEUE-ID", "queue_id=little", [NAMED, (LIST, {"QueueID": BIG_QUEUE}, {})]),
    ("JOB-NUMBER", "job_number=big", [listed(1 << 24)]),
    ("JOB-NUMBER", "job_number=high-low", [(*create()[:2], {"Job": {**OPEN, "jobNumber": 5 << 8}})]),
    ("JOB-NUMBER", "job_number=big", [create(), (START, {**JOB, "JobNumber": 1 << 24})]),
    ("POSITION-JOB-NUMBER", "position_job_number=little",
     [create(), ("ChangeQueueJobPosition", {**JOB, "JobNumber": 1 << 8, "NewPosition": 1})]),
    ("SERVICE-TYPE", "service_type=little",
     [ATTACH, (SERVICE, {**OF_QUEUE, "ServiceType": 3 << 8}, {"Job": SERVED})]),
    ("CHARGE", "charge=little", [ATTACH, service(), (FINISH, {**JOB, "Charge": 5 << 24})]),
    ("START-POSITION", "start_position=big", [(LIST, {**OF_QUEUE, "StartPosition": 1 << 24}, {})]),
    ("SERVER-STATION", "server_station=big",
     [("ReadQueueServerCurrentStatus", {**OF_QUEUE, "ServerID": LASER, "ServerStation": 4 << 24})]),
    ("DESTINATION-QUEUE-ID", "destination_queue_id=little",
     [NAMED, ("MoveQueueJobFromSrcQToDstQ", {**JOB, "DestinationQueueID": BIG_QUEUE}, {"JobNumber": 1})]),
    ("JOB-FILE-NAME", "", [read(jobFileName=b"Q$000B.001\0\0\0\0")]),
]  # fmt: skip


@pytest.mark.parametrize("name, option, calls", READINGS)
def test_values_show_the_byte_order_of_a_sender(name, option, calls):
    talk = talked(*calls)
    shown = [f for item in items(talk) for f in item.findings if f.id.startswith("READING-")]
    assert [(f.id, f.severity) for f in shown] == [(f"READING-{name}", "NOTE")]
    if not option:
        return
    assert shown[0].message.endswith(f": --reading {option}")
    field, _, value = option.partition("=")
    right = items(talk, ncp_readings=Readings.of({field: value}))
    if (name, value) != ("JOB-NUMBER", "big") or calls[0] != create():  # one of both sides is different there
        assert not [f for item in right for f in item.findings if f.id == f"READING-{name}"]


SIZES = [
    ("NO-QUEUE-ID", "ChangeQueueJobEntryOld", slice(4, None)),
    ("SHORT-CHARGE", "FinishServicingQueueJobOld", slice(-2)),
    ("OLD-STRUCTURE", "ChangeQueueJobEntry", slice(260)),
    ("SHORT-STATUS", "SetQueueCurrentStatus", slice(-3)),
]


@pytest.mark.parametrize("name, call, part", SIZES)
def test_sizes_show_the_description_that_a_sender_follows(name, call, part):
    talk = NcpTalk(7)
    job = {"Job": {"jobNumber": 1}} if "Entry" in call else {}
    request = talk.request(call, {**OF_QUEUE, **job})
    data = request.data.to_bytes()[part]
    unit = bytearray(request_unit(request)[:26] + data)
    unit[4:8] = len(unit).to_bytes(4, "big")
    unit[23:25] = (len(data) + 1).to_bytes(2, "big")
    talk.conversation.send(bytes(unit))
    (finding,) = [f for f in items(talk)[-1].findings if f.id.startswith("READING-")]
    assert (finding.id, finding.offset) == (f"READING-{name}", 26)
    assert finding.message == f"{len(data)} bytes of data"


def test_slots_of_an_old_status():
    talk = NcpTalk(7)
    request = talk.request("ReadQueueCurrentStatusOld", OF_QUEUE)
    talk.conversation.send(request_unit(request))
    reply = bytes.fromhex("0500000b 00 00 01") + LASER.to_bytes(4, "big") + bytes(96) + b"\4" + bytes(24)
    unit = bytearray(talk.pairs[0][1].to_bytes()[:8]) + reply
    unit[2] = request.header.SequenceNumber
    talk.conversation.send(b"tNcP" + (8 + len(unit)).to_bytes(4, "big") + unit, by_client=False)
    assert [finding.id for finding in items(talk)[-1].findings] == ["READING-STATUS-SLOTS"]


def test_bytes_behind_the_data():
    talk = NcpTalk(7)
    request = talk.request(START, JOB)
    unit = bytearray(request_unit(request) + b"\0more")
    unit[4:8] = len(unit).to_bytes(4, "big")
    unit[24] += 5
    talk.conversation.send(bytes(unit))
    (finding,) = items(talk)[-1].findings
    assert (finding.id, finding.path, finding.offset) == ("ATTACK-NCP-TRAILING", "TrailingData", 34)
    request, reply = talked(("AbortServicingQueueJob", JOB)).pairs[-1]
    for extra, is_told in ((b"\0\0", False), (b"\0x", True)):  # there are servers that add two zeroes
        unit = bytearray(reply_unit(reply) + extra)
        unit[7] += 2
        talk = NcpTalk(7)
        talk.conversation.send(request_unit(request)).send(bytes(unit), by_client=False)
        assert ("ATTACK-NCP-TRAILING" in [f.id for f in items(talk)[-1].findings]) is is_told


def test_every_call_of_several_sizes_is_reported():
    assert {call.name for call in CALLS.values() if call.others or call.other_replies} == set(
        ncp_readings.SIZES
    )


def test_every_rule_has_a_case():
    rules = {check.id for check in checks() if check.kinds == NCP}
    elsewhere = {"ATTACK-NCP-SEQUENCE", "ATTACK-NCP-LENGTH", "ATTACK-NCP-COUNT"}  # with what is malformed
    source = Path(__file__).read_text()
    names = {id.removeprefix("READING-") for id in rules - elsewhere - {"READING-STATUS-SLOTS"}}
    assert {name for name in names if f'"{name}"' not in source} == set()
