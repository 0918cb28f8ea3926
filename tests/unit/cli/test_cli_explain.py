"""``msmqwire explain``: codes in all their forms, with all their meanings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from msmqwire.constants.explanations import catalogue
from tests.support.running import in_process as command


def rows(*codes: str, status: int = 0) -> list[dict[str, Any]]:
    done = command("explain", "--json", *codes)
    assert done.returncode == status, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    "code",
    [
        "0xC00E0027",
        "C00E0027",
        "c00e0027",
        "3222143015",
        "-1072824281",
        "\N{MINUS SIGN}1072824281",
        "0xFFFFFFFFC00E0027",
        "MQ_ERROR_INSUFFICIENT_RESOURCES",
        "insufficient_resources",
        " 0xC00E0027 ",
    ],
)
def test_a_code_has_many_forms(code: str) -> None:
    (row,) = rows(code)
    assert (row["name"], row["code"]) == ("MQ_ERROR_INSUFFICIENT_RESOURCES", "0xC00E0027")
    assert row["given"] == code.replace("\N{MINUS SIGN}", "-")
    assert row["kind"] == "result of MSMQ"
    assert row["meaning"] == "The queue manager has no room left for the message or call."
    assert "quota" in row["causes"]
    assert "purge" in row["action"]


@pytest.mark.parametrize(
    "code, names",
    [
        ("0x8002", ["MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT"]),
        ("8002", ["MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT"]),  # hexadecimal, as 8002 itself means nothing
        ("32770", ["MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT"]),
        ("MQMSG_CLASS_NACK_Q_PURGED", ["MQMSG_CLASS_NACK_Q_PURGED"]),
        ("0x80000004", ["SocketConnectFailure"]),
        ("the socket could not connect", ["SocketConnectFailure"]),
        ("2", ["MQMSG_CLASS_ACK_REACH_QUEUE", "Established"]),
        ("1722", ["RPC_S_SERVER_UNAVAILABLE"]),
        ("0x6BA", ["RPC_S_SERVER_UNAVAILABLE"]),
        ("800706BA", ["RPC_S_SERVER_UNAVAILABLE"]),
        ("-2147024891", ["ERROR_ACCESS_DENIED"]),
        ("onhold", ["ONHOLD"]),
        ("0", ["MQ_OK", "MQMSG_CLASS_NORMAL", "InProcess"]),
    ],
)
def test_a_code_is_explained_with_all_its_meanings(code: str, names: list[str]) -> None:
    assert [row["name"] for row in rows(code)] == names


def test_text_for_people() -> None:
    done = command("explain", "-1072824283", "WAITING")
    assert done.returncode == 0
    assert done.stdout.decode() == (
        "MQ_ERROR_ACCESS_DENIED  0xC00E0025 (-1072824283)  result of MSMQ\n"
        "  Access is denied.\n"
        "  Causes: The user lacks the right on the queue or the computer; management needs an administrator\n"
        "  of it; or the server takes no such calls from the network.\n"
        "  What to do: Grant the right in the security of the queue, or call as another user (--user). A\n"
        "  server of ours needs --rpc-manage for management.\n"
        "\n"
        "WAITING  state of an outgoing queue\n"
        "  The queue manager tries to connect to the destination, and has not reached it.\n"
        "  Causes: The destination is off or unreachable: its service, its name, or a firewall in between.\n"
        "  What to do: Look at the connection history; try msmqwire ping HOST --session.\n"
    )


@pytest.mark.parametrize(
    "code, text",
    [
        (
            "0xC00E00FF",
            "0xC00E00FF (-1072824065)  unknown\n"
            "  As a result: failure, not of another vendor, facility 0x00E (MSMQ), code 0x00FF (255).\n",
        ),
        (
            "0x20010007",
            "0x20010007 (536936455)  unknown\n"
            "  As a result: success, another vendor has defined it, facility 0x001 (RPC), code 0x0007 (7).\n",
        ),
        (
            "0x80071234",
            "0x80071234 (-2147020236)  unknown\n"
            "  As a result: failure, not of another vendor, facility 0x007 (Win32), code 0x1234 (4660).\n"
            "  On Windows, net helpmsg 4660 explains it.\n",
        ),
        (
            "0xC1FF",
            "0xC1FF  unknown\n"
            "  As a message class: of an application, negative, about receiving.\n"
            "  On Windows, net helpmsg 49663 explains it if it is an error.\n",
        ),
        (
            "0x0200",
            "0x0200  unknown\n"
            "  As a message class: none that a message may have.\n"
            "  On Windows, net helpmsg 512 explains it if it is an error.\n",
        ),
    ],
)
def test_an_unknown_number_is_told_by_its_parts(code: str, text: str) -> None:
    done = command("explain", code)
    assert (done.returncode, done.stdout.decode()) == (65, text)


def test_an_unknown_number_beside_a_known_one() -> None:
    known, unknown = rows("NACK_Q_DELETED", "0xC00E00FF", status=65)
    assert known["code"] == "0xC000"
    assert unknown["code"] == "0xC00E00FF"
    assert unknown["name"] is None
    assert unknown["parts"] == {
        "is_failure": True,
        "is_customer": False,
        "facility": 14,
        "facility_name": "MSMQ",
        "code": 255,
        "message_class": False,
    }
    assert rows("0x80FF", status=65)[0]["parts"]["message_class"] is True


@pytest.mark.parametrize(
    "words, told",
    [
        (("MQ_ERROR_ACESS_DENIED",), "did you mean MQ_ERROR_ACCESS_DENIED"),
        (("WAITNG",), "did you mean WAITING?"),
        (("NACK_BAD_DST",), "did you mean MQMSG_CLASS_NACK_BAD_DST_Q"),
        (("zzz",), "'zzz' is not a code: msmqwire explain --list prints all"),
        (("",), "'' is not a code"),
        (("4294967296",), "'4294967296' is not a number of 32 bits"),
        (("-2147483649",), "'-2147483649' is not a number of 32 bits"),
        (("0x1C00E0027",), "'0x1C00E0027' is not a number of 32 bits"),
        (("9" * 5000,), "is not a number of 32 bits"),
        (("0xC00E0027", "0xZZ"), "'0xZZ' is not a number of 32 bits"),
        ((), "a code is missing: a number (0xC00E0027"),
        (("--list", "5"), "--list prints all codes: give it none"),
        (("--jsn", "5"), "did you mean --json?"),
    ],
)
def test_what_is_no_code_is_wrong_usage(words: tuple[str, ...], told: str) -> None:
    done = command("explain", *words)
    assert (done.returncode, done.stdout) == (2, b"")
    error = json.loads(done.stderr)
    assert told in error["error"]
    assert len(error["error"]) < 400


def test_a_list_of_all_codes() -> None:
    listed = command("explain", "--list").stdout.decode().splitlines()
    assert len(listed) == len(catalogue())
    assert "0x8000      MQMSG_CLASS_NACK_BAD_DST_Q: there is no such queue  [message class]" in listed
    as_json = command("explain", "--list", "--json").stdout.splitlines()
    assert [json.loads(line)["name"] for line in as_json] == [one.name for one in catalogue()]
