"""NWQueueJobStruct_t, byte by byte: the 256 bytes of the chapter and the 280 of newer servers."""

from __future__ import annotations

from typing import Any

import pytest

from msmqwire.errors import InvalidValue
from msmqwire.ncp.constants import JobControlFlags
from msmqwire.ncp.job_structures import (
    NEW_JOB,
    NEW_JOB_HEAD,
    OLD_JOB,
    OLD_JOB_HEAD,
    QUEUE_JOB_TIME,
    file_handle,
    job_file_name,
    to_new,
    to_old,
)
from msmqwire.schema import Header, fixed_size
from tests.support.codec_checks import (
    assert_bits,
    assert_field,
    assert_refused,
    assert_same,
    at,
    proving,
)

# Every field once: offset, bytes and value in the form of 256 bytes, then in that of 280.
FIELDS = [
    ("clientStation", (0, "15", 0x15), (10, "15030000", 0x315)),
    ("clientTask", (1, "02", 2), (14, "02010000", 0x102)),
    ("clientID", (2, "0A0B0C0D", 0x0A0B0C0D), (18, "0A0B0C0D", 0x0A0B0C0D)),
    ("targetServerID", (6, "01020304", 0x01020304), (22, "01020304", 0x01020304)),
    ("targetExecutionTime.Year", (10, "5A", 90), (26, "5A", 90)),
    ("targetExecutionTime.Second", (15, "3B", 59), (31, "3B", 59)),
    ("jobEntryTime.Year", (16, "5F", 95), (32, "5F", 95)),
    ("jobEntryTime.Second", (21, "01", 1), (37, "01", 1)),
    ("jobNumber", (22, "01F4", 500), (38, "F4010000", 500)),
    ("jobType", (24, "0102", 0x0102), (42, "0102", 0x0102)),
    ("jobPosition", (26, "FA", 250), (44, "FA00", 250)),
    ("jobFileName", (28, "0A5124354430332E303031000000", "Q$5D03.001"), (48, "0351243100", "Q$1")),
    ("jobFileHandle", (42, "0102030405F6", bytes.fromhex("0102030405F6")), (62, "01020304", b"\1\2\3\4")),
    ("servicingServerStation", (48, "FE", 0xFE), (66, "FE010000", 0x1FE)),
    ("servicingServerTaskNumber", (49, "07", 7), (70, "07000100", 0x10007)),
    ("servicingServerIDNumber", (50, "11223344", 0x11223344), (74, "11223344", 0x11223344)),
    ("jobDescription", (54, "44616D70662081", "Dampf \u00fc"), (78, "44616D7066", "Dampf")),
    ("queueRecord", (104, "AB" * 152, b"\xab" * 152), (128, "AB" * 152, b"\xab" * 152)),
]
NUMBERS = [
    "clientStation", "clientTask", "clientID", "targetServerID", "targetExecutionTime", "jobEntryTime",
    "jobNumber", "jobType", "jobPosition", "jobControlFlags", "jobFileName", "jobFileHandle",
    "servicingServerStation", "servicingServerTaskNumber", "servicingServerIDNumber", "jobDescription",
    "queueRecord",
]  # fmt: skip
"""The names of Table 25, in its order: QMS-jobfields-02 is the first."""


def id_of(path: str) -> str:
    return f"QMS-jobfields-{NUMBERS.index(path.partition('.')[0]) + 2:02}"


@pytest.mark.requirement("QMS-jobfields-01")
def test_the_fields_in_their_order_and_the_size() -> None:
    assert list(OLD_JOB.fields) == NUMBERS
    assert list(NEW_JOB.fields) == ["RecordInUse", "PreviousRecord", "NextRecord", *NUMBERS]
    sizes = [fixed_size(schema) for schema in (OLD_JOB, OLD_JOB_HEAD, NEW_JOB, NEW_JOB_HEAD)]
    assert sizes == [256, 54, 280, 78]
    assert_refused(OLD_JOB, bytes(255), "NWQueueJobStruct_t.queueRecord", 255)
    assert_refused(NEW_JOB, bytes(279), "NWQueueJobStruct_t.queueRecord", 279)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [proving(path, old, new, ids=id_of(path)) for path, old, new in FIELDS],
)
def test_a_field_at_its_offset_in_both_forms(
    path: str, old: tuple[int, str, Any], new: tuple[int, str, Any]
) -> None:
    for schema, (offset, text, value) in ((OLD_JOB, old), (NEW_JOB, new)):
        base = bytes(fixed_size(schema) or 0)
        assert_field(schema, base, path, offset, bytes.fromhex(text), value)


@pytest.mark.parametrize(
    ("name", "mask"),
    [
        proving(
            "NWCF_SERVICE_AUTO_START",
            0x08,
            ids=(
                "QMS-flags-01",
                "QMS-flags-02",
            ),
        ),
        proving(
            "NWCF_SERVICE_RESTART",
            0x10,
            ids=(
                "QMS-flags-04",
                "QMS-flags-05",
            ),
        ),
        proving("NWCF_ENTRY_OPEN", 0x20, ids=("QMS-flags-06",)),
        proving("NWCF_USER_HOLD", 0x40, ids=("QMS-flags-07",)),
        proving("NWCF_OPERATOR_HOLD", 0x80, ids=("QMS-flags-08",)),
    ],
)
@pytest.mark.requirement("QMS-jobfields-11")
def test_a_flag_in_both_forms(name: str, mask: int) -> None:
    assert JobControlFlags[name] == mask
    assert_bits(OLD_JOB, bytes(256), f"jobControlFlags.{name}", 27, 1, mask)
    assert_bits(NEW_JOB, bytes(280), f"jobControlFlags.{name}", 46, 2, mask)


@pytest.mark.requirement("QMS-flags-11")
def test_undefined_flags_come_back_and_have_no_names() -> None:
    for schema, offset, size, undefined in ((OLD_JOB, 27, 1, 0x07), (NEW_JOB, 46, 2, 0xFF07)):
        data = bytearray(fixed_size(schema) or 0)
        data[offset : offset + size] = undefined.to_bytes(size, "little")
        word = assert_same(schema, bytes(data)).jobControlFlags
        assert word == undefined
        named = {name: bit for name, bit in word.bits().items() if name.startswith("NWCF_")}
        assert named == dict.fromkeys(JobControlFlags.__members__, False)
        assert sum(JobControlFlags) == 0xF8


def test_fields_of_the_newer_form_alone() -> None:
    for path, offset, text, value in (
        ("RecordInUse", 0, "FFFF", 0xFFFF),
        ("PreviousRecord", 2, "01020000", 0x201),
        ("NextRecord", 6, "F5010000", 501),
    ):
        assert_field(NEW_JOB, bytes(280), path, offset, bytes.fromhex(text), value)


@pytest.mark.requirement("QMS-jobfields-24")
def test_the_six_bytes_of_a_time() -> None:
    for schema, target, entry in ((OLD_JOB, 10, 16), (NEW_JOB, 26, 32)):
        data = bytearray(fixed_size(schema) or 0)
        data[target : target + 6] = bytes((90, 12, 31, 24, 58, 59))
        data[entry : entry + 6] = bytes((95, 1, 2, 3, 4, 5))
        job = assert_same(schema, bytes(data))
        assert list(dict(job.targetExecutionTime).items()) == [
            ("Year", 90), ("Month", 12), ("Day", 31), ("Hour", 24), ("Minute", 58), ("Second", 59),
        ]  # fmt: skip
        assert bytes(dict(job.jobEntryTime).values()) == bytes((95, 1, 2, 3, 4, 5))
    assert QUEUE_JOB_TIME.make().to_bytes() == b"\xff" * 6


@pytest.mark.requirement("QMS-jobfields-38")
def test_49_characters_of_description_and_a_null() -> None:
    for schema, offset in ((OLD_JOB, 54), (NEW_JOB, 78)):
        job = schema.make(jobDescription="x" * 49)
        assert job.to_bytes()[offset : offset + 50] == b"x" * 49 + b"\0"
        assert schema.parse(job.to_bytes()).jobDescription == "x" * 49
        with pytest.raises(InvalidValue) as refused:
            schema.make(jobDescription="x" * 50)
        assert (refused.value.path, refused.value.offset) == ("NWQueueJobStruct_t.jobDescription", offset)
        without_null = job.to_bytes()[:offset] + b"y" * 50 + job.to_bytes()[offset + 50 :]
        assert assert_same(schema, without_null).jobDescription == b"y" * 50


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("0A51243544303331303031000000", "Q$5D031001"),
        ("5124354430332E30303100000000", "Q$5D03.001"),
        ("5124354430330041414141414141", "Q$5D03"),
        ("5124354430333030303030303030", "Q$5D0300000000"),
        ("1F51243544303300000000000000", "Q$5D03" + "\0" * 7),
        ("0000000000000000000000000000", ""),
    ],
    ids=["counted", "up to a null", "rest behind the null", "all characters", "count too large", "none"],
)
def test_the_name_of_the_file_in_either_form(field: str, name: str) -> None:
    for schema, offset in ((OLD_JOB, 28), (NEW_JOB_HEAD, 48)):
        size = fixed_size(schema) or 0
        data = (bytes(offset) + bytes.fromhex(field)).ljust(size, b"\0")
        assert job_file_name(assert_same(schema, data)) == name


# -- from one form to the other ---------------------------------------------------------------------


def job(schema: Header, form: int) -> Any:
    """A job with something in each field; `form` 1 is the old form, 2 the newer one."""
    data = bytearray(fixed_size(schema) or 0)
    for field in FIELDS:
        offset, text, _ = field[form]
        if offset < len(data):
            data[offset : offset + len(text) // 2] = bytes.fromhex(text)
    data[27 if form == 1 else 46] = 0x4F
    return schema.parse(bytes(data))


@pytest.mark.parametrize(
    ("old_form", "new_form"), [(OLD_JOB, NEW_JOB), (OLD_JOB_HEAD, NEW_JOB_HEAD)], ids=["whole", "head"]
)
def test_an_old_job_in_the_newer_form_and_back(old_form: Header, new_form: Header) -> None:
    old = job(old_form, 1)
    new = to_new(old)
    assert new.schema is new_form
    for name in set(old_form.fields) - {"jobFileHandle"}:
        assert new[name] == old[name], name
    assert (new.RecordInUse, new.PreviousRecord, new.NextRecord) == (0, 0, 0)
    assert new.jobFileHandle == old.jobFileHandle[2:]
    back = to_old(new)
    assert back.replace(jobFileHandle=old.jobFileHandle) == old
    assert back.jobFileHandle == bytes.fromhex("0404030405F6")
    assert to_new(back) == new


def test_no_handle_stays_none() -> None:
    assert to_old(NEW_JOB.make()).jobFileHandle == bytes(6)
    assert file_handle(bytes.fromhex("FFFF0102")) == bytes.fromhex("0000FFFF0102")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("clientStation", 256),
        ("clientTask", 256),
        ("jobNumber", 65536),
        ("jobPosition", 256),
        ("jobControlFlags", 0x100),
        ("servicingServerStation", 256),
        ("servicingServerTaskNumber", 256),
    ],
)
def test_a_number_without_room_in_the_old_form_is_refused(name: str, value: int) -> None:
    with pytest.raises(InvalidValue) as refused:
        to_old(NEW_JOB.make({name: value}))
    assert refused.value.path == f"NWQueueJobStruct_t.{name}"
    assert at(to_old(NEW_JOB.make({name: value - 1})), name) == value - 1


def test_job_forms_refuse_bytes_of_the_other_form() -> None:
    with pytest.raises(InvalidValue):
        to_new(NEW_JOB.make())
    with pytest.raises(InvalidValue):
        to_old(OLD_JOB_HEAD.make())
