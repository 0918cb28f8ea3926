"""The catalogue of codes: it has every code, and its words are short whole sentences."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from msmqwire.constants import (
    CONNECTION_STATUS,
    HResult,
    ManagementQueueState,
    MessageClass,
    class_name,
    is_negative,
)
from msmqwire.constants.explanations import (
    CodeKind,
    Explanation,
    catalogue,
    explained,
    named,
    result_parts,
    result_texts,
)
from msmqwire.constants.ntstatus import NtStatus
from msmqwire.names.class_words import class_words
from msmqwire.qm.model.enumerations import ConnectionStatus, OutgoingQueueState
from msmqwire.qm.runtime.reasons import reason
from msmqwire.rpc.constants import FaultStatus

CATALOGUE = catalogue()
MEANING_MAX, SENTENCES_MAX = 110, 230
"""Characters of a meaning, and of the causes or the action."""


def of(kind: CodeKind) -> dict[int | None, Explanation]:
    return {one.number: one for one in CATALOGUE if one.kind is kind}


def test_every_result_has_an_entry() -> None:
    results = of(CodeKind.RESULT)
    assert {member.value: member.name for member in HResult} | {0: "MQ_OK"} == {
        number: one.name for number, one in results.items()
    }
    assert {member.value: member.name for member in NtStatus} == {
        number: one.name for number, one in of(CodeKind.NTSTATUS).items()
    }


def test_every_message_class_has_an_entry() -> None:
    classes = {number: one.name for number, one in of(CodeKind.MESSAGE_CLASS).items()}
    assert classes == {member.value: member.name for member in MessageClass}


def test_every_connection_status_has_an_entry_with_its_name() -> None:
    statuses = of(CodeKind.CONNECTION_STATUS)
    assert statuses.keys() == CONNECTION_STATUS.keys()
    assert {one.name for one in statuses.values()} == {member.value for member in ConnectionStatus}


def test_every_state_of_an_outgoing_queue_has_an_entry() -> None:
    states = {one.name for one in CATALOGUE if one.kind is CodeKind.QUEUE_STATE}
    assert states == {*ManagementQueueState, "LOCKED"}
    assert {name.replace(" ", "") for name in states} - {"LOCALCONNECTION"} == {
        state.value.upper() for state in OutgoingQueueState
    }


def test_every_status_of_a_fault_has_an_entry() -> None:
    for status in FaultStatus:
        (one,) = explained(status)
        assert one.kind in (CodeKind.RPC, CodeKind.WIN32)
        assert one.name.removeprefix("ERROR_") == status.name.removeprefix("WIN32_")


@pytest.mark.parametrize("one", CATALOGUE, ids=lambda one: f"{one.name[:60]}-{one.code}")
def test_words_are_short_whole_sentences(one: Explanation) -> None:
    meaning = one.texts.meaning
    assert 0 < len(meaning) <= MEANING_MAX
    assert meaning.strip(" .") == meaning
    assert one.meaning == f"{meaning[0].upper()}{meaning[1:]}."
    for text in (one.texts.causes, one.texts.action):
        assert 0 < len(text) <= SENTENCES_MAX
        assert text.endswith(".")
        assert text[0].isupper()
        assert text == " ".join(text.split())
        assert all(sentence[0].isupper() for sentence in re.split(r"(?<=[a-z)])\. ", text))


def test_a_code_has_one_entry_of_a_kind() -> None:
    twice = Counter((one.kind, one.number, one.name) for one in CATALOGUE)
    assert set(twice.values()) == {1}
    assert max(Counter((one.kind, one.number) for one in CATALOGUE if one.number is not None).values()) == 1


@pytest.mark.parametrize(
    "number, names",
    [
        (0xC00E0027, ["MQ_ERROR_INSUFFICIENT_RESOURCES"]),
        (0, ["MQ_OK", "MQMSG_CLASS_NORMAL", "InProcess"]),
        (2, ["MQMSG_CLASS_ACK_REACH_QUEUE", "Established"]),
        (5, ["ERROR_ACCESS_DENIED"]),
        (0x80070005, ["ERROR_ACCESS_DENIED"]),
        (0x800706BA, ["RPC_S_SERVER_UNAVAILABLE"]),
        (1783, ["RPC_X_BAD_STUB_DATA"]),
        (0x16C9A0D6, ["EPT_S_NOT_REGISTERED"]),
        (0x8002, ["MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT"]),
        (0x80000004, ["SocketConnectFailure"]),
        (0xC00E00FF, []),
        (0x8007FFFF, []),
    ],
    ids=str,
)
def test_a_number_has_all_its_meanings(number: int, names: list[str]) -> None:
    assert [one.name for one in explained(number)] == names
    assert all(one.number == number for one in explained(number))


@pytest.mark.parametrize(
    "name, names",
    [
        ("MQ_ERROR_QUEUE_NOT_FOUND", ["MQ_ERROR_QUEUE_NOT_FOUND"]),
        ("queue_not_found", ["MQ_ERROR_QUEUE_NOT_FOUND"]),
        ("nack_bad_dst_q", ["MQMSG_CLASS_NACK_BAD_DST_Q"]),
        ("BAD_DST_Q", ["MQMSG_CLASS_NACK_BAD_DST_Q"]),
        ("NeedValidation", ["NEED VALIDATION"]),
        ("ping failed", ["PingFailure"]),
        (
            "ACCESS_DENIED",
            [
                "MQ_ERROR_ACCESS_DENIED",
                "STATUS_ACCESS_DENIED",
                "ERROR_ACCESS_DENIED",
                "MQMSG_CLASS_NACK_ACCESS_DENIED",
            ],
        ),
        ("", []),
        ("queue not fond", []),
    ],
)
def test_names_may_lack_their_first_part(name: str, names: list[str]) -> None:
    assert [one.name for one in named(name)] == names


def test_parts_of_a_result() -> None:
    assert result_parts(0xC00E0003) == (True, False, 0x00E, "MSMQ", 3)
    assert result_parts(0x400E0006) == (False, False, 0x00E, "MSMQ", 6)
    assert result_parts(0xE0010002) == (True, True, 1, "RPC", 2)
    assert result_parts(0xFFFFFFFF) == (True, True, 0x7FF, "", 0xFFFF)


def test_words_of_acknowledgements_are_those_of_the_catalogue() -> None:
    classes = of(CodeKind.MESSAGE_CLASS)
    for member in MessageClass:
        words = classes[member].texts.meaning if is_negative(member) else "it is refused"
        assert class_words(class_name(member)) == words


def test_refusals_are_explained_by_the_catalogue() -> None:
    name = r"private$\orders"
    texts = result_texts(HResult.MQ_ERROR_LABEL_TOO_LONG)
    assert texts is not None
    assert reason(HResult.MQ_ERROR_LABEL_TOO_LONG, name) == f"{name}: {texts.meaning}"
    assert reason(0x800706BA, name) == f"{name}: the server of remote calls can't be reached"
    assert reason(0xC0000022, name) == f"{name}: access is denied"
    assert reason(0xC00E00FF, name) == f"{name}: error 0xC00E00FF"
    ours = "it is not for applications, or access is denied"
    assert reason(HResult.MQ_ERROR_ACCESS_DENIED, name) == f"{name}: {ours}"
